"""Yes or no, in words. The numbers of the rules are those of docs/replies.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from gen_eval.records.reasons import Flag
from gen_eval.replies.cues import announced, pieces
from gen_eval.replies.plain_text import last_of, sentences, tidy, trimmed
from gen_eval.replies.prelude import prelude
from gen_eval.replies.reading import Reading
from gen_eval.replies.words import (
    CLAUSE_END,
    NO,
    NO_CHINESE,
    UNSURE_CHINESE,
    VERDICT_CUES,
    YES,
    YES_CHINESE,
    any_of,
)

_YES, _NO = any_of(YES), any_of(NO)
_WORD = re.compile(rf"(?<!\w)(?<!\w')(?<!\w-)(?:(?P<yes>{_YES})|(?P<no>{_NO}))(?!\w|'\w|-\w)")
_CLAUSE_END = re.compile(CLAUSE_END)
_JOINED = r"(?: ?/ ?| (?:and/or|and|or) )"
_EITHER = re.compile(rf"(?:{_YES}{_JOINED}{_NO}|{_NO}{_JOINED}{_YES})(?!\w|'\w|-\w)")
_BOTH = re.compile(rf"{_YES} ?, ?{_NO}|{_NO} ?, ?{_YES}")
_PIECES = pieces(VERDICT_CUES)


@dataclass(frozen=True)
class _Said:
    """A yes or no word of the text, at the end of a clause."""

    start: int
    end: int
    value: str


def read_yes_no(reply: object) -> Reading[str]:
    """Whether ``reply`` says yes or no.

    Args:
        reply: what the model said; anything but text is a named failure.

    Returns:
        ``"yes"`` or ``"no"``, or a failure: those of :func:`~gen_eval.replies.prelude.prelude`, ``ambiguous``,
        ``no_answer``.

    >>> print(read_yes_no("Yes, there is nothing unusual"))
    'yes' by yes_no 4
    >>> print(read_yes_no("Yes and no."))
    nothing (ambiguous) by yes_no 1
    """
    found = prelude(reply)
    if found.value is None:
        return found
    return replace(yes_or_no(found.value), detail=found.detail)


def yes_or_no(text: str) -> Reading[str]:
    """Whether plain ``text``, which went through the prelude, says yes or no."""
    text = trimmed(tidy(text).casefold())
    for rule in _RULES:
        if (found := rule(text)) is not None:
            return found
    return _anywhere(text)


def _read(value: str, rule: str) -> Reading[str]:
    return Reading(value, None, f"yes_no {rule}")


def _failed(failure: Flag, rule: str) -> Reading[str]:
    return Reading(None, failure, f"yes_no {rule}")


def _value(match: re.Match[str]) -> str:
    return "yes" if match["yes"] else "no"


def _lone(text: str) -> str | None:
    """Yes or no, if ``text`` is one such word and nothing else."""
    match = _WORD.fullmatch(trimmed(text))
    return _value(match) if match else None


def _both_offered(text: str) -> Reading[str] | None:
    if _EITHER.match(text) or _BOTH.fullmatch(text):
        return _failed(Flag.AMBIGUOUS, "1")
    return None


def _lone_words(text: str) -> Reading[str] | None:
    said = sentences(text)
    values = {_lone(sentence) for sentence in said}
    if len(said) < 2 or None in values:
        return None
    return _read(next(iter(values)) or "", "2") if len(values) == 1 else _failed(Flag.AMBIGUOUS, "2")


def _final_cue(text: str) -> Reading[str] | None:
    last = last_of(announced(text, _PIECES, _at_clause_ends(text)))
    said = sentences(text)
    lone = _lone(said[-1]) if len(said) > 1 else None
    if lone is not None and (last is None or last.end < len(text)):
        return _read(lone, "3b")
    return _read(last.value, "3a") if last else None


def _at_clause_ends(text: str) -> dict[int, _Said]:
    return {
        match.start(): _Said(match.start(), match.end(), _value(match))
        for match in _WORD.finditer(text)
        if _CLAUSE_END.match(text, match.end())
    }


def _first_word(text: str) -> Reading[str] | None:
    match = _WORD.match(text)
    if match and (match["yes"] or _CLAUSE_END.match(text, match.end())):
        return _read(_value(match), "4")
    return None


def _chinese(text: str) -> Reading[str] | None:
    if text.startswith(UNSURE_CHINESE):
        return _failed(Flag.NO_ANSWER, "5")
    if text.startswith(NO_CHINESE):
        return _read("no", "5")
    return _read("yes", "5") if text.startswith(YES_CHINESE) else None


def _anywhere(text: str) -> Reading[str]:
    says_yes = any(match.group() == "yes" for match in _WORD.finditer(text))
    says_no = any(text[said.start : said.end] == "no" for said in _at_clause_ends(text).values())
    if says_yes == says_no:
        return _failed(Flag.AMBIGUOUS if says_yes else Flag.NO_ANSWER, "6")
    return _read("yes" if says_yes else "no", "6")


_RULES: tuple[Callable[[str], Reading[str] | None], ...] = (
    _both_offered,
    _lone_words,
    _final_cue,
    _first_word,
    _chinese,
)
