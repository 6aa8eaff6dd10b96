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
_EFFORT = 100_000  # characters, beyond the text's own, that may be read in looking for the first value
_PRICE_OF_TRYING = 8  # characters
_PRICE_OF_FAILURE = 4  # times the characters


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


class _Source:
    """A text with what has been read in it, so that nothing is read twice and hostile text is given up on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left = len(text) + _EFFORT
        self._known: dict[int, tuple[Any, int] | CutError | None] = {}

    def read(self, at: int) -> tuple[Any, int] | None:
        """The value that begins there, and its end; ``None`` where there is none.

        Raises:
            CutError: the text ends inside it.
        """
        if at not in self._known:
            self._known[at] = self._read(at)
        known = self._known[at]
        if isinstance(known, CutError):
            raise known
        return known

    def _read(self, at: int) -> tuple[Any, int] | CutError | None:
        reader, price = Reader(self.text, at), 1
        try:
            return reader.read()
        except CutError as cut:
            return cut
        except ValueError:
            price = _PRICE_OF_FAILURE
            return None
        finally:
            self.left -= price * (reader.at - at + _PRICE_OF_TRYING)

    def row(self, start: int) -> Iterator[tuple[Any, int, CutError | None]]:
        """Values from there on with nothing but blanks and commas between, each with its end and that of the gap."""
        at = start
        while at < len(self.text) and self.text[at] in "[{":
            try:
                read = self.read(at)
            except CutError as cut:
                yield None, len(self.text), cut
                return
            if read is None:
                return
            between = _BETWEEN.match(self.text, read[1])
            at = between.end() if between else read[1]
            yield read[0], at, None


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
    block, whole = first_fenced(text), _Source(text.strip())
    blocks = [] if block is None else [("fenced block", _Source(block.strip()))]
    another: Payload | None = None
    for rule, source in (*blocks, ("whole text", whole)):
        found = _whole(source, rule)
        if found is None:
            continue
        if wanted(found.value) or (found.closed is not None and wanted(found.closed)):
            return found
        another = another or found
    return _within(whole, wanted, every) or another


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


def _whole(source: _Source, rule: str) -> Payload | None:
    """The value, or the values in a row, that a text consists of."""
    piece = source.text
    if not piece.startswith(("[", "{")):
        return None
    if "\\u" not in piece:
        try:
            return Payload(json.loads(piece), rule)
        except (ValueError, RecursionError):
            pass
    values: list[Any] = []
    for value, end, cut in source.row(0):
        if cut is not None:
            return _cut_payload(cut, f"{rule}, cut off", values)
        values.append(value)
        if end >= len(piece):
            return Payload(_one_or_all(values), rule)
        if source.left < 0:
            break
    return None


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


def _within(source: _Source, wanted: Callable[[Any], bool], every: bool) -> Payload | None:
    """The first readable value of the wanted kind inside prose, with those that follow it directly."""
    found: list[Any] = []
    resume = 0
    for opener in _OPENER.finditer(source.text):
        if opener.start() < resume:
            continue
        if source.left < 0 or (found and not every):
            break
        for value, end, cut in source.row(opener.start()):
            if cut is not None:
                part = _cut_payload(cut, "value in the text, cut off", found)
                if wanted(part.value) or wanted(part.closed):
                    return part
            elif wanted(value):
                found.append(value)
                resume = end
            else:
                break
    return Payload(_one_or_all(found), "value in the text") if found else None
