"""How often chance alone gives a correlation as far from 0: every order of one column, or many random ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.stats.correlation import LEAST_PAIRS, distances, mean_ranks
from gen_eval.stats.summaries import Floats

Orders = NDArray[np.int8] | NDArray[np.int64]

EXACT_LIMIT = 9
"""Most pairs for which every order is gone through: 9! = 362,880."""

RANDOM_ORDERS = 100_000
"""Random orders above that limit."""

_COMPARISONS = 250_000_000
"""Bound on random orders times pairs squared: above 50 pairs fewer orders are drawn, never below the next number."""
_LEAST_ORDERS = 999

_BLOCK = 1 << 19
_ROUNDING = 1e-12
"""Two sums of the same products in another order differ by less; such an r counts as equally far from 0."""


@dataclass(frozen=True)
class PermutationTest:
    """Two-sided p values of "the score of a system says nothing about its rating".

    Attributes:
        pearson: share of the orders whose r is at least as far from 0; ``None`` without a value to compare with.
        spearman: likewise.
        kendall_tau_b: likewise.
        orders: that were gone through.
        exact: whether these are all orders.
        rule: the same in words.
    """

    pearson: float | None
    spearman: float | None
    kendall_tau_b: float | None
    orders: int
    exact: bool
    rule: str

    def to_json(self) -> dict[str, Any]:
        """The three p values by name."""
        return {"pearson": self.pearson, "spearman": self.spearman, "kendall_tau_b": self.kendall_tau_b}


def permutation_test(x: Floats, y: Floats, *, seed: int = 0) -> PermutationTest:
    """Permutation p values of all three coefficients.

    Up to :data:`EXACT_LIMIT` pairs k / n!, with k the orders of y whose coefficient is at least as far from 0 as the
    one found (that one is among them). Above, (k + 1) / (P + 1) with P random orders (Davison and Hinkley 1997,
    chapter 4), the same for all three.

    Args:
        x: ``(n,)`` finite numbers.
        y: likewise.
        seed: of the random orders; without effect up to :data:`EXACT_LIMIT` pairs.
    """
    n = len(x)
    if n < LEAST_PAIRS or x.min() == x.max() or y.min() == y.max():
        return PermutationTest(None, None, None, 0, False, "none: the coefficients have no value")
    exact = n <= EXACT_LIMIT
    orders = math.factorial(n) if exact else max(_LEAST_ORDERS, min(RANDOM_ORDERS, _COMPARISONS // (n * n)))
    found = np.zeros(3, dtype=np.int64)
    for block in _every_order(n) if exact else _random_orders(n, orders, seed):
        found += _as_far(x, y, block)
    more = 0 if exact else 1
    rule = (
        f"exact: all {orders} orders of the {n} systems"
        if exact
        else f"{orders} random orders, seed {seed}: (k + 1) / (orders + 1)"
    )
    r, rho, tau = ((found + more) / (orders + more)).tolist()
    return PermutationTest(r, rho, tau, orders, exact, rule)


def _as_far(x: Floats, y: Floats, block: Orders) -> NDArray[np.int64]:
    """Columns of ``block`` ``(n, B)`` with each coefficient at least as far from 0 as in the given order."""
    unit_x, unit_y = _unit(x), _unit(y)
    given = abs(float(unit_x @ unit_y)) - _ROUNDING
    # Twice the ranks, and signs: whole numbers, so equal is equal.
    ranks_x, ranks_y = 2 * mean_ranks(x) - len(x) - 1, 2 * mean_ranks(y) - len(y) - 1
    places = ranks_y.astype(np.int64)
    tau = abs(_surplus(x, places[:, None])[0])
    return np.array(
        [
            np.count_nonzero(np.abs(unit_x @ unit_y[block]) >= given),
            np.count_nonzero(np.abs(ranks_x @ ranks_y[block]) >= abs(ranks_x @ ranks_y)),
            np.count_nonzero(np.abs(_surplus(x, places[block])) >= tau),
        ]
    )


def _unit(column: Floats) -> Floats:
    own = distances(column)
    unit: Floats = own / math.sqrt(math.fsum(own * own))
    return unit


def _surplus(x: Floats, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs ordered alike minus those ordered oppositely, for each column of ``places`` ``(n, B)``."""
    rows, x = np.ascontiguousarray(places), mean_ranks(x)
    total = np.zeros(places.shape[1], dtype=np.int64)
    for second in range(1, len(x)):
        for first in range(second):
            sign = int(np.sign(x[first] - x[second]))
            if sign:
                alike = (rows[first] > rows[second]).view(np.int8) - (rows[first] < rows[second]).view(np.int8)
                total += sign * alike
    return total


def _every_order(n: int) -> Iterator[Orders]:
    """All n! orders as columns, a block for each first place."""
    rest = _orders_of(n - 1)
    for first in range(n):
        others = np.delete(np.arange(n, dtype=np.int8), first)
        yield np.concatenate([np.full((1, rest.shape[1]), first, dtype=np.int8), others[rest]])


@lru_cache(maxsize=EXACT_LIMIT)
def _orders_of(n: int) -> NDArray[np.int8]:
    """``(n, n!)`` every order of 0..n-1."""
    if n == 1:
        return np.zeros((1, 1), dtype=np.int8)
    return np.concatenate(list(_every_order(n)), axis=1)


def _random_orders(n: int, orders: int, seed: int) -> Iterator[Orders]:
    generator = np.random.default_rng(seed)
    size = max(1, _BLOCK // n)
    for start in range(0, orders, size):
        rows = np.tile(np.arange(n), (min(size, orders - start), 1))
        yield generator.permuted(rows, axis=1).T


__all__ = ["EXACT_LIMIT", "RANDOM_ORDERS", "PermutationTest", "permutation_test"]
