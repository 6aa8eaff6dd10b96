"""Folders of vision-language models: where they lie, what is in them, and the model itself by the package transformers.

Nothing of a folder is run: classes are the package's own, tensors come from safetensors alone, and every tensor that
the model needs must be there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gen_eval.networks.folders import quiet_loading
from gen_eval.networks.memory import memory_errors
from gen_eval.records import InputError, MissingPart, digest_of
from gen_eval.registry import require
from gen_eval.weights.digests import file_digest

_PARTS = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model")
"""Files that move replies."""
_HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


@dataclass(frozen=True)
class Wanted:
    """Which model, where, and how exactly.

    Attributes:
        id: path of a folder, or hub id.
        revision: of the hub.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: number format; ``None`` for the checkpoint's own.
        attention: kernel of attention.
        spread: over all devices, through the package accelerate.
    """

    id: str
    revision: str | None = None
    device: str = "cpu"
    dtype: str | None = None
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    spread: bool = False


def folder_of(wanted: Wanted) -> Path:
    """The folder of the model: the one that is named, or that of the hub's cache, fetched where it is not there yet.

    Raises:
        MissingPart: there is no such folder, it has no tensors, or the hub cannot give it.
    """
    folder = Path(wanted.id).expanduser()
    if not folder.is_dir():
        folder = _fetched(wanted)
    if not any(folder.glob("*.safetensors")):
        raise MissingPart(
            f"the folder of the model {wanted.id} has no tensors in the format safetensors; fetch it again"
        )
    return folder


def _fetched(wanted: Wanted) -> Path:
    if not _HUB_ID.fullmatch(wanted.id):
        raise MissingPart(f"the model {wanted.id} is no folder of this machine, and no hub id such as owner/name")
    hub: Any = require("huggingface_hub")
    try:
        return Path(hub.snapshot_download(wanted.id, revision=wanted.revision, allow_patterns=list(_PARTS)))
    except Exception as error:  # of the network, of the hub, or of a cache that cannot be written
        raise MissingPart(
            f"the model {wanted.id} is no folder of this machine and cannot be fetched from the hub "
            f"({type(error).__name__}); fetch it on a machine that can, and name its folder in the model entry"
        ) from error


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and the contents of all files that move replies.

    Digests of files are remembered by size and time, so a large checkpoint is read once.
    """
    files = sorted({path for pattern in _PARTS for path in folder.glob(pattern)})
    return digest_of({path.name: file_digest(path) for path in files})


def open_checkpoint(folder: Path, wanted: Wanted) -> tuple[Any, Any]:
    """Model (in eval mode, on its device) and processor.

    Raises:
        MissingPart: a package or tensors are absent.
        InputError: the folder holds something that cannot be opened as such a model.
        MemoryError: there is no room for it.
    """
    torch, transformers = require("torch"), require("transformers")
    shared: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    place: dict[str, Any] = {"device_map": "auto"} if wanted.spread else {}
    try:
        with quiet_loading(), memory_errors():
            processor = transformers.AutoProcessor.from_pretrained(folder, **shared)
            model, told = transformers.AutoModelForImageTextToText.from_pretrained(
                folder,
                use_safetensors=True,
                dtype=getattr(torch, wanted.dtype) if wanted.dtype else "auto",
                attn_implementation=wanted.attention,
                output_loading_info=True,
                **place,
                **shared,
            )
            model = model.eval() if wanted.spread else model.to(wanted.device).eval()
    except (MemoryError, MissingPart):
        raise
    except Exception as error:  # the package raises what it likes of a folder that is not what it expects
        first = (str(error).splitlines() or [""])[0].replace(str(folder), "the folder")
        raise InputError(f"the model {wanted.id} cannot be opened ({type(error).__name__}: {first})") from error
    absent = sorted(map(str, [*told["missing_keys"], *told["mismatched_keys"]]))
    if absent:
        raise MissingPart(f"the model {wanted.id} lacks {len(absent)} tensors, such as {absent[0]}; fetch it again")
    return model, processor
