"""Motion smoothness: how well AMT-S guesses each second frame from its two neighbours.

Source: VBench, motion smoothness; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_single
from gen_eval.networks import placement_of
from gen_eval.networks.motion import LEAST_SIDE, interpolation_feature, too_small_to_interpolate
from gen_eval.protocols import load_protocol
from gen_eval.records import MetricResult, Reason

_WHITE = 255


@dataclass
class InterpolationErrors:
    """How far guessed frames are from those of the clip.

    Attributes:
        size: height and width of a frame.
        too_small: whether the network has no value for frames of this size.
        frames: frames seen.
        errors: of frames 1, 3, 5, ... that have a frame on either side: mean absolute difference, 0..255.
    """

    size: tuple[int, int]
    too_small: bool = False
    frames: int = 0
    errors: list[float] = field(default_factory=list)


class _Meter:
    def __init__(self, feature: Feature, info: StreamInfo) -> None:
        self._feature = feature
        self._counts = InterpolationErrors((info.height, info.width), too_small_to_interpolate(info))

    def update(self, clip: Chunk) -> Sequence[float]:
        counts, errors = self._counts, clip[self._feature]
        scores = [math.inf] * len(errors)
        for index, error in enumerate(errors.tolist()):
            if counts.frames % 2 == 0 and counts.frames >= 2:
                counts.errors.append(error)
                scores[index] = 1 - error / _WHITE  # of the frame before, which was guessed
            counts.frames += 1
        return scores

    def counts(self) -> InterpolationErrors:
        return self._counts


class MotionSmoothness(Metric):
    """(255 - mean absolute difference of frames 1, 3, 5, ... from what AMT-S puts in their place) / 255."""

    name = "motion_smoothness"
    track = "quality"
    inputs = "single"
    judges_frame_before = True
    marks_constant_frames = True
    source = "VBench, motion smoothness; PAI-Bench-G, section 3.1 and appendix A.2 (public code)"

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The error of the guessed frame before each frame that completes a pair."""
        return (interpolation_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """AMT-S."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that collects errors."""
        assert isinstance(member, StreamInfo)
        return _Meter(interpolation_feature(measure), member)

    def decide(self, counts: InterpolationErrors, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over guessed frames, then the score."""
        detail: dict[str, Any] = {"frames": counts.frames, "guessed": len(counts.errors)}
        if not counts.errors:
            message = (
                f"the clip has {counts.frames} frame(s); a frame is guessed from its two neighbours, so 3 are needed"
            )
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, message, detail=detail)
        if counts.too_small:
            height, width = counts.size
            message = (
                f"the clip is {width}x{height}; with border pixels repeated to multiples of 16, the shorter side must "
                f"have {LEAST_SIDE} pixels: generate larger frames"
            )
            return MetricResult.without_value(self.name, Reason.TOO_SMALL, message, detail=detail)
        errors = np.array(counts.errors, np.float64)
        curve = np.full(counts.frames, math.nan)
        curve[1 : 2 * len(errors) : 2] = 1 - errors / _WHITE
        mean = math.fsum(errors) / len(errors) if np.isfinite(errors).all() else math.nan
        return MetricResult.of(
            self.name,
            (_WHITE - mean) / _WHITE,
            detail=detail | ({"mean_absolute_difference": mean} if math.isfinite(mean) else {}),
            curves={self.name: curve},
        )


METRIC = MotionSmoothness()


def motion_smoothness(
    clip: NDArray[np.uint8], *, protocol: str = "corrected", device: str = "cpu", dtype: str = "float32"
) -> MetricResult:
    """How smoothly a clip moves, 0..1: how close each second frame is to what AMT-S makes of its two neighbours.

    Of frames 0, 2, 4, ... each neighbouring pair gives a guess of the frame between them, in 8-bit steps cut off below.
    With m the mean absolute difference of the guesses from frames 1, 3, 5, ..., (255 - m) / 255. When the number of
    frames is even, the last one is not used.

    Args:
        clip: (T, H, W, 3) uint8 RGB.
        protocol: ``corrected`` or ``reference``; they differ in the names under which clips without a value are
            reported, and in how clips are averaged.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``; positions stay float32.

    Returns:
        A result with the curve ``motion_smoothness`` (values at frames 1, 3, 5, ..., ``nan`` elsewhere) and
        ``mean_absolute_difference`` in its detail, 0..255. Without a value: ``too_few_frames`` (fewer than three;
        ``reference_stops`` under ``reference``), ``too_small`` (a side below 113 pixels; ``not_finite`` under
        ``reference``), ``not_finite``, ``missing_weights`` (checkpoint ``amt_s``).

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, motion smoothness; PAI-Bench, appendix A.2; Li et al. 2023 (AMT).

    Example:
        >>> import numpy as np
        >>> print(motion_smoothness(np.zeros((3, 128, 128, 3), np.uint8)))  # doctest: +SKIP
        motion_smoothness 0.999 [constant_frame]
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), placement=placement_of(device, dtype))
