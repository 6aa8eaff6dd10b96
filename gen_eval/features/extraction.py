"""Computing features of a chunk: each once, and in smaller pieces when memory runs out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gen_eval.features.metric import Feature
from gen_eval.records import ItemError, Reason


class ChunkSizes:
    """How many frames each feature can take at a time, learned from the first time that memory ran out."""

    def __init__(self) -> None:
        self._largest: dict[Feature, int] = {}

    def of(self, feature: Feature, wanted: int) -> int:
        """Frames to compute at a time when ``wanted`` are there."""
        return min(wanted, self._largest.get(feature, wanted))

    def halve(self, feature: Feature, tried: int) -> None:
        """Remember that ``tried`` frames were too many.

        Raises:
            ItemError: ``out_of_memory`` when it was a single frame.
        """
        if tried <= 1:
            raise ItemError(
                Reason.OUT_OF_MEMORY,
                f"{feature.name} of a single frame does not fit into memory; use smaller frames or a larger machine",
            )
        self._largest[feature] = tried // 2


class ChunkFeatures:
    """The features of one chunk of one member in one view, computed when first asked for."""

    def __init__(self, frames: Any, sizes: ChunkSizes | None = None) -> None:
        self.frames = frames
        self._sizes = sizes if sizes is not None else ChunkSizes()
        self._values: dict[Feature, Any] = {}

    def __getitem__(self, feature: Feature) -> Any:
        """The value of ``feature``; its first axis is the chunk's."""
        if feature not in self._values:
            source = self.frames if feature.source is None else self[feature.source]
            self._values[feature] = self._in_pieces(feature, source)
        return self._values[feature]

    def of(self, features: Iterable[Feature]) -> dict[Feature, Any]:
        """The values of several features, as a meter takes them."""
        return {feature: self[feature] for feature in features}

    def _in_pieces(self, feature: Feature, source: Any) -> Any:
        count = len(self.frames)
        pieces: list[Any] = []
        start = 0
        while start < count:
            size = self._sizes.of(feature, count - start)
            try:
                whole = size == count
                pieces.append(feature(source if whole else _part(source, start, start + size)))
            except MemoryError:
                self._sizes.halve(feature, size)
            else:
                start += size
        return pieces[0] if len(pieces) == 1 else _joined(pieces)


def extract(features: Iterable[Feature], frames: Any) -> dict[Feature, Any]:
    """The values of ``features`` for one chunk of frames; sources are computed once."""
    return ChunkFeatures(frames).of(features)


def _part(values: Any, start: int, stop: int) -> Any:
    if isinstance(values, tuple):
        return tuple(value[start:stop] for value in values)
    return values[start:stop]


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], tuple):
        return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return np.concatenate(pieces)
