"""The systems that stand side by side in a report: runs of one model with different metrics are one system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from api.services.aggregation import MetricAggregate, Totals, totals_over
from api.services.judged import way_of, ways_differ
from api.services.results import RunResults
from gen_eval.protocols import published_table


@dataclass(frozen=True)
class System:
    """A line of a leaderboard.

    Attributes:
        label: the model's label and the condition; with the run's id when several systems would be called alike.
        model: the same without the condition.
        condition: what the generator was given besides the prompt, ``None`` when nobody said.
        runs: the runs that its numbers come from.
    """

    label: str
    model: str
    condition: str | None = None
    runs: list[RunResults] = field(default_factory=list)

    @property
    def metrics(self) -> set[str]:
        """All metrics that it has."""
        return {metric for run in self.runs for metric in run.manifest["metrics"]}

    def under(self, protocol: str, domain: str | None = None) -> dict[str, MetricAggregate]:
        """Metric -> its mean under ``protocol``, where there is one, over all samples or those of ``domain``."""
        tables = (run.aggregate if domain is None else run.groups.get(domain, {}) for run in self.runs)
        return {metric: found[protocol] for table in tables for metric, found in table.items() if protocol in found}

    @property
    def judges(self) -> tuple[str, ...]:
        """Who judged: titles, of which those of simulated judges say so."""
        titles = [run.manifest["judge"]["title"] for run in self.runs if run.manifest.get("judge")]
        return tuple(dict.fromkeys(map(str, titles)))

    @cached_property
    def totals(self) -> Totals:
        """The totals over all its runs: here the Domain score of one joins the Quality score of another."""
        return totals_over([run.source() for run in self.runs])

    @cached_property
    def group_totals(self) -> dict[str, Totals]:
        """Domain -> the same over the samples of that domain."""
        names = sorted({domain for run in self.runs for domain in run.groups})
        return {domain: totals_over([run.source(domain) for run in self.runs]) for domain in names}


def judges_line(systems: Sequence[System]) -> str:
    """Who judged the systems, for a caption; empty when nobody did.

    Scores of two judges do not compare, so several are told by system.
    """
    found = {system.label: " and ".join(system.judges) for system in systems if system.judges}
    titles = list(dict.fromkeys(found.values()))
    judged = [run.manifest for system in systems for run in system.runs if run.manifest.get("judge")]
    if len(titles) < 2:
        if len(set(map(way_of, judged))) > 1:
            ways = dict.fromkeys(way for other in judged for way in ways_differ(judged[0], other))
            return f"Domain scores by {titles[0]}, in different ways, which do not compare: {'; '.join(ways)}"
        return f"Domain score by the judge: {titles[0]}" if titles else ""
    told = "; ".join(f"{label}: {title}" for label, title in found.items())
    return f"Domain scores by different judges, which do not compare: {told}"


def systems_of(results: Sequence[RunResults]) -> list[System]:
    """The systems: models in the order in which they first appear, of each the conditions as they are published.

    Runs of one label and condition are one system when no two of them share a metric. When some do, nobody can tell
    which of the others belong together, so each run is a system of its own and its label carries the run's id.
    """
    alike: dict[tuple[str, str | None], list[RunResults]] = {}
    for run in results:
        alike.setdefault((run.model, run.condition), []).append(run)
    systems: dict[str, System] = {}
    for run in results:
        apart = "" if _disjoint(alike[run.model, run.condition]) else f" ({run.run[:8]})"
        given = "" if run.condition is None else f", {run.condition}"
        label = f"{run.model}{given}{apart}"
        systems.setdefault(label, System(label, f"{run.model}{apart}", run.condition)).runs.append(run)
    models = {one.runs[0].model: place for place, one in reversed([*enumerate(systems.values())])}
    return sorted(systems.values(), key=lambda one: (models[one.runs[0].model], _place(one)))


def _place(system: System) -> int:
    """Where the condition of ``system`` stands in the published table; before all of them when there is none."""
    table = published_table(str(system.runs[0].manifest["track"]))
    known = () if table is None else table.conditions
    return known.index(system.condition) if system.condition in known else -1


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
