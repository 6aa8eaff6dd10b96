"""The systems that stand side by side in a report: runs of one model with different metrics are one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from api.services.aggregation import MetricAggregate, Totals, totals_over
from api.services.results import RunResults


@dataclass(frozen=True)
class System:
    """A line of a leaderboard.

    Attributes:
        label: the model's label; with the run's id when several systems would be called alike.
        runs: the runs that its numbers come from.
    """

    label: str
    runs: list[RunResults] = field(default_factory=list)

    @property
    def metrics(self) -> set[str]:
        """All metrics that it has."""
        return {metric for run in self.runs for metric in run.manifest["metrics"]}

    def under(self, protocol: str) -> dict[str, MetricAggregate]:
        """Metric -> its mean under ``protocol``, where there is one."""
        return {
            metric: table[protocol] for run in self.runs for metric, table in run.aggregate.items() if protocol in table
        }

    @cached_property
    def totals(self) -> Totals:
        """The totals over all its runs: here the Domain score of one joins the Quality score of another."""
        return totals_over([run.source() for run in self.runs])

    @cached_property
    def group_totals(self) -> dict[str, Totals]:
        """Domain -> the same over the samples of that domain."""
        names = sorted({domain for run in self.runs for domain in run.groups})
        return {domain: totals_over([run.source(domain) for run in self.runs]) for domain in names}


def systems_of(results: Sequence[RunResults]) -> list[System]:
    """The systems in the order in which they first appear.

    Runs of one label are one system when no two of them share a metric. When some do, nobody can tell which of the
    others belong together, so each run is a system of its own and its label carries the run's id.
    """
    alike: dict[str, list[RunResults]] = {}
    for run in results:
        alike.setdefault(run.model, []).append(run)
    systems: dict[str, System] = {}
    for run in results:
        label = run.model if _disjoint(alike[run.model]) else f"{run.model} ({run.run[:8]})"
        systems.setdefault(label, System(label)).runs.append(run)
    return list(systems.values())


def _disjoint(runs: list[RunResults]) -> bool:
    metrics = [metric for run in runs for metric in run.manifest["metrics"]]
    return len(metrics) == len(set(metrics))


def protocols_of(results: Sequence[RunResults]) -> list[str]:
    """All protocols: first those that were asked for, in the order of the runs, then the others by name."""
    asked = [str(run.manifest["protocol"]) for run in results]
    others = sorted(
        {name for run in results for entry in run.manifest["metrics"].values() for name in entry["protocols"]}
    )
    return list(dict.fromkeys([*asked, *others]))
