"""Clips that several groups of questions show: each is decoded once, and forgotten after the last that shows it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from gen_eval.mllm.showing import Shown
from gen_eval.records import ItemError


class SharedClips:
    """Decodes each clip once for all groups that show it, and forgets it after the last of them.

    Args:
        decode: makes what is shown of a file.
        paths: the file of every group that will ask for one, so that the last use is known.
    """

    def __init__(self, decode: Callable[[Path], Shown], paths: Sequence[Path]) -> None:
        self._decode, self._left = decode, Counter(paths)
        self._kept: dict[Path, Shown | ItemError] = {}
        self._guards: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, path: Path) -> Shown:
        """What is shown of ``path``.

        Raises:
            ItemError: nothing can be.
        """
        with self._lock:
            guard = self._guards.setdefault(path, threading.Lock())
        with guard:
            if path not in self._kept:
                self._kept[path] = self._decoded(path)
            found = self._kept[path]
            self._left[path] -= 1
            if self._left[path] <= 0:
                del self._kept[path]
        if isinstance(found, ItemError):
            raise found
        return found

    def _decoded(self, path: Path) -> Shown | ItemError:
        try:
            return self._decode(path)
        except ItemError as error:
            return error
