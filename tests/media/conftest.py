"""Clips drawn by formula: every test makes the file that it needs, in a folder of its own."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from gen_eval.media import DecoderPool, _child

Frames = np.ndarray[Any, np.dtype[np.uint8]]
MILLISECOND = Fraction(1, 1000)


def noise_frames(count: int = 24, height: int = 48, width: int = 64, seed: int = 0) -> Frames:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def encode_frames(
    path: Path,
    frames: Sequence[Any] | Frames,
    *,
    rate: int = 24,
    pts: Sequence[int] | None = None,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    source: str = "rgb24",
    options: dict[str, str] | None = None,
    container: dict[str, str] | None = None,
    prepare: Callable[[Any], None] = lambda stream: None,
) -> Path:
    """Write a video with PyAV alone; ``pts`` are milliseconds; ready-made ``av.VideoFrame`` are taken as they are."""
    with av.open(str(path), "w", options=container or {}) as out:
        stream = out.add_stream(codec, rate=rate, options=options or {})
        pictures = [
            item if isinstance(item, av.VideoFrame) else av.VideoFrame.from_ndarray(item, format=source)
            for item in frames
        ]
        stream.width, stream.height, stream.pix_fmt = pictures[0].width, pictures[0].height, pixel_format
        if pts is not None:
            stream.codec_context.time_base = MILLISECOND
        prepare(stream)
        for index, picture in enumerate(pictures):
            if pts is not None:
                picture.pts, picture.time_base = pts[index], MILLISECOND
            out.mux(stream.encode(picture))
        out.mux(stream.encode())
    return path


@pytest.fixture(scope="session")
def noise() -> Callable[..., Frames]:
    return noise_frames


@pytest.fixture(scope="session")
def encode() -> Callable[..., Path]:
    return encode_frames


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``fast.mp4`` (24 frames, 64x48, 24/s), ``cut.mp4``, ``vfr.mp4``, ``rotated.mp4``."""
    folder = tmp_path_factory.mktemp("clips")
    frames = noise_frames()
    fast = encode_frames(folder / "fast.mp4", frames, container={"movflags": "+faststart"}).read_bytes()
    (folder / "cut.mp4").write_bytes(fast[: int(len(fast) * 0.6)])
    times = [*range(0, 480, 40), *range(480, 480 + 12 * 120, 120)]
    encode_frames(folder / "vfr.mp4", frames, rate=25, pts=times)
    turned = bytearray(fast)
    box = turned.find(b"tkhd") + 4
    matrix = box + 4 + (20 if turned[box] == 0 else 32) + 16
    turned[matrix : matrix + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 48 << 16, 0, 1 << 30)
    (folder / "rotated.mp4").write_bytes(turned)
    return folder


@pytest.fixture
def pool() -> Iterator[DecoderPool]:
    with DecoderPool() as own:
        yield own


@pytest.fixture
def fake_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let decoder processes that are started from now on run ``body`` after each wanted frame has been decoded.

    The child's own script is used, with a decoder module beside it that does something before it answers.
    """

    original = Path(_child.__file__)

    def install(body: str) -> None:
        folder = tmp_path / "child"
        folder.mkdir(exist_ok=True)
        shutil.copy(original, folder / "_child.py")
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        text = original.with_name("_decoder.py").read_text()
        text += f"\n\n_fill = Decoder.fill\n\n\ndef fill(self, *arguments):\n{lines}"
        text += "    return _fill(self, *arguments)\n\n\nDecoder.fill = fill\n"
        (folder / "_decoder.py").write_text(text)
        monkeypatch.setattr(_child, "__file__", str(folder / "_child.py"))

    return install
