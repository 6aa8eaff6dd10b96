"""`arena agree`, `next` and `power`: what the votes are worth, and which are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from api.services.arena.rating import Clusters, votes_in
from gen_eval.arena import Agreement, Balance, agreement, balance
from gen_eval.arena.planning import NextPairs, next_pairs
from gen_eval.arena.power import Power, power
from gen_eval.arena.votes import Votes
from gen_eval.records import InputError
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS


@dataclass(frozen=True)
class OfVotes:
    """What was found about the votes of a file, beside the lines that could not be used."""

    votes: Votes

    @property
    def exit_code(self) -> int:
        """1 when a line of the votes could not be used."""
        return EXIT_FAILED_ITEMS if self.votes.rejected else EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """How each document of ``gen-eval arena agree``, ``next`` and ``power`` with ``--json`` begins."""
        return {
            "n_votes": len(self.votes),
            "votes_digest": self.votes.digest,
            "rejected": [one.to_json() for one in self.votes.rejected],
        }


@dataclass(frozen=True)
class AgreementOfVotes(OfVotes):
    """How far people agree, and how the votes are spread.

    Attributes:
        questions: agreement by question, of those that anybody answered.
        source: name of the file.
    """

    questions: Mapping[str, Agreement]
    balance: Balance
    source: str

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena agree --json``."""
        return {
            **super().to_json(),
            "questions": {name: one.to_json() for name, one in self.questions.items()},
            "balance": self.balance.to_json(),
        }


def agreement_of_votes(path: Path, *, resamples: int = 10_000, seed: int = 0) -> AgreementOfVotes:
    """Agreement of the votes in ``path``, question by question, and their balance.

    Args:
        path: file of votes.
        resamples: of the intervals, which draw whole samples; 0 for none.
        seed: of the draws.

    Raises:
        InputError: it cannot be read, or holds no vote.
    """
    votes = votes_in(path)
    questions = {name: agreement(votes, name, resamples=resamples, seed=seed) for name in votes.questions}
    return AgreementOfVotes(votes, questions, balance(votes), path.name)


@dataclass(frozen=True)
class Planned(OfVotes):
    """What to ask next, or how much is missing."""

    found: NextPairs | Power

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena next`` and ``power`` with ``--json``."""
        return {**super().to_json(), **self.found.to_json()}


def next_votes(
    path: Path,
    tracker: str,
    *,
    count: int = 10,
    goal: Literal["widest", "ranking"] = "widest",
    each: int | None = None,
    clusters: Clusters | None = None,
) -> Planned:
    """Which pairs of systems to ask next, and on which samples; see :func:`gen_eval.arena.next_pairs`.

    Raises:
        InputError: the votes cannot be read, or none counts for ``tracker``.
    """
    votes = _some(votes_in(path), path)
    try:
        return Planned(votes, next_pairs(votes, tracker, count, goal=goal, each=each, clusters=clusters))
    except ValueError as error:
        raise InputError(str(error)) from error


def votes_needed(
    path: Path,
    tracker: str,
    a: str | None,
    b: str | None,
    *,
    power: float = 0.8,
    level: float = 0.95,
    clusters: Clusters | None = None,
) -> Planned:
    """How many more votes separate two systems, or every two neighbours of the ranking.

    Raises:
        InputError: the votes cannot be read, none counts for ``tracker``, or a system is not among them.
    """
    votes = _some(votes_in(path), path)
    try:
        return Planned(votes, _power(votes, tracker, a, b, power=power, level=level, clusters=clusters))
    except ValueError as error:
        raise InputError(str(error)) from error


def _some(votes: Votes, path: Path) -> Votes:
    """The votes, of which nothing can be planned without any."""
    if not len(votes):
        one = votes.rejected[0]
        raise InputError(f"no line of {path} is a vote; the first, {one.where}: {one.reason}: {one.message}")
    return votes


_power = power  # the argument of `votes_needed` has the same name

__all__ = ["AgreementOfVotes", "Planned", "agreement_of_votes", "next_votes", "votes_needed"]
