"""The human study: votes, ratings, agreement, and how far scores agree with people.

Pure functions on plain data; formulas and rules stand in docs/arena.md.
"""

from gen_eval.arena.agreement import Agreement, agreement
from gen_eval.arena.balance import AnswerCounts, Balance, Evenness, PairCount, balance, pair_counts
from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.correlate import correlate
from gen_eval.arena.correlations import Correlations, PairCorrelation
from gen_eval.arena.metric_comparison import compare_metrics
from gen_eval.arena.metric_comparisons import MetricAgreement, MetricComparison, MetricDifference
from gen_eval.arena.ratings import ArenaRatings, Difference, IntervalRule, Parameter, Rank, Spread, TrackerRatings
from gen_eval.arena.systems import SystemColumn, VideoScores
from gen_eval.arena.vote_files import compared, read_votes, votes_from
from gen_eval.arena.votes import QUESTIONS, TRACKERS, Answer, RejectedVote, Vote, Votes

__all__ = [
    "QUESTIONS",
    "TRACKERS",
    "Agreement",
    "Answer",
    "AnswerCounts",
    "ArenaRatings",
    "Balance",
    "Comparisons",
    "Correlations",
    "Difference",
    "Evenness",
    "IntervalRule",
    "MetricAgreement",
    "MetricComparison",
    "MetricDifference",
    "PairCorrelation",
    "PairCount",
    "Parameter",
    "Rank",
    "RejectedVote",
    "Spread",
    "SystemColumn",
    "TrackerRatings",
    "VideoScores",
    "Vote",
    "Votes",
    "agreement",
    "balance",
    "compare_metrics",
    "compared",
    "correlate",
    "pair_counts",
    "read_votes",
    "votes_from",
]
