"""The human study: votes, ratings, agreement, and how far scores agree with people.

Pure functions on plain data; formulas and rules stand in docs/arena.md.
"""

from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.ratings import ArenaRatings, Difference, IntervalRule, Parameter, Rank, Spread, TrackerRatings
from gen_eval.arena.systems import SystemColumn, VideoScores
from gen_eval.arena.votes import QUESTIONS, TRACKERS, Answer, RejectedVote, Vote, Votes

__all__ = [
    "QUESTIONS",
    "TRACKERS",
    "Answer",
    "ArenaRatings",
    "Comparisons",
    "Difference",
    "IntervalRule",
    "Parameter",
    "Rank",
    "RejectedVote",
    "Spread",
    "SystemColumn",
    "TrackerRatings",
    "VideoScores",
    "Vote",
    "Votes",
]
