"""The published tables in flat forms: CSV for spreadsheets, cells in words for pages and terminals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from api.services.published import Cell, Head, Line, Table, tables_of
from api.services.reporting.rows import neutral
from api.services.results import RunResults


def to_csv(results: Sequence[RunResults]) -> bytes:
    """One line a system, protocol and domain; five columns a score: value, ends of the interval, n and N.

    Numbers are unrounded and on their own scale (ratios 0..1); cells without a number are empty, and so is ``domain``
    for all samples.
    """
    tables = tables_of(results)
    names = list(dict.fromkeys(head.name for table in tables for head in table.heads))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    parts = ("", ".lower", ".upper", ".n", ".N")
    first = ["benchmark", "protocol", "model", "condition", "domain"]
    writer.writerow([*first, *(f"{name}{part}" for name in names for part in parts)])
    for table in tables:
        for line in table.lines:
            texts = (table.published.benchmark, table.protocol, line.model, line.condition or "", line.domain or "")
            cells = {head.name: cell for head, cell in zip(table.heads, line.cells, strict=True)}
            numbers = [number for name in names for number in _numbers(cells.get(name))]
            writer.writerow([*map(neutral, texts), *numbers])
    return text.getvalue().encode()


def _numbers(cell: Cell | None) -> list[str]:
    if cell is None:
        return [""] * 5
    ends = ["" if one is None else repr(one) for one in (cell.value, cell.lower, cell.upper)]
    return [*ends, str(cell.n), str(cell.N)]


@dataclass(frozen=True)
class Block:
    """A published table for people.

    Attributes:
        caption: benchmark, protocol, and what the numbers are.
        heads: title and direction of each column.
        groups: the lines over all samples, then those of each domain; name of the domain (empty: all samples) and its
            lines.
    """

    caption: str
    heads: tuple[str, ...]
    conditions: bool
    groups: tuple[tuple[str, tuple[tuple[Line, tuple[Shown | None, ...]], ...]], ...]


@dataclass(frozen=True)
class Shown:
    """A number in words."""

    value: str
    interval: str
    coverage: str
    sort: str


def blocks_of(results: Sequence[RunResults], protocols: Sequence[str] | None = None) -> tuple[Block, ...]:
    """The published tables of ``results`` that say more than a summary.

    Those are the tables of a benchmark whose rows have conditions, of several systems, or of several domains.
    """
    tables = tables_of(results, protocols)
    return tuple(_block(table) for table in tables if table.published.conditions or len(table.lines) > 1)


def _block(table: Table) -> Block:
    groups = ((domain or "", tuple(_lines(table, domain))) for domain in (None, *table.domains))
    return Block(
        f"{table.published.title}, protocol {table.protocol}, as published; means of the samples that have a value"
        + (f". {table.judges}" if table.judges else ""),
        tuple(f"{head.title} {head.arrow}".rstrip() for head in table.heads),
        table.has_conditions,
        tuple(groups),
    )


def _lines(table: Table, domain: str | None) -> Iterator[tuple[Line, tuple[Shown | None, ...]]]:
    for line in table.of(domain):
        yield line, tuple(_shown(cell, head) for cell, head in zip(line.cells, table.heads, strict=True))


def _shown(cell: Cell | None, head: Head) -> Shown | None:
    if cell is None:
        return None
    return Shown(
        cell.printed(head.column),
        cell.ends(head.column),
        f"{cell.coverage} {cell.of}",
        "" if cell.value is None else repr(cell.value),
    )
