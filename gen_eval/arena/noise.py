"""Correlation corrected for what few votes and few videos add: noise pulls r towards 0.

The spread of systems in ratings is true spread and noise: in expectation Sxx = true Sxx + Nx, likewise Syy, and
Sxy = true Sxy + Nxy where the same samples make both sides err together. A bootstrap repeats the noise, mean
Sxx* = Sxx + Nx, which gives all three N; taken off, r is that of unlimited votes and videos (Spearman's correction for
attenuation, 1904, with reliabilities from the bootstrap). A resample holds the noise twice, so its own r is corrected
with 2 N; these make the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gen_eval.arena.coefficients import Bools
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class NoiseCorrected:
    """Pearson's r that unlimited votes and videos of the same systems would give.

    Attributes:
        value: -1..1; ``None`` where noise alone makes as much spread as there is.
        lower: lower end of its percentile interval; ``None`` without a value.
        upper: upper end.
        reliability_ratings: share of the spread of ratings between systems that is no noise, at most 1; below 0 there
            is less spread than noise makes.
        reliability_scores: likewise of scores.
        beyond: resamples without spread beyond noise; they count as 1 or -1 by their sign.
    """

    value: float | None
    lower: float | None
    upper: float | None
    reliability_ratings: float
    reliability_scores: float
    beyond: int

    def __str__(self) -> str:
        shares = f"reliability of ratings {self.reliability_ratings:.2f}, of scores {self.reliability_scores:.2f}"
        if self.value is None:
            return f"no more spread between systems than noise makes; {shares}"
        return f"with the noise taken off r {self.value:.3f} [{self.lower:.3f}, {self.upper:.3f}]; {shares}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


def noise_corrected(x: Floats, y: Floats, drawn_x: Floats, drawn_y: Floats, level: float) -> NoiseCorrected:
    """Take the noise off that the resamples show.

    Args:
        x: ``(n,)`` ratings, not all equal.
        y: ``(n,)`` scores, not all equal.
        drawn_x: ``(R, n)`` ratings of at least one resample.
        drawn_y: ``(R, n)`` scores of the same.
        level: nominal coverage of the interval.
    """
    x, drawn_x = _scaled(x, drawn_x)
    y, drawn_y = _scaled(y, drawn_y)
    own = np.array([(x * x).sum(), (y * y).sum(), (x * y).sum()])
    drawn = np.array([(a * b).sum(axis=1) for a, b in ((drawn_x, drawn_x), (drawn_y, drawn_y), (drawn_x, drawn_y))])
    noise = drawn.mean(axis=1) - own
    values, clear = _corrected(own[:, None] - noise[:, None])
    resampled, kept = _corrected(drawn - 2 * noise[:, None])
    value = float(values[0]) if clear[0] else None
    ends = None if value is None else percentile_ends(resampled, value, level)
    reliabilities = np.minimum(1.0, 1 - noise[:2] / own[:2]).tolist()
    return NoiseCorrected(
        value=value,
        lower=None if ends is None else ends.lower,
        upper=None if ends is None else ends.upper,
        reliability_ratings=reliabilities[0],
        reliability_scores=reliabilities[1],
        beyond=int(np.count_nonzero(~kept)),
    )


def _scaled(column: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """Both with the mean of each row taken off, in units of the column's own spread."""
    size = np.abs(column).max()
    column, drawn = column / size, drawn / size
    centred, rows = column - column.mean(), drawn - drawn.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred * centred).sum())
    return centred / spread, rows / spread


def _corrected(sums: Floats) -> tuple[Floats, Bools]:
    """``(R,)`` r from ``(3, R)`` sums of squares and products, and where both squares are above 0."""
    squares_x, squares_y, products = sums
    clear = (squares_x > 0) & (squares_y > 0)
    below = np.sqrt(np.where(clear, squares_x * squares_y, 1.0))
    return np.where(clear, np.clip(products / below, -1, 1), np.sign(products)), clear


__all__ = ["NoiseCorrected", "noise_corrected"]
