"""The ends of an interval of a share, and a bootstrap over videos for questions that share them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from gen_eval.stats import bootstrap_mean


@dataclass(frozen=True)
class Ends:
    """Both ends of an interval, 0..1."""

    lower: float
    upper: float

    def to_json(self) -> list[float]:
        """As plain JSON values."""
        return [self.lower, self.upper]


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
