"""A run's results as an object: rows, aggregates with coverage, tables, and the JSON that doors print."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.services.aggregation import Part, Source, Table, Totals, asked_of, tables_of, totals_over
from api.services.facts import facts_of
from api.services.network_facts import networks_json
from gen_eval.records import Answer, InputError, Rejection, Score, Status
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS, EXIT_PART_ABSENT
from gen_eval.records.run import RunFolder
from gen_eval.stats import Aggregate

if TYPE_CHECKING:
    import pandas as pd

_LISTED = frozenset({Rejection.NO_TRUTH, Rejection.UNKNOWN_VIDEO, Rejection.UNKNOWN_SAMPLE})
"""What is listed and is nobody's fault: it belongs to no sample of the run, or cannot be right or wrong."""

Key = tuple[str, str, str, str, str]
"""Model, sample, member, metric, protocol."""


class RunResults:
    """Everything that a finished or unfinished run holds, read once."""

    def __init__(
        self,
        run: str,
        manifest: Mapping[str, Any],
        rows: Iterable[Score],
        *,
        path: Path | None = None,
        store: str | None = None,
    ) -> None:
        self.run = run
        self.manifest = manifest
        self.rows = list(rows)
        self.path = path
        self._store = store

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
            return cls(run.id, run.manifest, _of_run(run), path=Path(path), store=store)

    def answers(self) -> list[Answer]:
        """The raw replies that its rows were made from, read anew; none for runs that asked nobody."""
        if self.path is None:
            return []
        with open_run(self.path, self._store) as run:
            return list(run.answers())

    @property
    def model(self) -> str:
        """Label of the model that was scored."""
        return str(self.manifest["model"])

    @property
    def condition(self) -> str | None:
        """What the generator was given besides the prompt, ``None`` when nobody said."""
        found = self.manifest.get("condition")
        return None if found is None else str(found)

    @property
    def imported(self) -> bool:
        """Whether its scores were read from another program's result file: what made them is then not known."""
        return self.manifest.get("imported") is not None

    @cached_property
    def domains(self) -> dict[str, str | None]:
        """Domain of each sample."""
        return {entry["id"]: entry["domain"] for entry in self.manifest["samples"]}

    @cached_property
    def aggregate(self) -> Table:
        """Metric -> protocol -> mean over all samples."""
        (table,) = tables_of(self.manifest, [self.source().part])
        return table

    @cached_property
    def groups(self) -> dict[str, Table]:
        """Domain -> metric -> protocol -> mean; samples without a domain are in none."""
        return dict(zip(self._parts, tables_of(self.manifest, list(self._parts.values())), strict=True))

    @cached_property
    def totals(self) -> Totals:
        """Total (``quality``, ``overall``) -> protocol -> mean of its parts, over all samples."""
        return totals_over([self.source()])

    @cached_property
    def group_totals(self) -> dict[str, Totals]:
        """Domain -> total -> protocol -> mean of its parts; samples without a domain are in none."""
        return {domain: totals_over([self.source(domain)]) for domain in self._parts}

    def source(self, domain: str | None = None) -> Source:
        """What means and totals of this run are made from: all its rows, or those of a domain."""
        if domain is None:
            return Source(self.manifest, Part(self.rows, list(self.domains)))
        return Source(self.manifest, self._parts.get(domain, Part([], [])))

    @cached_property
    def _parts(self) -> dict[str, Part]:
        """Rows and samples of each domain, by name."""
        parts: dict[str, Part] = defaultdict(lambda: Part([], []))
        for sample, domain in self.domains.items():
            if domain is not None:
                parts[domain].samples.append(sample)
        for row in self.rows:
            domain = self.domains.get(row.sample)
            if domain is not None:
                parts[domain].rows.append(row)
        return {name: parts[name] for name in sorted(parts)}

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
            for metric, protocol in asked_of(self.manifest):
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
        # answers that were declined or are not there count as wrong ones, and are somebody's fault
        refused = any(row.detail.get("refused") or row.detail.get("missing") for row in self.rows)
        broken = [one for one in self.manifest["rejected"] if one["reason"] not in _LISTED]
        if statuses[Status.FAILED] or statuses[Status.REFUSED] or refused or broken:
            return EXIT_FAILED_ITEMS
        if statuses[Status.SKIPPED] and not (statuses[Status.OK] or statuses[Status.UNDEFINED]):
            return EXIT_PART_ABSENT
        return EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """The document that ``gen-eval score --json`` prints (docs/files.md, "scores of videos")."""
        from api.services.published import tables_of

        return {
            "run": self.run,
            "model": self.model,
            "condition": self.condition,
            "aggregate": _table_json(self.aggregate),
            "groups": {domain: _table_json(table) for domain, table in self.groups.items()},
            "totals": _table_json(self.totals),
            "group_totals": {domain: _table_json(totals) for domain, totals in self.group_totals.items()},
            "tables": [table.to_json() for table in tables_of([self])],
            **({"imported": self.manifest["imported"]} if self.imported else {}),
            "networks": networks_json(self.manifest),
            "unknown_videos": self.manifest["unknown_videos"],
            "not_asked_videos": self.manifest["not_asked_videos"],
            "rejected": self.manifest["rejected"],
            # with its domain, so that every total can be taken again from the rows alone
            **self._answers_json(),
            "rows": [{**row.to_json(), "domain": self.domains.get(row.sample)} for row in self.rows],
        }

    def _answers_json(self) -> dict[str, Any]:
        """What a run of answers says beside its means."""
        if self.manifest["track"] != "domain":
            return {}
        from api.services.domain.further import judge_document

        return {"domain": judge_document(self)}

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
        given = "" if self.condition is None else f" given {self.condition}"
        lines = [f"run {self.run[:12]} of {self.model}{given}: {len(self.rows)} rows"]
        for metric, protocols in self.aggregate.items():
            lines += [f"  {metric} ({protocol}): {one.main}" for protocol, one in protocols.items()]
        for name, totals in self.totals.items():
            lines += [f"  {name} ({protocol}): {total}" for protocol, total in totals.items()]
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


def _table_json(table: Table | Totals) -> dict[str, Any]:
    return {name: {protocol: one.to_json() for protocol, one in protocols.items()} for name, protocols in table.items()}


def _short(one: Aggregate) -> dict[str, Any]:
    return {"value": one.value, "lower": one.lower, "upper": one.upper, "n": one.n, "N": one.N, "unit": one.unit}


def _of_run(run: RunFolder) -> Iterator[Score]:
    """The rows of ``run``.

    Raises:
        InputError: one belongs to a sample, metric or protocol that the manifest does not name.
    """
    samples, asked = {entry["id"] for entry in run.manifest["samples"]}, set(asked_of(run.manifest))
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
