"""The systems that stand side by side in a report: runs of one model with different metrics are one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from api.services.results import MetricAggregate, RunResults


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


def systems_of(results: Sequence[RunResults]) -> list[System]:
    """The systems in the order in which they first appear.

    A run joins the last system of its model unless they share a metric: then it is a system of its own, and both
    labels carry the run's id.
    """
    systems: list[System] = []
    for run in results:
        same = [system for system in systems if system.label == run.model]
        if same and not same[-1].metrics & set(run.manifest["metrics"]):
            same[-1].runs.append(run)
        else:
            systems.append(System(run.model, [run]))
    labels = [system.label for system in systems]
    return [
        System(f"{one.label} ({one.runs[0].run[:8]})", one.runs) if labels.count(one.label) > 1 else one
        for one in systems
    ]


def protocols_of(results: Sequence[RunResults]) -> list[str]:
    """All protocols: first those that were asked for, in the order of the runs, then the others by name."""
    asked = [str(run.manifest["protocol"]) for run in results]
    others = sorted(
        {name for run in results for entry in run.manifest["metrics"].values() for name in entry["protocols"]}
    )
    return list(dict.fromkeys([*asked, *others]))
