"""Backend that holds the model in this process through vLLM, for offline batches: all that waits goes in at once.

The engine keeps the states of prompts, so what requests share is computed once: system turn and frames come first, the
question last. Frames as one video go in with their times; nothing is sampled again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from gen_eval.mllm.batching import Answered, Batcher, apart
from gen_eval.mllm.chat import ChatRequest, Options, Reply, TokenChance, Usage
from gen_eval.mllm.checkpoint import Wanted, folder_digest, folder_of
from gen_eval.mllm.client import Capabilities, ChatClient, Identity
from gen_eval.mllm.conversation import Conversation, conversation_of
from gen_eval.mllm.encoding import check_parts
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.local import InProcessParameters
from gen_eval.mllm.obeying import disobeyed
from gen_eval.registry import require

_PLAIN = ("temperature", "top_p", "top_k", "repetition_penalty", "presence_penalty", "max_tokens", "seed")
_RULED_OUT = -9000.0
"""Log-probabilities below are those of tokens that a constraint forbids."""
_HONOURS = frozenset({*_PLAIN, "choices", "schema", "logprobs", "stop"})


class VllmParameters(InProcessParameters):
    """What a model entry may say to this backend (``parameters``)."""

    batch: int = Field(256, ge=1, description="most questions that are given to the engine at once")
    tensor_parallel: int = Field(1, ge=1, description="devices that the model is split over")
    memory: float = Field(0.9, gt=0, le=1, description="share of the device's memory that the engine takes")
    eager: bool = Field(False, description="without captured graphs: starts sooner, runs slower")
    pictures: int = Field(64, ge=1, description="most loose pictures in one question")


class Engine(Protocol):
    """What this backend needs of vLLM."""

    def render(self, turns: list[dict[str, Any]], switches: Mapping[str, Any]) -> str:
        """The prompt for ``turns`` by the model's chat template."""

    def generate(self, prompts: Sequence[Mapping[str, Any]], settings: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """Outputs of vLLM, one a prompt, in order."""

    def facts(self) -> dict[str, Any]:
        """What moves replies besides the request: version, number format, digest of the files."""


def prompt_of(talk: Conversation, text: str) -> dict[str, Any]:
    """A conversation whose rendered text is ``text``, as vLLM takes prompts.

    Pictures and clips are those of the turns, in order; a clip is its frames (n, H, W, 3) uint8 and what is known of
    their times.
    """
    parts = [part for turn in talk.turns if not isinstance(turn["content"], str) for part in turn["content"]]
    pictures = [part["image"] for part in parts if part["type"] == "image"]
    videos = [part["video"] for part in parts if part["type"] == "video"]
    facts = [{**clip, "video_backend": "frames", "do_sample_frames": False} for clip in talk.clips]
    media: dict[str, Any] = {}
    if pictures:
        media["image"] = pictures
    if videos:
        media["video"] = list(zip(videos, facts, strict=True))
    prompt: dict[str, Any] = {"prompt": text}
    if media:
        prompt["multi_modal_data"] = media
    if videos:
        prompt["mm_processor_kwargs"] = {"do_sample_frames": False}
    return prompt


def settings_of(options: Options) -> dict[str, Any]:
    """What ``options`` say in vLLM's words; what they leave open stays as the checkpoint has it.

    >>> settings_of(Options(max_tokens=4, choices=("Yes", "No"), logprobs=5))["structured_outputs"]
    {'choice': ['Yes', 'No']}
    """
    asked = options.asked
    found = {name: asked[name] for name in _PLAIN if name in asked}
    if options.stop is not None:
        found["stop"] = list(options.stop)
    if options.logprobs is not None:
        found["logprobs"] = options.logprobs
    if options.choices is not None:
        found["structured_outputs"] = {"choice": list(options.choices)}
    elif options.schema is not None:
        found["structured_outputs"] = {"json": dict(options.schema)}
    return found


def reply_of(output: Any, talk: Conversation, settings: Mapping[str, Any]) -> Reply:
    """The reply in one of vLLM's outputs."""
    done = output.outputs[0]
    return Reply(
        text=done.text,
        finish_reason=str(done.finish_reason or "stop"),
        usage=Usage(
            prompt_tokens=len(output.prompt_token_ids or ()),
            completion_tokens=len(done.token_ids),
            cached_tokens=getattr(output, "num_cached_tokens", None),
        ),
        logprobs=_chances(done),
        form=talk.form,
        raw={"text": done.text, "tokens": len(done.token_ids), "settings": dict(settings)},
    )


def _chances(done: Any) -> tuple[TokenChance, ...] | None:
    """Log-probabilities of the tokens of the text; what a constraint rules out is left out."""
    found = []
    for token, table in zip(done.token_ids, done.logprobs or (), strict=False):
        top: dict[str, float] = {}
        for one in sorted(table.values(), key=lambda one: -one.logprob):
            if one.logprob > _RULED_OUT:
                top.setdefault(str(one.decoded_token), float(one.logprob))
        own = table[token]
        if own.decoded_token:
            found.append(TokenChance(own.decoded_token, float(own.logprob), top))
    return tuple(found) or None


class Client(ChatClient):
    """Answers in batches.

    Args:
        entry: the model; ``id`` is a folder or a hub id.
        dtype: number format; ``None`` for the checkpoint's own.
        engine: makes what generates; vLLM itself unless another one is given.

    Raises:
        InputError: a parameter of the entry cannot be used.
        MissingPart: the package vllm is not installed.
    """

    def __init__(
        self, entry: ModelEntry, *, dtype: str | None = None, engine: Callable[[], Engine] | None = None
    ) -> None:
        super().__init__(entry)
        self._parameters = VllmParameters.of(entry)
        if engine is None:
            require("vllm")
        self._make = engine or (lambda: VllmEngine(entry, self._parameters, dtype))
        self._engine: Engine | None = None
        self._identity: Identity | None = None
        self._batcher = Batcher(self._answer, lambda _: None, self._parameters.batch)

    @classmethod
    def open(cls, entry: ModelEntry, *, device: str = "auto", dtype: str | None = None) -> ChatClient:
        """A backend for ``entry``; the device is the one that the installed vLLM is built for."""
        return cls(entry, dtype=dtype)

    @property
    def capabilities(self) -> Capabilities:
        """What this backend does with a request."""
        thinking = {"thinking"} if self.entry.thinking.template_key else set()
        return Capabilities(_HONOURS | thinking, video_form=True, most_pictures=self._parameters.pictures)

    async def identity(self) -> Identity:
        """Load the model, and say what it is."""
        if self._identity is None:
            facts = dict(await self._batcher.run(lambda: self._loaded().facts()))
            name = Path(self.entry.id).name if Path(self.entry.id).expanduser().is_dir() else self.entry.id
            self._identity = Identity(name, self.entry.revision, "vllm", facts.pop("version"), facts)
        return self._identity

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once."""
        check_parts(request, self.capabilities, "vLLM in process")
        _, ignored = self.capabilities.split(request.options)
        reply = await self._batcher.reply(request)
        unheeded = sorted({*disobeyed(request.options, reply), *ignored})
        return replace(reply, model=(await self.identity()).model, ignored=tuple(unheeded))

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._make()
        return self._engine

    def _answer(self, requests: Sequence[ChatRequest]) -> list[Answered]:
        return apart(self._answered, requests)

    def _answered(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        engine = self._loaded()
        talks = [conversation_of(one, video_form=True) for one in requests]
        settings = [settings_of(one.options) for one in requests]
        prompts = [
            prompt_of(talk, engine.render(_marks(talk.turns), self._switches(one.options)))
            for talk, one in zip(talks, requests, strict=True)
        ]
        outputs = engine.generate(prompts, settings)
        return [reply_of(*row) for row in zip(outputs, talks, settings, strict=True)]

    def _switches(self, options: Options) -> dict[str, Any]:
        key = self.entry.thinking.template_key
        return {} if key is None or options.thinking is None else {key: options.thinking}

    async def aclose(self) -> None:
        """Give the engine's memory back."""
        self._batcher.close()
        self._engine = self._identity = None


def _marks(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``turns`` with the places of pictures and clips in the place of their pixels, for a template."""
    return [
        {
            "role": turn["role"],
            "content": turn["content"]
            if isinstance(turn["content"], str)
            else [part if part["type"] == "text" else {"type": part["type"]} for part in turn["content"]],
        }
        for turn in turns
    ]


class VllmEngine:
    """vLLM itself.

    Args:
        entry: the model.
        parameters: of the entry.
        dtype: number format; ``None`` for the checkpoint's own.

    Raises:
        MissingPart: the package, the folder or its tensors are absent.
    """

    def __init__(self, entry: ModelEntry, parameters: VllmParameters, dtype: str | None) -> None:
        self._vllm: Any = require("vllm")
        self._folder = folder_of(Wanted(entry.id, entry.revision))
        self._llm = self._vllm.LLM(
            model=str(self._folder),
            dtype=dtype or "auto",
            load_format="safetensors",
            trust_remote_code=False,
            max_model_len=entry.context,
            tensor_parallel_size=parameters.tensor_parallel,
            gpu_memory_utilization=parameters.memory,
            enforce_eager=parameters.eager,
            enable_prefix_caching=True,
            limit_mm_per_prompt={"image": parameters.pictures, "video": 1},
            seed=0,
        )
        self._template: Any = require("transformers").AutoProcessor.from_pretrained(
            self._folder, local_files_only=True, trust_remote_code=False
        )

    def render(self, turns: list[dict[str, Any]], switches: Mapping[str, Any]) -> str:
        """The prompt for ``turns`` by the model's chat template."""
        text = self._template.apply_chat_template(turns, add_generation_prompt=True, tokenize=False, **switches)
        return str(text)

    def generate(self, prompts: Sequence[Mapping[str, Any]], settings: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        """Outputs, one a prompt, in order."""
        outputs: Sequence[Any] = self._llm.generate(list(prompts), list(map(self._sampling, settings)), use_tqdm=False)
        return outputs

    def _sampling(self, settings: Mapping[str, Any]) -> Any:
        chosen = self._llm.get_default_sampling_params()
        for name, value in settings.items():
            if name == "structured_outputs":
                value = self._vllm.sampling_params.StructuredOutputsParams(**value)
            setattr(chosen, name, value)
        return chosen

    def facts(self) -> dict[str, Any]:
        """Version, number format, digest of the files."""
        config = self._llm.llm_engine.model_config
        return {
            "version": self._vllm.__version__,
            "weights": folder_digest(self._folder),
            "dtype": str(config.dtype).removeprefix("torch."),
            "torch": require("torch").__version__,
            "context": config.max_model_len,
        }
