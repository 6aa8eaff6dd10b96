"""Percentile bootstrap intervals of means: one column, several columns on the same resamples, clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gen_eval.stats.resampling import check_resampling, resampled_sums
from gen_eval.stats.summaries import Floats, finite_array


@dataclass(frozen=True)
class Interval:
    """An interval and how it was made.

    Attributes:
        lower: lower end, in the unit of the values.
        upper: upper end.
        level: nominal coverage, 0..1.
        resamples: resamples that gave a value.
        method: what was drawn and what was computed from each draw.
        undefined: resamples without a value (no unit with a value was drawn); left out of the percentiles.
    """

    lower: float
    upper: float
    level: float
    resamples: int
    method: str
    undefined: int = 0

    @property
    def half_width(self) -> float:
        """Half the distance between the ends, as some tables print it."""
        return (self.upper - self.lower) / 2

    def __str__(self) -> str:
        return f"[{self.lower:.6g}, {self.upper:.6g}] ({100 * self.level:g} %, {self.method})"


def bootstrap_mean(
    values: ArrayLike,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    block: int | None = None,
) -> Interval:
    """Percentile bootstrap interval of the mean of ``values``.

    Each resample draws as many units as there are, with replacement, and takes their mean; the ends are percentiles of
    these means. Without ``clusters`` a unit is a value. With them a unit is a cluster, drawn whole: the mean of a
    resample is the sum of all values in the drawn clusters over their number, so a large cluster weighs more.

    The result depends on which value stands where: hand values in key order to have equal results for equal data. One
    value (or one cluster) gives an interval without width, which says nothing about the spread.

    Args:
        values: n finite numbers, n >= 1.
        resamples: number of resamples.
        seed: non-negative; equal seeds draw the same units for equal n.
        level: nominal coverage, strictly between 0 and 1.
        clusters: label of each value's cluster; clusters count in the order in which they first appear.
        block: counts held at a time (memory against speed, never the result).

    Raises:
        ValueError: no values, a value that is not finite (its position is named), labels of another number, or an
            argument outside its range.
        TypeError: the values are not numbers.

    >>> bootstrap_mean([0.5, 0.5, 0.5]).upper
    0.5
    """
    column = finite_array(values, "values")
    (means,) = resampled_means(
        column[:, None], clusters=clusters, resamples=resamples, seed=seed, level=level, block=block
    )
    return percentile_interval(means, level, resamples, _method(clusters, seed))


def bootstrap_columns(
    matrix: ArrayLike,
    *,
    present: NDArray[np.bool_] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    block: int | None = None,
) -> tuple[Interval | None, ...]:
    """Intervals of the mean of each column, all on the same resamples of the rows.

    A column with gaps has the mean over the rows that are both drawn and filled; its number of filled rows then varies
    between resamples, as it would between repetitions of the study. A resample without any filled row has no mean and
    is counted in ``undefined``. A column without gaps has exactly the interval of :func:`bootstrap_mean`.

    Args:
        matrix: ``(n, m)``: one row for each unit, ``None`` for a gap.
        present: ``(n, m)`` bool, which entries are no gaps; for arrays, which cannot hold ``None``. What stands in a
            gap is not looked at.
        resamples: number of resamples.
        seed: see :func:`bootstrap_mean`.
        level: see :func:`bootstrap_mean`.
        clusters: label of each row's cluster, see :func:`bootstrap_mean`.
        block: see :func:`bootstrap_mean`.

    Returns:
        One interval a column, ``None`` for a column without a value.

    Raises:
        ValueError: as :func:`bootstrap_mean`, or ``present`` has another shape.
    """
    values, filled = _split_gaps(matrix, present)
    means = resampled_means(values, filled, clusters=clusters, resamples=resamples, seed=seed, level=level, block=block)
    return tuple(
        percentile_interval(part, level, resamples, _method(clusters, seed)) if len(part) else None for part in means
    )


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    block: int | None = None,
) -> Interval:
    """Percentile bootstrap interval of a ratio of sums, such as a weighted mean.

    A unit brings a numerator and a denominator; a resample draws as many units as there are and divides the sum of
    their numerators by that of their denominators. With all denominators 1 it is :func:`bootstrap_mean`.

    Args:
        numerators: n finite numbers, n >= 1.
        denominators: n numbers above 0.
        resamples: see :func:`bootstrap_mean`.
        seed: see :func:`bootstrap_mean`.
        level: see :func:`bootstrap_mean`.
        block: see :func:`bootstrap_mean`.

    Raises:
        ValueError: lengths that differ, a number that is not finite, a denominator that is not above 0, or an argument
            outside its range.

    >>> bootstrap_ratio([1.0, 3.0], [2.0, 6.0]).lower
    0.5
    """
    (found,) = ratio_intervals([(numerators, denominators)], resamples=resamples, seed=seed, level=level, block=block)
    return found


def ratio_intervals(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    block: int | None = None,
) -> list[Interval]:
    """Intervals of several ratios with equally many units, all on the same resamples; see :func:`bootstrap_ratio`.

    Raises:
        ValueError: see :func:`bootstrap_ratio`.
    """
    check_level(level)
    checked = [_ratio_columns(above, below) for above, below in pairs]
    columns = np.concatenate(checked, axis=1)
    sums = resampled_sums(columns, resamples=resamples, seed=seed, block=block)
    method = f"percentile bootstrap of the ratio of sums, units drawn with replacement, seed {seed}"
    intervals = []
    for place, own in enumerate(checked):
        drawn, ratios = sums[:, 2 * place] / sums[:, 2 * place + 1], own[:, 0] / own[:, 1]
        intervals.append(percentile_interval(np.clip(drawn, ratios.min(), ratios.max()), level, resamples, method))
    return intervals


def _ratio_columns(numerators: ArrayLike, denominators: ArrayLike) -> Floats:
    above, below = finite_array(numerators, "numerators"), finite_array(denominators, "denominators")
    if len(above) != len(below):
        raise ValueError(f"{len(above)} numerators and {len(below)} denominators; each unit brings one of both")
    if len(bad := np.flatnonzero(below <= 0)):
        raise ValueError(f"denominators[{bad[0]}] is {below[bad[0]]}; it must be above 0: leave such a unit out")
    columns: Floats = np.stack([above, below], axis=1)
    return columns


def check_level(level: float) -> None:
    """Refuse what is no nominal coverage.

    Raises:
        ValueError: the level does not lie strictly between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it lies strictly between 0 and 1 (95 % is 0.95)")


def resampled_means(
    values: Floats,
    present: NDArray[np.bool_] | None = None,
    *,
    clusters: Sequence[Hashable] | None,
    resamples: int,
    seed: int,
    level: float,
    block: int | None = None,
) -> list[Floats]:
    """For each column of ``values`` ``(n, m)`` its means over the resamples that have one.

    ``values`` must be 0 where ``present`` is false. Means are held within the range of the column, which rounding
    could leave by one unit in the last place.

    Raises:
        ValueError: see :func:`bootstrap_mean`.
    """
    check_level(level)
    check_resampling(len(values), resamples, seed)
    filled = np.ones(values.shape, dtype=bool) if present is None else present
    weighted = np.flatnonzero(~filled.all(axis=0)) if clusters is None else np.arange(values.shape[1])
    columns = np.concatenate([values, filled[:, weighted].astype(np.float64)], axis=1)
    if clusters is not None:
        columns = _cluster_sums(columns, clusters)
    sums = resampled_sums(columns, resamples=resamples, seed=seed, block=block)
    weights = {column: sums[:, values.shape[1] + place] for place, column in enumerate(weighted.tolist())}
    units = float(len(values))
    means = []
    for column in range(values.shape[1]):
        own = values[filled[:, column], column]
        weight = weights.get(column)
        defined = sums[:, column] / units if weight is None else _ratio(sums[:, column], weight)
        means.append(np.clip(defined, own.min(), own.max()) if len(own) else defined)
    return means


def percentile_interval(means: Floats, level: float, resamples: int, method: str) -> Interval:
    """The middle ``level`` of ``means``, by linear interpolation (see :func:`gen_eval.stats.percentile`)."""
    tail = 100 * (1 - level) / 2
    lower, upper = np.percentile(means, [tail, 100 - tail], method="linear").tolist()
    return Interval(lower, upper, level, len(means), method, resamples - len(means))


def _method(clusters: Sequence[Hashable] | None, seed: int) -> str:
    if clusters is None:
        return f"percentile bootstrap of the mean, units drawn with replacement, seed {seed}"
    return f"percentile bootstrap of the mean, whole clusters drawn with replacement, ratio of sums, seed {seed}"


def _ratio(sums: Floats, weights: Floats) -> Floats:
    defined = weights > 0
    ratio: Floats = sums[defined] / weights[defined]
    return ratio


def _cluster_sums(columns: Floats, clusters: Sequence[Hashable]) -> Floats:
    """Sums of the rows of each cluster, clusters in order of first appearance."""
    if len(clusters) != len(columns):
        raise ValueError(f"{len(clusters)} cluster labels for {len(columns)} values; each value needs one")
    places: dict[Hashable, int] = {}
    place = np.array([places.setdefault(label, len(places)) for label in clusters], dtype=np.int64)
    sums = [np.bincount(place, weights=column, minlength=len(places)) for column in columns.T]
    return np.stack(sums, axis=1)


def _split_gaps(matrix: ArrayLike, present: NDArray[np.bool_] | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Values with 0 in the gaps, and which entries are no gaps."""
    given: NDArray[Any] = np.asarray(matrix)
    if present is not None:
        present = np.asarray(present)
    elif given.dtype == object:
        present = np.array([entry is not None for entry in given.flat], dtype=bool).reshape(given.shape)
    else:
        present = np.ones(given.shape, dtype=bool)
    if present.shape != given.shape or present.dtype != np.bool_:
        raise ValueError(
            f"present is {present.shape} {present.dtype}; the shape of matrix, {given.shape}, and bool are needed"
        )
    return finite_array(np.where(present, given, 0.0), "matrix", ndim=2), present
