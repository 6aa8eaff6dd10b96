"""Means of many columns at once: as :func:`mean_with_coverage`, with resamples shared between columns.

Drawing the resamples is nearly all the work of an interval, and they depend on the number of units (and their clusters)
only. Columns of equal size are therefore resampled together; every number is the one that the column alone would have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from gen_eval.stats.aggregate import Aggregate, MembersRule, Units, Weights, mean_with_coverage, units_of
from gen_eval.stats.intervals import Interval, bootstrap_columns, ratio_intervals

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
        weights: of the members that have a value, for the rule ``frame_weighted``.
        clusters: sample -> what it shares with samples that are not independent of it (a video with several
            questions): the interval draws these together. Not for the rule ``frame_weighted``.
    """

    values: Values
    rule: MembersRule
    higher_is_better: bool
    unit: str
    interval: bool = True
    weights: Weights | None = None
    clusters: Mapping[str, str] | None = None

    def units(self) -> Units:
        """What the mean goes over.

        Raises:
            ValueError: see :func:`mean_with_coverage`.
        """
        return units_of(self.values, self.rule, self.weights)

    def sums(self) -> dict[str, tuple[float, float]]:
        """Numerator and denominator that each sample with a value brings: the mean is the ratio of their sums.

        Raises:
            ValueError: see :func:`mean_with_coverage`.
        """
        return dict(zip(_filled(self), zip(*self.units().sums(), strict=True), strict=True))


def aggregates(columns: Sequence[Column]) -> list[Aggregate]:
    """The aggregate of each column, in their order.

    Raises:
        ValueError: a value is not finite; sample and member are named.
    """
    means = [
        mean_with_coverage(
            one.values,
            members=one.rule,
            weights=one.weights,
            higher_is_better=one.higher_is_better,
            unit=one.unit,
            resamples=0,
        )
        for one in columns
    ]
    for place, interval in (*_intervals(columns), *_weighted_intervals(columns)):
        means[place] = replace(means[place], lower=interval.lower, upper=interval.upper, interval=interval)
    return means


def _intervals(columns: Sequence[Column]) -> Iterator[tuple[int, Interval]]:
    alike: dict[tuple[int, tuple[int, ...] | None], list[tuple[int, list[float]]]] = defaultdict(list)
    for place, column in enumerate(columns):
        filled = _filled(column)
        labels = _labels(column, filled)
        drawn = len(filled) if labels is None else len(set(labels))
        if column.interval and column.rule != "frame_weighted" and drawn >= 2:
            values = column.units().values
            alike[len(values), labels].append((place, values))
    for (_, labels), found in alike.items():
        matrix = np.array([values for _, values in found]).T
        intervals = bootstrap_columns(matrix, resamples=RESAMPLES, clusters=labels)
        for (place, _), interval in zip(found, intervals, strict=True):
            assert interval is not None  # no column here has gaps
            yield place, interval


def _labels(column: Column, filled: Mapping[str, list[float]]) -> tuple[int, ...] | None:
    """Cluster of each unit, numbered as they first appear; ``None`` when every unit is drawn by itself."""
    names = [key if column.clusters is None else column.clusters.get(key, key) for key in filled]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    if column.rule == "sample_first":
        return None if len(places) == len(names) else tuple(places[name] for name in names)
    return tuple(places[name] for name, own in zip(names, filled.values(), strict=True) for _ in own)


def _weighted_intervals(columns: Sequence[Column]) -> Iterator[tuple[int, Interval]]:
    alike: dict[int, list[tuple[int, tuple[list[float], list[float]]]]] = defaultdict(list)
    for place, column in enumerate(columns):
        if column.interval and column.rule == "frame_weighted" and len(filled := _filled(column)) >= 2:
            alike[len(filled)].append((place, column.units().sums()))
    for found in alike.values():
        intervals = ratio_intervals([sums for _, sums in found], resamples=RESAMPLES)
        yield from zip([place for place, _ in found], intervals, strict=True)


def _filled(column: Column) -> dict[str, list[float]]:
    """The values of each sample that has one, in key order."""
    own = {key: [value for value in column.values[key].values() if value is not None] for key in sorted(column.values)}
    return {key: values for key, values in own.items() if values}
