"""Ends of an interval from resampled values: percentiles, and percentiles corrected for bias."""

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
    """The middle ``level`` of at least one resampled value."""
    return _holding(values, estimate, (1 - level) / 2, (1 + level) / 2)


def bias_corrected_ends(values: Floats, estimate: float, level: float) -> ResampledEnds:
    """Percentiles moved by how far the resampled values as a whole lie off the estimate (Efron 1981, "BC").

    With q the share of values below the estimate (equal ones count half) and z its normal quantile, the ends are
    the percentiles at Phi(2 z -+ z_level). Noise pulls a correlation towards 0, once in the estimate and once more in
    every resample; plain percentiles therefore lie too low.
    """
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(values < estimate) + np.count_nonzero(values <= estimate)) / 2
    # one half of a resample at least on either side keeps the quantile finite
    share = min(max(below, 0.5), len(values) - 0.5) / len(values)
    shift, half = 2 * float(ndtri(share)), float(ndtri((1 + level) / 2))
    return _holding(values, estimate, float(ndtr(shift - half)), float(ndtr(shift + half)))


def _holding(values: Floats, estimate: float, low: float, high: float) -> ResampledEnds:
    lower, upper = np.percentile(values, [100 * low, 100 * high], method="linear").tolist()
    held = min(lower, estimate), max(upper, estimate)
    # what rounding moves is no widening
    return ResampledEnds(*held, bool(max(lower - held[0], held[1] - upper) > _ROUNDING))


_ROUNDING = 1e-12

__all__ = ["ResampledEnds", "bias_corrected_ends", "percentile_ends"]
