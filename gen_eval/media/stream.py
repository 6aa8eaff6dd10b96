"""Opening a clip and reading it chunk by chunk.

Rules, the same for every metric, judge and report:

- Frames come in presentation order as 8-bit RGB; times come from the container's time stamps, exactly.
- The rotation flag is applied, all eight orientations. Another angle is not; the detail says so.
- Pixels that are not square are flagged, and the frames used as stored. Interlaced frames are used as stored.
- Alpha is dropped, not blended. Samples of more than 8 bits are brought to 8. Gray becomes three equal channels, its
  values as they are stored.
- The tags for colour matrix and range are honoured; without tags, or with a matrix that is unknown here: BT.601,
  limited range, whatever the size.
- A decoding error after the first frame ends the clip (flag ``truncated``); before it, undecodable packets are skipped.
- ``truncated`` is also a clip with fewer frames than its header counts (frames that an edit list hides do not count).
  AVI counts frames that were left out on purpose and Matroska none: there the clip must also end more than half a step
  before the length that the header states.
- All frames of a clip have one size and one orientation.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gen_eval.media.process import DEFAULT_POOL, DecoderPool
from gen_eval.media.sources import IsolatedSource, LocalSource, Source
from gen_eval.media.timeline import Timeline
from gen_eval.records import Flag
from gen_eval.settings import settings

Frames = NDArray[np.uint8]


@dataclass(frozen=True)
class ClipInfo:
    """What is known about a clip when its first frame has been decoded.

    Attributes:
        width: pixels, after rotation.
        height: pixels, after rotation.
        fps: average frames a second by the header, ``None`` when unknown.
        declared_frames: frames that the header counts, ``None`` when it counts none.
        duration: seconds by the header, ``None`` when unknown.
        codec: FFmpeg's name of the decoder.
        pixel_format: FFmpeg's name of the stored pixel format.
        container: FFmpeg's name of the container format.
        decoder: what decoded it, with versions.
        rotation: degrees counterclockwise that the container asks for.
        pixel_aspect: width and height of a pixel, as the smallest whole numbers; ``None`` when unknown.
        flags: ``rotated``, ``alpha_dropped``, ``not_8_bit``, ``pixel_aspect``, where they apply.
    """

    width: int
    height: int
    fps: float | None
    declared_frames: int | None
    duration: float | None
    codec: str
    pixel_format: str
    container: str
    decoder: str
    rotation: int
    pixel_aspect: tuple[int, int] | None
    flags: tuple[Flag, ...]


def _ratio(pair: list[int] | None) -> Fraction | None:
    return None if pair is None else Fraction(*pair)


def _info(raw: dict[str, Any]) -> ClipInfo:
    width, height = raw["size"]
    swap = bool(raw["turn"] and raw["turn"][0])
    fps, aspect = _ratio(raw["fps"]), _ratio(raw["pixel_aspect"])
    found = {
        Flag.ROTATED: any(raw["turn"] or ()),
        Flag.ALPHA_DROPPED: raw["alpha"],
        Flag.NOT_8_BIT: raw["bits"] > 8,
        Flag.PIXEL_ASPECT: aspect not in (None, 1),
    }
    return ClipInfo(
        width=height if swap else width,
        height=width if swap else height,
        fps=None if fps is None else float(fps),
        declared_frames=raw["declared"],
        duration=raw["duration"],
        codec=raw["codec"],
        pixel_format=raw["pixel_format"],
        container=raw["container"],
        decoder=raw["decoder"],
        rotation=raw["rotation"],
        pixel_aspect=None if aspect is None else (aspect.numerator, aspect.denominator),
        flags=tuple(flag for flag, present in found.items() if present),
    )


def upright(frames: Frames, turn: tuple[bool, bool, bool] | None) -> Frames:
    """``frames`` (k, H, W, 3) with the orientation applied: swap rows and columns, reverse rows, reverse columns.

    Contiguous; the same array when there is nothing to do.
    """
    if not turn or not any(turn):
        return frames
    swap, rows, columns = turn
    turned = frames.transpose(0, 2, 1, 3) if swap else frames
    return np.ascontiguousarray(turned[:, :: -1 if rows else 1, :: -1 if columns else 1])


class ClipStream:
    """An open clip, read forward once. Made by :func:`open_clip`; close it, or use it as a context manager.

    One thread at a time. The next frames are decoded while the caller works on the last ones.

    Attributes:
        info: what was known at open.
        decoded_frames: frames that were decoded so far.
    """

    def __init__(self, source: Source, limit: int | None = None) -> None:
        """Read from ``source``, at most ``limit`` frames."""
        self._source: Source | None = source
        self._raw = source.info
        self.info = _info(source.info)
        self._timeline = Timeline(_ratio(self._raw["time_base"]), _ratio(self._raw["step"]), self._raw["stamps"])
        self._pending = 0
        self._rest: tuple[Frames, NDArray[np.float64]] | None = None
        self._end: dict[str, Any] | None = None
        self._kept: list[int] | None = None
        self._position = 0
        self.decoded_frames = 0
        source.select(None, limit)

    def select(self, wanted: list[int] | None, limit: int | None = None) -> None:
        """Before the first read: give only the frames of these ascending indices; decode at most ``limit`` frames.

        All frames are still decoded and timed, but those left out are never turned into RGB.
        """
        if self._source is None or self._pending or self.decoded_frames:
            raise ValueError("frames must be selected before the first read")
        self._kept = wanted
        self._source.select(wanted, limit)

    def read(self, count: int) -> tuple[Frames, NDArray[np.float64]]:
        """The next ``count`` frames, fewer only at the end, none after it.

        Returns:
            Frames (k, H, W, 3) uint8 RGB, contiguous, and their times (k,) float64 in seconds from the first frame of
            the clip. The frames are valid until the next ``read``: their memory is used again. Copy what must last.

        Raises:
            ItemError: ``size_changes``, ``decode_timeout``, ``undecodable`` (the decoder crashed); closes the stream.
            ValueError: the stream is closed, or ``count`` is below 1.
        """
        if self._source is None:
            raise ValueError("this clip is closed; open it again to read it again")
        if count < 1:
            raise ValueError(f"at least one frame must be asked for, not {count}")
        try:
            frames, times = self._gather(self._source, count)
            if not self._pending and self._end is None:
                self._request(self._source, count)
        except BaseException:
            self.close()
            raise
        return frames, times

    def _gather(self, source: Source, count: int) -> tuple[Frames, NDArray[np.float64]]:
        parts: list[Frames] = []
        times: list[NDArray[np.float64]] = []
        missing = count
        while missing:
            piece, moments = self._rest or self._collect(source, missing)
            self._rest = (piece[missing:], moments[missing:]) if len(piece) > missing else None
            parts.append(piece[:missing])
            times.append(moments[:missing])
            missing -= len(parts[-1])
            if self._rest is None and self._end is not None:
                break
            if missing:
                parts[-1] = parts[-1].copy()  # its place is decoded into again
        return (parts[0], times[0]) if len(parts) == 1 else (np.concatenate(parts), np.concatenate(times))

    def _request(self, source: Source, count: int) -> None:
        source.request(count)
        self._pending = count

    def _collect(self, source: Source, count: int) -> tuple[Frames, NDArray[np.float64]]:
        if self._end is not None:
            return np.empty((0, self.info.height, self.info.width, 3), np.uint8), np.empty(0)
        if not self._pending:
            self._request(source, count)
        frames, report = source.collect()
        self._pending = 0
        self._end = report["end"]
        first = self.decoded_frames
        times = self._timeline.add(report["stamps"])
        self.decoded_frames += len(times)
        if self._kept is not None:
            kept = self._kept[self._position : self._position + len(frames)]
            self._position += len(frames)
            times = times[np.array(kept, np.int64) - first]
        return upright(frames, self._raw["turn"]), times

    @property
    def times(self) -> NDArray[np.float64]:
        """Times of all frames that were decoded so far (n,), seconds from the first."""
        return self._timeline.times

    @property
    def ended(self) -> bool:
        """Whether the decoder has come to the end of the clip (or of the frames that were allowed)."""
        return self._end is not None

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Flags known so far; complete after the end, when ``truncated`` and ``variable_fps`` may have been added."""
        found = {Flag.TRUNCATED: self._truncated(), Flag.VARIABLE_FPS: self._timeline.variable}
        return self.info.flags + tuple(flag for flag, present in found.items() if present)

    def _truncated(self) -> bool:
        end, declared = self._end, self.info.declared_frames
        if end is None or end["stopped"]:
            return False
        if end["error"] is not None:
            return True
        if self.decoded_frames == declared:
            return False
        if declared is None or self.info.container == "avi":  # AVI counts frames that were left out, too
            return self._ends_early(end)
        if "mov" in self.info.container and end["indexed"]:
            declared = min(declared, end["indexed"])
        return bool(self.decoded_frames < declared - end["discarded"])

    def _ends_early(self, end: dict[str, Any]) -> bool:
        span, unit = self._raw["span"], _ratio(self._raw["time_base"])
        if span is None:
            return False
        times = self.times
        shown = max(float(end["last_duration"] * (unit or 0)), float(np.diff(times).max(initial=0.0)))
        step = float(_ratio(self._raw["step"]) or 0)
        return bool(times[-1] + shown + step / 2 < span)

    def detail(self) -> dict[str, Any]:
        """What a row should record about this clip: counts, rate, source of the times, and whatever is unusual."""
        detail: dict[str, Any] = {
            "declared_frames": self.info.declared_frames,
            "decoded_frames": self.decoded_frames,
            "fps": self.info.fps,
            **self._timeline.detail(),
            "decoder": self.info.decoder,
        }
        if self.info.rotation:
            detail["rotation"] = self.info.rotation
            detail["rotation_applied"] = self._raw["turn"] is not None
        if Flag.PIXEL_ASPECT in self.info.flags:
            detail["pixel_aspect"] = self.info.pixel_aspect
        if Flag.NOT_8_BIT in self.info.flags or Flag.ALPHA_DROPPED in self.info.flags:
            detail["pixel_format"] = self.info.pixel_format
        end = self._end or {}
        unusual = {
            "decode_error": end.get("error"),
            "skipped_packets": end.get("skipped"),
            "corrupt_frames": end.get("corrupt"),
            "unknown_colour_matrix": end.get("unknown_matrix"),
        }
        return detail | {name: value for name, value in unusual.items() if value}

    def close(self) -> None:
        """Let the decoder go. Frames of the last read stay readable."""
        source, self._source = self._source, None
        self._rest = None
        if source is not None:
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_source", None) is not None:
            warnings.warn(
                "a clip was not closed; use `with open_clip(...)`", ResourceWarning, stacklevel=2, source=self
            )
            self.close()


def open_clip(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    timeout: float | None = None,
    isolated: bool = True,
    chunk: int | None = None,
    pool: DecoderPool | None = None,
) -> ClipStream:
    """Open a video file and decode its first frame; the rules are those at the top of this module.

    Args:
        path: a regular local file; names are never taken for URLs or patterns.
        limit: most frames that are decoded; ``None`` for all.
        timeout: seconds without a new frame after which the decoder is killed; ``None`` takes the setting
            ``decode_timeout``.
        isolated: decode in a child process, so that a decoder that hangs or crashes costs this clip only.
        chunk: frames that reads will ask for; decoding of the first ones then begins at once, which helps when
            several clips are opened before the first is read.
        pool: where decoder processes come from; ``None`` takes the one that all share.

    Raises:
        ItemError: ``missing_video`` (no such file), ``undecodable`` (no frame could be decoded), ``decode_timeout``.
        ValueError: ``limit``, ``timeout`` or ``chunk`` is not above 0.
    """
    for name, value in (("limit", limit), ("timeout", timeout), ("chunk", chunk)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be above 0, not {value}")
    place, name = os.path.abspath(os.fspath(path)), Path(path).name  # noqa: PTH100 - resolving links is not wanted
    most = settings().max_pixels
    wait = timeout or settings().decode_timeout
    source: Source
    if isolated:
        source = IsolatedSource(place, name, timeout=wait, max_pixels=most, pool=pool or DEFAULT_POOL)
    else:
        source = LocalSource(place, max_pixels=most)
    stream = ClipStream(source, limit)
    if chunk is not None:
        stream._request(source, chunk)
    return stream


def probe(path: str | os.PathLike[str], *, timeout: float | None = None, isolated: bool = True) -> ClipInfo:
    """What is known about a video after its header and its first frame.

    Raises:
        ItemError: see :func:`open_clip`.
    """
    with open_clip(path, timeout=timeout, isolated=isolated) as stream:
        return stream.info
