"""The video door: all measurements of a group from one pass over its videos.

The reference clip and every generation are opened together and read in lockstep, a chunk at a time. The features of the
reference chunk are computed once; each member's chunk is brought to the sizes that are asked for, its features are
computed once per view and handed to the meters. Nothing that grows with the length is kept but the per-frame numbers.
One member's trouble ends that member only, one metric's trouble that metric only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from gen_eval.features.clips import Clip, ReferenceClip, problem_of
from gen_eval.features.context import SampleContext
from gen_eval.features.extraction import ChunkFeatures, ChunkSizes
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.metric import CONSTANT, Coverage, SelectingMeter, StreamInfo
from gen_eval.features.plan import Measurement, Plan
from gen_eval.features.selecting import Chosen
from gen_eval.media import encode_thumbnail
from gen_eval.networks.loading import ensure
from gen_eval.networks.placement import placed
from gen_eval.protocols import Protocol
from gen_eval.records import Flag, Generation, Group, ItemError, MetricResult, Reason, Status
from gen_eval.records.files import is_file

SET_MEMBER = "all"
"""Member of rows that belong to all generations of a sample together."""


@dataclass(frozen=True)
class Outcome:
    """One result: a metric of a member under a protocol.

    Attributes:
        pictures: JPEG bytes by role (``thumbnail``, ``worst``, ``worst_reference``).
    """

    member: str
    measurement: Measurement
    protocol: Protocol
    result: MetricResult
    pictures: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupOutcome:
    """All results of a group, and tracebacks of what surprised."""

    group: Group
    outcomes: tuple[Outcome, ...]
    log: tuple[str, ...] = ()

    @property
    def transient(self) -> bool:
        """Whether another attempt might give more."""
        reasons = (outcome.result.reason for outcome in self.outcomes)
        return any(reason is not None and reason.transient for reason in reasons)


def score_group(group: Group, plan: Plan) -> GroupOutcome:
    """Measure every member of ``group``; whatever goes wrong costs rows of this group only.

    Raises:
        MissingPart: no decoder can be started, which is no group's fault.
        InputError: a parameter of a protocol makes no sense, or a network is of another kind.
    """
    log: list[str] = []
    outcomes: list[Outcome] = []

    def measure() -> None:
        with ExitStack() as stack:
            stack.enter_context(placed(plan.placement))
            outcomes.extend([*_by_frames(group, plan, stack, log), *_by_files(group, plan, log)])

    if (error := guarded(log)(measure)) is not None:  # outside of what belongs to one member or one metric
        outcomes = list(_without_value(group, plan, error))
    return GroupOutcome(group, tuple(outcomes), tuple(log))


def _without_value(group: Group, plan: Plan, error: ItemError) -> Iterator[Outcome]:
    for measurement in plan.measurements:
        together = measurement.metric.inputs == "set"
        for member in [SET_MEMBER] if together else [one.member for one in group.members]:
            for protocol in measurement.protocols:
                yield Outcome(member, measurement, protocol, Lane(None, error).result(measurement, protocol, None))


# --- metrics on frames -----------------------------------------------------------------------------------------------


def _by_frames(group: Group, plan: Plan, stack: ExitStack, log: list[str]) -> Iterator[Outcome]:
    measurements = plan.on("frames")
    if not measurements:
        return
    wants_reference = any(one.metric.inputs == "pair" for one in measurements)
    reference = ReferenceClip.open(group.sample.reference if wants_reference else None, plan, stack)
    context = SampleContext(group.sample)
    members = [_Member(Clip.open(one, plan, stack), group, plan, reference, context, log) for one in group.members]
    sets = _Sets(members, measurements, group, log)
    sizes = ChunkSizes()
    while True:
        chunk = reference.read(plan.chunk, sizes)
        lengths = [member.read(plan.chunk, sizes) for member in members]
        if not (reference.length or any(lengths)):
            break
        for member in members:
            member.update(chunk)
        sets.update()
    for member in members:
        yield from member.outcomes()
    yield from sets.outcomes()


class _Member:
    """One generation: its clip and its lanes."""

    def __init__(
        self,
        clip: Clip,
        group: Group,
        plan: Plan,
        reference: ReferenceClip,
        context: SampleContext,
        log: list[str],
    ) -> None:
        self.clip = clip
        self._reference = reference
        self._context = context
        self._measurements = tuple(one for one in plan.on("frames") if one.metric.inputs != "set")
        self._run = guarded(log)
        self._shared: dict[tuple[str, str | None], Lane] = {}
        self._lanes = [self._lane(one, group) for one in self._measurements]
        live = zip(self._measurements, self._lanes, strict=True)
        selections = [selection for one, lane in live if lane.live for selection in one.metric.selections(one.measure)]
        self._chosen = Chosen(selections, _expected(clip, plan))
        self._constant = False
        self._common = 0
        self._thumbnail: dict[str, bytes] = {}

    def _view(self, measurement: Measurement) -> str | None:
        """The rule by which frames are resized for it; ``None`` when they are used at their own size."""
        if measurement.metric.inputs != "pair" or self.clip.size == self._reference.size:
            return None
        return str(measurement.measure["resize"])

    def _lane(self, measurement: Measurement, group: Group) -> Lane:
        error = self.clip.error
        if error is None and measurement.metric.inputs == "pair":
            error = self._reference.refusal(self.clip.size, measurement.measure)
        if error is not None:
            return Lane(None, error)
        # measurements that differ only in how other sizes are aligned share a lane when nothing needs aligning
        key = (measurement.arithmetic, self._view(measurement) or self._context.variant(measurement))
        if key not in self._shared:
            self._shared[key] = self._new_lane(measurement, group)
        return self._shared[key]

    def _new_lane(self, measurement: Measurement, group: Group) -> Lane:
        metric, measure = measurement.metric, measurement.measure
        info = self.clip.stream_info(group.sample.prompt)
        if metric.inputs == "pair":
            info = replace(info, height=self._reference.size[0], width=self._reference.size[1])
        made: list[Any] = []

        def make() -> None:
            for name in measurement.networks:
                ensure(name)
            made.append(metric.meter(measure, info, **self._context.arguments(measurement)))

        error = self._run(make)
        return Lane(made[0] if made else None, error)

    def read(self, count: int, sizes: ChunkSizes) -> int:
        """Decode the next chunk and return its length."""
        length = self.clip.read(count, sizes)
        if length:
            self._chosen.take(self.clip.frames)
            self._thumbnail = self._thumbnail or {"thumbnail": encode_thumbnail(self.clip.frames[0])}
        return length

    def update(self, reference: ChunkFeatures | None) -> None:
        """Feed the chunk to all lanes."""
        if self.clip.error is not None:
            return
        common = min(self.clip.length, self._reference.length)
        self._common += common
        for measurement, lane in self._distinct():
            if not lane.live:
                continue
            if measurement.metric.inputs == "single":
                step = self._single_step(measurement, lane)
            else:
                if self._reference.error is not None:
                    lane.fail(self._reference.as_item())
                if not (common and lane.live and reference is not None):
                    continue
                step = self._pair_step(measurement, lane, reference, common)
            if (error := self._run(step)) is not None:
                lane.fail(error)

    def _distinct(self) -> Iterator[tuple[Measurement, Lane]]:
        seen: set[int] = set()
        for measurement, lane in zip(self._measurements, self._lanes, strict=True):
            if id(lane) not in seen:
                seen.add(id(lane))
                yield measurement, lane

    def _single_step(self, measurement: Measurement, lane: Lane) -> Any:
        def step() -> None:
            if self.clip.length:
                own = self.clip.view(None, self.clip.length)
                features = own.of(measurement.metric.member_features(measurement.measure))
                late = measurement.metric.judges_frame_before
                lane.update([features], [own.frames], encode_thumbnail, late=late)
                if measurement.metric.marks_constant_frames:
                    self._constant = self._constant or bool(own[CONSTANT].any())

        return step

    def _pair_step(self, measurement: Measurement, lane: Lane, reference: ChunkFeatures, common: int) -> Any:
        def step() -> None:
            metric, measure = measurement.metric, measurement.measure
            own = self.clip.view(self._view(measurement), common, self._reference.size)
            other = self._reference.view(None, common)
            chunks = [own.of(metric.member_features(measure)), other.of(metric.reference_features(measure))]
            lane.update(chunks, [own.frames, other.frames], encode_thumbnail)

        return step

    def outcomes(self) -> Iterator[Outcome]:
        """The results of all measurements under all their protocols."""
        for measurement, lane in self._distinct():
            if lane.live and (error := self._run(partial(self._end, measurement, lane))) is not None:
                lane.fail(error)
        for measurement, lane in zip(self._measurements, self._lanes, strict=True):
            if self.clip.error is not None:  # the clip broke while it was read: what was counted is no score
                lane.fail(self.clip.error)
            pair = measurement.metric.inputs == "pair"
            if pair and self._reference.error is not None:  # perhaps behind the end of all members
                lane.fail(self._reference.as_item())
            coverage = self._coverage() if pair else None
            for protocol in measurement.protocols:
                result = lane.result(measurement, protocol, coverage).with_flags(*self.clip.flags)
                result = self._annotated(result.with_detail(video=self.clip.detail), measurement)
                if coverage is not None and self._reference.detail:
                    result = result.with_detail(reference=self._reference.detail)
                yield Outcome(self.clip.member, measurement, protocol, result, {**self._thumbnail, **lane.pictures})

    def _end(self, measurement: Measurement, lane: Lane) -> None:
        """Hand what was computed from chosen frames to the meter."""
        selections = measurement.metric.selections(measurement.measure)
        if selections and self.clip.decoded and self.clip.error is None:
            meter = cast(SelectingMeter, lane.meter)
            meter.end({one: one(self._chosen.frames(one, self.clip.path)) for one in selections})

    def _annotated(self, result: MetricResult, measurement: Measurement) -> MetricResult:
        """``result`` with what was unusual about the picture and the colours."""
        if result.status is not Status.OK:
            return result
        if self._constant and measurement.metric.marks_constant_frames:
            result = result.with_flags(Flag.CONSTANT_FRAME)
        context = self._context
        return result.with_flags(*context.flags(measurement)).with_detail(**context.detail(measurement))

    def _coverage(self) -> Coverage:
        return Coverage(
            common=self._common,
            member=self.clip.decoded,
            reference=self._reference.decoded,
            resized=self.clip.size != self._reference.size,
            fps=(self.clip.fps, self._reference.fps),
        )


def _expected(clip: Clip, plan: Plan) -> int | None:
    """How many frames the clip will probably have."""
    counts = [count for count in (clip.expected_frames, plan.preset.limit) if count is not None]
    return min(counts) if clip.expected_frames is not None else None


# --- metrics on all members together ---------------------------------------------------------------------------------


class _Sets:
    """The measurements that look at all generations of a sample together."""

    def __init__(
        self, members: list[_Member], measurements: tuple[Measurement, ...], group: Group, log: list[str]
    ) -> None:
        self._clips = [member.clip for member in members if member.clip.error is None]
        self._absent = [member.clip.member for member in members if member.clip.error is not None]
        self._run = guarded(log)
        self._lanes = [
            (one, self._lane(one, [clip.stream_info(group.sample.prompt) for clip in self._clips]))
            for one in measurements
            if one.metric.inputs == "set"
        ]

    def _lane(self, measurement: Measurement, infos: list[StreamInfo]) -> Lane:
        made: list[Any] = []
        error = self._run(lambda: made.append(measurement.metric.meter(measurement.measure, infos)))
        return Lane(made[0] if made else None, error)

    def update(self) -> None:
        """Feed the common part of the members' chunks to all lanes."""
        common = min((clip.length for clip in self._clips), default=0)
        for measurement, lane in self._lanes:
            broken = next((clip.error for clip in self._clips if clip.error is not None), None)
            if broken is not None:
                lane.fail(broken)
            if common and lane.live and (error := self._run(partial(self._step, measurement, lane, common))):
                lane.fail(error)

    def _step(self, measurement: Measurement, lane: Lane, common: int) -> None:
        features = measurement.metric.member_features(measurement.measure)
        views = [clip.view(None, common) for clip in self._clips]
        lane.update([[view.of(features) for view in views]], [views[0].frames], encode_thumbnail)

    def outcomes(self) -> Iterator[Outcome]:
        """The results; members that could not be used are named in the detail."""
        lengths = [clip.decoded for clip in self._clips]
        for measurement, lane in self._lanes:
            for protocol in measurement.protocols:
                result = lane.result(measurement, protocol, None)
                detail = {"members": [clip.member for clip in self._clips], "absent": self._absent, "frames": lengths}
                yield Outcome(SET_MEMBER, measurement, protocol, result.with_detail(**detail))


# --- metrics on files given beside the clips -------------------------------------------------------------------------


def _by_files(group: Group, plan: Plan, log: list[str]) -> Iterator[Outcome]:
    for measurement in (*plan.on("depth"), *plan.on("masks")):
        for member in group.members:
            counted: list[Any] = []

            def count(
                member: Generation = member, counted: list[Any] = counted, one: Measurement = measurement
            ) -> None:
                own, other = _files(member, group, one)
                counted.append(one.metric.measure_files(own, other, one.measure, limit=plan.preset.limit))

            lane = Lane(None, guarded(log)(count))
            coverage: Coverage | None = None
            if counted:
                counts, coverage = counted[0]
                lane = Lane(_Counted(counts))
            for protocol in measurement.protocols:
                result = lane.result(measurement, protocol, coverage)
                yield Outcome(member.member, measurement, protocol, result)


class _Counted:
    """A meter that has done its work."""

    def __init__(self, counts: Any) -> None:
        self._counts = counts

    def update(self, *_chunks: Any) -> None:
        """Nothing is left to take in."""

    def counts(self) -> Any:
        """What was counted."""
        return self._counts


def _files(member: Generation, group: Group, measurement: Measurement) -> tuple[Path, Path]:
    """The signal files of the clip and of its reference.

    Raises:
        ItemError: the video itself, the reference's file or the clip's file is absent.
    """
    if member.problem is not None:
        raise problem_of(member)
    signal, name = measurement.metric.signal, measurement.metric.name
    other = group.sample.depth if signal == "depth" else group.sample.masks
    own = member.depth if signal == "depth" else member.masks
    if other is None or not is_file(other):
        raise ItemError(
            Reason.MISSING_GROUND_TRUTH, f"{name} needs the {signal} of the reference clip; the data has none"
        )
    if own is None:
        where = "depth_npzs/<name>.npz" if signal == "depth" else "masks/<name>.masks.json"
        raise ItemError(
            Reason.MISSING_WEIGHTS,
            f"{name} needs the {signal} of the generated clip: give it as {where} beside the videos (--signals)",
        )
    return own, other
