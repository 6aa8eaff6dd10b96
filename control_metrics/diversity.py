"""Diversity: how different clips look that were made from one control signal, by LPIPS between their frames.

Each frame of each clip goes through the network once, and each two clips are compared once.

Source: PAI-Bench-C, diversity score; Zhang et al. 2018 (LPIPS).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_set
from gen_eval.networks import distance_feature, placement_of
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, ItemError, MetricResult, Reason
from gen_eval.weights import with_needs

CLIPS = 6
"""Clips of one task in the published setting: the original caption and five variants."""

_WHITE = 255


@dataclass
class DiversityCounts:
    """Distances between clips.

    Attributes:
        clips: how many there are.
        lengths: frames of each.
        frames: for each frame the distance of each two clips, in the order (0, 1), (0, 2), ..., (1, 2), ...; behind
            the end of the shortest clip, clips that ended stand still.
    """

    clips: int
    lengths: list[int] = field(default_factory=list)
    frames: list[NDArray[np.float64]] = field(default_factory=list)


class _Meter:
    def __init__(self, feature: Feature, clips: int) -> None:
        self._feature = feature
        self._counts = DiversityCounts(clips)

    def update(self, together: Chunk) -> Sequence[float]:
        distances = together[self._feature]
        self._counts.frames.extend(distances)
        found: list[float] = distances.mean(axis=1).tolist()
        return found

    def end(self, lengths: Sequence[int]) -> None:
        self._counts.lengths = list(lengths)

    def counts(self) -> DiversityCounts:
        return self._counts


class Diversity(Metric):
    """Mean LPIPS of all pairs of clips, frame by frame."""

    name = "diversity"
    track = "control"
    inputs = "set"
    bounds = (0.0, None)
    source = "PAI-Bench-C, diversity score (public code)"

    def set_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The distances of all pairs of clips, frame by frame."""
        return (distance_feature(measure),)

    def set_tail(self, measure: Measure) -> int:
        """As many frames as a batch of the public code may have left."""
        return int(measure["tail"])

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
                {"sizes_hw": sizes},
            )
        least = int(measure["least_side"])
        if min(sizes[0]) < least:
            height, width = sizes[0]
            raise ItemError(
                Reason.TOO_SMALL,
                f"the network needs frames of at least {least}x{least} pixels, these are {width}x{height}",
                {"size_hw": sizes[0], "least": least},
            )
        return _Meter(distance_feature(measure), len(member))

    def decide(self, counts: DiversityCounts, decide: Mapping[str, Any]) -> MetricResult:
        """The mean over pairs of the mean over frames.

        ``clips`` says how many there must be, ``unequal_length`` which frames of clips of other lengths are compared;
        see ``configs/protocols/diversity.yaml``.
        """
        weighed = _rule("unequal_length", decide, _LENGTHS)
        wanted = _rule("clips", decide, {"exactly_six": CLIPS, "two_or_more": None})
        known = {"clips": counts.clips, "lengths": counts.lengths}
        if wanted is not None and counts.clips != wanted:
            said = f"there are {counts.clips} clips; the public code leaves out samples that have not exactly {wanted}"
            return MetricResult.without_value(self.name, Reason.REFERENCE_UNSET, said, detail=known)
        if not counts.frames:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "there is no common frame")
        common = min(counts.lengths)
        try:
            by_pair = weighed(counts, int(decide["batch"]))
        except ItemError as error:
            return MetricResult.without_value(self.name, error.reason, error.message, detail={**known, **error.detail})
        pairs = [
            {"clips": list(pair), "distance": float(distance) if np.isfinite(distance) else None}
            for pair, distance in zip(_pairs(counts.clips), by_pair, strict=True)
        ]
        curve = np.array([one.mean() for one in counts.frames[:common]])
        detail = {**known, "pairs": pairs, "compared": common, "covered": common / max(counts.lengths)}
        result = MetricResult.of(self.name, float(by_pair.mean()), detail=detail, curves={self.name: curve})
        return result.with_flags(*_flags(counts)) if result.value is not None else result


def _pairs(clips: int) -> list[tuple[int, int]]:
    return list(combinations(range(clips), 2))


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
            batch of the longer one meets no frame at all.
    """
    shortest, longest = min(counts.lengths), max(counts.lengths)
    repeats = shortest % batch == 1 % batch and longest <= (shortest // batch + 1) * batch
    if shortest != longest and not (repeats and set(counts.lengths) == {shortest, longest}):
        raise ItemError(
            Reason.REFERENCE_STOPS,
            f"the clips have {sorted(set(counts.lengths))} frames; the public code subtracts frames by the batch and "
            "raises where a batch of one clip has more of them than that of the other",
            {"reference_exception": "RuntimeError"},
        )
    over = [np.mean(counts.frames[:length], axis=0) for length in counts.lengths]
    return np.array(
        [(over[i][place] + over[j][place]) / 2 for place, (i, j) in enumerate(_pairs(counts.clips))]
    )  # each order counts once


_LENGTHS: Mapping[str, Callable[[DiversityCounts, int], NDArray[np.float64]]] = {
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
            another number is ``reference_unset``, and unequal lengths are ``reference_stops`` in nearly all cases.
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
    for region, shown in (("foreground", masks), ("background", ~masks)):
        painted = [_painted(clip, shown) for clip in clips]
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


def _painted(clip: NDArray[np.uint8], shown: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """``clip`` with white in place of what is not ``shown``."""
    painted: NDArray[np.uint8] = np.where(shown[: len(clip), ..., None], clip, np.uint8(_WHITE))
    return painted
