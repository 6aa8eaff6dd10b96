"""Results as their benchmark prints them: models and conditions down, the published columns across.

A line has all samples or those of one domain; its numbers are the means of the run, so that a sample counts once
however many captions it has. Which columns there are, in which order and with how many decimals is data of the
benchmark (``configs/benchmarks``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services.aggregation import MetricAggregate, Totals
from api.services.facts import facts_of
from api.services.results import RunResults
from api.services.systems import System, judges_line, protocols_of, systems_of
from gen_eval.protocols import PublishedColumn, PublishedTable, published_tables, total_rules
from gen_eval.stats import Aggregate, Total

NO_VALUE = "–"


@dataclass(frozen=True)
class Head:
    """The head of a column.

    Attributes:
        name: ``metric``, or ``metric.further`` for a further number that stands beside.
        column: how its numbers are printed.
        title: for people.
        ranked: whether a direction is shown.
    """

    name: str
    column: PublishedColumn
    title: str
    ranked: bool = True

    @property
    def arrow(self) -> str:
        """Which direction is better; nothing for a number that belongs to the ground truth."""
        if not self.ranked:
            return ""
        return "↑" if self.column.higher_is_better else "↓"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        better = ("higher" if self.column.higher_is_better else "lower") if self.ranked else None
        return {
            "name": self.name,
            "title": self.title,
            "digits": self.column.digits,
            "scale": self.column.scale,
            "better": better,
        }


@dataclass(frozen=True)
class Cell:
    """One number of a table, unrounded and on its own scale; ``None`` where there is none.

    Attributes:
        n: samples (parts of a total) with a value.
        N: samples (parts) that were expected.
        of: ``samples`` or ``parts``.
    """

    value: float | None
    lower: float | None
    upper: float | None
    n: int
    N: int
    of: str = "samples"

    def printed(self, column: PublishedColumn) -> str:
        """The value as published, a dash without one."""
        return NO_VALUE if self.value is None else column.printed(self.value)

    def ends(self, column: PublishedColumn) -> str:
        """Both ends of the interval as published, empty without one."""
        if self.lower is None or self.upper is None:
            return ""
        return f"{column.printed(self.lower)} … {column.printed(self.upper)}"

    @property
    def coverage(self) -> str:
        """``n of N``."""
        return f"{self.n:,} of {self.N:,}"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"value": self.value, "lower": self.lower, "upper": self.upper, "n": self.n, "N": self.N, "of": self.of}


@dataclass(frozen=True)
class Line:
    """A system over all samples (``domain`` is ``None``) or over those of a domain.

    Attributes:
        model: label, with the run's id where several would be called alike.
        condition: what the generator was given, ``None`` when nobody said.
        cells: one a head, ``None`` where the system was not scored so.
    """

    model: str
    condition: str | None
    domain: str | None
    cells: tuple[Cell | None, ...]

    def to_json(self, heads: Sequence[Head]) -> dict[str, Any]:
        """As plain JSON values."""
        cells = {
            head.name: None if cell is None else cell.to_json() for head, cell in zip(heads, self.cells, strict=True)
        }
        return {"model": self.model, "condition": self.condition, "domain": self.domain, "scores": cells}


@dataclass(frozen=True)
class Table:
    """The table of one benchmark under one protocol."""

    published: PublishedTable
    protocol: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    judges: str = ""

    @property
    def whole(self) -> tuple[Line, ...]:
        """The lines over all samples."""
        return tuple(line for line in self.lines if line.domain is None)

    @property
    def domains(self) -> tuple[str, ...]:
        """Domains that have lines, by name."""
        return tuple(sorted({line.domain for line in self.lines if line.domain is not None}))

    def of(self, domain: str | None) -> tuple[Line, ...]:
        """The lines over the samples of ``domain``."""
        return tuple(line for line in self.lines if line.domain == domain)

    @property
    def has_conditions(self) -> bool:
        """Whether any line says what its generator was given."""
        return any(line.condition is not None for line in self.lines)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values: numbers unrounded and on their own scale."""
        return {
            "benchmark": self.published.benchmark,
            "track": self.published.track,
            "protocol": self.protocol,
            **({"judges": self.judges} if self.judges else {}),
            "columns": [head.to_json() for head in self.heads],
            "lines": [line.to_json(self.heads) for line in self.lines],
        }


def tables_of(results: Sequence[RunResults], protocols: Sequence[str] | None = None) -> tuple[Table, ...]:
    """The tables of all benchmarks that ``results`` have scores of.

    Args:
        results: runs; several of one model and condition that share no metric are one line.
        protocols: only under these; all by default, the one that was asked for first.
    """
    systems = systems_of(results)
    wanted = protocols_of(results) if protocols is None else protocols
    tables = published_tables()
    found = (_table(tables[track], systems, protocol) for track in sorted(tables) for protocol in wanted)
    return tuple(table for table in found if table is not None)


def _table(published: PublishedTable, systems: Sequence[System], protocol: str) -> Table | None:
    """``None`` when no system has one of its scores under ``protocol``."""
    scopes = [(system, domain, _scores(system, domain, protocol)) for system in systems for domain in _domains(system)]
    if not any(column.score in scores for _, _, scores in scopes for column in published.columns):
        return None
    heads = tuple(_heads(published, [scores for _, _, scores in scopes]))
    ordered = sorted(scopes, key=lambda scope: (scope[1] is not None, scope[1] or ""))  # stable: systems stay in order
    lines = (
        Line(system.model, system.condition, domain, tuple(_cell(scores, head) for head in heads))
        for system, domain, scores in ordered
        if any(head.column.score in scores for head in heads)
    )
    return Table(published, protocol, heads, tuple(lines), judges_line(systems))


def _domains(system: System) -> list[str | None]:
    return [None, *system.group_totals]


Scores = Mapping[str, MetricAggregate | Total]


def _scores(system: System, domain: str | None, protocol: str) -> Scores:
    """Everything that ``system`` has under ``protocol``, by the name of metric or total."""
    found: dict[str, MetricAggregate | Total] = dict(system.under(protocol, domain))
    totals: Totals = system.totals if domain is None else system.group_totals[domain]
    return found | {name: table[protocol] for name, table in totals.items() if protocol in table}


def _heads(published: PublishedTable, scopes: Sequence[Scores]) -> Iterator[Head]:
    """The published metrics of the tracks that were scored; of totals, and of numbers beside, those that are there."""
    totals, there = total_rules(), {name for scores in scopes for name in scores}
    tracks = {facts_of(name).track for name in there - totals.keys()}
    for column in published.columns:
        if column.score not in there and (column.score in totals or facts_of(column.score).track not in tracks):
            continue
        yield Head(column.score, column, column.title)
        if column.beside is None:
            continue
        found = [scores.get(column.score) for scores in scopes]
        if any(isinstance(one, MetricAggregate) and column.beside.value in one.values for one in found):
            yield Head(f"{column.score}.{column.beside.value}", column, column.beside.title, ranked=False)


def _cell(scores: Scores, head: Head) -> Cell | None:
    name, _, further = head.name.partition(".")
    found = scores.get(name)
    if isinstance(found, Total):
        return Cell(found.value, found.lower, found.upper, found.n, found.N, "parts")
    if found is None:
        return None
    one: Aggregate | None = found.values.get(further) if further else found.main
    return None if one is None else Cell(one.value, one.lower, one.upper, one.n, one.N)
