"""Similarity to the condition image: what both image-to-video metrics share.

Source: VBench, image-to-video subject and background (public code).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo
from gen_eval.networks import embedding_feature, image_embedding_feature
from gen_eval.quality._similarity import Vectors, neighbours, similarity, too_few_frames, unit
from gen_eval.records import MetricResult


@dataclass
class ConditionedSimilarities:
    """How alike frames are, each 0..1 (``nan`` where a feature is not finite).

    Attributes:
        to_condition: of each frame to the condition image.
        to_previous: of each frame to the one before; ``nan`` for the first.
    """

    to_condition: list[float] = field(default_factory=list)
    to_previous: list[float] = field(default_factory=list)


class _Meter:
    def __init__(self, feature: Feature, condition: Vectors) -> None:
        self._feature, self._condition = feature, condition
        self._last: Vectors | None = None
        self._counts = ConditionedSimilarities()

    def update(self, clip: Chunk) -> Sequence[float]:
        vectors = unit(clip[self._feature])
        to_previous: list[float] = neighbours(vectors, self._last).tolist()
        self._last = vectors[-1:].copy()
        self._counts.to_condition += similarity(vectors, self._condition).tolist()
        self._counts.to_previous += to_previous
        return to_previous

    def counts(self) -> ConditionedSimilarities:
        return self._counts


class ConditionedSimilarity(Metric):
    """How alike a network finds the frames, the frame before, and the picture that the clip starts from.

    With c_t = cos+(condition image, frame t) and e_t = cos+(frame t-1, frame t), cos+ the cosine, not below 0:
    0.4 max c + 0.3 mean e + 0.3 min e.
    """

    track = "quality"
    inputs = "single"
    uses_condition_image = True
    marks_constant_frames = True

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The network's embedding of each frame."""
        return (embedding_feature(measure),)

    def image_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The network's embedding of the condition image."""
        return (image_embedding_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """The network of the protocol."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that remembers the condition image's and the last embedding."""
        assert image is not None
        condition = unit(image[image_embedding_feature(measure)])
        return _Meter(embedding_feature(measure), condition)

    def decide(self, counts: ConditionedSimilarities, decide: Mapping[str, Any]) -> MetricResult:
        """The weighted sum; ``weights`` are those of ``condition`` (max c), ``mean`` and ``least`` (mean and min e)."""
        to_condition, to_previous = np.array(counts.to_condition), np.array(counts.to_previous)
        detail: dict[str, Any] = {"frames": len(to_condition)}
        if len(to_condition) < 2:
            return too_few_frames(self.name, detail)
        pairs = to_previous[1:]
        parts = {
            "condition": float(to_condition.max()),
            "mean": math.fsum(pairs) / len(pairs),
            "least": float(pairs.min()),
        }
        value = sum(decide["weights"][name] * part for name, part in parts.items())
        return MetricResult.of(
            self.name,
            value,
            detail=detail | ({"parts": parts} if math.isfinite(value) else {}),
            curves={self.name: to_previous, "to_condition": to_condition},
        )
