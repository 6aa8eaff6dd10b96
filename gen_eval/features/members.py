"""One clip of a group while it is read: the lanes of all that is measured on its frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from gen_eval.features.clips import Clip, ReferenceClip
from gen_eval.features.context import SampleContext
from gen_eval.features.extraction import ChunkFeatures, ChunkSizes
from gen_eval.features.feature import CONSTANT
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.metric import Coverage, SelectingMeter
from gen_eval.features.outcomes import Outcome
from gen_eval.features.plan import Measurement, Plan
from gen_eval.features.selecting import Chosen
from gen_eval.media import encode_thumbnail
from gen_eval.networks.loading import ensure
from gen_eval.records import Flag, Group, MetricResult, Status


class Member:
    """One generation: its clip and its lanes."""

    def __init__(
        self,
        clip: Clip | ReferenceClip,
        group: Group,
        plan: Plan,
        reference: ReferenceClip,
        context: SampleContext,
        log: list[str],
        measurements: Sequence[Measurement],
    ) -> None:
        """Args: ``measurements`` of single clips and of pairs."""
        self.clip = clip
        self._reference = reference
        self._context = context
        self._measurements = tuple(measurements)
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
        self.clip.next_chunk(count, sizes)
        return self.take()

    def take(self) -> int:
        """Look at the chunk that was decoded and return its length."""
        if self.clip.length:
            self._chosen.take(self.clip.frames)
            self._thumbnail = self._thumbnail or {"thumbnail": encode_thumbnail(self.clip.frames[0])}
        return self.clip.length

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
                metric = measurement.metric
                features = own.of(metric.member_features(measurement.measure))
                late, evidence = metric.judges_frame_before, metric.evidence
                lane.update([features], [own.frames], encode_thumbnail, late=late, evidence=evidence)
                if measurement.metric.marks_constant_frames:
                    self._constant = self._constant or bool(own[CONSTANT].any())

        return step

    def _pair_step(self, measurement: Measurement, lane: Lane, reference: ChunkFeatures, common: int) -> Any:
        def step() -> None:
            metric, measure = measurement.metric, measurement.measure
            own = self.clip.view(self._view(measurement), common, self._reference.size)
            other = self._reference.view(None, common)
            chunks = [own.of(metric.member_features(measure)), other.of(metric.reference_features(measure))]
            lane.update(chunks, [own.frames, other.frames], encode_thumbnail, evidence=metric.evidence)

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


def _expected(clip: Clip | ReferenceClip, plan: Plan) -> int | None:
    """How many frames the clip will probably have."""
    counts = [count for count in (clip.expected_frames, plan.preset.limit) if count is not None]
    return min(counts) if clip.expected_frames is not None else None
