"""Bradley-Terry with ties as a third outcome: how often people cannot tell is a parameter of its own.

P(a) : P(tie) : P(b) = e^t_a : nu e^((t_a + t_b) / 2) : e^t_b (Davidson 1970, Journal of the American Statistical
Association 65). A vote on two questions counts by shares: win = score - tie / 2, tie, loss = 1 - win - tie.

The logarithm of the likelihood is concave in (t, log nu). Whether it has a maximum is told exactly before anything is
fitted: along a direction (d, e) it grows for ever, or stays, when no outcome that was seen falls behind another, which
asks d_a - d_b >= max(0, 2 e) of a win of a over b, and 2 e >= |d_a - d_b| of a tie. So there is a single finite maximum
if and only if

* the graph "won against or tied with" is strongly connected (e = 0 leaves nothing else),
* there is a tie; without any nu is 0, and the rest is Bradley-Terry (e < 0),
* some cycle of systems holds more wins, each from winner to loser, than ties (e > 0: difference constraints, which have
  a solution unless a cycle has a negative sum). Two systems that each won against the other are such a cycle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse

from gen_eval.arena.cells import Cells
from gen_eval.arena.comparisons import Ints
from gen_eval.arena.connectivity import Diagnosis, diagnose, identified
from gen_eval.arena.fitting import GRADIENT, gradient, hessian, pinned
from gen_eval.arena.terms import Terms
from gen_eval.arena.win_graph import Flags, negative_cycle
from gen_eval.records import Reason
from gen_eval.stats.summaries import Floats

NO_TIES = -700.0
"""log nu where no vote is a tie: nu is 0."""

_SMALLEST = 1e-9  # shares of wins and losses below this are rounding
_NO_CURVATURE = 1e-200  # of log nu at NO_TIES, e^-700 a vote
_ROUNDING = 1e-14
_LAST_STEP = 1e-5
_MOST_STEPS = 500
_BLOCK = 1 << 17  # entries of (resamples, M, M) held at a time


@dataclass(frozen=True)
class DavidsonTies:
    """Davidson's likelihood; unknowns are M logarithms of strength and log nu.

    Attributes:
        cells: of the comparisons.
        ridge: ``ridge / 2 * (sum of squares of theta and of log nu)`` is taken off the log-likelihood.

    Raises:
        ValueError: a comparison has a larger share of ties than its score leaves room for.
    """

    cells: Cells
    ridge: float = 0.0

    extra: Literal["tie_parameter"] = "tie_parameter"

    def __post_init__(self) -> None:
        cells = self.cells
        if (bad := np.flatnonzero(cells.tie / 2 > np.minimum(cells.score, 1 - cells.score) + _SMALLEST)).size:
            score, tie = cells.score[bad[0]], cells.tie[bad[0]]
            raise ValueError(
                f"a comparison with score {score:g} has a tie share of {tie:g}; at most {2 * score:g} fits"
            )

    @property
    def remark(self) -> str:
        """For the words of intervals."""
        if self.ridge or self._shares[2].any():
            return ""
        return "no vote is a tie, so nu is 0, the end of its range, and its own interval says nothing"

    def diagnose(self) -> Diagnosis | None:
        """Why there is no finite maximum; ``None`` when there is one (nu = 0 without ties)."""
        if (found := diagnose(self.cells)) is not None:
            return found
        if self._bounded(self._outcomes(self.cells.counts[None]))[0]:
            return None
        wins, losses, _ = self._shares
        if (wins + losses).any():
            why = "no circle of systems holds more wins than ties, so a larger nu and wider ratings always fit better"
        else:
            why = "every vote is a tie, so nothing tells the systems apart and nu is infinite"
        return Diagnosis(
            Reason.ONE_SIDED,
            (),
            f"{why}: collect votes until two systems have each won against the other, let ties count half, or give a "
            "ridge, which is then part of the result",
        )

    def maxima(self, counts: Floats, start: Floats | None = None) -> tuple[Floats, Flags]:
        """Maxima for R weightings of the cells.

        Args:
            counts: ``(R, C)`` how often each cell occurs.
            start: ``(M + 1,)`` unknowns near which the maxima are expected.

        Returns:
            ``(R, M + 1)`` unknowns, strengths with mean 0, and ``(R,)`` whether the row has a single finite maximum
            (always, with a ridge). Rows without hold zeros. log nu is :data:`NO_TIES` where nu is 0.

        Raises:
            ArithmeticError: no end was reached, which no data are known to bring about.
        """
        systems = len(self.cells.models)
        kept = np.ones(len(counts), dtype=bool) if self.ridge else self._identified(counts)
        x = np.zeros((len(counts), systems + 1))
        rows = max(1, _BLOCK // systems**2)
        for first in range(0, len(counts), rows):
            part = first + np.flatnonzero(kept[first : first + rows])
            x[part] = _maxima(self._terms[0], self._sums(counts[part]), self.ridge, start)
        x[:, :systems] -= x[:, :systems].mean(axis=1, keepdims=True)
        return x, kept

    def scores(self, x: Floats) -> sparse.csr_array:
        """``(C, M + 1)`` gradient of the log-likelihood of one comparison in each cell."""
        cells = self.cells
        wins, losses, ties = self._shares
        above, below, even, _ = _chances(self._every_cell.logits(x[None, :-1]), x[None, -1:])
        rest = ((wins - losses) - (above - below)[0]) / 2
        rows, last = np.arange(len(cells)), np.full(len(cells), len(cells.models))
        values = np.concatenate([rest, -rest, ties - even[0]])
        places = (np.tile(rows, 3), np.concatenate([cells.a, cells.b, last]))
        return sparse.coo_array((values, places), shape=(len(cells), len(x))).tocsr()

    def information(self, x: Floats) -> Floats:
        """``(M + 1, M + 1)`` negative second derivatives, with the ridge."""
        terms, _ = self._terms
        games = self._sums(self.cells.counts[None])[0]
        above, below, even, _ = _chances(terms.logits(x[None, :-1]), x[None, -1:])
        found: Floats = _information(terms, games, (above, below, even), self.ridge)[0]
        return found

    def log_likelihood(self, x: Floats) -> float:
        """Natural logarithm, without the ridge."""
        logits = self._every_cell.logits(x[None, :-1])
        *_, log_sum = _chances(logits, x[None, -1:])
        wins, losses, ties = self._shares
        each = (wins - losses) * logits[0] / 2 + ties * x[-1] - log_sum[0]
        return float((each * self.cells.counts).sum())

    def parameter(self, raw: float) -> float:
        """The tie parameter nu; 0 where no vote is a tie."""
        return math.exp(raw) if raw > NO_TIES else 0.0

    @cached_property
    def _shares(self) -> tuple[Floats, Floats, Floats]:
        """``(C,)`` each: shares of wins of a, of wins of b, of ties."""
        cells = self.cells
        wins, losses = cells.score - cells.tie / 2, 1 - cells.score - cells.tie / 2
        return np.where(wins < _SMALLEST, 0.0, wins), np.where(losses < _SMALLEST, 0.0, losses), cells.tie

    @cached_property
    def _terms(self) -> tuple[Terms, Ints]:
        terms = Terms.of(self.cells, side=False)
        return terms, terms.starts

    @cached_property
    def _every_cell(self) -> Terms:
        return Terms.each(self.cells, side=False)

    def _sums(self, counts: Floats) -> tuple[Floats, Floats, Floats]:
        """By pair: comparisons and wins of a less wins of b, ``(R, P)`` each; ties in all, ``(R,)``."""
        wins, losses, ties = self._shares
        starts = self._terms[1]
        games = np.add.reduceat(counts, starts, axis=1)
        return games, np.add.reduceat(counts * (wins - losses), starts, axis=1), (counts * ties).sum(axis=1)

    # --- whether there is a maximum ---------------------------------------------------------------------------------

    def _identified(self, counts: Floats) -> Flags:
        found = identified(self.cells, counts)
        found[found] = self._bounded(self._outcomes(counts[found]))
        return found

    def _outcomes(self, counts: Floats) -> Flags:
        """``(R, 3, P)`` whether each pair has a win of a, a win of b, a tie."""
        present = counts > 0
        parts = [np.logical_or.reduceat(present & (share > 0), self._terms[1], axis=1) for share in self._shares]
        return np.stack(parts, axis=1)

    def _bounded(self, outcomes: Flags) -> Flags:
        """``(R,)`` whether nu and the ratings stay finite in rows that are strongly connected."""
        wins, losses, ties = outcomes.transpose(1, 0, 2)
        found: Flags = ~ties.any(axis=1) | (wins & losses).any(axis=1)
        rest = np.flatnonzero(~found)
        if len(rest):
            distinct, which = np.unique(outcomes[rest], axis=0, return_inverse=True)
            found[rest] = np.array([_more_wins_than_ties(self._terms[0], *row) for row in distinct])[which.reshape(-1)]
        return found


def _more_wins_than_ties(terms: Terms, wins: Flags, losses: Flags, ties: Flags) -> bool:
    """Whether some cycle holds more wins than ties."""
    a, b = terms.a, terms.b
    source = np.concatenate([a[wins], b[losses], a[ties], b[ties]])
    target = np.concatenate([b[wins], a[losses], b[ties], a[ties]])
    weight = np.repeat([-1, 1], [wins.sum() + losses.sum(), 2 * ties.sum()])
    return negative_cycle(source, target, weight, terms.systems)


# --- the maximum ---------------------------------------------------------------------------------------------------


def _chances(logits: Floats, log_nu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """``(R, T)`` probabilities of a win of a, a win of b and a tie; log(e^(d/2) + e^(-d/2) + nu)."""
    half = logits / 2
    top = np.maximum(np.abs(half), log_nu)
    above, below, even = np.exp(half - top), np.exp(-half - top), np.exp(log_nu - top)
    total = above + below + even
    return above / total, below / total, even / total, top + np.log(total)


def _information(terms: Terms, games: Floats, chances: tuple[Floats, Floats, Floats], ridge: float) -> Floats:
    """``(R, M + 1, M + 1)`` negative second derivatives; a log nu that nothing moves has 1."""
    above, below, even = chances
    systems, gap = terms.systems, above - below
    found = np.empty((len(games), systems + 1, systems + 1))
    found[:, :-1, :-1] = hessian(terms, games * (above + below - gap**2) / 4, ridge)
    found[:, -1, :-1] = found[:, :-1, -1] = gradient(terms, -games * gap * even / 2)
    own = (games * even * (1 - even)).sum(axis=1) + ridge
    found[:, -1, -1] = np.where(own > _NO_CURVATURE, own, 1.0)
    return found


def _maxima(terms: Terms, sums: tuple[Floats, Floats, Floats], ridge: float, start: Floats | None) -> Floats:
    """``(R, M + 1)`` maxima by Newton's method, each row by itself.

    A step that moves the gaps between outcomes by at most d changes no curvature by more than e^d; a step with d > 1 is
    shortened to log(1 + d) / d of its length (as in :mod:`gen_eval.arena.fitting`).
    """
    games, lead, ties = sums
    x = _starts(terms, games, ties, ridge, start)
    tolerance = np.maximum(GRADIENT, _ROUNDING * games.sum(axis=1))
    rows, change = np.arange(len(games)), np.full(len(games), np.inf)
    for _ in range(_MOST_STEPS):
        above, below, even, _ = _chances(terms.logits(x[rows, :-1]), x[rows, -1:])
        slope = np.empty((len(rows), terms.systems + 1))
        slope[:, :-1] = gradient(terms, (lead[rows] - games[rows] * (above - below)) / 2)
        slope[:, -1] = ties[rows] - (games[rows] * even).sum(axis=1)
        slope -= ridge * x[rows]
        open_ = (np.abs(slope).max(axis=1) > tolerance[rows]) | (change[rows] > _LAST_STEP)
        if not open_.any():
            return x
        rows, slope = rows[open_], slope[open_]
        matrix = _information(terms, games[rows], (above[open_], below[open_], even[open_]), ridge)
        step = np.linalg.solve(pinned(matrix, terms.systems), slope[:, :, None])[:, :, 0]
        change[rows] = largest = np.ptp(step[:, :-1], axis=1) + np.abs(step[:, -1])
        x[rows] += np.where(largest > 1, np.log1p(largest) / np.maximum(largest, 1), 1.0)[:, None] * step
    raise ArithmeticError(f"{len(rows)} of {len(games)} fits took more than {_MOST_STEPS} steps; give a larger ridge")


def _starts(terms: Terms, games: Floats, ties: Floats, ridge: float, start: Floats | None) -> Floats:
    """``(R, M + 1)``; without ties and ridge log nu is at its end and stays there."""
    x = np.zeros((len(games), terms.systems + 1))
    if start is not None:
        x[:] = start
    if start is None or start[-1] <= NO_TIES:
        total = games.sum(axis=1)
        x[:, -1] = np.log((2 * ties + 1) / (total - ties + 1))  # of equal systems, one vote aside
    if not ridge:
        x[ties <= 0, -1] = NO_TIES
    return x


__all__ = ["NO_TIES", "DavidsonTies"]
