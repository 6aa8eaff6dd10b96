"""Bradley-Terry ratings: maximum likelihood, free of order, with intervals, or the reason why there are none.

P(A beats B) = 1 / (1 + exp(-(t_A - t_B))) (Bradley and Terry 1952, Biometrika 39). A tie is half a win for each, and
the quarters of the overall tracker go in as they are. Ratings are ``initial + scale / ln(base) * (t - mean t)``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from gen_eval.arena import fitting
from gen_eval.arena.cells import Cells, cells_of
from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.connectivity import Diagnosis, diagnose
from gen_eval.arena.davidson import DavidsonTies
from gen_eval.arena.estimation import Extra, Likelihood, Method, Rule, rated
from gen_eval.arena.ratings import ArenaRatings, TrackerRatings
from gen_eval.arena.scale import BASE, INITIAL, SCALE
from gen_eval.arena.terms import Terms
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.arena.votes import TRACKERS
from gen_eval.arena.win_graph import Flags
from gen_eval.stats.summaries import Floats, finite_number

Ties = Literal["half", "davidson"]


def bradley_terry(
    votes: AnyVotes,
    *,
    ties: Ties = "half",
    ridge: float = 0.0,
    side: bool = False,
    pair_floor: int | None = None,
    interval: Method = "bootstrap",
    clusters: Unit | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    initial: float = INITIAL,
    base: float = BASE,
    scale: float = SCALE,
) -> ArenaRatings:
    """Rate systems by maximum likelihood; nothing depends on the order of the votes.

    A tracker whose likelihood has no finite maximum (systems that are not linked by comparisons, a set that never
    loses) has no ratings but a reason, the sets, and what to do; with a ridge it has ratings, which say so.

    Args:
        votes: anything that :func:`gen_eval.arena.votes_from` takes.
        ties: ``half``: half a win for each; ``davidson``: a tie parameter is fitted.
        ridge: ``ridge / 2 * (sum of squares of t, and of the side term or log nu)`` is taken off the log-likelihood;
            0, or 1e-6 and more. It is ``alpha`` of the package choix on votes that are doubled to whole wins.
        side: fit what standing on the left (or first) is worth, in points; where nobody said, A counts as the left.
        pair_floor: weigh each vote by 1 / max(votes of its pair, ``pair_floor``), against uneven sampling of pairs.
            Weights are scaled to a mean of 1, and stay those of all votes in every resample. ``None``: equal weights.
        interval: method of the main interval, ``bootstrap`` (percentiles) or ``sandwich`` (normal, robust); the other
            one is given beside it.
        clusters: what is independent: ``votes``, ``samples`` or ``annotators``; ``None`` for votes where each annotator
            judged each sample once, and for samples elsewhere.
        resamples: of the bootstrap; 0, with the sandwich as main interval, for none.
        seed: of the draws.
        level: nominal coverage.
        initial: mean of the ratings, points.
        base: of the odds.
        scale: points at which the odds are ``base`` to 1.

    Returns:
        Ratings of every tracker with a vote; trackers without one are named in ``options["without_votes"]``.

    Raises:
        InputError: a file of votes cannot be read.
        ValueError: an argument is outside its range, no vote counts, or clusters by annotator were asked for and a
            vote has none.
        TypeError: an argument is of another kind.

    >>> bradley_terry([("x", "y", 1.0), ("y", "x", 1.0)], resamples=10).ratings
    {'x': 1000.0, 'y': 1000.0}
    """
    rule = Rule(ridge, interval, clusters, resamples, seed, level, initial, base, scale)
    _check(ties, side, pair_floor)
    taken = votes_from(votes)
    by_tracker = {name: one for name in TRACKERS if len(one := taken.comparisons(name))}
    if not by_tracker:
        raise ValueError(f"no vote counts ({len(taken.rejected)} records were rejected); at least one is needed")
    trackers: dict[str, TrackerRatings] = {}
    for name, comparisons in by_tracker.items():
        model = _model(comparisons, ties, rule, side, pair_floor)
        absent = [one for one in taken.models if one not in set(comparisons.models)]
        trackers[name] = rated(name, comparisons, model, rule, without_votes=absent)
    expected = TRACKERS if taken.bare is None else ("overall",)
    options: dict[str, Any] = {
        "ties": ties,
        "side": side,
        "pair_floor": pair_floor,
        **asdict(rule),
        "votes_digest": taken.digest,
        "without_votes": [name for name in expected if name not in trackers],
    }
    return ArenaRatings("bradley-terry", None, len(taken), trackers, taken.rejected, options)


def _check(ties: str, side: bool, pair_floor: int | None) -> None:
    if ties not in get_args(Ties):
        raise ValueError(f"ties is {ties!r}; expected one of {', '.join(get_args(Ties))}")
    if ties == "davidson" and (side or pair_floor is not None):
        raise ValueError(
            "the tie parameter is fitted without side term and pair weights; leave those out, or ties='half'"
        )
    if pair_floor is None:
        return
    if not isinstance(pair_floor, int | np.integer) or isinstance(pair_floor, bool):
        raise TypeError(f"pair_floor is {pair_floor!r}; expected a whole number of votes, or None for equal weights")
    if finite_number(pair_floor, "pair_floor") < 1:
        raise ValueError(f"pair_floor is {pair_floor}; expected 1 vote or more, or None for equal weights")


def _model(comparisons: Comparisons, ties: Ties, rule: Rule, side: bool, pair_floor: int | None) -> Likelihood:
    cells = cells_of(comparisons)
    if ties == "davidson":
        return DavidsonTies(cells, rule.ridge)
    weights = None if pair_floor is None else pair_weights(cells, pair_floor)
    remark = "" if pair_floor is None else f"votes weigh 1 / max(votes of their pair, {pair_floor}), as in all votes"
    return HalfTies(cells, rule.ridge, side, weights, rule.per_logit, remark)


def pair_weights(cells: Cells, floor: int) -> Floats:
    """``(C,)`` weight of a vote in each cell: 1 / max(votes of its pair, ``floor``), scaled to a mean of 1."""
    pairs = np.add.reduceat(cells.counts, cells.pair_starts)
    sizes = np.diff(cells.pair_starts, append=len(cells))
    raw = np.repeat(1 / np.maximum(pairs, floor), sizes)
    weights: Floats = raw * (cells.counts.sum() / (raw * cells.counts).sum())
    return weights


@dataclass(frozen=True)
class HalfTies:
    """The Bradley-Terry likelihood in which a tie is half a win for each (a :class:`Likelihood`).

    Attributes:
        cells: of the comparisons.
        ridge: see :func:`bradley_terry`.
        side: whether there is a side term.
        weights: ``(C,)`` weight of a comparison in each cell; ones without.
        per_logit: points of one natural logarithm of the odds.
        remark: for the words of intervals.
    """

    cells: Cells
    ridge: float = 0.0
    side: bool = False
    weights: Floats | None = None
    per_logit: float = 1.0
    remark: str = ""

    @property
    def extra(self) -> Extra | None:
        """What the last unknown is."""
        return "side" if self.side else None

    def diagnose(self) -> Diagnosis | None:
        """Why there is no finite maximum; ``None`` when there is one."""
        return diagnose(self.cells, side=self.side)

    def maxima(self, counts: Floats, start: Floats | None = None) -> tuple[Floats, Flags]:
        """``(R, M)``, or ``(R, M + 1)`` with the side term, and which rows have a finite maximum."""
        found = self._problem.fit(counts, start=start)
        x = np.concatenate([found.theta, found.side[:, None]], axis=1) if self.side else found.theta
        return x, found.identified

    def scores(self, x: Floats) -> sparse.csr_array:
        """``(C, K)``: what is left of the share after what was expected, +1 at a, -1 at b, the side at the last."""
        cells, terms = self.cells, self._terms
        rest = cells.score - fitting.chances_of(terms.logits(x[None]))[0]
        rest = rest if self.weights is None else rest * self.weights
        rows = np.arange(len(cells))
        entries = [(rest, rows, cells.a), (-rest, rows, cells.b)]
        if self.side:
            entries.append((rest * cells.left, rows, np.full(len(cells), len(cells.models))))
        values, row, column = (np.concatenate(part) for part in zip(*entries, strict=True))
        return sparse.coo_array((values, (row, column)), shape=(len(cells), len(x))).tocsr()

    def information(self, x: Floats) -> Floats:
        """``(K, K)`` negative second derivatives, with the ridge."""
        chance = fitting.chances_of(self._terms.logits(x[None]))
        games = self.cells.counts if self.weights is None else self.cells.counts * self.weights
        found: Floats = fitting.hessian(self._terms, games * chance * (1 - chance), self.ridge)[0]
        return found

    def log_likelihood(self, x: Floats) -> float:
        """Natural logarithm, of the weighted votes, without the ridge."""
        return fitting.log_likelihood(self.cells, self.cells.counts, x, side=self.side, weights=self.weights)

    def parameter(self, raw: float) -> float:
        """The side term in points."""
        return self.per_logit * raw

    @cached_property
    def _problem(self) -> fitting.Problem:
        return fitting.Problem(self.cells, self.ridge, self.side, self.weights)

    @cached_property
    def _terms(self) -> Terms:
        return Terms.each(self.cells, side=self.side)


__all__ = ["HalfTies", "Ties", "bradley_terry", "pair_weights"]
