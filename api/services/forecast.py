"""What a run would do: what is there, what will be left out and why, and about how long it will take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from api.services.preparation import Prepared
from api.services.request import ScoreRequest
from api.services.scoring import Execution, plan_only
from gen_eval import weights
from gen_eval.execution.local import limit_threads
from gen_eval.features.clip_signals import given_file
from gen_eval.features.plan import Measurement
from gen_eval.features.planner import score_group
from gen_eval.media import probe
from gen_eval.networks.loading import loaded
from gen_eval.protocols import Preset
from gen_eval.records import Generation, Group, ItemError, Reason
from gen_eval.records.files import is_file

_TRIAL_FRAMES = 4
_PROBED = 20


@dataclass(frozen=True)
class MetricForecast:
    """One metric: videos that it would be computed for, and those that it has no value for, by reason."""

    metric: str
    protocols: tuple[str, ...]
    videos: int
    without: Mapping[str, int]


@dataclass(frozen=True)
class Forecast:
    """A dry run.

    Attributes:
        samples: samples of the run (or shard).
        settled: samples whose rows are there already.
        videos: videos of the samples that are left.
        metrics: what would be done, metric by metric.
        unknown: files that belong to no sample.
        not_asked: files of samples or seeds that were not asked for.
        rejected: lines and files of the data that cannot be used.
        absent_weights: checkpoints that its metrics need and that are not on this machine.
        placement: device and number format of its networks, ``None`` when it uses none.
        workers: processes.
        seconds: rough estimate of the time, ``None`` when there was nothing to measure on.
        basis: what the estimate was made from.
    """

    samples: int
    settled: int
    videos: int
    metrics: tuple[MetricForecast, ...]
    unknown: tuple[str, ...]
    not_asked: tuple[str, ...]
    rejected: tuple[Mapping[str, str], ...]
    absent_weights: tuple[str, ...]
    placement: Mapping[str, Any] | None
    workers: int
    seconds: float | None
    basis: str

    def to_json(self) -> dict[str, Any]:
        """As one JSON document."""
        return {"dry_run": True, **asdict(self)}


def forecast(request: ScoreRequest, out: Path, execution: Execution | None = None) -> Forecast:
    """Look at everything that a run would look at, and measure a few frames; nothing is written.

    Raises:
        InputError: the request is bad.
    """
    how = execution or Execution()
    prepared, todo, mine = plan_only(request, out, how)
    seconds, basis = _estimate(prepared, todo, how)
    return Forecast(
        samples=len(mine),
        settled=len(mine) - len(todo),
        videos=sum(member.path is not None for group in todo for member in group.members),
        metrics=tuple(_metrics(prepared, todo)),
        unknown=tuple(prepared.manifest["unknown_videos"]),
        not_asked=tuple(prepared.manifest["not_asked_videos"]),
        rejected=tuple(prepared.manifest["rejected"]),
        absent_weights=tuple(name for name in prepared.plan.networks if weights.locate(name) is None),
        placement=prepared.plan.placement.to_json() if prepared.plan.networks else None,
        workers=how.processes(prepared.plan),
        seconds=seconds,
        basis=basis,
    )


def _metrics(prepared: Prepared, todo: list[Group]) -> list[MetricForecast]:
    protocols: dict[str, list[str]] = {}
    measurements: dict[str, Measurement] = {}
    for measurement in prepared.plan.measurements:
        measurements.setdefault(measurement.metric.name, measurement)
        protocols.setdefault(measurement.metric.name, []).extend(one.name for one in measurement.protocols)
    lines = []
    for name, measurement in sorted(measurements.items()):
        needed = (*measurement.networks, *measurement.signal_networks)
        absent = any(weights.locate(checkpoint) is None for checkpoint in needed)
        found = [_obstacle(measurement, absent, group, member) for group in todo for member in group.members]
        without = Counter(str(reason) for reason in found if reason is not None)
        lines.append(MetricForecast(name, tuple(protocols[name]), found.count(None), dict(sorted(without.items()))))
    return lines


def _obstacle(measurement: Measurement, absent: bool, group: Group, member: Generation) -> Reason | None:
    """Why its metric will have no value for ``member``, as far as file names and ``absent`` weights tell."""
    metric, sample = measurement.metric, group.sample
    if member.problem is not None:
        return member.problem
    if metric.signal != "frames":
        return _obstacle_to_files(measurement, absent, group, member)
    if metric.inputs == "pair" and (sample.reference is None or not is_file(sample.reference)):
        return Reason.MISSING_GROUND_TRUTH
    if absent:
        return Reason.MISSING_WEIGHTS
    if metric.uses_prompt and not (sample.prompt or "").strip():
        return Reason.MISSING_PROMPT
    if metric.uses_condition_image and (sample.condition_image is None or not is_file(sample.condition_image)):
        return Reason.MISSING_CONDITION_IMAGE
    return None


def _obstacle_to_files(measurement: Measurement, absent: bool, group: Group, member: Generation) -> Reason | None:
    """The same for a metric on depth maps or masks, which are given or made by networks."""
    metric, sample = measurement.metric, group.sample
    signal = metric.clip_signal(measurement.measure)
    possible = signal is not None and not absent
    named = getattr(sample, metric.signal)
    if named is not None:
        missing = not is_file(named)
    else:
        missing = not (possible and sample.reference is not None and is_file(sample.reference))
    if missing:
        return Reason.MISSING_GROUND_TRUTH
    if given_file(member, metric.signal) is not None:
        return None
    if not possible:
        return Reason.MISSING_WEIGHTS
    needs_prompt = signal is not None and signal.uses_prompt and not (sample.prompt or "").strip()
    return Reason.MISSING_PROMPT if needs_prompt else None


def _estimate(prepared: Prepared, todo: list[Group], how: Execution) -> tuple[float | None, str]:
    """Seconds, from the first frames of one group and the length of a few videos."""
    present = [group for group in todo if any(member.path is not None for member in group.members)]
    lengths = [_length(member, prepared.plan.preset) for group in present[:_PROBED] for member in group.members[:1]]
    known = [length for length in lengths if length]
    if not known:
        return None, ""
    members = sum(len(group.members) for group in present)
    for group in present[:_PROBED]:
        trial = replace(group, members=tuple(one for one in group.members if one.path is not None)[:1])
        if (per_frame := _seconds_per_frame(prepared, trial, how.threads(prepared.plan))) is not None:
            mean = sum(known) / len(known)
            seconds = per_frame * mean * members / min(how.processes(prepared.plan), max(1, len(present)))
            return seconds, f"{_TRIAL_FRAMES} frames of one video measured, {mean:.0f} frames a video"
    return None, ""


def _seconds_per_frame(prepared: Prepared, group: Group, threads: int) -> float | None:
    limit_threads(threads)
    plan = replace(prepared.plan, preset=Preset("trial", _TRIAL_FRAMES))
    for name in plan.networks:
        with suppress(ItemError):
            loaded(name)  # networks are loaded once for all videos: that time belongs to none of them
    started = time.monotonic()
    outcome = score_group(group, plan)
    worked = any(one.result.value is not None for one in outcome.outcomes)
    return (time.monotonic() - started) / _TRIAL_FRAMES if worked else None


def _length(member: Generation, preset: Preset) -> int | None:
    if member.path is None:
        return None
    try:
        info = probe(member.path)
    except ItemError:
        return None
    if info.declared_frames is None:
        return None
    return info.declared_frames if preset.limit is None else min(info.declared_frames, preset.limit)
