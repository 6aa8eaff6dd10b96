"""Stand-ins for networks that are folders: the code of the real ones from small configurations, with stand-in numbers.

The detector finds something in most pictures, by some of a caption's words, and the masks follow what moves; neither
means anything.
"""

from __future__ import annotations

import contextlib
import io
import string
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

Draw = Callable[[str, tuple[int, ...]], NDArray[np.float32]]

SCALE: Mapping[str, Mapping[str, float]] = {
    "grounding_dino": {"*word_embeddings*": 10, "*text_projection*": -1, "model.decoder.layer_norm.weight": 0.4},
    "sam2_video": {
        "*positional_embedding": 4, "mask_decoder.transformer*o_proj.weight": 4,
        "mask_decoder.transformer*q_proj.weight": 3,
    },
}  # fmt: skip
"""Kind -> pattern of names -> factor: so that words matter and some are too weak to be named, and places matter."""

SHIFT: Mapping[str, Mapping[str, float]] = {
    "grounding_dino": {},
    "sam2_video": {"mask_decoder.pred_obj_score_head.proj_out.bias": 3.0},
}
"""The same for what is added: objects are mostly there."""

COMPANIONS: Mapping[str, list[str]] = {
    "grounding_dino": ["config.json", "tokenizer.json"],
    "sam2_video": ["config.json"],
}
"""Kind -> files that are read beside the tensors."""

_WORDS = "a the of on in and with to is robot arm car street table box ball person tree road sky red blue green white"
_VOCABULARY = 1030


def write_folder(home: Path, kind: str, draw: Draw) -> None:
    """Write the small network of ``kind`` into the folder ``home``, as transformers saves it.

    Args:
        home: made where it is not there.
        kind: ``grounding_dino`` or ``sam2_video``.
        draw: name and shape of a tensor -> its numbers.
    """
    import torch

    module = {"grounding_dino": _grounding_dino, "sam2_video": _sam2_video}[kind]()
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(_number(draw, kind, name, tuple(tensor.shape))))
    home.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):  # a bar for each file
        module.save_pretrained(home)  # type: ignore[operator]
    if kind == "grounding_dino":
        _write_tokenizer(home / "tokenizer.json")


def _number(draw: Draw, kind: str, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    factors = [factor for pattern, factor in SCALE[kind].items() if fnmatch(name, pattern)]
    shifts = [shift for pattern, shift in SHIFT[kind].items() if fnmatch(name, pattern)]
    return np.asarray(draw(name, shape) * np.prod(factors) + np.sum(shifts), np.float32)


def _grounding_dino() -> nn.Module:
    from transformers import BertConfig, GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    swin: Any = SwinConfig  # its field for the stages has another name as an argument
    pictures = swin(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = BertConfig(
        vocab_size=_VOCABULARY, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=256,
    )  # fmt: skip
    module: nn.Module = GroundingDinoForObjectDetection(
        GroundingDinoConfig(
            backbone_config=pictures, text_config=text, num_queries=4, d_model=32,
            encoder_layers=1, encoder_ffn_dim=32, encoder_attention_heads=2, encoder_n_points=2,
            decoder_layers=2, decoder_ffn_dim=32, decoder_attention_heads=2, decoder_n_points=2,
        )
    )  # fmt: skip
    return module


def _sam2_video() -> nn.Module:
    from transformers import Sam2VideoConfig, Sam2VideoModel
    from transformers.models.sam2.configuration_sam2 import Sam2HieraDetConfig, Sam2VisionConfig

    trunk = Sam2HieraDetConfig(
        hidden_size=8, num_attention_heads=1, image_size=[128, 128], blocks_per_stage=[1, 2, 2, 2],
        embed_dim_per_stage=[8, 16, 32, 64], num_attention_heads_per_stage=[1, 1, 2, 2],
        window_size_per_stage=[4, 2, 4, 2], global_attention_blocks=[4],
        window_positional_embedding_background_size=[4, 4],
    )  # fmt: skip
    pictures = Sam2VisionConfig(
        backbone_config=trunk, backbone_channel_list=[64, 32, 16, 8], fpn_hidden_size=128,
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    )  # fmt: skip
    module: nn.Module = Sam2VideoModel(
        Sam2VideoConfig(
            vision_config=pictures, image_size=128,
            prompt_encoder_config={"hidden_size": 128, "image_size": 128},
            mask_decoder_config={
                "hidden_size": 128, "mlp_dim": 64, "iou_head_hidden_dim": 64, "num_attention_heads": 4,
            },
            memory_attention_hidden_size=128, memory_attention_num_layers=1,
            memory_attention_feed_forward_hidden_size=64, memory_attention_rope_feat_sizes=[8, 8],
            memory_encoder_hidden_size=128, mask_downsampler_embed_dim=128, memory_fuser_embed_dim=128,
            memory_fuser_intermediate_dim=64, memory_fuser_num_layers=1,
        )
    )  # fmt: skip
    return module


def _write_tokenizer(path: Path) -> None:
    """A tokenizer that cuts as BERT's does: a few words, single letters for all others."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation.replace(".", "").replace("?", "")]
    known = [*_WORDS.split(), *letters, *(f"##{letter}" for letter in string.ascii_lowercase + string.digits)]
    names = {number: f"[unused{number}]" for number in range(_VOCABULARY)}
    names |= {103 + place: word for place, word in enumerate(dict.fromkeys(known))}
    names |= {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 1012: ".", 1029: "?"}  # BERT's numbers
    tokenizer = Tokenizer(models.WordPiece({name: number for number, name in names.items()}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = [("[CLS]", 101), ("[SEP]", 102)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.save(str(path))
