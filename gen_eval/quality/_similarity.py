"""Similarity of neighbouring frames: what subject and background consistency share, and the cosine of both i2v metrics.

Arithmetic is float64, whatever the format of the network.

Source: VBench, subject and background consistency (public code).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo
from gen_eval.networks import embedding_feature
from gen_eval.records import MetricResult, Reason

Vectors = NDArray[np.float64]

_LEAST_NORM = 1e-12  # features are divided by at least this
_EPS = 1e-8  # and the cosine of what comes out by at least this: a vector of zeros has cosine 0 with every other


def unit(features: NDArray[Any]) -> Vectors:
    """``features`` (n, D) in float64, each over its L2 norm; zeros stay zeros, what is not finite becomes ``nan``."""
    vectors = features.astype(np.float64)
    vectors[~np.isfinite(vectors).all(axis=-1)] = math.nan
    return vectors / np.maximum(_norms(vectors), _LEAST_NORM)


def similarity(first: Vectors, second: Vectors) -> Vectors:
    """Cosine of the rows of two arrays (n, D) (or of one row with many), not below 0 and at most 1: (n,)."""
    lengths = np.maximum(_norms(first), _EPS) * np.maximum(_norms(second), _EPS)
    cosines = (first * second).sum(axis=-1) / lengths[..., 0]
    limited: Vectors = np.clip(cosines, 0.0, 1.0)  # a rounding step above 1 is 1
    return limited


def _norms(vectors: Vectors) -> Vectors:
    norms: Vectors = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    return norms


def neighbours(vectors: Vectors, last: Vectors | None) -> Vectors:
    """Similarity of each row to the row before it; ``last`` comes before the first (``None``: it has ``nan``)."""
    found = np.full(len(vectors), math.nan)
    found[1:] = similarity(vectors[1:], vectors[:-1])
    if last is not None:
        found[0] = similarity(vectors[:1], last)[0]
    return found


def too_few_frames(metric: str, detail: Mapping[str, Any]) -> MetricResult:
    """The result of a clip without a pair of frames."""
    message = f"the clip has {detail['frames']} frame(s); neighbouring frames are compared, so 2 are needed"
    return MetricResult.without_value(metric, Reason.TOO_FEW_FRAMES, message, detail=detail)


@dataclass
class Similarities:
    """How alike frames are, each 0..1, ``nan`` for the first frame (and where a feature is not finite).

    Attributes:
        to_first: of each frame to the first.
        to_previous: of each frame to the one before.
    """

    to_first: list[float] = field(default_factory=list)
    to_previous: list[float] = field(default_factory=list)


class _Meter:
    def __init__(self, feature: Feature) -> None:
        self._feature = feature
        self._first: Vectors | None = None
        self._last: Vectors | None = None
        self._counts = Similarities()

    def update(self, clip: Chunk) -> Sequence[float]:
        vectors = unit(clip[self._feature])
        to_previous = neighbours(vectors, self._last)
        if self._first is None:
            self._first = vectors[:1].copy()
            to_first = np.concatenate([[math.nan], similarity(vectors[1:], self._first)])
        else:
            to_first = similarity(vectors, self._first)
        self._last = vectors[-1:].copy()
        self._counts.to_first += to_first.tolist()
        self._counts.to_previous += to_previous.tolist()
        values: list[float] = ((to_first + to_previous) / 2).tolist()
        return values  # the first frame has nothing to differ from; nan is never the worst

    def counts(self) -> Similarities:
        return self._counts


class Consistency(Metric):
    """How alike a network finds the frames of a clip.

    With d the unit features and cos+ the cosine, not below 0: the mean over the frames t = 2..T of
    (cos+(d_1, d_t) + cos+(d_(t-1), d_t)) / 2.
    """

    track = "quality"
    inputs = "single"
    marks_constant_frames = True

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The network's embedding of each frame."""
        return (embedding_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """The network of the protocol."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that remembers the first and the last embedding."""
        return _Meter(*self.member_features(measure))

    def decide(self, counts: Similarities, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over all frames but the first.

        ``sum`` and ``count`` in the detail are those of the mean: added up over clips they give the mean over frames.
        """
        frames, pairs = len(counts.to_first), max(len(counts.to_first) - 1, 0)
        detail: dict[str, Any] = {"frames": frames, "count": pairs}
        if not pairs:
            return too_few_frames(self.name, detail)
        to_first, to_previous = np.array(counts.to_first), np.array(counts.to_previous)
        curve = (to_first + to_previous) / 2
        total = math.fsum(curve[1:])
        return MetricResult.of(
            self.name,
            total / pairs,
            detail=detail | ({"sum": total} if math.isfinite(total) else {}),
            curves={self.name: curve, "to_first": to_first, "to_previous": to_previous},
        )
