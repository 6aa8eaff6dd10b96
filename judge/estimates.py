"""Shares and differences of shares among answers about scenes, with intervals that know which scene they belong to.

Answers about one scene depend on each other, so a scene is the unit. With few scenes a bootstrap would be too narrow;
these intervals are Wilson's and Student's with the number of scenes in the place of the number of answers as far as
the data ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from gen_eval.stats import exact_mean, wilson

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: ``None`` when there is nothing to estimate it from.
        lower: end of the 95 % interval; ``None`` with fewer than two scenes.
        upper: likewise.
        n: answers (or pairs of answers) that it is made of.
        scenes: that they are about.
    """

    value: float | None
    lower: float | None
    upper: float | None
    n: int
    scenes: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))

    def __str__(self) -> str:
        if self.value is None:
            return "no value (n = 0)"
        ends = "" if self.lower is None or self.upper is None else f" [{self.lower:.3f}, {self.upper:.3f}]"
        return f"{self.value:.3f}{ends} (n = {self.n}, {self.scenes} scenes)"


NOTHING = Estimate(None, None, None, 0, 0)


def share(answers: Iterable[tuple[Hashable, bool]]) -> Estimate:
    """The share of true ones among (scene, value).

    The interval is Wilson's for an effective number of answers: n over the design effect (variance between scenes over
    that of independent answers, at least 1), times (z / t)^2 with t of Student's distribution with scenes - 1 degrees
    of freedom (Korn and Graubard, 1998, with Wilson's interval in the place of Clopper's and Pearson's).

    >>> print(share([("a", True), ("a", True), ("b", False), ("b", True)]))
    0.750 [0.010, 0.999] (n = 4, 2 scenes)
    """
    values = [(scene, float(value)) for scene, value in answers]
    if not values:
        return NOTHING
    mean = exact_mean([value for _, value in values])
    sums = _by_scene(values)
    if len(sums) < 2:
        return Estimate(mean, None, None, len(values), len(sums))
    n = len(values)
    independent = mean * (1 - mean) / n
    effect = max(1.0, _variance(sums, mean, n) / independent) if independent > 0 else 1.0
    effective = n / effect * (_normal() / _student(len(sums) - 1)) ** 2
    lower, upper = wilson(mean, effective, level=LEVEL)
    return Estimate(mean, lower, upper, n, len(sums))


def mean_difference(differences: Iterable[tuple[Hashable, float]]) -> Estimate:
    """The mean of (scene, difference), each in -1..1.

    The interval is Student's, from the scenes' sums (ratio estimator) with scenes - 1 degrees of freedom. Where all
    differences are equal it is as wide as the share of other ones may be that were not met: Wilson's end for 0 of n.

    >>> print(mean_difference([("a", 1.0), ("a", 0.0), ("b", 1.0), ("c", 0.0)]))
    0.500 [-0.432, 1.000] (n = 4, 3 scenes)
    """
    values = list(differences)
    if not values:
        return NOTHING
    mean = exact_mean([value for _, value in values])
    sums = _by_scene(values)
    if len(sums) < 2:
        return Estimate(mean, None, None, len(values), len(sums))
    n = len(values)
    t = _student(len(sums) - 1)
    half = t * math.sqrt(_variance(sums, mean, n))
    if len({value for _, value in values}) == 1:
        half = wilson(0.0, n * (_normal() / t) ** 2, level=LEVEL)[1]
    return Estimate(mean, max(-1.0, mean - half), min(1.0, mean + half), n, len(sums))


def _by_scene(values: Iterable[tuple[Hashable, float]]) -> list[tuple[float, int]]:
    """Sum and count of each scene."""
    found: dict[Hashable, list[float]] = {}
    for scene, value in values:
        found.setdefault(scene, []).append(value)
    return [(math.fsum(own), len(own)) for own in found.values()]


def _variance(sums: Sequence[tuple[float, int]], mean: float, n: int) -> float:
    """Variance of the ratio of the sums, scenes being the units."""
    residuals = [total - mean * count for total, count in sums]
    units = len(sums)
    return units / (units - 1) * math.fsum(one * one for one in residuals) / n**2


def _normal() -> float:
    return NormalDist().inv_cdf((1 + LEVEL) / 2)


def _student(degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))


__all__ = ["LEVEL", "NOTHING", "Estimate", "mean_difference", "share"]
