"""Networks that are a folder: a configuration, tensors, perhaps a tokenizer, as the package transformers saves them.

Nothing of the folder is run: classes are named here, never by the folder, and tensors come from safetensors alone.
Every tensor of the file must belong to the network and the other way round.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen_eval import weights
from gen_eval.networks.memory import memory_errors
from gen_eval.networks.registry import FOLDERS
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.weights.state import spoken

if TYPE_CHECKING:
    from torch import nn

TENSORS = "model.safetensors"
"""The one file that transformers reads tensors from."""


class FolderError(Exception):
    """A folder that does not hold the network; the text goes on after the name of what is wrong."""


def open_network(name: str) -> nn.Module:
    """The network of the checkpoint ``name``, whose kind is one of ``FOLDERS``, in main memory and float32.

    The digests of the tensors and of the companions are compared with the published or pinned ones first.

    Raises:
        InputError: the catalogue's arguments are none of this kind, or its file is not called ``model.safetensors``.
        ItemError: ``missing_weights``: a file of the folder, or a package, is absent. ``bad_weights``: a digest
            differs, a file cannot be read, or tensors are missing, surplus or of another shape.
        MemoryError: there is no room for it.
    """
    found = weights.locate(name)
    if found is None:
        raise weights.absent(name)
    if found.path.name != TENSORS:
        raise InputError(
            f"the network {name} is a folder whose tensors are in {TENSORS}, not in {found.path.name}; correct its "
            "catalogue entry"
        )
    weights.check_folder(found)
    arguments = dict(found.checkpoint.network or {})
    opener = _opener(name, arguments.pop("kind"), arguments)
    with _told(name), quiet_loading(), memory_errors():
        module: nn.Module = opener(found.path.parent, **arguments)
    return module


def _opener(name: str, kind: str, arguments: Mapping[str, Any]) -> Callable[..., Any]:
    module_name, _, function = FOLDERS[kind].partition(":")
    try:
        importlib.import_module("transformers")
        opener: Callable[..., Any] = getattr(importlib.import_module(module_name), function)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        hint = "pip install 'gen-eval[models]'"
        raise ItemError(Reason.MISSING_WEIGHTS, f"the network {name} needs the package {missing}: {hint}") from None
    try:
        inspect.signature(opener).bind(Path(), **arguments)
    except TypeError as error:
        raise InputError(f"the network of {name!r} cannot be built from {dict(arguments)}: {error}") from None
    return opener


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Tell in one line, without a path of the machine, that a folder cannot be opened."""
    try:
        yield
    except (ItemError, InputError, MemoryError):
        raise
    except FolderError as error:
        raise _bad(name, str(error)) from None
    except Exception as error:  # packages raise what they like of a file that is not what they expect
        first = (str(error).splitlines() or [""])[0].replace(str(weights.locate(name).home), name)  # type: ignore[union-attr]
        raise _bad(name, f"cannot be opened ({type(error).__name__}: {first})") from error


def _bad(name: str, what: str) -> ItemError:
    said = f"the folder of {name} {what}; remove it and fetch it again (`gen-eval weights fetch {name}`)"
    return ItemError(Reason.BAD_WEIGHTS, said, {"checkpoint": name})


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Without the bars and reports of transformers, which draws them while it loads; both are told here in our way."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # its functions carry no types
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def check_kind(folder: Path, kind: str) -> None:
    """Refuse the folder of another kind of network: transformers would only warn.

    Args:
        folder: where ``config.json`` lies.
        kind: the ``model_type`` that it must name.

    Raises:
        FolderError: it names another one, or cannot be read.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError("has no config.json") from None
    except (OSError, ValueError) as error:
        raise FolderError(f"has a config.json that cannot be read as JSON ({error})") from None
    found = config.get("model_type") if isinstance(config, dict) else None
    if found != kind:
        raise FolderError(f"holds another network: config.json names the kind {found!r}, expected {kind!r}")


def read_pretrained(model_class: Any, folder: Path, **arguments: Any) -> Any:
    """The network of ``folder`` as an instance of a class of transformers, float32, in eval mode.

    Args:
        model_class: a class with ``from_pretrained``.
        folder: ``config.json`` and ``model.safetensors``; nothing else is looked for, and nowhere else.
        arguments: further arguments of ``from_pretrained``.

    Raises:
        FolderError: tensors are missing, surplus, or of another shape.
    """
    import torch

    if not (folder / TENSORS).is_file():
        raise FolderError(f"has no {TENSORS}")
    module, told = model_class.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, output_loading_info=True, ignore_mismatched_sizes=True,
        dtype=torch.float32, **arguments,
    )  # fmt: skip
    found = {
        "missing": sorted(told["missing_keys"]),
        "unexpected": sorted(told["unexpected_keys"]),
        "shape": sorted(str(one[0] if isinstance(one, tuple) else one) for one in told["mismatched_keys"]),
    }
    if any(found.values()):
        raise FolderError(f"is not what its network needs: {spoken({kind: one for kind, one in found.items() if one})}")
    if told.get("error_msgs"):
        raise FolderError(f"cannot be read ({told['error_msgs']})")
    return module.eval()
