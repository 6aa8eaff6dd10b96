"""Aesthetic quality: how people would rate each frame as a picture, as LAION's predictor learned it.

Source: VBench, aesthetic quality; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_single
from gen_eval.networks import embed, embedding_feature, placement_of
from gen_eval.protocols import load_protocol
from gen_eval.quality._ratings import ratings, scale_of
from gen_eval.quality._similarity import unit
from gen_eval.records import MetricResult


def rate(embeddings: NDArray[np.float32], *, network: str) -> NDArray[np.float64]:
    """Ratings (n,) that the head ``network`` gives to ``embeddings`` (n, D), each over its L2 norm first."""
    return ratings(embed(unit(embeddings).astype(np.float32), network=network), network=network)


def rating_feature(measure: Measure) -> Feature:
    """The rating of each frame, as the head gives it (0..10 in practice)."""
    return Feature("rating", rate, (("network", measure["head"]),), embedding_feature(measure))


class _Meter:
    def __init__(self, feature: Feature) -> None:
        self._feature = feature
        self._ratings: list[float] = []

    def update(self, clip: Chunk) -> Sequence[float]:
        found: list[float] = clip[self._feature].tolist()
        self._ratings += found
        return found

    def counts(self) -> list[float]:
        return self._ratings


class AestheticQuality(Metric):
    """Mean rating of the frames by LAION's aesthetic predictor, over 10."""

    name = "aesthetic_quality"
    track = "quality"
    inputs = "single"
    bounds = (None, None)
    marks_constant_frames = True
    source = "VBench, aesthetic quality; PAI-Bench-G, section 3.1 and appendix A.2 (public code)"

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The rating of each frame."""
        return (rating_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """CLIP and the head."""
        return (str(measure["network"]), str(measure["head"]))

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that collects ratings."""
        return _Meter(rating_feature(measure))

    def decide(self, counts: Sequence[float], decide: Mapping[str, Any]) -> MetricResult:
        """The mean rating over ``scale``."""
        curve = np.array(counts, np.float64) / scale_of(decide)
        total = math.fsum(curve)
        return MetricResult.of(
            self.name,
            total / len(curve),
            detail={"frames": len(curve), "count": len(curve)} | ({"sum": total} if math.isfinite(total) else {}),
            curves={self.name: curve},
        )


METRIC = AestheticQuality()


def aesthetic_quality(
    clip: NDArray[np.uint8], *, protocol: str = "corrected", device: str = "cpu", dtype: str = "float32"
) -> MetricResult:
    """How people would rate the frames of a clip as pictures, about 0..1, not clipped.

    LAION's linear predictor on the unit embeddings of CLIP ViT-L/14 of the central square, over 10, mean over frames.

    Args:
        clip: (T, H, W, 3) uint8 RGB; one frame is enough.
        protocol: ``corrected`` or ``reference``; they differ in how clips are averaged.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of CLIP: ``float32``, ``bfloat16`` or ``float16``; the predictor is float32.

    Returns:
        A result with the curve ``aesthetic_quality`` and the ``sum`` and ``count`` of the mean in its detail. Without
        the checkpoints ``clip_vitl14_visual`` and ``aesthetic_head`` it has the reason ``missing_weights``.

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, aesthetic quality; PAI-Bench, appendix A.2; LAION-AI/aesthetic-predictor.

    Example:
        >>> import numpy as np
        >>> print(aesthetic_quality(np.zeros((1, 64, 64, 3), np.uint8)))  # doctest: +SKIP
        aesthetic_quality 0.413 [constant_frame]
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), placement=placement_of(device, dtype))
