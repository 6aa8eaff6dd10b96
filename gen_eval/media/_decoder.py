"""The decoder itself, the same in a child process (:mod:`gen_eval.media._child`) and in this one.

Self-contained on purpose (standard library and PyAV, no NumPy, nothing of gen_eval), so that the child starts quickly.
Frames leave it as stored in the file: 8-bit RGB without row padding; turning them upright is left to the reader.

Only regular local files are read. The file is opened here and handed to FFmpeg as a descriptor: ``fd`` is the one
protocol allowed, so neither a name (``concat:``, ``http:``) nor a playlist can make it open anything else, and only
formats of :data:`FORMATS` are taken.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

FORMATS = (
    "mov,matroska,avi,mpegts,gif,apng,h264,hevc,av1,obu,ivf,flv,mpeg,mpegvideo,m4v,ogg,asf,mxf,nut,wtv,dv,yuv4mpegpipe"
)
"""Container formats that are read (FFmpeg's names). No playlists, no picture sequences, no devices, no subtitles."""

_MATRICES = frozenset({0, 1, 2, 4, 5, 6, 7, 9})
"""Colour matrices that can be turned into RGB; 2 is "unspecified", which is read as BT.601."""
_RANGES = frozenset({0, 1, 2})


class Fault(Exception):  # noqa: N818 - it crosses a process border and becomes an ItemError there
    """Why a file gives no (more) frames; ``reason`` is the name of a row's reason."""

    def __init__(self, reason: str, message: str, **detail: Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.detail = detail


def orientation(matrix: Sequence[int]) -> tuple[bool, bool, bool] | None:
    """What a display matrix (nine 16.16 numbers) asks for: swap rows and columns, then reverse rows, reverse columns.

    ``None`` when it is none of the eight that keep pixels on the grid.
    """
    a, b, c, d = (matrix[index] / 65536 for index in (0, 1, 3, 4))
    scale = max(abs(number) for number in (a, b, c, d)) or 1.0
    a, b, c, d = (round(number / scale, 3) for number in (a, b, c, d))
    if b == c == 0 and abs(a) == abs(d) == 1:
        return False, d < 0, a < 0
    if a == d == 0 and abs(b) == abs(c) == 1:
        return True, b < 0, c < 0
    return None


def _fraction(value: Any) -> list[int] | None:
    return [value.numerator, value.denominator] if value else None


class Decoder:
    """One open file; decodes in presentation order and writes RGB into memory that it is given.

    Attributes:
        info: what is known at open, JSON values only.
    """

    def __init__(self, path: str, max_pixels: int) -> None:
        """Open ``path`` and decode its first frame.

        Raises:
            Fault: ``missing_video``, or ``undecodable`` with what is wrong.
        """
        from av.video.reformatter import VideoReformatter

        self._name = Path(path).name
        self._max_pixels = max_pixels
        self._reformatter = VideoReformatter()
        self._container = self._open(path)
        self._wanted: list[int] | None = None
        self._cursor = 0
        self._limit: int | None = None
        self._index = 0
        self._discarded = self._skipped = self._corrupt = self._last_duration = 0
        self._error: str | None = None
        self._unknown_matrix: int | None = None
        try:
            self._stream = self._video_stream()
            self._frames = self._decoded()
            self._ahead: VideoFrame | None = next(self._frames, None)
            if self._ahead is None:
                raise self._undecodable(f"no frame could be decoded ({self._error or 'the stream is empty'})")
            self._shape = self._shape_of(self._ahead)
            self._check_pixels(self._ahead.width, self._ahead.height)
            self.info = self._describe(self._ahead)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._frames = iter(())
        self._container.close()

    def select(self, wanted: Sequence[int] | None, limit: int | None) -> None:
        """Before the first :meth:`fill`: keep only these frames (ascending indices), decode at most ``limit``."""
        self._wanted = None if wanted is None else list(wanted)
        self._limit = limit

    def fill(
        self, memory: memoryview | None, count: int, go_on: Callable[[], bool] = lambda: True
    ) -> dict[str, Any] | None:
        """Decode until ``count`` wanted frames lie in ``memory`` one after another, or the clip ends.

        Returns:
            ``stamps`` of all frames passed (``None`` where there is no time stamp), ``kept`` (how many lie in memory)
            and ``end`` (``None`` before the end); nothing at all when ``go_on`` said no.

        Raises:
            Fault: ``size_changes``, or ``undecodable`` when the pixels cannot become RGB.
        """
        stamps: list[int | None] = []
        kept = 0
        size = 3 * self._shape[0] * self._shape[1]
        while kept < count:
            frame = None if self._index == self._limit else self._next()
            if frame is None:
                return {"stamps": stamps, "kept": kept, "end": self._ending()}
            stamps.append(frame.dts if self.info["stamps"] == "decode_order" else frame.pts)
            self._corrupt += bool(frame.is_corrupt)
            self._last_duration = frame.duration or 0
            if self._is_wanted():
                assert memory is not None
                self._store(frame, memory[kept * size : (kept + 1) * size])
                kept += 1
            self._index += 1
            if not go_on():
                return None
        return {"stamps": stamps, "kept": kept, "end": None}

    def _is_wanted(self) -> bool:
        if self._wanted is None:
            return True
        found = self._cursor < len(self._wanted) and self._wanted[self._cursor] == self._index
        self._cursor += found
        return found

    def _next(self) -> VideoFrame | None:
        frame, self._ahead = self._ahead, None
        if frame is not None:
            return frame
        frame = next(self._frames, None)
        if frame is not None and self._shape_of(frame) != self._shape:
            sizes = [list(self._shape[:2]), list(self._shape_of(frame)[:2])]
            raise Fault(
                "size_changes",
                f"{self._name}: frame {self._index} is {sizes[1][0]}x{sizes[1][1]} as stored and the first one "
                f"{sizes[0][0]}x{sizes[0][1]}, or its rotation differs; a clip keeps one size: split or re-encode it",
                sizes_wh=sizes,
                frame=self._index,
            )
        return frame

    def _store(self, frame: VideoFrame, target: memoryview) -> None:
        from av.error import FFmpegError

        if frame.colorspace not in _MATRICES:
            self._unknown_matrix = frame.colorspace
            frame.colorspace = 2
        if frame.color_range not in _RANGES:
            frame.color_range = 0
        try:
            rgb = self._reformatter.reformat(frame, format="rgb24", interpolation="BILINEAR", threads=1)
        except (FFmpegError, ValueError) as error:
            raise self._undecodable(f"pixels of format {frame.format.name} cannot become RGB ({error})") from error
        plane = rgb.planes[0]
        source, step, row = memoryview(plane), plane.line_size, 3 * rgb.width
        if step == row:
            target[:] = source[: row * rgb.height]
        else:
            for y in range(rgb.height):
                target[y * row : (y + 1) * row] = source[y * step : y * step + row]

    def _decoded(self) -> Iterator[VideoFrame]:
        """Frames in presentation order; the first decoding error after a frame ends them."""
        from av.error import FFmpegError

        packets = self._container.demux(self._stream)
        started = False
        while True:
            try:
                packet = next(packets)
                placeholder = packet.size == 0 and packet.dts is not None
                self._discarded += placeholder or packet.is_discard
                if placeholder:  # for a frame that was left out; the decoder would take it for the end
                    continue
            except StopIteration:
                return
            except FFmpegError as error:
                self._error = error.strerror
                return
            try:
                frames = self._stream.decode(packet)
            except FFmpegError as error:
                self._error = error.strerror
                if started:
                    return
                self._skipped += 1  # a recording may begin between two key frames
                continue
            for frame in frames:
                if not started:
                    started, self._error = True, None
                yield frame

    def _ending(self) -> dict[str, Any]:
        return {
            "stopped": self._index == self._limit,
            "error": self._error,
            "discarded": self._discarded,
            "skipped": self._skipped,
            "corrupt": self._corrupt,
            "unknown_matrix": self._unknown_matrix,
            "indexed": len(self._stream.index_entries),
            "last_duration": self._last_duration,
        }

    def _open(self, path: str) -> InputContainer:
        import av

        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not block
        except (FileNotFoundError, NotADirectoryError, ValueError) as error:
            raise Fault("missing_video", f"{self._name}: there is no such file") from error
        except OSError as error:
            raise self._undecodable(f"the file cannot be read ({error.strerror})") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._undecodable("it is not a regular file")
            if status.st_size == 0:
                raise self._undecodable("the file is empty")
            options = {"fd": str(descriptor), "protocol_whitelist": "fd", "format_whitelist": FORMATS}
            try:
                return av.open("fd:", "r", options=self._guard(), container_options=options, metadata_errors="replace")
            except av.FFmpegError as error:
                raise self._undecodable(f"no video container that is read here ({error.strerror})") from error
        finally:
            os.close(descriptor)  # FFmpeg holds its own duplicate

    def _guard(self) -> dict[str, str]:
        """Keep a header from making the decoder allocate for giant frames; exact sizes are checked later."""
        return {"max_pixels": str(2 * self._max_pixels + 65_536)}

    def _video_stream(self) -> VideoStream:
        from av.stream import Disposition

        moving = [
            stream
            for stream in self._container.streams.video
            if not stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails)
        ]
        if not moving:
            raise self._undecodable("it holds no video stream")
        best = self._container.streams.best("video")
        stream = next((stream for stream in moving if best is not None and stream.index == best.index), moving[0])
        if stream.codec_context is None:
            raise self._undecodable("there is no decoder for its video stream")
        self._check_pixels(stream.codec_context.width, stream.codec_context.height)
        stream.codec_context.thread_count = 1  # equal bytes on every machine, and one decoder is one core
        stream.codec_context.options = self._guard()
        return stream

    def _check_pixels(self, width: int, height: int) -> None:
        if width * height > self._max_pixels:
            raise self._undecodable(
                f"its frames are {width}x{height}, more than the {self._max_pixels} pixels that are decoded "
                "(GEN_EVAL_MAX_PIXELS)",
                size_wh=[width, height],
                max_pixels=self._max_pixels,
            )

    def _shape_of(self, frame: VideoFrame) -> tuple[int, int, bytes]:
        matrix: Any = frame.side_data.get("DISPLAYMATRIX")
        return frame.width, frame.height, b"" if matrix is None else bytes(matrix)

    def _undecodable(self, what: str, **detail: Any) -> Fault:
        return Fault("undecodable", f"{self._name}: {what}; generate, encode or copy it again", **detail)

    def _describe(self, frame: VideoFrame) -> dict[str, Any]:
        import av

        stream, container = self._stream, self._container
        matrix = self._shape[2]
        turn = orientation(memoryview(matrix).cast("i")) if len(matrix) == 36 else (False, False, False)
        name = container.format.name
        timeless = stream.start_time is None and name in ("h264", "hevc", "m4v", "mpegvideo", "obu", "av1")
        rate = stream.guessed_rate if timeless else stream.average_rate or stream.guessed_rate
        nominal = stream.guessed_rate or rate
        components = frame.format.components
        return {
            "size": [frame.width, frame.height],
            "turn": turn,
            "rotation": frame.rotation,
            "fps": _fraction(rate),
            "step": _fraction(1 / nominal) if nominal else None,
            "time_base": _fraction(stream.time_base),
            "declared": stream.frames or None,
            "duration": _seconds(stream, container),
            "span": _declared_span(stream, container),
            "stamps": "decode_order" if name == "avi" else "container",
            "codec": stream.codec_context.name,
            "pixel_format": frame.format.name,
            "container": name,
            "decoder": "PyAV {}, libavcodec {}".format(
                av.__version__, ".".join(str(part) for part in av.library_versions["libavcodec"])
            ),
            "alpha": any(part.is_alpha for part in components) or stream.metadata.get("alpha_mode") == "1",
            "bits": max((part.bits for part in components), default=8),
            "pixel_aspect": _fraction(stream.sample_aspect_ratio),
        }


def _seconds(stream: VideoStream, container: InputContainer) -> float | None:
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return None if container.duration is None else container.duration / 1_000_000


def _declared_span(stream: VideoStream, container: InputContainer) -> float | None:
    """Seconds from the first frame to the end as the header states it, for containers without a usable frame count."""
    if container.format.name == "avi" and stream.frames and stream.average_rate:
        return float(stream.frames / stream.average_rate)
    if "matroska" in container.format.name and len(container.streams) == 1 and container.duration is not None:
        return container.duration / 1_000_000 - float((stream.start_time or 0) * (stream.time_base or 0))
    return None
