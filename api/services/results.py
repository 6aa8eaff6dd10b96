"""A run's results as an object: rows, aggregates with coverage, tables, and the JSON that doors print."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen_eval.protocols import load_protocol
from gen_eval.records import Score, Status
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS, EXIT_PART_ABSENT
from gen_eval.records.run import RunFolder
from gen_eval.stats import Aggregate, mean_with_coverage

if TYPE_CHECKING:
    import pandas as pd

Values = dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Facts:
    """What a report says about a metric, kept with the results so that no metric need be loaded to read a run."""

    unit: str
    higher_is_better: bool
    bounds: tuple[float | None, float | None]
    source: str


@dataclass(frozen=True)
class MetricAggregate:
    """A metric under one protocol over a set of samples.

    Attributes:
        main: mean of the metric's value.
        values: means of its further numbers (without intervals).
        reasons: how often each reason stands in place of a value.
        flags: how often each flag was set.
    """

    main: Aggregate
    values: Mapping[str, Aggregate] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As interchange JSON."""
        document = self.main.to_json()
        document["values"] = {name: part.to_json() for name, part in self.values.items()}
        document["reasons"] = dict(self.reasons)
        document["flags"] = dict(self.flags)
        return document


Table = dict[str, dict[str, MetricAggregate]]
"""Metric -> protocol -> aggregate."""


class RunResults:
    """Everything that a finished or unfinished run holds, read once."""

    def __init__(
        self, run: str, manifest: Mapping[str, Any], rows: Iterable[Score], *, path: Path | None = None
    ) -> None:
        self.run = run
        self.manifest = manifest
        self.rows = list(rows)
        self.path = path

    @classmethod
    def read(cls, path: Path, *, store: str | None = None) -> RunResults:
        """The results in the run folder ``path``.

        Raises:
            InputError: there is no run.
        """
        with RunFolder(path, store=store) as run:
            return cls(run.id, run.manifest, run.rows(), path=path)

    @property
    def model(self) -> str:
        """Label of the model that was scored."""
        return str(self.manifest["model"])

    @cached_property
    def domains(self) -> dict[str, str | None]:
        """Domain of each sample."""
        return {entry["id"]: entry["domain"] for entry in self.manifest["samples"]}

    @cached_property
    def aggregate(self) -> Table:
        """Metric -> protocol -> mean over all samples."""
        return self._aggregate(self.rows, list(self.domains))

    @cached_property
    def groups(self) -> dict[str, Table]:
        """Domain -> metric -> protocol -> mean; samples without a domain are in none."""
        rows: dict[str, list[Score]] = defaultdict(list)
        samples: dict[str, list[str]] = defaultdict(list)
        for sample, domain in self.domains.items():
            if domain is not None:
                samples[domain].append(sample)
        for row in self.rows:
            domain = self.domains.get(row.sample)
            if domain is not None:
                rows[domain].append(row)
        return {domain: self._aggregate(rows[domain], samples[domain]) for domain in sorted(samples)}

    def _aggregate(self, rows: list[Score], samples: list[str]) -> Table:
        by_metric: dict[tuple[str, str], list[Score]] = defaultdict(list)
        for row in rows:
            by_metric[row.metric, row.protocol].append(row)
        table: Table = {}
        for metric, entry in sorted(self.manifest["metrics"].items()):
            for protocol in sorted(entry["protocols"]):
                table.setdefault(metric, {})[protocol] = _summary(
                    metric, protocol, by_metric[metric, protocol], samples
                )
        return table

    # --- what it says -------------------------------------------------------------------------------------------

    @property
    def exit_code(self) -> int:
        """0 done, 1 with failed or refused items, 3 when nothing had a value because parts are absent."""
        statuses = Counter(row.status for row in self.rows)
        if statuses[Status.FAILED] or statuses[Status.REFUSED] or self.manifest["rejected"]:
            return EXIT_FAILED_ITEMS
        if statuses[Status.SKIPPED] and not (statuses[Status.OK] or statuses[Status.UNDEFINED]):
            return EXIT_PART_ABSENT
        return EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """The document that ``gen-eval score --json`` prints (docs/files.md, "scores of videos")."""
        return {
            "run": self.run,
            "model": self.model,
            "aggregate": _table_json(self.aggregate),
            "groups": {domain: _table_json(table) for domain, table in self.groups.items()},
            "unknown_videos": self.manifest["unknown_videos"],
            "not_asked_videos": self.manifest["not_asked_videos"],
            "rejected": self.manifest["rejected"],
            "rows": [row.to_json() for row in self.rows],
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line a row."""
        import pandas as pd

        frame = pd.DataFrame([row.to_json() for row in self.rows])
        return frame.drop(columns=["detail"]) if len(frame) else frame

    def summary(self) -> pd.DataFrame:
        """One line a metric and protocol: value, interval, n of N."""
        import pandas as pd

        lines = [
            {"metric": metric, "protocol": protocol, **_short(one.main)}
            for metric, protocols in self.aggregate.items()
            for protocol, one in protocols.items()
        ]
        return pd.DataFrame(lines)

    def curves(self, row: Score) -> pd.DataFrame:
        """Per-frame values of ``row``: a column each, indexed by frame; empty when it has none."""
        import pandas as pd

        if row.curve is None or self.path is None:
            return pd.DataFrame()
        table = pd.read_parquet(self.path / "curves" / f"{row.curve}.parquet")
        mine = (table.member == row.member) & (table.metric == row.metric) & (table.protocol == row.protocol)
        return table[mine].pivot_table(index="frame", columns="curve", values="value", dropna=False)

    def __str__(self) -> str:
        lines = [f"run {self.run[:12]} of {self.model}: {len(self.rows)} rows"]
        for metric, protocols in self.aggregate.items():
            lines += [f"  {metric} ({protocol}): {one.main}" for protocol, one in protocols.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"<p>run <code>{self.run[:12]}</code> of <b>{escape(self.model)}</b></p>"
        return head + str(self.summary().to_html(index=False))

    def plot(self, protocol: str | None = None) -> Any:
        """Bars of all metrics with their intervals under ``protocol`` (the one that was asked for by default)."""
        from matplotlib.figure import Figure

        chosen = protocol or self.manifest["protocol"]
        found = [(metric, table[chosen].main) for metric, table in self.aggregate.items() if chosen in table]
        shown = [(metric, one) for metric, one in found if one.value is not None]
        axes = Figure(figsize=(6, 0.5 + 0.4 * len(shown)), layout="constrained").add_subplot()
        for place, (metric, one) in enumerate(shown):
            axes.barh(place, one.value)
            if one.lower is not None and one.upper is not None:
                axes.plot([one.lower, one.upper], [place, place], color="black", linewidth=1)
            axes.text(0, place, f" {metric} (n={one.n} of {one.N})", va="center")
        axes.set(yticks=[], title=f"{self.model}, {chosen}")
        return axes


def _table_json(table: Table) -> dict[str, Any]:
    return {
        metric: {protocol: one.to_json() for protocol, one in protocols.items()} for metric, protocols in table.items()
    }


def _short(one: Aggregate) -> dict[str, Any]:
    return {"value": one.value, "lower": one.lower, "upper": one.upper, "n": one.n, "N": one.N, "unit": one.unit}


@lru_cache(maxsize=256)
def facts_of(metric: str) -> Facts:
    """Unit, direction and range of ``metric``; cautious ones for a metric that is not installed any more."""
    from api.services.preparation import load_metric
    from gen_eval.records import InputError

    try:
        found = load_metric(metric)
    except InputError:
        return Facts("unknown", True, (None, None), "not installed here")
    return Facts(found.unit, found.higher_is_better, found.bounds, found.source)


def _summary(metric: str, protocol: str, rows: list[Score], samples: list[str]) -> MetricAggregate:
    facts = facts_of(metric)
    rule = _members_rule(metric, protocol)

    def mean(values: Values, resamples: int) -> Aggregate:
        packed = tuple((sample, tuple(sorted(own.items()))) for sample, own in sorted(values.items()))
        return _cached_mean(packed, rule, facts.higher_is_better, facts.unit, resamples)

    names = sorted({name for row in rows for name in row.values})
    main: Values = {sample: {} for sample in samples}
    further: dict[str, Values] = {name: {sample: {} for sample in samples} for name in names}
    for row in rows:
        main[row.sample][row.member] = row.value
        for name in names:
            further[name][row.sample][row.member] = row.values.get(name)
    return MetricAggregate(
        mean(main, 10_000),
        {name: mean(values, 0) for name, values in further.items()},
        dict(sorted(Counter(str(row.reason) for row in rows if row.reason is not None).items())),
        dict(sorted(Counter(str(flag) for row in rows for flag in row.flags).items())),
    )


@lru_cache(maxsize=512)
def _cached_mean(values: Any, rule: Any, higher_is_better: bool, unit: str, resamples: int) -> Aggregate:
    # protocols often agree on every value; their intervals are then the same bootstrap
    samples = {sample: dict(members) for sample, members in values}
    return mean_with_coverage(samples, members=rule, higher_is_better=higher_is_better, unit=unit, resamples=resamples)


def _members_rule(metric: str, protocol: str) -> str:
    return str(load_protocol(metric, protocol).aggregate.get("members", "sample_first"))
