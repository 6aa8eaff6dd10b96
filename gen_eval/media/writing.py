"""Writing videos so that they come back as they were: size, count, and (when lossless) every value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.media.files import replacing
from gen_eval.media.pixels import check_shape, to_uint8

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.codeccontext import VideoCodecContext

FALLBACK_FPS = 24.0
"""Rate of a video made from one that does not tell its own."""

_CRF = 10
_CHUNK = 8
_BT709 = 1
_LIMITED = 1


def write_clip(
    path: str | os.PathLike[str],
    frames: NDArray[Any] | Iterable[NDArray[Any]],
    fps: float | Fraction,
    *,
    lossless: bool = False,
    preview: bool = False,
    crf: int = _CRF,
) -> list[Path]:
    """Write an MP4 file; size and number of frames are kept exactly, equal input gives equal bytes.

    H.264 at ``crf`` 10, BT.709 limited range, tagged so; 4:2:0, or 4:4:4 where a side is odd. ``lossless`` stores RGB
    as it is (libx264rgb at crf 0). Written beside the target first, so ``path`` is never half a video.

    Args:
        path: a name that ends in ``.mp4``; folders are made.
        frames: (T, H, W, 3) uint8 RGB, or float in 0..1; or an iterable of such arrays, one after another, for clips
            that do not fit into memory.
        fps: frames a second; a float is taken as the nearest fraction with a denominator up to 1001.
        lossless: keep every value.
        preview: also write ``<stem>.preview.mp4`` when browsers cannot play the file itself (4:4:4, RGB): 4:2:0, with
            an odd side made even by repeating its last row or column.
        crf: constant rate factor of the encoder, 0 (best) to 51; ``lossless`` does without.

    Returns:
        The files written, the video first.

    Raises:
        TypeError: something in ``frames`` is not an array.
        ValueError: wrong shape, type or range, frames of several sizes, no frame, a rate that is not above 0, or
            another file type.
    """
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise ValueError(f"videos are written as .mp4, not {target.name!r}")
    if not 0 <= crf <= 51:
        raise ValueError(f"crf must be 0..51, not {crf!r}")
    rate = _rate(fps)
    chunks = _chunks(frames)
    first = next(chunks, None)
    if first is None:
        raise ValueError("there is no frame to write; a video has at least one")
    height, width = first.shape[1:3]
    plain = not lossless and height % 2 == 0 and width % 2 == 0
    paths = [target] if plain or not preview else [target, target.with_name(f"{target.stem}.preview.mp4")]
    with ExitStack() as stack:
        places = [stack.enter_context(replacing(file)) for file in paths]
        writers = [stack.enter_context(_Writer(places[0], rate, (height, width), lossless=lossless, crf=crf))]
        if len(places) > 1:
            even = (height + height % 2, width + width % 2)
            writers.append(stack.enter_context(_Writer(places[1], rate, even, lossless=False, crf=crf)))
        for chunk in _same_size(first, chunks):
            for writer in writers:
                writer.add(chunk)
        for writer in writers:
            writer.finish()
    return paths


def _rate(fps: float | Fraction) -> Fraction:
    if isinstance(fps, bool) or not 0 < fps < 100_000:
        raise ValueError(f"fps must be above 0, not {fps!r}")
    return Fraction(fps).limit_denominator(1001) or Fraction(1, 1001)


def _chunks(frames: Any) -> Iterator[NDArray[np.uint8]]:
    parts = frames
    if isinstance(frames, np.ndarray):
        check_shape(frames, "frames", axes="THW3")
        parts = (frames[start : start + _CHUNK] for start in range(0, len(frames), _CHUNK))  # floats: piece by piece
    for part in parts:
        yield to_uint8(part, "frames", axes="THW3")


def _same_size(first: NDArray[np.uint8], others: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    yield first
    for chunk in others:
        if chunk.shape[1:] != first.shape[1:]:
            raise ValueError(f"all frames of a video must have one size; {chunk.shape[1:]} follows {first.shape[1:]}")
        yield chunk


class _Writer:
    """One file being encoded; leaving the context closes it."""

    def __init__(self, path: Path, rate: Fraction, size: tuple[int, int], *, lossless: bool, crf: int) -> None:
        import av

        self._size, self._lossless, self._count = size, lossless, 0
        height, width = size
        self._pixel_format = "rgb24" if lossless else "yuv420p" if height % 2 == width % 2 == 0 else "yuv444p"
        self._container: OutputContainer = av.open(
            f"file:{path.absolute()}", "w", format="mp4", options={"movflags": "+faststart"}
        )
        self._stream = self._container.add_stream(
            "libx264rgb" if lossless else "libx264", rate=rate, options={"crf": str(0 if lossless else crf)}
        )
        codec = self._stream.codec_context
        codec.width, codec.height, codec.pix_fmt = width, height, self._pixel_format
        codec.time_base = 1 / rate
        codec.thread_count = 1  # several threads give other bytes on other machines
        if not lossless:
            _tag(codec)

    def add(self, chunk: NDArray[np.uint8]) -> None:
        """Encode frames (k, H, W, 3); a side one short of the file's gets its last line twice."""
        height, width = chunk.shape[1:3]
        pad = (self._size[0] - height, self._size[1] - width)
        if any(pad):
            chunk = np.pad(chunk, ((0, 0), (0, pad[0]), (0, pad[1]), (0, 0)), mode="edge")
        for picture in chunk:
            self._add(picture)

    def _add(self, picture: NDArray[np.uint8]) -> None:
        from av.video.frame import VideoFrame
        from av.video.reformatter import ColorRange, Colorspace

        frame = VideoFrame.from_ndarray(picture, format="rgb24")
        if not self._lossless:
            frame = frame.reformat(
                format=self._pixel_format, dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG, threads=1
            )
        frame.pts, frame.time_base = self._count, self._stream.codec_context.time_base
        self._container.mux(self._stream.encode(frame))
        self._count += 1

    def finish(self) -> None:
        """Write what the encoder still holds."""
        self._container.mux(self._stream.encode())
        self._container.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()


def _tag(codec: VideoCodecContext) -> None:
    codec.colorspace = codec.color_primaries = codec.color_trc = _BT709
    codec.color_range = _LIMITED
