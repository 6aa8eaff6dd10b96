"""The numbers of a run: the summary table, means by domain, and the charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from api.services import wording
from api.services.aggregation import MetricAggregate, Table
from api.services.facts import facts_of
from api.services.reporting.charts import Histogram, IntervalChart, arrow, heading, histogram, interval_chart
from api.services.results import RunResults
from api.services.systems import System, protocols_of
from gen_eval.stats import Aggregate, MembersRule


@dataclass(frozen=True)
class Mean:
    """An aggregate in words.

    Attributes:
        rule: number of its rule in the list below the table.
    """

    value: str
    interval: str
    coverage: str
    members: str
    missing_as_zero: str
    uneven: str
    without: tuple[str, ...]
    flags: tuple[str, ...]
    rule: int
    sort: str


@dataclass(frozen=True)
class MetricLine:
    """A metric, or one of its further numbers, with a mean for each protocol (``None`` where it has no such one).

    Attributes:
        absent: what stands in place of a mean that is not there.
    """

    name: str
    about: str
    further: bool
    means: tuple[Mean | None, ...]
    absent: str = "not in this run"


@dataclass(frozen=True)
class SummaryTable:
    """Metrics down, protocols (or systems) across, and the rules in words."""

    heads: tuple[str, ...]
    lines: tuple[MetricLine, ...]
    rules: tuple[str, ...]


class _Rules:
    """The rules of a table, numbered in the order in which they come up."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, rule: str) -> int:
        return self._numbers.setdefault(rule, len(self._numbers) + 1)

    def mean(self, one: MetricAggregate | Aggregate) -> Mean:
        """The words of an aggregate."""
        main = one.main if isinstance(one, MetricAggregate) else one
        reasons = one.reasons.items() if isinstance(one, MetricAggregate) else ()
        flags = one.flags.items() if isinstance(one, MetricAggregate) else ()
        uneven = main.uneven_members
        return Mean(
            value=wording.number(main.value, main.unit),
            interval=wording.interval(main),
            coverage=f"{main.n:,} of {main.N:,}",
            members=f"{main.members.n:,} of {main.members.N:,}",
            missing_as_zero=""
            if main.mean_missing_as_zero is None
            else wording.number(main.mean_missing_as_zero, main.unit),
            uneven="" if uneven is None else f"{uneven.least} to {uneven.most} videos a sample",
            without=tuple(f"{count:,} {reason}" for reason, count in reasons),
            flags=tuple(f"{count:,} {flag}" for flag, count in flags),
            rule=self.number(main.rule),
            sort="" if main.value is None else repr(main.value),
        )

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._numbers)


def about(metric: str) -> str:
    """Direction, or why it ranks nothing, unit and source of a metric."""
    facts = facts_of(metric)
    unit = {"ratio": "ratio, printed in percent", "unknown": "unit unknown"}.get(facts.unit, facts.unit)
    better = f"{arrow(facts)} {'higher' if facts.higher_is_better else 'lower'} is better"
    return f"{f'not ranked: {facts.caveat}' if facts.caveat else better}; {unit}; {facts.source}"


def summary_table(run: RunResults) -> SummaryTable:
    """Metrics down, protocols across: each with everything that is needed to defend the number."""
    rules, protocols = _Rules(), protocols_of([run])
    lines: list[MetricLine] = []
    for metric, table in run.aggregate.items():
        found = [table.get(protocol) for protocol in protocols]
        means = tuple(None if one is None else rules.mean(one) for one in found)
        lines.append(MetricLine(metric, about(metric), False, means))
        for name in sorted({name for one in found if one is not None for name in one.values}):
            parts = [None if one is None else one.values.get(name) for one in found]
            means = tuple(None if one is None else rules.mean(one) for one in parts)
            absent = "the mean above" if name in get_args(MembersRule) else MetricLine.absent
            lines.append(MetricLine(name, _about_further(name, metric), True, means, absent))
    return SummaryTable(tuple(protocols), tuple(lines), rules.texts)


def _about_further(name: str, metric: str) -> str:
    if name in get_args(MembersRule):
        return f"{metric} with another rule for the same videos"
    unit = facts_of(metric).unit_of(name)
    return f"further number of {metric}{'' if unit == 'ratio' else f'; {wording.unit_of(unit)}'.rstrip('; ')}"


def leaderboard(systems: Sequence[System], protocol: str) -> SummaryTable:
    """Metrics down, systems across, under one protocol."""
    rules = _Rules()
    lines = []
    tables = [system.under(protocol) for system in systems]
    for metric in sorted({metric for table in tables for metric in table}):
        means = tuple(rules.mean(table[metric]) if metric in table else None for table in tables)
        lines.append(MetricLine(metric, about(metric), False, means))
    return SummaryTable(tuple(system.label for system in systems), tuple(lines), rules.texts)


@dataclass(frozen=True)
class DomainTable:
    """Domains down, metrics across, under one protocol."""

    protocol: str
    metrics: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, tuple[Mean | None, ...]], ...]


def domain_tables(run: RunResults) -> tuple[DomainTable, ...]:
    """One table a protocol, the one that was asked for first; none without domains."""
    if not run.groups:
        return ()
    tables = []
    for protocol in protocols_of([run]):
        metrics = [metric for metric, table in run.aggregate.items() if protocol in table]
        lines = tuple((domain, _domain_means(table, metrics, protocol)) for domain, table in run.groups.items())
        tables.append(DomainTable(protocol, tuple((name, heading(facts_of(name))) for name in metrics), lines))
    return tuple(tables)


def _domain_means(table: Table, metrics: Iterable[str], protocol: str) -> tuple[Mean | None, ...]:
    rules = _Rules()
    return tuple(rules.mean(table[metric][protocol]) for metric in metrics)


def protocol_charts(run: RunResults) -> tuple[IntervalChart, ...]:
    """Each metric with its interval under every protocol."""
    protocols = protocols_of([run])
    charts = (
        interval_chart(metric, facts_of(metric), [(name, table[name].main) for name in protocols if name in table])
        for metric, table in run.aggregate.items()
    )
    return tuple(chart for chart in charts if chart is not None)


def domain_charts(run: RunResults) -> tuple[IntervalChart, ...]:
    """Each metric by domain, under the protocol that was asked for."""
    protocol = str(run.manifest["protocol"])
    charts = (
        interval_chart(
            metric, facts_of(metric), [(domain, table[metric][protocol].main) for domain, table in run.groups.items()]
        )
        for metric, protocols in run.aggregate.items()
        if run.groups and protocol in protocols
    )
    return tuple(chart for chart in charts if chart is not None)


def system_charts(systems: Sequence[System], protocol: str) -> tuple[IntervalChart, ...]:
    """Each metric by system."""
    tables = [(system.label, system.under(protocol)) for system in systems]
    charts = (
        interval_chart(
            metric, facts_of(metric), [(label, table[metric].main) for label, table in tables if metric in table]
        )
        for metric in sorted({metric for _, table in tables for metric in table})
    )
    return tuple(chart for chart in charts if chart is not None)


def histograms(run: RunResults) -> tuple[Histogram, ...]:
    """How the values of the videos are distributed, under the protocol that was asked for."""
    protocol = str(run.manifest["protocol"])
    values: dict[str, list[float]] = defaultdict(list)
    for row in run.rows:
        if row.protocol == protocol and row.value is not None:
            values[row.metric].append(row.value)
    charts = (histogram(metric, facts_of(metric), values[metric]) for metric in sorted(values))
    return tuple(chart for chart in charts if chart is not None)
