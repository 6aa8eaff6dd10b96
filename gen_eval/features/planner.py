"""The video door: all measurements of a group from one pass over its videos.

The reference clip and every generation are opened together and read in lockstep, a chunk at a time. The features of the
reference chunk are computed once; each member's chunk is brought to the sizes that are asked for, its features are
computed once per view and handed to the meters. Nothing that grows with the length is kept but the per-frame numbers.
One member's trouble ends that member only, one metric's trouble that metric only.

Two things need further passes: clips that a protocol encodes again before they are looked at, and depth maps and
segmentation that are not there as files and that networks make of whole clips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import chain

from gen_eval.features.clips import REFERENCE, Clip, ReferenceClip
from gen_eval.features.context import SampleContext
from gen_eval.features.extraction import ChunkSizes
from gen_eval.features.file_lanes import by_files
from gen_eval.features.lanes import Lane, guarded
from gen_eval.features.members import Member
from gen_eval.features.outcomes import SET_MEMBER, GroupOutcome, Outcome
from gen_eval.features.plan import Measurement, Plan
from gen_eval.features.rendition import Rendition, Renditions
from gen_eval.features.scratch import scratch_folder
from gen_eval.features.sets import Sets
from gen_eval.networks.placement import placed
from gen_eval.records import Flag, Group, InputError, ItemError, MetricResult


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

            @cache
            def renditions() -> Renditions:
                return Renditions(group, plan, stack.enter_context(scratch_folder()))

            outcomes.extend(chain(_by_frames(group, plan, renditions, log), by_files(group, plan, renditions, log)))

    if (error := guarded(log)(measure)) is not None:  # outside of what belongs to one member or one metric
        outcomes = list(_without_value(group, plan, error))
    return GroupOutcome(group, tuple(outcomes), tuple(log))


def _without_value(group: Group, plan: Plan, error: ItemError) -> Iterator[Outcome]:
    for measurement in plan.measurements:
        together = measurement.metric.inputs == "set"
        for member in [SET_MEMBER] if together else [one.member for one in group.members]:
            for protocol in measurement.protocols:
                yield Outcome(member, measurement, protocol, Lane(None, error).result(measurement, protocol, None))


def _by_frames(group: Group, plan: Plan, renditions: Callable[[], Renditions], log: list[str]) -> Iterator[Outcome]:
    """One pass for all that looks at the files as they are, and one for each other way in which clips are shown."""
    passes: dict[Rendition, list[Measurement]] = {}
    for measurement in plan.on("frames"):
        passes.setdefault(_rendition(measurement), []).append(measurement)
    for rendition, measurements in passes.items():
        with ExitStack() as stack:
            if rendition.as_it_is:
                yield from _one_pass(group, plan, measurements, stack, log)
                continue
            shown, flags = renditions().regrouped(rendition)
            for one in _one_pass(shown, plan, measurements, stack, log):
                unusual: Sequence[Flag] = flags.get(one.member, ()) if one.result.value is not None else ()
                yield replace(one, result=one.result.with_flags(*unusual))


def _rendition(measurement: Measurement) -> Rendition:
    rendition = Rendition.of(measurement.measure)
    if rendition.crf is None and not rendition.as_it_is:
        raise InputError(
            f"{measurement.metric.name} looks at frames as they are read; clip_size and clip_aspect_tolerance need "
            "clip_crf here"
        )
    return rendition if rendition.crf is not None else Rendition()


def _one_pass(
    group: Group, plan: Plan, measurements: Sequence[Measurement], stack: ExitStack, log: list[str]
) -> Iterator[Outcome]:
    alone = [one for one in measurements if one.metric.inputs != "set"]
    rated = [one for one in alone if one.metric.rates_reference]
    wants_reference = bool(rated) or any(one.metric.inputs == "pair" for one in alone)
    reference = ReferenceClip.open(group.sample.reference if wants_reference else None, plan, stack)
    context = SampleContext(group.sample)
    members = [
        Member(Clip.open(one, plan, stack), group, plan, reference, context, log, alone) for one in group.members
    ]
    beside = Member(reference, group, plan, reference, context, log, rated)
    sets = Sets(members, measurements, group, log)
    sizes = ChunkSizes()
    while True:
        chunk = reference.read(plan.chunk, sizes)
        lengths = [beside.take(), *(member.read(plan.chunk, sizes) for member in members)]
        if not any(lengths):
            break
        for member in (beside, *members):
            member.update(chunk)
        sets.update()
    ratings = {_key(one): one.result for one in beside.outcomes()}
    for member in members:
        for one in member.outcomes():
            yield _with_rating(one, ratings.get(_key(one)))
    yield from sets.outcomes()


def _key(outcome: Outcome) -> tuple[str, str]:
    return (outcome.measurement.metric.name, outcome.protocol.name)


def _with_rating(outcome: Outcome, rating: MetricResult | None) -> Outcome:
    """``outcome`` with the reference clip's own value beside it, or why it has none."""
    if rating is None:
        return outcome
    result = outcome.result.with_values(**{REFERENCE: rating.value})
    if rating.reason is not None:
        why = {"status": str(rating.status), "reason": str(rating.reason), "message": rating.detail.get("message", "")}
        result = result.with_detail(reference_rating=why)
    return replace(outcome, result=result)


__all__ = ["SET_MEMBER", "GroupOutcome", "Outcome", "score_group"]
