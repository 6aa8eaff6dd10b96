"""The published archive of the DreamSim ensemble: towers and adapter, read and merged into one list of tensors.

The archive holds two CLIP towers in the naming of DINO's vision transformer, each with its projection ``proj``, and a
low-rank adapter (LoRA) for the query-key-value weights of all three towers. The DINO tower is DINO's own published
file (checkpoint ``dino_vitb16``); the archive's file of that name is a training checkpoint whose head the ensemble does
not use, and is not opened. Source: the loader of the package dreamsim 0.2.

Merged: ``W + (lora_alpha / r) * B @ A`` for every ``attn.qkv.weight`` (Hu et al. 2022, section 4.1), in float32.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen_eval.weights.archives import ArchiveError, CheckedZip
from gen_eval.weights.containers import ContainerError, as_tensors, chosen, opened, plain_names, read_pickled

if TYPE_CHECKING:
    from torch import Tensor

# place in the ensemble -> its file; place 0 is DINO
TOWERS = {1: "clip_vitb16_pretrain.pth.tar", 2: "open_clip_vitb16_pretrain.pth.tar"}
ADAPTER_CONFIG = "ensemble_lora/adapter_config.json"
ADAPTER_WEIGHTS = ("ensemble_lora/adapter_model.safetensors", "ensemble_lora/adapter_model.bin")

# wrappers that peft and the archive's authors put around a tower may stand before and inside the name
_ADAPTER_NAME = re.compile(
    r"(?:base_model\.model\.)*extractor_list\.(?P<tower>\d+)\.model\.(?:base_model\.model\.)*"
    r"(?P<module>[\w.]+\.attn\.qkv)\.lora_(?P<side>[AB])(?:\.default)?\.weight"
)
_ADAPTED = ".attn.qkv.weight"
# settings of an adapter that would make it another formula; none is used by the published one
_UNSUPPORTED = ("use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "modules_to_save")


def read_archive(path: Path, dino: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the ensemble with the adapter merged.

    Args:
        path: the archive.
        dino: tensors of the DINO tower under their published names.

    Returns:
        ``extractor_list.{0,1,2}.model.<name>`` and ``extractor_list.{1,2}.proj``, float32.

    Raises:
        ContainerError: a part is absent, damaged, or does not fit the others.
    """
    with opened(path) as archive:
        try:
            towers = {0: dict(dino), **{place: _tower(archive, file) for place, file in TOWERS.items()}}
            adapter = _adapter(archive)
            scale, rank = _scale(archive)
        except ArchiveError as error:
            raise ContainerError(str(error)) from None
    merged = _flat(towers)
    _merge(merged, adapter, scale, rank)
    return merged


def _member(archive: CheckedZip, *names: str) -> bytes:
    found = archive.find(*names)
    if found is None:
        raise ContainerError(f"the archive holds no {' or '.join(names)}")
    return archive.read(found)


def _tower(archive: CheckedZip, file: str) -> dict[str, Tensor]:
    content = read_pickled(io.BytesIO(_member(archive, file)))
    try:
        tensors = plain_names(as_tensors(chosen(content, "state_dict", needed=True)))
    except ContainerError as error:
        raise ContainerError(f"the archive's {file} {error}") from None
    if "proj" not in tensors:
        raise ContainerError(f"the archive's {file} has no entry proj")
    return tensors


def _adapter(archive: CheckedZip) -> dict[tuple[int, str], dict[str, Tensor]]:
    """(tower, module) -> side A or B -> tensor."""
    name = archive.find(*ADAPTER_WEIGHTS)
    if name is None:
        raise ContainerError(f"the archive holds no {' or '.join(ADAPTER_WEIGHTS)}")
    content = archive.read(name)
    tensors = _parsed(content) if name.endswith(".safetensors") else as_tensors(read_pickled(io.BytesIO(content)))
    pairs: dict[tuple[int, str], dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        match = _ADAPTER_NAME.fullmatch(key)
        if match is None:
            raise ContainerError(f"the archive's adapter has the entry {key!r}, which is none of an attn.qkv weight")
        pairs.setdefault((int(match["tower"]), match["module"]), {})[match["side"]] = tensor
    return pairs


def _parsed(content: bytes) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ContainerError(f"the archive's adapter is no whole safetensors file ({error})") from None


def _scale(archive: CheckedZip) -> tuple[float, int]:
    """``lora_alpha / r`` and ``r``."""
    try:
        config: Any = json.loads(_member(archive, ADAPTER_CONFIG))
        rank, alpha = config["r"], config["lora_alpha"]
    except (ValueError, KeyError, TypeError) as error:
        raise ContainerError(f"the archive's {ADAPTER_CONFIG} does not state r and lora_alpha ({error})") from None
    if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1 or not isinstance(alpha, int | float):
        raise ContainerError(f"the archive's adapter has r {rank!r} and lora_alpha {alpha!r}; numbers are needed")
    if used := [name for name in _UNSUPPORTED if config.get(name)]:
        raise ContainerError(f"the archive's adapter uses {', '.join(used)}, which is another formula than LoRA's")
    return alpha / rank, rank


def _flat(towers: Mapping[int, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    flat: dict[str, Tensor] = {}
    for place, tensors in towers.items():
        for name, tensor in tensors.items():
            where = "" if name == "proj" and place > 0 else "model."
            flat[f"extractor_list.{place}.{where}{name}"] = tensor
    return flat


def _merge(
    merged: dict[str, Tensor], adapter: Mapping[tuple[int, str], Mapping[str, Tensor]], scale: float, rank: int
) -> None:
    """Add the adapter to the weights that it is for, in place of the mapping."""
    places = {f"extractor_list.{tower}.model.{module}.weight": sides for (tower, module), sides in adapter.items()}
    adapted = {name for name in merged if name.endswith(_ADAPTED)}
    if differ := sorted(adapted ^ set(places)):
        raise ContainerError(f"the adapter and the towers do not fit: {', '.join(differ[:3])} is in one of them only")
    for name, sides in places.items():
        weight = merged[name].float()
        try:
            down, up = sides["A"].float(), sides["B"].float()
        except KeyError as side:
            raise ContainerError(f"the adapter of {name} has no side {side}") from None
        if tuple(down.shape) != (rank, weight.shape[1]) or tuple(up.shape) != (weight.shape[0], rank):
            raise ContainerError(
                f"the adapter of {name} has the shapes {list(down.shape)}, {list(up.shape)}; with r {rank} and "
                f"a weight of {list(weight.shape)} it must be {[rank, weight.shape[1]]}, {[weight.shape[0], rank]}"
            )
        merged[name] = weight + scale * (up @ down)
