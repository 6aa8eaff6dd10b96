"""Ends of an interval from resampled values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gen_eval.stats.summaries import Floats


class ResampledEnds(NamedTuple):
    """An interval that holds its estimate.

    Attributes:
        lower: lower end.
        upper: upper end.
        widened: whether the percentiles left out the estimate and an end was moved to it.
    """

    lower: float
    upper: float
    widened: bool

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return self.lower, self.upper


def percentile_ends(values: Floats, estimate: float, level: float) -> ResampledEnds:
    """The middle ``level`` of at least one resampled value, widened to hold the estimate."""
    lower, upper = np.percentile(values, [50 * (1 - level), 50 * (1 + level)], method="linear").tolist()
    held = min(lower, estimate), max(upper, estimate)
    # what rounding moves is no widening
    return ResampledEnds(*held, bool(max(lower - held[0], held[1] - upper) > _ROUNDING))


_ROUNDING = 1e-12

__all__ = ["ResampledEnds", "percentile_ends"]
