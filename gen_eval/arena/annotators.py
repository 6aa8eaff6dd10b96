"""What can be seen of each annotator: agreement with the rest, habits, time taken, consistency; and simple warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from gen_eval.arena.balance import share_of_a, share_of_left
from gen_eval.arena.items import Item, Judged, Repeat
from gen_eval.arena.shares import Share
from gen_eval.arena.votes import Answer, Vote
from gen_eval.records import Reason
from gen_eval.stats import cohen_kappa

WARN_VOTES = 10
"""Fewest answers (shared items, timed answers) of an annotator that a warning is made of."""

WARN_KAPPA = 0.0
"""Kappa against the rest up to which an annotator agrees no more than chance would."""

_ROUNDING = 1e-12  # one who always says the same has a kappa of 0 but for this

WARN_TIME = 1 / 3
"""Share of the others' typical time below which an annotator is called fast."""

WARNINGS = {
    "always_same": f"left, right, both good or both bad: the same in all of at least {WARN_VOTES} answers",
    "below_chance": f"kappa against the rest is {WARN_KAPPA:g} or less on at least {WARN_VOTES} shared items",
    "fast": f"median time of at least {WARN_VOTES} timed answers is below a third of the median of the others' medians",
}
"""Names of the warnings and the rule of each. They ask for a look; nobody is left out by them."""


@dataclass(frozen=True)
class AnnotatorPair:
    """Two annotators on the items that both judged.

    Attributes:
        a: the one whose name comes first.
        b: the other.
        shared: items that both judged.
        agreement: share of equal answers among them, 0..1.
        kappa: Cohen's kappa over the four answers; ``None`` with a reason.
        reason: ``no_variance`` when both always give the same answer.
    """

    a: str
    b: str
    shared: int
    agreement: float
    kappa: float | None
    reason: Reason | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "reason": None if self.reason is None else str(self.reason)}


@dataclass(frozen=True)
class Consistency:
    """Equal answers of one person about one item, each later answer against the first, over the four answers.

    Attributes:
        everything: all repeats.
        swapped: those with the sides exchanged.
        same_side: those with every video where it stood before.
    """

    everything: Share
    swapped: Share
    same_side: Share

    @classmethod
    def of(cls, repeats: Sequence[Repeat]) -> Consistency:
        """Of the repeats of one annotator or of all."""

        def share(chosen: Sequence[Repeat]) -> Share:
            return Share.of(sum(one.same for one in chosen), len(chosen))

        swapped = [one for one in repeats if one.swapped]
        return cls(share(repeats), share(swapped), share([one for one in repeats if not one.swapped]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: share.to_json() for name, share in vars(self).items()}


@dataclass(frozen=True)
class AnnotatorReport:
    """One annotator's answers to one question.

    Attributes:
        name: the annotator.
        votes: answers, repeats too.
        shared: items that somebody else judged as well.
        agreement: share of equal answers, each of the annotator's first answers against each other person's on the same
            item. Its interval takes these comparisons as independent, which is too narrow where items have many.
        kappa: Cohen's kappa over the same comparisons, the others taken as one; ``None`` with a reason.
        reason: ``not_connected`` (no shared item) or ``no_variance``.
        ties: share of answers that call neither better.
        both_good: share of ``both_good`` among all answers.
        both_bad: share of ``both_bad``.
        a: share of "A is better" among the answers that are no ties: far from a half it is a habit, if sides were drawn
            at random.
        left: the same for the left side, over answers that tell the sides.
        median_seconds: time of an answer; ``None`` when none is told.
        timed: answers that tell it.
        consistency: with themselves.
        warnings: names among :data:`WARNINGS`.
    """

    name: str
    votes: int
    shared: int
    agreement: Share
    kappa: float | None
    reason: Reason | None
    ties: Share
    both_good: Share
    both_bad: Share
    a: Share
    left: Share
    median_seconds: float | None
    timed: int
    consistency: Consistency
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = dict(vars(self))
        for name in ("agreement", "ties", "both_good", "both_bad", "a", "left", "consistency"):
            plain[name] = plain[name].to_json()
        return plain | {
            "reason": None if self.reason is None else str(self.reason),
            "warnings": list(self.warnings),
        }


def annotator_pairs(judgements: Judged) -> tuple[AnnotatorPair, ...]:
    """Every two annotators who share an item, by name."""
    columns: dict[tuple[str, str], tuple[list[Answer], list[Answer]]] = defaultdict(lambda: ([], []))
    for own in judgements.first.values():
        for one, other in combinations(own, 2):
            left, right = columns[one, other]
            left.append(own[one])
            right.append(own[other])
    found = []
    for (a, b), (left, right) in sorted(columns.items()):
        kappa = cohen_kappa(left, right)
        assert kappa.observed is not None
        found.append(AnnotatorPair(a, b, kappa.n, kappa.observed, kappa.value, kappa.reason))
    return tuple(found)


def annotator_reports(votes: Sequence[Vote], question: str, judgements: Judged) -> tuple[AnnotatorReport, ...]:
    """One report for each named annotator with an answer to ``question``, by name.

    Args:
        votes: in the order given.
        question: one of :data:`gen_eval.arena.votes.QUESTIONS`.
        judgements: of the same votes and question.
    """
    by_name: dict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        if vote.annotator is not None and vote.answer(question) is not None:
            by_name[vote.annotator].append(vote)
    seconds = {name: [vote.seconds for vote in own if vote.seconds is not None] for name, own in by_name.items()}
    medians = {name: median(taken) for name, taken in seconds.items() if len(taken) >= WARN_VOTES}
    against = _against_the_rest(judgements.first)
    repeats: dict[str, list[Repeat]] = defaultdict(list)
    for repeat in judgements.repeats:
        repeats[repeat.annotator].append(repeat)
    return tuple(
        _report(name, by_name[name], question, against[name], repeats[name], _is_fast(name, medians))
        for name in sorted(by_name)
    )


class _Against:
    """An annotator's first answers beside each other person's on the same items."""

    def __init__(self) -> None:
        self.own: list[Answer] = []
        self.others: list[Answer] = []
        self.items = 0


def _against_the_rest(first: Mapping[Item, Mapping[str, Answer]]) -> dict[str, _Against]:
    found: dict[str, _Against] = defaultdict(_Against)
    for answers in first.values():
        for name, answer in answers.items():
            others = [other for who, other in answers.items() if who != name]
            found[name].own += [answer] * len(others)
            found[name].others += others
            found[name].items += bool(others)
    return found


def _report(
    name: str, votes: Sequence[Vote], question: str, against: _Against, repeats: Sequence[Repeat], fast: bool
) -> AnnotatorReport:
    answers = [answer for vote in votes if (answer := vote.answer(question)) is not None]
    seconds = [vote.seconds for vote in votes if vote.seconds is not None]
    kappa = cohen_kappa(against.own, against.others)
    equal = sum(own == other for own, other in zip(against.own, against.others, strict=True))
    by_side = {
        answer.swapped if vote.shown_left == "b" else answer for vote, answer in zip(votes, answers, strict=True)
    }
    warned = {
        "always_same": len(answers) >= WARN_VOTES and len(by_side) == 1,
        "below_chance": against.items >= WARN_VOTES
        and kappa.value is not None
        and kappa.value <= WARN_KAPPA + _ROUNDING,
        "fast": fast,
    }
    return AnnotatorReport(
        name=name,
        votes=len(answers),
        shared=against.items,
        agreement=Share.of(equal, len(against.own)),
        kappa=kappa.value,
        reason=kappa.reason,
        ties=Share.of(sum(answer.is_tie for answer in answers), len(answers)),
        both_good=Share.of(answers.count(Answer.BOTH_GOOD), len(answers)),
        both_bad=Share.of(answers.count(Answer.BOTH_BAD), len(answers)),
        a=share_of_a(votes, question),
        left=share_of_left(votes, question),
        median_seconds=median(seconds) if seconds else None,
        timed=len(seconds),
        consistency=Consistency.of(repeats),
        warnings=tuple(name for name, holds in warned.items() if holds),
    )


def _is_fast(name: str, medians: Mapping[str, float]) -> bool:
    others = [taken for who, taken in medians.items() if who != name]
    return name in medians and bool(others) and medians[name] < WARN_TIME * median(others)


__all__ = [
    "WARNINGS",
    "AnnotatorPair",
    "AnnotatorReport",
    "Consistency",
    "annotator_pairs",
    "annotator_reports",
]
