"""The human study: votes, ratings, agreement, and how far scores agree with people.

Pure functions on plain data; formulas and rules stand in docs/arena.md.
"""

from gen_eval.arena.agreement import Agreement, agreement
from gen_eval.arena.balance import AnswerCounts, Balance, Evenness, PairCount, balance, pair_counts
from gen_eval.arena.bradley_terry import bradley_terry
from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.correlate import correlate
from gen_eval.arena.correlations import Correlations, PairCorrelation
from gen_eval.arena.elo import elo
from gen_eval.arena.elo_chains import EloRule, elo_orders, elo_path
from gen_eval.arena.metric_comparison import compare_metrics
from gen_eval.arena.metric_comparisons import MetricAgreement, MetricComparison, MetricDifference
from gen_eval.arena.planning import NextPairs, Suggestion, next_pairs
from gen_eval.arena.power import PairPower, Power, power
from gen_eval.arena.preferences import Preferences, votes_from_scores
from gen_eval.arena.ratings import ArenaRatings, Difference, IntervalRule, Parameter, Rank, Spread, TrackerRatings
from gen_eval.arena.systems import SystemColumn, VideoScores
from gen_eval.arena.tables import SystemTable, read_ratings, read_scores
from gen_eval.arena.video_scores import read_video_scores
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
    "EloRule",
    "Evenness",
    "IntervalRule",
    "MetricAgreement",
    "MetricComparison",
    "MetricDifference",
    "NextPairs",
    "PairCorrelation",
    "PairCount",
    "PairPower",
    "Parameter",
    "Power",
    "Preferences",
    "Rank",
    "RejectedVote",
    "Spread",
    "Suggestion",
    "SystemColumn",
    "SystemTable",
    "TrackerRatings",
    "VideoScores",
    "Vote",
    "Votes",
    "agreement",
    "balance",
    "bradley_terry",
    "compare_metrics",
    "compared",
    "correlate",
    "elo",
    "elo_orders",
    "elo_path",
    "next_pairs",
    "pair_counts",
    "power",
    "read_ratings",
    "read_scores",
    "read_video_scores",
    "read_votes",
    "votes_from",
    "votes_from_scores",
]
