"""From a likelihood of the votes to the ratings of one tracker: refusal, intervals by two methods, differences, places.

What a model must say of itself is :class:`Likelihood`; everything else is the same for all that are fitted by maximum
likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from scipy import sparse

from gen_eval.arena.cells import Cells, cluster_cells, ordered_clusters, resampled_cells
from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.connectivity import Diagnosis
from gen_eval.arena.fitting import LEAST_RIDGE, pinned
from gen_eval.arena.intervals import (
    FEW_CORRECTED,
    Uncertainty,
    few,
    freedom_of,
    from_covariance,
    from_draws,
    half_width,
    one_unit,
    without_interval,
)
from gen_eval.arena.names import level_name
from gen_eval.arena.ratings import IntervalRule, Parameter, TrackerRatings, check_points
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.arena.scale import BASE, INITIAL, SCALE
from gen_eval.arena.win_graph import Flags
from gen_eval.stats.intervals import check_level
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats, finite_number

Method = Literal["bootstrap", "sandwich"]

Extra = Literal["side", "tie_parameter"]

MOST_UNDEFINED = 0.5
"""Largest share of resamples without finite ratings at which percentiles of the others are still given."""


@dataclass(frozen=True)
class Rule:
    """How ratings and intervals are made from a likelihood.

    Attributes:
        ridge: ``ridge / 2 * sum of squares`` of the logarithms of strength is taken off the log-likelihood; 0, or at
            least :data:`gen_eval.arena.fitting.LEAST_RIDGE`.
        interval: the method of the main interval; the other one is given beside it.
        clusters: what is independent; ``None`` for :attr:`Comparisons.unit`.
        resamples: of the bootstrap; 0 only where the sandwich is the main interval.
        seed: of the draws, non-negative.
        level: nominal coverage, strictly between 0 and 1.
        initial: mean of the ratings.
        base: of the odds, above 1.
        scale: points at which the odds are ``base`` to 1, above 0.

    Raises:
        ValueError: a value outside its range.
        TypeError: a number that is none.
    """

    ridge: float = 0.0
    interval: Method = "bootstrap"
    clusters: Unit | None = None
    resamples: int = 10_000
    seed: int = 0
    level: float = 0.95
    initial: float = INITIAL
    base: float = BASE
    scale: float = SCALE

    def __post_init__(self) -> None:
        for name in ("ridge", "level", "initial", "base", "scale"):
            finite_number(getattr(self, name), name)
        for name in ("resamples", "seed"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise TypeError(f"{name} is {getattr(self, name)!r}; expected a whole number")
        _check(self.ridge == 0 or self.ridge >= LEAST_RIDGE, "ridge", self.ridge, f"0, or {LEAST_RIDGE:g} and more")
        _check(self.interval in get_args(Method), "interval", self.interval, f"one of {', '.join(get_args(Method))}")
        units = get_args(Unit)
        _check(self.clusters in (None, *units), "clusters", self.clusters, f"one of {', '.join(units)}, or None")
        least = 1 if self.interval == "bootstrap" else 0
        _check(self.resamples >= least, "resamples", self.resamples, f"{least} or more (10,000 is the default)")
        _check(self.seed >= 0, "seed", self.seed, "0 or more")
        check_resampling(1, max(self.resamples, 1), self.seed)
        check_level(self.level)
        _check(self.base > 1, "base", self.base, "above 1 (10 is published)")
        _check(self.scale > 0, "scale", self.scale, "above 0 (400 is published)")
        check_points(initial=self.initial, base=self.base, scale=self.scale)

    @property
    def per_logit(self) -> float:
        """Points of one natural logarithm of the odds."""
        return self.scale / math.log(self.base)


def _check(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value!r}; expected {expected}")


class Likelihood(Protocol):
    """A model of the votes with the unknowns x: M logarithms of strength, then perhaps one more number."""

    @property
    def cells(self) -> Cells:
        """Of the comparisons."""

    @property
    def extra(self) -> Extra | None:
        """What the last unknown is, where there is one more than systems."""

    @property
    def remark(self) -> str:
        """For the words of intervals; may be empty."""

    def diagnose(self) -> Diagnosis | None:
        """Why there is no finite maximum; ``None`` when there is one."""

    def maxima(self, counts: Floats, start: Floats | None = None) -> tuple[Floats, Flags]:
        """``(R, K)`` unknowns for ``(R, C)`` counts, the M first with mean 0, and which rows have a finite maximum."""

    def scores(self, x: Floats) -> sparse.csr_array:
        """``(C, K)`` gradient of the log-likelihood of one comparison in each cell."""

    def information(self, x: Floats) -> Floats:
        """``(K, K)`` negative second derivatives of what was maximised."""

    def log_likelihood(self, x: Floats) -> float:
        """Natural logarithm, without a ridge."""

    def parameter(self, raw: float) -> float:
        """The last unknown as it is told, ascending."""


@dataclass(frozen=True)
class _Found:
    """Intervals by one method; ``ends`` is ``None`` when there are none, and the rule says why."""

    rule: IntervalRule
    ends: Uncertainty | None = None
    extra: tuple[float, float] | None = None
    draws: Floats | None = None


def rated(
    tracker: str,
    comparisons: Comparisons,
    model: Likelihood,
    rule: Rule,
    *,
    without_votes: Sequence[str] = (),
) -> TrackerRatings:
    """The ratings of one tracker.

    Args:
        tracker: its name.
        comparisons: n >= 1.
        model: of these comparisons.
        rule: of ratings and intervals.
        without_votes: systems that have votes elsewhere only.

    Raises:
        ValueError: ``rule.clusters`` is ``annotators``, and a vote has none.
    """
    cells, problem = model.cells, model.diagnose()
    bare = TrackerRatings(
        tracker,
        ratings=dict.fromkeys(cells.models),
        n=len(comparisons),
        votes_of=comparisons.per_model(),
        without_votes=tuple(without_votes),
        groups=() if problem is None else problem.groups,
    )
    if problem is not None and not rule.ridge:
        return replace(bare, reason=problem.reason, message=problem.message)
    x = model.maxima(cells.counts[None])[0][0]
    ratings = rule.initial + rule.per_logit * x[: len(cells.models)]
    found = _intervals(comparisons, model, rule, x, ratings)
    main = found[rule.interval]
    ends = main.ends or without_interval(cells.models, ratings, base=rule.base, scale=rule.scale)
    return replace(
        bare,
        ratings=dict(zip(cells.models, ratings.tolist(), strict=True)),
        message="" if problem is None else f"finite by the ridge alone ({problem.reason}): {problem.message}",
        lower=ends.lower,
        upper=ends.upper,
        interval=main.rule,
        other_intervals=_beside(found, rule.interval),
        differences=ends.differences,
        ranks=ends.ranks,
        log_likelihood=model.log_likelihood(x),
        draws=found["bootstrap"].draws if "bootstrap" in found else None,
        **_extra(model, x, main),
    )


def _beside(found: Mapping[Method, _Found], main: Method) -> dict[str, tuple[Mapping[str, float], Mapping[str, float]]]:
    """Lower and upper ends by each method but the main one."""
    others = {name: one.ends for name, one in found.items() if name != main and one.ends is not None}
    return {name: (ends.lower, ends.upper) for name, ends in others.items()}


def _extra(model: Likelihood, x: Floats, main: _Found) -> Mapping[str, Any]:
    if model.extra is None:
        return {}
    ends = (None, None) if main.extra is None else (model.parameter(main.extra[0]), model.parameter(main.extra[1]))
    return {model.extra: Parameter(model.parameter(float(x[-1])), *ends)}


def _intervals(
    comparisons: Comparisons, model: Likelihood, rule: Rule, x: Floats, ratings: Floats
) -> dict[Method, _Found]:
    """By every method that was asked for."""
    unit = rule.clusters or comparisons.unit
    units = comparisons.clusters(unit)[1]
    blank = IntervalRule("none", rule.level, unit, units, seed=rule.seed)
    if units < 2:
        return {rule.interval: _Found(replace(blank, words=one_unit(unit)))}
    found: dict[Method, _Found] = {"sandwich": _sandwich(comparisons, model, rule, x, ratings, blank)}
    if rule.resamples:
        found["bootstrap"] = _bootstrap(comparisons, model, rule, x, ratings, blank)
    return found


def covariance(comparisons: Comparisons, model: Likelihood, x: Floats, unit: Unit) -> Floats:
    """``(K, K)`` sandwich covariance H^-1 G H^-1 of the unknowns, strengths about their mean.

    H holds the negative second derivatives of what was maximised, G the sum over units of the outer product of the
    unit's score (White 1982; with clusters Liang and Zeger 1986). With m clusters it is taken m / (m - 1) times, since
    their scores sum to 0 and so vary too little; single votes keep the plain form.
    """
    cells, scores = model.cells, model.scores(x)
    if unit == "votes":
        middle = (scores.T @ sparse.diags_array(cells.counts) @ scores).toarray()
    else:
        clusters, units = ordered_clusters(comparisons, unit)
        summed = cluster_cells(cells, clusters) @ scores
        middle = (summed.T @ summed).toarray() * (units / max(1, units - 1))
    systems = len(cells.models)
    bread = np.linalg.inv(pinned(model.information(x)[None], systems))[0]
    bread[:systems] -= bread[:systems].mean(axis=0)
    found: Floats = bread @ middle @ bread.T
    return found


def _sandwich(
    comparisons: Comparisons, model: Likelihood, rule: Rule, x: Floats, ratings: Floats, blank: IntervalRule
) -> _Found:
    models = model.cells.models
    found = covariance(comparisons, model, x, blank.unit)
    own = found[: len(models), : len(models)] * rule.per_logit**2
    freedom = freedom_of(blank.unit, blank.units)
    half = float(half_width(found[-1:, -1], rule.level, freedom)[0])
    if freedom is None:
        kind, correction, remark = "normal interval", "", few(blank.units, blank.unit)
    else:
        kind, remark = "interval by Student's t", few(blank.units, blank.unit, FEW_CORRECTED)
        correction = f", times {blank.units}/{freedom}, {freedom} degrees of freedom"
    words = f"{level_name(rule.level)} % {kind} from the sandwich covariance over {_units(blank)}{correction}"
    return _Found(
        replace(blank, method="sandwich", words=_sentence(words, model, rule, remark)),
        from_covariance(models, ratings, own, level=rule.level, freedom=freedom, base=rule.base, scale=rule.scale),
        (float(x[-1]) - half, float(x[-1]) + half),
    )


def _bootstrap(
    comparisons: Comparisons, model: Likelihood, rule: Rule, x: Floats, ratings: Floats, blank: IntervalRule
) -> _Found:
    cells, systems = model.cells, len(model.cells.models)
    drawn = resampled_cells(cells, comparisons, blank.unit, resamples=rule.resamples, seed=rule.seed)
    parts = [found[kept] for found, kept in (model.maxima(counts, x) for counts in drawn)]
    unknowns = np.concatenate(parts)
    undefined = rule.resamples - len(unknowns)
    made = replace(blank, resamples=len(unknowns), undefined=undefined)
    how = f"{level_name(rule.level)} % percentile bootstrap: {rule.resamples:,} resamples of {_units(blank)}"
    how = f"{how}, seed {rule.seed}"
    if undefined > MOST_UNDEFINED * rule.resamples:
        words = f"no interval: {undefined:,} of {rule.resamples:,} resamples have no finite ratings, more than half"
        return _Found(
            replace(made, words=f"{words} ({how}); see the sandwich interval, collect votes, or give a ridge")
        )
    draws = rule.initial + rule.per_logit * unknowns[:, :systems]
    ends = from_draws(cells.models, ratings, draws, level=rule.level, base=rule.base, scale=rule.scale)
    left_out = f"{undefined:,} without finite ratings are left out" if undefined else ""
    return _Found(
        replace(
            made,
            method="bootstrap",
            words=_sentence(how, model, rule, few(blank.units, blank.unit), left_out, ends.remark),
        ),
        ends,
        percentile_ends(unknowns[:, -1], float(x[-1]), rule.level).ends,
        draws,
    )


def _units(blank: IntervalRule) -> str:
    if blank.unit == "votes":
        return f"{blank.units:,} votes taken as independent"
    return f"{blank.units:,} {blank.unit}, each whole with all that belongs to it"


def _sentence(words: str, model: Likelihood, rule: Rule, *remarks: str) -> str:
    ridge = f"ridge {rule.ridge:g} in every fit draws ratings together" if rule.ridge else ""
    return "; ".join(one for one in (words, *remarks, ridge, model.remark) if one)


__all__ = ["MOST_UNDEFINED", "Extra", "Likelihood", "Method", "Rule", "covariance", "rated"]
