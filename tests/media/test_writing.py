"""Written videos come back: size and count always, every value when lossless; equal input gives equal bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gen_eval.media import read_clip, sha256_file, write_clip

Noise = Callable[..., np.ndarray]


def tags(path: Path) -> dict[str, object]:
    with av.open(str(path)) as container:
        codec = container.streams.video[0].codec_context
        return {
            "codec": codec.name,
            "format": codec.pix_fmt,
            "colour": (codec.colorspace, codec.color_primaries, codec.color_trc, codec.color_range),
        }


@pytest.mark.parametrize(
    "shape", [(9, 47, 63, 3), (9, 49, 64, 3), (9, 48, 64, 3), (1, 2, 2, 3), (3, 1, 1, 3), (2, 250, 253, 3)]
)
@pytest.mark.parametrize("lossless", [False, True])
def test_size_and_count_survive(tmp_path: Path, noise: Noise, shape: tuple[int, ...], lossless: bool) -> None:
    frames = noise(*shape[:3])
    assert write_clip(tmp_path / "clip.mp4", frames, 16, lossless=lossless) == [tmp_path / "clip.mp4"]
    clip = read_clip(tmp_path / "clip.mp4")
    assert clip.frames.shape == shape
    assert clip.flags == ()
    assert clip.info.fps == 16.0
    assert clip.info.declared_frames == shape[0]
    assert clip.times.tolist() == [index / 16 for index in range(shape[0])]
    if lossless:
        assert np.array_equal(clip.frames, frames)


def test_format_and_tags(tmp_path: Path, noise: Noise) -> None:
    write_clip(tmp_path / "even.mp4", noise(3), 24)
    write_clip(tmp_path / "odd.mp4", noise(3, 47, 63), 24)
    write_clip(tmp_path / "exact.mp4", noise(3), 24, lossless=True)
    assert tags(tmp_path / "even.mp4") == {"codec": "h264", "format": "yuv420p", "colour": (1, 1, 1, 1)}
    assert tags(tmp_path / "odd.mp4") == {"codec": "h264", "format": "yuv444p", "colour": (1, 1, 1, 1)}
    assert tags(tmp_path / "exact.mp4")["format"] == "gbrp"
    data = (tmp_path / "even.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # plays before it is loaded whole


def test_flat_colours_come_back_nearly_exact(tmp_path: Path) -> None:
    colours = np.array([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (200, 100, 50)], np.uint8)
    frames = np.broadcast_to(colours[:, None, None], (6, 48, 64, 3))
    write_clip(tmp_path / "clip.mp4", frames, 24)
    assert np.abs(read_clip(tmp_path / "clip.mp4").frames.astype(int) - frames).max() <= 2


@pytest.mark.parametrize("shape", [(9, 47, 63), (9, 48, 64)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_float_twin_and_repetition_give_equal_files(
    tmp_path: Path, noise: Noise, shape: tuple[int, ...], dtype: type[np.floating]
) -> None:
    frames = noise(*shape)
    write_clip(tmp_path / "one.mp4", frames, 24)
    write_clip(tmp_path / "two.mp4", (frames / 255).astype(dtype), 24)
    write_clip(tmp_path / "three.mp4", iter([frames[:2], frames[2:7], frames[7:]]), 24)
    write_clip(tmp_path / "four.mp4", frames[:, ::-1][:, ::-1], Fraction(24))
    assert len({sha256_file(path) for path in tmp_path.iterdir()}) == 1


def test_every_level_survives_as_float() -> None:
    from gen_eval.media.pixels import to_uint8

    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 16, 16, 3)
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        assert np.array_equal(to_uint8(levels.astype(dtype) / dtype(255), "frames", axes="THW3"), levels)


@pytest.mark.parametrize(
    ("frames", "error", "message"),
    [
        (np.zeros((1, 9, 48, 64, 3), np.uint8), ValueError, r"\(1, 9, 48, 64, 3\): .* batch"),
        (np.zeros((48, 64, 3), np.uint8), ValueError, r"not \(48, 64, 3\)"),
        (np.zeros((9, 48, 64), np.uint8), ValueError, r"not \(9, 48, 64\)"),
        (np.zeros((9, 48, 64, 4), np.uint8), ValueError, r"not \(9, 48, 64, 4\)"),
        (np.zeros((0, 48, 64, 3), np.uint8), ValueError, "at least one"),
        (np.zeros((2, 0, 64, 3), np.uint8), ValueError, "at least one"),
        (np.zeros((2, 48, 64, 3), np.int64), ValueError, "int64"),
        (np.zeros((2, 48, 64, 3), bool), ValueError, "bool"),
        (np.full((2, 48, 64, 3), 255.0), ValueError, "0..1"),
        (np.full((2, 48, 64, 3), -1e-3), ValueError, "0..1"),
        (np.full((2, 48, 64, 3), np.nan), ValueError, "nan"),
        ([[1, 2]], TypeError, "list"),
        ([], ValueError, "no frame"),
        ([np.zeros((2, 4, 4, 3), np.uint8), np.zeros((2, 4, 6, 3), np.uint8)], ValueError, "one size"),
        ([np.zeros((2, 4, 4, 3), np.uint8), np.full((2, 4, 4, 3), 9.0)], ValueError, "0..1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("preview", [False, True])
def test_what_cannot_be_written_is_refused_and_leaves_nothing(
    tmp_path: Path, frames: object, error: type[Exception], message: str, preview: bool
) -> None:
    with pytest.raises(error, match=message):
        write_clip(tmp_path / "clip.mp4", frames, 24, preview=preview, lossless=preview)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fps", [0, -1, float("nan"), float("inf"), True])
def test_rates_that_are_none_are_refused(tmp_path: Path, noise: Noise, fps: float) -> None:
    with pytest.raises(ValueError, match="fps"):
        write_clip(tmp_path / "clip.mp4", noise(2), fps)


def test_other_file_types_are_refused(tmp_path: Path, noise: Noise) -> None:
    with pytest.raises(ValueError, match=r"\.mp4"):
        write_clip(tmp_path / "clip.avi", noise(2), 24)


@pytest.mark.parametrize("fps", [30_000 / 1001, Fraction(30_000, 1001), 29.97, 7.5, 1, 0.5, 1000])
def test_rates_survive(tmp_path: Path, noise: Noise, fps: float | Fraction) -> None:
    write_clip(tmp_path / "clip.mp4", noise(4, 16, 16), fps)
    clip = read_clip(tmp_path / "clip.mp4")
    assert clip.info.fps == pytest.approx(float(fps), rel=1e-6)
    assert clip.times == pytest.approx(np.arange(4) / float(fps), rel=1e-6, abs=1e-6)
    assert clip.flags == ()


def test_same_frames_at_two_rates_decode_equal(tmp_path: Path, noise: Noise) -> None:
    frames = noise(49, 32, 48)
    for fps in (8, 24):
        write_clip(tmp_path / f"{fps}.mp4", frames, fps, lossless=True)
    slow, fast = (read_clip(tmp_path / f"{fps}.mp4") for fps in (8, 24))
    assert np.array_equal(slow.frames, frames)
    assert np.array_equal(fast.frames, frames)
    assert slow.times == pytest.approx(3 * fast.times)


def test_a_failure_leaves_the_old_file(tmp_path: Path, noise: Noise) -> None:
    path = tmp_path / "clip.mp4"
    write_clip(path, noise(2), 24)
    before = sha256_file(path)

    def broken() -> object:
        yield noise(20)
        raise RuntimeError("the generator broke")

    with pytest.raises(RuntimeError, match="broke"):
        write_clip(path, broken(), 24)  # type: ignore[arg-type]
    assert sha256_file(path) == before
    assert os.listdir(tmp_path) == ["clip.mp4"]  # noqa: PTH208


def test_folders_are_made_and_names_are_only_names(tmp_path: Path, noise: Noise) -> None:
    for name in ("new/folder/clip.mp4", "a:b.mp4", "%d.mp4", "映画.MP4"):
        write_clip(tmp_path / name, noise(2), 24)
        assert len(read_clip(tmp_path / name).frames) == 2
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "%d.mp4").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize(
    ("shape", "lossless", "preview_shape"),
    [
        ((3, 47, 63), False, (48, 64)),
        ((3, 49, 64), False, (50, 64)),
        ((3, 48, 64), True, (48, 64)),
        ((3, 48, 64), False, None),
    ],
)
def test_preview_for_browsers(
    tmp_path: Path, noise: Noise, shape: tuple[int, ...], lossless: bool, preview_shape: tuple[int, int] | None
) -> None:
    frames = np.repeat(np.repeat(noise(shape[0], 4, 4), 16, 1), 16, 2)[:, : shape[1], : shape[2]]
    paths = write_clip(tmp_path / "clip.mp4", frames, 24, lossless=lossless, preview=True)
    assert paths == [tmp_path / "clip.mp4"] + [tmp_path / "clip.preview.mp4"] * (preview_shape is not None)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    if preview_shape is not None:
        preview = read_clip(paths[1]).frames
        assert preview.shape == (shape[0], *preview_shape, 3)
        assert tags(paths[1])["format"] == "yuv420p"
        inside = preview[:, : shape[1], : shape[2]].astype(int)
        assert np.abs(inside - read_clip(paths[0]).frames).mean() < 4  # nothing was moved or scaled
        assert np.abs(preview[:, -1].astype(int) - preview[:, -2]).mean() < 4


@hypothesis_settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(1, 6),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    seed=st.integers(0, 99),
    smooth=st.booleans(),
)
def test_lossless_round_trip(
    tmp_path: Path, noise: Noise, count: int, height: int, width: int, seed: int, smooth: bool
) -> None:
    frames = noise(count, height, width, seed=seed)
    if smooth:
        frames = np.cumsum(frames // 64, axis=2, dtype=np.uint8)
    write_clip(tmp_path / "clip.mp4", frames, 24, lossless=True)
    assert np.array_equal(read_clip(tmp_path / "clip.mp4").frames, frames)


def test_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_file(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(FileNotFoundError):
        sha256_file(tmp_path / "absent")
