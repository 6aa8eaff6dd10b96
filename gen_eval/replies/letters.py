"""Letters of a reply that may name an option, and whether the words around them reject them."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from gen_eval.replies.cues import LETTER as L
from gen_eval.replies.words import (
    ADVERBS,
    AFTER_ARTICLE,
    CLAUSE_END,
    REJECTED,
    REJECTING,
    RIGHT,
    VERBS,
    VERBS_PLURAL,
    any_of,
)

_ALONE = rf"(?<!{L})(?<!\w')(?<!{L}-)"
_NOT_ARTICLE = rf"A(?! (?!{any_of(AFTER_ARTICLE)}(?!\w))[a-zß-ÿ])"
_IS_RIGHT = rf" (?:is|was) (?:the )?(?:most )?{any_of(RIGHT)}(?!\w)"
_TOKEN = re.compile(
    r"[(\[{【「] ?(?P<bracketed>[A-Za-z]) ?[)\]}】」]"
    rf"|{_ALONE}(?P<capital>{_NOT_ARTICLE}|[B-HJ-Z])(?!{L}|'\w|-[A-Za-z])"
    rf"|{_ALONE}(?P<lower>[a-hj-z])(?!{L}|'\w|-[A-Za-z]|\.[a-z])(?:{CLAUSE_END}|(?={_IS_RIGHT}))"
)
_SAID_RIGHT = re.compile(_IS_RIGHT, re.IGNORECASE)

_ONE = r"[(\[]?[A-Z][)\]]?"
_REJECTED_BEFORE = re.compile(
    rf"(?:(?<!\w){any_of(REJECTING)}|n't)(?: be)?(?: the)?(?: (?:option|choice))?"
    rf" (?:(?:{_ONE}, ?){{0,5}}{_ONE},? (?:or|nor) )?(?:(?:option|choice) )?$",
    re.IGNORECASE,
)
_WINDOW_BEFORE = 60
_DENIED = rf"(?: {any_of(ADVERBS)}){{0,4}} {any_of(REJECTED)}(?!\w)"
_REJECTED_AFTER = re.compile(
    rf"(?: {any_of(VERBS)}){{1,3}}{_DENIED}|(?: {any_of(ADVERBS)}){{0,2}} (?:[a-z]{{2,6}}n't|cannot)(?!\w)"
    rf"|(?:,? (?:and|or) {_ONE}| ?[,/&] ?{_ONE}){{1,6}}(?: {any_of(VERBS_PLURAL)}){{1,3}}{_DENIED}",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"[ )\]]*(?:,|/|&|(?<!\w)(?:and|or)(?!\w))"
    r"(?:[ ,/&]|(?<!\w)(?:and|or|also|either|perhaps|maybe|even|option|choice)(?!\w))*",
    re.IGNORECASE,
)
_WIDEST_GAP = 24  # characters between two letters that are offered together


@dataclass(frozen=True)
class Letter:
    """A letter of the text that may name an option.

    Attributes:
        start: where it starts, brackets included.
        end: where it ends, brackets included.
        letter: as a capital.
        kind: ``bracketed``, ``capital`` or ``lower``.
    """

    start: int
    end: int
    letter: str
    kind: str


class Letters:
    """All letters of one tidy text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all: list[Letter] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            self.all.append(Letter(match.start(), match.end(), match[kind].upper(), kind))
        self.by_start = {letter.start: letter for letter in self.all}

    @cached_property
    def _starts(self) -> list[int]:
        return [letter.start for letter in self.all]

    def rejected(self, start: int, end: int) -> bool:
        """Whether the words before or after the letter between these places reject it."""
        before = self.text[max(0, start - _WINDOW_BEFORE) : start]
        return bool(_REJECTED_AFTER.match(self.text, end) or _REJECTED_BEFORE.search(before))

    def said_right(self, letter: Letter) -> bool:
        """Whether "is the right one" or the like follows."""
        return _SAID_RIGHT.match(self.text, letter.end) is not None

    def next_offered(self, end: int) -> Letter | None:
        """The letter that follows a place with nothing but or, and, a slash, a comma, & between."""
        index = bisect_left(self._starts, end)
        if index == len(self.all):
            return None
        following = self.all[index]
        gap = self.text[end : following.start] if following.start - end <= _WIDEST_GAP else ""
        return following if _ALSO.fullmatch(gap) else None
