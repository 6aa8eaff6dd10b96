"""Interval of a share of independent cases, in closed form."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(share: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Both ends of Wilson's score interval of a share (E. B. Wilson, 1927): stays in 0..1 and has width at 0 and at 1.

    With p the share and z the two-sided quantile: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n).

    Args:
        share: of the cases that something is true of, 0..1.
        n: number of cases; no whole number where it is an effective one, of cases that depend on each other.
        level: nominal coverage, strictly between 0 and 1.

    Raises:
        ValueError: an argument outside its range.

    >>> [round(end, 4) for end in wilson(39 / 59, 59)]
    [0.5337, 0.7686]
    """
    if not 0 <= share <= 1 or not 0 < n < math.inf:
        raise ValueError(f"{share} of {n} cases is no share; it lies in 0..1, and n above 0")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it lies strictly between 0 and 1 (95 % is 0.95)")
    z = NormalDist().inv_cdf((1 + level) / 2)
    weight = z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    # rounding may neither move an end past the share nor leave 0 or 1 just short
    lower = 0.0 if share == 0 else min(max(0.0, middle - half), share)
    return (lower, 1.0 if share == 1 else max(min(1.0, middle + half), share))
