"""Reading JSON as models write it: strict JSON first, and then a lenient reader that knows the usual slips.

The lenient reader goes through the text once, evaluates nothing and does not recurse, so that hostile text costs no
more than its length. It accepts, where strict JSON would fail: Python literals (single quotes, ``True``, ``None``,
round brackets), trailing commas, bare clock times (``00:05``, read as text), a doubled opening bracket of one box, and
missing closing brackets.
"""

from __future__ import annotations

import json
import re
import sys
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

DEEPEST = 64
"""Containers inside one another that the lenient reader accepts."""

_LONGEST_INTEGER = 300  # digits; beyond, a number is infinite for every use here
_CLOSES = {"]": "[", "}": "{", ")": "("}
_WORDS: dict[str, Any] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "nan": float("nan"),
    "NaN": float("nan"),
    "inf": float("inf"),
    "Infinity": float("inf"),
    "-inf": float("-inf"),
    "-Infinity": float("-inf"),
}
_BLANK = re.compile(r"\s*+")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|' r"'[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL)
_CLOCK = re.compile(r"[+-]?\d{1,3}(?::\d{1,2}){1,2}(?:\.\d+)?(?=[\s,\]})]|$)")
_BARE = re.compile(r"""[^\s\[\]{}(),:"']++""")
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?")
_ESCAPE = re.compile(r"\\(U[0-9a-fA-F]{8}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}

_VALUES = frozenset({"value", "value or end"})
_Expected = Literal["value", "value or end", "key or end", "colon", "comma or end"]


class CutError(ValueError):
    """The text ends before its value does.

    Attributes:
        open: the containers that were not closed, outermost first; each holds only what was surely complete in it.
        closed: the value with the missing brackets put at the end; ``None`` where more than brackets is missing.
        bare: whether the text ends with a number or word, which may have been longer.
    """

    def __init__(self, open_: list[Any], closed: Any, bare: bool) -> None:
        super().__init__("the text ends before its brackets are closed")
        self.open, self.closed, self.bare = open_, closed, bare


@dataclass(slots=True)
class _Frame:
    """One open container."""

    bracket: str
    value: Any
    expected: _Expected
    key: str | None = None
    commas: int = 0

    def put(self, value: Any) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
            self.key = None
        else:
            self.value.append(value)
        self.expected = "comma or end"


def parse(text: str) -> Any:
    """The JSON value that is the whole of ``text``, with repairs.

    Args:
        text: one value with nothing but blanks around it.

    Returns:
        Dictionaries with text keys, lists, text, numbers, truth values and ``None``. ``NaN`` and infinities come
        back as such; who reads numbers refuses them.

    Raises:
        ValueError: it is no JSON and cannot be repaired.
    """
    if "\\u" not in text:  # escapes may leave half a surrogate pair, which no file can hold
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    try:
        value, end = read_value(text, 0)
    except CutError as cut:
        if cut.closed is None:
            raise
        return cut.closed
    if text[end:].strip():
        raise ValueError(f"there is more after the value that ends at character {end}")
    return value


def read_value(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at ``start``, and where it ends; what follows is not looked at.

    Raises:
        CutError: the text ends inside it.
        ValueError: there is no value, or it cannot be repaired.
    """
    return Reader(text, start).read()


class Reader:
    """One pass over a text from ``start``, with the open containers on a stack of its own.

    Attributes:
        at: how far the text has been read, also after an error.
    """

    def __init__(self, text: str, start: int) -> None:
        self.text, self.at = text, start
        self.frames: list[_Frame] = []
        self.done: list[Any] = []  # the value, once it is whole

    def read(self) -> tuple[Any, int]:
        """See :func:`read_value`."""
        self._skip()
        if self.at >= len(self.text) or self.text[self.at] not in "[{(":
            return self._scalar(), self.at
        while not self.done:
            self._skip()
            if self.at >= len(self.text):
                self._cut(self._open_values())
            elif (sign := self.text[self.at]) in "[{(":
                self._open(sign)
            elif sign in "]})":
                self._close(sign)
            elif sign in ",:":
                self._separate(sign)
            else:
                self._atom()
        return self.done[0], self.at

    def _skip(self) -> None:
        if self.at < len(self.text) and self.text[self.at].isspace() and (match := _BLANK.match(self.text, self.at)):
            self.at = match.end()

    def _fail(self) -> NoReturn:
        expected = self.frames[-1].expected if self.frames else "value"
        found = self.text[self.at : self.at + 10]
        raise ValueError(f"expected {expected} at character {self.at}, found {found!r}")

    def _open_values(self) -> list[Any]:
        return [copy(frame.value) for frame in self.frames]

    def _cut(self, found: list[Any], bare: bool = False) -> NoReturn:
        """The text has ended with containers open, in which ``found`` is complete."""
        top = self.frames[-1]
        if not (top.expected == "comma or end" or (top.commas and top.expected.endswith("or end"))):
            raise CutError(found, None, bare)
        lone = len(self.frames) == 1 and len(top.value) == 1 and not top.commas and not bare
        if lone and self._begins_with_box(top):
            raise CutError(found, top.value[0], bare)  # the doubled bracket of the only box
        while self.frames:
            self._finish(self.frames[-1])
        raise CutError(found, self.done[0], bare)

    # --- containers

    def _open(self, sign: str) -> None:
        if self.frames and self.frames[-1].expected not in _VALUES:
            self._fail()
        if len(self.frames) >= DEEPEST:
            raise ValueError(f"more than {DEEPEST} brackets inside one another at character {self.at}")
        self.at += 1
        mapping = sign == "{"
        self.frames.append(_Frame(sign, {} if mapping else [], "key or end" if mapping else "value or end"))

    def _close(self, sign: str) -> None:
        opener = _CLOSES[sign]
        if self.frames[-1].bracket != opener and not any(frame.bracket == opener for frame in self.frames):
            self._fail()
        while True:
            frame = self.frames[-1]
            if not frame.expected.endswith("end"):
                self._fail()
            matches = frame.bracket == opener
            self._finish(frame)
            if matches:
                self.at += 1
                return

    def _finish(self, frame: _Frame) -> None:
        """Hand a container that is whole to the one around it."""
        self.frames.pop()
        value = frame.value
        if frame.bracket == "(" and len(value) == 1 and not frame.commas:
            value = value[0]
        if self.frames:
            self.frames[-1].put(value)
        else:
            self.done.append(value)

    def _begins_with_box(self, frame: _Frame) -> bool:
        """Whether the container is a list whose first element is a list of four numbers."""
        return isinstance(frame.value, list) and isinstance(frame.value[0], list) and _four_numbers(frame.value[0])

    # --- separators

    def _separate(self, sign: str) -> None:
        top = self.frames[-1]
        if sign == ":":
            if top.expected != "colon" and not self._collapse():
                self._fail()
            self.frames[-1].expected = "value"
        elif top.expected == "comma or end":
            top.expected = "key or end" if isinstance(top.value, dict) else "value or end"
            top.commas += 1
        else:
            self._fail()
        self.at += 1

    def _collapse(self) -> bool:
        """Take ``{"box": [[1, 2, 3, 4], "label":`` as if the bracket had not been doubled."""
        if len(self.frames) < 2:
            return False
        top, around = self.frames[-1], self.frames[-2]
        fits = isinstance(top.value, list) and isinstance(around.value, dict) and top.expected == "comma or end"
        if not (fits and len(top.value) == 2 and isinstance(top.value[1], str) and self._begins_with_box(top)):
            return False
        self.frames.pop()
        around.put(top.value[0])
        around.key, around.commas = top.value[1], around.commas + 1
        return True

    # --- keys, texts, numbers, words

    def _atom(self) -> None:
        top = self.frames[-1]
        if top.expected == "key or end":
            top.key, top.expected = self._key(), "colon"
        elif top.expected in _VALUES:
            quoted = self.text[self.at] in "\"'"
            value = self._scalar()
            if self.at < len(self.text) or quoted:
                top.put(value)
                return
            found = self._open_values()
            top.put(value)
            self._cut(found, bare=True)
        else:
            self._fail()

    def _key(self) -> str:
        if match := _STRING.match(self.text, self.at):
            self.at = match.end()
            return _unescaped(match.group())
        if (match := _BARE.match(self.text, self.at)) and _NUMBER.fullmatch(match.group()):
            self.at = match.end()
            return match.group()
        self._unreadable()

    def _scalar(self) -> Any:
        if match := _STRING.match(self.text, self.at):
            self.at = match.end()
            return _unescaped(match.group())
        if match := _CLOCK.match(self.text, self.at):
            self.at = match.end()
            return match.group()
        match = _BARE.match(self.text, self.at)
        if match and match.group() in _WORDS:
            self.at = match.end()
            return _WORDS[match.group()]
        if match and _NUMBER.fullmatch(match.group()):
            self.at = match.end()
            return _number(match.group())
        self._unreadable()

    def _unreadable(self) -> NoReturn:
        if self.frames and self.at < len(self.text) and self.text[self.at] in "\"'":  # a text without an end
            raise CutError(self._open_values(), None, bare=False)
        self._fail()


def _four_numbers(items: list[Any]) -> bool:
    return len(items) == 4 and all(isinstance(item, int | float) and not isinstance(item, bool) for item in items)


def _number(text: str) -> int | float:
    plain = text.lstrip("+-").isdigit() and len(text) <= _LONGEST_INTEGER
    return int(text) if plain else float(text)


def _unescaped(quoted: str) -> str:
    """The text inside quotes, its escapes resolved; halves of a surrogate pair are replaced."""
    inner = quoted[1:-1]
    if "\\" not in inner:
        return inner
    text = _ESCAPE.sub(_resolve, inner)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _resolve(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= sys.maxunicode else "\N{REPLACEMENT CHARACTER}"
    return _ESCAPED.get(code, code)
