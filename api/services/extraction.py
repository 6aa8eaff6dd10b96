"""Making control signals of videos: what generators are steered by and fidelity is measured against.

The public layout is written: ``canny/<name>.mp4``, ``blur/<name>.mp4`` for people and generators, and
``edges/<name>.npz`` with the exact maps (the mp4 is lossy). A signal whose network is absent is skipped with a reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.services.preparation import Progress, silent
from gen_eval.data import list_videos
from gen_eval.data.signal_files import write_edges
from gen_eval.media import ClipStream, open_clip, sha256_file, write_clip
from gen_eval.protocols import Protocol, load_preset, load_protocol
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.records.files import remove_leftovers, write_atomic

SIGNALS = ("blur", "edge", "depth", "seg")
_CHUNK = 8


@dataclass(frozen=True)
class Extracted:
    """What became of one signal of one video.

    Attributes:
        status: ``written``, ``kept`` (it was there, made from the same video in the same way), ``skipped`` or
            ``failed``.
        files: paths under the output folder.
    """

    video: str
    signal: str
    status: str
    files: tuple[str, ...] = ()
    reason: Reason | None = None
    message: str = ""


def extract_signals(
    videos: Path,
    out: Path,
    *,
    signals: tuple[str, ...] = ("blur", "edge"),
    protocol: str = "corrected",
    preset: str = "121-frames",
    progress: Progress = silent,
) -> list[Extracted]:
    """Write control signals of every video in ``videos``.

    ``signals.json`` in ``out`` says what each file was made from: a file that was made from the same video, with the
    same parameters, and is whole is kept, so the same call goes on where it stopped; others are written again.

    Args:
        videos: folder of videos.
        out: folder to write.
        signals: of ``blur``, ``edge``, ``depth``, ``seg``.
        protocol: whose filter and thresholds are used.
        preset: how many frames.
        progress: told how far the work is.

    Raises:
        InputError: an unknown signal, protocol or preset, two videos of one name, or no video in the folder.
    """
    if unknown := [signal for signal in signals if signal not in SIGNALS]:
        raise InputError(f"unknown signal {', '.join(unknown)}; expected some of {', '.join(SIGNALS)}")
    paths = list_videos(videos)
    if not paths:
        raise InputError(f"{videos} holds no video")
    if twice := [name for name, count in Counter(path.stem for path in paths).items() if count > 1]:
        raise InputError(f"{videos} holds several videos named {twice[0]}; their signals would have one name")
    how = {signal: load_protocol(_METRIC_OF[signal], protocol) for signal in signals if signal in _METRIC_OF}
    limit = load_preset(preset).limit
    made = _Record(out / RECORD)
    done: list[Extracted] = []
    for number, path in enumerate(paths, start=1):
        for signal in signals:
            if signal in how:
                done.append(_extract(path, out, signal, how[signal], limit, made))
            else:
                message = f"{signal} needs a network that is not part of this release"
                done.append(Extracted(path.name, signal, "skipped", (), Reason.MISSING_WEIGHTS, message))
        progress("extracting", number, len(paths))
    return done


RECORD = "signals.json"
_METRIC_OF = {"blur": "blur_ssim", "edge": "edge_f1"}
_FILES = {"blur": ("blur/{}.mp4",), "edge": ("canny/{}.mp4", "edges/{}.npz")}


class _Record:
    """What the files of a folder were made from, on disk after every change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Any] = {}
        if path.is_file():
            try:
                self._entries = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError) as error:
                raise InputError(f"{path} cannot be read: {error}; remove it to write all signals again") from error

    def holds(self, key: str, source: dict[str, Any], files: list[Path]) -> bool:
        """Whether ``files`` were made from ``source`` and still have the content that they were written with."""
        entry = self._entries.get(key)
        if not isinstance(entry, dict) or entry.get("source") != source:
            return False
        return all(path.is_file() for path in files) and entry.get("files") == [sha256_file(path) for path in files]

    def add(self, key: str, source: dict[str, Any], files: list[Path]) -> None:
        """Remember what ``files`` were made from."""
        self._entries[key] = {"source": source, "files": [sha256_file(path) for path in files]}
        content = json.dumps(self._entries, indent=1, sort_keys=True, ensure_ascii=False)
        write_atomic(self._path, f"{content}\n".encode())


def _extract(path: Path, out: Path, signal: str, protocol: Protocol, limit: int | None, made: _Record) -> Extracted:
    files = tuple(name.format(path.stem) for name in _FILES[signal])
    targets = [out / file for file in files]
    key = f"{signal} {path.stem}"
    try:
        source = {"sha256": sha256_file(path), "parameters": protocol.digest, "limit": limit}
        if made.holds(key, source, targets):
            return Extracted(path.name, signal, "kept", files)
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target.parent)
        {"blur": _write_blur, "edge": _write_edges}[signal](path, targets, protocol, limit)
        made.add(key, source, targets)
    except ItemError as error:
        return Extracted(path.name, signal, "failed", (), error.reason, error.message)
    except OSError as error:
        raise InputError(f"the signals of {path.name} cannot be written to {out}: {error}") from error
    return Extracted(path.name, signal, "written", files)


def _write_blur(path: Path, targets: list[Path], protocol: Protocol, limit: int | None) -> None:
    from control_metrics.signals import blur_signal

    _write_video(path, targets[0], lambda frames: blur_signal(frames, protocol.measure), limit)


def _write_edges(path: Path, targets: list[Path], protocol: Protocol, limit: int | None) -> None:
    from control_metrics.signals import edge_signal

    maps: list[NDArray[np.bool_]] = []

    def pictures(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        shown = edge_signal(frames, protocol.measure)
        maps.append(shown[..., 0] > 0)
        return shown

    _write_video(path, targets[0], pictures, limit)
    write_edges(targets[1], np.concatenate(maps))


def _write_video(
    path: Path, target: Path, picture: Callable[[NDArray[np.uint8]], NDArray[np.uint8]], limit: int | None
) -> None:
    with open_clip(path, limit=limit) as clip:
        write_clip(target, _pictures(clip, picture), clip.info.fps or 24.0)


def _pictures(
    clip: ClipStream, picture: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
) -> Iterator[NDArray[np.uint8]]:
    while True:
        frames, _ = clip.read(_CHUNK)
        if not len(frames):
            return
        yield picture(frames)


def to_json(done: list[Extracted]) -> list[dict[str, Any]]:
    """What :func:`extract_signals` returned, as JSON."""
    return [
        {
            "video": one.video,
            "signal": one.signal,
            "status": one.status,
            "files": list(one.files),
            "reason": None if one.reason is None else str(one.reason),
            "message": one.message,
        }
        for one in done
    ]
