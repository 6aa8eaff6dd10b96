"""Dynamic degree: whether anything in a clip moves, by RAFT's flow between frames sampled at about eight a second.

It is the guard against static clips, which other dimensions favour.

Source: VBench, dynamic degree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import Chunk, Feature, Measure, Meter, Metric, StreamInfo, measure_single
from gen_eval.networks import placement_of
from gen_eval.networks.frame_choice import interval_of
from gen_eval.networks.motion import LEAST_SIDE, Arrival, Magnitude, flow_feature, too_small_for_flow
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError, MetricResult, Reason

_SIDE = 256  # thresholds are pixels of a frame with this shorter side


@dataclass
class Sample:
    """Frames that were sampled in one way.

    Attributes:
        frames: their numbers.
        pairs: how far pixels moved from each to the next.
    """

    frames: list[int] = field(default_factory=list)
    pairs: list[Magnitude] = field(default_factory=list)


@dataclass
class Motion:
    """How far pixels move between sampled frames.

    Attributes:
        size: height and width of a frame.
        fps: average frame rate, ``None`` when unknown.
        sampling_rate: about how many frames a second were sampled.
        too_small: whether the network has no value for frames of this size.
        frames: frames seen.
        by_index: each k-th frame.
        by_time: frames nearest to multiples of k / fps seconds.
    """

    size: tuple[int, int]
    fps: float | None
    sampling_rate: float
    too_small: bool = False
    frames: int = 0
    by_index: Sample = field(default_factory=Sample)
    by_time: Sample = field(default_factory=Sample)

    @property
    def interval(self) -> int:
        """Frames from one sampled frame to the next."""
        return interval_of(self.fps, self.sampling_rate)

    @property
    def rate(self) -> float:
        """Sampled frames a second; when the clip's rate is unknown, what was asked for."""
        return self.fps / self.interval if self.fps else self.sampling_rate


class _Meter:
    def __init__(self, feature: Feature, info: StreamInfo, sampling_rate: float) -> None:
        self._feature = feature
        self._counts = Motion((info.height, info.width), info.fps, sampling_rate, too_small_for_flow(info))

    def update(self, clip: Chunk) -> Sequence[float]:
        arrivals: Sequence[Arrival] = clip[self._feature]
        for arrival in arrivals:
            self._counts.by_index.frames += arrival.by_index
            self._counts.by_index.pairs += arrival.index_pairs
            self._counts.by_time.frames += arrival.by_time
            self._counts.by_time.pairs += arrival.time_pairs
        self._counts.frames += len(arrivals)
        # the worst frame is the one that moved least
        return [arrival.index_pairs[-1].unpadded if arrival.index_pairs else math.inf for arrival in arrivals]

    def counts(self) -> Motion:
        return self._counts


class Verdict(NamedTuple):
    """Whether a clip is dynamic: ``above`` of its pairs are faster than ``threshold``, and ``needed`` have to be."""

    dynamic: bool
    threshold: float
    needed: int
    above: int


def judge(speeds: Sequence[float], side: int, rule: Mapping[str, Any]) -> Verdict:
    """Whether a clip is dynamic.

    Args:
        speeds: one number a pair of neighbouring sampled frames.
        side: pixels of the shorter side of a frame.
        rule: ``threshold`` (of 256 pixels), and of the number of sampled frames the ``share`` that must be exceeded,
            with ``rounding`` (``half_even`` or ``half_up``) to a number that is at least ``least``.

    Raises:
        InputError: the rounding is not known.
    """
    threshold = rule["threshold"] * side / _SIDE
    wanted = rule["share"] * (len(speeds) + 1)
    if rule["rounding"] not in {"half_even", "half_up"}:
        raise InputError(f"unknown rounding {rule['rounding']!r}; expected half_even or half_up")
    needed = max(round(wanted) if rule["rounding"] == "half_even" else math.floor(wanted + 0.5), rule["least"])
    above = sum(speed > threshold for speed in speeds)  # nan is not above
    return Verdict(bool(speeds) and above >= needed, threshold, needed, above)


class DynamicDegree(Metric):
    """1 when enough pairs of sampled frames have fast pixels, else 0."""

    name = "dynamic_degree"
    track = "quality"
    inputs = "single"
    marks_constant_frames = True
    further_units: ClassVar[Mapping[str, str]] = {"motion": "pixels"}
    curve_unit = "pixels"
    source = "VBench, dynamic degree (public code)"
    caveat = "a guard against static clips: it says that something moves, not that it moves well"

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """How far pixels move between sampled frames."""
        return (flow_feature(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """RAFT."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that collects how far pixels move."""
        assert isinstance(member, StreamInfo)
        _check(measure)
        return _Meter(flow_feature(measure), member, float(measure["sampling_rate"]))

    def decide(self, counts: Motion, decide: Mapping[str, Any]) -> MetricResult:
        """The verdict on the pairs of frames that the protocol samples.

        ``sampling`` is ``by_index`` or ``by_time``; ``border`` says whether vectors of the padding count (``padded``,
        ``removed``); ``speed`` is ``per_pair`` (pixels from one sampled frame to the next) or ``per_eighth`` (of a
        second). With ``without_flow: judged`` a clip without a pair, or too small for the network, is judged like any
        other, its magnitudes not being above the threshold; with ``undefined`` it has no value.
        """
        sample: Sample = getattr(counts, decide["sampling"])
        detail: dict[str, Any] = {
            "frames": counts.frames,
            "sampled": list(sample.frames),
            "interval": counts.interval,
            "rate": counts.rate,
            "rate_known": bool(counts.fps),
        }
        if decide["without_flow"] == "undefined" and (problem := _problem(counts, sample)) is not None:
            return MetricResult.without_value(self.name, *problem, detail=detail)
        pixels = [pair.padded if decide["border"] == "padded" else pair.unpadded for pair in sample.pairs]
        factor = counts.rate / 8 if decide["speed"] == "per_eighth" else 1.0
        speeds = [length * factor for length in pixels]
        if decide["without_flow"] == "undefined" and not all(map(math.isfinite, speeds)):
            return MetricResult.of(self.name, math.nan, detail=detail)
        verdict = judge(speeds, min(counts.size), decide)
        curve = np.full(counts.frames, math.nan)
        curve[sample.frames[1:]] = speeds
        motion = math.fsum(speeds) / len(speeds) if speeds else math.nan
        return MetricResult(
            self.name,
            float(verdict.dynamic),
            values={"motion": motion if math.isfinite(motion) else None},
            detail={
                **detail,
                "threshold": verdict.threshold,
                "pairs_needed": verdict.needed,
                "pairs_above": verdict.above,
            },
            curves={self.name: curve},
        )


def _check(measure: Measure) -> None:
    """Refuse numbers that mean nothing.

    Raises:
        InputError: the number and what is expected.
    """
    if measure["sampling_rate"] <= 0:
        raise InputError(f"sampling_rate must be above 0 frames a second, not {measure['sampling_rate']}")
    if not 0 < measure["fastest"] <= 1:
        raise InputError(f"fastest must be a share of all vectors, above 0 and at most 1, not {measure['fastest']}")
    if not isinstance(measure["updates"], int) or measure["updates"] < 1:
        raise InputError(f"updates must be a whole number of steps of the network, not {measure['updates']}")


def _problem(counts: Motion, sample: Sample) -> tuple[Reason, str] | None:
    """Why there is no flow."""
    if not sample.pairs:
        return (
            Reason.TOO_FEW_FRAMES,
            f"{len(sample.frames)} of the clip's {counts.frames} frame(s) are sampled at {counts.rate:g} a second; "
            "neighbouring ones are compared, so 2 are needed: generate longer clips",
        )
    if counts.too_small:
        height, width = counts.size
        return (
            Reason.TOO_SMALL,
            f"the clip is {width}x{height}; with border pixels repeated to multiples of 8, the shorter side must have "
            f"{LEAST_SIDE} pixels: generate larger frames",
        )
    return None


METRIC = DynamicDegree()


def dynamic_degree(
    clip: NDArray[np.uint8],
    fps: float | None,
    *,
    protocol: str = "corrected",
    device: str = "cpu",
    dtype: str = "float32",
) -> MetricResult:
    """Whether anything in a clip moves: 1 or 0.

    Frames are sampled at about eight a second (each k-th, k = round(fps / 8) and at least 1). Between neighbouring
    ones RAFT gives a flow; r is the mean length of its longest 5 % of vectors. Under ``corrected`` their speed is
    r * (fps / k) / 8 pixels per eighth of a second, and the clip is dynamic when a quarter of the number n of sampled
    frames (max(1, floor(n / 4 + 1/2)) pairs) is faster than 6 pixels of 256 on the shorter side.

    Args:
        clip: (T, H, W, 3) uint8 RGB.
        fps: frames a second; ``None``: unknown, then all frames are used and eight a second are assumed.
        protocol: ``corrected``, or ``reference``: r itself is compared with the threshold whatever the time between
            sampled frames, with the pixels that pad the frame, and the number of pairs is rounded half to even, so that
            any two frames are dynamic and a single one is not.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``; positions stay float32.

    Returns:
        A result with ``values["motion"]``, the mean speed; the curve ``dynamic_degree`` (speeds at sampled frames, from
        the one before; ``nan`` elsewhere); and ``sampled``, ``rate``, ``threshold``, ``pairs_needed`` and
        ``pairs_above`` in its detail. Without a value under ``corrected``: ``too_few_frames``, ``too_small`` (a side
        below 121 pixels), ``not_finite``; under both ``missing_weights`` (checkpoint ``raft_things``).

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8, or ``fps`` is not positive.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, dynamic degree; Teed and Deng 2020 (RAFT).

    Example:
        >>> import numpy as np
        >>> print(dynamic_degree(np.zeros((3, 128, 128, 3), np.uint8), 8.0))  # doctest: +SKIP
        dynamic_degree 0, motion 0.021 [constant_frame]
    """
    if fps is not None and not (math.isfinite(fps) and fps > 0):
        raise ValueError(f"fps must be positive, or None when it is unknown; it is {fps}")
    placement = placement_of(device, dtype)
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), fps=fps, placement=placement)
