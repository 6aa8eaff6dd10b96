"""Segmentation fidelity: mean IoU of matched classes over the whole clip.

A class is the union of the objects that carry one phrase. Classes of the two clips are matched one to one so that the
sum of their IoUs is largest; phrases are not compared. Source: PAI-Bench-C, mask mIoU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from control_metrics._bits import Words, blank, count_pairs, merge
from control_metrics.pictures import lowest_overlap
from control_metrics.segmentation_file import Mask, MaskObject, Size, read_segmentation
from gen_eval.features import Chunk, ClipSignal, Coverage, Measure, Meter, Metric, StreamInfo
from gen_eval.features.arrays import finish, without_value
from gen_eval.networks.segmentation import masks_signal
from gen_eval.protocols import load_protocol
from gen_eval.protocols.values import whole_number, word_of
from gen_eval.records import Flag, InputError, ItemError, MetricResult, Reason

_Pairs: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class MaskCounts:
    """Pixels of the classes and of their intersections, over all frames.

    Attributes:
        reference: phrases of the reference's classes.
        prediction: phrases of the generated clip's classes.
        shared: pixels of each reference class (rows) in each predicted class (columns).
        reference_pixels: pixels of each reference class.
        prediction_pixels: pixels of each predicted class.
        objects: number of objects given for the reference and for the prediction.
        frames: how many frames were compared.
    """

    reference: tuple[str, ...]
    prediction: tuple[str, ...]
    shared: NDArray[np.int64]
    reference_pixels: NDArray[np.int64]
    prediction_pixels: NDArray[np.int64]
    objects: tuple[int, int]
    frames: int = 0

    @property
    def united(self) -> NDArray[np.int64]:
        """Pixels of the union of each pair of classes."""
        return self.reference_pixels[:, None] + self.prediction_pixels[None, :] - self.shared

    def iou(self, dtype: str) -> NDArray[Any]:
        """IoU of each pair of classes in ``float32`` or ``float64``, 0 where both are empty."""
        united = self.united
        return (self.shared / np.maximum(united, 1)).astype(dtype)


_RULES = {
    "overlaps": ("later_wins", "kept"),
    "empty_classes": ("kept", "dropped"),
    "short_clip": ("stops", "prefix"),
    "class_order": ("first_seen", "by_phrase"),
}
"""Parameter of a measure section -> what it may be."""


class MaskMiou(Metric):
    """Mean IoU of matched segmentation classes, with recall and two stricter means."""

    name = "mask_miou"
    track = "control"
    inputs = "pair"
    signal = "masks"
    source = "PAI-Bench-C, mask mIoU (public code)"
    evidence_words: ClassVar[Mapping[str, str]] = {
        "masks": "classes of the generated clip where the overlap is lowest: matched ones in colour, others gray",
        "masks_reference": "classes of the reference clip in that frame; a matched pair has one colour",
    }

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """Masks are counted object by object and not frame by frame: use :meth:`measure_masks`."""
        raise NotImplementedError("mask_miou is not measured by a meter; use measure_masks or measure_files")

    def measure_masks(
        self,
        prediction: Sequence[MaskObject],
        reference: Sequence[MaskObject],
        measure: Measure,
        max_frames: int | None = None,
    ) -> tuple[MaskCounts, Coverage]:
        """Count pixels of classes and of their intersections; each object is looked at once, the last one first.

        Args:
            prediction: objects of the generated clip, (phrase, mask (T, H, W) bool), in order of detection.
            reference: objects of the real clip.
            measure: section of the protocol.
            max_frames: only the first frames are used; the reference code is given the reference clip's number.

        Raises:
            ItemError: ``reference_stops``, where the protocol says that a short clip or too many objects end the run.
            InputError: a rule of the section is not known.
            ValueError: a mask is not (T, H, W) bool, or masks of one side differ in shape.
        """
        for name, known in _RULES.items():
            word_of(measure, name, known)
        if measure["max_objects"] is not None:
            whole_number(measure, "max_objects", least=1)
        for side, objects in (("prediction", prediction), ("reference", reference)):
            _check_number(len(objects), side, measure["max_objects"])
        own, other = _shape(prediction, "prediction"), _shape(reference, "reference")
        coverage = _coverage(own or other, other or own, max_frames)
        if measure["short_clip"] == "stops" and max_frames is not None and own is not None and max_frames > own[0]:
            raise ItemError(
                Reason.REFERENCE_STOPS,
                f"the masks of the generated clip have {own[0]} frames, {max_frames} are asked for; the reference code "
                "raises AssertionError here",
                {"frames": own[0], "max_frames": max_frames, "reference_exception": "AssertionError"},
            )
        size = (coverage.common, *(other or own or (0, 0, 0))[1:])
        left = _classes(reference, size, measure, "reference")
        right = _classes(prediction, size, measure, "prediction")
        drop = measure["empty_classes"] == "dropped"
        counts = _counted(left, right, (len(reference), len(prediction)), drop)
        return replace(counts, frames=coverage.common), coverage

    def clip_signal(self, measure: Measure) -> ClipSignal:
        """The masks that detector and segmenter of ``measure`` make of a clip where none are given."""
        return masks_signal(measure)

    def measure_files(
        self, member: Path, reference: Path, measure: Measure, *, limit: int | None
    ) -> tuple[MaskCounts, Coverage]:
        """:meth:`measure_masks` of two segmentation files, over the reference's frames.

        Raises:
            ItemError: ``undecodable``, a file cannot be read; ``reference_stops`` as above.
        """
        own, other = read_segmentation(member), read_segmentation(reference)
        frames = limit if other.size is None else min(limit or other.size[0], other.size[0])
        return self.measure_masks(own, other, measure, frames)

    def file_evidence(
        self, counts: MaskCounts, member: Path, reference: Path, measure: Measure
    ) -> tuple[int | None, Mapping[str, NDArray[np.uint8]]]:
        """The frame in which the matched classes overlap least, with the classes of both sides painted.

        Classes are matched one to one here, whatever ``matching`` of the protocol is.
        """
        other, own = read_segmentation(reference), read_segmentation(member)
        size = _shape(other, "reference") or _shape(own, "prediction")
        if size is None or not counts.frames or not (counts.reference or counts.prediction):
            return None, {}
        size = (counts.frames, size[1], size[2])
        left, right = _classes(other, size, measure, "reference"), _classes(own, size, measure, "prediction")
        iou = counts.iou("float64")
        pairs = [(int(row), int(column)) for row, column in zip(*_hungarian(iou), strict=True)
                 if iou[row, column] > 0]  # fmt: skip
        return lowest_overlap(
            [left[phrase] for phrase in counts.reference], [right[phrase] for phrase in counts.prediction], pairs, size
        )

    def decide(self, counts: MaskCounts, decide: Mapping[str, Any]) -> MetricResult:
        """Match classes and average the IoUs that exceed ``threshold``.

        ``matching`` says how: ``hungarian`` (one to one, the largest sum) or ``row_maximum`` (each reference class with
        the class that overlaps it most, which several may have in common; the public code has it and does not use it).
        ``nothing`` says what an item counts that has no object on one side (``zero``, or it is ``named``), ``emptied``
        the same for a side of which all classes are empty (``stops``: as the reference code raises there).
        ``comparison`` is how IoU and threshold meet: as ``float32`` or as ``integers``.
        """
        rules = {"nothing": ("zero", "named"), "emptied": ("zero", "stops", "named"),
                 "comparison": ("float32", "integers"), "matching": tuple(_MATCHINGS)}  # fmt: skip
        for name, allowed in rules.items():
            if decide[name] not in allowed:
                raise InputError(f"unknown rule {name} {decide[name]!r}; expected {' or '.join(allowed)}")
        detail: dict[str, Any] = {
            "threshold": decide["threshold"],
            "classes": {"reference": len(counts.reference), "prediction": len(counts.prediction)},
            "objects": {"reference": counts.objects[0], "prediction": counts.objects[1]},
            "pairs": [],
            "unmatched": {"reference": list(counts.reference), "prediction": list(counts.prediction)},
        }
        if not (counts.reference and counts.prediction):
            return self._one_side_empty(counts, str(decide["nothing" if 0 in counts.objects else "emptied"]), detail)
        return self._matched(counts, decide, detail)

    def _one_side_empty(self, counts: MaskCounts, rule: str, detail: dict[str, Any]) -> MetricResult:
        if rule == "stops":
            message = "all classes of one side are empty; the reference code raises RuntimeError here"
            detail["reference_exception"] = "RuntimeError"
            return MetricResult.without_value(self.name, Reason.REFERENCE_STOPS, message, detail=detail)
        if rule == "named" and not counts.reference:
            message = "the reference clip has no object with a pixel"
            return MetricResult.without_value(self.name, Reason.NO_REFERENCE_OBJECTS, message, detail=detail)
        strict = 0.0 if counts.reference else None
        values = {"recall": 0.0, "all": strict, "same_phrase": strict}
        flags = () if counts.prediction else (Flag.NO_DETECTIONS,)
        return MetricResult(self.name, 0.0, flags=flags, values=values, detail=detail)

    def _matched(self, counts: MaskCounts, decide: Mapping[str, Any], detail: dict[str, Any]) -> MetricResult:
        single = decide["comparison"] == "float32"
        iou = counts.iou("float32" if single else "float64")
        rows, columns = _MATCHINGS[str(decide["matching"])](iou)
        limit = Fraction(str(decide["threshold"]))
        if single:
            above = iou > np.float32(decide["threshold"])
        else:
            above = counts.shared * limit.denominator > counts.united * limit.numerator
        kept = above[rows, columns]
        chosen = iou[rows, columns][kept]
        classes = len(counts.reference)
        same = sum(
            float(iou[row, counts.prediction.index(phrase)])
            for row, phrase in enumerate(counts.reference)
            if phrase in counts.prediction
        )
        detail["pairs"] = [
            {"reference": counts.reference[row], "prediction": counts.prediction[column],
             "iou": float(iou[row, column]), "kept": bool(used)}
            for row, column, used in zip(rows, columns, kept, strict=True)
        ]  # fmt: skip
        detail["unmatched"] = _unmatched(counts, detail["pairs"])
        difference = classes - len(counts.prediction)
        flags = ((Flag.MISSING_CLASS,) if difference > 0 else (Flag.EXTRA_CLASS,)) if difference else ()
        values: dict[str, float | None] = {
            "recall": int(kept.sum()) / len(kept),
            "all": float(chosen.sum()) / classes,
            "same_phrase": same / classes,
        }
        value = float(chosen.mean()) if chosen.size else 0.0
        return MetricResult(self.name, value, flags=flags, values=values, detail=detail)


def _hungarian(iou: NDArray[Any]) -> _Pairs:
    """Rows and columns of the one-to-one matching with the largest sum."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(iou, maximize=True)
    return rows, columns


def _row_maximum(iou: NDArray[Any]) -> _Pairs:
    """Every row, with the first column of its largest value."""
    return np.arange(len(iou)), iou.argmax(axis=1)


_MATCHINGS: Mapping[str, Callable[[NDArray[Any]], _Pairs]] = {"hungarian": _hungarian, "row_maximum": _row_maximum}

METRIC = MaskMiou()


def _unmatched(counts: MaskCounts, pairs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The classes of both sides that are in no pair that counts."""
    sides = {"reference": counts.reference, "prediction": counts.prediction}
    matched = {side: {pair[side] for pair in pairs if pair["kept"]} for side in sides}
    return {side: [name for name in names if name not in matched[side]] for side, names in sides.items()}


def _check_number(objects: int, side: str, most: int | None) -> None:
    if most is not None and objects > most:
        raise ItemError(
            Reason.REFERENCE_STOPS,
            f"the {side} has {objects} objects; the reference code numbers them in 8 bits and raises above {most}",
            {"objects": objects, "max_objects": most, "side": side},
        )


def _shape(objects: Sequence[MaskObject], side: str) -> Size | None:
    """Frames, height and width of a side's masks; ``None`` without an object."""
    if isinstance(objects, np.ndarray):
        raise TypeError(
            f"{side} must be a list of pairs (phrase, mask), not an array {objects.shape} {objects.dtype}; masks of "
            "clips are made by `gen-eval controls extract --signals seg`"
        )
    known = getattr(objects, "size", None)
    if known is not None or not objects:
        return known
    frames, height, width = _checked(objects[0], f"{side}[0]").shape
    return frames, height, width


def _checked(item: MaskObject, name: str) -> Mask:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(f"{name} must be a pair of phrase and mask, not {type(item).__name__}")
    phrase, mask = item
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.ndim != 3 or 0 in mask.shape:
        found = f"{mask.shape} {mask.dtype}" if isinstance(mask, np.ndarray) else type(mask).__name__
        raise ValueError(f"the mask of {name} ({phrase!r}) must be an array (T, H, W) of bool, not {found}")
    return mask


def _coverage(member: Size | None, reference: Size | None, limit: int | None) -> Coverage:
    """How the clips met; a side without objects has the other's frames."""
    if member is None or reference is None:
        return Coverage(0, 0, 0)
    wanted = reference[0] if limit is None else min(limit, reference[0])
    surplus = member[0] > reference[0]
    frames = member[0] if surplus or limit is None else min(limit, member[0])
    return Coverage(min(member[0], wanted), frames, wanted, member[1:] != reference[1:])


def _classes(objects: Sequence[MaskObject], size: Size, measure: Measure, side: str) -> dict[str, Words]:
    """Phrase -> packed mask of the class over ``size``, in the order that the protocol names."""
    shape = _shape(objects, side)
    nearest = None if shape is None or shape[1:] == size[1:] else _nearest(shape, size)
    first_seen = dict.fromkeys(_phrases(objects))
    order = sorted(first_seen) if measure["class_order"] == "by_phrase" else list(first_seen)
    *packed, taken = blank(len(order) + 1, math.prod(size))
    classes = dict(zip(order, packed, strict=True))
    for index in reversed(range(len(objects))):  # so that a later object finds its pixels free
        item = objects[index]
        mask = _checked(item, f"{side}[{index}]")
        if mask.shape != shape:
            raise ValueError(f"the mask of {side}[{index}] has shape {mask.shape}; the others have {shape}")
        used = mask[: size[0]]
        if nearest is not None:
            used = used[:, nearest[0]][:, :, nearest[1]]
        merge(used, classes[str(item[0])], taken if measure["overlaps"] == "later_wins" else None)
    return classes


def _phrases(objects: Sequence[MaskObject]) -> Sequence[str]:
    """Phrase of each object; a segmentation file tells them without decoding a mask."""
    known = getattr(objects, "phrases", None)
    return known if known is not None else [str(phrase) for phrase, _ in objects]


def _nearest(before: Size, after: Size) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns that OpenCV's nearest neighbour takes when it resizes maps."""
    rows = cv2.resize(np.arange(before[1], dtype=np.float32)[:, None], (1, after[1]), interpolation=cv2.INTER_NEAREST)
    columns = cv2.resize(np.arange(before[2], dtype=np.float32)[None], (after[2], 1), interpolation=cv2.INTER_NEAREST)
    return rows.ravel().astype(np.intp), columns.ravel().astype(np.intp)


def _counted(
    reference: dict[str, Words], prediction: dict[str, Words], objects: tuple[int, int], drop: bool
) -> MaskCounts:
    shared, *pixels = count_pairs(list(reference.values()), list(prediction.values()))
    used = [side > 0 if drop else np.ones(len(side), np.bool_) for side in pixels]
    names = [tuple(name for name, keep in zip(side, kept, strict=True) if keep)
             for side, kept in zip((reference, prediction), used, strict=True)]  # fmt: skip
    rows, columns = used
    return MaskCounts(names[0], names[1], shared[rows][:, columns], pixels[0][rows], pixels[1][columns], objects)


def mask_miou(
    prediction: Sequence[MaskObject],
    reference: Sequence[MaskObject],
    *,
    protocol: str = "corrected",
    max_frames: int | None = None,
) -> MetricResult:
    """Mean IoU of matched segmentation classes, 0..1.

    Objects of one phrase form a class; the IoU of two classes is counted over all pixels of all frames together. The
    classes of both clips are matched one to one for the largest sum of IoUs, whatever their phrases; the value is the
    mean over matches with IoU above 0.1, 0 if there is none.

    Args:
        prediction: objects of the generated clip, (phrase, mask (T, H, W) bool). Masks of another size are resized to
            the reference's by nearest neighbour, of another length the common first frames are compared.
        reference: objects of the real clip.
        protocol: ``corrected``, ``reference`` or ``reference-v2``. ``corrected`` keeps overlapping masks whole (under
            the others a later object covers earlier ones) and compares with the threshold in integers; it and
            ``reference-v2`` drop classes without a pixel.
        max_frames: only the first frames are used. Under the reference protocols a generated clip with fewer is
            ``reference_stops``.

    Returns:
        The mean as ``value``; in ``values`` ``recall`` (kept matches / matches), ``all`` (sum of kept IoUs / reference
        classes) and ``same_phrase`` (sum of IoUs of equal phrases / reference classes); in ``detail`` the matched
        ``pairs``. Flags ``missing_class``, ``extra_class``, ``no_detections``. Without a value:
        ``no_reference_objects`` and, under the reference protocols, ``reference_stops``.

    Raises:
        ValueError: a mask is not (T, H, W) bool, masks of one side differ in shape, or ``max_frames`` is below 1.
        TypeError: an array in place of a list of objects.
        InputError: there is no such protocol.

    Source:
        PAI-Bench-C, mask mIoU.

    Example:
        >>> import numpy as np
        >>> left = np.array([[[True, True, False]]])
        >>> print(mask_miou([("car", left)], [("car", ~left), ("tree", left)]))
        mask_miou 1, recall 1, all 0.5, same_phrase 0 [missing_class]
    """
    if max_frames is not None and max_frames < 1:
        raise ValueError(f"max_frames must be 1 or more, not {max_frames}")
    parameters = load_protocol(METRIC.name, protocol)
    try:
        counts, coverage = METRIC.measure_masks(prediction, reference, parameters.measure, max_frames)
    except ItemError as error:
        return without_value(METRIC, parameters, error)
    return coverage.annotate(finish(METRIC, counts, parameters))
