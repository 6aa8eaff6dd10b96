"""From rows to means and totals: what a manifest asks for, over any part of its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from api.services.facts import facts_of
from gen_eval.data.naming import caption_stem
from gen_eval.protocols import TotalRule, load_protocol, totals_of
from gen_eval.protocols.totals import ordered
from gen_eval.records import InputError, Reason, Score
from gen_eval.stats import Aggregate, Column, MembersRule, Total, aggregates, total_of
from gen_eval.stats.aggregate import Weights


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

Totals: TypeAlias = dict[str, dict[str, Total]]
"""Total -> protocol -> its value, parts and interval."""


class Part(NamedTuple):
    """Rows and expected samples of one table."""

    rows: list[Score]
    samples: list[str]


class Source(NamedTuple):
    """A part of a run, with the manifest that says how its values become means."""

    manifest: Mapping[str, Any]
    part: Part


def asked_of(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All pairs of metric and protocol, sorted."""
    return sorted(
        (metric, protocol) for metric, entry in manifest["metrics"].items() for protocol in entry["protocols"]
    )


def tables_of(manifest: Mapping[str, Any], parts: Sequence[Part]) -> list[Table]:
    """The table of each part; all means are taken together, so that columns share their resamples."""
    asked = asked_of(manifest)
    drafts = [
        _Draft.of(manifest, metric, protocol, rows, part)
        for part in parts
        for (metric, protocol), rows in _split(manifest, part).items()
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


def totals_over(sources: Sequence[Source]) -> Totals:
    """The totals of one system, whose scores may lie in several runs (quality in one, domain in another).

    A total stands under every protocol that one of its parts has (or all have, as its rule says); a part that is not
    there, or has no value, leaves it without one and is named.
    """
    columns: dict[str, dict[str, Column]] = {}
    for manifest, part in sources:
        rows = _split(manifest, part)
        for (metric, protocol), own in rows.items():
            columns.setdefault(protocol, {})[metric] = _main_column(manifest, metric, protocol, own, part)
    rules = total_rules_of([source.manifest for source in sources])
    totals: Totals = {}
    for protocol in sorted(columns):
        scores: dict[str, Column | Total] = dict(columns[protocol])
        for name, rule in rules.items():
            there = [part in scores for part in rule.mean_of]
            if all(there) if rule.shown_with == "all" else any(there):
                scores[name] = total = total_of(name, rule.mean_of, scores)
                totals.setdefault(name, {})[protocol] = total
    return totals


def total_rules_of(manifests: Sequence[Mapping[str, Any]]) -> dict[str, TotalRule]:
    """As the runs were asked, whatever the configuration says today; of two rules of one name the first run's."""
    rules: dict[str, TotalRule] = {}
    for manifest in manifests:
        recorded = manifest.get("totals")
        if recorded is None:
            own = totals_of(manifest["metrics"])
        else:
            own = {name: TotalRule.from_json(name, content) for name, content in recorded.items()}
        rules = {**own, **rules}
    return ordered(rules)


def _split(manifest: Mapping[str, Any], part: Part) -> dict[tuple[str, str], list[Score]]:
    """The rows that count, by metric and protocol."""
    rows: dict[tuple[str, str], list[Score]] = {pair: [] for pair in asked_of(manifest)}
    passed_over = {pair for pair in rows if _caption_clips(manifest, *pair) == "left_out"}
    named = _caption_named(manifest) if passed_over else set()
    for row in part.rows:
        pair = (row.metric, row.protocol)
        if pair not in passed_over or (row.sample, row.member) not in named:
            rows[pair].append(row)
    return rows


def _caption_clips(manifest: Mapping[str, Any], metric: str, protocol: str) -> str:
    """Whether clips named as captions enter the mean: as the run was asked; runs that do not say count them."""
    return str(manifest["metrics"][metric].get("caption_clips", {}).get(protocol, "counted"))


def _caption_named(manifest: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Sample and member of the clips whose file is called ``<id>_caption<k>``."""
    return {
        (sample["id"], member["id"])
        for sample in manifest["samples"]
        for member in sample["members"]
        if member["path"] is not None and Path(member["path"]).stem == caption_stem(sample["id"], member["id"])
    }


_MAIN = ""
_FRAME_WEIGHTED: MembersRule = "frame_weighted"


@dataclass(frozen=True)
class _Draft:
    """A metric under one protocol, its means still to be taken.

    Attributes:
        columns: the main value under the empty name, further numbers under theirs, other rules for the main value under
            the name of the rule.
    """

    columns: dict[str, Column]
    rows: list[Score]

    @classmethod
    def of(cls, manifest: Mapping[str, Any], metric: str, protocol: str, rows: list[Score], part: Part) -> _Draft:
        main = _main_column(manifest, metric, protocol, rows, part)
        columns = {_MAIN: main}
        for name in sorted({name for row in rows for name in row.values}):
            values = _empty(part)
            for row in rows:
                values[row.sample][row.member] = row.values.get(name)
            columns[name] = replace(main, values=values, unit=facts_of(metric).unit_of(name), interval=False)
        for rule in _beside(manifest, metric, protocol):
            weights = _weights(rows)
            if rule != _FRAME_WEIGHTED or _unweighed(rows, weights) is None:
                columns[rule] = replace(main, rule=rule, weights=weights)
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


def _empty(part: Part) -> dict[str, dict[str, float | None]]:
    return {sample: {} for sample in part.samples}


def _main_column(manifest: Mapping[str, Any], metric: str, protocol: str, rows: Sequence[Score], part: Part) -> Column:
    """The values of ``metric``.

    Raises:
        InputError: the mean is weighted by frames, and a row with a value does not say how many it has.
    """
    facts, rule, values = facts_of(metric), _rule(manifest, metric, protocol), _empty(part)
    for row in rows:
        # an answer that was declined, or that a file of replies lacks, is a wrong one: it stays in the denominator
        wrong = row.reason in {Reason.CONTENT_FILTER, Reason.MISSING_REPLY}
        values[row.sample][row.member] = 0.0 if wrong else row.value
    weights = _weights(rows) if rule == _FRAME_WEIGHTED else None
    if weights is not None and (bare := _unweighed(rows, weights)) is not None:
        raise InputError(
            f"the mean of {metric} under {protocol} is weighted by frames, and the row of {bare.sample}, member "
            f"{bare.member}, has no `count` above 0 in its detail; score again"
        )
    return Column(values, rule, facts.higher_is_better, facts.unit, weights=weights, clusters=clusters_of(manifest))


def clusters_of(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Sample -> the video that it shares with other samples; ``None`` where samples are independent."""
    return {entry["id"]: entry["cluster"] for entry in manifest["samples"] if entry.get("cluster")} or None


def _weights(rows: Sequence[Score]) -> Weights:
    """Sample -> member -> how many frames its value is the mean of, where a row says so."""
    weights: dict[str, dict[str, float | None]] = {}
    for row in rows:
        count = row.detail.get("count")
        known = isinstance(count, int | float) and not isinstance(count, bool) and count > 0
        weights.setdefault(row.sample, {})[row.member] = count if known else None
    return weights


def _unweighed(rows: Sequence[Score], weights: Weights) -> Score | None:
    """The first row that has a value and no weight."""
    return next((row for row in rows if row.value is not None and weights[row.sample][row.member] is None), None)


def _rule(manifest: Mapping[str, Any], metric: str, protocol: str) -> MembersRule:
    """How members enter the mean: as the run was asked, whatever the protocol files say today."""
    recorded = manifest["metrics"][metric].get("members", {})
    rule: MembersRule = recorded.get(protocol) or load_protocol(metric, protocol).aggregate.get(
        "members", "sample_first"
    )
    return rule


def _beside(manifest: Mapping[str, Any], metric: str, protocol: str) -> list[MembersRule]:
    """Other rules whose mean stands beside, likewise."""
    entry = manifest["metrics"][metric]
    if "members" in entry:
        found: list[MembersRule] = entry.get("beside", {}).get(protocol, [])
        return found
    beside: list[MembersRule] = load_protocol(metric, protocol).aggregate.get("beside", [])
    return beside
