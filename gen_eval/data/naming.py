"""Names of generated videos: ``{id}__{member}``, ``{id}_caption{k}`` and ``{id}``.

A file belongs to a sample when the id is exactly equal; no pattern is matched, so the id ``a`` never claims the file
``a__b__1.mp4`` of the id ``a__b``. Both naming schemes of PAI-Bench-C (protocol section 1) are understood everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from gen_eval.records import InputError

VIDEO_SUFFIXES = frozenset({".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".gif", ".ts"})
"""Endings (any case) of files that are taken for videos; other files are passed over."""

_CAPTION = re.compile(r"(?P<id>.+)_caption(?P<k>\d+)")
PREVIEW_SUFFIX = ".preview.mp4"
"""Ending of browser previews that are written beside odd-sized videos; never scored."""


def list_videos(folder: Path) -> list[Path]:
    """The video files directly in ``folder``, sorted by name.

    Raises:
        InputError: it is not a folder that can be read.
    """
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise InputError(f"the video folder {folder} cannot be read: {error.strerror or error}") from error
    videos = (
        path
        for path in entries
        if path.suffix.lower() in VIDEO_SUFFIXES
        and not path.name.startswith(".")
        and not path.name.endswith(PREVIEW_SUFFIX)
        and not path.is_dir()
    )
    return sorted(videos, key=lambda path: path.name)


def split_name(stem: str, ids: Container[str] | None, *, bare_member: str) -> tuple[str, str] | None:
    """Sample id and member of a generated file.

    Args:
        stem: file name without its ending.
        ids: known sample ids; ``None`` when there is no benchmark and any name is taken.
        bare_member: member of a file that carries the id alone.

    Returns:
        ``(id, member)``, or ``None`` when the file belongs to no sample. Where several readings fit, the order is
        ``id__member``, ``id_captionK``, ``id``.
    """
    readings: list[tuple[str, str]] = []
    if "__" in stem:
        sample, member = stem.rsplit("__", 1)
        if sample and member:
            readings.append((sample, member))
    if match := _CAPTION.fullmatch(stem):
        readings.append((match["id"], str(int(match["k"]))))
    readings.append((stem, bare_member))
    return next((reading for reading in readings if ids is None or reading[0] in ids), None)
