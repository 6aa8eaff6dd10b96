"""Answers that are neither yes, no nor a letter: the key's own words must occur."""

from __future__ import annotations

from dataclasses import replace

from gen_eval.replies.plain_text import holds_phrase, words
from gen_eval.replies.prelude import prelude
from gen_eval.replies.reading import Reading


def read_phrase(reply: object, text: str) -> Reading[str]:
    """Whether ``text`` occurs in ``reply`` as a whole word or phrase, whatever the case and the punctuation.

    Args:
        reply: what the model said; anything but text is a named failure.
        text: the right answer in words.

    Returns:
        ``text`` itself when it occurs; else what was said instead, which does not hold it. Only the prelude fails.

    >>> print(read_phrase("The cup is left of the plate", "left"))
    'left' by phrase
    """
    found = prelude(reply)
    if found.value is None:
        return found
    return replace(found, value=text if holds_phrase(words(found.value), words(text)) else found.value, rule="phrase")
