"""Tables from untrusted files: CSV, JSON lines, a JSON list or Parquet, read line by line as records.

A line that cannot be used is listed and the others stay; only a file that is no such table ends the command. In CSV an
empty cell is an empty text, blanks at the ends of cells and of column names are not part of them, and a line without
any content is left out.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import decimal
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import (
    JSON_LINES,
    LONGEST_LINE,
    MOST_BYTES,
    Refused,
    json_document,
    json_lines,
    object_of,
    real_of,
)
from gen_eval.records import InputError, Rejection

TABLES = (".csv", *JSON_LINES, ".json", ".parquet")
"""What the name of a table ends with."""

MOST_ROWS = 20_000_000
"""Rows of a Parquet table."""

_BATCH = 4096
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400


class TableRow(NamedTuple):
    """One line of a table.

    Attributes:
        where: file, and line or row.
        number: line in the file (CSV, JSON lines; where the record begins) or row in the table, from 1.
        record: value by column.
    """

    where: str
    number: int
    record: dict[str, Any]


def table_rows(
    path: Path, rejected: list[Rejected], *, needed: Collection[str] = (), called: str = "the file"
) -> Iterator[TableRow]:
    """The records of the table in ``path``, in the order of the file.

    Args:
        path: its name ends with one of :data:`TABLES`.
        rejected: gets an entry for each damaged line, when it is reached.
        needed: columns that a CSV or Parquet file must have; in JSON each object says what it holds.
        called: what the file is, for messages.

    Raises:
        InputError: the file cannot be read, is too long, is none of these tables, or lacks a column.
    """
    name = path.name.casefold()
    if name.endswith(JSON_LINES):
        return _json_lines(path, rejected, called)
    if name.endswith(".csv"):
        return _csv_rows(path, rejected, needed, called)
    if name.endswith(".parquet"):
        return _parquet_rows(path, rejected, needed, called)
    if name.endswith(".json"):
        return listed_rows(json_document(path, called=called), path, rejected, called=called)
    raise InputError(f"{called} {path} is of no kind that is read; expected a name that ends with {', '.join(TABLES)}")


def _json_lines(path: Path, rejected: list[Rejected], called: str) -> Iterator[TableRow]:
    for where, record in json_lines(path, rejected, called=called):
        yield TableRow(where, int(where.rpartition(":")[2]), record)


def listed_rows(document: Any, path: Path, rejected: list[Rejected], *, called: str = "the file") -> Iterator[TableRow]:
    """The objects of a JSON list.

    Raises:
        InputError: it is no list.
    """
    if not isinstance(document, list):
        raise InputError(f"{called} {path} must be a JSON list of objects, not {type(document).__name__}")
    yield from object_rows(enumerate(document, start=1), f"{path.name} row", rejected)


def object_rows(values: Iterable[tuple[int, Any]], place: str, rejected: list[Rejected]) -> Iterator[TableRow]:
    """The objects among numbered values, each with where it stands (``place`` and the number)."""
    for number, value in values:
        where = f"{place} {number}"
        try:
            yield TableRow(where, number, object_of(value))
        except Refused as refusal:
            rejected.append(refusal.at(where))


# --- CSV -----------------------------------------------------------------------------------------------------------


def _csv_rows(path: Path, rejected: list[Rejected], needed: Collection[str], called: str) -> Iterator[TableRow]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(_bounded(file, path, called), strict=True, skipinitialspace=True)
            names: list[str] | None = None
            first = 1
            for cells in reader:
                number, first = first, reader.line_num + 1
                cells = [cell.strip() for cell in cells]
                if not any(cells):
                    continue
                if names is None:
                    names = _header(cells, path, needed, called)
                elif len(cells) != len(names):
                    message = f"the line has {len(cells)} cells; the header has {len(names)}"
                    rejected.append(Rejected(f"{path.name}:{number}", Rejection.MALFORMED_RECORD, message))
                else:
                    record = {name: cell for name, cell in zip(names, cells, strict=True) if name}
                    yield TableRow(f"{path.name}:{number}", number, record)
    except UnicodeDecodeError as error:
        kind = "UTF-16" if error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "no UTF-8"
        raise InputError(f"{called} {path} is {kind} text ({error}); save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{called} {path} cannot be read as CSV near line {first}: {error}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{called} {path} cannot be read: {error}") from error


def _bounded(file: TextIO, path: Path, called: str) -> Iterator[str]:
    """The lines of ``file``, none of which is held unless it is of a bounded length."""
    left = MOST_BYTES
    while line := file.readline(min(LONGEST_LINE, left) + 1):
        left -= len(line)
        if len(line) > LONGEST_LINE or left < 0:
            limit = f"a line has at most {LONGEST_LINE} characters and the whole {MOST_BYTES}"
            raise InputError(f"{called} {path} cannot be read: {limit}; split it")
        yield line


def _header(names: Sequence[str], path: Path, needed: Collection[str], called: str) -> list[str]:
    """The columns, an unnamed one as an empty text.

    Raises:
        InputError: two have one name, or one that is needed is not there.
    """
    counts = Counter(names)
    twice = next((name for name, count in counts.items() if name and count > 1), None)
    if twice is not None:
        raise InputError(f"{called} {path} has several columns {twice:.60}; keep one of each name")
    missing = [name for name in needed if name not in counts]
    if missing:
        shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:40]}…") for name in names[:20]) or "none"
        raise InputError(
            f"{called} {path} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; it has {shown}"
            + _hint(names)
        )
    return list(names)


def _hint(names: Sequence[str]) -> str:
    whole = "".join(names)
    if "\0" in whole:
        return " (it looks like UTF-16: save it as CSV in UTF-8)"
    for sign, word in ((";", "semicolons"), ("\t", "tabulators")):
        if len(names) == 1 and sign in whole:
            return f" (cells are separated by {word}: separate them by commas)"
    return ""


# --- Parquet -------------------------------------------------------------------------------------------------------


def _parquet_rows(path: Path, rejected: list[Rejected], needed: Collection[str], called: str) -> Iterator[TableRow]:
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            _check_size(file.metadata, path, called)
            names = _header([name.strip() for name in file.schema_arrow.names], path, needed, called)
            yield from object_rows(enumerate(_parquet_records(file, names), 1), f"{path.name} row", rejected)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        raise InputError(f"{called} {path} cannot be read as Parquet: {error}") from error


def _check_size(metadata: Any, path: Path, called: str) -> None:
    size = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    if metadata.num_rows > MOST_ROWS or size > MOST_BYTES:
        raise InputError(
            f"{called} {path} has {metadata.num_rows} rows and {size} bytes; at most {MOST_ROWS} rows and {MOST_BYTES} "
            "bytes are read; split it"
        )


def _parquet_records(file: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=_BATCH):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield {name: plain_value(value) for name, value in zip(names, values, strict=True) if name}


def plain_value(value: Any) -> Any:
    """A cell of a typed table as a JSON value: a date as ISO 8601 text, NaN as ``None``."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return float(value) if isinstance(value, decimal.Decimal) else value


# --- cells ---------------------------------------------------------------------------------------------------------


def number_of(value: Any) -> float | None:
    """The finite number that ``value`` is or spells (decimal, with or without an exponent); ``None`` for all else."""
    if isinstance(value, str):
        spelt = value.strip()
        if len(spelt) > _LONGEST_NUMBER or _NUMBER.fullmatch(spelt) is None:
            return None
        value = float(spelt)
    return real_of(value)


__all__ = ["MOST_ROWS", "TABLES", "TableRow", "listed_rows", "number_of", "object_rows", "plain_value", "table_rows"]
