"""Names of generated videos: ``{id}__{member}``, ``{id}_caption{k}`` and ``{id}``.

A file belongs to a sample when the id is exactly equal; no pattern is matched, so the id ``a`` never claims the file
``a__b__1.mp4`` of the id ``a__b``. Both naming schemes of PAI-Bench-C (protocol section 1) are understood everywhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container
from pathlib import Path
from typing import Any

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
        videos = [
            path
            for path in folder.iterdir()
            if path.suffix.lower() in VIDEO_SUFFIXES
            and not path.name.startswith(".")
            and not path.name.endswith(PREVIEW_SUFFIX)
            and not path.is_dir()
        ]
    except OSError as error:
        raise InputError(f"the video folder {folder} cannot be read: {error.strerror or error}") from error
    return sorted(videos, key=lambda path: path.name)


def is_unicode(value: Any) -> bool:
    """Whether all text in ``value`` (JSON values) can be written as UTF-8.

    It cannot where JSON spells half of a surrogate pair, or a file name holds bytes that are no UTF-8.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_name(path: Path) -> str:
    """The name of ``path`` as text that can be written down, whatever bytes it holds."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def split_name(stem: str, ids: Container[str] | None, *, bare_member: str) -> tuple[str, str] | None:
    """Sample id and member of a generated file.

    Args:
        stem: file name without its ending.
        ids: known sample ids; ``None`` when there is no benchmark and any name is taken.
        bare_member: member of a file that carries the id alone.

    Returns:
        ``(id, member)``, or ``None`` when the file belongs to no sample, as one whose name is no text. Where several
        readings fit, the order is ``id__member``, ``id_captionK``, ``id``.
    """
    if not is_unicode(stem):
        return None
    readings: list[tuple[str, str]] = []
    if "__" in stem:
        sample, member = stem.rsplit("__", 1)
        if sample and member:
            readings.append((sample, member))
    if match := _CAPTION.fullmatch(stem):
        readings.append((match["id"], str(int(match["k"]))))
    readings.append((stem, bare_member))
    return next((reading for reading in readings if ids is None or reading[0] in ids), None)


def caption_stem(sample: str, member: str) -> str:
    """The second way of naming a clip, without the ending.

    >>> caption_stem("task_0007", "3")
    'task_0007_caption3'
    """
    return f"{sample}_caption{member}"
