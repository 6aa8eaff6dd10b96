"""Intervals of a share: Wilson's for independent questions, a bootstrap over videos for questions that share them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from gen_eval.stats import bootstrap_mean


@dataclass(frozen=True)
class Ends:
    """Both ends of an interval, 0..1."""

    lower: float
    upper: float

    def to_json(self) -> list[float]:
        """As plain JSON values."""
        return [self.lower, self.upper]


def wilson(correct: int, n: int, *, level: float = 0.95) -> Ends:
    """Wilson's score interval of a share (E. B. Wilson, 1927): stays in 0..1 and has width at 0 and at 1.

    With p = correct / n and z the two-sided quantile: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n).

    Args:
        correct: 0..n.
        n: at least 1.
        level: nominal coverage, strictly between 0 and 1.

    Raises:
        ValueError: an argument outside its range.

    >>> [round(end, 4) for end in wilson(39, 59).to_json()]
    [0.5337, 0.7686]
    """
    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} is no share; 0 <= correct <= n and n >= 1 are needed")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it lies strictly between 0 and 1 (95 % is 0.95)")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = correct / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    lower = 0.0 if correct == 0 else max(0.0, middle - half)
    upper = 1.0 if correct == n else min(1.0, middle + half)
    return Ends(lower, upper)


def over_clusters(
    values: Sequence[float], clusters: Sequence[Hashable], *, resamples: int = 10_000, seed: int = 0
) -> Ends | None:
    """Percentile bootstrap of the mean in which whole clusters (videos) are drawn; ``None`` with fewer than two.

    Args:
        values: one a question, in key order.
        clusters: the video of each.
        resamples: number of resamples; 0 for no interval.
        seed: of the draws.
    """
    if resamples == 0 or len(set(clusters)) < 2:
        return None
    found = bootstrap_mean(values, clusters=clusters, resamples=resamples, seed=seed)
    return Ends(found.lower, found.upper)
