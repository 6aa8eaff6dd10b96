"""Totals in words: Quality, Overall, over all samples and by domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.services import wording
from api.services.aggregation import Totals
from api.services.results import RunResults
from api.services.systems import System, protocols_of
from gen_eval.stats import Total

WHOLE = "all samples"


@dataclass(frozen=True)
class TotalCell:
    """A total in words.

    Attributes:
        parts: how many of its parts have a value, of how many.
        partial: the mean of those that have one, when some have none.
        missing: parts without a value.
        coverage: samples with a value, part by part where they differ.
        sort: the value as text; empty without one.
    """

    value: str
    interval: str
    parts: str
    partial: str
    missing: tuple[str, ...]
    coverage: tuple[str, ...]
    sort: str


@dataclass(frozen=True)
class TotalTable:
    """One total: all samples and domains down, protocols (or systems) across; ``None`` where there is no such one."""

    name: str
    rule: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[TotalCell | None, ...]], ...]


def run_totals(run: RunResults) -> tuple[TotalTable, ...]:
    """The totals of one run, protocols side by side."""
    protocols = protocols_of([run])
    scopes = [(WHOLE, run.totals), *run.group_totals.items()]
    return tuple(
        _table(name, protocols, [(label, [_one(found, name, each) for each in protocols]) for label, found in scopes])
        for name in run.totals
    )


def system_totals(systems: Sequence[System], protocol: str) -> tuple[TotalTable, ...]:
    """The totals under one protocol, systems side by side."""
    names = dict.fromkeys(name for one in systems for name, found in one.totals.items() if protocol in found)
    domains = sorted({domain for system in systems for domain in system.group_totals})
    scopes = [(WHOLE, [system.totals for system in systems])]
    scopes += [(domain, [system.group_totals.get(domain, {}) for system in systems]) for domain in domains]
    heads = [system.label for system in systems]
    return tuple(
        _table(name, heads, [(label, [_one(found, name, protocol) for found in across]) for label, across in scopes])
        for name in names
    )


def _one(totals: Totals, name: str, protocol: str) -> Total | None:
    return totals.get(name, {}).get(protocol)


def _table(name: str, heads: Sequence[str], lines: Sequence[tuple[str, Sequence[Total | None]]]) -> TotalTable:
    first = next(total for _, found in lines for total in found if total is not None)
    cells = tuple((label, tuple(None if one is None else cell(one) for one in found)) for label, found in lines)
    return TotalTable(name, first.rule, tuple(heads), cells)


def cell(total: Total) -> TotalCell:
    """``total`` in words."""
    partial = total.partial
    return TotalCell(
        value=wording.number(total.value, total.unit),
        interval=wording.ends(total.lower, total.upper, total.unit),
        parts=f"{total.n} of {total.N}",
        partial="" if partial is None else wording.number(partial.value, total.unit),
        missing=total.missing,
        coverage=tuple(_coverage(total)),
        sort="" if total.value is None else repr(total.value),
    )


def _coverage(total: Total) -> list[str]:
    """``n of N samples``; part by part where they differ."""
    counts: dict[str, list[str]] = {}
    for name, part in total.parts.items():
        if part.count is not None:
            counts.setdefault(f"{part.count.n:,} of {part.count.N:,}", []).append(name)
    if len(counts) == 1:
        return [f"n = {count} samples" for count in counts]
    return [f"n = {count} samples: {', '.join(names)}" for count, names in counts.items()]
