"""Text made plain, sentences, and words: what the readers have in common. Everything here is linear in the text."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable
from typing import TypeVar

from gen_eval.replies.words import CJK

Item = TypeVar("Item")

_DROPPED = dict.fromkeys(map(ord, '*_`$"“”„‟«»\u200b\u200c\u200d\u2060\ufeff'))
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ", "'"))
_WORD_START = re.compile(r"\w")
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_SENTENCE = re.compile(r"\n|(?<=[.?!;。])")
_WORDS = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_MARKS = 30  # combining marks in a row; normalization is quadratic in such a run, and no script has more


def clean(text: str) -> str:
    """``text`` in compatible form (NFKC), without marks of emphasis and double quotes, trimmed."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _without_towers(text))
    return text.translate(_DROPPED).strip()


def _without_towers(text: str) -> str:
    """``text`` without the combining marks of a run that are beyond what any script uses."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MARKS:
            kept.append(character)
    return text if len(kept) == len(text) else "".join(kept)


def tidy(text: str) -> str:
    """``text`` with straight apostrophes, single blanks, and single line feeds without blanks around them."""
    lines = "\n".join(text.translate(_APOSTROPHES).splitlines())
    return _LINES.sub("\n", _BLANKS.sub(" ", lines)).strip()


def trimmed(text: str) -> str:
    """``text`` from its first to its last character that belongs to a word."""
    first = _WORD_START.search(text)
    if first is None:
        return ""
    last = _WORD_START.search(text[::-1])
    assert last is not None  # there is one from the other end, too
    return text[first.start() : len(text) - last.start()]


def sentences(text: str) -> list[str]:
    """The pieces of tidy ``text`` between line feeds or after a mark that ends a sentence, each with a word in it."""
    return [piece.strip() for piece in _SENTENCE.split(text) if _WORD_START.search(piece)]


def words(text: str) -> list[str]:
    """The words of ``text``, casefolded and without punctuation; a Chinese character is a word."""
    return _WORDS.findall(tidy(clean(text)).casefold().replace("'", ""))


def holds_phrase(text_words: list[str], phrase: list[str]) -> bool:
    """Whether ``phrase`` occurs among ``text_words`` as a sequence; an empty one does not."""
    return bool(phrase) and f" {' '.join(phrase)} " in f" {' '.join(text_words)} "


def last_of(items: Iterable[Item]) -> Item | None:
    """The last of ``items``, ``None`` where there is none."""
    last = deque(items, maxlen=1)
    return last[0] if last else None
