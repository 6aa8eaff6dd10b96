"""Diversity: how different clips look that were made from one control signal, by LPIPS between their frames.

Each frame of each clip goes through the network once, and each two clips are compared once.

Source: PAI-Bench-C, diversity score; Zhang et al. 2018 (LPIPS).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from control_metrics.segmentation_file import Segmentation, read_segmentation
from gen_eval.features import FRAMES, Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_set
from gen_eval.features.alignment import resize_frames
from gen_eval.features.extraction import extract
from gen_eval.networks import distance_feature, placement_of
from gen_eval.protocols import load_protocol
from gen_eval.protocols.values import whole_number
from gen_eval.records import Flag, InputError, ItemError, MetricResult, Reason
from gen_eval.weights import with_needs

CLIPS = 6
"""Clips of one task in the published setting: the original caption and five variants."""

WHOLE, FOREGROUND, BACKGROUND = "whole", "foreground", "background"
"""Regions of a frame."""

_WHITE = 255


@dataclass
class DiversityCounts:
    """Distances between clips.

    Attributes:
        clips: how many there are.
        lengths: frames of each.
        frames: for each frame the distance of each two clips, in the order (0, 1), (0, 2), ..., (1, 2), ...; behind
            the end of the shortest clip, clips that ended stand still.
        regions: the same of each region that was asked for, with white in place of all other pixels.
        no_regions: why there is nothing of them.
    """

    clips: int
    lengths: list[int] = field(default_factory=list)
    frames: list[NDArray[np.float64]] = field(default_factory=list)
    regions: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)
    no_regions: ItemError | None = None


_Weighed: TypeAlias = Callable[[DiversityCounts, int], NDArray[np.float64]]


class _Meter:
    def __init__(self, feature: Feature, clips: int, foreground: _Foreground | None, regions: Sequence[str]) -> None:
        self._feature, self._foreground = feature, foreground
        self._counts = DiversityCounts(clips, regions={name: [] for name in regions})

    def update(self, together: Chunk) -> Sequence[float]:
        distances = together[self._feature]
        if self._foreground is not None and self._counts.no_regions is None:
            try:
                self._measure_regions(self._foreground, together[FRAMES])
            except ItemError as error:
                self._counts.no_regions = error
        self._counts.frames.extend(distances)
        found: list[float] = distances.mean(axis=1).tolist()
        return found

    def _measure_regions(self, foreground: _Foreground, frames: NDArray[np.uint8]) -> None:
        """Distances of the next frames (n, N, H, W, 3) in each region."""
        start = len(self._counts.frames)
        shown = foreground.frames(start, start + len(frames))
        for name, distances in self._counts.regions.items():
            inside = shown if name == FOREGROUND else ~shown
            painted = _painted(frames, inside[:, None])
            distances.extend(extract((self._feature,), painted)[self._feature])

    def end(self, lengths: Sequence[int]) -> None:
        self._counts.lengths = list(lengths)

    def counts(self) -> DiversityCounts:
        return self._counts


class Diversity(Metric):
    """Mean LPIPS of all pairs of clips, frame by frame."""

    name = "diversity"
    track = "control"
    inputs = "set"
    unit = "LPIPS"
    bounds = (0.0, None)
    source = "PAI-Bench-C, diversity score (public code)"

    def set_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The distances of all pairs of clips, frame by frame; the frames themselves where regions are asked for."""
        return (distance_feature(measure), FRAMES) if self.uses_masks(measure) else (distance_feature(measure),)

    def uses_masks(self, measure: Measure) -> bool:
        """Whether a region is asked for."""
        return bool(_regions(measure))

    def set_tail(self, measure: Measure) -> int:
        """As many frames as a batch of the public code may have left."""
        return whole_number(measure, "tail")

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """The heads and the backbone below them."""
        return with_needs(str(measure["network"]))

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter for clips of one size.

        Raises:
            ItemError: ``too_few_clips``, ``size_mismatch``, ``too_small``.
        """
        assert not isinstance(member, StreamInfo)
        if len(member) < 2:
            raise ItemError(
                Reason.TOO_FEW_CLIPS,
                f"diversity compares the clips of a sample with each other; there are {len(member)}, 2 are needed",
                {"clips": len(member)},
            )
        sizes = [[one.height, one.width] for one in member]
        if any(size != sizes[0] for size in sizes):
            raise ItemError(
                Reason.SIZE_MISMATCH,
                "the clips differ in size, and frames are compared as they are; make them with one size",
                {"sizes_hw": sizes, "clips": len(member)},
            )
        least = whole_number(measure, "least_side", least=1)
        if min(sizes[0]) < least:
            height, width = sizes[0]
            raise ItemError(
                Reason.TOO_SMALL,
                f"the network needs frames of at least {least}x{least} pixels, these are {width}x{height}",
                {"size_hw": sizes[0], "least": least, "clips": len(member)},
            )
        regions = _regions(measure)
        foreground = _Foreground(member[0].masks, (sizes[0][0], sizes[0][1])) if regions else None
        return _Meter(distance_feature(measure), len(member), foreground, regions)

    def named(self, error: ItemError, decide: Mapping[str, Any]) -> ItemError:
        """Samples with another number of clips are left out before anybody looks at their size."""
        clips, wanted = error.detail.get("clips"), _wanted(decide)
        return error if wanted is None or clips is None or clips == wanted else _other_number(int(clips))

    def decide(self, counts: DiversityCounts, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over pairs of the mean over frames.

        ``clips`` says how many there must be, ``unequal_length`` which frames of clips of other lengths are compared;
        see ``configs/protocols/diversity.yaml``.
        """
        weighed = _rule("unequal_length", decide, _LENGTHS)
        wanted = _wanted(decide)
        known = {"clips": counts.clips, "lengths": counts.lengths}
        if wanted is not None and counts.clips != wanted:
            other = _other_number(counts.clips)
            return MetricResult.without_value(self.name, other.reason, other.message, detail=known)
        if not counts.frames:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "there is no common frame")
        common = min(counts.lengths)
        try:
            by_pair = weighed(counts, whole_number(decide, "batch", least=1))
        except ItemError as error:
            return MetricResult.without_value(self.name, error.reason, error.message, detail={**known, **error.detail})
        pairs = [
            {"clips": list(pair), "distance": float(distance) if np.isfinite(distance) else None}
            for pair, distance in zip(_pairs(counts.clips), by_pair, strict=True)
        ]
        curve = np.array([one.mean() for one in counts.frames[:common]])
        detail = {**known, "pairs": pairs, "compared": common, "covered": common / max(counts.lengths)}
        result = MetricResult.of(self.name, float(by_pair.mean()), detail=detail, curves={self.name: curve})
        if result.value is None:
            return result
        return _with_regions(result.with_flags(*_flags(counts)), counts, weighed, int(decide["batch"]))


class _Foreground:
    """Pixels that belong to any object of a segmentation file, at another size, a few frames at a time."""

    def __init__(self, path: Path | None, size: tuple[int, int]) -> None:
        self._path, self._size = path, size
        self._opened: Segmentation | None = None

    def frames(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Foreground (n, H, W) of the frames from ``start`` up to ``stop``.

        Raises:
            ItemError: ``missing_ground_truth``: there is no file, or it ends before; ``undecodable``.
        """
        if self._opened is None:
            if self._path is None:
                raise _no_masks("the data has no masks of the reference clip, by which foreground is told")
            self._opened = read_segmentation(self._path)
        size = self._opened.size
        if size is None or size[0] < stop:
            frames = 0 if size is None else size[0]
            raise _no_masks(f"the masks of the reference clip have {frames} frames, and {stop} are needed")
        union = np.zeros((stop - start, *size[1:]), np.uint8)
        for index in range(len(self._opened)):
            union |= self._opened.part(index, start, stop).astype(np.uint8)
        resized: NDArray[np.bool_] = resize_frames(union, self._size, "nearest").astype(np.bool_)
        return resized


def _no_masks(said: str) -> ItemError:
    return ItemError(Reason.MISSING_GROUND_TRUTH, f"foreground and background have no value: {said}")


def _regions(measure: Measure) -> list[str]:
    """The regions besides the whole that a measure section asks for.

    Raises:
        InputError: one is not known, or the whole is not among them.
    """
    named = measure["regions"]
    known = {WHOLE, FOREGROUND, BACKGROUND}
    if not isinstance(named, Sequence) or isinstance(named, str) or not {WHOLE} <= {*map(str, named)} <= known:
        expected = f"expected a list of {WHOLE}, and of {FOREGROUND} and {BACKGROUND} as wanted"
        raise InputError(f"regions is {named!r}; {expected}")
    return [str(name) for name in dict.fromkeys(named) if name != WHOLE]


def _with_regions(result: MetricResult, counts: DiversityCounts, weighed: _Weighed, batch: int) -> MetricResult:
    """``result`` with the number of each region, or with the reason why there is none."""
    if not counts.regions:
        return result
    if (error := counts.no_regions) is not None:
        why = {"reason": str(error.reason), "message": error.message}
        return result.with_values(**dict.fromkeys(counts.regions)).with_detail(regions=why)
    values: dict[str, float | None] = {}
    for name, frames in counts.regions.items():
        value = float(weighed(replace(counts, frames=frames), batch).mean())
        values[name] = value if math.isfinite(value) else None
    return result.with_values(**values)


def _pairs(clips: int) -> list[tuple[int, int]]:
    return list(combinations(range(clips), 2))


def _wanted(decide: Mapping[str, Any]) -> int | None:
    """How many clips a sample must have; ``None``: two or more."""
    wanted: int | None = _rule("clips", decide, {"exactly_six": CLIPS, "two_or_more": None})
    return wanted


def _other_number(clips: int) -> ItemError:
    said = f"there are {clips} clips; the public code leaves out samples that have not exactly {CLIPS}"
    return ItemError(Reason.REFERENCE_UNSET, said, {"clips": clips})


def _rule(name: str, decide: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if decide[name] not in known:
        raise InputError(f"unknown rule {name} {decide[name]!r}; expected {' or '.join(known)}")
    return known[decide[name]]


def _flags(counts: DiversityCounts) -> list[Flag]:
    found = {
        Flag.CLIP_COUNT: counts.clips != CLIPS,
        Flag.SHORT_CLIP: min(counts.lengths) < max(counts.lengths),
    }
    return [flag for flag, present in found.items() if present]


def _common_prefix(counts: DiversityCounts, batch: int) -> NDArray[np.float64]:
    """Distance of each two clips over the frames that all have."""
    found: NDArray[np.float64] = np.mean(counts.frames[: min(counts.lengths)], axis=0)
    return found


def _first_clip(counts: DiversityCounts, batch: int) -> NDArray[np.float64]:
    """Distance of each two clips, both orders averaged, over as many frames as the first of the two has.

    Raises:
        ItemError: ``reference_stops``: a clip ends before another and its last batch has not one frame alone, or a
            batch of the longer one meets no frame at all. No exception is named where the latter has one frame.
    """
    lengths = sorted(set(counts.lengths), reverse=True)
    stops = {_stop(longer, shorter, batch) for longer, shorter in combinations(lengths, 2)}
    said = f"the clips have {lengths[::-1]} frames; the public code subtracts frames by the batch"
    if _UNRECORDED in stops:
        raise ItemError(
            Reason.REFERENCE_STOPS,
            f"{said}, and the last frame of a longer clip, alone in its batch, meets no frame of a shorter one: no "
            "distance comes out, and what the public code makes of that is not recorded",
        )
    if _RAISES in stops:
        raise ItemError(
            Reason.REFERENCE_STOPS,
            f"{said} and raises where a batch of one clip has more of them than that of the other",
            {"reference_exception": "RuntimeError"},
        )
    over = [np.mean(counts.frames[:length], axis=0) for length in counts.lengths]
    return np.array(
        [(over[i][place] + over[j][place]) / 2 for place, (i, j) in enumerate(_pairs(counts.clips))]
    )  # each order counts once


_RAISES, _UNRECORDED = "raises", "unrecorded"


def _stop(longer: int, shorter: int, batch: int) -> str | None:
    """What happens in the first batch of ``longer`` frames that cannot be subtracted from one of ``shorter`` frames.

    One frame is subtracted from any number, and any number from one; one from none gives none.
    """
    start = shorter // batch * batch
    left = shorter - start
    if left == 1:
        start, left = start + batch, 0
    if longer <= start:
        return None
    return _UNRECORDED if left == 0 and min(batch, longer - start) == 1 else _RAISES


_LENGTHS: Mapping[str, _Weighed] = {
    "first_clip": _first_clip,
    "common_prefix": _common_prefix,
}

METRIC = Diversity()


def diversity(
    clips: Sequence[NDArray[np.uint8]],
    masks: NDArray[np.bool_] | None = None,
    *,
    protocol: str = "corrected",
    device: str = "cpu",
    dtype: str = "float32",
) -> MetricResult:
    """How different the clips look that were made from one control signal; 0 for equal clips, no upper bound.

    LPIPS 0.1 (VGG16) between frames of equal number at their own size, mean over frames, then over all pairs of clips.

    Args:
        clips: two or more clips of one size, each (T, H, W, 3) uint8 RGB, sides of 16 pixels or more; six in the
            published setting.
        masks: foreground, (T, H, W) bool, at least as many frames as the longest clip has. Then ``foreground`` and
            ``background`` are measured too: the same with all other pixels painted white.
        protocol: ``corrected``, ``reference`` or ``reference-v2``. ``corrected`` takes the frames that all clips have
            (flag ``short_clip``) and any number of clips from two (flag ``clip_count`` unless six); under the others
            another number is ``reference_unset``, and unequal lengths are ``reference_stops`` in nearly all cases (in
            some of them what the public code does is not recorded: no ``reference_exception`` in the detail).
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with the distance of each pair in ``detail["pairs"]`` and the curve ``diversity`` (mean over pairs, one
        value a frame). With masks also ``values["foreground"]`` and ``values["background"]``. Without a value:
        ``too_few_clips``, ``size_mismatch``, ``too_small`` (other names under the reference protocols),
        ``not_finite``, ``missing_weights`` (checkpoints ``lpips_vgg`` and ``vgg16``).

    Raises:
        TypeError: a clip or ``masks`` is not an array.
        ValueError: a clip is not (T, H, W, 3) uint8, or ``masks`` does not fit the clips.
        InputError: there is no such protocol, device or number format.

    Source:
        PAI-Bench-C, diversity score; Zhang et al. 2018 (LPIPS).

    Example:
        >>> import numpy as np
        >>> black = np.zeros((1, 16, 16, 3), np.uint8)
        >>> print(diversity([black, black + 255]))  # doctest: +SKIP
        diversity 0.6 [clip_count]
    """
    chosen, placement = load_protocol(METRIC.name, protocol), placement_of(device, dtype)
    if masks is not None:
        _check_masks(masks)
    whole = measure_set(METRIC, clips, chosen, placement=placement)
    if masks is None or whole.value is None:
        return whole
    _check_cover(masks, clips)
    values: dict[str, float | None] = {}
    for region, shown in ((FOREGROUND, masks), (BACKGROUND, ~masks)):
        painted = [_painted(clip, shown[: len(clip)]) for clip in clips]
        values[region] = measure_set(METRIC, painted, chosen, placement=placement).value
    return whole.with_values(**values)


def _check_masks(masks: Any) -> None:
    if not isinstance(masks, np.ndarray):
        raise TypeError(f"masks must be a NumPy array (T, H, W) of bool, not {type(masks).__name__}")
    if masks.dtype != np.bool_ or masks.ndim != 3:
        raise ValueError(f"masks must be (T, H, W) bool, True on the foreground, not {masks.shape} {masks.dtype}")


def _check_cover(masks: NDArray[np.bool_], clips: Sequence[NDArray[np.uint8]]) -> None:
    for index, clip in enumerate(clips):
        if clip.shape[1:3] != masks.shape[1:] or len(clip) > len(masks):
            raise ValueError(
                f"masks of shape {masks.shape} do not cover clips[{index}] of shape {clip.shape}; "
                "give one mask for each frame, of the same height and width"
            )


def _painted(frames: NDArray[np.uint8], shown: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """``frames`` (..., H, W, 3) with white in place of what is not ``shown`` (..., H, W)."""
    painted: NDArray[np.uint8] = np.where(shown[..., None], frames, np.uint8(_WHITE))
    return painted
