"""Votes: people compared two videos of one sample and answered two questions.

Three *trackers* follow from a vote: ``quality`` and ``plausibility`` (each its own question), and ``overall``, whose
score of a vote is the mean of the two. A vote that answers one question counts for that question and not for overall.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np

from gen_eval.arena.comparisons import Comparisons
from gen_eval.records import Rejection, digest_of

QUESTIONS = ("quality", "plausibility")
"""What people are asked."""

TRACKERS = (*QUESTIONS, "overall")
"""What is rated, each on its own."""


class Answer(StrEnum):
    """What a person says to one question about the videos A and B."""

    A = "a"
    B = "b"
    BOTH_GOOD = "both_good"
    BOTH_BAD = "both_bad"

    @property
    def score(self) -> float:
        """Share of the point that A gets: 1, 0, or one half."""
        return _SCORES[self]

    @property
    def is_tie(self) -> bool:
        """Whether neither is better."""
        return self.score == 0.5

    @property
    def swapped(self) -> Answer:
        """The same answer when A and B change places."""
        return _SWAPPED.get(self, self)


_SCORES = {Answer.A: 1.0, Answer.B: 0.0, Answer.BOTH_GOOD: 0.5, Answer.BOTH_BAD: 0.5}
_SWAPPED = {Answer.A: Answer.B, Answer.B: Answer.A}


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's answers about two videos of one sample.

    Attributes:
        id: unique among the votes.
        sample: what both videos were made for.
        annotator: who answered; ``None`` when nobody is named.
        model_a: system that made video A.
        model_b: system that made video B, another one.
        quality: answer to the question about quality; ``None`` when it was not answered.
        plausibility: answer to the question about physical plausibility; likewise.
        time: seconds, of any clock that all votes share; ``None`` when not told.
        seed_a: which generation A is; ``None`` when not told.
        seed_b: which generation B is.
        shown_left: which video stood on the left (or came first); ``None`` when not told.
        seconds: time taken, above 0 s.
        extra: further fields of the record, carried along.
        dated: whether ``time`` was a date of the calendar; such a time cannot be ordered against plain seconds.
    """

    id: str
    sample: str
    annotator: str | None
    model_a: str
    model_b: str
    quality: Answer | None = None
    plausibility: Answer | None = None
    time: float | None = None
    seed_a: str | None = None
    seed_b: str | None = None
    shown_left: Literal["a", "b"] | None = None
    seconds: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    dated: bool = False

    def answer(self, question: str) -> Answer | None:
        """The answer to one of :data:`QUESTIONS`."""
        return self.quality if question == "quality" else self.plausibility

    def answers(self, tracker: str) -> tuple[Answer, ...]:
        """The answers that a tracker takes in; none when the vote does not count for it."""
        wanted = QUESTIONS if tracker == "overall" else (tracker,)
        found = tuple(one for question in wanted if (one := self.answer(question)) is not None)
        return found if len(found) == len(wanted) else ()

    def score(self, tracker: str) -> float | None:
        """Share of the point that A gets, 0..1; ``None`` when the vote does not count for ``tracker``."""
        found = self.answers(tracker)
        return sum(one.score for one in found) / len(found) if found else None

    @property
    def swapped(self) -> Vote:
        """The same vote with A and B exchanged."""
        return replace(
            self,
            model_a=self.model_b,
            model_b=self.model_a,
            quality=None if self.quality is None else self.quality.swapped,
            plausibility=None if self.plausibility is None else self.plausibility.swapped,
            seed_a=self.seed_b,
            seed_b=self.seed_a,
            shown_left=None if self.shown_left is None else "b" if self.shown_left == "a" else "a",
        )


@dataclass(frozen=True)
class RejectedVote:
    """A record that is no vote; it is listed and does not count.

    Attributes:
        id: the record's id, or its line number.
        reason: one of ``self_vote``, ``unknown_label``, ``duplicate_vote``, ``missing_field``, ``malformed_record``,
            ``line_not_json``, ``duplicate_id``.
        message: what was wrong with it.
        where: file and line.
    """

    id: str
    reason: Rejection
    message: str
    where: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"id": self.id, "reason": str(self.reason), "message": self.message, "where": self.where}


@dataclass(frozen=True)
class Votes:
    """All votes in the order given, and what was not taken.

    Attributes:
        votes: each with its own id.
        rejected: records that are no votes.
        bare: comparisons that were given without questions, in place of votes; they are rated as ``overall``.
    """

    votes: tuple[Vote, ...]
    rejected: tuple[RejectedVote, ...] = ()
    bare: Comparisons | None = None

    def __len__(self) -> int:
        return len(self.votes) if self.bare is None else len(self.bare)

    def __iter__(self) -> Iterator[Vote]:
        return iter(self.votes)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        people = len({vote.annotator for vote in self.votes} - {None})
        over = len({vote.sample for vote in self.votes})
        where = f" on {over} samples by {people} named annotators" if self.bare is None else ""
        return f"{len(self)} votes{where} about {len(self.models)} systems, {len(self.rejected)} rejected"

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Every system that a vote names, sorted."""
        if self.bare is not None:
            return self.bare.models
        return tuple(sorted({name for vote in self.votes for name in (vote.model_a, vote.model_b)}))

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Those of :data:`QUESTIONS` that anybody answered."""
        return tuple(name for name in QUESTIONS if any(vote.answer(name) is not None for vote in self.votes))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that moves a rating: the votes in their order, not who was rejected."""
        if self.bare is not None:
            return self.bare.digest
        return digest_of(
            [
                [
                    vote.sample,
                    vote.annotator,
                    vote.model_a,
                    vote.model_b,
                    vote.quality,
                    vote.plausibility,
                    vote.time,
                    vote.shown_left,
                ]
                for vote in self.votes
            ]
        )

    def comparisons(self, tracker: str) -> Comparisons:
        """The votes that count for ``tracker``, as arrays, in the order given.

        Raises:
            ValueError: there is no such tracker.
        """
        if tracker not in TRACKERS:
            raise ValueError(f"tracker is {tracker!r}; expected one of {', '.join(TRACKERS)}")
        if self.bare is not None and tracker == "overall":
            return self.bare
        worth = {pair: found for pair in _PAIRS if (found := _worth(pair, tracker)) is not None}
        counted = [
            (vote, found) for vote in self.votes if (found := worth.get((vote.quality, vote.plausibility))) is not None
        ]
        models = tuple(sorted({name for vote, _ in counted for name in (vote.model_a, vote.model_b)}))
        place = {name: index for index, name in enumerate(models)}
        return Comparisons(
            models=models,
            a=np.array([place[vote.model_a] for vote, _ in counted], dtype=np.int64),
            b=np.array([place[vote.model_b] for vote, _ in counted], dtype=np.int64),
            score=np.array([score for _, (score, _) in counted], dtype=np.float64),
            tie=np.array([tie for _, (_, tie) in counted], dtype=np.float64),
            left=np.array([-1 if vote.shown_left == "b" else 1 for vote, _ in counted], dtype=np.int64),
            samples=tuple(vote.sample for vote, _ in counted),
            annotators=tuple(vote.annotator for vote, _ in counted),
            times=tuple(vote.time for vote, _ in counted),
            mixed_clocks=len({vote.dated for vote, _ in counted if vote.time is not None}) > 1,
        )


_PAIRS = tuple(product((*Answer, None), repeat=2))
"""Every pair of answers that a vote can hold: to quality, to plausibility."""


def _worth(pair: tuple[Answer | None, Answer | None], tracker: str) -> tuple[float, float] | None:
    """A's share of the point and the share of ties that a pair of answers gives; ``None`` when it does not count."""
    found = Vote("", "", None, "", "", *pair).answers(tracker)
    if not found:
        return None
    return sum(one.score for one in found) / len(found), sum(one.is_tie for one in found) / len(found)


__all__ = ["QUESTIONS", "TRACKERS", "Answer", "RejectedVote", "Vote", "Votes"]
