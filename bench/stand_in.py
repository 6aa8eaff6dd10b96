"""Stand-in weights: numbers drawn from names and shapes, so that two implementations of a network agree on them.

What networks make of them means nothing, but order and speed are those of the real ones. They are written as a weights
folder with a catalogue of its own, so that everything goes the way that users take.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from bench.stand_in_folders import COMPANIONS, write_folder
from gen_eval import weights
from gen_eval.networks.folders import TENSORS

if TYPE_CHECKING:
    from torch import nn

SCALE: Mapping[str, Mapping[str, float]] = {
    "amt": {"decoder1.convblock.2.*": 0.1, "comb_block.2.*": 0.1},  # keeps the pictures within 0..1
    "dino": {"pos_embed": 100},  # makes positions matter
    "viclip": {"vision_encoder.temporal_positional_embedding": 30},
    "musiq": {"*position_emb": 100},
    "dreamsim": {"*.pos_embed": 100},
    "raft": {"update_block.flow_head.conv2.*": 0.05},
}
"""Kind of network -> pattern of names -> factor."""

SMALL: Mapping[str, Mapping[str, Any]] = {
    "dino_vitb16": {"kind": "dino", "width": 96, "depth": 3, "heads": 4, "patch": 16},
    "clip_vitb32_visual": {"kind": "clip", "patch": 32, "width": 128, "layers": 3, "heads": 2, "output": 64},
    "clip_vitl14_visual": {"kind": "clip", "patch": 14, "width": 96, "layers": 3, "heads": 3, "output": 768},
    "musiq_spaq": {"kind": "musiq", "hidden": 96, "mlp": 128, "heads": 3, "layers": 3},
    "viclip": {
        "kind": "viclip", "vision_width": 96, "vision_layers": 3, "vision_heads": 4, "vision_patch": 14,
        "text_width": 64, "text_layers": 2, "text_heads": 4, "output": 48, "frames": 8, "context": 32,
    },
    "vda_small": {
        "kind": "video_depth", "width": 64, "depth": 4, "heads": 4, "patch": 14, "grid": 5, "taps": [1, 2, 3, 4],
        "levels": [16, 32, 64, 128], "fused": 64, "temporal_heads": 4, "window": 32,
    },
    "dover": {
        "kind": "dover", "width": 16, "depths": [2, 1, 2, 1], "heads": [2, 2, 4, 4], "window": [4, 7, 7],
        "patch": [4, 16, 16], "hidden": 16,
    },
    "dreamsim_ensemble": {"kind": "dreamsim", "width": 96, "depth": 12, "heads": 4, "output": 48},
    "lpips_vgg": {"kind": "lpips", "backbone": "vgg", "narrow": 16},
}  # fmt: skip
"""Checkpoint -> the same code with other constructor values; checkpoints that are not named stay as published."""

COMPUTED: Mapping[str, tuple[str, ...]] = {"lpips": ("lins.*", "scaling_layer.*")}
"""Kind of network -> patterns of names that no file holds: the network fills them itself."""

POSITIVE: Mapping[str, tuple[str, ...]] = {"lpips": ("lin?.*",)}
"""Kind of network -> patterns of names whose numbers have no sign."""


def seeded_array(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A tensor's stand-in value, float32."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    if len(shape) >= 2 and not name.endswith(("running_var", "running_mean")):
        return _near_unit_scale(generator, shape)
    draw = generator.standard_normal(shape)
    if name.endswith("running_var"):
        return np.asarray(1 + 0.1 * np.abs(draw), np.float32)
    if name.endswith("running_mean"):
        return np.asarray(0.1 * draw, np.float32)
    if name.endswith("weight"):  # of a normalisation layer
        return np.asarray(1 + 0.1 * draw, np.float32)
    return np.asarray(0.02 * draw, dtype=np.float32)


def _near_unit_scale(generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Numbers that keep activations near unit scale; drawn piece by piece, for memory costs more than drawing."""
    found = np.empty(int(np.prod(shape)), np.float32)
    fan_in = int(np.prod(shape[1:]))
    draw = np.empty(min(len(found), 1 << 15))
    for start in range(0, len(found), len(draw) or 1):
        piece = found[start : start + len(draw)]
        generator.standard_normal(out=draw[: len(piece)])
        piece[:] = draw[: len(piece)] / np.sqrt(fan_in)
    return found.reshape(shape)


def numbers(module: nn.Module, kind: str) -> dict[str, NDArray[Any]]:
    """Stand-in values for every tensor of ``module``'s file; the module may lie on the meta device."""
    return {
        name: _number(name, tuple(tensor.shape), kind, whole=not tensor.is_floating_point())
        for name, tensor in module.state_dict().items()
        if not _fits(name, COMPUTED.get(kind, ()))
    }


def _number(name: str, shape: tuple[int, ...], kind: str, *, whole: bool) -> NDArray[Any]:
    if whole:
        return np.zeros(shape, np.int64)
    factors = [factor for pattern, factor in SCALE.get(kind, {}).items() if fnmatch(name, pattern)]
    drawn = np.asarray(seeded_array(name, shape) * np.prod(factors), np.float32)
    return np.abs(drawn) if _fits(name, POSITIVE.get(kind, ())) else drawn


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def write(folder: Path, checkpoints: list[str], *, small: bool) -> dict[str, str]:
    """Write stand-ins for ``checkpoints``, and the catalogue that names them.

    Networks that are folders are always small.

    Returns:
        The environment variables with which gen-eval finds them.
    """
    from safetensors.numpy import save_file

    from gen_eval.networks.loading import build

    catalogue: dict[str, Any] = {}
    for name in checkpoints:
        published = weights.checkpoint(name)
        network = dict(SMALL.get(name, {}) if small else {}) or dict(published.network or {})
        home = folder / "weights" / name
        home.mkdir(parents=True, exist_ok=True)
        source: dict[str, Any] = {"file": "stand-in.safetensors", "container": "safetensors"}
        if (kind := str(network["kind"])) in COMPANIONS:
            write_folder(home, kind, seeded_array)
            source |= {"file": TENSORS, "companions": COMPANIONS[kind]}
        else:
            save_file(numbers(build(network, name=name), kind), home / "stand-in.safetensors")
        catalogue[name] = {
            **published.model_dump(exclude={"name", "note"}),
            "title": f"{published.title}, stand-in numbers",
            "sources": [source],
            "manifest": None,
            "network": network,
        }
    configs = folder / "configs" / "weights"
    configs.mkdir(parents=True, exist_ok=True)
    (configs / "stand-in.yaml").write_text(yaml.safe_dump(catalogue), encoding="utf-8")
    return {"GEN_EVAL_CONFIGS": str(folder / "configs"), "GEN_EVAL_WEIGHTS": str(folder / "weights")}
