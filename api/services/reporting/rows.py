"""A run's rows as flat tables: CSV for spreadsheets, Parquet for programs.

Spreadsheets take a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and names of samples and files
come from strangers. The rule of the CSV: a text that would begin such a cell gets one apostrophe in front; so does a
text that begins with apostrophes followed by such a character, so that taking one apostrophe off undoes it. Numbers are
never touched. Parquet carries all texts as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.services.facts import facts_of
from api.services.results import RunResults
from gen_eval.records import Score, canonical_json

if TYPE_CHECKING:
    import pyarrow as pa

# white space and quotes in front do not stop every spreadsheet; wide forms are taken for the plain ones by some
_FORMULA = re.compile(r"[\s']*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\s']*[\t\r\n]")

_TEXT = "string"
_NUMBER = "double"
_WHOLE = "int64"
_LIST = "list"

Cell = str | float | int | list[str] | None


def _video(row: Score, name: str) -> Any:
    video = row.detail.get("video")
    return video.get(name) if isinstance(video, Mapping) else None


def _frames(row: Score, name: str) -> Any:
    frames = row.detail.get("frames")
    return frames.get(name) if isinstance(frames, Mapping) else None


_DETAILS: dict[str, tuple[str, Callable[[Score], Any]]] = {
    "fps": (_NUMBER, lambda row: _video(row, "fps")),
    "declared_frames": (_WHOLE, lambda row: _video(row, "declared_frames")),
    "decoded_frames": (_WHOLE, lambda row: _video(row, "decoded_frames")),
    "compared_frames": (_WHOLE, lambda row: _frames(row, "compared")),
    "covered": (_NUMBER, lambda row: row.detail.get("covered")),
    "worst_frame": (_WHOLE, lambda row: row.detail.get("worst_frame")),
}
"""Numbers of the detail that get a column of their own; all of the detail stands in the last column as JSON."""

_FIRST: dict[str, str] = {
    "run": _TEXT,
    "model": _TEXT,
    "condition": _TEXT,
    "sample": _TEXT,
    "domain": _TEXT,
    "member": _TEXT,
    "metric": _TEXT,
    "protocol": _TEXT,
    "value": _NUMBER,
    "unit": _TEXT,
    "status": _TEXT,
    "reason": _TEXT,
    "flags": _LIST,
    "message": _TEXT,
}
_LAST: dict[str, str] = {"version": _WHOLE, "parameters": _TEXT, "weights": _TEXT, "detail": _TEXT}


class RowTable:
    """All rows of some runs with the same columns; further numbers of metrics are columns named ``values.<name>``."""

    def __init__(self, results: Sequence[RunResults]) -> None:
        self._results = results
        names = sorted({name for run in results for row in run.rows for name in row.values})
        self._further = names
        self.columns: dict[str, str] = {
            **_FIRST,
            **{f"values.{name}": _NUMBER for name in names},
            **{name: kind for name, (kind, _) in _DETAILS.items()},
            **_LAST,
        }

    def __iter__(self) -> Iterator[list[Cell]]:
        for run in self._results:
            for row in run.rows:
                yield self._cells(run, row)

    def _cells(self, run: RunResults, row: Score) -> list[Cell]:
        message = row.detail.get("message")
        return [
            run.run,
            row.model,
            run.condition,
            row.sample,
            run.domains.get(row.sample),
            row.member,
            row.metric,
            row.protocol,
            row.value,
            facts_of(row.metric).unit,
            str(row.status),
            None if row.reason is None else str(row.reason),
            [str(flag) for flag in row.flags],
            None if message is None else str(message),
            *(row.values.get(name) for name in self._further),
            *(_typed(take(row), kind) for kind, take in _DETAILS.values()),
            row.version,
            row.parameters,
            row.weights,
            canonical_json(dict(row.detail)),
        ]


def _typed(value: Any, kind: str) -> float | int | None:
    """``value`` if it is such a number: details are free in form."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == _NUMBER:
        return float(value)
    return int(value) if float(value).is_integer() else None


def to_csv(results: Sequence[RunResults]) -> bytes:
    """One line a row after a line of names; lists are joined by a space, empty cells have no value."""
    table = RowTable(results)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(neutral, table.columns))
    for cells in table:
        writer.writerow([_csv_cell(cell) for cell in cells])
    return text.getvalue().encode()


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, list):
        return neutral(" ".join(cell))
    return neutral(cell) if isinstance(cell, str) else repr(cell)


def neutral(text: str) -> str:
    """``text`` so that no spreadsheet takes it for a formula.

    Example:
        >>> neutral("=1+1"), neutral("-shot"), neutral("plain"), neutral("'=x")
        ("'=1+1", "'-shot", 'plain', "''=x")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def to_parquet(results: Sequence[RunResults]) -> bytes:
    """The columns of the CSV with types: flags are a list, numbers are numbers, gaps are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = RowTable(results)
    types: dict[str, pa.DataType] = {
        _TEXT: pa.string(),
        _NUMBER: pa.float64(),
        _WHOLE: pa.int64(),
        _LIST: pa.list_(pa.string()),
    }
    columns: list[list[Cell]] = [[] for _ in table.columns]
    for cells in table:
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    arrays = [pa.array(column, types[kind]) for column, kind in zip(columns, table.columns.values(), strict=True)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(table.columns)), buffer, compression="zstd")
    return buffer.getvalue()
