"""What votes tell of every difference of two systems, and what more votes would add.

Strengths t of Bradley-Terry have the sandwich covariance V = H^-1 G H^-1 with H = sum p (1 - p) x x', G = sum over
independent units of the outer products of their scores, and x = +1, -1 at the two systems. m more votes about x add
m w x x' to H and m c x x' to G, where w = p (1 - p) and c = Var(s). With u = H^-1 x and h = x' u (Sherman, Morrison):

    V becomes (I - k u x') V (I - k x u') + m c u u' / (1 + m w h)^2,  k = m w / (1 + m w h)

c is taken as noise * w. The noise is the dispersion, sum of (s - p)^2 / sum of p (1 - p), which is below 1 where ties
are called, times the clustering. Both are pooled over pairs, since few votes of one pair say little about them.

K independent units give G a rank of at most K - 1: with fewer units than systems V calls some differences exact, which
they are not. There V is taken from the model, noise * H^-1.

Intervals are those of the ratings: of votes by the normal distribution, of K clusters by Student's t with K - 1 degrees
of freedom, which further votes leave as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from gen_eval.arena.bradley_terry import HalfTies
from gen_eval.arena.cells import cells_of
from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.connectivity import Diagnosis
from gen_eval.arena.estimation import covariance
from gen_eval.arena.fitting import pinned
from gen_eval.arena.intervals import freedom_of, half_width
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class Information:
    """Strengths and what is known of them, in units of t.

    Attributes:
        models: M names, sorted.
        theta: ``(M,)`` strengths, mean 0.
        n: votes.
        bread: ``(M, M)`` H^-1 on strengths about their mean.
        covariance: ``(M, M)`` V; the noise times H^-1 where there are fewer units than systems.
        dispersion: variance of a vote's score as a share of p (1 - p).
        clustering: how many times as much variance the ratings have as they would if votes were independent, at least
            1; a further vote is taken to depend on others as much as those at hand.
        unit: what was taken as independent; votes where another unit occurs once only.
        units: how many there are.
    """

    models: tuple[str, ...]
    theta: Floats
    n: int
    bread: Floats
    covariance: Floats
    dispersion: float
    clustering: float
    unit: Unit
    units: int

    def variances(self) -> Floats:
        """``(M, M)`` variance of each difference; what rounding took below 0 is 0."""
        own = np.diag(self.covariance)
        found: Floats = np.maximum(own[:, None] + own[None, :] - 2 * self.covariance, 0.0)
        return found

    @property
    def freedom(self) -> int | None:
        """Degrees of freedom of intervals; ``None`` for normal ones."""
        return freedom_of(self.unit, self.units)

    def half_widths(self, level: float) -> Floats:
        """``(M, M)`` half the width of the interval of each difference."""
        return half_width(self.variances(), level, self.freedom)

    def curvature(self, i: int, j: int) -> float:
        """The product p (1 - p) for a vote about systems ``i`` and ``j``."""
        chance = float(expit(self.theta[i] - self.theta[j]))
        return chance * (1 - chance)

    @property
    def noise(self) -> float:
        """Variance that a further vote brings, as a share of p (1 - p)."""
        return self.dispersion * self.clustering

    def with_votes(self, i: int, j: int, votes: int = 1) -> Information:
        """What is expected once further votes about ``i`` and ``j`` are in; strengths stay where they are."""
        weight = votes * self.curvature(i, j)
        along = self.bread[:, i] - self.bread[:, j]
        growth = 1 + weight * (along[i] - along[j])
        shrunk = self.covariance - (weight / growth) * np.outer(along, self.covariance[i] - self.covariance[j])
        shrunk -= (weight / growth) * np.outer(shrunk[:, i] - shrunk[:, j], along)
        return replace(
            self,
            n=self.n + votes,
            bread=self.bread - np.outer(along, along) * (weight / growth),
            covariance=shrunk + np.outer(along, along) * (self.noise * weight / growth**2),
        )


def information_of(comparisons: Comparisons, unit: Unit | None = None) -> Information | Diagnosis:
    """Strengths by maximum likelihood (ties as half a win) and what is known of them, or why there are none.

    Args:
        comparisons: at least one.
        unit: what is independent; ``None`` takes :attr:`Comparisons.unit`.

    Raises:
        ValueError: there is no comparison, or annotators are asked for and a vote has none.
    """
    model = HalfTies(cells_of(comparisons))
    if (problem := model.diagnose()) is not None:
        return problem
    cells = model.cells
    unit = comparisons.unit if unit is None else unit
    if comparisons.clusters(unit)[1] < 2:
        unit = "votes"
    theta = model.maxima(cells.counts[None])[0][0]
    bread = np.linalg.inv(pinned(model.information(theta)[None], len(cells.models)))[0]
    independent = covariance(comparisons, model, theta, "votes")
    spread = independent if unit == "votes" else covariance(comparisons, model, theta, unit)
    alone = float(np.trace(independent))
    chance = expit(theta[cells.a] - theta[cells.b])
    expected = float((cells.counts * chance * (1 - chance)).sum())
    found = Information(
        models=cells.models,
        theta=theta,
        n=len(comparisons),
        bread=bread - bread.mean(axis=0),
        covariance=spread,
        dispersion=float((cells.counts * (cells.score - chance) ** 2).sum()) / expected,
        clustering=max(1.0, float(np.trace(spread)) / alone) if alone else 1.0,
        unit=unit,
        units=comparisons.clusters(unit)[1],
    )
    if found.units >= len(found.models):
        return found
    centred = found.bread - found.bread.mean(axis=1, keepdims=True)
    return replace(found, covariance=found.noise * centred)


__all__ = ["Information", "information_of"]
