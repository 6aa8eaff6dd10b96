"""Files: digests, and letting a library write one so that a reader never sees half of it."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sha256_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 (hex) of a regular file's bytes, read piece by piece.

    Raises:
        OSError: the file cannot be read, or is a pipe, a device or a folder (which may have no end).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe must not block
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        with open(descriptor, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside ``path`` to write to; it takes the place of ``path`` when the block ends well.

    For what only a library can write, by name; bytes in memory go through :func:`gen_eval.records.files.write_atomic`,
    whose temporary names these follow. Folders are made. The bytes are on disk before the name is, so after a crash
    ``path`` is the old file or the whole new one. When the block raises, the temporary file is removed and ``path`` is
    left alone.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.part")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
