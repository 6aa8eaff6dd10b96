"""Where in a reply its JSON is, and the elements of a value that is cut off or wrapped.

Looked at in this order: the first fenced block; the whole text; the first bracket in the text that opens a readable
value of the wanted kind, to its matching end; the complete elements of a value that was cut off. One pass, with a
bound on the work that hostile text can cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gen_eval.replies.repair import CutError, Reader

_OPENER = re.compile(r"[\[{]")
_BETWEEN = re.compile(r"[\s,]*+")
_FENCE = "```"
_EFFORT = 8  # characters that may be read for each character of the text
_LEAST_EFFORT = 10_000


@dataclass(frozen=True)
class Payload:
    """JSON found in a reply.

    Attributes:
        value: what was read; several values in a row come as a list.
        rule: where it was found.
        cut: whether the text ended before the value did.
        closed: a value that was cut off, with the brackets that are missing put at its end, its last number as it
            stands; ``None`` where more is missing, or nothing.
    """

    value: Any
    rule: str
    cut: bool = False
    closed: Any = None


def find_payload(text: str, wanted: Callable[[Any], bool], *, every: bool = False) -> Payload | None:
    """The JSON of a reply.

    Args:
        text: the reply without reasoning blocks and answer tags.
        wanted: whether a value is of the kind that is looked for.
        every: whether, of several values scattered in the text, all are taken and not the first alone.

    Returns:
        ``None`` when there is no JSON at all. A fenced block or a whole text that is JSON of another kind is returned
        when there is nothing better.
    """
    blocks = [("fenced block", block)] if (block := first_fenced(text)) is not None else []
    another: Payload | None = None
    for rule, piece in (*blocks, ("whole text", text)):
        found = _whole(piece.strip(), rule)
        if found is None:
            continue
        if wanted(found.value) or (found.closed is not None and wanted(found.closed)):
            return found
        another = another or found
    return _within(text, wanted, every) or another


def first_fenced(text: str) -> str | None:
    """The content of the first block between triple back-ticks, up to their end or that of the text."""
    start = text.find(_FENCE)
    if start < 0:
        return None
    start += len(_FENCE)
    end = text.find(_FENCE, start)
    block = text[start:] if end < 0 else text[start:end]
    language, newline, rest = block.partition("\n")
    if newline and language.strip().isalnum():
        return rest
    word = re.match(r"\s*(?:json|python)\b", block, re.IGNORECASE)
    return block[word.end() :] if word else block


def _whole(piece: str, rule: str) -> Payload | None:
    """The value, or the values in a row, that ``piece`` consists of."""
    if not piece.startswith(("[", "{")):
        return None
    try:
        if "\\u" not in piece:
            return Payload(json.loads(piece), rule)
    except (ValueError, RecursionError):
        pass
    values: list[Any] = []
    for value, end, cut in _row(piece, 0):
        if cut is not None:
            return _cut_payload(cut, f"{rule}, cut off", values)
        values.append(value)
        if end >= len(piece):
            return Payload(_one_or_all(values), rule)
    return None


def _row(text: str, start: int, spent: list[int] | None = None) -> Iterator[tuple[Any, int, CutError | None]]:
    """Values from ``start`` on with nothing but blanks and commas between them; the end of each and what follows."""
    at = start
    while at < len(text) and text[at] in "[{":
        reader = Reader(text, at)
        try:
            value, end = reader.read()
        except CutError as cut:
            yield None, len(text), cut
            return
        except ValueError:
            return
        finally:
            if spent is not None:
                spent[0] += reader.at - at
        between = _BETWEEN.match(text, end)
        at = between.end() if between else end
        yield value, at, None


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _cut_payload(cut: CutError, rule: str, before: list[Any]) -> Payload:
    kept = complete(cut)
    values = [*before, *([] if kept is None else [kept])]
    closed = None if cut.closed is None else _one_or_all([*before, cut.closed])
    return Payload(_one_or_all(values) if values else [], rule, cut=True, closed=closed)


def complete(cut: CutError) -> Any:
    """What is complete in a value that was cut off, or ``None``.

    The outermost list that holds a whole list or object, else the outermost container that holds anything; where only
    brackets are missing and nothing else was whole, the value with its brackets.
    """
    for value in cut.open:
        if isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
            return value
    kept = next((value for value in cut.open if value), None)
    if isinstance(kept, dict) and kept is cut.open[0]:
        return kept
    if cut.closed is not None and not cut.bare:
        return cut.closed
    return kept


def _within(text: str, wanted: Callable[[Any], bool], every: bool) -> Payload | None:
    """The first readable value of the wanted kind inside prose, with those that follow it directly."""
    found: list[Any] = []
    spent, limit, resume = [0], max(_LEAST_EFFORT, _EFFORT * len(text)), 0
    for opener in _OPENER.finditer(text):
        if opener.start() < resume or spent[0] > limit:
            continue
        for value, end, cut in _row(text, opener.start(), spent):
            if cut is not None:
                part = _cut_payload(cut, "value in the text, cut off", found)
                if wanted(part.value) or wanted(part.closed):
                    return part
            elif wanted(value):
                found.append(value)
                resume = end
            else:
                break
        if found and not every:
            break
    return Payload(_one_or_all(found), "value in the text") if found else None
