"""A run's results as an object: rows, aggregates with coverage, tables, and the JSON that doors print."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gen_eval.protocols import load_protocol
from gen_eval.records import InputError, Score, Status
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS, EXIT_PART_ABSENT
from gen_eval.records.run import RunFolder
from gen_eval.stats import Aggregate, Column, MembersRule, aggregates

if TYPE_CHECKING:
    import pandas as pd

    from gen_eval.features.metric import Metric

Key = tuple[str, str, str, str, str]
"""Model, sample, member, metric, protocol."""


@dataclass(frozen=True)
class Facts:
    """What results and reports need to know about a metric.

    Attributes:
        inputs: ``single``, ``pair`` or ``set``; ``None`` when the metric is not installed.
        reads: files of a sample that a value depends on, as the manifest names them.
        caveat: why its values must not rank systems alone.
    """

    unit: str
    higher_is_better: bool
    bounds: tuple[float | None, float | None]
    source: str
    inputs: str | None = None
    reads: tuple[str, ...] = ()
    caveat: str = ""


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
    def read(cls, path: str | os.PathLike[str], *, store: str | None = None) -> RunResults:
        """The results in the run folder ``path``.

        Args:
            path: the folder.
            store: database URL; a run that this database does not know is read from its folder.

        Raises:
            InputError: there is no run, or its rows are in neither place.
        """
        with open_run(Path(path), store) as run:
            return cls(run.id, run.manifest, _of_run(run), path=Path(path))

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
        (table,) = _tables(self.manifest, [_Part(self.rows, list(self.domains))])
        return table

    @cached_property
    def groups(self) -> dict[str, Table]:
        """Domain -> metric -> protocol -> mean; samples without a domain are in none."""
        parts: dict[str, _Part] = defaultdict(lambda: _Part([], []))
        for sample, domain in self.domains.items():
            if domain is not None:
                parts[domain].samples.append(sample)
        for row in self.rows:
            domain = self.domains.get(row.sample)
            if domain is not None:
                parts[domain].rows.append(row)
        names = sorted(parts)
        return dict(zip(names, _tables(self.manifest, [parts[name] for name in names]), strict=True))

    @cached_property
    def absent(self) -> list[Key]:
        """Keys of the rows that the manifest asks for and that are not there: the run is not finished, or a shard."""
        present = {row.key for row in self.rows}
        return [key for key in self._expected() if key not in present]

    def _expected(self) -> Iterator[Key]:
        from gen_eval.features.planner import SET_MEMBER

        together = {metric for metric in self.manifest["metrics"] if self._of_sets(metric, SET_MEMBER)}
        for sample in self.manifest["samples"]:
            members = [member["id"] for member in sample["members"]]
            for metric, protocol in _asked(self.manifest):
                for member in [SET_MEMBER] if metric in together else members:
                    yield self.model, sample["id"], member, metric, protocol

    def _of_sets(self, metric: str, set_member: str) -> bool:
        inputs = facts_of(metric).inputs
        if inputs is not None:
            return inputs == "set"
        # a metric that is not installed here: its rows tell
        return any(row.member == set_member for row in self.rows if row.metric == metric)

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
            # with its domain, so that every total can be taken again from the rows alone
            "rows": [{**row.to_json(), "domain": self.domains.get(row.sample)} for row in self.rows],
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line a row."""
        import pandas as pd

        lines = [{**row.to_json(), "domain": self.domains.get(row.sample)} for row in self.rows]
        return pd.DataFrame(lines).drop(columns="detail", errors="ignore")

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

    def __repr__(self) -> str:
        return str(self)

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
        shown = [(metric, one, one.value) for metric, one in found if one.value is not None]
        axes = Figure(figsize=(6, 0.5 + 0.4 * len(shown)), layout="constrained").add_subplot()
        for place, (metric, one, value) in enumerate(shown):
            axes.barh(place, value)
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


def _of_run(run: RunFolder) -> Iterator[Score]:
    """The rows of ``run``.

    Raises:
        InputError: one belongs to a sample, metric or protocol that the manifest does not name.
    """
    samples, asked = {entry["id"] for entry in run.manifest["samples"]}, set(_asked(run.manifest))
    for row in run.rows():
        if row.sample not in samples or (row.metric, row.protocol) not in asked:
            raise InputError(
                f"{run.path} holds the row {' / '.join(row.key)}, which its manifest does not ask for: the store was "
                "changed by hand; score again into another --out"
            )
        yield row


def open_run(path: Path, store: str | None) -> RunFolder:
    """The run in ``path`` with its rows: from the database ``store`` when it knows the run, else from the folder.

    Raises:
        InputError: there is no run, or its rows are in neither place (the manifest's digest is what they are kept by:
            after a change by hand it is another run, which has none).
    """
    places = [store, None] if store is not None and (path / "scores.sqlite").is_file() else [store]
    for place in places:
        run = RunFolder(path, store=place)
        if run.store.manifest(run.id) is not None:
            return run
        run.close()
    where = "neither in its folder nor in the store" if store is not None else "not in its scores.sqlite"
    raise InputError(
        f"the rows of {path} (run {run.id[:12]}) are {where}; if they are in a database, name it with --store, and if "
        "manifest.json or scores.sqlite was changed, take the old one back or score again"
    )


@lru_cache(maxsize=256)
def facts_of(metric: str) -> Facts:
    """Unit, direction and range of ``metric``; cautious ones for a metric that is not installed any more."""
    from gen_eval.features.metric import Metric
    from gen_eval.registry import load

    try:
        found = load("gen_eval.metrics", metric)
    except InputError:
        found = None
    if not isinstance(found, Metric):
        return Facts("unknown", True, (None, None), "not installed here", None, _SAMPLE_FILES)
    return Facts(
        found.unit, found.higher_is_better, found.bounds, found.source, found.inputs, _reads(found), found.caveat
    )


_SAMPLE_FILES = ("reference", "depth", "masks", "condition_image")


def _reads(metric: Metric) -> tuple[str, ...]:
    if metric.inputs == "pair":
        return ({"frames": "reference"}.get(metric.signal, metric.signal),)
    return ("condition_image",) if metric.uses_condition_image else ()


class _Part(NamedTuple):
    """Rows and expected samples of one table."""

    rows: list[Score]
    samples: list[str]


def _asked(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All pairs of metric and protocol, sorted."""
    return sorted(
        (metric, protocol) for metric, entry in manifest["metrics"].items() for protocol in entry["protocols"]
    )


def _tables(manifest: Mapping[str, Any], parts: list[_Part]) -> list[Table]:
    """The table of each part; all means are taken together, so that columns share their resamples."""
    asked = _asked(manifest)
    drafts = [
        _Draft.of(metric, _rule(manifest, metric, protocol), rows, part)
        for part in parts
        for (metric, protocol), rows in _split(part, asked)
    ]
    means = iter(aggregates([column for draft in drafts for column in draft.columns.values()]))
    finished = iter([draft.finished(means) for draft in drafts])
    tables: list[Table] = []
    for _ in parts:
        table: Table = {}
        for metric, protocol in asked:
            table.setdefault(metric, {})[protocol] = next(finished)
        tables.append(table)
    return tables


def _split(part: _Part, asked: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], list[Score]]]:
    rows: dict[tuple[str, str], list[Score]] = {pair: [] for pair in asked}
    for row in part.rows:
        rows[row.metric, row.protocol].append(row)
    yield from rows.items()


_MAIN = ""


@dataclass(frozen=True)
class _Draft:
    """A metric under one protocol, its means still to be taken.

    Attributes:
        columns: the main value under the empty name, further numbers under theirs.
    """

    columns: dict[str, Column]
    rows: list[Score]

    @classmethod
    def of(cls, metric: str, rule: MembersRule, rows: list[Score], part: _Part) -> _Draft:
        facts = facts_of(metric)
        names = sorted({name for row in rows for name in row.values})
        values: dict[str, dict[str, dict[str, float | None]]] = {
            name: {sample: {} for sample in part.samples} for name in (_MAIN, *names)
        }
        for row in rows:
            values[_MAIN][row.sample][row.member] = row.value
            for name in names:
                values[name][row.sample][row.member] = row.values.get(name)
        columns = {
            name: Column(own, rule, facts.higher_is_better, facts.unit, interval=name == _MAIN)
            for name, own in values.items()
        }
        return cls(columns, rows)

    def finished(self, means: Iterator[Aggregate]) -> MetricAggregate:
        """With its means, which come in the order of the columns."""
        found = {name: next(means) for name in self.columns}
        return MetricAggregate(
            found.pop(_MAIN),
            found,
            dict(sorted(Counter(str(row.reason) for row in self.rows if row.reason is not None).items())),
            dict(sorted(Counter(str(flag) for row in self.rows for flag in row.flags).items())),
        )


def _rule(manifest: Mapping[str, Any], metric: str, protocol: str) -> MembersRule:
    """How members enter the mean: as the run was asked, whatever the protocol files say today."""
    recorded = manifest["metrics"][metric].get("members", {})
    rule: MembersRule = recorded.get(protocol) or load_protocol(metric, protocol).aggregate.get(
        "members", "sample_first"
    )
    return rule
