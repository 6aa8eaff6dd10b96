"""The array door: a metric on clips that are already in memory, by the same meters as the video door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gen_eval.features.alignment import check_aspect, resize_frames
from gen_eval.features.extraction import ChunkFeatures, ChunkSizes, StreamMemory, extract
from gen_eval.features.feature import CONSTANT, Chunk, StreamInfo
from gen_eval.features.metric import Coverage, Measure, Metric, SelectingMeter, SetMeter
from gen_eval.features.selecting import chosen_of
from gen_eval.features.side_by_side import SideBySide
from gen_eval.networks.loading import ensure
from gen_eval.networks.placement import Placement, placed
from gen_eval.protocols import Protocol
from gen_eval.records import Flag, ItemError, MetricResult, Reason

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


def measure_single(
    metric: Metric,
    clip: NDArray[np.uint8],
    protocol: Protocol,
    *,
    fps: float | None = None,
    prompt: str | None = None,
    image: NDArray[np.uint8] | None = None,
    placement: Placement | None = None,
) -> MetricResult:
    """``metric`` of one clip.

    Args:
        metric: a metric with ``inputs == "single"``.
        clip: (T, H, W, 3) uint8 RGB.
        protocol: the metric's parameters.
        fps: frames a second, for metrics that look at time.
        prompt: text, for metrics that read it.
        image: condition image (H, W, 3) uint8 RGB, for metrics that compare with it.
        placement: where and how exactly networks run; float32 on the CPU by default.
    """
    check_clip(clip, "clip")
    try:
        with placed(placement or Placement()):
            counts, constant = _count_single(
                metric, clip, protocol.measure, fps, _context(metric, prompt, image, protocol)
            )
            result = finish(metric, counts, protocol)
    except ItemError as error:
        return without_value(metric, protocol, error)
    except MemoryError:
        return without_value(metric, protocol, out_of_memory())
    return result.with_flags(Flag.CONSTANT_FRAME) if constant and result.value is not None else result


def _context(
    metric: Metric, prompt: str | None, image: NDArray[np.uint8] | None, protocol: Protocol
) -> dict[str, Chunk]:
    """The keyword arguments of the meter that belong to the sample."""
    found: dict[str, Chunk] = {}
    if metric.uses_condition_image:
        if image is None:
            raise ItemError(Reason.MISSING_CONDITION_IMAGE, f"{metric.name} needs the condition image; none was given")
        found["image"] = extract(metric.image_features(protocol.measure), check_clip(image[None], "condition_image"))
    if metric.uses_prompt:
        if not (prompt or "").strip():
            raise ItemError(Reason.MISSING_PROMPT, f"{metric.name} compares the clip with a prompt; none was given")
        found["text"] = extract(metric.text_features(protocol.measure), [prompt])
    return found


def _count_single(
    metric: Metric, clip: NDArray[np.uint8], measure: Measure, fps: float | None, context: dict[str, Chunk]
) -> tuple[Any, bool]:
    """Counts of one clip, and whether one of its frames has one colour only (for metrics that mark it)."""
    for name in metric.networks(measure):
        ensure(name)
    info = StreamInfo(clip.shape[1], clip.shape[2], fps=fps)
    features, memory = metric.member_features(measure), StreamMemory(info)
    times = np.arange(len(clip)) / (fps or 1.0)
    meter = metric.meter(measure, info, **context)
    sizes, constant = ChunkSizes(), False
    for start in range(0, len(clip), _CHUNK):
        part = slice(start, start + _CHUNK)
        chunk = ChunkFeatures(clip[part], sizes, times=times[part], memory=memory)
        meter.update(chunk.of(features))
        constant = constant or (metric.marks_constant_frames and bool(chunk[CONSTANT].any()))
    if selections := metric.selections(measure):
        cast(SelectingMeter, meter).end({one: one(chosen_of(one, clip)) for one in selections})
    return meter.counts(), constant


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


def measure_set(
    metric: Metric,
    clips: Sequence[NDArray[np.uint8]],
    protocol: Protocol,
    *,
    placement: Placement | None = None,
) -> MetricResult:
    """``metric`` of several clips of one sample together, over their common prefix.

    Args:
        metric: a metric with ``inputs == "set"``.
        clips: each (T, H, W, 3) uint8 RGB.
        protocol: the metric's parameters.
        placement: where and how exactly networks run; float32 on the CPU by default.
    """
    for index, clip in enumerate(clips):
        check_clip(clip, f"clips[{index}]")
    try:
        with placed(placement or Placement()):
            return finish(metric, _count_set(metric, clips, protocol.measure), protocol)
    except ItemError as error:
        return without_value(metric, protocol, error)
    except MemoryError:
        return without_value(metric, protocol, out_of_memory())


def _count_set(metric: Metric, clips: Sequence[NDArray[np.uint8]], measure: Measure) -> Any:
    for name in metric.networks(measure):
        ensure(name)
    meter = metric.meter(measure, [StreamInfo(clip.shape[1], clip.shape[2]) for clip in clips])
    sizes, features = ChunkSizes(), metric.set_features(measure)
    together, lengths = SideBySide(metric.set_tail(measure)), [len(clip) for clip in clips]
    for start in range(0, max(lengths, default=0) if features else min(lengths, default=0), _CHUNK):
        parts = [clip[start : start + _CHUNK] for clip in clips]
        if not features:
            common = min(map(len, parts))
            meter.update([extract(metric.member_features(measure), part[:common]) for part in parts])
        elif (frames := together.join(parts)) is not None:
            meter.update(ChunkFeatures(frames, sizes).of(features))
    if features:
        cast(SetMeter, meter).end(lengths)
    return meter.counts()


def out_of_memory() -> ItemError:
    """The problem of something that does not fit into memory and cannot be halved."""
    return ItemError(Reason.OUT_OF_MEMORY, "memory ran out; use smaller frames or chunks")


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
    error = metric.named(error, protocol.decide)
    return MetricResult.without_value(
        metric.name,
        protocol.reason(error.reason),
        error.message,
        detail=protocol.explain(error.reason, error.detail),
        protocol=protocol.name,
    )
