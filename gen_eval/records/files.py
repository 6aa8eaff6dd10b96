"""Writing files so that a reader sees the old content or the new one, never half of it.

Scope: survives a kill of the process at any moment. Against a power cut the file's content is synced before it takes
its name; the directory entry itself is left to the file system.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomic(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` through a temporary file beside it."""
    with written_whole(path) as file:
        file.write(content)


def copy_atomic(source: Path, path: Path) -> None:
    """Copy the bytes of ``source`` to ``path`` in the same way, without holding them in memory."""
    with source.open("rb") as content, written_whole(path) as file:
        shutil.copyfileobj(content, file, 1 << 20)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the name ``path`` at the end of the block; after an error nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_content_addressed(folder: Path, content: bytes, suffix: str) -> str:
    """Store ``content`` under its own digest in ``folder`` and return the digest; equal content is stored once."""
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"{digest}{suffix}"
    if not path.exists():
        write_atomic(path, content)
    return digest


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files that a killed process left in ``folder`` (not in its sub-folders)."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def is_file(path: Path) -> bool:
    """Whether ``path`` names a regular file; ``False`` also where the system cannot say.

    Unlike :meth:`pathlib.Path.is_file` it never raises: names from data may be longer than the file system takes, or
    lie in folders that may not be entered.
    """
    try:
        return path.is_file()
    except OSError:
        return False
