"""Records from untrusted files: JSON lines, JSON documents, and fields that must have a certain form.

A line that cannot be used is listed and the others stay; only a file that cannot be read at all ends the command.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from gen_eval.data.benchmark import Rejected
from gen_eval.data.naming import is_unicode
from gen_eval.records import InputError, Rejection

JSON_LINES = (".jsonl", ".jsonl.gz")

REPLY_FIELDS = ("reply", "prediction", "raw", "raw_pred", "pred")
"""Names under which a reply is read; two of them may not differ."""

LONGEST_LINE = 64 << 20
"""Bytes of the longest line that is read: a compressed file may hold a line of any length."""

MOST_BYTES = 16 << 30
"""Bytes that a file may have once it is unpacked."""


class Refused(Exception):  # noqa: N818 - what was refused is the line, and the loader lists it
    """One record cannot be used; it is listed and the others stay."""

    def __init__(self, reason: Rejection, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def at(self, where: str) -> Rejected:
        """The entry of the list."""
        return Rejected(where, self.reason, str(self))


def json_lines(
    path: Path, rejected: list[Rejected], *, called: str = "the file"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each record stands (``file:line``), and the record; lines that are no objects go to ``rejected``.

    Lines end at a line feed alone: other separators (U+2028, a form feed) may stand inside a text. One line is held at
    a time.

    Args:
        path: ``.jsonl``, or ``.jsonl.gz``.
        rejected: gets an entry for each damaged line, when it is reached.
        called: what the file is, for the message when it cannot be read.

    Raises:
        InputError: the file cannot be read, or is longer than :data:`LONGEST_LINE` and :data:`MOST_BYTES` allow.
    """
    for number, line in _lines(path, called):
        where = f"{path.name}:{number}"
        try:
            yield where, record_of(line)
        except Refused as refusal:
            rejected.append(refusal.at(where))


def _lines(path: Path, called: str) -> Iterator[tuple[int, str]]:
    number, left = 0, MOST_BYTES
    try:
        with _opened(path) as file:
            while line := file.readline(min(LONGEST_LINE, left) + 1):
                number += 1
                left -= len(line)
                if len(line) > LONGEST_LINE or left < 0:
                    limit = f"a line has at most {LONGEST_LINE} bytes and the whole {MOST_BYTES}"
                    raise InputError(f"{called} {path} cannot be read: {limit}; line {number} goes on; split it")
                if line.strip():
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{called} {path} cannot be read: {error}") from error


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def json_document(path: Path, *, called: str = "the file") -> Any:
    """The JSON document in ``path``; give its records to :func:`object_of`, which sees that their text is text.

    Raises:
        InputError: it cannot be read, or is not JSON.
    """
    try:
        return parsed(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, Refused) as error:
        raise InputError(f"{called} {path} cannot be read as JSON: {error}") from error


def parsed(content: str) -> Any:
    """The JSON value that ``content`` spells.

    Raises:
        Refused: it is not JSON (NaN and Infinity are not), or is nested too deep.
    """
    try:
        return _DECODER.decode(content)
    except (ValueError, RecursionError) as error:
        raise Refused(Rejection.LINE_NOT_JSON, f"not JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # one for all lines: it costs more than a short line does


def record_of(line: str) -> dict[str, Any]:
    """The object that a line of JSON holds.

    Raises:
        Refused: it holds none.
    """
    return object_of(parsed(line))


def object_of(value: Any) -> dict[str, Any]:
    """``value`` when it is an object all of whose text can be written down.

    Raises:
        Refused: it is not.
    """
    if not isinstance(value, dict):
        raise Refused(Rejection.MALFORMED_RECORD, f"expected an object, not {type(value).__name__}")
    try:
        readable = is_unicode(value)
    except RecursionError as error:
        raise Refused(Rejection.LINE_NOT_JSON, f"not JSON: {error}") from error
    except (TypeError, ValueError) as error:  # tables hold bytes, dates and more
        raise Refused(Rejection.MALFORMED_RECORD, f"it holds what JSON cannot: {error}") from error
    if not readable:
        raise Refused(Rejection.MALFORMED_RECORD, "a text holds half of a surrogate pair, which is no character")
    return value


def objects_of(values: Iterable[Any], path: Path, rejected: list[Rejected]) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a list in a document, each with where it stands; what is none goes to ``rejected``."""
    found = []
    for place, value in enumerate(values):
        where = f"{path.name} entry {place}"
        try:
            found.append((where, object_of(value)))
        except Refused as refusal:
            rejected.append(refusal.at(where))
    return found


def text(record: Mapping[str, Any], field: str) -> str | None:
    """The text in ``field``; ``None`` when it is absent or null.

    Raises:
        Refused: it is something else, or holds a NUL character, which neither file names nor databases take.
    """
    value = record.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _no_text(field, value)
    if "\0" in value:
        raise Refused(Rejection.MALFORMED_RECORD, f"{field} holds a NUL character; no file name takes one")
    return value


def required_text(record: Mapping[str, Any], field: str) -> str:
    """The text in ``field``.

    Raises:
        Refused: it is absent, not text, or has nothing but blanks.
    """
    value = text(record, field)
    if value is None:
        raise Refused(Rejection.MISSING_FIELD, f"the field {field} is missing")
    if not value.strip():
        raise _no_text(field, value)
    return value


def _no_text(field: str, value: Any) -> Refused:
    hint = f'; write "{value}" for a number' if isinstance(value, int) else ""
    return Refused(Rejection.MALFORMED_RECORD, f"{field} must be a text that is not empty, not {value!r:.80}{hint}")


def seed_of(seed: Any) -> str:
    """A seed, given as a whole number or a name, as text.

    Raises:
        Refused: it is neither.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | str) or seed == "" or "\0" in str(seed):
        raise Refused(Rejection.MALFORMED_RECORD, f"seed must be a whole number or a name, not {seed!r:.60}")
    return str(seed)


def real_of(value: Any) -> float | None:
    """``value`` if it is a number that a float holds; truth values are none."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return float(value) if known else None


def reply_of(record: Mapping[str, Any]) -> Any:
    """The reply of a record, under any of :data:`REPLY_FIELDS`; ``None`` for none, which must be said or explained.

    Raises:
        Refused: no field holds one and no ``error`` says why, or two fields hold different ones.
    """
    present = [name for name in REPLY_FIELDS if name in record]
    if not present and error_of(record) is None:
        names = ", ".join(REPLY_FIELDS)
        raise Refused(Rejection.MISSING_FIELD, f"no reply: one of {names} is needed (null for none)")
    contents = [record[name] for name in present]
    if any(_spelt(one) != _spelt(contents[0]) for one in contents[1:]):
        raise Refused(Rejection.CONFLICTING_FIELDS, f"{' and '.join(present)} hold different replies; keep one")
    return contents[0] if contents else None


def _spelt(value: Any) -> str:
    """As JSON: 1 and ``true`` are equal in Python and are not the same reply."""
    return json.dumps(value, sort_keys=True)


def error_of(record: Mapping[str, Any]) -> str | None:
    """Why there is no reply, in the words of what asked; ``None`` where nothing went wrong (null, false, empty)."""
    error = record.get("error")
    return None if error is None or error is False or error == "" else str(error)


__all__ = [
    "JSON_LINES",
    "LONGEST_LINE",
    "MOST_BYTES",
    "REPLY_FIELDS",
    "Refused",
    "error_of",
    "json_document",
    "json_lines",
    "object_of",
    "objects_of",
    "parsed",
    "real_of",
    "record_of",
    "reply_of",
    "required_text",
    "seed_of",
    "text",
]
