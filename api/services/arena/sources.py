"""Where scores come from: files of any accepted form, and run folders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from api.services.facts import facts_of
from api.services.results import RunResults
from api.services.systems import System, systems_of
from gen_eval import registry
from gen_eval.arena.systems import SystemColumn, VideoScores, key_of
from gen_eval.arena.tables import read_scores
from gen_eval.arena.video_means import Metric
from gen_eval.arena.video_scores import read_video_scores
from gen_eval.data.benchmark import Rejected
from gen_eval.protocols import total_rules
from gen_eval.records import InputError
from gen_eval.stats import Aggregate, Total


@dataclass(frozen=True)
class Scores:
    """Everything that files and runs say under one protocol.

    Attributes:
        columns: numbers by system, by x (the Domain Score is ``domain``).
        videos: scores of single videos, one entry a metric, by name.
        rejected: lines of files that could not be used.
    """

    columns: dict[str, SystemColumn]
    videos: list[VideoScores]
    rejected: list[Rejected]


def scores_in(
    paths: Sequence[Path], protocol: str, *, store: str | None = None, lower_is_better: Sequence[str] = ()
) -> Scores:
    """Scores by system and by video under one protocol, from files and runs together.

    A table of single videos gives the means of its systems, too, and the totals that can be made of these. Which end of
    a column is the better one is a fact of the metric; for one that is not installed the document may tell, or
    ``lower_is_better``; otherwise larger is better.

    Args:
        paths: run folders (each of one model; several of a model join as in a report) and files of scores.
        protocol: under which numbers of runs, reports and tables are taken.
        store: database URL when the rows of runs are not in their folders.
        lower_is_better: names of errors.

    Raises:
        InputError: a path cannot be read, two of them give one number of one system, or there is no such error.
    """
    runs, rejected = _runs(paths, store), list[Rejected]()
    columns = _columns(paths, runs, protocol, rejected)
    videos = [one for one in _videos(paths, runs, protocol, rejected) if any(one.values.values())]
    _add_totals(columns, videos)
    better = _directions([*columns, *(one.metric for one in videos)], lower_is_better)
    # for a metric that nobody here knows, what a document says of its column holds for its videos, too
    said = {key_of(one.metric): one.higher_is_better for one in videos}
    said |= {x: one.higher_is_better and said.get(x, True) for x, one in columns.items()}
    return Scores(
        {x: replace(one, higher_is_better=better(x, said[x])) for x, one in columns.items()},
        [replace(one, higher_is_better=better(one.metric, said[key_of(one.metric)])) for one in videos],
        list(dict.fromkeys(rejected)),  # a table of videos is read for both
    )


def video_scores(
    paths: Sequence[Path],
    metrics: Sequence[str] | None,
    protocol: str,
    *,
    store: str | None = None,
    lower_is_better: Sequence[str] = (),
) -> list[VideoScores]:
    """Scores of single videos under one protocol: one entry a metric, systems of all files and runs together.

    Args:
        paths: run folders, and files with rows of videos; files that hold numbers by system only add nothing.
        metrics: only these; ``None`` for all.
        protocol: under which values are taken.
        store: database URL when the rows of runs are not in their folders.
        lower_is_better: names of errors, see :func:`scores_in`.

    Raises:
        InputError: a path or row cannot be read, a metric that was asked for has no value of any video, or there is no
            such error.
    """
    found = _videos(paths, _runs(paths, store), protocol, None)
    better = _directions([one.metric for one in found], lower_is_better)
    valued = [replace(one, higher_is_better=better(one.metric, one.higher_is_better)) for one in found]
    return chosen_videos([one for one in valued if any(one.values.values())], metrics, protocol)


def chosen_videos(videos: Sequence[VideoScores], metrics: Sequence[str] | None, protocol: str) -> list[VideoScores]:
    """Those of ``metrics``, in this order; all without.

    Raises:
        InputError: a metric that was asked for has no value of any video.
    """
    if metrics is None:
        return list(videos)
    there = {key_of(one.metric): one for one in videos}
    if missing := [name for name in metrics if key_of(name) not in there]:
        known = ", ".join(one.metric for one in videos) or "no metric with values of single videos"
        raise InputError(f"no video has a value of {', '.join(missing)} under {protocol}; the scores hold {known}")
    return [there[key] for key in dict.fromkeys(map(key_of, metrics))]


def metric_of(x: str, videos: Mapping[str, VideoScores]) -> Metric | None:
    """The metric, or the means of means, that make up the score ``x``; ``None`` when a part has no scores of videos."""
    for name, one in videos.items():
        if x in (name, key_of(name)):
            return one
    rule = total_rules().get(x)
    if rule is None:
        return None
    parts: list[Metric] = []
    for name in rule.mean_of:
        part = metric_of(name, videos)
        if part is None:
            return None
        parts.append(part)
    return parts


# --- which end is better -------------------------------------------------------------------------------------------


def _directions(there: Iterable[str], lower_is_better: Sequence[str]) -> Callable[[str, bool], bool]:
    """What tells whether larger is better, from a name and what files say of it."""
    known = list(dict.fromkeys(there))
    lower = {key_of(name) for name in lower_is_better}
    if unknown := [name for name in lower_is_better if key_of(name) not in {key_of(one) for one in known}]:
        raise InputError(
            f"the scores hold no {', '.join(unknown)}, so that lower cannot be better there; they hold "
            f"{', '.join(known) or 'nothing'}"
        )
    installed = frozenset(registry.names("gen_eval.metrics"))

    def better(name: str, said: bool) -> bool:
        if key_of(name) in lower:
            return False
        return facts_of(name).higher_is_better if name in installed else said

    return better


# --- by system -----------------------------------------------------------------------------------------------------


def _is_run(path: Path) -> bool:
    """Whether ``path`` is a run folder and not a file of scores."""
    return path.is_dir()


def _runs(paths: Sequence[Path], store: str | None) -> list[tuple[Path, RunResults]]:
    return [(path, RunResults.read(path, store=store)) for path in paths if _is_run(path)]


def _columns(
    paths: Sequence[Path], runs: Sequence[tuple[Path, RunResults]], protocol: str, rejected: list[Rejected]
) -> dict[str, SystemColumn]:
    columns: dict[str, SystemColumn] = {}
    for path in paths:
        if not _is_run(path):
            table = read_scores(path, protocol=protocol)
            rejected += table.rejected
            for column in table.columns.values():
                _join(columns, column)
    for system in systems_of([run for _, run in runs]):
        for column in _of_system(system, protocol):
            _join(columns, column)
    return columns


def _join(columns: dict[str, SystemColumn], column: SystemColumn) -> None:
    """Add the systems of ``column`` to those of the same x, whatever name a file has for it."""
    before = columns.get(column.key)
    if before is None:
        columns[column.key] = replace(column, name=column.key)
        return
    if twice := before.values.keys() & column.values.keys():
        names = f"{column.key} of {', '.join(sorted(twice))}"
        raise InputError(f"{names:.300} is in {before.source} and in {column.source}; give it once")
    columns[column.key] = SystemColumn(
        column.key,
        {**before.values, **column.values},
        {**before.lower, **column.lower},
        {**before.upper, **column.upper},
        f"{before.source}, {column.source}",
        before.higher_is_better and column.higher_is_better,
        {**before.samples, **column.samples},
        unit=before.unit if before.unit == column.unit else "",
    )


def _of_system(system: System, protocol: str) -> Iterable[SystemColumn]:
    source = ", ".join(f"run {run.run[:12]}" for run in system.runs)
    for name, one in system.under(protocol).items():
        found = _column(name, one.main, system.label, source)
        yield replace(found, samples={system.label: one.main.n})
    for name, totals in system.totals.items():
        if protocol in totals:
            yield _column(name, totals[protocol], system.label, source)


def _column(name: str, one: Aggregate | Total, label: str, source: str) -> SystemColumn:
    lower = {} if one.lower is None else {label: one.lower}
    upper = {} if one.upper is None else {label: one.upper}
    # under the names that files have: the Domain Score is the x `domain`
    return SystemColumn(key_of(name), {label: one.value}, lower, upper, source, unit=one.unit)


def _add_totals(columns: dict[str, SystemColumn], videos: Sequence[VideoScores]) -> None:
    """Add the totals that no file or run tells and whose parts are all measured video by video."""
    by_metric = {one.metric: one for one in videos}
    for x, rule in total_rules().items():  # those that others are made of come first
        parts = [columns.get(key_of(name)) for name in rule.mean_of]
        present = [part for part in parts if part is not None]
        if x in columns or len(present) < len(parts) or metric_of(x, by_metric) is None:
            continue
        values: dict[str, float | None] = {}
        for system in present[0].values:
            own = [value for part in present if (value := part.values.get(system)) is not None]
            values[system] = math.fsum(own) / len(own) if len(own) == len(parts) else None
        units = {part.unit for part in present}
        unit = units.pop() if len(units) == 1 else ""
        columns[x] = SystemColumn(x, values, source=f"mean of {', '.join(rule.mean_of)}", unit=unit)


# --- by video ------------------------------------------------------------------------------------------------------


def _videos(
    paths: Sequence[Path],
    runs: Sequence[tuple[Path, RunResults]],
    protocol: str,
    rejected: list[Rejected] | None,
) -> list[VideoScores]:
    """Scores of videos, by name; systems and samples without a value stay known.

    Without ``rejected`` a row that cannot be used is an error.
    """
    names: dict[str, str] = {}
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    better: dict[str, bool] = {}
    parts = [(path, one) for path in paths if not _is_run(path) for one in _of_file(path, protocol, rejected)]
    parts += [(path, one) for path, run in runs for one in _of_run(run, protocol)]
    for path, one in parts:
        key = key_of(one.metric)
        names.setdefault(key, one.metric)
        better[key] = better.get(key, True) and one.higher_is_better
        _add(found.setdefault(key, {}), one, path)
    return [VideoScores(names[key], found[key], protocol, better[key]) for key in sorted(found, key=names.__getitem__)]


def _add(own: dict[tuple[str, str], dict[str, float]], scores: VideoScores, path: Path) -> None:
    for key, members in scores.values.items():
        known = own.setdefault(key, {})
        if twice := known.keys() & members.keys():
            raise InputError(
                f"{path} gives {scores.metric:.80} of {key[0]!r:.80}, sample {key[1]!r:.80}, member {min(twice)!r:.40} "
                "a second time; give each score once"
            )
        known.update(members)


def _of_file(path: Path, protocol: str, rejected: list[Rejected] | None) -> list[VideoScores]:
    """Per metric the scores under the protocol, or under none where it has no others that count."""
    found: dict[str, VideoScores] = {}
    for one in read_video_scores(path, rejected=rejected):
        if one.protocol == protocol or (not one.protocol and one.metric not in found):
            found[one.metric] = one
    return list(found.values())


def _of_run(results: RunResults, protocol: str) -> list[VideoScores]:
    (system,) = systems_of([results])
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    for row in results.rows:
        if row.protocol == protocol:
            # a video without a value stays known: what has to be left out is counted
            own = found.setdefault(row.metric, {}).setdefault((system.label, row.sample), {})
            if row.value is not None:
                own[row.member] = row.value
    return [VideoScores(metric, values, protocol) for metric, values in found.items()]


__all__ = ["Scores", "chosen_videos", "metric_of", "scores_in", "video_scores"]
