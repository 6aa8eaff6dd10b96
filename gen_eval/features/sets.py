"""All generations of a sample together: the lanes of what is measured on the clips side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from gen_eval.features.arrays import set_chunk
from gen_eval.features.extraction import ChunkSizes
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.members import Member
from gen_eval.features.metric import SetMeter, StreamInfo
from gen_eval.features.outcomes import SET_MEMBER, Outcome
from gen_eval.features.plan import Measurement
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
        self._lanes = [
            (one, self._lane(one, [clip.stream_info(group.sample.prompt) for clip in self._clips]))
            for one in measurements
            if one.metric.inputs == "set"
        ]

    def _lane(self, measurement: Measurement, infos: list[StreamInfo]) -> Lane:
        made: list[Any] = []

        def make() -> None:
            for name in measurement.networks:
                ensure(name)
            made.append(measurement.metric.meter(measurement.measure, infos))

        error = self._run(make)
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
        views = [clip.view(None, common) for clip in self._clips]
        chunk = set_chunk(measurement.metric, measurement.measure, views, self._sizes)
        lane.update([chunk], [view.frames for view in views[:2]], encode_thumbnail)

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
