"""Depth fidelity: error of relative depth after one scale a frame has been fitted by medians.

Source: PAI-Bench-C, depth si-RMSE. The maps are relative inverse depth; the arithmetic takes them as they are given.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from control_metrics._depth_errors import chosen, log_rmse, median, si_rmse
from control_metrics.pictures import depth_pictures
from control_metrics.signals import open_depth
from gen_eval.features import FRAMES, Chunk, ClipSignal, Coverage, Measure, Meter, Metric, StreamInfo
from gen_eval.features.alignment import RESIZE_RULES, resize_frames
from gen_eval.features.arrays import finish
from gen_eval.networks.depth import depth_signal
from gen_eval.protocols import load_protocol
from gen_eval.protocols.values import number_above, word_of
from gen_eval.records import Flag, InputError, ItemError, MetricResult, Reason

Maps = NDArray[np.floating[Any]]

_CHUNK = 8


@dataclass(frozen=True)
class FrameError:
    """Errors of one frame; ``None`` when the frame has no valid pixel.

    Attributes:
        finite: over pixels that are positive and finite in both maps.
        positive: over pixels that are positive in both maps, infinity included; it may not be finite.
        log: in log space, over pixels that are positive and finite in both maps.
    """

    finite: float | None
    positive: float | None
    log: float | None = None


class DepthMeter:
    """Errors of each frame, for predictions of any size.

    Args:
        measure: ``resize`` (how a prediction of another size is brought to the reference's) and ``residual_cap``.

    Raises:
        InputError: the rule is not known, or the cap is not above 0.
    """

    def __init__(self, measure: Measure) -> None:
        self._rule, self._cap = word_of(measure, "resize", RESIZE_RULES), measure["residual_cap"]
        if self._cap is not None:
            number_above(measure, "residual_cap", 0)
        self._frames: list[FrameError] = []

    def update(self, prediction: Chunk, reference: Chunk) -> Sequence[float]:
        """Take in chunks of maps; returns minus the error of each frame."""
        return self.add(prediction[FRAMES], reference[FRAMES])

    def add(self, prediction: Maps, reference: Maps, mask: NDArray[np.bool_] | None = None) -> Sequence[float]:
        """Take in maps (n, H, W), with ``mask`` only the pixels where it is set (at the reference's size)."""
        aligned = resize_frames(prediction, (reference.shape[1], reference.shape[2]), self._rule)
        before = len(self._frames)
        for index, (own, other) in enumerate(zip(aligned, reference, strict=True)):
            positive = (other > 0) & (own > 0)
            if mask is not None:
                positive &= mask[index]
            self._frames.append(self._frame(own, other, positive))
        errors = [frame.finite for frame in self._frames[before:]]
        return [math.inf if error is None else -error for error in errors]

    def _frame(self, own: Maps, other: Maps, positive: NDArray[np.bool_]) -> FrameError:
        # infinity is rare: its mask is made only when the largest value is not finite (NaN is never above 0)
        finite = positive
        if not (math.isfinite(own.max()) and math.isfinite(other.max())):
            finite = positive & (own < np.inf) & (other < np.inf)
        pixels = chosen(own, other, finite)
        error = None if pixels is None else si_rmse(*pixels, self._cap)
        log = None if pixels is None else log_rmse(*pixels)
        if finite is not positive and not np.array_equal(finite, positive):
            infinite = chosen(own, other, positive)
            return FrameError(error, None if infinite is None else si_rmse(*infinite, self._cap), log)
        return FrameError(error, error, log)

    def counts(self) -> list[FrameError]:
        """Errors of all frames so far."""
        return self._frames


class DepthSiRmse(Metric):
    """Root mean square error of depth after per-frame median scaling; smaller is better."""

    name = "depth_si_rmse"
    track = "control"
    inputs = "pair"
    signal = "depth"
    unit = "reference depth"
    further_units: ClassVar[Mapping[str, str]] = {"log": "log depth"}
    bounds = (0.0, None)
    higher_is_better = False
    source = "PAI-Bench-C, depth si-RMSE (public code)"
    evidence_words: ClassVar[Mapping[str, str]] = {
        "depth": "depth of the generated frame, scaled to the reference (bright is near)",
        "depth_reference": "depth of the reference frame, on the same scale",
        "depth_error": "where they differ (bright is much; gray: no valid depth)",
    }

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter for maps (n, H, W); the prediction's chunks come at its own size."""
        return DepthMeter(measure)

    def clip_signal(self, measure: Measure) -> ClipSignal:
        """The maps that the network of the protocol makes of a clip that comes without."""
        return depth_signal(measure)

    def measure_files(
        self, member: Path, reference: Path, measure: Measure, *, limit: int | None
    ) -> tuple[list[FrameError], Coverage]:
        """Errors of the depth maps in two ``.npz`` files, read a few frames at a time.

        Raises:
            ItemError: ``undecodable``, a file cannot be read.
        """
        meter = DepthMeter(measure)
        with open_depth(member) as own, open_depth(reference) as other:
            left_length, right_length = (min(limit or one.shape[0], one.shape[0]) for one in (own, other))
            common = min(left_length, right_length)
            for left, right in zip(own.chunks(_CHUNK, common), other.chunks(_CHUNK, common), strict=True):
                meter.add(left, right)
            resized = own.shape[1:] != other.shape[1:]
            return meter.counts(), _coverage(meter.counts(), left_length, right_length, resized)

    def file_evidence(
        self, counts: Sequence[FrameError], member: Path, reference: Path, measure: Measure
    ) -> tuple[int | None, Mapping[str, NDArray[np.uint8]]]:
        """The frame with the largest error: both maps, and where they differ."""
        errors = [-math.inf if frame.finite is None else frame.finite for frame in counts]
        if not errors or max(errors) == -math.inf:
            return None, {}
        worst = int(np.argmax(errors))
        own, other = _map_of(member, worst), _map_of(reference, worst)
        (aligned,) = resize_frames(own[None], other.shape, str(measure["resize"]))
        with np.errstate(over="ignore"):  # what is too large for a number is shown as a pixel that does not count
            fitted = aligned.astype(np.float64) * _scale(aligned, other)
        return worst, depth_pictures(fitted, other)

    def decide(self, counts: list[FrameError], decide: Mapping[str, Any]) -> MetricResult:
        """The mean over frames.

        ``dead_frames`` says what a frame without a valid pixel counts: ``zero``, or it is ``left_out``;
        ``infinities`` whether infinite pixels are ``kept`` or ``left_out``.
        """
        dead_rule, infinities = decide["dead_frames"], decide["infinities"]
        if dead_rule not in {"zero", "left_out"} or infinities not in {"kept", "left_out"}:
            raise InputError(f"unknown rule dead_frames {dead_rule!r} or infinities {infinities!r}")
        if not counts:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "there is no common frame")
        errors = [frame.positive if infinities == "kept" else frame.finite for frame in counts]
        curve = np.array([math.nan if error is None else error for error in errors], dtype=np.float64)
        dead = sum(error is None for error in errors)
        known: dict[str, Any] = {"detail": {"dead_frames": dead}, "curves": {self.name: curve}}
        value = _mean(errors, dead_rule)
        if value is None:
            message = "no frame has a pixel with positive depth in both maps"
            return MetricResult.without_value(self.name, Reason.NO_VALID_DEPTH, message, **known)
        result = MetricResult.of(
            self.name, value, values={"log": _mean([frame.log for frame in counts], dead_rule)}, **known
        )
        return result.with_flags(Flag.DEAD_FRAMES) if dead and result.value is not None else result


METRIC = DepthSiRmse()


def _mean(errors: Sequence[float | None], dead_rule: str) -> float | None:
    """Mean over frames, ``None`` where there is none to count; not finite when one of them is not."""
    used = [0.0 if error is None else error for error in errors if error is not None or dead_rule == "zero"]
    if not used:
        return None
    return math.fsum(used) / len(used) if np.isfinite(used).all() else math.nan


@dataclass(frozen=True)
class AbsoluteErrors:
    """How two depth maps differ when neither is scaled; see :func:`absolute_errors`.

    Attributes:
        abs_rel: mean over frames of mean(abs(reference - prediction) / reference); smaller is better.
        deltas: share of pixels whose ratio (the larger over the smaller) is below 1.25, 1.25^2 and 1.25^3.
    """

    abs_rel: float
    deltas: tuple[float, float, float]


def absolute_errors(prediction: Maps, reference: Maps) -> AbsoluteErrors:
    """Relative error and threshold accuracies of depth in one common unit, in float32.

    For depth whose scale means something. The maps of :func:`depth_si_rmse` are known up to scale only, where these
    numbers say nothing: they are no part of that metric.

    Args:
        prediction: depth (T, H, W) float.
        reference: likewise, of the same shape.

    Raises:
        TypeError: an argument is not an array.
        ValueError: maps are not (T, H, W) float, or differ in shape.
        ItemError: ``no_valid_depth``: a frame has no pixel that is positive and finite in both maps.

    Source:
        PAI-Bench-C public code, where nothing uses them; Eigen et al. 2014.

    Example:
        >>> absolute_errors(np.array([[[1.0, 3.0]]]), np.array([[[1.0, 2.0]]]))
        AbsoluteErrors(abs_rel=0.25, deltas=(0.5, 1.0, 1.0))
    """
    own, other = _check_maps(prediction, "prediction"), _check_maps(reference, "reference")
    if own.shape != other.shape:
        raise ValueError(f"prediction has shape {own.shape}, reference {other.shape}; both must have the same")
    rows = [_absolute_of(index, *pair) for index, pair in enumerate(zip(own, other, strict=True))]
    means = np.mean(np.asarray(rows, np.float32), axis=0)
    return AbsoluteErrors(float(means[0]), (float(means[1]), float(means[2]), float(means[3])))


def _absolute_of(index: int, prediction: Maps, reference: Maps) -> list[np.floating[Any]]:
    valid = (reference > 0) & (prediction > 0) & np.isfinite(reference) & np.isfinite(prediction)
    if not valid.any():
        said = f"frame {index} has no pixel with positive depth in both maps"
        raise ItemError(Reason.NO_VALID_DEPTH, said, {"frame": index})
    own, other = prediction[valid].astype(np.float32), reference[valid].astype(np.float32)
    ratio = np.maximum(other / own, own / other)
    close = [np.mean(ratio < limit, dtype=np.float32) for limit in (1.25, 1.25**2, 1.25**3)]
    return [np.mean(np.abs(other - own) / other), *close]


def _map_of(path: Path, number: int) -> Maps:
    """The map of one frame of a file; those before it are read and let go."""
    with open_depth(path) as file:
        (last,) = deque(file.chunks(1, number + 1), maxlen=1)
        found: Maps = last[0]
        return found


def _scale(own: Maps, other: Maps) -> float:
    """The factor that the metric fits."""
    valid = (own > 0) & (other > 0) & (own < np.inf) & (other < np.inf)
    return median(other[valid]) / median(own[valid])


def _coverage(counts: Sequence[FrameError], member: int, reference: int, resized: bool) -> Coverage:
    """Frames without a valid pixel are not covered, whatever they count."""
    return Coverage(sum(frame.positive is not None for frame in counts), member, reference, resized)


def _check_maps(maps: Any, name: str) -> Maps:
    if not isinstance(maps, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array (T, H, W) of floats, not {type(maps).__name__}")
    if maps.ndim != 3 or maps.dtype.kind != "f":
        raise ValueError(
            f"{name} must be depth (T, H, W) of floats, not {maps.shape} {maps.dtype}; "
            "drop a channel axis, and convert pictures of depth back to depth first"
        )
    if 0 in maps.shape:
        raise ValueError(f"{name} has shape {maps.shape}: at least one frame and one pixel are needed")
    # OpenCV resizes neither half precision nor foreign byte order
    return maps.astype(np.float64 if maps.dtype.itemsize > 4 else np.float32, copy=False)


def _check_mask(mask: Any, reference: Maps, common: int) -> NDArray[np.bool_]:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.ndim != 3:
        found = f"{mask.shape} {mask.dtype}" if isinstance(mask, np.ndarray) else type(mask).__name__
        raise ValueError(f"mask must be an array (T, H, W) of bool, not {found}")
    if mask.shape[1:] != reference.shape[1:] or len(mask) < common:
        raise ValueError(
            f"mask has shape {mask.shape}; expected the reference's height and width {reference.shape[1:]} "
            f"and at least {common} frames"
        )
    return mask


def _parts(common: int) -> Iterator[slice]:
    for start in range(0, common, _CHUNK):
        yield slice(start, min(start + _CHUNK, common))


def depth_si_rmse(
    prediction: Maps, reference: Maps, mask: NDArray[np.bool_] | None = None, *, protocol: str = "corrected"
) -> MetricResult:
    """Error of relative depth after median scaling, in the reference's unit; 0 or more, smaller is better.

    For each frame, over the pixels where both maps are above 0 (and ``mask`` is set), the prediction is multiplied by
    median(reference) / median(prediction); the frame's error is the root mean square of the residual in float64, the
    clip's the mean over its frames.

    Args:
        prediction: depth of the generated clip (T, H, W) float; another size is resized to the reference's (maps are
            resized whatever their shape), of another length the common first frames are compared.
        reference: depth of the real clip (T, H, W) float.
        mask: (T, H, W) bool at the reference's size; only pixels where it is set count.
        protocol: ``corrected``, ``reference`` or ``reference-v2``. ``corrected`` leaves out frames without a valid
            pixel and infinite pixels; under the others such a frame counts as 0. ``reference-v2`` clips residuals to
            ±10. ``reference`` resizes by nearest neighbour.

    Returns:
        A result with ``values["log"]``, the error in log space: sqrt(mean(d^2) - mean(d)^2) with d the difference of
        the logarithms, never capped; and the curve ``depth_si_rmse`` (``nan`` for frames without a valid pixel, whose
        number is ``detail["dead_frames"]``, flag ``dead_frames``). Without a value: ``no_valid_depth``, ``not_finite``.

    Raises:
        TypeError: an argument is not an array.
        ValueError: maps are not (T, H, W) float, or the mask does not fit.
        InputError: there is no such protocol.

    Source:
        PAI-Bench-C, depth si-RMSE.

    Example:
        >>> import numpy as np
        >>> depth = np.array([[[1.0, 2.0, 3.0]]])
        >>> depth_si_rmse(5 * depth, depth).value
        0.0
    """
    own, other = _check_maps(prediction, "prediction"), _check_maps(reference, "reference")
    common = min(len(own), len(other))
    chosen = None if mask is None else _check_mask(mask, other, common)
    parameters = load_protocol(METRIC.name, protocol)
    meter = DepthMeter(parameters.measure)
    for part in _parts(common):
        meter.add(own[part], other[part], None if chosen is None else chosen[part])
    result = finish(METRIC, meter.counts(), parameters)
    return _coverage(meter.counts(), len(own), len(other), own.shape[1:] != other.shape[1:]).annotate(result)
