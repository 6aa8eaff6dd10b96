"""Runs against a first one: what differs between them, then the paired difference of every metric.

The first run is the baseline: a difference is "other minus first", and ``worse`` says that the other is worse. Samples
are paired by id; the members of a sample are averaged first under every protocol, since pairs are made of samples.
Scores that were made by different rules are listed and not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from api.services import wording
from api.services.aggregation import clusters_of
from api.services.differences import Difference, differences
from api.services.facts import facts_of
from api.services.pairing import (
    SampleValues,
    Verdict,
    not_comparable,
    other_inputs,
    pairs_of,
    sample_values,
    verdict_of,
)
from api.services.results import RunResults
from api.services.systems import systems_of
from api.services.total_differences import TotalDifference, total_differences
from gen_eval.records import InputError
from gen_eval.stats import Aggregate, PairedDifference, paired_difference

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class MetricDifference:
    """How the other run differs from the first in one metric under one protocol.

    Attributes:
        first: mean of the first run over all its samples (not only the common ones).
        other: likewise of the other run.
        paired: other minus first over the common samples; side a is the other run, side b the first.
        other_inputs: common samples that are left out because the files they are scored against differ.
        verdict: by the interval of the difference and the metric's direction; ``not ranked`` for a metric with a
            caveat.
    """

    metric: str
    protocol: str
    unit: str
    higher_is_better: bool
    first: Aggregate
    other: Aggregate
    paired: PairedDifference
    other_inputs: tuple[str, ...]
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; the difference is in the unit of the metric (ratios in -1..1)."""
        paired = self.paired
        return {
            "metric": self.metric,
            "protocol": self.protocol,
            "unit": self.unit,
            "higher_is_better": self.higher_is_better,
            "first": {"value": self.first.value, "n": self.first.n, "N": self.first.N},
            "other": {"value": self.other.value, "n": self.other.n, "N": self.other.N},
            "difference": paired.difference,
            "lower": paired.lower,
            "upper": paired.upper,
            "n": paired.n,
            "only_first": list(paired.only_b),
            "only_other": list(paired.only_a),
            "neither": paired.neither,
            "other_inputs": list(self.other_inputs),
            "p_value": paired.p_value,
            "interval": None if paired.interval is None else paired.interval.method,
            "verdict": self.verdict,
        }

    @property
    def worse(self) -> bool:
        """Whether the other run is clearly worse than the first."""
        return self.verdict == "worse"

    def cells(self) -> tuple[str, ...]:
        """A line of a table: metric, protocol, both means, difference, its interval, n, p, verdict."""
        paired = self.paired
        return (
            self.metric,
            self.protocol,
            wording.number(self.first.value, self.unit),
            wording.number(self.other.value, self.unit),
            wording.difference(paired.difference, self.unit),
            wording.span(paired.lower, paired.upper, self.unit),
            str(paired.n),
            wording.NO_VALUE if paired.p_value is None else f"{paired.p_value:.2g}",
            self.verdict,
        )

    def remarks(self) -> tuple[str, ...]:
        """Sentences on the samples that the difference leaves out."""
        sides = (
            ("with a value in the first run only", self.paired.only_b),
            ("with a value in the other run only", self.paired.only_a),
            ("left out because the files that they are scored against differ", self.other_inputs),
        )
        return tuple(
            f"{self.metric} ({self.protocol}): {wording.counted(len(names), 'sample')} {words}: {wording.listed(names)}"
            for words, names in sides
            if names
        )

    def __str__(self) -> str:
        _, _, _, _, difference, span, n, chance, verdict = self.cells()
        ends = "" if span == wording.NO_VALUE else f" [{span}]"
        p_value = "" if chance == wording.NO_VALUE else f", p = {chance}"
        return f"{verdict}: {difference}{ends} (n = {n}{p_value})"


@dataclass(frozen=True)
class NotCompared:
    """Scores of both runs that were made by different rules."""

    metric: str
    protocol: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"metric": self.metric, "protocol": self.protocol, "why": self.why}


@dataclass(frozen=True)
class Against:
    """One other run against the first.

    Attributes:
        model: label of the model of the other run.
        label: the same; with the run's id when another run of the comparison is called alike.
        run: its id.
        differences: what differs besides the numbers.
        metrics: what could be compared.
        not_compared: what could not, and why.
        totals: of the system that the run belongs to (with its first run when it has several).
    """

    model: str
    label: str
    run: str
    differences: tuple[Difference, ...]
    metrics: tuple[MetricDifference, ...]
    not_compared: tuple[NotCompared, ...]
    totals: tuple[TotalDifference, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether any metric or total is clearly worse than in the first run."""
        return any(one.worse for one in self.lines)

    @property
    def lines(self) -> tuple[MetricDifference | TotalDifference, ...]:
        """Everything that goes into the table: metrics, then totals."""
        return (*self.metrics, *self.totals)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "model": self.model,
            "run": self.run,
            "differences": [one.to_json() for one in self.differences],
            "metrics": [one.to_json() for one in self.metrics],
            "not_compared": [one.to_json() for one in self.not_compared],
            "totals": [one.to_json() for one in self.totals],
            "worse": self.worse,
        }


@dataclass(frozen=True)
class Comparison:
    """All other runs against the first."""

    model: str
    label: str
    run: str
    protocol: str | None
    others: tuple[Against, ...]

    @property
    def worse(self) -> bool:
        """Whether any metric or total of any other run is clearly worse than in the first."""
        return any(one.worse for one in self.others)

    @property
    def decidable(self) -> bool:
        """Whether every other run shares a comparable metric that ranks with a common sample; a gate needs that."""
        return all(
            any(metric.paired.n and metric.verdict != "not ranked" for metric in one.metrics) for one in self.others
        )

    def to_json(self) -> dict[str, Any]:
        """The document that ``gen-eval compare --json`` prints."""
        return {
            "first": {"model": self.model, "run": self.run},
            "protocol": self.protocol,
            "comparisons": [one.to_json() for one in self.others],
            "worse": self.worse,
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line a run, metric and protocol."""
        import pandas as pd

        lines = []
        for other in self.others:
            for one in other.metrics:
                found = one.to_json()
                sides = {side: found.pop(side)["value"] for side in ("first", "other")}
                lines.append({"model": other.model, "run": other.run, **found, **sides})
        return pd.DataFrame(lines)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for other in self.others:
            yield f"{other.model} ({other.run[:12]}) against {self.model} ({self.run[:12]})"
            yield "  what differs:" if other.differences else "  the manifests do not differ"
            for difference in other.differences:
                yield f"    {difference.text}{' (expected)' if difference.expected else ''}"
            for one in other.metrics:
                yield f"  {one.metric} ({one.protocol}): {one}"
                yield from (f"    {remark}" for remark in one.remarks())
            for total in other.totals:
                name, own, *_, verdict = total.cells()
                yield f"  {name} ({own}): {verdict}: {total.cells()[4]}"
                yield from (f"    {remark}" for remark in total.remarks())
            for left in other.not_compared:
                yield f"  {left.metric} ({left.protocol}): not compared, {left.why}"

    def _repr_html_(self) -> str:
        return "".join(self._html())

    def _html(self) -> Iterator[str]:
        for other in self.others:
            yield f"<p><b>{escape(other.label)}</b> against <b>{escape(self.label)}</b></p><ul>"
            yield from (f"<li>{escape(one.text)}</li>" for one in other.differences)
            heads = ("metric", "protocol", self.label, other.label, "difference", "95 % interval", "n", "p", "verdict")
            yield f"</ul><table><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"
            for one in other.lines:
                yield f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in one.cells())}</tr>"
            yield "</table>"
            yield from (
                f"<p>not compared: {escape(one.metric)} ({escape(one.protocol)}), {escape(one.why)}</p>"
                for one in other.not_compared
            )


def compare(first: RunResults, *others: RunResults, protocol: str | None = None) -> Comparison:
    """Compare runs with a first one, sample by sample.

    Args:
        first: the baseline.
        others: runs that are compared with it, each on its own.
        protocol: only scores under this protocol; all by default.

    Raises:
        InputError: nothing to compare with, or no run has scores under ``protocol``.
    """
    if not others:
        raise InputError("one run is nothing to compare; name the baseline first and then the runs to compare with it")
    if protocol is not None and not any(pairs_of(run, protocol) for run in (first, *others)):
        known = sorted({name for run in (first, *others) for _, name in pairs_of(run, None)})
        raise InputError(f"no run has scores under the protocol {protocol!r}; there are {', '.join(known) or 'none'}")
    values = sample_values(first)
    names = [_name(run) for run in (first, *others)]
    runs = zip(names, (first, *others), strict=True)
    labels = [name if names.count(name) == 1 else f"{name} ({run.run[:8]})" for name, run in runs]
    found = tuple(
        _against(first, values, other, label, protocol) for other, label in zip(others, labels[1:], strict=True)
    )
    return Comparison(first.model, labels[0], first.run, protocol, _with_totals(found, (first, *others), protocol))


def _name(run: RunResults) -> str:
    return run.model if run.condition is None else f"{run.model}, {run.condition}"


def _against(first: RunResults, values: SampleValues, other: RunResults, label: str, protocol: str | None) -> Against:
    own = sample_values(other)
    compared, left = [], []
    for pair in sorted(pairs_of(first, protocol) & pairs_of(other, protocol)):
        why = not_comparable(first, other, *pair)
        if why:
            left.append(NotCompared(*pair, why))
        else:
            skipped = other_inputs(first, other, pair[0])
            compared.append(_metric(first, other, pair, values[pair], own[pair], skipped))
    return Against(other.model, label, other.run, differences(first, other), tuple(compared), tuple(left))


def _with_totals(found: Sequence[Against], runs: Sequence[RunResults], protocol: str | None) -> tuple[Against, ...]:
    """``found``, one each of ``runs`` but the first, with the differences of totals.

    Totals belong to systems, which may have several runs: they stand with the first run of each.
    """
    systems = systems_of(runs)
    home = next(system for system in systems if runs[0] in system.runs)
    leading = {id(system.runs[0]): system for system in systems if system is not home}
    return tuple(
        replace(one, totals=total_differences(home, leading[id(run)], protocol)) if id(run) in leading else one
        for one, run in zip(found, runs[1:], strict=True)
    )


def _metric(
    first: RunResults,
    other: RunResults,
    pair: tuple[str, str],
    one: Mapping[str, float | None],
    two: Mapping[str, float | None],
    skipped: Iterable[str],
) -> MetricDifference:
    metric, protocol = pair
    facts, left_out = facts_of(metric), set(skipped)
    kept = [{sample: value for sample, value in side.items() if sample not in left_out} for side in (two, one)]
    known = clusters_of(first.manifest)
    clusters = None if known is None else {sample: known.get(sample, sample) for side in kept for sample in side}
    paired = paired_difference(*kept, clusters=clusters)
    return MetricDifference(
        metric,
        protocol,
        facts.unit,
        facts.higher_is_better,
        first.aggregate[metric][protocol].main,
        other.aggregate[metric][protocol].main,
        paired,
        tuple(sorted(left_out)),
        "not ranked" if facts.caveat and paired.n else verdict_of(paired, facts.higher_is_better),
    )
