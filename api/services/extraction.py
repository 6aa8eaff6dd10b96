"""Making control signals of videos: what generators are steered by and fidelity is measured against.

The public layout is written: ``canny/``, ``blur/``, ``depth_vids/`` and ``sam2_vids/`` hold ``<name>.mp4`` for people
and generators; ``edges/<name>.npz``, ``depth_npzs/<name>.npz`` and ``masks/<name>.masks.json`` what metrics read (the
mp4 is lossy). Depth and segmentation come from the networks of the metrics that read them, shown in the same way as
there; a signal whose weights are absent is skipped with a reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.services.captions import SamplesOfVideos
from api.services.manifest_entries import Progress, silent
from api.services.signal_makers import METRIC_OF, Maker, maker_of
from gen_eval import weights
from gen_eval.data import list_videos
from gen_eval.features.arrays import out_of_memory
from gen_eval.media import sha256_file
from gen_eval.networks.placement import Placement, placed, placement_of
from gen_eval.protocols import load_preset
from gen_eval.records import InputError, ItemError, Reason, Status
from gen_eval.records.files import remove_leftovers, write_atomic

SIGNALS = tuple(METRIC_OF)


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
    data: Path | None = None,
    protocol: str = "corrected",
    preset: str = "121-frames",
    device: str = "auto",
    dtype: str = "float32",
    progress: Progress = silent,
) -> list[Extracted]:
    """Write control signals of every video in ``videos``.

    ``signals.json`` in ``out`` says what each file was made from: a file that was made from the same video, with the
    same parameters and weights, and is whole is kept, so the same call goes on where it stopped; others are written
    again. A file that it does not know of was put there by somebody else and is never written over.

    Args:
        videos: folder of videos.
        out: folder to write.
        signals: of ``blur``, ``edge``, ``depth``, ``seg``.
        data: benchmark that the videos were made for; captions for ``seg`` come from it, and the sizes of the reference
            clips where the protocol shows clips at these. By default each video is its own reference, and captions are
            ``captions/<id>.json`` beside the folder of videos.
        protocol: whose filter, thresholds and networks are used.
        preset: how many frames.
        device: where networks run: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: number format of networks.
        progress: told how far the work is.

    Raises:
        InputError: an unknown signal, protocol, preset or device, two videos of one name, no video in the folder, or
            data that cannot be used.
    """
    if unknown := [signal for signal in signals if signal not in SIGNALS]:
        raise InputError(f"unknown signal {', '.join(unknown)}; expected some of {', '.join(SIGNALS)}")
    paths = list_videos(videos)
    if not paths:
        raise InputError(f"{videos} holds no video")
    if twice := [name for name, count in Counter(path.stem for path in paths).items() if count > 1]:
        raise InputError(f"{videos} holds several videos named {twice[0]}; their signals would have one name")
    limit = load_preset(preset)
    samples = SamplesOfVideos(videos, data)
    makers = {signal: maker_of(signal, protocol, limit, samples) for signal in dict.fromkeys(signals)}
    made = _Record(out / RECORD)
    done: list[Extracted] = []
    with _placed(makers.values(), device, dtype):
        for number, path in enumerate(paths, start=1):
            done += [_extract(path, out, signal, maker, made) for signal, maker in makers.items()]
            progress("extracting", number, len(paths))
    return done


RECORD = "signals.json"
_FILES = {
    "blur": ("blur/{}.mp4",),
    "edge": ("canny/{}.mp4", "edges/{}.npz"),
    "depth": ("depth_npzs/{}.npz", "depth_vids/{}.mp4"),
    "seg": ("masks/{}.masks.json", "sam2_vids/{}.mp4"),
}


def _placed(makers: Iterable[Maker], device: str, dtype: str) -> AbstractContextManager[None]:
    """Where networks run; nothing is looked for when none of them can be used."""
    asked = Placement("cpu" if device == "auto" else device, dtype)  # type: ignore[arg-type]
    usable = any(
        maker.networks and all(weights.locate(name) is not None for name in maker.networks) for maker in makers
    )
    return placed(placement_of(device, asked.dtype)) if usable else nullcontext()


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

    def knows(self, key: str) -> bool:
        """Whether the files of ``key`` were written, or begun, by this command."""
        return key in self._entries

    def holds(self, key: str, source: Mapping[str, Any], files: list[Path]) -> bool:
        """Whether ``files`` were made from ``source`` and still have the content that they were written with."""
        entry = self._entries.get(key)
        if not isinstance(entry, dict) or entry.get("source") != source:
            return False
        return all(path.is_file() for path in files) and entry.get("files") == [sha256_file(path) for path in files]

    def begin(self, key: str) -> None:
        """Remember that files are ours before there are any: a kill leaves some that the next call may replace."""
        if key not in self._entries:
            self._write(key, {})

    def add(self, key: str, source: Mapping[str, Any], files: list[Path], facts: Mapping[str, Any]) -> None:
        """Remember what ``files`` were made from, and what is to be said of it."""
        entry = {"source": dict(source), "files": [sha256_file(path) for path in files]}
        self._write(key, entry | ({"facts": dict(facts)} if facts else {}))

    def _write(self, key: str, entry: Mapping[str, Any]) -> None:
        self._entries[key] = entry
        content = json.dumps(self._entries, indent=1, sort_keys=True, ensure_ascii=False)
        write_atomic(self._path, f"{content}\n".encode())


def _extract(path: Path, out: Path, signal: str, maker: Maker, made: _Record) -> Extracted:
    files = tuple(name.format(path.stem) for name in _FILES[signal])
    targets = [out / file for file in files]
    key = f"{signal} {path.stem}"
    try:
        if not made.knows(key) and (
            there := [file for file, target in zip(files, targets, strict=True) if target.exists()]
        ):
            said = f"{there[0]} was not written by this command and stays as it is; another --out makes an own one"
            return Extracted(path.name, signal, "kept", files, None, said)
        maker.check()
        source = maker.source(path)
        if made.holds(key, source, targets):
            return Extracted(path.name, signal, "kept", files)
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target.parent)
        made.begin(key)
        made.add(key, source, targets, maker.make(path, targets))
    except ItemError as error:
        status = "skipped" if error.reason.status is Status.SKIPPED else "failed"
        return Extracted(path.name, signal, status, (), error.reason, error.message)
    except MemoryError:
        spent = out_of_memory()
        return Extracted(path.name, signal, "failed", (), spent.reason, spent.message)
    except OSError as error:
        raise InputError(f"the signals of {path.name} cannot be written to {out}: {error}") from error
    return Extracted(path.name, signal, "written", files)


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
