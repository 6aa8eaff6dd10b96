"""How evenly votes are spread over systems, pairs, samples and sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gen_eval.arena.votes import QUESTIONS, TRACKERS, Answer, Vote, Votes


@dataclass(frozen=True)
class AnswerCounts:
    """Answers to one question about a pair, ``a`` and ``b`` being the systems in the order of their names."""

    a: int = 0
    b: int = 0
    both_good: int = 0
    both_bad: int = 0

    @property
    def n(self) -> int:
        """All answers."""
        return self.a + self.b + self.both_good + self.both_bad

    @property
    def ties(self) -> int:
        """Answers that call neither better."""
        return self.both_good + self.both_bad

    @property
    def good_of_ties(self) -> float | None:
        """Share of ``both_good`` among the ties, 0..1, which no rating shows; ``None`` without a tie."""
        return self.both_good / self.ties if self.ties else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "n": self.n, "good_of_ties": self.good_of_ties}


@dataclass(frozen=True)
class PairCount:
    """Votes about two systems.

    Attributes:
        a: the system whose name comes first.
        b: the other one.
        votes: votes about them, whatever they answer.
        samples: different samples among these.
        answers: question -> its answers, oriented to ``a`` and ``b``.
        points: tracker -> points that ``a`` got (1, 0, 1/2 for a tie; overall the mean of both questions).
        counted: tracker -> votes that count for it, over which ``points`` is the sum.
    """

    a: str
    b: str
    votes: int
    samples: int
    answers: Mapping[str, AnswerCounts]
    points: Mapping[str, float]
    counted: Mapping[str, int]

    def share(self, tracker: str) -> float | None:
        """Mean share of the point that ``a`` got in ``tracker``, 0..1; ``None`` without a vote that counts."""
        n = self.counted[tracker]
        return self.points[tracker] / n if n else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "a": self.a,
            "b": self.b,
            "votes": self.votes,
            "samples": self.samples,
            "answers": {name: one.to_json() for name, one in self.answers.items()},
            "share": {name: self.share(name) for name in self.counted},
            "counted": dict(self.counted),
        }


def pair_counts(votes: Votes | Iterable[Vote]) -> tuple[PairCount, ...]:
    """The answers about every unordered pair of systems, pairs without a vote too, in the order of their names.

    >>> vote = Vote("v0", "s0", None, "y", "x", quality=Answer.A)
    >>> (pair,) = pair_counts(Votes((vote,)))
    >>> (pair.a, pair.b, pair.answers["quality"].b, pair.share("quality"), pair.share("overall"))
    ('x', 'y', 1, 0.0, None)
    """
    found = list(votes)
    models = sorted({name for vote in found for name in (vote.model_a, vote.model_b)})
    of_pair: dict[tuple[str, str], list[Vote]] = {pair: [] for pair in combinations(models, 2)}
    for vote in found:
        of_pair[pair_of(vote)].append(vote)
    return tuple(_pair_count(a, b, own) for (a, b), own in of_pair.items())


def pair_of(vote: Vote) -> tuple[str, str]:
    """The two systems in the order of their names."""
    return (vote.model_a, vote.model_b) if vote.model_a < vote.model_b else (vote.model_b, vote.model_a)


def oriented(vote: Vote, question: str) -> Answer | None:
    """The answer to ``question`` as if the system whose name comes first stood as A."""
    answer = vote.answer(question)
    return answer if answer is None or vote.model_a < vote.model_b else answer.swapped


def _pair_count(a: str, b: str, votes: Sequence[Vote]) -> PairCount:
    answers = {question: Counter(oriented(vote, question) for vote in votes) for question in QUESTIONS}
    scores = {
        tracker: [
            score if vote.model_a == a else 1 - score for vote in votes if (score := vote.score(tracker)) is not None
        ]
        for tracker in TRACKERS
    }
    return PairCount(
        a=a,
        b=b,
        votes=len(votes),
        samples=len({vote.sample for vote in votes}),
        answers={
            question: AnswerCounts(**{str(one): counts[one] for one in Answer}) for question, counts in answers.items()
        },
        points={tracker: sum(found) for tracker, found in scores.items()},
        counted={tracker: len(found) for tracker, found in scores.items()},
    )


__all__ = ["AnswerCounts", "PairCount", "oriented", "pair_counts", "pair_of"]
