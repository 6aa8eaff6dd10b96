"""Scores that are plain means of other scores: their value, what is missing of them, and one interval for all parts.

The interval resamples samples jointly: a resample draws samples once for all parts, each part is taken anew from the
samples drawn, and the total is the mean of the parts. So it allows for parts that go up and down together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gen_eval.stats.aggregate import Aggregate, Count
from gen_eval.stats.intervals import Interval, percentile_interval
from gen_eval.stats.paired import PairedDifference, chances_of, paired_difference
from gen_eval.stats.resampling import resampled_sums
from gen_eval.stats.summaries import Floats, exact_mean, finite_number
from gen_eval.stats.together import Column, aggregates

SampleSums: TypeAlias = Mapping[str, tuple[float, float]]
"""Sample -> numerator and denominator that it brings to a mean; samples without a value are not there."""

Leaf: TypeAlias = tuple[float, SampleSums]
"""Share of a mean in a total, and what its samples bring."""


@dataclass(frozen=True)
class Part:
    """One of the scores that a total is the mean of.

    Attributes:
        value: the score, unrounded; ``None`` without one.
        count: samples with a value of those expected; ``None`` where nobody said.
    """

    value: float | None
    count: Count | None = None
    _leaves: tuple[Leaf, ...] | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        n, N = (None, None) if self.count is None else self.count
        return {"value": self.value, "n": n, "N": N}


@dataclass(frozen=True)
class Partial:
    """The mean of the parts that are there, when some are not: no substitute for the total.

    Attributes:
        value: the mean.
        lower: lower end of its interval, if there is one.
        upper: likewise.
        of: names of the parts that are there.
    """

    value: float
    lower: float | None
    upper: float | None
    of: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"value": self.value, "lower": self.lower, "upper": self.upper, "of": list(self.of)}


@dataclass(frozen=True)
class Total:
    """A score that is the mean of other scores, each with equal weight.

    Attributes:
        name: of the total.
        value: mean of the unrounded parts; ``None`` when one of them has no value.
        lower: lower end of the interval; ``None`` without samples or with fewer than two.
        upper: upper end, likewise.
        parts: every part that belongs to it, by name.
        partial: the mean of those that are there when some, and not all, are.
        unit: of the value.
        interval: how the interval was made.
    """

    name: str
    value: float | None
    lower: float | None
    upper: float | None
    parts: Mapping[str, Part]
    partial: Partial | None = None
    unit: str = "ratio"
    interval: Interval | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the parts without a value."""
        return tuple(name for name, part in self.parts.items() if part.value is None)

    @property
    def n(self) -> int:
        """Parts with a value."""
        return len(self.parts) - len(self.missing)

    @property
    def N(self) -> int:  # noqa: N802 - the field's name
        """Parts that belong to it."""
        return len(self.parts)

    @property
    def rule(self) -> str:
        """How the parts entered, in words."""
        return f"plain mean of {', '.join(self.parts)}, unrounded; no value while one of them has none"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        interval = self.interval
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "n": self.n,
            "N": self.N,
            "partial": None if self.partial is None else self.partial.to_json(),
            "parts": {name: part.to_json() for name, part in self.parts.items()},
            "missing": list(self.missing),
            "rule": self.rule,
            "unit": self.unit,
            "interval": None
            if interval is None
            else {"level": interval.level, "resamples": interval.resamples, "method": interval.method},
        }

    def __str__(self) -> str:
        if self.value is None:
            rest = "" if self.partial is None else f"; mean of {', '.join(self.partial.of)}: {self.partial.value:.6g}"
            return f"no value ({self.n} of {self.N} parts, without {', '.join(self.missing)}{rest})"
        ends = "" if self.lower is None or self.upper is None else f" [{self.lower:.6g}, {self.upper:.6g}]"
        return f"{self.value:.6g}{ends} {self.unit} ({self.n} of {self.N} parts)"


Score: TypeAlias = float | Aggregate | Column | Total | None


def total_of(
    name: str,
    wanted: Sequence[str],
    scores: Mapping[str, Score],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Total:
    """The plain mean of the scores named ``wanted``.

    Args:
        name: of the total.
        wanted: names of its parts, each once.
        scores: a number or an aggregate (no interval follows from those), a column of values, another total; ``None``
            and names that are absent have no value. Further names are not looked at.
        resamples: bootstrap resamples; 0 for no interval.
        seed: non-negative.
        level: nominal coverage of the interval, which exists when every part that has a value is a column or made of
            columns, and at least two samples have a value. Columns are taken together by the names of their samples.

    Raises:
        ValueError: no part, a part that is named twice, a number that is not finite, or an argument outside its range.
        TypeError: a score that is no number.

    >>> print(total_of("quality", ["sharpness", "motion"], {"sharpness": 0.5, "motion": 0.7}))
    0.6 ratio (2 of 2 parts)
    """
    if not wanted or len(set(wanted)) != len(wanted):
        raise ValueError(f"a total needs parts with different names, not {list(wanted)}")
    parts = {one: _part(scores.get(one), f"scores[{one!r}]") for one in wanted}
    present = {one: part.value for one, part in parts.items() if part.value is not None}
    if not present:
        return Total(name, None, None, None, parts)
    value = exact_mean(list(present.values()))
    leaves = _joined([parts[one] for one in present])
    interval = None if leaves is None or resamples == 0 else _interval(leaves, resamples, seed, level)
    lower, upper = (None, None) if interval is None else (interval.lower, interval.upper)
    if len(present) == len(parts):
        return Total(name, value, lower, upper, parts, interval=interval)
    return Total(name, None, None, None, parts, Partial(value, lower, upper, tuple(present)), interval=interval)


def _part(score: Score, where: str) -> Part:
    if score is None:
        return Part(None)
    if isinstance(score, Total):
        return Part(score.value, None, _joined(list(score.parts.values())))
    if isinstance(score, Aggregate):
        return Part(score.value, Count(score.n, score.N))
    if isinstance(score, Column):
        (found,) = aggregates(
            [Column(score.values, score.rule, True, score.unit, interval=False, weights=score.weights)]
        )
        return Part(found.value, Count(found.n, found.N), ((1.0, score.sums()),))
    return Part(finite_number(score, where))


def _joined(parts: Sequence[Part]) -> tuple[Leaf, ...] | None:
    """The means that the mean of ``parts`` is made of; ``None`` when a part is a bare number."""
    leaves: list[Leaf] = []
    for part in parts:
        if part._leaves is None:
            return None
        leaves += [(share / len(parts), sums) for share, sums in part._leaves]
    return tuple(leaves)


def _interval(leaves: Sequence[Leaf], resamples: int, seed: int, level: float) -> Interval | None:
    drawn = _resampled(leaves, resamples, seed)
    method = f"percentile bootstrap of the mean of parts, samples drawn with replacement for all at once, seed {seed}"
    return percentile_interval(drawn, level, resamples, method) if len(drawn) else None


def _resampled(leaves: Sequence[Leaf], resamples: int, seed: int) -> Floats:
    """The total of each resample in which every part has a value; none of fewer than two samples."""
    samples = sorted({sample for _, sums in leaves for sample in sums})
    if len(samples) < 2:
        return np.empty(0)
    gap = (0.0, 0.0)
    pairs = np.array([[sums.get(sample, gap) for sample in samples] for _, sums in leaves])  # (leaves, samples, 2)
    below, place = np.unique(pairs[:, :, 1], axis=0, return_inverse=True)  # most parts have the same samples
    sums = resampled_sums(np.concatenate([pairs[:, :, 0], below]).T, resamples=resamples, seed=seed)
    weights = sums[:, len(leaves) + place.ravel()]
    defined = (weights > 0).all(axis=1)
    means = sums[defined, : len(leaves)] / weights[defined]
    for column, (_, own) in enumerate(leaves):
        ratios = [above / weight for above, weight in own.values()]
        np.clip(means[:, column], min(ratios), max(ratios), out=means[:, column])
    total: Floats = means @ np.array([share for share, _ in leaves])
    return total


def paired_total(
    a: Mapping[str, Mapping[str, float | None]],
    b: Mapping[str, Mapping[str, float | None]],
    *,
    shares: Mapping[str, float] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> PairedDifference:
    """How a total of system a differs from that of system b: mean over parts of the mean paired differences a - b.

    Args:
        a: part -> sample -> value, ``None`` for none.
        b: likewise, with the same parts.
        shares: what each part counts in the total, 1 in all; equal shares by default.
        resamples: number of resamples; samples are drawn once for all parts.
        seed: non-negative.
        level: nominal coverage of the interval.

    Returns:
        ``n`` counts the samples that are paired in some part; ``only_a`` and ``only_b`` name those with a value on one
        side only in some part. No difference when a part has no common sample.

    Raises:
        ValueError: the parts differ, there are none, the shares are others', or see
            :func:`gen_eval.stats.paired_difference`.
    """
    if not a or a.keys() != b.keys():
        raise ValueError(f"both sides need the same parts, not {sorted(a)} and {sorted(b)}")
    share = dict.fromkeys(a, 1 / len(a)) if shares is None else shares
    if share.keys() != a.keys() or not math.isclose(math.fsum(share.values()), 1):
        raise ValueError(f"shares must name the parts {sorted(a)} and be 1 in all, not {dict(share)}")
    alone = [paired_difference(a[one], b[one], resamples=1) for one in a]
    only_a = tuple(sorted({sample for one in alone for sample in one.only_a}))
    only_b = tuple(sorted({sample for one in alone for sample in one.only_b}))
    leaves = [(share[one], {key: (own - other, 1.0) for key, own, other in _common(a[one], b[one])}) for one in a]
    paired = {sample for _, sums in leaves for sample in sums}
    neither = len(
        {sample for side in (a, b) for part in side.values() for sample in part} - paired - {*only_a, *only_b}
    )
    means = [share[part] * one.difference for part, one in zip(a, alone, strict=True) if one.difference is not None]
    if len(means) < len(alone):
        return PairedDifference(None, None, None, len(paired), only_a, only_b, neither)
    difference = math.fsum(means)
    drawn = _resampled(leaves, resamples, seed)
    if not len(drawn):
        return PairedDifference(difference, None, None, len(paired), only_a, only_b, neither)
    method = (
        f"percentile bootstrap of the mean of paired differences over parts, samples drawn for all at once, seed {seed}"
    )
    interval = percentile_interval(drawn, level, resamples, method)
    return PairedDifference(
        difference, interval.lower, interval.upper, len(paired), only_a, only_b, neither, *chances_of(drawn), interval
    )


def _common(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> list[tuple[str, float, float]]:
    found = [(sample, a[sample], b[sample]) for sample in sorted(a.keys() & b.keys())]
    return [(sample, one, other) for sample, one, other in found if one is not None and other is not None]
