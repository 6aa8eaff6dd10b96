"""Opening the containers that checkpoints are published in, without ever running what a file says.

Pickled files are read with ``weights_only`` (tensors and plain containers; anything else is refused), TorchScript
archives only after their published digest was found right. Files of the zip format are mapped into memory, so that a
network is copied once.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gen_eval.weights.archives import ArchiveError, CheckedZip
from gen_eval.weights.catalogue import Source

if TYPE_CHECKING:
    from torch import Tensor

# what the converter accepts besides tensors: training options that people leave in their files, and nothing that acts
CONVERTIBLE = (
    "collections.OrderedDict",
    "argparse.Namespace",
    "numpy.dtype",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "_codecs.encode",
)
_SHOWN = 5

Value = TypeVar("Value")


class ContainerError(Exception):
    """A container that cannot be read.

    Attributes:
        convertible: whether the converter can help.
    """

    def __init__(self, message: str, convertible: bool = False) -> None:
        super().__init__(message)
        self.convertible = convertible


def read_tensors(path: Path, source: Source) -> dict[str, Tensor]:
    """The tensors of ``path`` under the names that the file gives them; ``source`` says how they are packed.

    Taken out: the key, the member, the prefix ``module.``, networks that are not asked for. Not for the container
    ``dreamsim_archive``.

    Raises:
        ContainerError: the file is damaged, of another container, or holds objects that are not accepted.
    """
    if source.container == "safetensors":
        return kept(plain_names(read_safetensors(path)), source.keep)
    if source.container == "torchscript" and is_torchscript(path):
        if source.sha256 is None:
            raise ContainerError("is a TorchScript archive without a published digest", convertible=True)
        return kept(_read_torchscript(path), source.keep)
    if source.container == "zip":
        with opened(path) as archive:
            content: Any = read_pickled(io.BytesIO(archive.read(str(source.member))))
    else:
        content = read_pickled(path)
    return kept(plain_names(as_tensors(chosen(content, source.key, needed=source.container == "nested"))), source.keep)


def opened(path: Path) -> CheckedZip:
    """The archive at ``path``, checked.

    Raises:
        ContainerError: it is not accepted.
    """
    try:
        return CheckedZip(path)
    except ArchiveError as error:
        raise ContainerError(str(error)) from None


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file.

    Raises:
        ContainerError: it is damaged or of another format.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ContainerError(f"is no whole safetensors file ({_first_line(error)})") from None


def safetensors_shapes(path: Path, keep: list[str]) -> dict[str, tuple[int, ...]]:
    """Names (as :func:`read_tensors` gives them) and shapes of a safetensors file; its tensors are not read, no torch.

    Raises:
        ContainerError: it is damaged or of another format.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ContainerError(f"is no whole safetensors file ({_first_line(error)})") from None
    return kept(plain_names(shapes), keep)


def read_pickled(file: Path | io.BytesIO) -> Any:
    """What ``torch.save`` wrote, new or old format; tensors, numbers, text and plain containers only.

    Raises:
        ContainerError: it is damaged or holds something else; the message names what.
    """
    import torch

    if is_torchscript(file):
        raise ContainerError("is a TorchScript archive, not a saved dictionary", convertible=True)
    mapped = isinstance(file, Path) and zipfile.is_zipfile(file)  # the old format cannot be mapped
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of storage classes that are history; nothing a user can act on
            name: Any = str(file) if isinstance(file, Path) else file
            return torch.load(name, map_location="cpu", weights_only=True, mmap=mapped)
    except MemoryError:
        raise
    except Exception as error:
        raise _explained(error) from None


def _explained(error: Exception) -> ContainerError:
    found = sorted(set(re.findall(r"GLOBAL ([\w.]+)", str(error))))
    if found:
        convertible = all(name in CONVERTIBLE or name.startswith("numpy.dtypes.") for name in found)
        verdict = (
            "which the converter can leave out" if convertible else "which is never loaded: do not trust this file"
        )
        return ContainerError(f"holds more than tensors ({', '.join(found)}), {verdict}", convertible)
    if "weights_only" in str(error) or "WeightsUnpickler" in str(error):
        return ContainerError(f"holds more than tensors ({_first_line(error)[:200]})")
    return ContainerError(f"cannot be read, it is damaged or of another format ({_first_line(error)[:200]})")


def _read_torchscript(path: Path) -> dict[str, Tensor]:
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated; the published file will stay what it is
            load: Any = torch.jit.load
            state: dict[str, Tensor] = load(str(path), map_location="cpu").state_dict()
    except MemoryError:
        raise
    except Exception as error:
        raise ContainerError(f"is no whole TorchScript archive ({_first_line(error)[:200]})") from None
    return as_tensors(state)


def is_torchscript(file: Path | io.BytesIO) -> bool:
    """Whether a file is a TorchScript archive (and not a dictionary saved in the zip format)."""
    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    finally:
        if isinstance(file, io.BytesIO):
            file.seek(0)


def chosen(content: Any, key: str | None, needed: bool) -> Any:
    """The part of ``content`` that holds the tensors: its entry ``key`` where there is one.

    Raises:
        ContainerError: ``key`` is needed and absent; the message lists what there is.
    """
    if key is None or not isinstance(content, Mapping):
        return content
    if key in content and isinstance(content[key], Mapping):
        return content[key]
    if needed:
        held = ", ".join(map(str, list(content)[:_SHOWN])) or "nothing"
        raise ContainerError(f"has no entry {key!r} that holds tensors; it has {held}")
    return content


def as_tensors(content: Any) -> dict[str, Tensor]:
    """``content`` as a mapping of names to tensors.

    Raises:
        ContainerError: it is something else.
    """
    import torch

    if not isinstance(content, Mapping):
        raise ContainerError(f"holds a {type(content).__name__}, not a mapping of names to tensors")
    others = [str(name) for name, value in content.items() if not isinstance(value, torch.Tensor)]
    if others:
        nested = [name for name in others if isinstance(content.get(name), Mapping)]
        hint = f"; the tensors may be under {' or '.join(map(repr, nested))} (container nested, key)" if nested else ""
        raise ContainerError(f"has entries that are no tensors: {', '.join(others[:_SHOWN])}{hint}")
    return {str(name): value.detach() for name, value in content.items()}


def plain_names(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """Names without the prefix ``module.`` that data-parallel training puts before every one of them."""
    prefix = "module."
    if tensors and all(name.startswith(prefix) for name in tensors):
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return dict(tensors)


def kept(tensors: Mapping[str, Value], prefixes: list[str]) -> dict[str, Value]:
    """The tensors whose names begin with one of ``prefixes``; all when there are none."""
    if not prefixes:
        return dict(tensors)
    return {name: tensor for name, tensor in tensors.items() if name.startswith(tuple(prefixes))}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
