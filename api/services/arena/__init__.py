"""The human study as commands: rating votes, correlating ratings with scores, agreement, what to ask next, the page."""

from api.services.arena.correlating import Correlated, CorrelateRequest, correlate_scores
from api.services.arena.inspecting import AgreementOfVotes, Planned, agreement_of_votes, next_votes, votes_needed
from api.services.arena.outputs import (
    AGREEMENT_REPORTS,
    REPORTS,
    Outputs,
    agreement_outputs,
    correlation_outputs,
    rating_outputs,
    write_output,
    write_plots,
)
from api.services.arena.people import people_of
from api.services.arena.rating import REAL, Rated, RateRequest, RatingRules, rate
from api.services.destinations import check_destinations
from gen_eval.arena import ArenaRatings, Correlations, PairCorrelation, TrackerRatings

__all__ = [
    "AGREEMENT_REPORTS",
    "REAL",
    "REPORTS",
    "AgreementOfVotes",
    "ArenaRatings",
    "CorrelateRequest",
    "Correlated",
    "Correlations",
    "Outputs",
    "PairCorrelation",
    "Planned",
    "RateRequest",
    "Rated",
    "RatingRules",
    "TrackerRatings",
    "agreement_of_votes",
    "agreement_outputs",
    "check_destinations",
    "correlate_scores",
    "correlation_outputs",
    "next_votes",
    "people_of",
    "rate",
    "rating_outputs",
    "votes_needed",
    "write_output",
    "write_plots",
]
