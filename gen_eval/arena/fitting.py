"""Maximum likelihood of Bradley-Terry, for many resamples at once.

P(A beats B) = 1 / (1 + exp(-(t_A - t_B + b * left))). Outcomes are shares of a point, so that a tie is half a win for
each; the log-likelihood is sum n (s log p + (1 - s) log(1 - p)). It is concave, and Newton's steps are taken on its
sums by pair of systems. A step whose largest change of a logit is d lets no curvature grow by more than e^d, so a full
step with d <= 1, and one shortened to log(1 + d) / d of its length with d > 1, always gains (self-concordance of the
logistic loss: Bach 2010, Electronic Journal of Statistics 4); no search along the line is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        start: ``(M,)`` strengths, or ``(M + 1,)`` with the side term last, near which the maxima are expected. It
            moves the number of steps; results agree to about 1e-10.
        block: entries of ``(resamples, M, M)`` held at a time; changes memory and speed, never the result.

    Raises:
        ValueError: a ridge outside its range.
        ArithmeticError: no end was reached, which no data are known to bring about.
    """
    if not (ridge == 0 or LEAST_RIDGE <= ridge < np.inf):
        raise ValueError(f"ridge is {ridge}; expected 0 (none) or a finite number of {LEAST_RIDGE:g} or more")
    terms = Terms.of(cells, side=side)
    weight = np.ones(len(cells)) if weights is None else weights
    got, lost = cells.score * weight, (1 - cells.score) * weight
    graph = WinGraph(terms, *(terms.totals((cells.counts * share)[None])[0] for share in (got, lost)))
    systems = len(cells.models)
    x = np.zeros((len(counts), systems + side))
    kept = np.ones(len(counts), dtype=bool)
    origin = np.zeros(systems + side) if start is None else start
    rows = max(1, (_BLOCK if block is None else block) // systems**2)
    for first in range(0, len(counts), rows):
        part = slice(first, first + rows)
        wins, losses = terms.totals(counts[part] * got), terms.totals(counts[part] * lost)
        if not ridge:
            kept[part] = graph.identified(wins, losses)
        x[part][kept[part]] = _maxima(terms, wins[kept[part]], losses[kept[part]], ridge, origin)
    x[:, :systems] -= x[:, :systems].mean(axis=1, keepdims=True)
    return Fit(x[:, :systems], x[:, -1] if side else np.zeros(len(counts)), kept)


def _maxima(terms: Terms, wins: Floats, losses: Floats, ridge: float, start: Floats) -> Floats:
    """``(R, M)`` or ``(R, M + 1)`` maxima by Newton's method, each row by itself."""
    games = wins + losses
    x = np.tile(start, (len(wins), 1))
    tolerance = np.maximum(GRADIENT, _ROUNDING * games.sum(axis=1))
    rows = np.arange(len(wins))
    change = np.full(len(wins), np.inf)
    for _ in range(_MOST_STEPS):
        chance = chances_of(terms.logits(x[rows]))
        slope = gradient(terms, wins[rows] - games[rows] * chance) - ridge * x[rows]
        open_ = (np.abs(slope).max(axis=1) > tolerance[rows]) | (change[rows] > _LAST_STEP)
        if not open_.any():
            return x
        rows, chance, slope = rows[open_], chance[open_], slope[open_]
        step = _newton_step(hessian(terms, games[rows] * chance * (1 - chance), ridge), slope, terms.systems)
        change[rows] = largest = _largest_change(step, terms)
        factor = np.where(largest > 1, np.log1p(largest) / np.maximum(largest, 1), 1.0)
        x[rows] += factor[:, None] * step
    raise ArithmeticError(f"{len(rows)} of {len(wins)} fits took more than {_MOST_STEPS} steps; give a larger ridge")


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
    both = np.add.reduceat(curvature, terms.pair_starts, axis=1)
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
    "chances_of",
    "fit",
    "gradient",
    "hessian",
    "log_likelihood",
    "pinned",
]
