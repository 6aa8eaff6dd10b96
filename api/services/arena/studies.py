"""What the arena commands found, as what a page says."""

from __future__ import annotations

from dataclasses import replace

from api.services.arena.correlating import Correlated
from api.services.arena.inspecting import AgreementOfVotes
from api.services.arena.page import Study
from api.services.arena.rating import Rated
from gen_eval.arena import agreement, balance


def of_ratings(found: Rated) -> Study:
    """The page of ``arena rate``."""
    return Study(
        ratings=found.ratings,
        automatic=found.automatic,
        balance=None if found.votes is None else balance(found.votes),
        sources=found.sources,
        real=found.real,
    )


def of_correlations(found: Correlated) -> Study:
    """The page of ``arena correlate``."""
    return Study(
        ratings=found.ratings,
        correlations=found.correlations,
        columns=(found.rating_columns, found.score_columns),
        metric_comparisons=(*found.comparisons.values(), *found.comparisons_joint.values()),
        joint=found.joint,
        accuracies=tuple(found.by_vote.values()),
        rejected=() if found.votes is None else found.votes.rejected,
        rejected_lines=found.rejected,
        notes=found.notes,
        sources=found.sources,
        real=found.real,
    )


def of_people(found: Correlated) -> Study:
    """The section of the report of runs: the page of ``arena correlate``, and how far people agree."""
    study, votes = of_correlations(found), found.votes
    if votes is None or not len(votes):
        return study
    return replace(study, agreements=[agreement(votes, name) for name in votes.questions], balance=balance(votes))


def of_agreement(found: AgreementOfVotes) -> Study:
    """The page of ``arena agree``."""
    return Study(
        agreements=tuple(found.questions.values()),
        balance=found.balance,
        rejected=found.votes.rejected,
        sources=(("votes", found.source),),
    )


__all__ = ["of_agreement", "of_correlations", "of_people", "of_ratings"]
