"""Answers that a cue announces: "the answer is ...", "so ...", with nothing but filler words between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from gen_eval.replies.words import CJK, FILLER, any_of

LETTER = rf"[^\W{CJK}]"
"""A character of a word that is not a word of its own."""

_AFTER = r"(?!\w|'\w)"


class Placed(Protocol):
    """What stands at a place of a text."""

    @property
    def end(self) -> int:
        """Where it ends."""
        ...


Target = TypeVar("Target", bound=Placed)


def pieces(cues: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that goes through a text word by word and tells cues and filler from the rest."""
    return re.compile(
        rf"(?P<cue>(?<!{LETTER}){any_of(cues)}{_AFTER}|答案[是为為]?)"
        rf"|(?P<filler>(?<!{LETTER}){any_of(FILLER)}{_AFTER})"
        rf"|(?P<sign>[:=,(\[{{'])"
        rf"|(?P<other>{LETTER}+(?:'{LETTER}+)*|\S)",
        re.IGNORECASE,
    )


def announced(text: str, pattern: re.Pattern[str], targets: Mapping[int, Target]) -> Iterator[Target]:
    """Those of ``targets`` (by where they start) to which a cue leads over filler words and signs only."""
    armed, resume = False, 0
    for piece in pattern.finditer(text):
        if piece.start() < resume:
            continue
        kind = piece.lastgroup
        target = targets.get(piece.start())
        if target is not None:
            if armed:
                yield target
            resume = target.end
            armed = armed and kind == "filler"  # "the answer is correct: no"
        elif kind == "cue":
            armed = True
        elif kind == "other":
            armed = False
