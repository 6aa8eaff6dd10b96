"""Intervals of ratings and of every difference of two, and the places that these allow.

Two bars that overlap say little about which of two systems is better: errors of ratings are correlated. So each pair
has an interval of its own, and ranks are read from those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.special import expit, stdtrit

from gen_eval.arena.comparisons import Ints
from gen_eval.arena.ratings import Difference, Rank
from gen_eval.arena.scale import BASE, SCALE
from gen_eval.stats.intervals import check_level
from gen_eval.stats.summaries import Floats

_BLOCK = 1 << 20
"""Differences of draws held at a time (8 MiB)."""

_ROUNDING = 9  # decimals

FEW_UNITS = 40
"""Independent units below which percentile intervals, which know no correction for it, cover less than their level:
of 95 % intervals from 12, 20, 30 clusters 91, 92, 93 % held the truth (simulated, see docs/arena.md)."""

FEW_CORRECTED = 10
"""The same for intervals that are corrected by the number of units (:func:`freedom_of`): with clusters of equal size
5 are enough for 95 %, but few clusters of very unequal sizes stay at 86 to 91 %."""


def few(units: int, unit: str, least: int = FEW_UNITS) -> str:
    """What a reader must know of intervals from few units; empty from ``least`` on."""
    return f"with only {units} {unit} it is likely too narrow" if units < least else ""


def one_unit(unit: str) -> str:
    """Why there is no interval when all votes are of one unit."""
    return f"no interval: all votes are of one of the {unit}, and nothing is known of how much others would differ"


def freedom_of(unit: str, units: int) -> int | None:
    """Degrees of freedom of intervals from a covariance: ``units - 1`` of clusters; ``None``, the normal, of votes.

    Votes keep the published normal interval. Clusters are few by nature, and their covariance is as uncertain as they
    are few; Student's t is the common remedy (Cameron and Miller 2015, Journal of Human Resources 50, section VI).
    """
    return None if unit == "votes" else units - 1


def quantile(chance: float, freedom: int | None) -> float:
    """Of Student's t, or of the normal distribution without degrees of freedom."""
    return NormalDist().inv_cdf(chance) if freedom is None else float(stdtrit(freedom, chance))


@dataclass(frozen=True)
class Uncertainty:
    """What follows from the uncertainty of M ratings.

    Attributes:
        lower: lower end by system; empty without intervals.
        upper: upper end by system; likewise.
        differences: of every two systems, the higher one first, from the top of the table down.
        ranks: by system.
        widened: ends that had to be moved to hold their estimate.
    """

    lower: Mapping[str, float]
    upper: Mapping[str, float]
    differences: tuple[Difference, ...]
    ranks: Mapping[str, Rank]
    widened: int = 0

    @property
    def remark(self) -> str:
        """What a reader must know of ``widened``; empty when nothing was."""
        if not self.widened:
            return ""
        ends = "one end was" if self.widened == 1 else f"{self.widened} ends were"
        return f"{ends} moved to hold the estimate, which the percentiles left out"


def from_draws(
    models: Sequence[str],
    ratings: Floats,
    draws: Floats,
    *,
    level: float = 0.95,
    base: float = BASE,
    scale: float = SCALE,
) -> Uncertainty:
    """Percentiles of resampled ratings and of their differences.

    A percentile interval need not contain what it is an interval of; one that does not is widened up to the estimate
    and counted.

    Args:
        models: M names.
        ratings: ``(M,)`` points.
        draws: ``(R, M)`` points of the resamples that gave ratings, R >= 1.
        level: nominal coverage, strictly between 0 and 1.
        base: see :func:`chances`.
        scale: see :func:`chances`.
    """
    check_level(level)
    if draws.ndim != 2 or draws.shape[1] != len(models) or not len(draws):
        raise ValueError(f"draws has shape {draws.shape}; expected one row or more of {len(models)} ratings")
    high, low = _pairs(models, ratings)
    columns = np.ascontiguousarray(draws.T)
    lower, upper, widened = _percentiles(columns, ratings, level)
    ends = np.empty((2, len(high)))
    rows = max(1, _BLOCK // len(draws))
    for start in range(0, len(high), rows):
        part = slice(start, start + rows)
        gaps = columns[high[part]] - columns[low[part]]
        *ends[:, part], moved = _percentiles(gaps, ratings[high[part]] - ratings[low[part]], level)
        widened += moved
    return _assembled(models, ratings, (lower, upper), (high, low), (ends[0], ends[1]), widened, base, scale)


def from_covariance(
    models: Sequence[str],
    ratings: Floats,
    covariance: Floats,
    *,
    level: float = 0.95,
    freedom: int | None = None,
    base: float = BASE,
    scale: float = SCALE,
) -> Uncertainty:
    """Intervals from the covariance of the ratings, normal ones or by Student's t.

    Args:
        models: M names.
        ratings: ``(M,)`` points.
        covariance: ``(M, M)`` points squared.
        level: nominal coverage, strictly between 0 and 1.
        freedom: see :func:`freedom_of`.
        base: see :func:`chances`.
        scale: see :func:`chances`.
    """
    half = half_width(np.diag(covariance), level, freedom)
    high, low = _pairs(models, ratings)
    spread = covariance[high, high] + covariance[low, low] - 2 * covariance[high, low]
    gap, around = ratings[high] - ratings[low], half_width(spread, level, freedom)
    own = (ratings - half, ratings + half)
    return _assembled(models, ratings, own, (high, low), (gap - around, gap + around), 0, base, scale)


def without_interval(
    models: Sequence[str], ratings: Floats, *, base: float = BASE, scale: float = SCALE
) -> Uncertainty:
    """Differences and places when nothing is known of the uncertainty: no ends, and every place is possible."""
    return _assembled(models, ratings, None, _pairs(models, ratings), None, 0, base, scale)


def half_width(variance: Floats, level: float, freedom: int | None = None) -> Floats:
    """Half the width of an interval about an estimate; a variance that rounding took below 0 is 0."""
    check_level(level)
    width: Floats = quantile((1 + level) / 2, freedom) * np.sqrt(np.maximum(variance, 0.0))
    return width


def chances(differences: Floats, base: float = BASE, scale: float = SCALE) -> Floats:
    """Probability that the first is preferred: 1 / (1 + base^(-difference / scale))."""
    found: Floats = expit(differences * (math.log(base) / scale))
    return found


def _told(ratings: Floats) -> Floats:
    """Ratings without the last digits, in which equal systems may differ."""
    return np.round(ratings, _ROUNDING)


def _apart(gaps: Floats) -> Floats:
    """Differences, and 0 for what is a last digit: with an interval of no width it would be a clear difference."""
    found: Floats = np.where(np.abs(gaps) < 10.0**-_ROUNDING, 0.0, gaps)
    return found


def _pairs(models: Sequence[str], ratings: Floats) -> tuple[Ints, Ints]:
    """Places of the higher and the lower system of every pair; equal ratings go by name."""
    told = _told(ratings)
    order = np.array(sorted(range(len(models)), key=lambda place: (-told[place], models[place])), dtype=np.int64)
    above, below = np.triu_indices(len(models), 1)
    return order[above], order[below]


def _percentiles(rows: Floats, estimates: Floats, level: float) -> tuple[Floats, Floats, int]:
    """Ends of each row of draws, and how many of them had to be moved."""
    tail = 100 * (1 - level) / 2
    lower, upper = np.percentile(rows, [tail, 100 - tail], axis=1, method="linear")
    least = 10.0**-_ROUNDING  # what rounding moves is no widening
    moved = int((lower - estimates > least).sum() + (estimates - upper > least).sum())
    return np.minimum(lower, estimates), np.maximum(upper, estimates), moved


def _assembled(
    models: Sequence[str],
    ratings: Floats,
    own: tuple[Floats, Floats] | None,
    pairs: tuple[Ints, Ints],
    ends: tuple[Floats, Floats] | None,
    widened: int,
    base: float,
    scale: float,
) -> Uncertainty:
    high, low = pairs
    gaps = _apart(ratings[high] - ratings[low])
    none: list[float | None] = [None] * len(gaps)
    lower, upper = (none, none) if ends is None else (_apart(end).tolist() for end in ends)
    rows = zip(
        high.tolist(), low.tolist(), gaps.tolist(), lower, upper, chances(gaps, base, scale).tolist(), strict=True
    )
    differences = tuple(Difference(models[one], models[two], *rest) for one, two, *rest in rows)
    lowest, highest = ({}, {}) if own is None else (dict(zip(models, part.tolist(), strict=True)) for part in own)
    clear = np.array([one.clear for one in differences], dtype=bool)
    return Uncertainty(lowest, highest, differences, _ranks(models, ratings, high[clear], low[clear]), widened)


def _ranks(models: Sequence[str], ratings: Floats, above: Ints, below: Ints) -> dict[str, Rank]:
    """Places from the clear differences, ``above[i]`` over ``below[i]``."""
    count = len(models)
    best = 1 + np.bincount(below, minlength=count)
    worst = count - np.bincount(above, minlength=count)
    told = _told(ratings)
    rank = 1 + np.searchsorted(np.sort(-told), -told, side="left")  # equal ratings share the better place
    rows = zip(models, rank.tolist(), best.tolist(), worst.tolist(), strict=True)
    return {name: Rank(*places) for name, *places in rows}


__all__ = [
    "FEW_CORRECTED",
    "FEW_UNITS",
    "Uncertainty",
    "chances",
    "few",
    "freedom_of",
    "from_covariance",
    "from_draws",
    "half_width",
    "one_unit",
    "quantile",
    "without_interval",
]
