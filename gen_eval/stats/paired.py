"""Two systems on the samples that both have: the mean difference and how sure it is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from gen_eval.stats.intervals import Interval, percentile_interval, resampled_means
from gen_eval.stats.summaries import Floats, exact_mean, finite_number


@dataclass(frozen=True)
class PairedDifference:
    """How system a differs from system b, sample by sample.

    Attributes:
        difference: mean of a - b over the common samples; ``None`` without any.
        lower: lower end of its interval; ``None`` with fewer than two units (samples, or clusters).
        upper: upper end, likewise.
        n: samples with a value in both.
        only_a: samples with a value in a only, sorted.
        only_b: samples with a value in b only, sorted.
        neither: samples named by either side that have a value in none.
        share_above_zero: share of the resamples with a mean difference above 0; ``None`` without an interval.
        p_value: two-sided bootstrap p of "no difference"; ``None`` without an interval.
        interval: how the interval was made.
    """

    difference: float | None
    lower: float | None
    upper: float | None
    n: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    neither: int
    share_above_zero: float | None = None
    p_value: float | None = None
    interval: Interval | None = None

    def __str__(self) -> str:
        if self.difference is None:
            return "no difference: no sample has a value in both"
        ends = "" if self.lower is None or self.upper is None else f" [{self.lower:+.6g}, {self.upper:+.6g}]"
        chance = "" if self.p_value is None else f", p = {self.p_value:.3g}"
        return f"{self.difference:+.6g}{ends} (n = {self.n}{chance})"


def paired_difference(
    a: Mapping[str, float | None],
    b: Mapping[str, float | None],
    *,
    clusters: Mapping[str, Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> PairedDifference:
    """Mean difference a - b over the samples that have a value in both, with a paired percentile bootstrap.

    A resample draws common samples (or whole clusters of them) and keeps the two values of a sample together, so what
    makes a sample hard for both systems drops out. The p value is twice the smaller share of resamples on either side
    of 0, ties counted on both sides and one added above and below, at most 1: (1 + k) / (1 + resamples), doubled.

    Args:
        a: value of each sample, ``None`` for none.
        b: likewise.
        clusters: cluster of each common sample; samples of one cluster are drawn together.
        resamples: number of resamples.
        seed: non-negative; samples are taken in the order of their names, so mappings may come in any order.
        level: nominal coverage of the interval.

    Raises:
        ValueError: a value that is not finite (side and sample are named), a common sample without a cluster, or an
            argument outside its range.
        TypeError: a value that is no number.
    """
    own = {key: finite_number(value, f"a[{key!r}]") for key, value in a.items() if value is not None}
    other = {key: finite_number(value, f"b[{key!r}]") for key, value in b.items() if value is not None}
    common = sorted(own.keys() & other.keys())
    only_a = tuple(sorted(own.keys() - other.keys()))
    only_b = tuple(sorted(other.keys() - own.keys()))
    neither = len((a.keys() | b.keys()) - own.keys() - other.keys())
    if not common:
        return PairedDifference(None, None, None, 0, only_a, only_b, neither)
    differences = [finite_number(own[key] - other[key], f"a - b at {key!r}") for key in common]
    mean = exact_mean(differences)
    labels = None if clusters is None else _labels(common, clusters)
    if len(common if labels is None else set(labels)) < 2:
        return PairedDifference(mean, None, None, len(common), only_a, only_b, neither)
    (means,) = resampled_means(
        np.array(differences)[:, None], clusters=labels, resamples=resamples, seed=seed, level=level
    )
    unit = "samples" if labels is None else "whole clusters of samples"
    interval = percentile_interval(
        means,
        level,
        resamples,
        f"percentile bootstrap of the mean paired difference, {unit} drawn with replacement, seed {seed}",
    )
    return PairedDifference(
        mean,
        interval.lower,
        interval.upper,
        len(common),
        only_a,
        only_b,
        neither,
        *chances_of(means),
        interval,
    )


def chances_of(means: Floats) -> tuple[float, float]:
    """Share of resampled differences above 0, and the two-sided p value of "no difference"."""
    above, below = int(np.count_nonzero(means > 0)), int(np.count_nonzero(means < 0))
    least = len(means) - max(above, below)
    return above / len(means), min(1.0, 2 * (least + 1) / (len(means) + 1))


def _labels(common: list[str], clusters: Mapping[str, Hashable]) -> list[Hashable]:
    missing = [key for key in common if key not in clusters]
    if missing:
        raise ValueError(
            f"{len(missing)} common samples have no cluster, the first is {missing[0]!r}; name one for each"
        )
    return [clusters[key] for key in common]
