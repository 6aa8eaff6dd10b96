"""Published files that are not read as they are (pickled options, TorchScript): converted to safetensors once.

The file is opened in a child process (:mod:`gen_eval.weights._child`) that has

* no network: an own network namespace where the system allows it, else sockets are refused in Python; proxies are
  taken out of its environment;
* bounded memory, processor time and size of what it writes, and an end after ``seconds``;
* an unpickler that builds tensors, plain containers and the listed globals only. A file that names anything else is
  refused before anything of it is built; ``trust`` does not change that.

A digest that the catalogue or the lock file knows is asked for first, because a TorchScript archive is read by native
code: what that code does with a hostile file is bounded by the limits and the namespace, not excluded.

Only tensors are written. Beside the result lies a record: digests of source and result, allowed globals, versions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gen_eval.records.errors import GenEvalError, InputError
from gen_eval.records.files import write_atomic
from gen_eval.registry import require
from gen_eval.weights.catalogue import Checkpoint, Source, checkpoint, checkpoint_names
from gen_eval.weights.containers import is_torchscript
from gen_eval.weights.digests import file_digest, pins
from gen_eval.weights.located import CONVERTED, RECORD

SECONDS = 900
_BASE_MEMORY = 4 * 2**30  # the interpreter with torch
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "OMP_NUM_THREADS")


class ConversionError(GenEvalError):
    """A file that could not be converted; the text says why."""


@dataclass(frozen=True)
class Conversion:
    """What the converter did.

    Attributes:
        path: the safetensors file.
        record: what was written down beside it.
    """

    path: Path
    record: dict[str, Any]


def convert(
    file: Path,
    out: Path | None = None,
    *,
    key: str | None = None,
    trust: bool = False,
    seconds: int = SECONDS,
    memory: int | None = None,
) -> Conversion:
    """Write the tensors of ``file`` as safetensors.

    Args:
        file: a file of ``torch.save`` or a TorchScript archive.
        out: where to; by default beside the file, where :func:`gen_eval.weights.locate` finds it.
        key: entry that holds the tensors; by default what the catalogue says of a file of this name or digest.
        trust: convert although nobody knows the file's digest.
        seconds: the child is ended after that long.
        memory: bytes that the child may use; by default six times the file and what torch needs.

    Raises:
        InputError: no such file, an unknown digest without ``trust``, or ``out`` is taken.
        ConversionError: the file is refused or damaged, or a limit was reached.
        MissingPart: torch or safetensors is not installed.
    """
    if not file.is_file():
        raise InputError(f"{file} is no file")
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:  # the child imports them; here it would cost seconds
            require(package)
    digest = file_digest(file)
    known = _source_of(file, digest)
    if not trust and not _is_known(digest):
        raise InputError(
            f"{file} has SHA-256 {digest}, which neither the catalogue nor the lock file knows. If you know where it "
            f"comes from, pin it (`gen-eval weights verify`) or convert it with --trust"
        )
    target = out or file.with_name(file.name + CONVERTED)
    note = target.with_name(target.name + RECORD)
    if target.exists() and not note.exists():
        raise InputError(f"{target} is there and was not made by the converter; give another --out")
    size = file.stat().st_size
    request = {
        "file": str(file.absolute()),
        "key": key or (known.key if known else None),
        "key_needed": key is not None or (known is not None and known.container == "nested"),
        "torchscript": is_torchscript(file),
        "memory": memory or _BASE_MEMORY + 6 * size,
        "seconds": seconds,
        "written": 2 * size + 64 * 2**20,  # half precision is kept, so no more than the file itself is expected
        "path": [folder for folder in sys.path if folder],
    }
    return _convert(request, target, note, {"file": file.name, "sha256": digest, "size": size})


def _convert(request: dict[str, Any], target: Path, note: Path, source: dict[str, Any]) -> Conversion:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        answer = _ask_child({**request, "out": str(part.absolute())})
        result = {"file": target.name, "sha256": file_digest(part), "size": part.stat().st_size}
        record = {
            "format": 1,
            "source": {**source, "container": "torchscript" if request["torchscript"] else "pickle"},
            "key": request["key"],
            **answer,
            "result": result,
        }
        note.unlink(missing_ok=True)  # never an old record beside a new file
        part.chmod(0o644)
        part.replace(target)
        write_atomic(note, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())
    finally:
        part.unlink(missing_ok=True)
    return Conversion(target, record)


def _ask_child(request: dict[str, Any]) -> dict[str, Any]:
    """Run the child and return its answer.

    Raises:
        ConversionError: it gave none, or an error.
    """
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    script = Path(__file__).with_name("_child.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(script)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=request["seconds"],
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConversionError(f"{request['file']}: not converted in {request['seconds']} s (--timeout)") from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ConversionError(
            f"{request['file']}: the converter's process ended with {done.returncode} before it answered ({last})"
        ) from None
    if "error" in answer:
        raise ConversionError(f"{request['file']} is not converted: {_plain(answer['error'])}")
    return dict(answer)


def _plain(error: str) -> str:
    """The sentence in an error that matters to a user."""
    if found := sorted(set(re.findall(r"GLOBAL ([\w.]+)", error))):
        return f"it holds {', '.join(found)}, which is never loaded; nothing of it was run. Do not trust this file"
    return error.splitlines()[0]


def _is_known(digest: str) -> bool:
    return digest in pins().values() or any(
        source.sha256 == digest for name in checkpoint_names() for source in checkpoint(name).sources
    )


def _source_of(file: Path, digest: str) -> Source | None:
    """The catalogue's source that ``file`` is: by digest, by place in the weights folder, by name."""
    entries = [checkpoint(name) for name in checkpoint_names()]
    pairs: list[tuple[Checkpoint, Source]] = [(entry, source) for entry in entries for source in entry.sources]
    for fits in (
        [source for _entry, source in pairs if source.sha256 == digest],
        [source for entry, source in pairs if file.absolute().parts[-2:] == (entry.name, source.file)],
        [source for _entry, source in pairs if source.file == file.name],
    ):
        if fits:
            return fits[0]
    return None
