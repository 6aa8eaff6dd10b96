"""Maximum likelihood of Bradley-Terry, for many resamples at once.

P(A beats B) = 1 / (1 + exp(-(t_A - t_B + b * left))). Outcomes are shares of a point, so that a tie is half a win for
each; the log-likelihood is sum n (s log p + (1 - s) log(1 - p)). It is concave, and Newton's steps are taken on its
sums by pair of systems. A step whose largest change of a logit is d lets no curvature grow by more than e^d, so a full
step with d <= 1, and one shortened to log(1 + d) / d of its length with d > 1, always gains (self-concordance of the
logistic loss: Bach 2010, Electronic Journal of Statistics 4); no search along the line is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_expit

from gen_eval.arena.cells import Cells
from gen_eval.arena.terms import Terms
from gen_eval.arena.win_graph import Flags, WinGraph
from gen_eval.stats.summaries import Floats

GRADIENT = 1e-8
"""Largest entry of the gradient of the summed log-likelihood at the end, in votes (or 1e-14 of all votes)."""

LEAST_RIDGE = 1e-6
"""A smaller ridge would say nothing but where rounding ends."""

_ROUNDING = 1e-14
_LAST_STEP = 1e-5  # a step of d in the logits leaves about d times that step to go
_MOST_STEPS = 500
_BLOCK = 1 << 17
"""Entries of ``(resamples, M, M)`` held at a time: 1 MiB, which stays in the cache."""


@dataclass(frozen=True)
class Fit:
    """Maxima of R likelihoods.

    Attributes:
        theta: ``(R, M)`` natural logarithms of strength, each row with mean 0; rows without a maximum hold zeros and
            are to be left out.
        side: ``(R,)`` what standing on the left adds to the logit; zeros without a side term.
        identified: ``(R,)`` whether the row has a single finite maximum (always, with a ridge).
    """

    theta: Floats
    side: Floats
    identified: Flags


def fit(
    cells: Cells,
    counts: Floats,
    *,
    ridge: float = 0.0,
    side: bool = False,
    weights: Floats | None = None,
    start: Floats | None = None,
    block: int | None = None,
) -> Fit:
    """Fit R weightings of the same cells.

    Args:
        cells: C distinct comparisons.
        counts: ``(R, C)`` how often each occurs.
        ridge: ``ridge / 2 * (sum of squares of theta and of the side term)`` is taken off the log-likelihood; 0, or at
            least :data:`LEAST_RIDGE`. It is choix's ``alpha`` when every outcome stands there as two whole votes, and
            twice that when each is one vote.
        side: whether to fit what standing on the left is worth.
        weights: ``(C,)`` weight of a comparison in each cell; ones without.
        start: ``(M,)`` strengths, or ``(M + 1,)`` with the side term last, near which the maxima are expected: those
            of all votes, for resamples. It moves the number of steps; results agree to about 1e-10.
        block: entries of ``(resamples, M, M)`` held at a time; changes memory and speed, never the result.

    Raises:
        ValueError: a ridge outside its range.
        ArithmeticError: no end was reached, which no data are known to bring about.
    """
    return Problem(cells, ridge=ridge, side=side, weights=weights).fit(counts, start=start, block=block)


@dataclass(frozen=True)
class Problem:
    """What all weightings of the same cells have in common; see :func:`fit`.

    Raises:
        ValueError: a ridge outside its range.
    """

    cells: Cells
    ridge: float = 0.0
    side: bool = False
    weights: Floats | None = None

    def __post_init__(self) -> None:
        if not (self.ridge == 0 or LEAST_RIDGE <= self.ridge < np.inf):
            raise ValueError(f"ridge is {self.ridge}; expected 0 (none) or a finite number of {LEAST_RIDGE:g} or more")

    def fit(self, counts: Floats, *, start: Floats | None = None, block: int | None = None) -> Fit:
        """Fit R weightings ``(R, C)``; see :func:`fit`."""
        terms, ridge, systems = self._terms, self.ridge, len(self.cells.models)
        x = np.zeros((len(counts), systems + self.side))
        kept = np.full(len(counts), self._possible)
        if self._possible:
            begin = _Begin.at(terms, self._points[0] + self._points[1], ridge, start)
            rows = max(1, (_BLOCK if block is None else block) // systems**2)
            for first in range(0, len(counts), rows):
                part = slice(first, first + rows)
                wins, losses = (terms.totals(counts[part] * share) for share in self._shares)
                if not ridge:
                    kept[part] = self._graph.identified(wins, losses)
                x[part][kept[part]] = _maxima(terms, wins[kept[part]], losses[kept[part]], ridge, begin)
        x[:, :systems] -= x[:, :systems].mean(axis=1, keepdims=True)
        return Fit(x[:, :systems], x[:, -1] if self.side else np.zeros(len(counts)), kept)

    @cached_property
    def _terms(self) -> Terms:
        return Terms.of(self.cells, side=self.side)

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """``(C,)`` points of a and of b from one comparison in each cell."""
        weights = np.ones(len(self.cells)) if self.weights is None else self.weights
        return self.cells.score * weights, (1 - self.cells.score) * weights

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """``(1, T)`` points of a and of b in all votes."""
        wins, losses = (self._terms.totals((self.cells.counts * share)[None]) for share in self._shares)
        return wins, losses

    @cached_property
    def _graph(self) -> WinGraph:
        return WinGraph(self._terms, self._points[0][0], self._points[1][0])

    @cached_property
    def _possible(self) -> bool:
        """Whether all votes have a maximum; if not, no weighting of their cells has one."""
        return bool(self.ridge) or bool(self._graph.identified(*self._points)[0])


@dataclass(frozen=True)
class _Begin:
    """Where Newton's method begins: one step from a common point, with the curvature that all votes have there.

    For a resample of many votes this step is as good as its own, and needs no matrix of its own.

    Attributes:
        x: ``(K,)`` the common point.
        chance: ``(1, T)`` there.
        inverse: ``(K, K)`` of the second derivatives there; ``None`` to begin at the point itself.
    """

    x: Floats
    chance: Floats
    inverse: Floats | None

    @classmethod
    def at(cls, terms: Terms, games: Floats, ridge: float, start: Floats | None) -> _Begin:
        """From ``(1, T)`` comparisons of all votes."""
        x = np.zeros(terms.systems + terms.side) if start is None else start
        chance = chances_of(terms.logits(x[None]))
        if start is None:
            return cls(x, chance, None)
        matrix = pinned(hessian(terms, games * chance * (1 - chance), ridge), terms.systems)
        return cls(x, chance, np.linalg.inv(matrix)[0])

    def points(self, terms: Terms, wins: Floats, games: Floats, ridge: float) -> Floats:
        """``(R, K)``; a step that would go far is not taken."""
        x = np.tile(self.x, (len(wins), 1))
        if self.inverse is None:
            return x
        slope = gradient(terms, wins - games * self.chance) - ridge * self.x
        # not a matrix product, which may round differently for blocks of another size
        step = np.add.reduce(slope[:, None, :] * self.inverse, axis=2)
        near = _largest_change(step, terms) <= 1
        x[near] += step[near]
        return x


def _maxima(terms: Terms, wins: Floats, losses: Floats, ridge: float, begin: _Begin) -> Floats:
    """``(R, M)`` or ``(R, M + 1)`` maxima by Newton's method, each row by itself."""
    games = wins + losses
    found = begin.points(terms, wins, games, ridge)
    x, rows, change = found, np.arange(len(wins)), np.full(len(wins), np.inf)
    tolerance = np.maximum(GRADIENT, _ROUNDING * games.sum(axis=1))
    for _ in range(_MOST_STEPS):
        chance = chances_of(terms.logits(x))
        slope = gradient(terms, wins - games * chance) - ridge * x
        left = (np.abs(slope).max(axis=1) > tolerance) | (change > _LAST_STEP)
        if not left.any():  # also where there is no row at all: no weighting may have a maximum
            found[rows] = x
            return found
        if not left.all():  # rows at their maximum leave
            found[rows[~left]] = x[~left]
            rows, x, wins, games, tolerance = (one[left] for one in (rows, x, wins, games, tolerance))
            chance, slope = chance[left], slope[left]
        step = _newton_step(hessian(terms, games * chance * (1 - chance), ridge), slope, terms.systems)
        change = _largest_change(step, terms)
        factor = np.where(change > 1, np.log1p(change) / np.maximum(change, 1), 1.0)
        x = x + factor[:, None] * step
    raise ArithmeticError(f"{len(rows)} of {len(found)} fits took more than {_MOST_STEPS} steps; give a larger ridge")


def chances_of(logits: Floats) -> Floats:
    """1 / (1 + e^-x), in place; beyond 700 the exponential would overflow and the chance is 0 or 1 anyway."""
    np.clip(logits, -700, 700, out=logits)
    np.negative(logits, out=logits)
    np.exp(logits, out=logits)
    logits += 1
    np.reciprocal(logits, out=logits)
    return logits


def gradient(terms: Terms, residuals: Floats) -> Floats:
    """``(R, M)`` or ``(R, M + 1)`` from ``(R, T)`` shares got less shares expected."""
    first, second = terms.by_system(residuals)
    first -= second
    if not terms.side:
        return first
    return np.concatenate([first, (residuals * terms.left).sum(axis=1, keepdims=True)], axis=1)


def hessian(terms: Terms, curvature: Floats, ridge: float) -> Floats:
    """``(R, K, K)`` negative second derivatives from ``(R, T)`` values of n p (1 - p)."""
    systems, unknowns = terms.systems, terms.systems + terms.side
    found = np.zeros((len(curvature), unknowns, unknowns))
    flat = found.reshape(len(curvature), unknowns**2)
    both = np.add.reduceat(curvature, terms.pair_starts, axis=1) if len(terms.pair_starts) < len(terms) else curvature
    a, b = terms.a[terms.pair_starts], terms.b[terms.pair_starts]
    flat[:, a * unknowns + b] = flat[:, b * unknowns + a] = -both
    first, second = terms.by_system(curvature)
    flat[:, :: unknowns + 1][:, :systems] = first + second + ridge
    if terms.side:
        plus, minus = terms.by_system(curvature * terms.left)
        found[:, -1, :systems] = found[:, :systems, -1] = plus - minus
        found[:, -1, -1] = curvature.sum(axis=1) + ridge
    return found


def pinned(matrix: Floats, systems: int) -> Floats:
    """``matrix`` with a multiple of the all-ones matrix of the systems added, in place: it then has an inverse.

    Nothing is known of the mean of the strengths and nothing is asked of it: gradients are at right angles to it.
    """
    scale = np.trace(matrix[:, :systems, :systems], axis1=1, axis2=2) / systems**2
    matrix[:, :systems, :systems] += scale[:, None, None]
    return matrix


def _newton_step(matrix: Floats, slope: Floats, systems: int) -> Floats:
    return np.linalg.solve(pinned(matrix, systems), slope[:, :, None])[:, :, 0].astype(np.float64, copy=False)


def _largest_change(step: Floats, terms: Terms) -> Floats:
    """Bound on the change of any logit."""
    own = step[:, : terms.systems]
    change: Floats = np.max(own, axis=1) - np.min(own, axis=1)
    if terms.side:
        change += np.abs(step[:, -1])
    return change


def log_likelihood(cells: Cells, counts: Floats, x: Floats, *, side: bool, weights: Floats | None = None) -> float:
    """Of one fit: sum n (s log p + (1 - s) log(1 - p)), natural logarithm, without the ridge.

    Args:
        cells: C distinct comparisons.
        counts: ``(C,)``.
        x: ``(M,)`` strengths, ``(M + 1,)`` with the side term last.
        side: whether there is one.
        weights: see :func:`fit`.
    """
    logits = Terms.each(cells, side=side).logits(x[None])[0]
    each = cells.score * log_expit(logits) + (1 - cells.score) * log_expit(-logits)
    return float((each * counts * (1.0 if weights is None else weights)).sum())


__all__ = [
    "GRADIENT",
    "LEAST_RIDGE",
    "Fit",
    "Problem",
    "chances_of",
    "fit",
    "gradient",
    "hessian",
    "log_likelihood",
    "pinned",
]
