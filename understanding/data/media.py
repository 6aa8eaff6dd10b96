"""Records from untrusted files: JSON lines, JSON lists, and fields that must have a certain form."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_eval.data.benchmark import Rejected
from gen_eval.data.naming import is_unicode
from gen_eval.data.samples_file import beside
from gen_eval.records import InputError, Rejection

JSON_LINES = (".jsonl", ".jsonl.gz")


class Refused(Exception):  # noqa: N818 - what was refused is the line, and the loader lists it
    """One record cannot be used; it is listed and the others stay."""

    def __init__(self, reason: Rejection, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def at(self, where: str) -> Rejected:
        """The entry of the list."""
        return Rejected(where, self.reason, str(self))


@dataclass(frozen=True)
class Media:
    """A video or picture of a sample.

    Attributes:
        name: the path as the data name it.
        path: where it should lie, inside the media folder; ``None`` when only its numbers are given.
        fps: frames a second, when given.
        n_frames: number of frames, when given.
    """

    name: str
    path: Path | None
    fps: float | None = None
    n_frames: int | None = None

    @property
    def present(self) -> bool:
        """Whether there is such a file."""
        return self.path is not None and self.path.is_file()


def json_lines(path: Path, rejected: list[Rejected]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each record stands (``file:line``), and the record; lines that are no objects go to ``rejected``.

    Raises:
        InputError: the file cannot be read.
    """
    for number, line in _lines(path):
        where = f"{path.name}:{number}"
        try:
            yield where, record_of(line)
        except Refused as refusal:
            rejected.append(refusal.at(where))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.name.endswith(".gz")
            else path.open(encoding="utf-8") as file
        ):
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def record_of(line: str) -> dict[str, Any]:
    """The object that a line of JSON holds.

    Raises:
        Refused: it holds none.
    """
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
        readable = is_unicode(record)
    except (ValueError, RecursionError) as error:
        raise Refused(Rejection.LINE_NOT_JSON, f"not JSON: {error}") from error
    if not readable:
        raise Refused(Rejection.MALFORMED_RECORD, "a text holds half of a surrogate pair, which is no character")
    if not isinstance(record, dict):
        raise Refused(Rejection.MALFORMED_RECORD, f"expected an object, not {type(record).__name__}")
    return record


def json_document(path: Path) -> Any:
    """The JSON document in ``path``.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def text(record: Mapping[str, Any], field: str, *, required: bool = False) -> str | None:
    """The text in ``field``; ``None`` when it is absent or null.

    Raises:
        Refused: it is something else, or absent although required.
    """
    value = record.get(field)
    if value is None:
        if required:
            raise Refused(Rejection.MISSING_FIELD, f"the field {field} is missing")
        return None
    if not isinstance(value, str) or (required and not value):
        hint = f'; write "{value}" for a number' if isinstance(value, int) else ""
        raise Refused(Rejection.MALFORMED_RECORD, f"{field} must be a text that is not empty, not {value!r:.80}{hint}")
    return value


def media(record: Mapping[str, Any], field: str, root: Path, *others: Path) -> Media | None:
    """The file named in ``field``: a relative path, or ``{"path": .., "fps": .., "n_frames": ..}``.

    Args:
        record: the record.
        field: of the file.
        root: folder that the path is relative to and may not leave.
        others: folders that are looked into as well; the first that has the file wins, else ``root``.

    Raises:
        Refused: it is neither, or leads out of the folder.
    """
    value = record.get(field)
    if value is None:
        return None
    long: Mapping[str, Any] = value if isinstance(value, Mapping) else {"path": value}
    name = long.get("path")
    fps, frames = long.get("fps"), long.get("n_frames")
    numbers = (_positive(fps), _positive(frames))
    if name is None and isinstance(value, Mapping) and any(number is not None for number in numbers):
        return Media("", None, numbers[0], None if numbers[1] is None else int(numbers[1]))
    places = [beside(folder, name) for folder in (root, *others)] if isinstance(name, str) else []
    if not places or places[0] is None:
        raise Refused(Rejection.MALFORMED_RECORD, f"{field} must be a relative path inside {root}, not {value!r:.120}")
    path = next((place for place in places if place is not None and place.is_file()), places[0])
    return Media(str(name), path, numbers[0], None if numbers[1] is None else int(numbers[1]))


def _positive(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if known else None
