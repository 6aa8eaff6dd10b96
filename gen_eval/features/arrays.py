"""The array door: a metric on clips that are already in memory, by the same meters as the video door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features.alignment import check_aspect, resize_frames
from gen_eval.features.extraction import extract
from gen_eval.features.metric import Coverage, Metric, StreamInfo
from gen_eval.protocols import Protocol
from gen_eval.records import ItemError, MetricResult

_CHUNK = 8


def check_clip(clip: Any, name: str) -> NDArray[np.uint8]:
    """``clip`` itself if it is a video as arrays.

    Raises:
        TypeError: it is not an array.
        ValueError: it is not ``(T, H, W, 3)`` uint8 RGB with at least one frame; the message names what it is.
    """
    if not isinstance(clip, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array (T, H, W, 3) uint8 RGB, not {type(clip).__name__}")
    if clip.dtype != np.uint8 or clip.ndim != 4 or clip.shape[-1] != 3:
        raise ValueError(
            f"{name} must be (T, H, W, 3) uint8 RGB, not {clip.shape} {clip.dtype}; "
            "scale floats to 0..255 and convert first, drop a batch axis, repeat gray three times"
        )
    if 0 in clip.shape:
        raise ValueError(f"{name} has shape {clip.shape}: at least one frame and one pixel are needed")
    return clip


def measure_single(metric: Metric, clip: NDArray[np.uint8], protocol: Protocol) -> MetricResult:
    """``metric`` of one clip ``(T, H, W, 3)`` uint8 RGB."""
    check_clip(clip, "clip")
    features = metric.member_features(protocol.measure)
    try:
        meter = metric.meter(protocol.measure, StreamInfo(clip.shape[1], clip.shape[2]))
        for start in range(0, len(clip), _CHUNK):
            meter.update(extract(features, clip[start : start + _CHUNK]))
    except ItemError as error:
        return without_value(metric, protocol, error)
    return finish(metric, meter.counts(), protocol)


def measure_pair(
    metric: Metric, prediction: NDArray[np.uint8], reference: NDArray[np.uint8], protocol: Protocol
) -> MetricResult:
    """``metric`` of a generated clip against its reference clip, aligned as the protocol says.

    Args:
        metric: a metric with ``inputs == "pair"`` on frames.
        prediction: (T, H, W, 3) uint8 RGB.
        reference: likewise; another length or size is brought together by the protocol's rule.
        protocol: the metric's parameters.
    """
    check_clip(prediction, "prediction")
    check_clip(reference, "reference")
    size = (reference.shape[1], reference.shape[2])
    own = (prediction.shape[1], prediction.shape[2])
    coverage = Coverage(min(len(prediction), len(reference)), len(prediction), len(reference), own != size)
    measure = protocol.measure
    try:
        check_aspect(own, size, measure["aspect_tolerance"])
        meter = metric.meter(measure, StreamInfo(*size))
    except ItemError as error:
        return without_value(metric, protocol, error)
    for start in range(0, coverage.common, _CHUNK):
        part = slice(start, min(start + _CHUNK, coverage.common))
        aligned = resize_frames(prediction[part], size, measure["resize"])
        meter.update(
            extract(metric.member_features(measure), aligned),
            extract(metric.reference_features(measure), reference[part]),
        )
    return coverage.annotate(finish(metric, meter.counts(), protocol))


def measure_set(metric: Metric, clips: Sequence[NDArray[np.uint8]], protocol: Protocol) -> MetricResult:
    """``metric`` of several clips of one sample together, over their common prefix."""
    for index, clip in enumerate(clips):
        check_clip(clip, f"clips[{index}]")
    features = metric.member_features(protocol.measure)
    common = min((len(clip) for clip in clips), default=0)
    try:
        meter = metric.meter(protocol.measure, [StreamInfo(clip.shape[1], clip.shape[2]) for clip in clips])
        for start in range(0, common, _CHUNK):
            part = slice(start, min(start + _CHUNK, common))
            meter.update([extract(features, clip[part]) for clip in clips])
    except ItemError as error:
        return without_value(metric, protocol, error)
    return finish(metric, meter.counts(), protocol)


def finish(metric: Metric, counts: Any, protocol: Protocol) -> MetricResult:
    """The decision of ``protocol`` on ``counts``, under the names that the protocol uses."""
    result = metric.decide(counts, protocol.decide)
    if (reason := result.reason) is not None:
        renamed = protocol.reason(reason)
        detail = protocol.explain(reason, result.detail)
        result = replace(result, reason=renamed, status=renamed.status, detail=detail)
    return replace(result, protocol=protocol.name)


def without_value(metric: Metric, protocol: Protocol, error: ItemError) -> MetricResult:
    """The result of ``metric`` for an item that ended with ``error``, under the names that the protocol uses."""
    return MetricResult.without_value(
        metric.name,
        protocol.reason(error.reason),
        error.message,
        detail=protocol.explain(error.reason, error.detail),
        protocol=protocol.name,
    )
