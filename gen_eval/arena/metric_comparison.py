"""Several metrics against one rating: which agrees best with people, and is the difference real."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

import numpy as np

from gen_eval.arena.coefficients import (
    COEFFICIENTS,
    LEAST_DRAWN,
    Bools,
    Coefficient,
    counted_coefficients,
    drawn_counts,
    row_coefficients,
)
from gen_eval.arena.correlate import common_systems, numbers_of, subset_of
from gen_eval.arena.dependent_correlations import WilliamsTest, williams_test
from gen_eval.arena.metric_comparison_results import MetricAgreement, MetricComparison, MetricDifference
from gen_eval.arena.names import level_name
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.arena.systems import REAL, SystemColumn
from gen_eval.stats.correlation import pearson
from gen_eval.stats.intervals import check_level
from gen_eval.stats.multiple import holm
from gen_eval.stats.paired import chances_of
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats


class Draws(Protocol):
    """Ratings and scores of systems over resamples of something else than systems (votes and samples)."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the systems, one a column."""

    @property
    def ratings(self) -> Floats:
        """``(R, M)``; what stands where ``defined`` is false means nothing."""

    @property
    def scores(self) -> Mapping[str, Floats]:
        """By metric ``(R, M)``, errors with their sign as given."""

    @property
    def defined(self) -> Bools:
        """``(R,)`` whether the resample has every rating and score."""

    @property
    def words(self) -> str:
        """What was drawn."""


def compare_metrics(
    rating: SystemColumn,
    scores: Mapping[str, SystemColumn],
    *,
    real: Collection[str] = REAL,
    by: Coefficient = "pearson",
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    draws: Draws | None = None,
) -> MetricComparison:
    """Metrics side by side over the systems that the rating and all of them have.

    Errors (``higher_is_better`` false) are turned, so that larger is more agreement. All metrics see the same
    resamples: of the systems, or, with ``draws``, those of votes and samples (:func:`gen_eval.arena.joint_draws`).
    The best metric is chosen by looking at the same data, so Holm's correction goes over every two metrics.

    Args:
        rating: what people say.
        scores: metrics by name.
        real: systems that are real videos; the figures without them stand beside.
        by: the coefficient that decides.
        resamples: of the systems; without effect with ``draws``.
        seed: of these.
        level: nominal coverage; 1 - level is also the error that the verdicts allow.
        draws: resamples made elsewhere, with a column for every system and metric that is compared.

    Raises:
        ValueError: no metric, a number that is not finite, an argument outside its range, or draws that lack a system
            or metric.
    """
    if not scores:
        raise ValueError("scores hold no metric; give at least one column of scores")
    if by not in COEFFICIENTS:
        raise ValueError(f"by is {by!r}; expected one of {', '.join(COEFFICIENTS)}")
    check_level(level)
    check_resampling(1, resamples, seed)
    data = _Data.of(rating, scores, frozenset(real))
    drawn = data.drawn(by, resamples, seed) if draws is None else data.taken(by, draws)
    agreements = {name: _agreement(data, name, drawn[name], scores[name], by, level) for name in scores}
    ranked = dict(sorted(agreements.items(), key=lambda item: _first(item[1].value(by), item[0])))
    differences = _verdicts(_differences(ranked, data, drawn, by, level), level, with_williams=draws is None)
    return MetricComparison(
        rating=rating.name,
        by=by,
        agreements=ranked,
        best=next((name for name, one in ranked.items() if one.value(by) is not None), None),
        best_without_real=_best_without_real(ranked, by),
        differences=tuple(differences),
        systems=data.names,
        left_out=_left_out(rating, scores, data.names),
        real=tuple(name for name in data.names if name in set(real)),
        level=level,
        drawn=f"systems drawn with replacement, {resamples} resamples, seed {seed}" if draws is None else draws.words,
        rule=_rule(by, level, with_williams=draws is None),
    )


@dataclass(frozen=True)
class _Drawn:
    values: Floats
    defined: Bools


@dataclass(frozen=True)
class _Data:
    """Systems that all columns have, in the order of their numbers: neither names nor rows move an interval."""

    names: tuple[str, ...]
    x: Floats
    metrics: Mapping[str, Floats]  # turned, so that larger is more agreement
    signs: Mapping[str, float]
    kept: Bools  # systems that are no real videos

    @classmethod
    def of(cls, rating: SystemColumn, scores: Mapping[str, SystemColumn], real: frozenset[str]) -> _Data:
        names, _ = common_systems([rating, *scores.values()])
        x = numbers_of(rating, names)
        signs = {name: _sign(rating, column) for name, column in scores.items()}
        columns = {name: signs[name] * numbers_of(column, names) for name, column in scores.items()}
        order = np.lexsort([*columns.values(), x])
        placed = tuple(names[place] for place in order.tolist())
        kept = np.array([name not in real for name in placed], dtype=bool)
        return cls(placed, x[order], {name: column[order] for name, column in columns.items()}, signs, kept)

    def drawn(self, by: Coefficient, resamples: int, seed: int) -> dict[str, _Drawn]:
        if len(self.names) < LEAST_DRAWN:
            return dict.fromkeys(self.metrics, _Drawn(np.zeros(0), np.zeros(0, dtype=bool)))
        counts = drawn_counts(len(self.names), resamples, seed)
        found = {name: counted_coefficients(self.x, column, counts) for name, column in self.metrics.items()}
        return {name: _Drawn(one.of(by), one.defined) for name, one in found.items()}

    def taken(self, by: Coefficient, draws: Draws) -> dict[str, _Drawn]:
        lacking = [*(set(self.names) - set(draws.models)), *(set(self.metrics) - set(draws.scores))]
        if lacking:
            raise ValueError(f"draws lack {', '.join(sorted(lacking))}; make them from the same votes and scores")
        places = [draws.models.index(name) for name in self.names]
        ratings = draws.ratings[:, places]
        found = {}
        for name, sign in self.signs.items():
            coefficients = row_coefficients(ratings, sign * draws.scores[name][:, places])
            found[name] = _Drawn(coefficients.of(by), coefficients.defined & draws.defined)
        return found


def _sign(rating: SystemColumn, score: SystemColumn) -> float:
    return 1.0 if rating.higher_is_better == score.higher_is_better else -1.0


def _first(value: float | None, name: str) -> tuple[bool, float, str]:
    # values that differ by rounding only are equal, and names decide
    return (value is None, 0.0 if value is None else -round(value, 12), name)


def _agreement(
    data: _Data, name: str, drawn: _Drawn, score: SystemColumn, by: Coefficient, level: float
) -> MetricAgreement:
    whole = subset_of(data.x, data.metrics[name])
    ends = None
    value = whole.value(by)
    if value is not None and drawn.defined.any():
        ends = percentile_ends(drawn.values[drawn.defined], value, level)
    without = None if data.kept.all() else subset_of(data.x[data.kept], data.metrics[name][data.kept])
    return MetricAgreement(
        name=name,
        n=whole.n,
        reason=whole.reason,
        pearson=whole.pearson,
        spearman=whole.spearman,
        kendall_tau_b=whole.kendall_tau_b,
        lower=None if ends is None else ends.lower,
        upper=None if ends is None else ends.upper,
        undefined=int(np.count_nonzero(~drawn.defined)),
        without_real=without,
        higher_is_better=score.higher_is_better,
    )


def _best_without_real(agreements: Mapping[str, MetricAgreement], by: Coefficient) -> str | None:
    values = {name: getattr(one.without_real, by, None) for name, one in agreements.items()}
    found = sorted(_first(value, name) for name, value in values.items() if value is not None)
    return found[0][2] if found else None


def _left_out(
    rating: SystemColumn, scores: Mapping[str, SystemColumn], names: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    kept = set(names)
    return {
        system: tuple(name for name, column in scores.items() if column.values.get(system) is None)
        for system in rating.values
        if system not in kept
    }


def _differences(
    ranked: Mapping[str, MetricAgreement], data: _Data, drawn: Mapping[str, _Drawn], by: Coefficient, level: float
) -> list[MetricDifference]:
    valued = [(name, value) for name, one in ranked.items() if (value := one.value(by)) is not None]
    found = []
    for (a, high), (b, low) in combinations(valued, 2):
        both = drawn[a].defined & drawn[b].defined
        differences = drawn[a].values[both] - drawn[b].values[both]
        # rounding of two equal metrics is no difference
        differences[np.abs(differences) < _ROUNDING] = 0.0
        ends = percentile_ends(differences, max(0.0, high - low), level) if len(differences) else None
        above, p = chances_of(differences) if len(differences) else (None, None)
        test = _williams(high, low, data, a, b) if by == "pearson" else None
        found.append(
            MetricDifference(
                a=a,
                b=b,
                difference=max(0.0, high - low),
                lower=None if ends is None else ends.lower,
                upper=None if ends is None else ends.upper,
                share_above=above,
                p_value=p,
                p_holm=None,
                williams_t=None if test is None else test.t,
                williams_p=None if test is None else test.p_value,
                williams_p_holm=None,
                resamples=len(differences),
                real=False,
                words="",
            )
        )
    return found


_ROUNDING = 1e-12


def _williams(high: float, low: float, data: _Data, a: str, b: str) -> WilliamsTest | None:
    between = pearson(data.metrics[a].tolist(), data.metrics[b].tolist()).value
    if between is None:
        return None
    return williams_test(high, low if high - low > _ROUNDING else high, between, len(data.names))


def _verdicts(found: list[MetricDifference], level: float, *, with_williams: bool) -> list[MetricDifference]:
    """The differences with their corrected p values, and what they say in words."""
    bootstrap, classical = holm([one.p_value for one in found]), holm([one.williams_p for one in found])
    verdicts = []
    for one, p, q in zip(found, bootstrap, classical, strict=True):
        chosen = [(one.p_value, p), (one.williams_p, q)] if with_williams else [(one.p_value, p)]
        made = [(own, corrected) for own, corrected in chosen if own is not None and corrected is not None]
        real = one.p_value is not None and all(corrected <= 1 - level for _, corrected in made)
        alone = [own <= 1 - level for own, _ in made]
        verdicts.append(
            replace(one, p_holm=p, williams_p_holm=q, real=real, words=_words(one, alone, real, len(found)))
        )
    return verdicts


def _words(one: MetricDifference, alone: list[bool], real: bool, pairs: int) -> str:
    ends = "" if one.lower is None or one.upper is None else f" [{one.lower:+.3f}, {one.upper:+.3f}]"
    start = f"{one.a} over {one.b}: {one.difference:+.3f}{ends}, "
    if real:
        return start + "the difference is real"
    if one.p_value is None:
        return start + f"no verdict: fewer than {LEAST_DRAWN} systems are not drawn from"
    if alone and all(alone):
        return start + f"clear by itself, but not among {pairs} comparisons of two metrics"
    if any(alone):
        return start + f"not settled: bootstrap p = {one.p_value:.2g}, Williams' p = {one.williams_p:.2g}"
    return start + "not to be told from chance"


def _rule(by: Coefficient, level: float, *, with_williams: bool) -> str:
    tests = "bootstrap p"
    if with_williams and by == "pearson":
        tests = "bootstrap p and Williams' p (where it exists) both"
    percent = level_name(1 - level)
    return f"real: {tests} at most {percent} % after Holm's correction over every two metrics"


__all__ = ["Draws", "compare_metrics"]
