"""The human study: votes, ratings, agreement, and how far scores agree with people.

Pure functions on plain data; formulas and rules stand in docs/arena.md.
"""

from gen_eval.arena.accuracy_comparison import AccuracyComparison, AccuracyDifference, MetricAccuracy, compare_accuracy
from gen_eval.arena.agreement import Agreement, agreement
from gen_eval.arena.balance import AnswerCounts, Balance, Evenness, PairCount, balance, pair_counts
from gen_eval.arena.bradley_terry import bradley_terry
from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.correlate import correlate
from gen_eval.arena.correlations import Correlations, PairCorrelation
from gen_eval.arena.elo import elo
from gen_eval.arena.elo_chains import EloRule, elo_orders, elo_path
from gen_eval.arena.joint import correlation_of, joint_correlation, joint_draws
from gen_eval.arena.joint_results import JointCorrelation, JointDraws
from gen_eval.arena.metric_comparison import compare_metrics
from gen_eval.arena.metric_comparison_results import MetricAgreement, MetricComparison, MetricDifference
from gen_eval.arena.planning import NextPairs, Suggestion, next_pairs
from gen_eval.arena.power import PairPower, Power, power
from gen_eval.arena.preferences import Preferences, votes_from_scores
from gen_eval.arena.ratings import ArenaRatings, Difference, IntervalRule, Parameter, Rank, Spread, TrackerRatings
from gen_eval.arena.simulated import simulated_votes
from gen_eval.arena.systems import SystemColumn, VideoScores
from gen_eval.arena.tables import SystemTable, read_ratings, read_scores
from gen_eval.arena.three_way import ThreeWay
from gen_eval.arena.video_scores import read_video_scores
from gen_eval.arena.vote_accuracy import PairAccuracy, VoteAccuracy, vote_accuracy
from gen_eval.arena.vote_files import compared, read_votes, votes_from
from gen_eval.arena.votes import QUESTIONS, TRACKERS, Answer, RejectedVote, Vote, Votes

__all__ = [
    "QUESTIONS",
    "TRACKERS",
    "AccuracyComparison",
    "AccuracyDifference",
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
    "JointCorrelation",
    "JointDraws",
    "MetricAccuracy",
    "MetricAgreement",
    "MetricComparison",
    "MetricDifference",
    "NextPairs",
    "PairAccuracy",
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
    "ThreeWay",
    "TrackerRatings",
    "VideoScores",
    "Vote",
    "VoteAccuracy",
    "Votes",
    "agreement",
    "balance",
    "bradley_terry",
    "compare_accuracy",
    "compare_metrics",
    "compared",
    "correlate",
    "correlation_of",
    "elo",
    "elo_orders",
    "elo_path",
    "joint_correlation",
    "joint_draws",
    "next_pairs",
    "pair_counts",
    "power",
    "read_ratings",
    "read_scores",
    "read_video_scores",
    "read_votes",
    "simulated_votes",
    "vote_accuracy",
    "votes_from",
    "votes_from_scores",
]
