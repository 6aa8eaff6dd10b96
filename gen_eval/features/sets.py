"""All generations of a sample together: the lanes of what is measured on the clips side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from gen_eval.features.extraction import ChunkFeatures, ChunkSizes
from gen_eval.features.feature import StreamInfo
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.members import Member
from gen_eval.features.metric import SetMeter
from gen_eval.features.outcomes import SET_MEMBER, Outcome
from gen_eval.features.plan import Measurement
from gen_eval.features.side_by_side import SideBySide
from gen_eval.media import encode_thumbnail
from gen_eval.networks.loading import ensure
from gen_eval.records import Group


class Sets:
    """The measurements that look at all generations of a sample together."""

    def __init__(
        self, members: list[Member], measurements: Sequence[Measurement], group: Group, log: list[str]
    ) -> None:
        self._clips = [member.clip for member in members if member.clip.error is None]
        self._absent = [member.clip.member for member in members if member.clip.error is not None]
        self._run = guarded(log)
        self._sizes = ChunkSizes()
        sample = group.sample
        infos = [replace(clip.stream_info(sample.prompt), masks=sample.masks) for clip in self._clips]
        self._lanes = [(one, self._lane(one, infos)) for one in measurements if one.metric.inputs == "set"]
        self._together = {id(lane): SideBySide(one.metric.set_tail(one.measure)) for one, lane in self._lanes}

    def _lane(self, measurement: Measurement, infos: list[StreamInfo]) -> Lane:
        made: list[Any] = []

        def make() -> None:
            for name in measurement.networks:
                ensure(name)
            made.append(measurement.metric.meter(measurement.measure, infos))

        error = self._run(make)
        return Lane(made[0] if made else None, error)

    def update(self) -> None:
        """Feed the members' chunks to all lanes."""
        for measurement, lane in self._lanes:
            broken = next((clip.error for clip in self._clips if clip.error is not None), None)
            if broken is not None:
                lane.fail(broken)
            if lane.live and (error := self._run(partial(self._step, measurement, lane))):
                lane.fail(error)

    def _step(self, measurement: Measurement, lane: Lane) -> None:
        metric, measure = measurement.metric, measurement.measure
        if features := metric.set_features(measure):
            frames = self._together[id(lane)].join([clip.frames for clip in self._clips])
            if frames is not None:
                chunk = ChunkFeatures(frames, self._sizes).of(features)
                lane.update([chunk], [frames[:, place] for place in range(2)], encode_thumbnail)
        elif common := min((clip.length for clip in self._clips), default=0):
            views = [clip.view(None, common) for clip in self._clips]
            own = metric.member_features(measure)
            lane.update([[view.of(own) for view in views]], [view.frames for view in views[:2]], encode_thumbnail)

    def outcomes(self) -> Iterator[Outcome]:
        """The results; members that could not be used are named in the detail."""
        lengths = [clip.decoded for clip in self._clips]
        for measurement, lane in self._lanes:
            if lane.live and measurement.metric.set_features(measurement.measure):
                cast(SetMeter, lane.meter).end(lengths)
            for protocol in measurement.protocols:
                result = lane.result(measurement, protocol, None)
                detail = {"members": [clip.member for clip in self._clips], "absent": self._absent, "frames": lengths}
                yield Outcome(SET_MEMBER, measurement, protocol, result.with_detail(**detail))
