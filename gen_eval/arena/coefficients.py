"""Pearson, Spearman and tau-b of many resamples at once, as arrays.

The single coefficient with its p value is :mod:`gen_eval.stats.correlation`; these are its formulas for whole batches.
Sums go along rows only, so a row has the same bits whatever rows are computed beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gen_eval.stats.correlation import LEAST_PAIRS, distances, mean_ranks
from gen_eval.stats.resampling import resampled_counts
from gen_eval.stats.summaries import Floats

Bools = NDArray[np.bool_]
Coefficient = Literal["pearson", "spearman", "kendall_tau_b"]

COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall_tau_b")

LEAST_DRAWN = 5
"""Fewest systems that are drawn with replacement: resamples of fewer mostly repeat two or three of them, and say ±1."""

_BLOCK = 1 << 18
"""Numbers held at a time in one array."""


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of R rows.

    Attributes:
        pearson: ``(R,)``, -1..1; 0 where nothing is defined.
        spearman: likewise.
        kendall_tau_b: likewise.
        defined: ``(R,)`` whether the row has at least three pairs and no constant side.
    """

    pearson: Floats
    spearman: Floats
    kendall_tau_b: Floats
    defined: Bools

    def of(self, name: Coefficient) -> Floats:
        """``(R,)`` values of one coefficient, also those of rows without any."""
        found: Floats = getattr(self, name)
        return found

    def value(self, name: Coefficient, row: int) -> float | None:
        """One value, ``None`` where there is none."""
        return float(self.of(name)[row]) if self.defined[row] else None


def counted_coefficients(x: Floats, y: Floats, counts: Floats) -> Coefficients:
    """Coefficients of the pairs (x, y) when pair i is taken ``counts[r, i]`` times in row r.

    Args:
        x: ``(n,)`` finite numbers.
        y: likewise.
        counts: ``(R, n)`` whole numbers, 0 or more.
    """
    rows = max(1, _BLOCK // max(1, len(x)))
    parts = [_counted(x, y, counts[start : start + rows]) for start in range(0, len(counts), rows)]
    return _joined(parts)


def row_coefficients(x: Floats, y: Floats) -> Coefficients:
    """Coefficients of each row of ``x`` ``(R, n)`` with the same row of ``y``; all entries finite."""
    rows = max(1, _BLOCK // max(1, x.shape[1]))
    steps = range(0, len(x), rows)
    return _joined([_of_rows(x[start : start + rows], y[start : start + rows]) for start in steps])


def drawn_counts(n: int, resamples: int, seed: int) -> Floats:
    """``(resamples, n)`` how often each of n units is drawn, n draws with replacement in each row."""
    blocks = resampled_counts(n, resamples=resamples, seed=seed)
    return np.concatenate([block.copy() for block in blocks])


def _joined(parts: list[Coefficients]) -> Coefficients:
    if not parts:
        empty = np.zeros(0)
        return Coefficients(empty, empty, empty, np.zeros(0, dtype=bool))
    r, rho, tau = (np.concatenate([part.of(name) for part in parts]) for name in COEFFICIENTS)
    return Coefficients(r, rho, tau, np.concatenate([part.defined for part in parts]))


def _counted(x: Floats, y: Floats, counts: Floats) -> Coefficients:
    # differences of ranks have the signs of those of the values, and cannot overflow
    sign_x, sign_y = (np.sign(np.subtract.outer(ranks, ranks)) for ranks in (mean_ranks(x), mean_ranks(y)))
    surplus = _quadratic(counts, sign_x * sign_y)
    untied_x, untied_y = _quadratic(counts, np.abs(sign_x)), _quadratic(counts, np.abs(sign_y))
    defined = (untied_x > 0) & (untied_y > 0) & (counts.sum(axis=1) >= LEAST_PAIRS)
    pearson, clear = _weighted_r(distances(x)[None], distances(y)[None], counts) if defined.any() else _none(counts)
    # The mean rank of i: those below, half of its equals, and one half. Whole numbers of quarters, so exact.
    below_x, below_y = (1 + sign_x.T) / 2, (1 + sign_y.T) / 2
    spearman, _ = _weighted_r(counts @ below_x, counts @ below_y, counts)
    return _masked(pearson, spearman, _tau(surplus, untied_x, untied_y), defined & clear)


def _quadratic(counts: Floats, matrix: Floats) -> Floats:
    found: Floats = ((counts @ matrix) * counts).sum(axis=1)
    return found


def _none(counts: Floats) -> tuple[Floats, Bools]:
    return np.zeros(len(counts)), np.zeros(len(counts), dtype=bool)


def _weighted_r(x: Floats, y: Floats, counts: Floats) -> tuple[Floats, Bools]:
    """Product-moment correlation of each row, and where it exists."""
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    dx = x - (counts * x).sum(axis=1, keepdims=True) / total
    dy = y - (counts * y).sum(axis=1, keepdims=True) / total
    weighted = counts * dx
    return _ratio((weighted * dy).sum(axis=1), (weighted * dx).sum(axis=1), (counts * dy * dy).sum(axis=1))


def _ratio(products: Floats, squares_x: Floats, squares_y: Floats) -> tuple[Floats, Bools]:
    clear = (squares_x > 0) & (squares_y > 0)
    # one root of the product: two equal columns then have exactly 1
    below = np.sqrt(np.where(clear, squares_x * squares_y, 1.0))
    r: Floats = np.clip(np.where(clear, products, 0.0) / below, -1, 1)
    return r, clear


def _tau(surplus: Floats, untied_x: Floats, untied_y: Floats) -> Floats:
    return _ratio(surplus, untied_x, untied_y)[0]


def _masked(pearson: Floats, spearman: Floats, tau: Floats, defined: Bools) -> Coefficients:
    r, rho, tau_b = (np.where(defined, column, 0.0) for column in (pearson, spearman, tau))
    return Coefficients(r, rho, tau_b, defined)


def _of_rows(x: Floats, y: Floats) -> Coefficients:
    rows, n = x.shape
    if n < LEAST_PAIRS:
        nothing = np.zeros(rows)
        return Coefficients(nothing, nothing, nothing, nothing > 0)
    ranks_x, ranks_y = _row_ranks(x), _row_ranks(y)
    surplus, untied_x, untied_y = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for sign_x, sign_y in _signs(ranks_x, ranks_y):
        surplus += (sign_x * sign_y).sum(axis=1)
        untied_x += np.abs(sign_x).sum(axis=1)
        untied_y += np.abs(sign_y).sum(axis=1)
    ones = np.ones((1, n))
    defined = (untied_x > 0) & (untied_y > 0)
    pearson, clear = _weighted_r(_row_scaled(x), _row_scaled(y), ones)
    spearman, _ = _weighted_r(ranks_x, ranks_y, ones)
    return _masked(pearson, spearman, _tau(surplus, untied_x, untied_y), defined & clear)


def _row_ranks(x: Floats) -> Floats:
    ranks = np.empty_like(x)
    for place in range(x.shape[1]):
        own = x[:, place : place + 1]
        ranks[:, place] = (x < own).sum(axis=1) + ((x == own).sum(axis=1) + 1) / 2
    return ranks


def _signs(x: Floats, y: Floats) -> Iterator[tuple[Floats, Floats]]:
    for place in range(1, x.shape[1]):
        yield (
            np.sign(x[:, :place] - x[:, place : place + 1]),
            np.sign(y[:, :place] - y[:, place : place + 1]),
        )


def _row_scaled(x: Floats) -> Floats:
    """Rows with their means taken off, scaled by powers of two so that no square over- or underflows."""
    scaled = np.ldexp(x, -np.frexp(np.abs(x).max(axis=1, keepdims=True))[1])
    centred = scaled - scaled.mean(axis=1, keepdims=True)
    found: Floats = np.ldexp(centred, -np.frexp(np.abs(centred).max(axis=1, keepdims=True))[1])
    return found


__all__ = [
    "COEFFICIENTS",
    "LEAST_DRAWN",
    "Coefficient",
    "Coefficients",
    "counted_coefficients",
    "drawn_counts",
    "row_coefficients",
]
