"""Agreement beyond chance: Cohen's kappa of two annotators, Krippendorff's alpha of any number with gaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from gen_eval.records.reasons import Reason
from gen_eval.stats.coefficient import Coefficient
from gen_eval.stats.intervals import Interval, percentile_interval
from gen_eval.stats.resampling import check_resampling, resampled_sums
from gen_eval.stats.summaries import Floats, exact_mean, finite_number

Measure = Literal["nominal", "interval"]
"""What two different labels are apart: all alike, or by the square of their distance."""

_CONSTANT = 1e-12
"""Expected disagreement (as a share of what it could be) below which there is none but for rounding."""


@dataclass(frozen=True)
class AgreementCoefficient(Coefficient):
    """One coefficient of agreement.

    Attributes:
        name: ``cohen_kappa`` or ``krippendorff_alpha``.
        value: at most 1, which is perfect agreement; 0 is what chance gives. ``None`` exactly when there is a reason.
        reason: ``not_connected`` (no item has two labels, so nothing links the annotators) or ``no_variance`` (all
            labels that count are equal, so that agreement cannot be told from chance).
        n: items with at least two labels.
        labels: labels on these items.
        left_out: items with fewer than two labels.
        observed: kappa: share of items with equal labels, 0..1. Alpha: observed disagreement D_o, 0..1 (interval: as a
            share of the squared range of the labels). ``None`` without an item.
        interval: percentile bootstrap over items or clusters of items; ``None`` when not asked for, or with one only.
    """

    labels: int
    left_out: int
    observed: float | None = None
    interval: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        ends = self.interval
        return {
            **vars(self),
            "reason": None if self.reason is None else str(self.reason),
            "interval": None if ends is None else dict(vars(ends)),
        }

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name} no value ({self.reason}, n = {self.n})"
        ends = "" if self.interval is None else f" [{self.interval.lower:.3f}, {self.interval.upper:.3f}]"
        return f"{self.name} {self.value:.3f}{ends} (n = {self.n})"


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    resamples: int = 0,
    seed: int = 0,
    coverage: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
) -> AgreementCoefficient:
    """Cohen's kappa (1960), unweighted: (p_o - p_e) / (1 - p_e).

    p_o is the share of items with equal labels, p_e = sum over labels of the product of the two annotators' shares of
    that label. Only items that both labelled count, in the shares too.

    Args:
        a: labels of the first annotator, one entry an item, ``None`` for a gap.
        b: labels of the second, likewise, in the same order.
        resamples: of the bootstrap interval; 0 for none.
        seed: of the draws, non-negative.
        coverage: nominal coverage of the interval, strictly between 0 and 1.
        clusters: what each item belongs to, drawn whole; ``None`` draws items.

    Raises:
        ValueError: columns of unequal length, or an argument outside its range.

    >>> cohen_kappa(["x", "x", "y", "y"], ["x", "y", "y", "y"]).value
    0.5
    """
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} entries and b {len(b)}; items need one of each, None where one is missing")
    kept = [place for place in range(len(a)) if a[place] is not None and b[place] is not None]
    left, right = [a[place] for place in kept], [b[place] for place in kept]
    labels = list(dict.fromkeys(left + right))
    columns = np.array(
        [
            [1, one == two, *(one == label for label in labels), *(two == label for label in labels)]
            for one, two in zip(left, right, strict=True)
        ],
        dtype=np.float64,
    )
    base = ("cohen_kappa", len(kept), 2 * len(kept), len(a) - len(kept))
    return _coefficient(base, columns, _kappas, _draws(resamples, seed, coverage, _taken(clusters, kept, len(a))))


def krippendorff_alpha(
    units: Iterable[Sequence[Any]],
    *,
    level: Measure = "nominal",
    resamples: int = 0,
    seed: int = 0,
    coverage: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
) -> AgreementCoefficient:
    """Krippendorff's alpha (Content Analysis, 2004, chapter 11): 1 - D_o / D_e, for any number of annotators with gaps.

    An item with m >= 2 labels brings each ordered pair of its labels with weight 1 / (m - 1), so that every label
    weighs the same. With d = 1 for different labels (nominal) or d = the squared difference (interval):
    D_o = sum of d over these pairs / n, D_e = sum of d over all ordered pairs of the n labels / (n (n - 1)).
    Who gave which label does not matter.

    Args:
        units: for each item its labels, ``None`` for a gap. Items with fewer than two labels are left out and counted.
        level: ``nominal`` for any labels, ``interval`` for numbers.
        resamples: of the bootstrap interval; 0 for none.
        seed: of the draws, non-negative.
        coverage: nominal coverage of the interval, strictly between 0 and 1.
        clusters: what each item belongs to, drawn whole; ``None`` draws items.

    Raises:
        ValueError: ``level`` is another word, a number that is not finite, or an argument outside its range.
        TypeError: ``interval``, and a label is no number.

    >>> krippendorff_alpha([["x", "x"], ["y", "y"], ["x", "y"], ["x", None]]).value
    0.4444444444444444
    """
    if level not in ("nominal", "interval"):
        raise ValueError(f"level is {level!r}; expected nominal (any labels) or interval (numbers)")
    given = [[label for label in unit if label is not None] for unit in units]
    kept = [place for place, labels in enumerate(given) if len(labels) > 1]
    pairable = [given[place] for place in kept]
    columns = _nominal_columns(pairable) if level == "nominal" else _interval_columns(pairable)
    base = ("krippendorff_alpha", len(kept), sum(map(len, pairable)), len(given) - len(kept))
    figures = _nominal_alphas if level == "nominal" else _interval_alphas
    return _coefficient(base, columns, figures, _draws(resamples, seed, coverage, _taken(clusters, kept, len(given))))


def above_chance(observed: Floats, chance: Floats) -> Floats:
    """(observed - chance) / (1 - chance) of shares of agreement; NaN where chance alone agrees always."""
    defined = chance < 1 - _CONSTANT
    found = np.full(len(observed), np.nan)
    found[defined] = (observed[defined] - chance[defined]) / (1 - chance[defined])
    return found


_Figures: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Rows of summed columns -> what was observed and the coefficient of each, NaN where it has no value."""


@dataclass(frozen=True)
class _Draws:
    resamples: int
    seed: int
    coverage: float
    clusters: list[Hashable] | None


def _draws(resamples: int, seed: int, coverage: float, clusters: list[Hashable] | None) -> _Draws:
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is {coverage}; it lies strictly between 0 and 1 (95 % is 0.95)")
    if resamples < 0:
        raise ValueError(f"resamples is {resamples}; expected 0 (no interval) or more (10,000 is usual)")
    check_resampling(1, max(resamples, 1), seed)
    return _Draws(resamples, seed, coverage, clusters)


def _taken(clusters: Sequence[Hashable] | None, kept: Sequence[int], n: int) -> list[Hashable] | None:
    if clusters is None:
        return None
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} cluster labels for {n} items; each item needs one")
    return [clusters[place] for place in kept]


def _coefficient(
    base: tuple[str, int, int, int], columns: Floats, figures: _Figures, draws: _Draws
) -> AgreementCoefficient:
    name, n, labels, left_out = base
    if not n:
        return AgreementCoefficient(name, None, Reason.NOT_CONNECTED, 0, 0, left_out)
    whole = np.array([[math.fsum(column) for column in columns.T]])
    observed, value = (float(found[0]) for found in figures(whole))
    if math.isnan(value):
        return AgreementCoefficient(name, None, Reason.NO_VARIANCE, n, labels, left_out, observed)
    interval = _interval(columns, figures, draws)
    return AgreementCoefficient(name, value, None, n, labels, left_out, observed, interval)


def _interval(columns: Floats, figures: _Figures, draws: _Draws) -> Interval | None:
    drawn = "items"
    if draws.clusters is not None:
        places: dict[Hashable, int] = {}
        place = [places.setdefault(label, len(places)) for label in draws.clusters]
        columns = np.stack([np.bincount(place, weights=column) for column in columns.T], axis=1)
        drawn = "whole clusters of items"
    if not draws.resamples or len(columns) < 2:
        return None
    values = figures(resampled_sums(columns, resamples=draws.resamples, seed=draws.seed))[1]
    method = f"percentile bootstrap, {drawn} drawn with replacement, seed {draws.seed}"
    kept = values[~np.isnan(values)]
    return percentile_interval(kept, draws.coverage, draws.resamples, method) if len(kept) else None


def _kappas(sums: Floats) -> tuple[Floats, Floats]:
    """Of rows (n, equal, items by label of the first, by label of the second)."""
    n, equal = sums[:, 0], sums[:, 1]
    half = (sums.shape[1] - 2) // 2
    first, second = sums[:, 2 : 2 + half], sums[:, 2 + half :]
    chance = (first * second).sum(axis=1) / n**2  # whole numbers, so that the order of the labels leaves no trace
    observed = equal / n
    return observed, above_chance(observed, chance)


def _nominal_columns(units: Sequence[Sequence[Hashable]]) -> Floats:
    """For each item: weighted pairs of different labels, and how often each label occurs."""
    labels = list(dict.fromkeys(label for unit in units for label in unit))
    rows = []
    for unit in units:
        counts = Counter(unit)
        apart = len(unit) ** 2 - sum(count**2 for count in counts.values())
        rows.append([apart / (len(unit) - 1), *(counts[label] for label in labels)])
    return np.array(rows, dtype=np.float64)


def _nominal_alphas(sums: Floats) -> tuple[Floats, Floats]:
    counts = sums[:, 1:]
    n = counts.sum(axis=1)
    return sums[:, 0] / n, _alphas(sums[:, 0], n**2 - (counts**2).sum(axis=1), n)


def _interval_columns(units: Sequence[Sequence[float]]) -> Floats:
    """For each item: weighted squared differences, number, sum and sum of squares of its labels.

    Labels are brought to -1/2..1/2 first: alpha knows no unit, and the squares then lose no digits and cannot overflow.
    """
    values = [
        [finite_number(label, f"units: item {place} with two labels or more") for label in unit]
        for place, unit in enumerate(units)
    ]
    low = min((min(unit) for unit in values), default=0.0)
    high = max((max(unit) for unit in values), default=0.0)
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    rows = []
    for unit in values:
        scaled = [(value / 2 - middle / 2) / half if half else 0.0 for value in unit]
        mean = exact_mean(scaled)
        apart = 2 * len(unit) * math.fsum((value - mean) ** 2 for value in scaled)
        rows.append([apart / (len(unit) - 1), len(unit), math.fsum(scaled), math.fsum(v**2 for v in scaled)])
    return np.array(rows)


def _interval_alphas(sums: Floats) -> tuple[Floats, Floats]:
    observed, n, total, squares = sums.T
    return observed / n, _alphas(observed, 2 * (n * squares - total**2), n)


def _alphas(observed: Floats, expected: Floats, n: Floats) -> Floats:
    """1 - (n - 1) observed / expected, both as sums over ordered pairs; NaN where the labels do not vary."""
    defined = expected > _CONSTANT * n**2
    found = np.full(len(n), np.nan)
    found[defined] = 1 - (n[defined] - 1) * observed[defined] / expected[defined]
    return found


__all__ = ["AgreementCoefficient", "Measure", "above_chance", "cohen_kappa", "krippendorff_alpha"]
