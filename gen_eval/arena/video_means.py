"""Mean scores of systems from scores of videos, for many drawn sets of samples at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from gen_eval.arena.coefficients import Bools
from gen_eval.arena.comparisons import Ints
from gen_eval.arena.systems import SystemColumn, VideoScores
from gen_eval.stats.summaries import Floats, exact_mean, finite_number

Metric: TypeAlias = "VideoScores | Sequence[Metric]"
"""One metric, or the parts of a total: the mean over parts of their means, each part with equal weight and scaled as it
is. A part may be a total itself (Overall is the mean of Quality, the mean of eight, and Domain)."""


class PartSums(NamedTuple):
    """A part of a total as two ``(M, S)`` matrices: means over seeds, and ones where there is one."""

    weight: float
    values: sparse.csr_array
    filled: sparse.csr_array


Sums = list[PartSums]


@dataclass(frozen=True)
class MetricTable:
    """Means over seeds of one metric, or of each part of a total.

    Attributes:
        name: of the metric.
        parts: (system, sample) -> mean over the seeds.
        weights: of the parts, in sum 1.
        higher_is_better: ``False`` for an error.
    """

    name: str
    parts: tuple[Mapping[tuple[str, str], float], ...]
    weights: tuple[float, ...]
    higher_is_better: bool

    @classmethod
    def of(cls, name: str, metric: Metric) -> MetricTable:
        """Means over seeds.

        Raises:
            ValueError: no parts, scores and errors mixed, or a value that is not finite.
        """
        parts, weights = zip(*_weighted(name, metric, 1.0), strict=True)
        if len({part.higher_is_better for part in parts}) > 1:
            raise ValueError(f"{name} mixes scores and errors, whose mean says nothing; turn or leave out one kind")
        return cls(name, tuple(_sample_means(part) for part in parts), weights, parts[0].higher_is_better)

    @cached_property
    def models(self) -> frozenset[str]:
        """Systems with a value in every part."""
        return frozenset.intersection(*(frozenset(model for model, _ in part) for part in self.parts))

    @cached_property
    def samples(self) -> frozenset[str]:
        """Samples with a value of any system."""
        return frozenset(sample for part in self.parts for _, sample in part)

    def sums(self, models: Sequence[str], samples: Mapping[str, int]) -> Sums:
        """The values of the named systems by place of the sample."""
        return [
            PartSums(weight, *_matrices(part, models, samples))
            for part, weight in zip(self.parts, self.weights, strict=True)
        ]

    def column(self, models: Iterable[str]) -> SystemColumn:
        """Mean over parts of the mean over samples; for systems in :attr:`models`."""
        values: dict[str, float | None] = {}
        for name in models:
            own = [[value for (model, _), value in part.items() if model == name] for part in self.parts]
            values[name] = math.fsum(weight * exact_mean(part) for part, weight in zip(own, self.weights, strict=True))
        return SystemColumn(self.name, values, higher_is_better=self.higher_is_better)


def name_of(scores: Metric) -> str:
    """Name of a metric, or of a total by its parts."""
    if isinstance(scores, VideoScores):
        return scores.metric
    return name_of(scores[0]) if len(scores) == 1 else f"mean of {', '.join(map(name_of, scores))}"


def _weighted(name: str, metric: Metric, weight: float) -> Iterator[tuple[VideoScores, float]]:
    """The scores that a metric is made of, each with its share of the whole."""
    if isinstance(metric, VideoScores):
        yield metric, weight
        return
    if not metric:
        raise ValueError(f"{name} has no parts; give the scores of at least one")
    for part in metric:
        yield from _weighted(name, part, weight / len(metric))


def _sample_means(scores: VideoScores) -> dict[tuple[str, str], float]:
    means = {}
    for key, members in scores.values.items():
        where = f"{scores.metric} of {key[0]!r}, sample {key[1]!r}"
        if members:
            means[key] = exact_mean([finite_number(value, where) for value in members.values()])
    return means


def _matrices(
    part: Mapping[tuple[str, str], float], models: Sequence[str], samples: Mapping[str, int]
) -> tuple[sparse.csr_array, ...]:
    place = {name: index for index, name in enumerate(models)}
    entries = [(place[model], samples[sample], value) for (model, sample), value in part.items() if model in place]
    rows: Ints = np.array([row for row, _, _ in entries], dtype=np.int64)
    columns: Ints = np.array([column for _, column, _ in entries], dtype=np.int64)
    values = np.array([value for _, _, value in entries], dtype=np.float64)
    shape = (len(models), len(samples))
    return tuple(sparse.coo_array((own, (rows, columns)), shape=shape).tocsr() for own in (values, np.ones(len(rows))))


def resampled_means(parts: Sums, weights: Floats) -> tuple[Floats, Bools]:
    """``(k, M)`` mean of each system over the drawn samples, and ``(k,)`` whether every one has a mean in each part."""
    turned = np.ascontiguousarray(weights.T)
    total = np.zeros((len(weights), parts[0].values.shape[0]))
    present = np.ones(len(weights), dtype=bool)
    for weight, values, filled in parts:
        sums, counts = (values @ turned).T, (filled @ turned).T
        present &= (counts > 0).all(axis=1)
        total += weight * (sums / np.maximum(counts, 1))
    return total, present


__all__ = ["Metric", "MetricTable", "Sums", "name_of", "resampled_means"]
