"""Computing features of a chunk: each once, and in smaller pieces when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from gen_eval.features.feature import Feature, StreamFeature, StreamInfo
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


class StreamMemory:
    """What the stream features of one clip remember between its chunks."""

    def __init__(self, info: StreamInfo) -> None:
        self._info = info
        self._opened: dict[StreamFeature, Callable[[Any, Any], Any]] = {}

    def of(self, feature: StreamFeature) -> Callable[[Any, Any], Any]:
        """The function of ``feature`` for this clip."""
        if feature not in self._opened:
            self._opened[feature] = feature.compute(self._info, **dict(feature.parameters))
        return self._opened[feature]


class ChunkFeatures:
    """The features of one chunk of one member in one view, computed when first asked for.

    Attributes:
        frames: (n, H, W, 3) uint8 RGB, or whatever else the features are of (a list of one prompt).
    """

    def __init__(
        self,
        frames: Any,
        sizes: ChunkSizes | None = None,
        *,
        times: Any = None,
        memory: StreamMemory | None = None,
    ) -> None:
        """Args: ``times`` (n,) seconds and ``memory`` of the clip, for stream features."""
        self.frames = frames
        self._sizes = sizes if sizes is not None else ChunkSizes()
        self._times, self._memory = times, memory
        self._values: dict[Feature, Any] = {}

    def __getitem__(self, feature: Feature) -> Any:
        """The value of ``feature``; its first axis is the chunk's."""
        if feature not in self._values:
            self._values[feature] = self._in_pieces(feature)
        return self._values[feature]

    def of(self, features: Iterable[Feature]) -> dict[Feature, Any]:
        """The values of several features, as a meter takes them."""
        return {feature: self[feature] for feature in features}

    def _in_pieces(self, feature: Feature) -> Any:
        """The whole value at once, or, when memory runs out, in pieces: ``feature`` and all that it is made from."""
        count = len(self.frames)
        pieces: list[Any] = []
        start = 0
        while start < count:
            size = self._sizes.of(feature, count - start)
            try:
                pieces.append(self._range(feature, start, start + size))
            except MemoryError:
                self._sizes.halve(feature, size)
            else:
                start += size
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

    def _range(self, feature: Feature, start: int, stop: int) -> Any:
        """The value for the frames ``start`` to ``stop``; a source is kept for other features only when it is whole."""
        if feature in self._values:
            return _part(self._values[feature], start, stop)
        source = self._source(feature, start, stop)
        value = self._remembering(feature)(source, self._times[start:stop]) if _remembers(feature) else feature(source)
        if stop - start == len(self.frames):
            self._values[feature] = value
        return value

    def _source(self, feature: Feature, start: int, stop: int) -> Any:
        if feature.source is None:
            return _part(self.frames, start, stop)
        if _remembers(feature.source):
            raise TypeError(f"{feature.source.name} remembers earlier frames; no feature can be made from it")
        return self._range(feature.source, start, stop)

    def _remembering(self, feature: Feature) -> Callable[[Any, Any], Any]:
        if self._memory is None:
            raise TypeError(f"{feature.name} remembers earlier frames; only metrics of one clip can ask for it")
        return self._memory.of(cast(StreamFeature, feature))


def extract(
    features: Iterable[Feature], frames: Any, *, times: Any = None, memory: StreamMemory | None = None
) -> dict[Feature, Any]:
    """The values of ``features`` for one chunk of frames; sources are computed once."""
    return ChunkFeatures(frames, times=times, memory=memory).of(features)


def _part(values: Any, start: int, stop: int) -> Any:
    if isinstance(values, tuple):
        return tuple(value[start:stop] for value in values)
    return values[start:stop]


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], tuple):
        return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return np.concatenate(pieces)


def _remembers(feature: Feature) -> bool:
    return isinstance(feature, StreamFeature)
