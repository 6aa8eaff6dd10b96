"""Temporal flickering: how little neighbouring frames differ.

Source: VBench, temporal flickering. It is meant for videos that should be still; on moving clips it measures motion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.features import FRAMES, Chunk, Measure, Meter, Metric, StreamInfo, measure_single
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError, MetricResult, Reason

_WHITE = 255


@dataclass
class FlickerCounts:
    """Sums of absolute differences.

    Attributes:
        values: numbers in one frame (H * W * 3).
        frames: frames seen.
        sums: for each pair of neighbouring frames the sum over pixels and channels.
    """

    values: int
    frames: int = 0
    sums: list[int] = field(default_factory=list)


class _FlickerMeter:
    def __init__(self, size: StreamInfo) -> None:
        self._counts = FlickerCounts(size.height * size.width * 3)
        self._last: NDArray[np.uint8] | None = None

    def update(self, clip: Chunk) -> Sequence[float]:
        frames: NDArray[np.uint8] = clip[FRAMES]
        scores = []
        for frame in frames:
            if self._last is None:
                scores.append(math.inf)  # the first frame has no pair and is never the worst
            else:
                # sums of bytes are whole numbers far below 2^53: the norm is exact
                total = int(cv2.norm(frame, self._last, cv2.NORM_L1))
                self._counts.sums.append(total)
                scores.append(1 - total / (_WHITE * self._counts.values))
            self._last = frame
            self._counts.frames += 1
        if self._last is not None:
            self._last = self._last.copy()  # the chunk's memory is used again
        return scores

    def counts(self) -> FlickerCounts:
        return self._counts


class TemporalFlickering(Metric):
    """(255 - mean absolute difference of neighbouring frames) / 255."""

    name = "temporal_flickering"
    track = "quality"
    inputs = "single"
    marks_constant_frames = True
    source = "VBench, temporal flickering (public code)"
    caveat = "meant for clips that should be still; on moving clips it measures motion, and a frozen clip scores best"

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter for the clip's frames at their own size."""
        assert isinstance(member, StreamInfo)
        return _FlickerMeter(member)

    def decide(self, counts: FlickerCounts, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over pairs, then the score.

        ``precision`` is that of both steps (the means of pairs are rounded to it); ``single_frame`` the reason of a
        clip without a pair.
        """
        if decide["precision"] not in {"float32", "float64"}:
            raise InputError(f"unknown precision {decide['precision']!r}; expected float32 or float64")
        detail = {"frames": counts.frames, "pairs": len(counts.sums)}
        if not counts.sums:
            message = f"the clip has {counts.frames} frame(s); neighbouring frames are compared, so 2 are needed"
            return MetricResult.without_value(self.name, Reason(decide["single_frame"]), message, detail=detail)
        means = (np.array(counts.sums, np.float64) / counts.values).astype(decide["precision"])
        curve = np.concatenate([[math.nan], 1 - means.astype(np.float64) / _WHITE])
        score = float((_WHITE - means.mean()) / _WHITE)
        return MetricResult(
            self.name,
            score,
            detail={**detail, "mean_absolute_difference": float(means.mean())},
            curves={self.name: curve},
        )


METRIC = TemporalFlickering()


def temporal_flickering(clip: NDArray[np.uint8], *, protocol: str = "corrected") -> MetricResult:
    """How little neighbouring frames differ, 0..1, 1 for a still clip.

    With m the mean absolute difference over pixels, channels and neighbouring pairs of frames, (255 - m) / 255. On a
    clip that should move it measures motion and is no quality.

    Args:
        clip: (T, H, W, 3) uint8 RGB.
        protocol: ``corrected`` (float64; a single frame is ``too_few_frames``) or ``reference`` (float32; a single
            frame gives NaN, so ``not_finite``).

    Returns:
        A result with the curve ``temporal_flickering`` (the value of each frame against the one before, ``nan`` for the
        first) and ``mean_absolute_difference`` in its detail, 0..255.

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol.

    Source:
        VBench, temporal flickering.

    Example:
        >>> import numpy as np
        >>> clip = np.zeros((2, 4, 4, 3), np.uint8)
        >>> clip[:, 0] = 9
        >>> clip[1] += 51
        >>> print(temporal_flickering(clip))
        temporal_flickering 0.8
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol))
