"""Imaging quality: how free each frame is of noise, blur and wrong exposure, as MUSIQ learned it on SPAQ.

Source: VBench, imaging quality; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_single
from gen_eval.networks import embedding_feature, placement_of
from gen_eval.protocols import load_protocol
from gen_eval.quality._ratings import ratings, scale_of
from gen_eval.records import MetricResult


class _Meter:
    def __init__(self, feature: Feature, network: str) -> None:
        self._feature, self._network = feature, network
        self._ratings: list[float] = []

    def update(self, clip: Chunk) -> Sequence[float]:
        found: list[float] = ratings(clip[self._feature], network=self._network).tolist()
        self._ratings += found
        return found

    def counts(self) -> list[float]:
        return self._ratings


class ImagingQuality(Metric):
    """Mean of MUSIQ's ratings of the frames, over 100."""

    name = "imaging_quality"
    track = "quality"
    inputs = "single"
    bounds = (None, None)
    further_units: ClassVar[Mapping[str, str]] = {"raw": "of 100"}
    marks_constant_frames = True
    source = "VBench, imaging quality; PAI-Bench-G, section 3.1 and appendix A.2 (public code)"

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The rating of each frame, as MUSIQ gives it (0..100 in practice)."""
        return (embedding_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """MUSIQ."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that collects ratings."""
        return _Meter(embedding_feature(measure), str(measure["network"]))

    def decide(self, counts: Sequence[float], decide: Mapping[str, Any]) -> MetricResult:
        """The mean rating over ``scale``; the mean itself is ``raw`` among the values."""
        found = np.array(counts, np.float64)
        raw = math.fsum(found) / len(found) if np.isfinite(found).all() else math.nan
        return MetricResult.of(
            self.name,
            raw / scale_of(decide),
            values={"raw": raw},
            detail={"frames": len(found)},
            curves={self.name: found / scale_of(decide)},
        )


METRIC = ImagingQuality()


def imaging_quality(
    clip: NDArray[np.uint8], *, protocol: str = "corrected", device: str = "cpu", dtype: str = "float32"
) -> MetricResult:
    """How free of noise, blur and wrong exposure the frames of a clip are, about 0..1, not clipped.

    MUSIQ's rating of each frame (trained on the smartphone pictures of SPAQ), over 100, mean over frames. Frames whose
    longer side has more than 512 pixels are shrunk to it first.

    Args:
        clip: (T, H, W, 3) uint8 RGB; one frame is enough.
        protocol: ``corrected`` or ``reference``; they differ in how clips are averaged, and in the name under which a
            clip is reported that is too narrow. The public code writes 0..100 for a clip and 0..1 for all of them: here
            the value is 0..1 under both, and 0..100 is kept as ``raw``.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with ``values["raw"]`` (0..100) and the curve ``imaging_quality`` (0..1, one value a frame). Without a
        value: ``too_small`` (one side is 448 times the other or more; ``reference_stops`` under ``reference``),
        ``not_finite``, ``missing_weights`` (checkpoint ``musiq_spaq``).

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, imaging quality; PAI-Bench, appendix A.2; Ke et al. 2021 (MUSIQ).

    Example:
        >>> import numpy as np
        >>> print(imaging_quality(np.zeros((1, 64, 64, 3), np.uint8)))  # doctest: +SKIP
        imaging_quality 0.113, raw 11.3 [constant_frame]
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), placement=placement_of(device, dtype))
