"""Items: what several people, or one person again, are asked about; and who answered what first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gen_eval.arena.votes import Answer, Vote


class Item(NamedTuple):
    """Two videos of one sample: the systems in the order of their names, and their seeds where told.

    Votes about other generations of the same systems are about other videos, and so about another item.
    """

    sample: str
    a: str
    b: str
    seed_a: str | None
    seed_b: str | None


@dataclass(frozen=True)
class Repeat:
    """An annotator answered about an item again.

    Attributes:
        annotator: who.
        same: whether the answer is that of the first time.
        swapped: whether the sides were exchanged since (by ``shown_left``; A stands on the left when nobody says).
    """

    annotator: str
    same: bool
    swapped: bool


@dataclass(frozen=True)
class Judged:
    """Answers to one question by item.

    Attributes:
        first: item -> annotator -> the first answer that they gave, oriented to the system whose name comes first; both
            in sorted order.
        repeats: all later answers, each beside the first of that annotator on that item.
        unnamed: answers that name no annotator; they could be anybody's and stand nowhere else.
    """

    first: Mapping[Item, Mapping[str, Answer]]
    repeats: tuple[Repeat, ...]
    unnamed: int


def pair_of(vote: Vote) -> tuple[str, str]:
    """The two systems in the order of their names."""
    return (vote.model_a, vote.model_b) if vote.model_a < vote.model_b else (vote.model_b, vote.model_a)


def oriented(vote: Vote, question: str) -> Answer | None:
    """The answer to ``question`` as if the system whose name comes first stood as A."""
    answer = vote.answer(question)
    return answer if answer is None or vote.model_a < vote.model_b else answer.swapped


def item_of(vote: Vote) -> Item:
    """What the vote is about."""
    seeds = (vote.seed_a, vote.seed_b) if vote.model_a < vote.model_b else (vote.seed_b, vote.seed_a)
    return Item(vote.sample, *pair_of(vote), *seeds)


def judged(votes: Iterable[Vote], question: str) -> Judged:
    """Who answered ``question`` about what, in the order given."""
    first: dict[Item, dict[str, tuple[Answer, str]]] = {}
    repeats, unnamed = [], 0
    for vote in votes:
        answer = oriented(vote, question)
        if answer is None:
            continue
        if vote.annotator is None:
            unnamed += 1
            continue
        left = vote.model_b if vote.shown_left == "b" else vote.model_a
        own = first.setdefault(item_of(vote), {})
        if vote.annotator in own:
            before, stood_left = own[vote.annotator]
            repeats.append(Repeat(vote.annotator, answer == before, left != stood_left))
        else:
            own[vote.annotator] = (answer, left)
    answers = {
        item: {name: own[name][0] for name in sorted(own)}
        for item, own in sorted(first.items(), key=lambda pair: [(part is not None, part or "") for part in pair[0]])
    }
    return Judged(answers, tuple(repeats), unnamed)


__all__ = ["Item", "Judged", "Repeat", "item_of", "judged", "oriented", "pair_of"]
