"""Differences of totals: the same samples drawn for all parts at once.

A total is compared between systems, not runs: the Domain score of a model may lie in another run than its Quality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.services import wording
from api.services.aggregation import total_rules_of
from api.services.pairing import Verdict, not_comparable, other_inputs, sample_values, verdict_of
from api.services.results import RunResults
from api.services.systems import System
from gen_eval.protocols import TotalRule
from gen_eval.stats import PairedDifference, Total, paired_total


@dataclass(frozen=True)
class TotalDifference:
    """How the other system differs from the first in one total under one protocol.

    Attributes:
        first: the total of the first system over all its samples (not only the common ones).
        other: likewise of the other system.
        paired: other minus first; ``None`` when the parts cannot be compared.
        why: what stands in the way then.
    """

    name: str
    protocol: str
    first: Total
    other: Total
    paired: PairedDifference | None
    why: str
    verdict: Verdict

    @property
    def worse(self) -> bool:
        """Whether the other system is clearly worse than the first."""
        return self.verdict == "worse"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; the difference is in -1..1."""
        paired = self.paired
        return {
            "total": self.name,
            "protocol": self.protocol,
            "unit": self.first.unit,
            "first": self._side(self.first),
            "other": self._side(self.other),
            "difference": None if paired is None else paired.difference,
            "lower": None if paired is None else paired.lower,
            "upper": None if paired is None else paired.upper,
            "n": 0 if paired is None else paired.n,
            "p_value": None if paired is None else paired.p_value,
            "interval": None if paired is None or paired.interval is None else paired.interval.method,
            "why": self.why,
            "verdict": self.verdict,
        }

    @staticmethod
    def _side(total: Total) -> dict[str, Any]:
        return {"value": total.value, "n": total.n, "N": total.N, "missing": list(total.missing)}

    def cells(self) -> tuple[str, ...]:
        """A line of the table of metrics: name, protocol, both totals, difference, its interval, n, p, verdict."""
        paired, unit = self.paired, self.first.unit
        chance = None if paired is None else paired.p_value
        return (
            self.name,
            self.protocol,
            wording.number(self.first.value, unit),
            wording.number(self.other.value, unit),
            wording.NO_VALUE if paired is None else wording.difference(paired.difference, unit),
            wording.NO_VALUE if paired is None else wording.span(paired.lower, paired.upper, unit),
            "0" if paired is None else str(paired.n),
            wording.NO_VALUE if chance is None else f"{chance:.2g}",
            self.verdict,
        )

    def remarks(self) -> tuple[str, ...]:
        """Why there is no difference, where there is none."""
        return (f"{self.name} ({self.protocol}): no difference, {self.why}",) if self.why else ()


def total_differences(first: System, other: System, protocol: str | None = None) -> tuple[TotalDifference, ...]:
    """Every total that both systems have, under ``protocol`` or under all protocols that both have."""
    rules = total_rules_of([run.manifest for run in (*first.runs, *other.runs)])
    pairs = [
        (name, own, total, other.totals[name][own])
        for name, totals in first.totals.items()
        for own, total in totals.items()
        if own in other.totals.get(name, {}) and protocol in {None, own}
    ]
    return tuple(_difference(rules, name, own, (first, other), (total, another)) for name, own, total, another in pairs)


def _difference(
    rules: Mapping[str, TotalRule],
    name: str,
    protocol: str,
    systems: tuple[System, System],
    totals: tuple[Total, Total],
) -> TotalDifference:
    shares = shares_of(name, rules)
    found = [_values(systems, metric, protocol) for metric in shares]
    why = "; ".join(each for each in found if isinstance(each, str))
    if why:
        return TotalDifference(name, protocol, *totals, None, why, "no common value")
    sides = [
        {metric: each[side] for metric, each in zip(shares, found, strict=True) if not isinstance(each, str)}
        for side in (1, 0)
    ]
    paired = paired_total(*sides, shares=shares)
    if paired.difference is None:
        why = "a part has no sample with a value in both"
    return TotalDifference(name, protocol, *totals, paired, why, verdict_of(paired, higher_is_better=True))


def shares_of(name: str, rules: Mapping[str, TotalRule]) -> dict[str, float]:
    """Metric -> what it counts in the total ``name``.

    Example:
        >>> rules = {"q": TotalRule("q", "Q", ("a", "b")), "o": TotalRule("o", "O", ("d", "q"))}
        >>> shares_of("o", rules)
        {'d': 0.5, 'a': 0.25, 'b': 0.25}
    """
    if name not in rules:
        return {name: 1.0}
    parts = rules[name].mean_of
    shares: dict[str, float] = {}
    for part in parts:
        for metric, share in shares_of(part, rules).items():
            shares[metric] = shares.get(metric, 0.0) + share / len(parts)
    return shares


Values = dict[str, float | None]


def _values(systems: tuple[System, System], metric: str, protocol: str) -> tuple[Values, Values] | str:
    """Values of the samples of both systems, or what stands in the way of comparing them."""
    first, other = (_run_with(system, metric, protocol) for system in systems)
    if first is None or other is None:
        return f"{metric} is not in both"
    if why := not_comparable(first, other, metric, protocol):
        return f"{metric}: {why}"
    skipped = set(other_inputs(first, other, metric))
    one, two = (
        {sample: value for sample, value in sample_values(run)[metric, protocol].items() if sample not in skipped}
        for run in (first, other)
    )
    return one, two


def _run_with(system: System, metric: str, protocol: str) -> RunResults | None:
    return next(
        (run for run in system.runs if protocol in run.manifest["metrics"].get(metric, {}).get("protocols", ())), None
    )
