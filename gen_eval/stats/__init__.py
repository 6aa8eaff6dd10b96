"""Means with coverage, bootstrap intervals, paired differences, correlation: pure functions on plain numbers.

Nothing here returns NaN: what has no value is ``None`` or carries a reason, and input that is not finite is refused
with its position. Formulas and rules stand in docs/statistics.md.
"""

from gen_eval.stats.aggregate import Aggregate, Count, MembersRule, Spread, mean_with_coverage
from gen_eval.stats.agreement import AgreementCoefficient, cohen_kappa, krippendorff_alpha
from gen_eval.stats.correlation import Correlation, kendall_tau_b, pearson, spearman
from gen_eval.stats.intervals import Interval, bootstrap_columns, bootstrap_mean, bootstrap_ratio
from gen_eval.stats.multiple import holm
from gen_eval.stats.paired import PairedDifference, paired_difference
from gen_eval.stats.resampling import resampled_counts, resampled_sums
from gen_eval.stats.shares import wilson
from gen_eval.stats.summaries import exact_mean, percentile
from gen_eval.stats.together import Column, aggregates
from gen_eval.stats.totals import Part, Partial, Total, paired_total, total_of

__all__ = [
    "Aggregate",
    "AgreementCoefficient",
    "Column",
    "Correlation",
    "Count",
    "Interval",
    "MembersRule",
    "PairedDifference",
    "Part",
    "Partial",
    "Spread",
    "Total",
    "aggregates",
    "bootstrap_columns",
    "bootstrap_mean",
    "bootstrap_ratio",
    "cohen_kappa",
    "exact_mean",
    "holm",
    "kendall_tau_b",
    "krippendorff_alpha",
    "mean_with_coverage",
    "paired_difference",
    "paired_total",
    "pearson",
    "percentile",
    "resampled_counts",
    "resampled_sums",
    "spearman",
    "total_of",
    "wilson",
]
