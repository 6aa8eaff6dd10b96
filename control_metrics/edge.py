"""Edge fidelity: precision, recall and F1 of Canny edge maps, pixel by pixel over the whole clip.

Source: PAI-Bench-C, edge F1 (the public code counts over all frames at once and allows no tolerance band).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from control_metrics.pictures import edge_agreement
from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_pair
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, MetricResult, Reason


def canny_parameters(measure: Measure) -> dict[str, Any]:
    """The parameters of :func:`edge_maps` in the ``measure`` section of a protocol."""
    return {name: measure[name] for name in ("aperture", "high", "l2_gradient", "low", "picture")}


def edge_maps(
    frames: NDArray[np.uint8], *, low: float, high: float, aperture: int, l2_gradient: bool, picture: str
) -> NDArray[np.uint8]:
    """Canny edges of each frame.

    Args:
        frames: (n, H, W, 3) uint8 RGB.
        low: lower threshold of the hysteresis.
        high: upper threshold.
        aperture: size of the Sobel operator.
        l2_gradient: Euclidean in place of the city-block norm of the gradient.
        picture: ``rgb`` (per pixel the channel with the largest gradient) or ``gray`` (converted first).

    Returns:
        (n, H, W) uint8, 255 on edges and 0 elsewhere.
    """
    if picture not in {"rgb", "gray"}:
        raise InputError(f"unknown edge picture {picture!r}; expected rgb or gray")
    maps = np.empty(frames.shape[:3], np.uint8)
    for index, frame in enumerate(frames):
        seen = frame if picture == "rgb" else cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        maps[index] = cv2.Canny(seen, low, high, apertureSize=aperture, L2gradient=l2_gradient)
    return maps


def edge_feature(measure: Measure) -> Feature:
    """The edge maps that ``measure`` asks for."""
    return Feature("edge_maps", edge_maps, tuple(canny_parameters(measure).items()))


def count_edges(prediction: NDArray[np.uint8], reference: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Edge pixels of each frame: in both maps, in the prediction, in the reference.

    Args:
        prediction: (n, H, W) uint8, anything but 0 on edges; equal values on the edges of both sides.
        reference: likewise.

    Returns:
        (n, 3) int64.
    """
    counted = np.empty((len(prediction), 3), np.int64)
    both = np.empty(prediction.shape[1:], np.uint8)
    for row, own, other in zip(counted, prediction, reference, strict=True):
        # a frame's maps stay in the cache between the three passes
        cv2.bitwise_and(own, other, dst=both)
        row[:] = cv2.countNonZero(both), cv2.countNonZero(own), cv2.countNonZero(other)
    return counted


@dataclass
class EdgeCounts:
    """Edge pixels.

    Attributes:
        pixels: pixels of one frame.
        frames: for each frame the edge pixels in both maps, in the prediction, in the reference.
    """

    pixels: int
    frames: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class EdgeResult(MetricResult):
    """F1 of the edges (``value``) with its two parts."""

    @property
    def precision(self) -> float | None:
        """Share of the generated clip's edge pixels that are edges of the reference; ``None`` when it has none."""
        return self.values.get("precision")

    @property
    def recall(self) -> float | None:
        """Share of the reference clip's edge pixels that the generated clip has too; ``None`` when it has none."""
        return self.values.get("recall")


class _EdgeMeter:
    def __init__(self, measure: Measure, size: StreamInfo) -> None:
        self._edges = edge_feature(measure)
        self._counts = EdgeCounts(size.height * size.width)

    def update(self, prediction: Chunk, reference: Chunk) -> Sequence[float]:
        counted = count_edges(prediction[self._edges], reference[self._edges])
        self._counts.frames.extend((int(both), int(own), int(other)) for both, own, other in counted)
        return [value if value is not None else math.inf for value in map(_frame_f1, counted.tolist())]

    def counts(self) -> EdgeCounts:
        return self._counts


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _frame_f1(counted: Sequence[int]) -> float | None:
    """F1 of one frame; ``None`` when neither map has an edge."""
    both, own, other = counted
    return _f1(_ratio(both, own), _ratio(both, other)) if own or other else None


class EdgeF1(Metric):
    """F1 of Canny edges, with precision and recall."""

    name = "edge_f1"
    track = "control"
    inputs = "pair"
    source = "PAI-Bench-C, edge F1 (public code)"
    evidence_words: ClassVar[Mapping[str, str]] = {
        "edges": "edges: white in both clips, orange in the generated clip only, blue in the reference only"
    }

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The packed edge maps."""
        return (edge_feature(measure),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter for frames of the reference's size."""
        assert isinstance(member, StreamInfo)
        return _EdgeMeter(measure, member)

    def evidence(self, chunks: Sequence[Chunk], index: int) -> Mapping[str, NDArray[np.uint8]]:
        """Where the edges of both frames agree."""
        own, other = (next(iter(chunk.values())) for chunk in chunks)  # the maps are all that it asks for
        return {"edges": edge_agreement(own[index], other[index])}

    def decide(self, counts: EdgeCounts, decide: Mapping[str, Any]) -> EdgeResult:
        """Ratios over the counts of all frames.

        ``no_edges`` says what a clip counts that has no edge at all: ``unset`` (the public code stops there, as it does
        for a clip with nothing but edges, and leaves the number unset) or ``defined``.
        """
        rule = decide["no_edges"]
        if rule not in {"unset", "defined"}:
            raise InputError(f"unknown rule no_edges {rule!r}; expected unset or defined")
        if not counts.frames:
            return EdgeResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "there is no common frame")
        tp, own, other = (sum(frame[index] for frame in counts.frames) for index in range(3))
        detail = {"tp": tp, "fp": own - tp, "fn": other - tp, "pixels": counts.pixels * len(counts.frames)}
        frame_f1 = [_frame_f1(frame) for frame in counts.frames]
        curve = np.array([math.nan if value is None else value for value in frame_f1], dtype=np.float64)
        known: dict[str, Any] = {"detail": detail, "curves": {self.name: curve}}
        if rule == "unset" and not all(0 < edges < detail["pixels"] for edges in (own, other)):
            message = "a clip without any edge, or with edges only, has no F1 in the reference code"
            return EdgeResult.without_value(self.name, Reason.REFERENCE_UNSET, message, **known)
        if not own and not other:
            values: dict[str, float | None] = {"precision": 1.0, "recall": 1.0}
            return EdgeResult(self.name, 1.0, flags=(Flag.NO_EDGES,), values=values, **known)
        values = {"precision": tp / own if own else None, "recall": tp / other if other else None}
        flags = () if own and other else (Flag.NO_EDGES_ONE_SIDE,)
        return EdgeResult(self.name, _f1(_ratio(tp, own), _ratio(tp, other)), flags=flags, values=values, **known)


METRIC = EdgeF1()


def edge_f1(prediction: NDArray[np.uint8], reference: NDArray[np.uint8], *, protocol: str = "corrected") -> EdgeResult:
    """F1 of the Canny edges (thresholds 100 and 200) of two clips, 0..1, 1 for equal clips.

    Edge pixels are compared one by one, without tolerance, and counted over all frames together: with TP the pixels
    that are edges in both clips, precision is TP / edges of the prediction, recall TP / edges of the reference.

    Args:
        prediction: generated clip (T, H, W, 3) uint8 RGB; another size is resized to the reference's, of another length
            the common first frames are compared.
        reference: real clip (T, H, W, 3) uint8 RGB.
        protocol: ``corrected``, ``reference`` or ``reference-v2``. ``reference-v2`` takes edges of the gray picture,
            the others of the colour picture. A clip without edges has a value under ``corrected`` only.

    Returns:
        F1 as ``value``, with ``precision`` and ``recall``; tp, fp and fn in ``detail``; F1 of each frame as curve
        (``nan`` where neither frame has an edge). Flags ``no_edges``, ``no_edges_one_side``. Without a value:
        ``aspect_mismatch`` and, under the reference protocols, ``reference_unset``.

    Raises:
        TypeError: an argument is not an array.
        ValueError: an argument is not (T, H, W, 3) uint8.
        InputError: there is no such protocol.

    Source:
        PAI-Bench-C, edge F1.

    Example:
        >>> import numpy as np
        >>> clip = np.zeros((1, 8, 8, 3), np.uint8)
        >>> clip[:, :, 4:] = 255
        >>> print(edge_f1(clip, clip))
        edge_f1 1, precision 1, recall 1
    """
    result = measure_pair(METRIC, prediction, reference, load_protocol(METRIC.name, protocol))
    if isinstance(result, EdgeResult):
        return result
    return EdgeResult(**{one.name: getattr(result, one.name) for one in fields(MetricResult)})
