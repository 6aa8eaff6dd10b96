"""What is measured on files beside the clips: depth maps and segmentation, given or made by networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gen_eval.features.clip_signals import ClipSignals, SignalFile
from gen_eval.features.clips import problem_of
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.metric import Coverage
from gen_eval.features.outcomes import Outcome
from gen_eval.features.plan import Measurement, Plan
from gen_eval.features.rendition import Renditions
from gen_eval.media import encode_thumbnail
from gen_eval.protocols import Protocol
from gen_eval.records import Generation, Group, ItemError, MetricResult


@dataclass
class _Counted:
    """The two files of a pair, and what was counted in them. It is a meter that has done its work."""

    found: Any
    coverage: Coverage
    own: SignalFile
    other: SignalFile

    def update(self, *_chunks: Any) -> None:
        """Nothing is left to take in."""

    def counts(self) -> Any:
        """What was counted."""
        return self.found

    def explained(self, result: MetricResult) -> MetricResult:
        """``result`` with what was unusual about clips that networks looked at."""
        made = {
            side: dict(file.facts)
            for side, file in {"generated": self.own, "reference": self.other}.items()
            if file.computed
        }
        return result.with_flags(*self.own.flags).with_detail(**({"signal": made} if made else {}))


def by_files(group: Group, plan: Plan, renditions: Callable[[], Renditions], log: list[str]) -> Iterator[Outcome]:
    """The results of all measurements on depth maps and segmentation.

    Args:
        group: whose clips.
        plan: measurements.
        renditions: gives the clips of the group as they are to be shown, and a folder for files that are made here.
        log: takes tracebacks.
    """
    measurements = (*plan.on("depth"), *plan.on("masks"))
    if not measurements:
        return
    signals = ClipSignals(renditions())
    for member in group.members:
        for measurement in measurements:
            lane, counted = _lane(member, measurement, signals, plan, log)
            for protocol in measurement.protocols:
                result = _result(lane, counted, measurement, protocol)
                yield Outcome(member.member, measurement, protocol, result, dict(lane.pictures))
        signals.forget(member)


def _lane(
    member: Generation, measurement: Measurement, signals: ClipSignals, plan: Plan, log: list[str]
) -> tuple[Lane, _Counted | None]:
    counted: list[_Counted] = []

    def count() -> None:
        if member.problem is not None or member.path is None:  # before anything is made of the reference for nothing
            raise problem_of(member)
        other, own = signals.reference(measurement), signals.member(member, measurement)
        found, coverage = measurement.metric.measure_files(
            own.path, other.path, measurement.measure, limit=plan.preset.limit
        )
        counted.append(_Counted(found, replace(coverage, fps=(own.fps, other.fps)), own, other))

    run = guarded(log)
    error: ItemError | None = run(count)
    if not counted:
        return Lane(None, error), None
    lane = Lane(counted[0])
    if run(lambda: _show(lane, counted[0], measurement)) is not None:
        lane.pictures = {}  # a picture that cannot be made costs no score; its traceback is in the log
    return lane, counted[0]


def _show(lane: Lane, counted: _Counted, measurement: Measurement) -> None:
    """Keep what shows the worst frame."""
    frame, pictures = measurement.metric.file_evidence(
        counted.found, counted.own.path, counted.other.path, measurement.measure
    )
    lane.worst_frame = frame
    lane.pictures = {role: encode_thumbnail(picture) for role, picture in pictures.items()}


def _result(lane: Lane, counted: _Counted | None, measurement: Measurement, protocol: Protocol) -> MetricResult:
    if counted is None:
        return lane.result(measurement, protocol, None)
    return counted.explained(lane.result(measurement, protocol, counted.coverage))
