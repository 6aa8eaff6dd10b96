"""Frames that are chosen by the length of their clip, kept while it is read once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gen_eval.features.metric import Selection
from gen_eval.media import Explicit, read_clip


class Chosen:
    """The frames that selections are expected to ask for.

    The length of a clip is known for sure at its end only. Frames are kept by the length that its header states; where
    that was wrong, the missing ones are decoded in a second pass over this file.
    """

    def __init__(self, selections: Iterable[Selection], expected: int | None) -> None:
        """Args: ``expected`` is the probable number of frames, ``None`` when nothing is known."""
        named = tuple(selections)
        self._wanted = {int(index) for one in named for index in one.indices(expected)} if expected else set()
        self._kept: dict[int, NDArray[np.uint8]] = {}
        self._seen = 0

    def take(self, frames: NDArray[np.uint8]) -> None:
        """Keep what is wanted of the next ``frames`` (n, H, W, 3)."""
        for index in self._wanted & set(range(self._seen, self._seen + len(frames))):
            self._kept[index] = frames[index - self._seen].copy()
        self._seen += len(frames)

    def frames(self, selection: Selection, path: Path | None) -> NDArray[np.uint8]:
        """The frames of ``selection`` (k, H, W, 3), now that all frames went by.

        Args:
            selection: what chooses.
            path: the file, for a second pass.

        Raises:
            ItemError: the second pass failed.
        """
        indices = [int(index) for index in selection.indices(self._seen)]
        missing = sorted({*indices} - {*self._kept})
        if missing:
            if path is None:
                raise ValueError(f"frames {missing} of {selection.name} went by and there is no file to read again")
            self._kept.update(zip(missing, read_clip(path, Explicit(missing)).frames, strict=True))
        return np.stack([self._kept[index] for index in indices])
