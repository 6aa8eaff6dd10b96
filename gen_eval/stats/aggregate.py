"""The mean of a metric over a benchmark, with everything that is needed to defend it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from gen_eval.stats.intervals import Interval, bootstrap_mean, bootstrap_ratio
from gen_eval.stats.summaries import exact_mean, finite_number, members_with_value

MembersRule: TypeAlias = Literal["sample_first", "pooled", "frame_weighted"]

_RULES: dict[MembersRule, str] = {
    "sample_first": "mean over the members of a sample that have a value, then over the samples that have one; "
    "samples without a value are left out and counted in N",
    "pooled": "mean over all members that have a value, each with equal weight; "
    "members and samples without a value are left out and counted in N",
    "frame_weighted": "sum over all frames of all members that have a value, over the number of these frames; "
    "members and samples without a value are left out and counted in N",
}

Weights: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""Sample -> member -> what it weighs (how many frames its value is the mean of)."""


class Count(NamedTuple):
    """How many have a value, of how many that were expected."""

    n: int
    N: int


class Spread(NamedTuple):
    """Least and largest number of members with a value among the samples that have one."""

    least: int
    most: int


@dataclass(frozen=True)
class Aggregate:
    """One number for a benchmark, its coverage, and the rule that made it.

    Attributes:
        value: the mean; ``None`` when no sample has a value.
        lower: lower end of the interval; ``None`` with fewer than two samples, or when none was asked for.
        upper: upper end, likewise.
        n: samples with a value.
        N: samples that were expected.
        members: the same for members (seeds, captions).
        mean_missing_as_zero: the mean with every gap as 0; ``None`` when smaller is better or nothing has a value.
        rule: how members and gaps entered.
        unit: unit of value, ends and means.
        pooled: mean over all members with a value, whatever the rule; equal to the value when no sample has more.
        uneven_members: least and largest number of members, ``None`` when all samples have equally many.
        interval: how the interval was made, ``None`` without one.
    """

    value: float | None
    lower: float | None
    upper: float | None
    n: int
    N: int
    members: Count
    mean_missing_as_zero: float | None
    rule: str
    unit: str
    pooled: float | None = None
    uneven_members: Spread | None = None
    interval: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        """The aggregate as plain JSON values."""
        uneven, interval = self.uneven_members, self.interval
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "n": self.n,
            "N": self.N,
            "members": {"n": self.members.n, "N": self.members.N},
            "mean_missing_as_zero": self.mean_missing_as_zero,
            "rule": self.rule,
            "unit": self.unit,
            "pooled": self.pooled,
            "uneven_members": None if uneven is None else {"min": uneven.least, "max": uneven.most},
            "interval": None
            if interval is None
            else {"level": interval.level, "resamples": interval.resamples, "method": interval.method},
        }

    def __str__(self) -> str:
        if self.value is None:
            return f"no value (n = 0 of {self.N})"
        ends = "" if self.lower is None or self.upper is None else f" [{self.lower:.6g}, {self.upper:.6g}]"
        return f"{self.value:.6g}{ends} {self.unit} (n = {self.n} of {self.N})"


def mean_with_coverage(
    samples: Mapping[str, Mapping[str, float | None] | Sequence[float | None]],
    *,
    members: MembersRule = "sample_first",
    weights: Weights | None = None,
    higher_is_better: bool = True,
    unit: str = "ratio",
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Aggregate:
    """The mean over a benchmark's samples, n of N, and the mean with gaps as 0.

    Values are added exactly and samples are taken in the order of their keys, so that the result is the same to the
    last bit in whatever order samples and members come. The interval resamples whole samples under every rule:
    members of one sample are not independent.

    Args:
        samples: every expected sample (also those without any value) with the values of its members, ``None`` for a
            member that was expected and has none. A sample without members counts as one expected member.
        members: ``sample_first``, ``pooled`` or ``frame_weighted``; see the result's ``rule``. What counts as a gap in
            ``mean_missing_as_zero`` follows it: a sample without a value, or a member without one (which then weighs
            as much as the others do on average).
        weights: for ``frame_weighted`` the weight of each member that has a value, above 0; not looked at otherwise.
        higher_is_better: whether ``mean_missing_as_zero`` makes sense.
        unit: unit of the values.
        resamples: bootstrap resamples; 0 for no interval.
        seed: non-negative.
        level: nominal coverage of the interval.

    Raises:
        ValueError: a value that is not finite (sample and member are named), a member with a value and no weight, or
            an argument outside its range.
        TypeError: a value that is no number.

    >>> print(mean_with_coverage({"a": [0.5, 0.7], "b": [0.8], "c": [None]}, resamples=0))
    0.7 ratio (n = 2 of 3)
    """
    if members not in get_args(MembersRule):
        raise ValueError(f"members is {members!r}; one of {', '.join(get_args(MembersRule))} is needed")
    values = {key: members_with_value(samples[key], f"samples[{key!r}]") for key in sorted(samples)}
    filled = {key: own for key, own in values.items() if own}
    total = Count(sum(map(len, filled.values())), sum(max(1, len(own)) for own in samples.values()))
    counts = (len(filled), len(samples))
    if not filled:
        return Aggregate(None, None, None, *counts, total, None, _RULES[members], unit)
    units = units_of(samples, members, weights)
    value = units.mean
    interval = _interval(units, len(filled), resamples=resamples, seed=seed, level=level)
    share = Count(len(filled), len(samples)) if members == "sample_first" else total
    return Aggregate(
        value,
        None if interval is None else interval.lower,
        None if interval is None else interval.upper,
        *counts,
        total,
        units.with_gaps(share) if higher_is_better else None,
        _RULES[members],
        unit,
        exact_mean([value for own in filled.values() for value in own]),
        _uneven(filled),
        interval,
    )


class Units(NamedTuple):
    """What the mean goes over.

    Attributes:
        values: a number a unit.
        clusters: the sample of each unit where samples hold several.
        weights: what each unit weighs, ``None`` when all weigh the same.
    """

    values: list[float]
    clusters: list[str] | None = None
    weights: list[float] | None = None

    @property
    def mean(self) -> float:
        """The (weighted) mean."""
        if self.weights is None:
            return exact_mean(self.values)
        above = math.fsum(one * weight for one, weight in zip(self.values, self.weights, strict=True))
        return min(max(above / math.fsum(self.weights), min(self.values)), max(self.values))

    def with_gaps(self, share: Count) -> float:
        """The mean with the gaps as 0; ``share`` says how many there are."""
        if self.weights is None:
            return exact_mean([*self.values, *[0.0] * (share.N - share.n)])
        return self.mean * share.n / share.N

    def sums(self) -> tuple[list[float], list[float]]:
        """Numerator and denominator that each sample brings: the mean is the ratio of their sums."""
        weights = self.weights or [1.0] * len(self.values)
        clusters = self.clusters or list(map(str, range(len(self.values))))
        above: dict[str, list[float]] = {}
        below: dict[str, list[float]] = {}
        for value, weight, cluster in zip(self.values, weights, clusters, strict=True):
            above.setdefault(cluster, []).append(value * weight)
            below.setdefault(cluster, []).append(weight)
        return [math.fsum(own) for own in above.values()], [math.fsum(own) for own in below.values()]


def units_of(
    samples: Mapping[str, Mapping[str, float | None] | Sequence[float | None]],
    members: MembersRule,
    weights: Weights | None = None,
) -> Units:
    """What the mean goes over, samples in key order; samples without a value bring nothing.

    Raises:
        ValueError: see :func:`mean_with_coverage`.
    """
    values = {key: members_with_value(samples[key], f"samples[{key!r}]") for key in sorted(samples)}
    filled = {key: own for key, own in values.items() if own}
    if members == "sample_first":
        return Units([exact_mean(own) for own in filled.values()])
    clusters = [key for key, own in filled.items() for _ in own]
    if members == "pooled":
        return Units([value for own in filled.values() for value in sorted(own)], clusters)
    pairs = [pair for key in filled for pair in sorted(_weighed(key, samples[key], weights or {}))]
    return Units([value for value, _ in pairs], clusters, [weight for _, weight in pairs])


def _weighed(
    key: str, members: Mapping[str, float | None] | Sequence[float | None], weights: Weights
) -> Iterator[tuple[float, float]]:
    pairs = (
        members.items() if isinstance(members, Mapping) else ((str(place), one) for place, one in enumerate(members))
    )
    for member, value in pairs:
        if value is None:
            continue
        weight = weights.get(key, {}).get(member)
        if weight is None or finite_number(weight, f"weights[{key!r}][{member!r}]") <= 0:
            raise ValueError(
                f"weights[{key!r}][{member!r}] is {weight}; a member with a value needs a weight above 0: how many "
                "frames its value is the mean of"
            )
        yield float(value), float(weight)


def _interval(units: Units, samples: int, *, resamples: int, seed: int, level: float) -> Interval | None:
    """``None`` for a single sample: an interval without width would claim a certainty that one sample cannot give."""
    if samples < 2 or resamples == 0:
        return None
    if units.weights is not None:
        return bootstrap_ratio(*units.sums(), resamples=resamples, seed=seed, level=level)
    return bootstrap_mean(units.values, resamples=resamples, seed=seed, level=level, clusters=units.clusters)


def _uneven(filled: Mapping[str, list[float]]) -> Spread | None:
    sizes = [len(own) for own in filled.values()]
    spread = Spread(min(sizes), max(sizes))
    return spread if spread.least != spread.most else None
