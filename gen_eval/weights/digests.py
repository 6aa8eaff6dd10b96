"""SHA-256 of checkpoint files: computed once per file, remembered, and pinned for a project.

Two files, both JSON, both written whole and under a lock so that several processes may do so at once:

* ``<weights folder>/digests.json`` remembers size, time and digest of files of this machine. It saves time and can be
  deleted at any moment; where it cannot be written, digests are computed again.
* the *lock file* (setting ``weights_lock``, else ``<weights folder>/lock.json``) holds the digest that a file had when
  it was first used. From then on another digest is an error until someone pins the new one. It names no path of the
  machine, so a project can keep it under version control and give every machine the same networks.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from gen_eval.records.errors import InputError
from gen_eval.records.files import write_atomic
from gen_eval.settings import settings


def weights_folder() -> Path:
    """The folder of checkpoints (setting ``weights``)."""
    return settings().weights.expanduser()


def lock_path() -> Path:
    """The file of pinned digests."""
    own = settings().weights_lock
    return own.expanduser() if own else weights_folder() / "lock.json"


def compute_digest(path: Path) -> str:
    """SHA-256 of a file, read now."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remembered_digest(path: Path) -> str | None:
    """The digest that the file had when it was last read; ``None`` when its size or time changed since."""
    stamp = _stamp(path)
    known = _read_table(_memory_path()).get(_memory_key(path))
    if isinstance(known, dict) and all(known.get(part) == value for part, value in stamp.items()):
        digest = known.get("sha256")
        return digest if isinstance(digest, str) else None
    return None


def file_digest(path: Path) -> str:
    """SHA-256 of a file, from memory when its size and time are as they were."""
    return remembered_digest(path) or read_digest(path)


def read_digest(path: Path) -> str:
    """SHA-256 of a file, read now and remembered.

    The stamp is taken before reading: a file that changes meanwhile is read again the next time.
    """
    stamp = _stamp(path)
    digest = compute_digest(path)
    remember_digest(path, digest, stamp)
    return digest


def remember_digest(path: Path, digest: str, stamp: dict[str, int] | None = None) -> None:
    """Note the digest of a file; a folder that cannot be written is no problem."""
    with suppress(OSError):
        _change_table(_memory_path(), _memory_key(path), {**(stamp or _stamp(path)), "sha256": digest})


def _stamp(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _memory_path() -> Path:
    return weights_folder() / "digests.json"


def _memory_key(path: Path) -> str:
    folder = weights_folder()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path.absolute())


def pinned(key: str) -> str | None:
    """The digest that ``key`` (``<checkpoint>/<file>``) is pinned to.

    Raises:
        InputError: the lock file cannot be read.
    """
    return pins().get(key)


def pins() -> dict[str, str]:
    """All pinned digests.

    Raises:
        InputError: the lock file cannot be read.
    """
    path = lock_path()
    table = _read_table(path, strict=True)
    if not all(isinstance(digest, str) and len(digest) == 64 for digest in table.values()):
        raise InputError(f"{path} must map files to SHA-256 digests; put it in order or delete it")
    return table


def pin(key: str, digest: str) -> bool:
    """Pin ``key`` to ``digest``; ``False`` when the lock file cannot be written."""
    pins()  # a damaged file is not written over
    try:
        _change_table(lock_path(), key, digest)
    except OSError:
        return False
    return True


def _read_table(path: Path, strict: bool = False) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        if strict:
            raise InputError(f"{path} cannot be read as JSON ({error}); put it in order or delete it") from error
        return {}
    if isinstance(content, dict):
        return content
    if strict:
        raise InputError(f"{path} must hold a JSON object; put it in order or delete it")
    return {}


def _change_table(path: Path, key: str, value: Any) -> None:
    with _one_at_a_time():
        table = _read_table(path)
        if table.get(key) != value:
            table[key] = value
            write_atomic(path, (json.dumps(table, indent=1, sort_keys=True) + "\n").encode())


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold the weights folder's lock; where that folder cannot be written, nobody else writes there either."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(exclusive(weights_folder() / ".lock"))
        yield


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock that the file ``path`` stands for; waits for another process, and falls with this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
