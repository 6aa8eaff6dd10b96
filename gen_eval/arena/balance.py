"""How evenly votes are spread over systems, pairs, samples and sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gen_eval.arena.comparisons import Comparisons, Ints
from gen_eval.arena.items import oriented, pair_of
from gen_eval.arena.shares import Share
from gen_eval.arena.vote_files import AnyVotes, votes_from
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


@dataclass(frozen=True)
class Evenness:
    """How evenly votes are spread over systems, pairs or samples.

    Attributes:
        n: things that could have votes.
        without: those that have none.
        least: fewest votes.
        most: most votes.
        mean: votes by thing; each vote counts for two systems, for one pair and one sample.
        effective: sum squared / sum of squares (inverse Simpson index): as many things with equal counts would be
            spread as unevenly. n when all counts are equal, 1 when one thing has all votes.
    """

    n: int
    without: int
    least: int
    most: int
    mean: float
    effective: float

    @classmethod
    def of(cls, counts: Collection[int]) -> Evenness | None:
        """Of the votes by thing; ``None`` when there is no vote.

        >>> Evenness.of([3, 3, 0]).effective
        2.0
        """
        total = sum(counts)
        if not total:
            return None
        effective = total**2 / sum(count**2 for count in counts)
        without = sum(not count for count in counts)
        return cls(len(counts), without, min(counts), max(counts), total / len(counts), effective)

    @property
    def ratio(self) -> float | None:
        """Most votes / least votes, 1 is even; ``None`` where something has none."""
        return self.most / self.least if self.least else None

    @property
    def evenness(self) -> float:
        """``effective / n``, up to 1, which is even."""
        return self.effective / self.n

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "ratio": self.ratio, "evenness": self.evenness}

    def __str__(self) -> str:
        ends = f"{self.least} to {self.most} votes, mean {self.mean:.1f}"
        return f"{ends}, as even as if {self.effective:.1f} of {self.n} had equally many"


@dataclass(frozen=True)
class Balance:
    """How votes are spread.

    The shares of A and of the left side show position bias only as far as sides were drawn at random: who stands there
    more often than not is part of them. A side term in the ratings allows for that.

    Attributes:
        votes: all of them.
        models: votes by system.
        pairs: answers by pair, pairs without a vote too.
        of_models: evenness over systems.
        of_pairs: over all pairs.
        of_samples: over the samples that have a vote.
        as_a: by system, share of its votes in which it stood as A.
        answers_a: by question, share of "A is better" among the answers that are no ties.
        answers_left: the same for the left side, over votes that tell it.
        samples: samples with a vote.
        annotators: votes by named annotator.
        unnamed: votes that name none.
    """

    votes: int
    models: Mapping[str, int]
    pairs: tuple[PairCount, ...]
    of_models: Evenness | None
    of_pairs: Evenness | None
    of_samples: Evenness | None
    as_a: Mapping[str, Share]
    answers_a: Mapping[str, Share]
    answers_left: Mapping[str, Share]
    samples: int
    annotators: Mapping[str, int]
    unnamed: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = dict(vars(self))
        for name in ("of_models", "of_pairs", "of_samples"):
            plain[name] = None if plain[name] is None else plain[name].to_json()
        for name in ("as_a", "answers_a", "answers_left"):
            plain[name] = {key: share.to_json() for key, share in plain[name].items()}
        return plain | {
            "models": dict(self.models),
            "pairs": [one.to_json() for one in self.pairs],
            "annotators": dict(self.annotators),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.votes} votes, {self.samples} samples, {len(self.annotators)} annotators"]
        named = (("systems", self.of_models), ("pairs", self.of_pairs), ("samples", self.of_samples))
        lines += [f"  {name}: {one}" for name, one in named if one is not None]
        lines += [f"  A among untied answers, {name}: {share}" for name, share in self.answers_a.items()]
        return "\n".join(lines)


def pair_counts(votes: AnyVotes) -> tuple[PairCount, ...]:
    """The answers about every unordered pair of systems, pairs without a vote too, in the order of their names.

    Comparisons without questions count for the tracker ``overall`` only.

    Args:
        votes: in any form that :func:`gen_eval.arena.vote_files.votes_from` takes.

    >>> vote = Vote("v0", "s0", None, "y", "x", quality=Answer.A)
    >>> (pair,) = pair_counts(Votes((vote,)))
    >>> (pair.a, pair.b, pair.answers["quality"].b, pair.share("quality"), pair.share("overall"))
    ('x', 'y', 1, 0.0, None)
    """
    found = votes_from(votes)
    if found.bare is not None:
        samples = found.bare.clusters("samples")[0]
        return tuple(_bare_count(found.bare, samples, i, j) for i, j in combinations(range(len(found.models)), 2))
    of_pair: dict[tuple[str, str], list[Vote]] = {pair: [] for pair in combinations(found.models, 2)}
    for vote in found:
        of_pair[pair_of(vote)].append(vote)
    return tuple(_pair_count(a, b, own) for (a, b), own in of_pair.items())


def balance(votes: AnyVotes) -> Balance:
    """How evenly the votes are spread over systems, pairs, samples, annotators and sides.

    Args:
        votes: in any form that :func:`gen_eval.arena.vote_files.votes_from` takes.
    """
    found = votes_from(votes)
    pairs = pair_counts(found)
    stood_a, samples, annotators = _tallies(found)
    models = {name: sum(pair.votes for pair in pairs if name in (pair.a, pair.b)) for name in found.models}
    return Balance(
        votes=len(found),
        models=models,
        pairs=pairs,
        of_models=Evenness.of(models.values()),
        of_pairs=Evenness.of([pair.votes for pair in pairs]),
        of_samples=Evenness.of(samples.values()),
        as_a={name: Share.of(stood_a[name], n) for name, n in models.items()},
        answers_a={question: share_of_a(found.votes, question) for question in QUESTIONS},
        answers_left={question: share_of_left(found.votes, question) for question in QUESTIONS},
        samples=len(samples),
        annotators={name: annotators[name] for name in sorted(filter(None, annotators))},
        unnamed=annotators[None],
    )


def share_of_a(votes: Iterable[Vote], question: str) -> Share:
    """Share of "A is better" among the answers that are no ties."""
    decided = [answer for vote in votes if (answer := vote.answer(question)) is not None and not answer.is_tie]
    return Share.of(decided.count(Answer.A), len(decided))


def share_of_left(votes: Iterable[Vote], question: str) -> Share:
    """Share of "the left one is better" among the answers that are no ties, over votes that tell the sides."""
    told = [(vote.answer(question), vote.shown_left) for vote in votes if vote.shown_left is not None]
    decided = [answer == left for answer, left in told if answer is not None and not answer.is_tie]
    return Share.of(sum(decided), len(decided))


def _tallies(votes: Votes) -> tuple[Counter[str], Counter[str], Counter[str | None]]:
    """How often each system stood as A; votes by sample; votes by annotator."""
    bare = votes.bare
    if bare is not None:
        by_sample = Counter(map(str, bare.clusters("samples")[0].tolist()))
        return Counter(bare.models[place] for place in bare.a), by_sample, Counter(bare.annotators)
    return (
        Counter(vote.model_a for vote in votes),
        Counter(vote.sample for vote in votes),
        Counter(vote.annotator for vote in votes),
    )


def _bare_count(bare: Comparisons, samples: Ints, i: int, j: int) -> PairCount:
    first, second = (bare.a == i) & (bare.b == j), (bare.a == j) & (bare.b == i)
    places = (first | second).nonzero()[0].tolist()
    nothing = dict.fromkeys(QUESTIONS, 0)
    return PairCount(
        a=bare.models[i],
        b=bare.models[j],
        votes=len(places),
        samples=len(set(samples[places].tolist())),
        answers=dict.fromkeys(QUESTIONS, AnswerCounts()),
        points={**nothing, "overall": float(bare.score[first].sum() + (1 - bare.score[second]).sum())},
        counted={**nothing, "overall": len(places)},
    )


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


__all__ = [
    "AnswerCounts",
    "Balance",
    "Evenness",
    "PairCount",
    "balance",
    "pair_counts",
    "share_of_a",
    "share_of_left",
]
