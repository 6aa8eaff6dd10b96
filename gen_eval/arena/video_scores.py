"""Scores of single videos from files: rows of ``score --json`` and of reports, or tables with the same names."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from gen_eval.arena.score_documents import directions, runs_in, system_of
from gen_eval.arena.system_numbers import Number, system_in
from gen_eval.arena.systems import VideoScores, key_of
from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused, json_document, required_text, text
from gen_eval.data.table_file import TableRow, listed_rows, number_of, object_rows, table_rows
from gen_eval.records import InputError, Rejection, Status
from gen_eval.stats.summaries import exact_mean

BARE_MEMBER = "0"
"""Member of a row that names none."""

_Key = tuple[str, str]
_Gathered = dict[_Key, dict[_Key, dict[str, float]]]
"""(Metric, protocol) -> (system, sample) -> member -> value."""


def read_video_scores(
    path: str | os.PathLike[str],
    *,
    higher_is_better: bool | Mapping[str, bool] | None = None,
    rejected: list[Rejected] | None = None,
) -> list[VideoScores]:
    """Scores of single videos: a document that ``score --json`` or ``report --out x.json`` wrote, or a table.

    Rows (of the document, or of CSV, JSON lines, a JSON list or Parquet): model (or system, or name), sample, member?,
    metric, protocol?, value, status?. One whose value is empty, or whose status is another than ``ok``, is of a video
    without a value: its system and sample stay known, with no member.

    Args:
        path: the file. One without a column ``sample`` holds numbers by system, and no scores of videos.
        higher_is_better: for all metrics, or by metric; for what it does not name, what the tables of a document say,
            and otherwise larger is better.
        rejected: gets an entry for each row that cannot be used; without it such a row ends the reading.

    Returns:
        One entry a metric and protocol, by name.

    Raises:
        InputError: the file cannot be read, a video has two scores, or a row cannot be used and ``rejected`` is not
            given.
    """
    path = Path(path)
    refused: list[Rejected] = []
    found = _read(path, refused, higher_is_better)
    if refused and rejected is None:
        one = refused[0]
        raise InputError(f"{path} has rows that are no scores of videos, first {one.where}: {one.message}")
    if rejected is not None:
        rejected += refused
    return found


def by_video(rows: Iterator[TableRow]) -> tuple[bool, Iterator[TableRow]]:
    """Whether rows are of single videos (a sample and a metric) and not of systems, and all of them.

    Raises:
        InputError: while the rows are taken, when the first is of a system and a later one of a video.
    """
    first = next(rows, None)
    if first is None:
        return False, iter(())
    if _is_of_video(first):
        return True, chain((first,), rows)
    return False, _of_systems(first, rows)


def _is_of_video(row: TableRow) -> bool:
    return "sample" in row.record and ("metric" in row.record or "value" in row.record)


def _of_systems(first: TableRow, rows: Iterator[TableRow]) -> Iterator[TableRow]:
    yield first
    for row in rows:
        if _is_of_video(row):
            raise InputError(f"{first.where} has no sample, and later rows have; name it in all, or keep tables apart")
        yield row


def gathered_videos(
    rows: Iterable[TableRow],
    path: Path,
    rejected: list[Rejected],
    *,
    higher_is_better: bool | Mapping[str, bool] = True,
) -> list[VideoScores]:
    """Rows of single videos by metric and protocol; see :func:`read_video_scores`.

    Raises:
        InputError: a video has two scores.
    """
    gathered: _Gathered = {}
    for row in rows:
        try:
            _add(row, gathered, path)
        except Refused as refusal:
            rejected.append(refusal.at(row.where))
    return [
        VideoScores(metric, values, protocol, _better(metric, higher_is_better))
        for (metric, protocol), values in sorted(gathered.items())
    ]


def numbers_of_videos(videos: Iterable[VideoScores]) -> Iterator[Number]:
    """By metric and protocol the mean of each system: over the members of a sample, then over its samples.

    A system without any value is there without a number. ``samples`` of a number counts those with a value.
    """
    for one in videos:
        by_system: dict[str, list[float]] = {}
        for (system, _), members in one.values.items():
            means = by_system.setdefault(system, [])
            if members:
                means.append(exact_mean(list(members.values())))
        for system, means in by_system.items():
            value = exact_mean(means) if means else None
            yield Number(
                system, one.metric, value, protocol=one.protocol, source="mean over samples", samples=len(means)
            )


def _better(metric: str, known: bool | Mapping[str, bool]) -> bool:
    return known if isinstance(known, bool) else known.get(metric, known.get(key_of(metric), True))


def _read(path: Path, rejected: list[Rejected], better: bool | Mapping[str, bool] | None) -> list[VideoScores]:
    called = "the scores"
    known = better if isinstance(better, bool) else dict(better or {})
    if not path.name.casefold().endswith(".json"):
        rows = table_rows(path, rejected, called=called)
    elif isinstance(document := json_document(path, called=called), Mapping):
        known = known if isinstance(known, bool) else {**directions(document), **known}
        return gathered_videos(_document_rows(document, path, rejected), path, rejected, higher_is_better=known)
    else:
        rows = listed_rows(document, path, rejected, called=called)
    of_videos, rows = by_video(rows)
    if not of_videos:
        deque(rows, maxlen=0)  # to the end: a row of a video among them is an error
        return []
    return gathered_videos(rows, path, rejected, higher_is_better=known)


def _document_rows(document: Mapping[str, Any], path: Path, rejected: list[Rejected]) -> Iterator[TableRow]:
    """The rows of all runs, under the names that reports give their systems."""
    if "trackers" in document:
        return
    for run in runs_in(document, path):
        rows = run.get("rows", [])
        if not isinstance(rows, list):
            raise InputError(f"{path}: rows is {type(rows).__name__}, not a list")
        system = system_of(run, path) if rows else ""
        for row in object_rows(enumerate(rows, start=1), f"{path.name} row", rejected):
            yield row._replace(record={**row.record, "model": system})


def _add(row: TableRow, gathered: _Gathered, path: Path) -> None:
    record = row.record
    system = system_in(record)
    sample, metric = (required_text(record, name).strip() for name in ("sample", "metric"))
    member = _member(record)
    protocol, status = ((text(record, name) or "").strip() for name in ("protocol", "status"))
    value = _value(record.get("value"))
    members = gathered.setdefault((metric, protocol), {}).setdefault((system, sample), {})
    if value is None or status not in ("", Status.OK):
        return
    if member in members:
        raise InputError(
            f"{path} has two scores {metric} {protocol} of {system!r:.60}, sample {sample!r:.60}, member "
            f"{member!r:.40} (the second in {row.where}); keep one"
        )
    members[member] = value


def _member(record: Mapping[str, Any]) -> str:
    value = record.get("member")
    if isinstance(value, int) and not isinstance(value, bool):  # seeds are numbers elsewhere, too
        return str(value)
    return (text(record, "member") or "").strip() or BARE_MEMBER


def _value(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    found = number_of(value)
    if found is None:
        raise Refused(Rejection.MALFORMED_RECORD, f"value is {value!r:.60}; expected a finite number, or nothing")
    return found


__all__ = ["BARE_MEMBER", "by_video", "gathered_videos", "numbers_of_videos", "read_video_scores"]
