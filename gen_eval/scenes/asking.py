"""Putting together questions whose answers are known."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from gen_eval.scenes.clip import YES_NO, Question

_LETTERS = "ABCD"
_COUNTS = ("none", "one", "two", "three or more")


def yes_no(uid: str, question: str, truth: bool, category: str) -> Question:
    """A question that is answered by Yes (A) or No (B)."""
    return Question(uid, question, dict(YES_NO), "A" if truth else "B", category)


def either(uid: str, seed: int, when_true: str, when_false: str, fact: bool, category: str) -> Question:
    """A yes/no question about ``fact`` that asks for it or for its opposite, by seed and uid.

    Most things are right in most clips; asked one way only, a judge that always says No would look good.
    """
    opposite = (seed + zlib.crc32(uid.encode())) % 2 == 1
    return yes_no(uid, when_false if opposite else when_true, fact != opposite, category)


def choice(uid: str, question: str, texts: Sequence[str], right: str, category: str, *, turn: int = 0) -> Question:
    """A question with lettered options; ``turn`` rotates their order so that the right letter is not always the same.

    Raises:
        ValueError: ``right`` is none of ``texts``, two texts are equal, or there are more than four.
    """
    if right not in texts or len(set(texts)) != len(texts) or len(texts) > len(_LETTERS):
        raise ValueError(f"question {uid}: {right!r} must be one of at most four different options, not {list(texts)}")
    turned = [*texts[turn % len(texts) :], *texts[: turn % len(texts)]]
    options = dict(zip(_LETTERS, turned, strict=False))
    return Question(uid, question, options, _LETTERS[turned.index(right)], category)


def count(uid: str, question: str, number: int, category: str) -> Question:
    """How many: none, one, two, three or more."""
    return choice(uid, question, _COUNTS, _COUNTS[min(number, len(_COUNTS) - 1)], category)
