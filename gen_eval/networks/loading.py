"""From a checkpoint to a network that can be asked: built once per process, names matched strictly both ways."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen_eval import weights
from gen_eval.execution import threads
from gen_eval.networks import folders
from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import Placement, current
from gen_eval.networks.registry import BUILDERS, FOLDERS
from gen_eval.records import InputError, ItemError, MissingPart, Reason, canonical_json
from gen_eval.registry import require

if TYPE_CHECKING:
    from torch import Tensor, nn

TASKS: Mapping[str, str] = {
    "embed": "look at pictures",
    "embed_clip": "look at clips",
    "embed_text": "read texts",
    "interpolate": "guess the frame between two frames",
    "flow": "follow pixels from frame to frame",
    "detect": "find what a text names",
    "track": "follow objects through a clip",
    "rate": "rate clips",
    "depth": "tell how near things are",
    "distances": "tell how different pictures look",
}
"""What a network may be asked for -> in words."""

_LOADED: dict[Hashable, nn.Module | ItemError] = {}


def ensure(name: str) -> None:
    """Check that the checkpoint ``name`` and those that it needs are there, without reading them.

    Raises:
        ItemError: ``missing_weights``: a file, or the package that runs it, is absent.
    """
    for one in weights.with_needs(name):
        if weights.locate(one) is None:
            raise weights.absent(one)
    _require_torch(name)


def loaded(name: str) -> Any:
    """The network of the checkpoint ``name`` under the current placement, in eval mode.

    Raises:
        ItemError: ``missing_weights`` or ``bad_weights``; the same one again without another attempt, as long as the
            file stays the same. ``out_of_memory``: there is no room for the network itself.
        InputError: the checkpoint has no network here.
    """
    ensure(name)
    placement = current()
    key = _key(name, placement)
    if key not in _LOADED:
        try:
            with memory_errors():
                _LOADED[key] = _load(name, placement)
        except ItemError as error:
            _LOADED[key] = error
        except MemoryError as error:  # no number of frames helps; not remembered, for memory may be free again
            said = f"the network {name} does not fit into memory; use a larger machine, or fewer --workers"
            raise ItemError(Reason.OUT_OF_MEMORY, said, {"checkpoint": name}) from error
    found = _LOADED[key]
    if isinstance(found, ItemError):
        raise found
    return found


def able(name: str, task: str) -> Any:
    """The network of the checkpoint ``name`` as :func:`loaded` gives it, if it does ``task`` (a key of :data:`TASKS`).

    Raises:
        ItemError: see :func:`loaded`.
        InputError: it is a network of another kind.
    """
    module = loaded(name)
    if not hasattr(module, task):
        raise InputError(
            f"the network {name} ({type(module).__name__}) does not {TASKS[task]}; name one that does in the protocol"
        )
    return module


@contextmanager
def shown(name: str) -> Iterator[None]:
    """Say of which network it is that something of another size or number was shown to it.

    Raises:
        InputError: in place of the ``ValueError`` of the network: catalogue and protocol say what it is shown.
    """
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the network {name} cannot look at what the protocol shows it: {error}. Correct the protocol's view, or "
            "the network in the catalogue"
        ) from error


def forget() -> None:
    """Let go of all networks of this process."""
    _LOADED.clear()


def _key(name: str, placement: Placement) -> Hashable:
    found = [located for one in weights.with_needs(name) if (located := weights.locate(one)) is not None]
    files = [str(file.path) for located in found for file in (located, *located.companions)]
    stamps = [Path(file).stat() for file in files]
    network = canonical_json(dict(weights.checkpoint(name).network or {}))
    return (name, placement, *files, *((stamp.st_size, stamp.st_mtime_ns) for stamp in stamps), network)


def _require_torch(name: str) -> None:
    try:
        require("torch")
    except MissingPart as error:
        raise ItemError(Reason.MISSING_WEIGHTS, f"the network {name} cannot run: {error}") from None


def _load(name: str, placement: Placement) -> nn.Module:
    import torch

    # float32 means float32 on every device: no rounding of products to ten bits
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if threads() is not None:
        torch.set_num_threads(threads() or 1)
    is_folder = (weights.checkpoint(name).network or {}).get("kind") in FOLDERS
    module = folders.open_network(name) if is_folder else _filled(name)
    module.requires_grad_(False).eval()
    dtype = getattr(torch, placement.dtype) if getattr(module, "casts_weights", True) else torch.float32
    module.to(device=placement.device, dtype=dtype)
    return _compiled(module) if placement.compile else module


def _filled(name: str) -> nn.Module:
    """The network that the catalogue describes, with the numbers of the checkpoint's file."""
    state = {key: _as_float32(tensor) for key, tensor in weights.load_together(name).items()}
    module = build(weights.checkpoint(name).network or {}, name=name)
    translate = getattr(module, "translate", None)
    if translate is not None:
        state = translate(state)
    weights.check_names(name, state, {key: tuple(tensor.shape) for key, tensor in module.state_dict().items()})
    module.load_state_dict(state, strict=True, assign=True)
    if any(buffer.is_meta for buffer in module.buffers()):
        raise TypeError(f"the network {name} has buffers that no checkpoint holds; its builder must compute them")
    return module


def build(network: Mapping[str, Any], *, name: str = "") -> nn.Module:
    """The module that a checkpoint's ``network`` section describes, on the meta device: it holds no numbers yet.

    Raises:
        InputError: there is no builder of that kind, or it does not take these arguments.
        ItemError: ``missing_weights``: a package that it is made of is not installed.
    """
    import torch

    arguments = dict(network)
    kind = arguments.pop("kind", None)
    if kind not in BUILDERS:
        raise InputError(
            f"the checkpoint {name!r} has no network here (kind {kind!r}); there are {', '.join(BUILDERS)}, and as "
            f"folders {', '.join(FOLDERS)}"
        )
    module_name, _, function = BUILDERS[kind].partition(":")
    try:
        builder = getattr(importlib.import_module(module_name), function)
    except ModuleNotFoundError as error:  # a package of the extra; a module of ours is there
        missing = str(error.name).partition(".")[0]
        hint = "pip install 'gen-eval[models]'"
        raise ItemError(Reason.MISSING_WEIGHTS, f"the network {name} needs the package {missing}: {hint}") from None
    with torch.device("meta"):
        try:
            module: nn.Module = builder(**arguments)
        except (TypeError, ValueError, AssertionError, ArithmeticError, RuntimeError) as error:  # packages differ
            raise InputError(f"the network of {name!r} cannot be built from {arguments}: {error}") from error
    return module


def _as_float32(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def _compiled(module: nn.Module) -> nn.Module:
    import torch

    for name in ("embed", "embed_clip", "embed_text", "interpolate", "flow", "features"):
        if hasattr(module, name):
            setattr(module, name, _explained(torch.compile(getattr(module, name))))
    return module


def _explained(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """``compiled``, which is really compiled when it is first called; what goes wrong then is told in one line."""
    import torch

    def call(*arguments: Any) -> Any:
        try:
            with memory_errors():
                return compiled(*arguments)
        except torch._dynamo.exc.TorchDynamoException as error:  # no compiler, or one that cannot do it
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"networks cannot be compiled here ({said}); leave --compile out") from error

    return call
