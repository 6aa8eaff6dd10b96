"""Videos and pictures that records of untrusted files name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_eval.data.records_file import Refused
from gen_eval.data.samples_file import beside
from gen_eval.records import Rejection


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
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max
    return float(value) if known else None
