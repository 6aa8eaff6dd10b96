"""Correlation of two columns: Pearson, Spearman, Kendall's tau-b, each a value or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gen_eval.records.reasons import Reason
from gen_eval.stats.coefficient import Coefficient
from gen_eval.stats.summaries import Floats, finite_number

LEAST_PAIRS = 3
EXACT_KENDALL = 33
"""Most pairs for which the p value of tau-b (without ties) comes from counting permutations."""


@dataclass(frozen=True)
class Correlation(Coefficient):
    """One coefficient of correlation.

    Attributes:
        name: ``pearson``, ``spearman`` or ``kendall_tau_b``.
        value: -1..1; ``None`` exactly when there is a reason.
        reason: ``too_few_systems`` (fewer than three pairs) or ``no_variance`` (a constant column).
        n: pairs that were used.
        left_out: pairs that miss one value or both.
        p_value: two-sided, of "no association".
        p_rule: where the p value comes from.
        lower: lower end of Fisher's interval (Pearson only).
        upper: upper end.
        level: nominal coverage of that interval; ``None`` without one.
    """

    left_out: int
    p_value: float | None = None
    p_rule: str | None = None
    lower: float | None = None
    upper: float | None = None
    level: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name} no value ({self.reason}, n = {self.n})"
        ends = "" if self.lower is None or self.upper is None else f" [{self.lower:.4g}, {self.upper:.4g}]"
        return f"{self.name} {self.value:.4g}{ends} (n = {self.n}, p = {self.p_value:.3g})"


def pearson(x: Sequence[float | None], y: Sequence[float | None], *, level: float = 0.95) -> Correlation:
    """Pearson's r, its p value, and Fisher's interval.

    r = sum(dx dy) / sqrt(sum(dx^2) sum(dy^2)) with dx, dy the distances from the means. The p value is that of
    Student's t = r sqrt((n - 2) / (1 - r^2)) with n - 2 degrees of freedom. The interval is
    tanh(artanh(r) -+ z / sqrt(n - 3)); with three pairs it is all of -1..1. Both assume a bivariate normal
    distribution, and that systems are a sample of systems.

    Args:
        x: one entry a pair, ``None`` where there is no value.
        y: likewise, in the same order.
        level: nominal coverage of the interval, strictly between 0 and 1.

    Raises:
        ValueError: columns of unequal length, an entry that is not finite (its position is named), or ``level``
            outside its range.
        TypeError: an entry that is no number.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it lies strictly between 0 and 1 (95 % is 0.95)")
    pairs = _complete_pairs(x, y)
    reason = _no_value(pairs)
    if reason is not None:
        return Correlation("pearson", None, reason, pairs.n, pairs.left_out)
    r = _product_moment(pairs.x, pairs.y)
    lower, upper = _fisher(r, pairs.n, level)
    return Correlation("pearson", r, None, pairs.n, pairs.left_out, _t_test(r, pairs.n), _T_RULE, lower, upper, level)


def spearman(x: Sequence[float | None], y: Sequence[float | None]) -> Correlation:
    """Spearman's rho: Pearson's r of the ranks, equal values sharing their mean rank.

    The p value is Student's t as for r, an approximation for ranks.

    Args:
        x: one entry a pair, ``None`` where there is no value.
        y: likewise, in the same order.

    Raises:
        ValueError: columns of unequal length or an entry that is not finite.
        TypeError: an entry that is no number.
    """
    pairs = _complete_pairs(x, y)
    reason = _no_value(pairs)
    if reason is not None:
        return Correlation("spearman", None, reason, pairs.n, pairs.left_out)
    rho = _product_moment(mean_ranks(pairs.x), mean_ranks(pairs.y))
    return Correlation("spearman", rho, None, pairs.n, pairs.left_out, _t_test(rho, pairs.n), f"{_T_RULE} of the ranks")


def kendall_tau_b(x: Sequence[float | None], y: Sequence[float | None]) -> Correlation:
    """Kendall's tau-b: (C - D) / sqrt((P - Tx) (P - Ty)) over the P = n (n - 1) / 2 pairs of pairs.

    C and D count those ordered alike and oppositely, Tx and Ty those tied in x and in y. The p value counts
    permutations when there are no ties and at most :data:`EXACT_KENDALL` pairs, and otherwise takes C - D as normal
    with the variance that allows for ties. Time grows with n squared, memory with n.

    Args:
        x: one entry a pair, ``None`` where there is no value.
        y: likewise, in the same order.

    Raises:
        ValueError: columns of unequal length or an entry that is not finite.
        TypeError: an entry that is no number.
    """
    pairs = _complete_pairs(x, y)
    reason = _no_value(pairs)
    if reason is not None:
        return Correlation("kendall_tau_b", None, reason, pairs.n, pairs.left_out)
    surplus = _concordance(pairs.x, pairs.y)
    groups_x, groups_y = _group_sizes(pairs.x), _group_sizes(pairs.y)
    everything = pairs.n * (pairs.n - 1) // 2
    untied_x, untied_y = everything - _tied(groups_x), everything - _tied(groups_y)
    tau = surplus / math.sqrt(untied_x * untied_y)
    if untied_x == untied_y == everything and pairs.n <= EXACT_KENDALL:
        p_value, rule = _exact_kendall(surplus, pairs.n), "exact count of permutations"
    else:
        p_value, rule = _normal_kendall(surplus, pairs.n, groups_x, groups_y), "normal approximation, ties allowed for"
    return Correlation("kendall_tau_b", max(-1.0, min(1.0, tau)), None, pairs.n, pairs.left_out, p_value, rule)


_T_RULE = "Student's t with n - 2 degrees of freedom"


class _Pairs(NamedTuple):
    x: Floats
    y: Floats
    left_out: int

    @property
    def n(self) -> int:
        return len(self.x)


def _complete_pairs(x: Sequence[float | None], y: Sequence[float | None]) -> _Pairs:
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} entries and y {len(y)}; pairs need equally many, None where one is missing")
    left = [None if value is None else finite_number(value, f"x[{place}]") for place, value in enumerate(x)]
    right = [None if value is None else finite_number(value, f"y[{place}]") for place, value in enumerate(y)]
    both = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    return _Pairs(np.array([a for a, _ in both]), np.array([b for _, b in both]), len(x) - len(both))


def _no_value(pairs: _Pairs) -> Reason | None:
    if pairs.n < LEAST_PAIRS:
        return Reason.TOO_FEW_SYSTEMS
    if any(column.min() == column.max() for column in (pairs.x, pairs.y)):
        return Reason.NO_VARIANCE
    return None


def _product_moment(x: Floats, y: Floats) -> float:
    dx, dy = distances(x), distances(y)
    # one root of the product (both lie in 1/4..n): equal columns have exactly 1
    r = math.fsum(dx * dy) / math.sqrt(math.fsum(dx * dx) * math.fsum(dy * dy))
    return max(-1.0, min(1.0, r))


def distances(column: Floats) -> Floats:
    """Distances from the mean, scaled by powers of two so that no square over- or underflows."""
    scaled = np.ldexp(column, -np.frexp(np.abs(column).max())[1])
    distances = scaled - math.fsum(scaled) / len(scaled)
    rescaled: Floats = np.ldexp(distances, -np.frexp(np.abs(distances).max())[1])
    return rescaled


def _t_test(r: float, n: int) -> float:
    """Two-sided p of Student's t, written with the incomplete beta function so that r = 1 needs no special case."""
    from scipy.special import betainc

    return float(betainc((n - 2) / 2, 0.5, (1 - r) * (1 + r)))


def _fisher(r: float, n: int, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    if abs(r) == 1:
        return r, r
    if n == LEAST_PAIRS:
        return -1.0, 1.0
    centre, half = math.atanh(r), float(ndtri((1 + level) / 2)) / math.sqrt(n - 3)
    return math.tanh(centre - half), math.tanh(centre + half)


def mean_ranks(column: Floats) -> Floats:
    """Ranks 1..n of ``(n,)`` values; equal values share the mean of their places."""
    _, group, sizes = np.unique(column, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    ranks: Floats = (last - (sizes - 1) / 2)[group]
    return ranks


def _concordance(x: Floats, y: Floats) -> int:
    """Pairs of pairs ordered alike minus those ordered oppositely."""
    x, y = mean_ranks(x), mean_ranks(y)  # of equal order, and their differences cannot overflow
    total = 0
    for place in range(1, len(x)):
        alike = np.sign(x[:place] - x[place]) * np.sign(y[:place] - y[place])
        total += int(alike.sum())
    return total


def _group_sizes(column: Floats) -> list[int]:
    sizes: list[int] = np.unique(column, return_counts=True)[1].tolist()
    return sizes


def _tied(sizes: list[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def _exact_kendall(surplus: int, n: int) -> float:
    """Share of the n! orders whose number of inversions is at least as far from the middle as that of ``surplus``."""
    everything = n * (n - 1) // 2
    orders = [1]
    for size in range(2, n + 1):
        # An item put into a row of size - 1 makes 0..size - 1 inversions: a running sum of that width.
        longer = [0] * (len(orders) + size - 1)
        for place, count in enumerate(orders):
            for shift in range(size):
                longer[place + shift] += count
        orders = longer
    fewer = (everything - abs(surplus)) // 2
    return min(1.0, 2 * sum(orders[: fewer + 1]) / math.factorial(n))


def _normal_kendall(surplus: int, n: int, x: list[int], y: list[int]) -> float:
    def sums(sizes: list[int]) -> tuple[int, int, int]:
        return (
            sum(size * (size - 1) * (2 * size + 5) for size in sizes),
            sum(size * (size - 1) for size in sizes),
            sum(size * (size - 1) * (size - 2) for size in sizes),
        )

    (x5, x1, x2), (y5, y1, y2) = sums(x), sums(y)
    variance = (n * (n - 1) * (2 * n + 5) - x5 - y5) / 18
    variance += x1 * y1 / (2 * n * (n - 1)) + x2 * y2 / (9 * n * (n - 1) * (n - 2))
    return math.erfc(abs(surplus) / math.sqrt(2 * variance))
