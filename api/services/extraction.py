"""Making control signals of videos: what generators are steered by and fidelity is measured against.

The public layout is written: ``canny/<name>.mp4``, ``blur/<name>.mp4`` for people and generators, and
``edges/<name>.npz`` with the exact maps (the mp4 is lossy). A signal whose network is absent is skipped with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.services.preparation import Progress, silent
from gen_eval.data import list_videos
from gen_eval.media import ClipStream, open_clip, write_clip
from gen_eval.protocols import load_preset, load_protocol
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.records.files import remove_leftovers

SIGNALS = ("blur", "edge", "depth", "seg")
_CHUNK = 8


@dataclass(frozen=True)
class Extracted:
    """What became of one signal of one video.

    Attributes:
        status: ``written``, ``kept`` (it was there), ``skipped`` or ``failed``.
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
    """Write control signals of every video in ``videos``; finished files are kept, so the same call goes on.

    Args:
        videos: folder of videos.
        out: folder to write.
        signals: of ``blur``, ``edge``, ``depth``, ``seg``.
        protocol: whose filter and thresholds are used.
        preset: how many frames.
        progress: told how far the work is.

    Raises:
        InputError: an unknown signal, or no video in the folder.
    """
    if unknown := [signal for signal in signals if signal not in SIGNALS]:
        raise InputError(f"unknown signal {', '.join(unknown)}; expected some of {', '.join(SIGNALS)}")
    paths = list_videos(videos)
    if not paths:
        raise InputError(f"{videos} holds no video")
    if protocol not in _PROTOCOLS:
        load_protocol("edge_f1", protocol)  # names what there is
    limit = load_preset(preset).limit
    done: list[Extracted] = []
    for number, path in enumerate(paths, start=1):
        for signal in signals:
            done.append(_extract(path, out, signal, protocol, limit))
        progress("extracting", number, len(paths))
    return done


_PROTOCOLS = ("corrected", "reference", "reference-v2")


def _extract(path: Path, out: Path, signal: str, protocol: str, limit: int | None) -> Extracted:
    if signal in {"depth", "seg"}:
        message = f"{signal} needs a network that is not part of this release"
        return Extracted(path.name, signal, "skipped", reason=Reason.MISSING_WEIGHTS, message=message)
    write = {"blur": _write_blur, "edge": _write_edges}[signal]
    targets = {"blur": ["blur/{}.mp4"], "edge": ["canny/{}.mp4", "edges/{}.npz"]}[signal]
    files = tuple(target.format(path.stem) for target in targets)
    if all((out / file).is_file() for file in files):
        return Extracted(path.name, signal, "kept", files)
    for file in files:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers((out / file).parent)
    try:
        write(path, [out / file for file in files], protocol, limit)
    except ItemError as error:
        return Extracted(path.name, signal, "failed", reason=error.reason, message=error.message)
    return Extracted(path.name, signal, "written", files)


def _write_blur(path: Path, targets: list[Path], protocol: str, limit: int | None) -> None:
    from control_metrics.signals import blur_signal

    measure = load_protocol("blur_ssim", protocol).measure
    _write_video(path, targets[0], lambda frames: blur_signal(frames, measure), limit)


def _write_edges(path: Path, targets: list[Path], protocol: str, limit: int | None) -> None:
    from control_metrics.signals import edge_signal, write_edges

    measure = load_protocol("edge_f1", protocol).measure
    maps: list[NDArray[np.bool_]] = []

    def pictures(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        shown = edge_signal(frames, measure)
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
