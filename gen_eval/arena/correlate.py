"""Ratings against scores over the systems that have both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from gen_eval.arena.coefficients import COEFFICIENTS, LEAST_DRAWN, Coefficient, counted_coefficients, drawn_counts
from gen_eval.arena.correlations import Correlations, Ends, PairCorrelation, Point, Subset
from gen_eval.arena.permutation import permutation_test
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.arena.systems import REAL, SystemColumn
from gen_eval.records import Reason
from gen_eval.stats.correlation import kendall_tau_b, pearson, spearman
from gen_eval.stats.intervals import check_level
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats, finite_number


def correlate(
    ratings: Mapping[str, SystemColumn],
    scores: Mapping[str, SystemColumn],
    *,
    real: Collection[str] = REAL,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Correlations:
    """Pearson, Spearman and tau-b of every rating with the score of the same x, and what each of them hides.

    Columns pair by :attr:`SystemColumn.key` (``plausibility`` and ``domain`` are one x), systems by exact name. The
    bootstrap draws systems with replacement: it asks what other systems of this kind would have given. Systems are
    drawn in the order of their numbers, so neither names nor the order of rows move an interval.

    Args:
        ratings: columns of ratings by any label.
        scores: columns of scores likewise.
        real: names of systems that are real videos; their left-out figures stand beside.
        resamples: of the systems.
        seed: of these and of random orders.
        level: nominal coverage of the intervals, strictly between 0 and 1.

    Raises:
        ValueError: two columns of one side have one x, a number is not finite, or an argument is outside its range.
    """
    check_resampling(1, resamples, seed)
    check_level(level)
    rated, scored = _by_key(ratings, "ratings"), _by_key(scores, "scores")
    pairs = {
        key: _pair(key, column, scored[key], frozenset(real), resamples, seed, level)
        for key, column in rated.items()
        if key in scored
    }
    unpaired = {
        "ratings": tuple(column.name for key, column in rated.items() if key not in scored),
        "scores": tuple(column.name for key, column in scored.items() if key not in rated),
    }
    return Correlations(pairs, unpaired)


def common_systems(columns: Sequence[SystemColumn]) -> tuple[list[str], list[str]]:
    """Systems that have a number in every column, and those that every column names without all having one.

    Both in the order of the first column.
    """
    named = [name for name in columns[0].values if all(name in column.values for column in columns)]
    filled = [name for name in named if all(column.values[name] is not None for column in columns)]
    return filled, [name for name in named if name not in set(filled)]


def numbers_of(column: SystemColumn, names: Sequence[str]) -> Floats:
    """``(n,)`` values of the named systems, all of which have one.

    Raises:
        ValueError: a value is not finite.
    """
    found = [column.values[name] for name in names]
    return np.array(
        [
            finite_number(value, f"{column.name} of {name!r}")
            for name, value in zip(names, found, strict=True)
            if value is not None
        ],
        dtype=np.float64,
    )


def subset_of(x: Floats, y: Floats) -> Subset:
    """The three coefficients of the pairs (x, y), or why there are none."""
    left, right = x.tolist(), y.tolist()
    r = pearson(left, right)
    return Subset(r.n, r.value, spearman(left, right).value, kendall_tau_b(left, right).value, r.reason)


def _by_key(columns: Mapping[str, SystemColumn], side: Literal["ratings", "scores"]) -> dict[str, SystemColumn]:
    found: dict[str, SystemColumn] = {}
    for column in columns.values():
        if column.key in found:
            raise ValueError(
                f"{side} hold {found[column.key].name!r} and {column.name!r}, "
                f"which are both the {column.key!r} column; keep one of them"
            )
        found[column.key] = column
    return found


class _Systems(NamedTuple):
    names: list[str]
    x: Floats
    y: Floats


def _pair(
    key: str,
    rating: SystemColumn,
    score: SystemColumn,
    real: frozenset[str],
    resamples: int,
    seed: int,
    level: float,
) -> PairCorrelation:
    names, left_out = common_systems([rating, score])
    x, y = numbers_of(rating, names), numbers_of(score, names)
    left, right = x.tolist(), y.tolist()
    r, rho, tau = pearson(left, right, level=level), spearman(left, right), kendall_tau_b(left, right)
    order = np.lexsort((y, x))
    reason, message = _why_none(r.reason, rating, score)
    whole = Subset(r.n, r.value, rho.value, tau.value, reason)
    systems = _Systems(names, x, y)
    without = _leave_one_out(systems)
    return PairCorrelation(
        name=key,
        n=r.n,
        reason=reason,
        message=message,
        pearson=r.value,
        pearson_p=r.p_value,
        pearson_fisher=None if r.lower is None or r.upper is None else (r.lower, r.upper),
        spearman=rho.value,
        spearman_p=rho.p_value,
        kendall_tau_b=tau.value,
        kendall_p=tau.p_value,
        permutation=permutation_test(x[order], y[order], seed=seed),
        leave_one_out=without,
        most_influential=_most_influential(r.value, without["pearson"]),
        left_out=tuple(left_out),
        **_of_bootstrap(x[order], y[order], whole, resamples, seed, level),
        **_of_systems(systems, real),
        **_of_columns(rating, score),
    )


def _why_none(reason: Reason | None, rating: SystemColumn, score: SystemColumn) -> tuple[Reason | None, str]:
    """Ratings that could not be made say why themselves: that no system has one is only what follows from it."""
    cause = next((column for column in (rating, score) if reason and column.reason), None)
    return (reason, "") if cause is None else (cause.reason, cause.message)


def _of_systems(systems: _Systems, real: frozenset[str]) -> Mapping[str, Any]:
    """The systems as points, which of them are real videos, and the coefficients without these."""
    names, x, y = systems
    kept = np.array([name not in real for name in names], dtype=bool)
    return {
        "without_real": None if kept.all() else subset_of(x[kept], y[kept]),
        "real": tuple(name for name in names if name in real),
        "points": tuple(Point(*row, real=row[0] in real) for row in zip(names, x.tolist(), y.tolist(), strict=True)),
    }


def _of_columns(rating: SystemColumn, score: SystemColumn) -> Mapping[str, Any]:
    """What follows from the two columns as they were given."""
    return {
        "rating": rating.name,
        "score": score.name,
        "only_in_ratings": tuple(name for name in rating.values if name not in score.values),
        "only_in_scores": tuple(name for name in score.values if name not in rating.values),
        "score_higher_is_better": score.higher_is_better,
        "rating_higher_is_better": rating.higher_is_better,
    }


def _of_bootstrap(x: Floats, y: Floats, whole: Subset, resamples: int, seed: int, level: float) -> Mapping[str, Any]:
    """The intervals over resamples of the systems, and how they were drawn."""
    ends: dict[Coefficient, Ends | None] = dict.fromkeys(COEFFICIENTS)
    widened: list[Coefficient] = []
    enough = whole.reason is None and len(x) >= LEAST_DRAWN
    counts = drawn_counts(len(x), resamples, seed) if enough else np.zeros((0, len(x)))
    drawn = counted_coefficients(x, y, counts)
    for name in COEFFICIENTS:
        value = whole.value(name)
        if value is None or not drawn.defined.any():
            continue
        found = percentile_ends(drawn.of(name)[drawn.defined], value, level)
        ends[name] = found.ends
        if found.widened:
            widened.append(name)
    return {
        "bootstrap": ends,
        "bootstrap_widened": tuple(widened),
        "bootstrap_undefined": int(np.count_nonzero(~drawn.defined)),
        "resamples": resamples,
        "seed": seed,
        "level": level,
    }


def _leave_one_out(systems: _Systems) -> dict[Coefficient, dict[str, float | None]]:
    if not systems.names:
        return {name: {} for name in COEFFICIENTS}
    found = counted_coefficients(systems.x, systems.y, 1 - np.eye(len(systems.names)))
    return {
        name: {system: found.value(name, place) for place, system in enumerate(systems.names)} for name in COEFFICIENTS
    }


def _most_influential(r: float | None, without: Mapping[str, float | None]) -> str | None:
    if r is None:
        return None
    moves = [(-abs(value - r), system) for system, value in without.items() if value is not None]
    return min(moves)[1] if moves else None


__all__ = ["common_systems", "correlate", "numbers_of", "subset_of"]
