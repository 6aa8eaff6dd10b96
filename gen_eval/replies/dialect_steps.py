"""What public code does to a reply, one step after another; a dialect (``configs/dialects``) is a list of them.

A step takes the text on, or settles what is read. None of them goes through the text more often than there are words in
its argument.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_PUNCTUATION = re.compile(r"[^\w\s]")
_LEADING = re.compile(r"[A-Z]\b")


@dataclass(frozen=True)
class Settled:
    """What a step has read.

    Attributes:
        value: the letter; ``None`` when the reply can be right for no key.
        drawn: whether it was drawn at random.
    """

    value: str | None
    drawn: bool = False


@dataclass(frozen=True)
class Question:
    """What a step may know of the question: its options (letter -> text) and its id."""

    options: Mapping[str, str | None] = field(default_factory=dict)
    id: str = ""


def drawn_letter(question_id: str, letters: str) -> str:
    """The letter that is "drawn" for a question: SHA-256 of its id (UTF-8) as a number, modulo how many there are.

    >>> drawn_letter("q1", "ABCDE") == drawn_letter("q1", "ABCDE")
    True
    """
    digest = hashlib.sha256(question_id.encode("utf-8", "surrogatepass")).digest()
    return letters[int.from_bytes(digest, "big") % len(letters)]


def _lower(text: str) -> str:
    return text.lower()


def _strip(text: str) -> str:
    return text.strip()


def _remove_blocks(text: str, tags: list[str]) -> str:
    """Drop what is between an opening tag and the next closing one of its name, in this case only."""
    for tag in tags:
        opening, closing = f"<{tag}>", f"</{tag}>"
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
            kept.append(text[at:start])
            at = end + len(closing)
        text = "".join([*kept, text[at:]])
    return text


def _keep_after(text: str, marks: list[str]) -> str:
    for mark in marks:
        text = text.rpartition(mark)[2]
    return text


def _within(text: str, open: str, close: str, unclosed: str, absent: Mapping[str, str]) -> str:
    """What stands in the first pair of tags, trimmed; without one, the text with something put at its end."""
    _, found, inner = text.partition(open)
    content, closed, _ = inner.partition(close)
    if found and (closed or unclosed == "to_end"):
        return content.strip()
    return text + absent["append"]


def _delete(text: str, phrases: list[str]) -> str:
    for phrase in phrases:
        text = text.replace(phrase, "")
    return text


def _delete_punctuation(text: str) -> str:
    return _PUNCTUATION.sub("", text)


def _draw(text: str, question: Question, letters: str) -> Settled:
    return Settled(drawn_letter(question.id, letters), drawn=True)


def _draw_if(text: str, question: Question, words_over: int, none_of: str, letters: str) -> str | Settled:
    if len(text.split()) > words_over and not set(none_of) & set(text):
        return _draw(text, question, letters)
    return text


def _first_shape(text: str, question: Question, letters: str, shapes: list[str]) -> str | Settled:
    """The first letter in the first shape that occurs; ``X`` stands for the letter."""
    for shape in shapes:
        before, _, after = shape.partition("X")
        match = re.search(f"{re.escape(before)}([{re.escape(letters)}]){re.escape(after)}", text)
        if match:
            return Settled(match[1])
    return text


def _leading_option(text: str, question: Question) -> str | Settled:
    match = _LEADING.match(text)
    return Settled(match.group()) if match and match.group() in question.options else text


def _option_text(text: str, question: Question) -> str | Settled:
    """The option whose text comes first, letter by letter; of two at one place the one that is listed first."""
    texts: dict[str, str] = {}
    for letter in sorted(question.options):
        content = question.options[letter]
        if content is not None:
            texts[content.strip()] = letter
    places = [
        (place, order, letter) for order, (one, letter) in enumerate(texts.items()) if (place := text.find(one)) >= 0
    ]
    return Settled(min(places)[2]) if places else text


def _equals_letter(text: str, question: Question, drop: str) -> Settled:
    """The letter that ``text`` is, whatever its case, when certain characters are left out."""
    left = text.lower().translate(dict.fromkeys(map(ord, drop)))
    return Settled(left.upper() if len(left) == 1 and "a" <= left <= "z" else None)


Step = Callable[[str, Question], "str | Settled"]

_PLAIN: dict[str, Callable[..., str]] = {
    "lower": _lower,
    "strip": _strip,
    "remove_blocks": _remove_blocks,
    "keep_after": _keep_after,
    "within": _within,
    "delete": _delete,
    "delete_punctuation": _delete_punctuation,
}
_KNOWING: dict[str, Callable[..., str | Settled]] = {
    "draw": _draw,
    "draw_if": _draw_if,
    "first_shape": _first_shape,
    "leading_option": _leading_option,
    "option_text": _option_text,
    "equals_letter": _equals_letter,
}
_ARGUMENTS: dict[str, dict[str, type]] = {
    "within": {"open": str, "close": str, "unclosed": str, "absent": dict},
    "draw": {"letters": str},
    "draw_if": {"words_over": int, "none_of": str, "letters": str},
    "first_shape": {"letters": str, "shapes": list},
    "equals_letter": {"drop": str},
}
_LISTS = ("remove_blocks", "keep_after", "delete")


def step(written: Any) -> tuple[str, Step]:
    """A step as it is written in a dialect: its name, or a mapping of its name to its argument.

    Returns:
        The name, and the step itself.

    Raises:
        ValueError: there is no such step, or it has another argument.
    """
    name, argument = next(iter(written.items())) if isinstance(written, dict) and len(written) == 1 else (written, None)
    if not isinstance(name, str) or name not in {**_PLAIN, **_KNOWING}:
        raise ValueError(f"{written!r} is no step; there are {', '.join(sorted({**_PLAIN, **_KNOWING}))}")
    _check(name, argument)
    listed = [argument] if name in _LISTS else []
    named: dict[str, Any] = dict(argument or {}) if name in _ARGUMENTS else {}
    if name in _PLAIN:
        plain = _PLAIN[name]
        return name, lambda text, question: plain(text, *listed, **named)
    knowing = _KNOWING[name]
    return name, lambda text, question: knowing(text, question, **named)


def _check(name: str, argument: Any) -> None:
    if name in _LISTS:
        fits = isinstance(argument, list) and all(isinstance(item, str) and item for item in argument)
        expected = "a list of texts"
    elif name in _ARGUMENTS:
        kinds = _ARGUMENTS[name]
        fits = isinstance(argument, dict) and set(argument) == set(kinds)
        fits = fits and all(isinstance(argument[key], kind) and argument[key] != "" for key, kind in kinds.items())
        expected = f"a mapping with {', '.join(kinds)}"
    else:
        fits, expected = argument is None, "no argument"
    if not fits:
        raise ValueError(f"the step {name} takes {expected}, not {argument!r}")
