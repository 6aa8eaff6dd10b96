"""Sequential Elo: ratings of each tracker, what the order of the votes does to them, and intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy.stats import rankdata

from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.elo_chains import EloRule, elo_orders, elo_ratings, elo_resamples
from gen_eval.arena.intervals import Uncertainty, few, from_draws, one_unit, without_interval
from gen_eval.arena.names import level_name
from gen_eval.arena.ratings import ArenaRatings, IntervalRule, Spread, TrackerRatings
from gen_eval.arena.scale import BASE, INITIAL, SCALE
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.arena.votes import TRACKERS, Votes
from gen_eval.stats.intervals import check_level
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats

Order = Literal["given", "time", "mean"]
"""Votes as they stand, sorted by time, or the mean over random orders."""

_ROUNDING = 9  # decimals: ratings that differ by less are equal in a ranking


@dataclass(frozen=True)
class _Options:
    rule: EloRule
    order: Order
    permutations: int
    resamples: int
    seed: int
    level: float
    clusters: Unit | None

    def __post_init__(self) -> None:
        _one_of("order", self.order, get_args(Order))
        if self.clusters is not None:
            _one_of("clusters", self.clusters, get_args(Unit))
        if self.permutations < (least := 1 if self.order == "mean" else 0):
            wanted = f"at least {least}" + (" for the mean over orders" if least else " (0 leaves out the spread)")
            raise ValueError(f"permutations is {self.permutations}; expected {wanted}")
        if self.resamples < 0:
            raise ValueError(f"resamples is {self.resamples}; expected 0 (no intervals) or more")
        check_level(self.level)
        check_resampling(1, max(self.resamples, self.permutations, 1), self.seed)


def elo(
    votes: AnyVotes,
    *,
    initial: float = INITIAL,
    k: float = 32.0,
    order: Order = "given",
    base: float = BASE,
    scale: float = SCALE,
    permutations: int = 100,
    seed: int = 0,
    resamples: int = 1000,
    clusters: Unit | None = None,
    level: float = 0.95,
) -> ArenaRatings:
    """Sequential Elo ratings, one rating a system and tracker.

    ``e_A = 1 / (1 + base^((R_B - R_A) / scale))``, then ``R_A += k (s - e_A)`` and ``R_B -= k (s - e_A)``, where s is 1
    when A is better, 0 when B is, one half when neither, and for the overall tracker the mean of both questions. The
    result depends on the order of the votes: ``order_spread`` and ``rankings`` tell how much, over random orders.

    Intervals are percentiles over resamples of the independent unit. What is drawn keeps its order (given, time), or
    runs in one random order for each resample (mean). A system that a resample lacks keeps its first rating.

    Args:
        votes: see :func:`gen_eval.arena.votes_from`.
        initial: rating of each system before its first vote, points.
        k: most points that a vote can move, above 0.
        order: ``given``: as the votes stand; ``time``: by time, equal times as they stand; ``mean``: the mean over
            ``permutations`` random orders.
        base: above 1.
        scale: difference in points at which the odds are ``base`` to 1, above 0.
        permutations: random orders, for ``mean`` and for the spread over orders; 0 leaves out the spread.
        seed: of all draws, non-negative. Orders and draws are of places in the list of votes and know no names.
        resamples: of the bootstrap; 0 for no intervals.
        clusters: what is drawn whole: ``votes``, ``samples`` or ``annotators``; ``None`` for votes when each annotator
            judged each sample once, else samples.
        level: nominal coverage of the intervals, strictly between 0 and 1.

    Returns:
        Ratings of every tracker that has votes; a system is rated where it has one.

    Raises:
        ValueError: no votes, a number outside its range, an unknown order or cluster, votes without a time for
            ``time``, or votes without an annotator for clusters by annotator.
        TypeError: the votes are nothing that is taken.
        InputError: a file of votes cannot be read.

    >>> dict(elo([("x", "y", 1.0)], resamples=0).ratings)
    {'x': 1016.0, 'y': 984.0}
    """
    rule = EloRule(initial, k, base, scale)
    options = _Options(rule, order, permutations, resamples, seed, level, clusters)
    found = votes_from(votes)
    trackers = {name: one for name in TRACKERS if len(one := found.comparisons(name))}
    if not trackers:
        raise ValueError(f"there are no votes to rate ({len(found.rejected)} were rejected); at least one is needed")
    return ArenaRatings(
        method="elo",
        order=order,
        n_votes=len(found),
        trackers={name: _rate(name, one, found, options) for name, one in trackers.items()},
        rejected=found.rejected,
        options={
            **{name: float(value) for name, value in vars(rule).items()},
            "order": order,
            "permutations": permutations,
            "seed": seed,
            "resamples": resamples,
            "clusters": clusters,
            "level": level,
            "votes_digest": found.digest,
        },
    )


def _rate(tracker: str, given: Comparisons, votes: Votes, options: _Options) -> TrackerRatings:
    models, rule = given.models, options.rule
    orders = elo_orders(given, options.permutations, rule=rule, seed=options.seed)
    sorted_ = _by_time(given) if options.order == "time" else given
    ratings = orders.mean(axis=0) if options.order == "mean" else elo_ratings(sorted_, rule)
    draws, ends, interval = _uncertainty(sorted_, ratings, options)
    return TrackerRatings(
        tracker=tracker,
        ratings=dict(zip(models, ratings.tolist(), strict=True)),
        n=len(given),
        votes_of=given.per_model(),
        lower=ends.lower,
        upper=ends.upper,
        interval=interval,
        differences=ends.differences,
        ranks=ends.ranks,
        order_spread=_spread(models, orders),
        rankings=_rankings(orders),
        without_votes=tuple(name for name in votes.models if name not in set(models)),
        draws=draws,
    )


def _by_time(comparisons: Comparisons) -> Comparisons:
    times = comparisons.times
    if missing := sum(one is None for one in times):
        raise ValueError(
            f"{missing} of {len(times)} votes have no time, so they cannot be sorted by it; "
            "fill in the field time, or take the order given or mean"
        )
    if comparisons.mixed_clocks:
        raise ValueError(
            "some times are dates and some are plain seconds, which have no common order; "
            "write all in one form, or take the order given or mean"
        )
    places = sorted(range(len(times)), key=lambda place: times[place] or 0.0)
    return replace(
        comparisons,
        a=comparisons.a[places],
        b=comparisons.b[places],
        score=comparisons.score[places],
        tie=comparisons.tie[places],
        left=comparisons.left[places],
        samples=tuple(comparisons.samples[place] for place in places),
        annotators=tuple(comparisons.annotators[place] for place in places),
        times=tuple(times[place] for place in places),
    )


def _uncertainty(
    comparisons: Comparisons, ratings: Floats, options: _Options
) -> tuple[Floats | None, Uncertainty, IntervalRule | None]:
    """The resampled ratings, what follows from them, and how they were made."""
    rule, mean = options.rule, options.order == "mean"
    if not options.resamples:
        return None, without_interval(comparisons.models, ratings, base=rule.base, scale=rule.scale), None
    unit = comparisons.unit if options.clusters is None else options.clusters
    units = comparisons.clusters(unit)[1]
    if units < 2:
        none = IntervalRule("none", options.level, unit, units, seed=options.seed, words=one_unit(unit))
        return None, without_interval(comparisons.models, ratings, base=rule.base, scale=rule.scale), none
    draws = elo_resamples(
        comparisons, options.resamples, shuffled=mean, unit=unit, rule=options.rule, seed=options.seed
    )
    ends = from_draws(comparisons.models, ratings, draws, level=options.level, base=rule.base, scale=rule.scale)
    covered = "the choice of votes and their order" if mean else "the choice of votes, not their order"
    words = (
        f"{level_name(options.level)} % percentile bootstrap over {options.resamples} resamples of {units} {unit}, "
        + ("each in one random order" if mean else "which keep their order")
        + f": covers {covered}; seed {options.seed}"
        + "".join(f"; {remark}" for remark in (few(units, unit), ends.remark) if remark)
    )
    interval = IntervalRule("bootstrap", options.level, unit, units, options.resamples, 0, options.seed, words)
    return draws, ends, interval


def _spread(models: tuple[str, ...], orders: Floats) -> dict[str, Spread]:
    """By system over ``(P, M)`` ratings; the standard deviation divides by P. Empty without orders."""
    if not len(orders):
        return {}
    columns = (orders.mean(axis=0), orders.std(axis=0), orders.min(axis=0), orders.max(axis=0))
    rows = zip(models, *(column.tolist() for column in columns), strict=True)
    return {name: Spread(*values) for name, *values in rows}


def _rankings(orders: Floats) -> int | None:
    """Different rankings among ``(P, M)`` ratings, equal ratings sharing a place; ``None`` without orders."""
    if not len(orders):
        return None
    return len(np.unique(rankdata(orders.round(_ROUNDING), method="min", axis=1), axis=0))


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


__all__ = ["Order", "elo"]
