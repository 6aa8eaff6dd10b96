"""Frames that are chosen by the length of their clip, kept while it is read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features.feature import Selection
from gen_eval.media import Explicit, read_clip

_AT_ONCE = 16


class Chosen:
    """The frames that selections are expected to ask for.

    The length of a clip is known for sure at its end only. Frames are kept by the length that its header states; where
    that was wrong, the missing ones are decoded in a second pass over this file.
    """

    def __init__(self, selections: Iterable[Selection], expected: int | None) -> None:
        """Args: ``expected`` is the probable number of frames, ``None`` when nothing is known."""
        self._wanted: dict[int, dict[Hashable, tuple[Selection, int]]] = defaultdict(dict)
        if expected:
            for one in selections:
                self._want(one, _slots(one, expected))
        self._kept: dict[Hashable, NDArray[Any]] = {}
        self._seen = 0

    def _want(self, selection: Selection, slots: Iterable[tuple[int, int]]) -> None:
        for slot, index in slots:
            self._wanted[index][_key(selection, slot, index)] = (selection, slot)

    def take(self, frames: NDArray[np.uint8]) -> None:
        """Keep what is wanted of the next ``frames`` (n, H, W, 3)."""
        for index, frame in enumerate(frames, start=self._seen):
            self._keep(index, frame)
        self._seen += len(frames)

    def _keep(self, index: int, frame: NDArray[np.uint8]) -> None:
        for key, (selection, slot) in self._wanted.get(index, {}).items():
            self._kept[key] = selection.prepared(frame, slot)

    def frames(self, selection: Selection, path: Path | None) -> NDArray[Any]:
        """The frames of ``selection`` (k, H, W, 3), or what it prepares of them, now that all frames went by.

        Args:
            selection: what chooses.
            path: the file, for a second pass.

        Raises:
            ItemError: the second pass failed.
        """
        slots = list(_slots(selection, self._seen))
        missing = sorted({index for slot, index in slots if _key(selection, slot, index) not in self._kept})
        if missing and path is None:
            raise ValueError(f"frames {missing} of {selection.name} went by and there is no file to read again")
        self._want(selection, slots)
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            for index, frame in zip(part, read_clip(str(path), Explicit(part)).frames, strict=True):
                self._keep(index, frame)
        return np.stack([self._kept[_key(selection, slot, index)] for slot, index in slots])


def chosen_of(selection: Selection, clip: NDArray[np.uint8]) -> NDArray[Any]:
    """The same of a clip (T, H, W, 3) in memory."""
    return np.stack([selection.prepared(clip[index], slot) for slot, index in _slots(selection, len(clip))])


def _slots(selection: Selection, length: int) -> Iterator[tuple[int, int]]:
    """Position among the chosen frames, and number of the frame."""
    return ((slot, int(index)) for slot, index in enumerate(selection.indices(length)))


def _key(selection: Selection, slot: int, index: int) -> Hashable:
    """What tells kept frames apart: whole frames are shared by all who choose them."""
    return index if selection.prepare is None else (selection, slot, index)
