"""Tables of systems: ratings and scores, wide or long, or in a document that was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_eval.arena.score_documents import directions, rating_numbers, score_numbers
from gen_eval.arena.system_numbers import NAME_COLUMNS, Number, columns_of, system_in
from gen_eval.arena.systems import SystemColumn, key_of
from gen_eval.arena.video_scores import by_video, gathered_videos, numbers_of_videos
from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused, json_document, text
from gen_eval.data.table_file import TableRow, listed_rows, number_of, table_rows
from gen_eval.records import InputError, Rejection

RATING_PREFIXES = ("elo", "bt", "rating")
"""Columns of a wide table that are ratings begin with one of these and an underscore."""

SCORE_PREFIXES = ("score",)

MOST_SYSTEMS = 100_000
"""Lines of a table of systems."""


@dataclass(frozen=True)
class SystemTable:
    """Columns by name (tracker, total or metric), and lines or cells that could not be used."""

    columns: Mapping[str, SystemColumn]
    rejected: tuple[Rejected, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """Every system that a column names, in the order of the file."""
        return tuple(dict.fromkeys(name for column in self.columns.values() for name in column.values))


def read_ratings(path: str | os.PathLike[str], *, column: str | Sequence[str] | None = None) -> SystemTable:
    """Ratings by system: a table (CSV, JSON lines, a JSON list, Parquet), or what ``arena rate --json`` prints.

    A wide table has a line a system (its name in ``model``, ``system`` or ``name``) and columns ``elo_<x>``,
    ``bt_<x>``, ``rating_<x>``, with ``<column>_lower`` and ``<column>_upper`` for intervals; other columns are left
    alone. A long one has a line a system and tracker: model, tracker, rating, and perhaps lower, upper.

    Args:
        path: the file.
        column: the only columns of a wide table that are taken: prefixes (``bt``) or whole names (``bt_overall``).

    Returns:
        Columns by x. An empty cell is ``None``; one that holds no finite number is, too, and is listed.

    Raises:
        InputError: the file cannot be read or has no ratings, one system has two ratings of an x, several columns are
            of one x (``plausibility`` and ``domain`` are one), or ``column`` names none.
    """
    path = Path(path)
    chosen = [column] if isinstance(column, str) else list(column or ())
    rejected: list[Rejected] = []
    content = _content(path, rejected, "the ratings")
    if isinstance(content, Mapping):
        _no_choice(chosen, path, "a document of ratings")
        return _table(columns_of(rating_numbers(content, path), path), rejected, path, "ratings")
    rows = _listed(content, path)
    if _is_long(rows, ("tracker", "rating")):
        _no_choice(chosen, path, "a long table")
        numbers = list(_long(rows, "tracker", "rating", rejected))
    else:
        columns = _wide_columns(rows, RATING_PREFIXES)
        columns = _narrowed(columns, chosen, path) if chosen else columns
        _check_single(columns, path)
        numbers = list(_wide(rows, columns, rejected))
    return _table(columns_of(numbers, path), rejected, path, "ratings")


def read_scores(
    path: str | os.PathLike[str], *, protocol: str | None = None, higher_is_better: Mapping[str, bool] | None = None
) -> SystemTable:
    """Scores by system: a table, or a document that ``score --json`` or ``report --out x.json`` wrote.

    A wide table has columns ``score_<x>`` (with ``_lower`` and ``_upper``), a long one lines of model, metric, value,
    and perhaps lower, upper, n, protocol. One of single videos (with a column ``sample``, see
    :func:`gen_eval.arena.read_video_scores`) gives the mean of each system, over members and then over samples. Of a
    document all metrics and totals are read; ``domain_score`` is the x ``domain``. Of ratings (``arena rate --json``)
    those are scores that were made from scores of videos.

    Args:
        path: the file.
        protocol: under which scores are taken; by default ``corrected``, or the only one that an x has. Numbers whose
            protocol nobody tells are taken where an x has no others.
        higher_is_better: by x; it goes before what the tables of a document say.

    Raises:
        InputError: the file cannot be read or has no scores, one system has two numbers of an x, or an x has several
            protocols and none is chosen.
    """
    path = Path(path)
    rejected: list[Rejected] = []
    content = _content(path, rejected, "the scores")
    better = dict(higher_is_better or {})
    if isinstance(content, Mapping):
        numbers, better = score_numbers(content, path), {**directions(content), **better}
    else:
        numbers = _score_rows(content, path, rejected)
    return _table(columns_of(numbers, path, protocol=protocol, higher_is_better=better), rejected, path, "scores")


def _score_rows(content: Iterator[TableRow], path: Path, rejected: list[Rejected]) -> list[Number]:
    of_videos, content = by_video(content)
    if of_videos:
        return list(numbers_of_videos(gathered_videos(content, path, rejected)))
    rows = _listed(content, path)
    if _is_long(rows, ("metric", "value")):
        return list(_long(rows, "metric", "value", rejected))
    return list(_wide(rows, _wide_columns(rows, SCORE_PREFIXES), rejected))


_WANTED = {
    "ratings": "columns elo_<x>, bt_<x> or rating_<x>, or lines of model, tracker, rating",
    "scores": "columns score_<x>, or lines of model, metric, value (of single videos: and sample)",
}


def _table(columns: dict[str, SystemColumn], rejected: list[Rejected], path: Path, what: str) -> SystemTable:
    if not any(column.values for column in columns.values()):
        why = f"; {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} has no {what}; expected {_WANTED[what]}{why}")
    return SystemTable(columns, tuple(rejected))


def _content(path: Path, rejected: list[Rejected], called: str) -> Mapping[str, Any] | Iterator[TableRow]:
    """A document, or the lines of a table as they are read."""
    if path.name.casefold().endswith(".json"):
        document = json_document(path, called=called)
        if isinstance(document, Mapping):
            return document
        return listed_rows(document, path, rejected, called=called)
    return table_rows(path, rejected, called=called)


def _listed(rows: Iterable[TableRow], path: Path) -> list[TableRow]:
    """The lines of a table of systems.

    Raises:
        InputError: they are too many.
    """
    found: list[TableRow] = []
    for row in rows:
        if len(found) == MOST_SYSTEMS:
            raise InputError(f"{path} has more than {MOST_SYSTEMS} lines; expected a line a system and number")
        found.append(row)
    return found


def _keys(rows: Sequence[TableRow]) -> dict[str, None]:
    """All columns, in the order in which they appear."""
    return dict.fromkeys(name for row in rows for name in row.record)


def _no_choice(chosen: Sequence[str], path: Path, kind: str) -> None:
    if chosen:
        raise InputError(
            f"{', '.join(chosen)} chooses among the columns of a wide table, and {path} is {kind}; leave it out"
        )


# --- long ----------------------------------------------------------------------------------------------------------


def _is_long(rows: Sequence[TableRow], needed: Sequence[str]) -> bool:
    keys = _keys(rows)
    return all(name in keys for name in needed)


def _long(rows: Sequence[TableRow], label: str, value: str, rejected: list[Rejected]) -> Iterator[Number]:
    for row in rows:
        try:
            cell = _cells(row, rejected)
            yield Number(
                system_in(row.record),
                _label(row.record, label),
                _number(row.record, value),
                cell("lower"),
                cell("upper"),
                _label(row.record, "protocol", needed=False),
                samples=_count(row.record) if label == "metric" else None,
                reason=_said(row.record, "reason"),
                message=_said(row.record, "message"),
            )
        except Refused as refusal:
            rejected.append(refusal.at(row.where))


def _label(record: Mapping[str, Any], field: str, *, needed: bool = True) -> str:
    value = (text(record, field) or "").strip()
    if needed and not value:
        raise Refused(Rejection.MISSING_FIELD, f"the field {field} is missing or empty")
    return value


def _count(record: Mapping[str, Any]) -> int | None:
    """Samples behind the number, where ``n`` tells them."""
    found = number_of(record.get("n"))
    return int(found) if found is not None and found >= 0 and found.is_integer() else None


def _said(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    return value.strip() if isinstance(value, str) else ""


def _number(record: Mapping[str, Any], column: str) -> float | None:
    value = record.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    found = number_of(value)
    if found is None:
        message = f"{column} is {value!r:.60}; expected a finite number with a point, or nothing"
        raise Refused(Rejection.MALFORMED_RECORD, message)
    return found


def _cells(row: TableRow, rejected: list[Rejected]) -> Callable[[str], float | None]:
    """The numbers of a line; one that is none is listed, and ``None``."""

    def cell(column: str) -> float | None:
        try:
            return _number(row.record, column)
        except Refused as refusal:
            rejected.append(refusal.at(row.where))
            return None

    return cell


# --- wide ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wide:
    """A column of numbers: ``elo_overall`` is ``elo`` and ``overall``."""

    name: str
    prefix: str
    x: str


def _wide_columns(rows: Sequence[TableRow], prefixes: Sequence[str]) -> list[_Wide]:
    """The columns with one of ``prefixes``; the ends of an interval are none of their own."""
    keys = _keys(rows)
    found = []
    for name in keys:
        base, _, end = name.rpartition("_")
        prefix, _, x = name.partition("_")
        if prefix in prefixes and x and not (end in ("lower", "upper") and base in keys):
            found.append(_Wide(name, prefix, x))
    return found


def _narrowed(columns: list[_Wide], chosen: Sequence[str], path: Path) -> list[_Wide]:
    there = {one.name for one in columns} | {one.prefix for one in columns}
    unknown = [name for name in chosen if name.removesuffix("_") not in there]
    if unknown:
        names = ", ".join(one.name for one in columns) or "none"
        raise InputError(f"{path} has no column {', '.join(unknown)} of ratings; its columns of ratings are {names}")
    wanted = {name.removesuffix("_") for name in chosen}
    return [one for one in columns if one.name in wanted or one.prefix in wanted]


def _check_single(columns: Sequence[_Wide], path: Path) -> None:
    """See that each x has one column.

    Raises:
        InputError: one has several.
    """
    by_x: dict[str, list[str]] = {}
    for one in columns:
        by_x.setdefault(key_of(one.x), []).append(one.name)
    several = {x: names for x, names in by_x.items() if len(names) > 1}
    if several:
        told = "; ".join(f"{x}: {', '.join(names)}" for x, names in several.items())
        raise InputError(
            f"{path} has several columns of ratings for one thing ({told}); choose with --column a prefix or a column"
        )


def _wide(rows: Sequence[TableRow], columns: Sequence[_Wide], rejected: list[Rejected]) -> Iterator[Number]:
    for row in rows:
        try:
            system = system_in(row.record)
        except Refused as refusal:
            rejected.append(refusal.at(row.where))
            continue
        cell = _cells(row, rejected)
        for one in columns:
            ends = cell(f"{one.name}_lower"), cell(f"{one.name}_upper")
            yield Number(system, one.x, cell(one.name), *ends, source=one.name)


__all__ = ["MOST_SYSTEMS", "NAME_COLUMNS", "RATING_PREFIXES", "SystemTable", "read_ratings", "read_scores"]
