"""Folders for what is made on the way: removed when the work ends, and when it was killed, by whoever comes next."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PREFIX = "gen-eval-scratch-"
_LOCK = ".in-use"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of this process under ``TMPDIR``, removed at the end.

    A process that is killed cannot remove its folder, which may hold gigabytes. As long as a folder is in use a file in
    it is locked; folders whose lock is free are removed when the next one is made.
    """
    remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        begun = folder / f"{_LOCK}.new"
        with begun.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            begun.rename(folder / _LOCK)  # seen by others only when it is locked
            yield folder


def remove_abandoned() -> None:
    """Remove the scratch folders of processes that are gone; what cannot be removed stays."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with path.open("r+") as lock:
                if _is_free(lock):
                    shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:  # of another user, or removed by another process just now
            continue


def _is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
