"""Means with coverage, bootstrap intervals, paired differences, correlation: pure functions on plain numbers.

Nothing here returns NaN: what has no value is ``None`` or carries a reason, and input that is not finite is refused
with its position. Formulas and rules stand in docs/statistics.md.
"""

from gen_eval.stats.aggregate import Aggregate, Count, MembersRule, Spread, mean_with_coverage
from gen_eval.stats.correlation import Correlation, kendall_tau_b, pearson, spearman
from gen_eval.stats.intervals import Interval, bootstrap_columns, bootstrap_mean
from gen_eval.stats.paired import PairedDifference, paired_difference
from gen_eval.stats.resampling import resampled_sums
from gen_eval.stats.summaries import exact_mean, percentile
from gen_eval.stats.together import Column, aggregates

__all__ = [
    "Aggregate",
    "Column",
    "Correlation",
    "Count",
    "Interval",
    "MembersRule",
    "PairedDifference",
    "Spread",
    "aggregates",
    "bootstrap_columns",
    "bootstrap_mean",
    "exact_mean",
    "kendall_tau_b",
    "mean_with_coverage",
    "paired_difference",
    "pearson",
    "percentile",
    "resampled_sums",
    "spearman",
]
