"""A vision-language model of the package transformers in this process: prompts of text and pictures in, replies out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Options, Reply, Usage
from gen_eval.mllm.checkpoint import Wanted, folder_digest, folder_of, open_checkpoint
from gen_eval.mllm.client import ChatError
from gen_eval.mllm.conversation import Conversation, conversation_of
from gen_eval.mllm.generation import Recorder, cut_at, decoding_of, effective, ends_of, follower, seeded
from gen_eval.networks.memory import memory_errors
from gen_eval.records import Reason, digest_of
from gen_eval.registry import require


class Transformer:
    """A loaded model; one thread at a time.

    Args:
        wanted: which one, and where.
        context: tokens that the model entry allows, if it says so.
        template_key: variable of the chat template that switches reasoning, if there is one.

    Raises:
        MissingPart: a package, the folder or tensors of it are absent.
        InputError: the folder holds something else.
        MemoryError: there is no room for it.
    """

    def __init__(self, wanted: Wanted, *, context: int | None = None, template_key: str | None = None) -> None:
        self._folder = folder_of(wanted)
        self._wanted, self._template_key = wanted, template_key
        self._model, self._processor = open_checkpoint(self._folder, wanted)
        self._tokenizer = self._processor.tokenizer
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        own = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        known = [limit for limit in (own, context) if limit]
        self.limit: int | None = min(known) if known else None
        """Tokens of prompt and reply together."""

    def facts(self) -> dict[str, Any]:
        """What moves replies besides the request (JSON values only)."""
        return {
            "weights": folder_digest(self._folder),
            "architecture": type(self._model).__name__,
            "device": "spread" if self._wanted.spread else self._wanted.device.partition(":")[0],
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "attention": self._wanted.attention,
            "torch": require("torch").__version__,
            "context": self.limit,
        }

    def answer(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """Replies to requests of one kind (:func:`kind_of`), the same as to each one alone.

        Raises:
            ChatError: ``context_overflow``.
            MemoryError: there is no room for them.
            ValueError: the processor does not take one of them, or they cannot go together.
        """
        torch, options = require("torch"), requests[0].options
        with torch.inference_mode(), memory_errors():
            talks = [conversation_of(one, video_form=self._takes_video) for one in requests]
            inputs = self._inputs(talks, options)
            lengths = [int(length) for length in inputs["attention_mask"].sum(dim=1)]
            config = decoding_of(
                self._model.generation_config, options, self._room(lengths, options), self._tokenizer.pad_token_id
            )
            start = inputs["input_ids"].shape[1]
            recorder = None if options.logprobs is None else Recorder(options.logprobs, start)
            with seeded(options, self._model.device):
                made = self._model.generate(
                    **inputs,
                    generation_config=config,
                    logits_processor=[recorder] if recorder else None,
                    prefix_allowed_tokens_fn=follower(options, self._tokenizer, ends_of(config), start),
                    **({"stop_strings": list(options.stop), "tokenizer": self._tokenizer} if options.stop else {}),
                )
            if recorder:
                recorder.finish(made)
            return [
                self._reply(row, made[row, start:].tolist(), talks[row], lengths[row], config, options, recorder)
                for row in range(len(requests))
            ]

    @property
    def _takes_video(self) -> bool:
        return getattr(self._processor, "video_processor", None) is not None

    def _inputs(self, talks: Sequence[Conversation], options: Options) -> Any:
        """Prompts as tokens, padded on the left, and pixels."""
        switch = (
            {} if options.thinking is None or self._template_key is None else {self._template_key: options.thinking}
        )
        inputs = self._processor.apply_chat_template(
            [talk.turns for talk in talks],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            sanitize_control_tokens=True,  # marks in a question are text, not marks
            processor_kwargs=self._processing(talks),
            **switch,
        )
        return inputs.to(self._model.device, dtype=self._model.dtype)

    def _processing(self, talks: Sequence[Conversation]) -> dict[str, Any]:
        """Frames are neither sampled again, nor cut into tiles, nor resized where their sides are right already."""
        found: dict[str, Any] = {"padding": True}
        pictures = getattr(self._processor, "image_processor", None)
        if hasattr(pictures, "crop_to_patches"):
            found["crop_to_patches"] = False
        clips = [clip for talk in talks for clip in talk.clips]
        if clips:
            video_utils = require("transformers.video_utils")
            found |= {
                "do_sample_frames": False,
                "video_metadata": [video_utils.VideoMetadata(**clip) for clip in clips],
            }
        factor = _factor_of(pictures)
        if factor is None:
            return found
        if all(side % factor == 0 for talk in talks for side in _sides(talk)):
            return found | {"do_resize": False}
        return found | ({"cap_pixels_per_frame": True} if clips else {})

    def _room(self, lengths: Sequence[int], options: Options) -> int | None:
        """Tokens that replies may have; ``None`` for as many as are asked for."""
        if self.limit is None:
            return None
        room = self.limit - max(lengths)
        if len(lengths) > 1 and room < options.max_tokens:
            raise ValueError("the longest prompt would shorten the replies to the others")
        if room < 1:
            raise ChatError(
                Reason.CONTEXT_OVERFLOW,
                f"the question has {max(lengths)} tokens and the model takes {self.limit} with the reply; show less",
                {"tokens": max(lengths), "context": self.limit},
            )
        return room

    def _reply(
        self,
        row: int,
        written: list[int],
        talk: Conversation,
        prompt: int,
        config: Any,
        options: Options,
        recorder: Recorder | None,
    ) -> Reply:
        tokens, ended = _until_end(written, ends_of(config), self._tokenizer.pad_token_id)
        special = set(self._tokenizer.all_special_ids)
        told = tokens[:-1] if tokens and tokens[-1] in special else tokens
        text, stopped = cut_at(self._tokenizer.decode(tokens, skip_special_tokens=True), options.stop)
        return Reply(
            text=text,
            finish_reason="stop" if ended or stopped else "length",
            usage=Usage(prompt_tokens=prompt, completion_tokens=len(tokens)),
            logprobs=(recorder.chances(row, told, self._tokenizer) or None) if recorder else None,
            form=talk.form,
            raw={"text": text, "tokens": len(tokens), "settings": effective(config)},
        )


def _until_end(written: list[int], ends: Sequence[int], pad: int | None) -> tuple[list[int], bool]:
    """The tokens up to and with the first that ends a reply, and whether there is one; padding behind it goes."""
    for place, token in enumerate(written):
        if token in ends:
            return written[: place + 1], True
    while written and written[-1] == pad:
        written = written[:-1]
    return written, False


def _factor_of(pictures: Any) -> int | None:
    """Side of a square of pixels that becomes one token, in the families that say so."""
    patch, merge = getattr(pictures, "patch_size", None), getattr(pictures, "merge_size", None)
    return patch * merge if isinstance(patch, int) and isinstance(merge, int) else None


def _sides(talk: Conversation) -> list[int]:
    """Heights and widths of all pictures and clips."""
    parts = [part for turn in talk.turns if not isinstance(turn["content"], str) for part in turn["content"]]
    pictures = [side for part in parts if part["type"] == "image" for side in part["image"].size]
    return pictures + [clip[side] for clip in talk.clips for side in ("height", "width")]


def kind_of(request: ChatRequest) -> Hashable:
    """What requests of one batch have in common: the options, and numbers and sizes of pictures.

    Requests that draw at random are of no common kind: a batch would draw otherwise.
    """
    if not request.options.deterministic:
        return id(request)
    shapes: list[tuple[Any, ...]] = []
    for part in request.parts:
        if isinstance(part, Frames):
            first = part.pictures[0]
            shapes.append((part.form, len(part.pictures), first.height, first.width, part.stamps))
        elif isinstance(part, Image):
            shapes.append(("picture", 1, part.height, part.width))
    return digest_of(request.options.asked), tuple(shapes)
