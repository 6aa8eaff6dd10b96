"""Means of many columns at once: as :func:`gen_eval.stats.mean_with_coverage`, with resamples shared between columns.

Drawing the resamples is nearly all the work of an interval, and they depend on the number of units (and their clusters)
only. Columns of equal size are therefore resampled together; every number is the one that the column alone would have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from gen_eval.stats import Aggregate, Interval, MembersRule, bootstrap_columns, exact_mean, mean_with_coverage

Values: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""Sample -> member -> value, ``None`` for a gap."""

RESAMPLES = 10_000


@dataclass(frozen=True)
class Column:
    """One mean that is wanted.

    Attributes:
        values: every expected sample, also those without any value.
        rule: how members enter.
        higher_is_better: whether the mean with gaps as 0 makes sense.
        unit: of the values.
        interval: whether an interval is wanted.
    """

    values: Values
    rule: MembersRule
    higher_is_better: bool
    unit: str
    interval: bool = True


class _Units(NamedTuple):
    """What is averaged, and how many of them belong to each cluster (``None``: each stands for itself)."""

    values: list[float]
    clusters: tuple[int, ...] | None


def aggregates(columns: Sequence[Column]) -> list[Aggregate]:
    """The aggregate of each column, in their order.

    Raises:
        ValueError: a value is not finite; sample and member are named.
    """
    means = [
        mean_with_coverage(
            one.values, members=one.rule, higher_is_better=one.higher_is_better, unit=one.unit, resamples=0
        )
        for one in columns
    ]
    for place, interval in _intervals(columns):
        means[place] = replace(means[place], lower=interval.lower, upper=interval.upper, interval=interval)
    return means


def _intervals(columns: Sequence[Column]) -> Iterator[tuple[int, Interval]]:
    alike: dict[tuple[int, tuple[int, ...] | None], list[tuple[int, list[float]]]] = defaultdict(list)
    for place, column in enumerate(columns):
        units = _units(column)
        if column.interval and len(units.values if units.clusters is None else units.clusters) >= 2:
            alike[len(units.values), units.clusters].append((place, units.values))
    for (_, clusters), found in alike.items():
        matrix = np.array([values for _, values in found]).T
        labels = None if clusters is None else np.repeat(np.arange(len(clusters)), clusters).tolist()
        intervals = bootstrap_columns(matrix, resamples=RESAMPLES, clusters=labels)
        for (place, _), interval in zip(found, intervals, strict=True):
            assert interval is not None  # no column here has gaps
            yield place, interval


def _units(column: Column) -> _Units:
    filled = []
    for sample in sorted(column.values):
        if own := [value for value in column.values[sample].values() if value is not None]:
            filled.append(own)
    if column.rule == "sample_first":
        return _Units([exact_mean(own) for own in filled], None)
    return _Units([value for own in filled for value in sorted(own)], tuple(map(len, filled)))
