"""Where scores come from: files of any accepted form, and run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from api.services.facts import facts_of
from api.services.results import RunResults
from api.services.systems import System, systems_of
from gen_eval.arena.systems import SAME, SystemColumn, VideoScores
from gen_eval.arena.tables import read_scores
from gen_eval.arena.video_scores import read_video_scores
from gen_eval.data.benchmark import Rejected
from gen_eval.records import InputError
from gen_eval.stats import Aggregate, Total


def is_run(path: Path) -> bool:
    """Whether ``path`` is a run folder and not a file of scores."""
    return path.is_dir()


def system_scores(
    paths: Sequence[Path], protocol: str, *, store: str | None = None
) -> tuple[dict[str, SystemColumn], list[Rejected]]:
    """Scores by system under one protocol, from files and runs together.

    Args:
        paths: run folders (each of one model; several of a model join as in a report) and files of scores.
        protocol: under which numbers of runs and reports are taken.
        store: database URL when the rows of runs are not in their folders.

    Returns:
        Columns by name, and the lines of files that could not be used.

    Raises:
        InputError: a path cannot be read, or two of them give one number of one system.
    """
    columns: dict[str, SystemColumn] = {}
    rejected: list[Rejected] = []
    for path in paths:
        if is_run(path):
            continue
        table = read_scores(path, protocol=protocol)
        rejected += table.rejected
        for name, column in table.columns.items():
            columns[name] = _joined(columns.get(name), column)
    runs = [RunResults.read(path, store=store) for path in paths if is_run(path)]
    for system in systems_of(runs):
        for name, column in _of_system(system, protocol).items():
            columns[name] = _joined(columns.get(name), column)
    return columns, rejected


def _joined(before: SystemColumn | None, column: SystemColumn) -> SystemColumn:
    if before is None:
        return column
    if twice := before.values.keys() & column.values.keys():
        raise InputError(
            f"{column.name} of {', '.join(sorted(twice))} is in {before.source} and in {column.source}; give it once"
        )
    return SystemColumn(
        column.name,
        {**before.values, **column.values},
        {**before.lower, **column.lower},
        {**before.upper, **column.upper},
        f"{before.source}, {column.source}",
        column.higher_is_better,
    )


def _of_system(system: System, protocol: str) -> dict[str, SystemColumn]:
    source = ", ".join(f"run {run.run[:12]}" for run in system.runs)
    numbers: dict[str, Aggregate | Total] = {name: one.main for name, one in system.under(protocol).items()}
    numbers |= {name: totals[protocol] for name, totals in system.totals.items() if protocol in totals}
    # under the names that files have: the Domain Score is the x `domain`
    return {SAME.get(name, name): _column(name, one, system.label, source) for name, one in numbers.items()}


def _column(name: str, one: Aggregate | Total, label: str, source: str) -> SystemColumn:
    better = True if isinstance(one, Total) else facts_of(name).higher_is_better
    lower = {} if one.lower is None else {label: one.lower}
    upper = {} if one.upper is None else {label: one.upper}
    return SystemColumn(SAME.get(name, name), {label: one.value}, lower, upper, source, better)


def video_scores(
    paths: Sequence[Path], metrics: Sequence[str] | None, protocol: str, *, store: str | None = None
) -> list[VideoScores]:
    """Scores of single videos under one protocol: one entry a metric, systems of all files and runs together.

    Args:
        paths: run folders, and files with rows of videos; files that hold numbers by system only add nothing.
        metrics: only these; ``None`` for all.
        protocol: under which values are taken.
        store: database URL when the rows of runs are not in their folders.

    Raises:
        InputError: a path cannot be read, or a metric that was asked for has no value of any video.
    """
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    for path in paths:
        for metric, values in (_of_run(path, protocol, store) if is_run(path) else _of_file(path, protocol)).items():
            _add(found.setdefault(metric, {}), values, metric, path)
    there = sorted(name for name, values in found.items() if any(values.values()))
    if missing := [name for name in metrics or () if name not in there]:
        known = ", ".join(there) or "no metric with values of single videos"
        raise InputError(f"no video has a value of {', '.join(missing)} under {protocol}; the scores hold {known}")
    return [
        VideoScores(name, found[name], protocol, facts_of(name).higher_is_better)
        for name in (metrics if metrics is not None else there)
    ]


def _add(own: dict[tuple[str, str], dict[str, float]], values: Values, metric: str, path: Path) -> None:
    for key, members in values.items():
        known = own.setdefault(key, {})
        if twice := known.keys() & members.keys():
            raise InputError(
                f"{path} gives {metric} of {key[0]!r}, sample {key[1]!r}, member {min(twice)!r} a second time; "
                "give each run once"
            )
        known.update(members)


Values = Mapping[tuple[str, str], Mapping[str, float]]


def _of_file(path: Path, protocol: str) -> dict[str, Values]:
    return {one.metric: one.values for one in read_video_scores(path) if one.protocol in ("", protocol)}


def _of_run(path: Path, protocol: str, store: str | None) -> dict[str, Values]:
    results = RunResults.read(path, store=store)
    (system,) = systems_of([results])
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    for row in results.rows:
        if row.protocol == protocol:
            # a video without a value stays known: what has to be left out is counted
            own = found.setdefault(row.metric, {}).setdefault((system.label, row.sample), {})
            if row.value is not None:
                own[row.member] = row.value
    return dict(found)


__all__ = ["is_run", "system_scores", "video_scores"]
