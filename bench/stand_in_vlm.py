"""Small vision-language models with stand-in numbers, as transformers saves them.

Everything that a real checkpoint has is there (tensors, tokenizer, chat template, processors, generation settings), so
requests, frames and batches go the way of the real ones. Answers mean nothing, but they depend on text and pixels.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAMILIES = ("qwen3_vl", "qwen2_5_vl", "internvl")
"""One with time stamps in its prompt and pairs of frames, one with pairs and patches of 14 pixels, one with tiles."""

_PAD, _START, _END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_WIDTH, _LAYERS, _CONTEXT = 64, 2, 32_768
_TILE = 56  # pixels; 4 tokens each

_QWEN_TOKENS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_start_token": "<|vision_start|>",
    "vision_end_token": "<|vision_end|>",
}
_INTERNVL_TOKENS = {
    "context_image_token": "<IMG_CONTEXT>",
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "video_token": "<video>",
}

# `enable_thinking` false closes the reasoning before it begins, as in the families that have this switch.
_TEMPLATE = """\
{%- for turn in messages -%}
{{- '<|im_start|>' + turn.role + '\\n' -}}
{%- if turn.content is string -%}{{- turn.content -}}{%- else -%}
{%- for part in turn.content -%}
{%- if part.type == 'image' -%}{{- 'IMAGE' -}}
{%- elif part.type == 'video' -%}{{- 'VIDEO' -}}
{%- else -%}{{- part.text -}}{%- endif -%}
{%- endfor -%}{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}"""


@dataclass(frozen=True)
class StandIn:
    """What a small model is to be.

    Attributes:
        family: one of :data:`FAMILIES`.
        answers: every reply is one of these words; without any, replies are arbitrary ASCII.
        seed: of its numbers.
        head: size of an attention head; vLLM on a CPU needs 64.
        context: tokens that its configuration allows.
    """

    family: str = "qwen3_vl"
    answers: tuple[str, ...] = ()
    seed: int = 0
    head: int = 16
    context: int = _CONTEXT


def write_vlm(folder: Path, wanted: StandIn = StandIn()) -> Path:
    """Write the model into ``folder``, which is made, and return it.

    Raises:
        ValueError: the family is not known.
    """
    import torch

    if wanted.family not in FAMILIES:
        raise ValueError(f"the family must be one of {', '.join(FAMILIES)}, not {wanted.family!r}")
    tokenizer = _tokenizer(wanted)
    config, processor = _internvl(wanted, tokenizer) if wanted.family == "internvl" else _qwen(wanted, tokenizer)
    hf = _transformers()
    model = hf.AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
    _fill(model, wanted.seed)
    end = tokenizer.convert_tokens_to_ids(_END)
    kept = _kept(tokenizer, wanted.answers)
    model.generation_config = hf.GenerationConfig(
        eos_token_id=[end, *kept] if wanted.answers else end,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
        suppress_tokens=sorted(set(range(len(tokenizer))) - {end, *kept}),
        begin_suppress_tokens=[end],
    )
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):  # a bar for each file
        model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _transformers() -> Any:
    """The package; its classes take options that its types do not tell."""
    import transformers

    return transformers


def _tokenizer(wanted: StandIn) -> Any:
    """One token a byte, the family's marks, and one token for each answer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    marks = _INTERNVL_TOKENS if wanted.family == "internvl" else _QWEN_TOKENS
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core: Any = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([_PAD, _START, _END, *marks.values()])
    core.add_tokens([AddedToken(answer, normalized=False) for answer in wanted.answers])
    return _transformers().PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=_PAD,
        eos_token=_END,
        extra_special_tokens=marks,
        model_max_length=wanted.context,
        padding_side="left",
    )


def _kept(tokenizer: Any, answers: Sequence[str]) -> list[int]:
    """Tokens that a reply may consist of."""
    if answers:
        return sorted(tokenizer.convert_tokens_to_ids(list(answers)))
    texts = {number: tokenizer.decode([number]) for number in range(256)}
    return [number for number, text in texts.items() if text.isascii() and text.isprintable()]


def _language(wanted: StandIn, tokenizer: Any) -> dict[str, Any]:
    heads = _WIDTH // wanted.head
    return {
        "vocab_size": len(tokenizer), "hidden_size": _WIDTH, "intermediate_size": 2 * _WIDTH,
        "num_hidden_layers": _LAYERS, "num_attention_heads": heads, "num_key_value_heads": max(1, heads // 2),
        "max_position_embeddings": wanted.context, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None,
        "eos_token_id": None, "tie_word_embeddings": False,
    }  # fmt: skip


def _template(picture: str, clip: str) -> str:
    return _TEMPLATE.replace("IMAGE", picture).replace("VIDEO", clip)


def _qwen(wanted: StandIn, tokenizer: Any) -> tuple[Any, Any]:
    """Configuration and processor of the families whose frames share tokens in pairs."""
    hf = _transformers()

    newer = wanted.family == "qwen3_vl"
    patch = 16 if newer else 14
    positions = [wanted.head // 4, wanted.head // 8, wanted.head // 8]  # time, height, width: half a head in all
    language = _language(wanted, tokenizer) | {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": positions}
    }
    vision: dict[str, Any] = {
        "depth": _LAYERS, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": patch,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": _WIDTH,
    }  # fmt: skip
    if newer:
        language |= {"head_dim": wanted.head}
        language["rope_parameters"]["mrope_interleaved"] = True
        vision |= {"num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
    else:
        vision |= {"window_size": 56, "fullatt_block_indexes": [1], "tokens_per_second": 2}
    marks: Mapping[str, int] = {
        f"{name}_id": tokenizer.convert_tokens_to_ids(token) for name, token in _QWEN_TOKENS.items()
    }
    config = hf.AutoConfig.for_model(
        wanted.family, text_config=language, vision_config=vision, tie_word_embeddings=False, **marks
    )
    square = (2 * patch) ** 2
    shape = {"patch_size": patch, "merge_size": 2, "temporal_patch_size": 2}
    clips = hf.Qwen3VLVideoProcessor if newer else hf.Qwen2VLVideoProcessor
    both = hf.Qwen3VLProcessor if newer else hf.Qwen2_5_VLProcessor
    start, end = _QWEN_TOKENS["vision_start_token"], _QWEN_TOKENS["vision_end_token"]
    processor = both(  # areas in pixels: of a picture, and of a whole clip
        image_processor=hf.Qwen2VLImageProcessor(size={"shortest_edge": square, "longest_edge": 64 * square}, **shape),
        video_processor=clips(size={"shortest_edge": square, "longest_edge": 512 * square}, **shape),
        tokenizer=tokenizer,
        chat_template=_template(start + "<|image_pad|>" + end, start + "<|video_pad|>" + end),
    )
    return config, processor


def _internvl(wanted: StandIn, tokenizer: Any) -> tuple[Any, Any]:
    """Configuration and processor of the family that sees square tiles."""
    hf = _transformers()

    vision = {
        "hidden_size": 32, "num_hidden_layers": _LAYERS, "num_attention_heads": 2, "intermediate_size": 64,
        "image_size": [_TILE, _TILE], "patch_size": [14, 14],
    }  # fmt: skip
    config = hf.AutoConfig.for_model(
        "internvl",
        text_config=_language(wanted, tokenizer) | {"model_type": "qwen2"},
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
        downsample_ratio=0.5,
        tie_word_embeddings=False,
    )
    size = {"height": _TILE, "width": _TILE}
    processor = hf.InternVLProcessor(
        image_processor=hf.GotOcr2ImageProcessor(size=size, crop_to_patches=False),
        video_processor=hf.InternVLVideoProcessor(size=size),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=_template("<IMG_CONTEXT>\n", "<video>\n"),
    )
    return config, processor


def _fill(model: Any, seed: int) -> None:
    """Seeded numbers, with attention sharp enough that the last token sees pixels and not itself alone."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            if tensor.dim() > 1:
                sharp = any(part in name for part in ("q_proj", "k_proj"))
                gain = 0.1 if "embed_tokens" in name else 3.0 if sharp else 1.5
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * (gain / tensor[0].numel() ** 0.5))
            elif name.endswith("bias"):
                tensor.zero_()
            else:  # the newer family normalises queries and keys, so that their gain stands here
                tensor.fill_(2.5 if any(part in name for part in ("q_norm", "k_norm")) else 1.0)
