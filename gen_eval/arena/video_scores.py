"""Scores of single videos from files: rows of ``score --json`` and of reports, or tables with the same names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from gen_eval.arena.score_documents import runs_in, system_of
from gen_eval.arena.systems import VideoScores
from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused, json_document, required_text, text
from gen_eval.data.table_file import TableRow, listed_rows, number_of, object_rows, table_rows
from gen_eval.records import InputError, Rejection, Status

BARE_MEMBER = "0"
"""Member of a row that names none."""

_Key = tuple[str, str]
_Gathered = dict[_Key, dict[_Key, dict[str, float]]]
"""(Metric, protocol) -> (system, sample) -> member -> value."""


def read_video_scores(
    path: str | os.PathLike[str],
    *,
    higher_is_better: bool | Mapping[str, bool] = True,
    rejected: list[Rejected] | None = None,
) -> list[VideoScores]:
    """Scores of single videos: a document that ``score --json`` or ``report --out x.json`` wrote, or a table.

    Rows (of the document, or of CSV, JSON lines, a JSON list or Parquet): model, sample, member?, metric, protocol?,
    value, status?. One whose value is empty, or whose status is another than ``ok``, is of a video without a value: its
    system and sample stay known, with no member.

    Args:
        path: the file. One without a column ``sample`` holds numbers by system, and no scores of videos.
        higher_is_better: for all metrics, or by metric (larger is better for what it does not name).
        rejected: gets an entry for each row that cannot be used; without it such a row ends the reading.

    Returns:
        One entry a metric and protocol, by name.

    Raises:
        InputError: the file cannot be read, a video has two scores, or a row cannot be used and ``rejected`` is not
            given.
    """
    path = Path(path)
    refused: list[Rejected] = []
    gathered: _Gathered = {}
    for row in _rows(path, refused):
        try:
            _add(row, gathered, path)
        except Refused as refusal:
            refused.append(refusal.at(row.where))
    if refused and rejected is None:
        one = refused[0]
        raise InputError(f"{path} has rows that are no scores of videos, first {one.where}: {one.message}")
    if rejected is not None:
        rejected += refused
    return [
        VideoScores(metric, values, protocol, _better(metric, higher_is_better))
        for (metric, protocol), values in sorted(gathered.items())
    ]


def _better(metric: str, known: bool | Mapping[str, bool]) -> bool:
    return known if isinstance(known, bool) else known.get(metric, True)


def _rows(path: Path, rejected: list[Rejected]) -> Iterable[TableRow]:
    called = "the scores"
    if not path.name.casefold().endswith(".json"):
        return _of_videos(table_rows(path, rejected, called=called))
    document = json_document(path, called=called)
    if isinstance(document, Mapping):
        return _document_rows(document, path, rejected)
    return _of_videos(listed_rows(document, path, rejected, called=called))


def _of_videos(rows: Iterator[TableRow]) -> Iterable[TableRow]:
    """The rows, none of which is left when they have no samples: then they are of systems."""
    first = next(rows, None)
    if first is not None and "sample" in first.record:
        return chain((first,), rows)
    if first is not None and any("sample" in row.record for row in rows):
        raise InputError(f"{first.where} has no sample, and later rows have; name it in all, or keep tables apart")
    return ()


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
    system, sample, metric = (required_text(record, name).strip() for name in ("model", "sample", "metric"))
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


__all__ = ["BARE_MEMBER", "read_video_scores"]
