"""Texts as CLIP's tokens: byte pairs of the lower-cased text, between a start and an end token.

Vocabulary and byte-pair merges are open_clip's. It differs from the original in one point that is undone here: it calls
the two special tokens otherwise, so that a literal ``<|endoftext|>`` inside a text would be read as letters and signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import ItemError, MissingPart, Reason
from gen_eval.registry import require

START, END = 49406, 49407
_LITERALS = {"<|startoftext|>": START, "<|endoftext|>": END}
# words of a text: special tokens, English endings, letters, single digits, runs of other signs
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@lru_cache(maxsize=1)
def _byte_pairs() -> Any:
    """open_clip's tokenizer with the special tokens of the original.

    Raises:
        ItemError: ``missing_weights``: open_clip, which holds the vocabulary, is not installed.
    """
    try:
        require("open_clip")
    except MissingPart as error:
        raise ItemError(Reason.MISSING_WEIGHTS, f"the prompt cannot be turned into tokens: {error}") from None
    import regex  # type: ignore[import-untyped]
    from open_clip.tokenizer import SimpleTokenizer

    found = SimpleTokenizer()
    found.encoder = {**found.encoder, **_LITERALS}
    found.cache = {literal: literal for literal in _LITERALS}
    literals = "|".join(regex.escape(literal) for literal in _LITERALS)
    found.pat = regex.compile(f"{literals}|{_WORDS}", regex.IGNORECASE)
    return found


def tokenize(texts: Sequence[str], *, context: int) -> tuple[NDArray[np.int64], list[int]]:
    """Token ids of ``texts``, and how many tokens of each did not fit.

    Args:
        texts: any text; it is repaired (mojibake, HTML entities), its blanks are joined, its letters lower-cased.
        context: length of a row, start and end token included.

    Returns:
        Rows (n, context): start token, at most ``context - 2`` tokens of the text, end token, zeros; and the number of
        tokens of each text that were cut off behind.

    Raises:
        ItemError: ``missing_weights``: the package with the vocabulary is not installed.
        ValueError: ``context`` leaves no room for a token.

    Source:
        OpenAI CLIP; context 32 in ViCLIP.
    """
    room = context - 2
    if room < 1:
        raise ValueError(f"the context must be 3 or more, not {context}: start and end token take two")
    rows = np.zeros((len(texts), context), np.int64)
    cut = []
    for row, text in zip(rows, texts, strict=True):
        content = _byte_pairs().encode(text)
        kept = [START, *content[:room], END]
        row[: len(kept)] = kept
        cut.append(max(len(content) - room, 0))
    return rows, cut
