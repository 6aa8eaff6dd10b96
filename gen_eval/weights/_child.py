"""The converter's child process: a script that is started by path, reads a request and answers with one line of JSON.

It does not import gen_eval. What is given up, in this order, before the file is touched: resource limits (memory, time,
size of files), the network (an own network namespace where the system allows it), and then, by an audit hook, sockets,
other programs, and everything that Python could change in the file system.

The hook stops Python code. What the request's pickle may name is decided by torch's restricted unpickler before that;
native code of torch itself is confined by the limits and the namespace only.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from typing import Any

_NEW_NETWORK = 0x4000_0000
_NEW_USER = 0x1000_0000
_REFUSED = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "os.kill",
    "shutil.", "ftplib.", "smtplib.", "urllib.", "http.client.", "webbrowser.",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def limit(memory: int, seconds: int, written: int) -> None:
    """Bound what this process may use: bytes of memory, seconds of processor time, bytes of a file."""
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (bound, bound))


def leave_network() -> str:
    """Move to an empty network namespace; says what stands between this process and the network.

    Must come before torch is imported: a process with several threads may not do it.
    """
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        for flags in (_NEW_NETWORK, _NEW_NETWORK | _NEW_USER):
            if library.unshare(flags) == 0:
                return "namespace and audit hook"
    except (OSError, AttributeError):
        pass
    return "audit hook"


def forbid() -> None:
    """From now on, refuse what the module's text lists."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_REFUSED):
            raise PermissionError(f"{event} is not allowed while converting")
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            raise PermissionError(f"writing to {arguments[0]!r} is not allowed while converting")

    sys.addaudithook(hook)


def allowed_globals() -> list[Any]:
    """What may stand in a file besides tensors: training options, none of which acts when it is built."""
    import _codecs
    import argparse
    import collections

    import numpy as np

    scalar: Any = np.float64(0).__reduce__()[0]
    kinds = {type(np.dtype(code)) for code in np.typecodes["All"] if code not in "OSUVMm"}
    return [
        collections.OrderedDict,
        argparse.Namespace,
        np.dtype,
        *sorted(kinds, key=lambda kind: kind.__name__),
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
        (_codecs.encode, "_codecs.encode"),
    ]


def named(allowed: Any) -> str:
    """Full name of an allowed global."""
    return allowed[1] if isinstance(allowed, tuple) else f"{allowed.__module__}.{allowed.__qualname__}"


def load(request: Mapping[str, Any], allowed: list[Any]) -> Any:
    """What the file holds."""
    import torch

    if request["torchscript"]:
        read: Any = torch.jit.load
        return read(request["file"], map_location="cpu").state_dict()
    with torch.serialization.safe_globals(allowed):
        return torch.load(request["file"], map_location="cpu", weights_only=True)


def tensors_of(content: Any, key: str | None, needed: bool) -> dict[str, Any]:
    """The tensors in ``content`` (or in its entry ``key``), each with memory of its own; other entries are left out."""
    import torch

    if isinstance(content, torch.nn.Module):
        content = content.state_dict()
    if isinstance(content, Mapping) and key is not None and isinstance(content.get(key), Mapping):
        content = content[key]
    elif needed:
        raise ValueError(f"there is no entry {key!r} that holds tensors; there are {shown(content)}")
    if not isinstance(content, Mapping):
        raise TypeError(f"the file holds a {type(content).__name__}, not a mapping of names to tensors")
    found = {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}
    if not found:
        raise ValueError(f"no tensor lies on the first level; there are {shown(content)} (choose one with --key)")
    return {name: value.detach().clone().contiguous() for name, value in found.items()}


def shown(content: Any) -> str:
    """The first entries of a mapping."""
    return ", ".join(map(str, list(content)[:8])) if isinstance(content, Mapping) else "none"


def convert(request: Mapping[str, Any]) -> dict[str, Any]:
    """Read the file, write its tensors."""
    import warnings

    warnings.simplefilter("ignore")
    import safetensors.torch
    import torch

    allowed = allowed_globals()
    forbid()
    tensors = tensors_of(load(request, allowed), request["key"], request["key_needed"])
    safetensors.torch.save_file(tensors, request["out"])
    return {"tensors": len(tensors), "allowed_globals": [named(one) for one in allowed], "torch": torch.__version__}


def main() -> None:
    """Serve the one request on standard input."""
    request = json.loads(sys.stdin.read())
    sys.path[:] = request["path"]
    network = leave_network()
    limit(request["memory"], request["seconds"], request["written"])
    try:
        answer = {"network": network, **convert(request)}
    except (MemoryError, ImportError) as error:  # libraries that do not fit into memory cannot be imported
        answer = {"error": f"it needs more memory than the converter may use (--memory): {str(error)[:200]}"}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
