"""From a checkpoint's name to its tensors, and whether they are those that a network needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gen_eval.records import InputError, ItemError, MissingPart, Reason
from gen_eval.registry import require
from gen_eval.weights.catalogue import checkpoint
from gen_eval.weights.containers import ContainerError, kept, plain_names, read_safetensors, read_tensors
from gen_eval.weights.located import Located, locate

if TYPE_CHECKING:
    from torch import Tensor

_SHOWN = 5


def load_state(name: str) -> dict[str, Tensor]:
    """The tensors of checkpoint ``name`` on the CPU, under the names that the file gives them.

    The digest is checked before the file is opened, and pinned on first use. The prefix ``module.`` is removed, the
    container's key taken, tensors of half precision come as float32. Names are not compared with anything yet
    (:func:`check_names`). Tensors may be mapped from the file, which is never
    written in place (a new one takes its name).

    Raises:
        InputError: there is no such checkpoint.
        ItemError: ``missing_weights`` when its file (or torch) is absent; ``bad_weights`` when the digest differs or
            the file cannot be read. The message names the command to use.
    """
    entry = checkpoint(name)
    found = locate(name)
    if found is None:
        raise absent(name)
    try:
        require("torch")
    except MissingPart as error:
        raise ItemError(Reason.MISSING_WEIGHTS, f"{entry.title} needs torch: {error}", {"checkpoint": name}) from None
    with _explained(found):
        found.check()
        try:
            tensors = _read(found)
        except ContainerError as error:
            raise ItemError(Reason.BAD_WEIGHTS, _unreadable(found, error), {"checkpoint": name}) from None
    return {key: tensor.float() if _is_half(tensor) else tensor for key, tensor in tensors.items()}


def check_folder(found: Located) -> None:
    """Compare the digests of a checkpoint's file and of its companions; first uses are pinned.

    Raises:
        ItemError: ``missing_weights`` when a companion is absent; ``bad_weights`` when a digest differs or a file
            cannot be read.
    """
    name = found.checkpoint.name
    if lacking := found.missing_companions:
        command = f"`gen-eval weights fetch {name}` brings what is absent"
        said = f"{name} lacks {', '.join(lacking)} beside {found.source.file}; {command}"
        raise ItemError(Reason.MISSING_WEIGHTS, said, {"checkpoint": name, "files": lacking})
    for file in (found, *found.companions):
        with _explained(file):
            file.check()


@contextmanager
def _explained(found: Located) -> Iterator[None]:
    """Tell problems around a file without a path of the machine, as a row may."""
    name = {"checkpoint": found.checkpoint.name}
    try:
        yield
    except InputError:
        said = "the file of pinned digests is damaged; `gen-eval weights verify` says where it lies"
        raise ItemError(Reason.BAD_WEIGHTS, said, name) from None
    except OSError as error:
        said = f"{found.key} cannot be read ({error.strerror or type(error).__name__}); check its rights"
        raise ItemError(Reason.BAD_WEIGHTS, said, name) from None


def load_together(name: str) -> dict[str, Tensor]:
    """The tensors of checkpoint ``name`` and, beside them, of the checkpoints that its catalogue entry needs.

    Raises:
        InputError: there is no such checkpoint.
        ItemError: see :func:`load_state`; ``bad_weights`` also when two files have a tensor of one name.
    """
    tensors = load_state(name)
    found = locate(name)
    if found is None or found.source.container == "dreamsim_archive":  # the others are merged into its own
        return tensors
    for other in found.needs:
        for key, tensor in load_together(other).items():
            if key in tensors:
                said = f"the checkpoints {name} and {other} both have a tensor {key}; correct their catalogue entries"
                raise ItemError(Reason.BAD_WEIGHTS, said, {"checkpoint": name})
            tensors[key] = tensor
    return tensors


def absent(name: str) -> ItemError:
    """The problem that a checkpoint is not on this machine, with the command that fetches it."""
    entry = checkpoint(name)
    if not entry.sources:
        return ItemError(
            Reason.MISSING_WEIGHTS,
            f"no file is known for {entry.name} ({entry.title}). {entry.note or ''}".rstrip(),
            {"checkpoint": entry.name},
        )
    terms = f" --accept-licence` (licence: {entry.terms})" if entry.restricted else "`"
    return ItemError(
        Reason.MISSING_WEIGHTS,
        f"{entry.title} is not on this machine; `gen-eval weights fetch {entry.name}{terms}",
        {"checkpoint": entry.name},
    )


def _read(found: Located) -> dict[str, Tensor]:
    if found.record is not None:  # what the converter wrote: the key was taken, all networks of the file are there
        return kept(plain_names(read_safetensors(found.path)), found.source.keep)
    if found.source.container != "dreamsim_archive":
        return read_tensors(found.path, found.source)
    from gen_eval.weights.dreamsim_archive import read_archive

    if len(found.source.needs) != 1:
        raise ContainerError("needs one other checkpoint for its DINO tower (`needs: [dino_vitb16]` in the catalogue)")
    return read_archive(found.path, load_state(found.source.needs[0]))


def _is_half(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.element_size() == 2


def _unreadable(found: Located, error: ContainerError) -> str:
    message = f"{found.key} {error}" if not str(error).startswith("the ") else f"{found.key}: {error}"
    if error.convertible:
        return f"{message}; convert it: `gen-eval weights convert {found.checkpoint.name} --to safetensors`"
    return f"{message}; remove it and fetch it again (`gen-eval weights fetch {found.checkpoint.name}`)"


def differences(actual: Mapping[str, Sequence[int]], expected: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
    """Where two lists of names and shapes differ: ``missing``, ``unexpected`` and ``shape``, only what there is."""
    found = {
        "missing": [name for name in expected if name not in actual],
        "unexpected": [name for name in actual if name not in expected],
        "shape": [
            f"{name} {list(actual[name])}, expected {list(shape)}"
            for name, shape in expected.items()
            if name in actual and tuple(actual[name]) != tuple(shape)
        ],
    }
    return {kind: names for kind, names in found.items() if names}


def check_names(name: str, state: Mapping[str, Any], expected: Mapping[str, Sequence[int]]) -> None:
    """Compare the tensors of checkpoint ``name`` with the names and shapes that a network has, both ways.

    Args:
        name: the checkpoint, for the message.
        state: name -> tensor (anything with a ``shape``).
        expected: name -> shape.

    Raises:
        ItemError: they differ (``bad_weights``); the message counts what is missing, unexpected or of another shape
            and lists the first of each.
    """
    found = differences({key: tuple(tensor.shape) for key, tensor in state.items()}, expected)
    if not found:
        return
    raise ItemError(
        Reason.BAD_WEIGHTS,
        f"the checkpoint {name} is not the one that its network needs: {spoken(found)}; "
        f"remove the file and fetch it again, or correct its catalogue entry",
        {"checkpoint": name, **{kind: len(names) for kind, names in found.items()}},
    )


def spoken(found: Mapping[str, Sequence[str]]) -> str:
    """What :func:`differences` found, counts first and a few names of each."""
    words = {"missing": "missing", "unexpected": "unexpected", "shape": "of another shape"}
    return "; ".join(f"{len(names)} {words[kind]} ({_few(names)})" for kind, names in found.items())


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_SHOWN]) + (", …" if len(listed) > _SHOWN else "")
