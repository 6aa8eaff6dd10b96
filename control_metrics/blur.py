"""Blur fidelity: structural similarity of the two clips after one bilateral filter.

Source: PAI-Bench-C, blur SSIM; SSIM by Wang et al. 2004. The filter makes the metric look at layout and colour and not
at texture. The map is averaged over all pixels, its border included, with the data range taken from each reference
frame, as the public code does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from control_metrics._ssim import FrameSsim, literal_mean, moments
from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_pair
from gen_eval.networks import current
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, ItemError, MetricResult, Reason


def bilateral_blur(
    frames: NDArray[np.uint8], *, diameter: int, sigma_color: float, sigma_space: float
) -> NDArray[np.uint8]:
    """``frames`` (n, H, W, 3) uint8 RGB, each through ``cv2.bilateralFilter`` with its default border.

    Where networks are placed on an accelerator, it computes the same there; a level may then be off by one.
    """
    if not current().device.startswith("cpu"):
        from gen_eval.networks.bilateral import bilateral_filter

        return bilateral_filter(frames, diameter=diameter, sigma_color=sigma_color, sigma_space=sigma_space)
    blurred = np.empty_like(frames)
    for index, frame in enumerate(frames):
        if index and np.array_equal(frame, frames[index - 1]):
            blurred[index] = blurred[index - 1]  # clips that stand still repeat frames; looking costs next to nothing
        else:
            blurred[index] = cv2.bilateralFilter(frame, diameter, sigma_color, sigma_space)
    return blurred


def blur_feature(measure: Measure) -> Feature:
    """The blurred frames that ``measure`` asks for."""
    names = ("diameter", "sigma_color", "sigma_space")
    return Feature("bilateral_blur", bilateral_blur, tuple((name, measure[name]) for name in names))


def moments_feature(measure: Measure) -> Feature:
    """Window sums, spreads and ranges of the blurred frames: the part of SSIM that one side contributes alone."""
    return Feature("ssim_moments", moments, (("window", measure["window"]),), blur_feature(measure))


@dataclass
class BlurCounts:
    """Mean SSIM of each frame.

    Attributes:
        frames: one value a frame; for constant reference frames that of a data range of 0, maybe not finite.
        constant: frame number -> value with the substitute range, for reference frames of one value.
    """

    frames: list[float] = field(default_factory=list)
    constant: dict[int, float] = field(default_factory=dict)


class _BlurMeter:
    def __init__(self, measure: Measure, size: StreamInfo) -> None:
        self._blurred, self._moments = blur_feature(measure), moments_feature(measure)
        self._constants = {name: measure[name] for name in ("window", "k1", "k2")}
        self._substitute = float(measure["constant_range"])
        self._ssim = FrameSsim((size.height, size.width, 3), precision=measure["precision"], **self._constants)
        self._counts = BlurCounts()

    def update(self, prediction: Chunk, reference: Chunk) -> Sequence[float]:
        generated, real = prediction[self._blurred], reference[self._blurred]
        values = []
        for x, y, sums, spread, reach in zip(real, generated, *reference[self._moments], strict=True):
            number = len(self._counts.frames)
            value = self._ssim.mean(x, y, sums, spread, float(reach) or self._substitute)
            if reach == 0:
                self._counts.constant[number] = value
                self._counts.frames.append(literal_mean(x, y, reach=0.0, **self._constants))
            else:
                self._counts.frames.append(value)
            values.append(value)
        return values

    def counts(self) -> BlurCounts:
        return self._counts


class BlurSsim(Metric):
    """Mean SSIM of bilaterally blurred frames."""

    name = "blur_ssim"
    track = "control"
    inputs = "pair"
    bounds = (-1.0, 1.0)
    accelerated = True
    source = "PAI-Bench-C, blur SSIM (public code)"
    evidence_words: ClassVar[Mapping[str, str]] = {
        "blurred": "the generated frame as it is compared, blurred",
        "blurred_reference": "the reference frame, blurred",
    }

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The blurred frames."""
        return (blur_feature(measure),)

    def reference_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The blurred frames and their moments, shared by all members of the group."""
        return (blur_feature(measure), moments_feature(measure))

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter for frames of the reference's size.

        Raises:
            ItemError: ``too_small``, a side is below the window.
        """
        assert isinstance(member, StreamInfo)
        least = int(measure["window"])
        if min(member.height, member.width) < least:
            raise ItemError(
                Reason.TOO_SMALL,
                f"SSIM needs frames of at least {least}x{least} pixels, these are {member.width}x{member.height} "
                "(width x height); the reference code raises ValueError here",
                {"size_hw": [member.height, member.width], "least": least, "reference_exception": "ValueError"},
            )
        return _BlurMeter(measure, member)

    def evidence(self, chunks: Sequence[Chunk], index: int) -> Mapping[str, NDArray[np.uint8]]:
        """Both frames as they are compared."""
        blurred = [
            next(frames for feature, frames in chunk.items() if feature.name == "bilateral_blur") for chunk in chunks
        ]
        return {"blurred": blurred[0][index], "blurred_reference": blurred[1][index]}

    def decide(self, counts: BlurCounts, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over frames.

        ``constant_frames`` says what a reference frame of one value counts: ``literal`` (a data range of 0, as
        max - min gives; mostly NaN, near 0 against a frame that varies everywhere) or ``substituted`` (the range of
        the ``measure`` section).
        """
        rule = decide["constant_frames"]
        if rule not in {"literal", "substituted"}:
            raise InputError(f"unknown rule constant_frames {rule!r}; expected literal or substituted")
        if not counts.frames:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "there is no common frame")
        values = np.array(counts.frames, dtype=np.float64)
        if rule == "substituted":
            values[list(counts.constant)] = list(counts.constant.values())
        detail = {"constant_frames": sorted(counts.constant)} if counts.constant else {}
        value = float(values.mean()) if np.isfinite(values).all() else math.nan
        result = MetricResult.of(self.name, value, detail=detail, curves={self.name: values})
        return result.with_flags(Flag.CONSTANT_FRAME) if counts.constant and result.value is not None else result


METRIC = BlurSsim()


def blur_ssim(
    prediction: NDArray[np.uint8], reference: NDArray[np.uint8], *, protocol: str = "corrected"
) -> MetricResult:
    """Structural similarity of two clips after a bilateral blur, -1..1, 1 for equal clips.

    Both clips are blurred frame by frame (diameter 30, sigma 150 in colour and 100 in space). SSIM has a uniform 7 x 7
    window over each channel, K1 0.01, K2 0.03, and the data range max - min of the blurred reference frame; the map is
    averaged over all pixels, channels and frames.

    Args:
        prediction: generated clip (T, H, W, 3) uint8 RGB; another size is resized to the reference's, of another length
            the common first frames are compared.
        reference: real clip (T, H, W, 3) uint8 RGB, sides of 7 pixels or more.
        protocol: ``corrected``, ``reference`` or ``reference-v2``. They differ for reference frames of one value only
            (``corrected``: range 255 and the flag ``constant_frame``), in how sizes are brought together, and in what
            happens when the shapes differ by more than 5 % (``corrected``: ``aspect_mismatch``).

    Returns:
        A result with the curve ``blur_ssim`` (one value a frame). Without a value: ``too_small``, ``aspect_mismatch``,
        ``not_finite`` and, under ``reference``, ``reference_stops``.

    Raises:
        TypeError: an argument is not an array.
        ValueError: an argument is not (T, H, W, 3) uint8.
        InputError: there is no such protocol.

    Source:
        PAI-Bench-C, blur SSIM; Wang et al. 2004.

    Example:
        >>> import numpy as np
        >>> ramp = np.arange(2 * 8 * 9 * 3, dtype=np.uint8).reshape(2, 8, 9, 3)
        >>> print(blur_ssim(ramp, ramp))
        blur_ssim 1
    """
    return measure_pair(METRIC, prediction, reference, load_protocol(METRIC.name, protocol))
