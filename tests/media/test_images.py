"""Condition images and thumbnails."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gen_eval.media import encode_thumbnail, read_image, write_image
from gen_eval.records import Flag, ItemError, Reason
from gen_eval.settings import Settings

Noise = Callable[..., np.ndarray]


def reason(path: Path) -> Reason:
    with pytest.raises(ItemError) as caught:
        read_image(path)
    assert str(path.parent) not in caught.value.message
    return caught.value.reason


@pytest.mark.parametrize("size", [(48, 64), (47, 63), (1, 1)])
def test_png_round_trip(tmp_path: Path, noise: Noise, size: tuple[int, int]) -> None:
    pixels = noise(1, *size)[0]
    write_image(tmp_path / "one.png", pixels)
    write_image(tmp_path / "two.png", pixels / 255)
    picture = read_image(tmp_path / "one.png")
    assert np.array_equal(picture.pixels, pixels)
    assert picture.pixels.flags.c_contiguous
    assert picture.flags == ()
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_jpeg_is_near(tmp_path: Path) -> None:
    pixels = np.full((32, 32, 3), (200, 100, 50), np.uint8)
    for name in ("one.jpg", "two.JPEG"):
        write_image(tmp_path / name, pixels)
        assert np.abs(read_image(tmp_path / name).pixels.astype(int) - pixels).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path: Path, noise: Noise, orientation: int) -> None:
    pixels = noise(1, 6, 10)[0]
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(tmp_path / "picture.png", exif=exif)
    expected = {
        1: pixels,
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: pixels.transpose(1, 0, 2),
        6: np.rot90(pixels, -1),
        7: pixels.transpose(1, 0, 2)[::-1, ::-1],
        8: np.rot90(pixels),
    }[orientation]
    picture = read_image(tmp_path / "picture.png")
    assert np.array_equal(picture.pixels, expected)
    assert picture.flags == ((Flag.ROTATED,) if orientation > 1 else ())


def test_alpha_is_dropped_not_blended(tmp_path: Path) -> None:
    pixels = np.full((4, 5, 4), (200, 100, 50, 10), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "rgba.png")
    Image.fromarray(pixels[..., [0, 3]], "LA").save(tmp_path / "la.png")
    palette = Image.fromarray(pixels[..., :3]).quantize(4)
    palette.save(tmp_path / "palette.png", transparency=0)
    for name, expected in (("rgba", (200, 100, 50)), ("la", (200, 200, 200)), ("palette", (200, 100, 50))):
        picture = read_image(tmp_path / f"{name}.png")
        assert picture.flags == (Flag.ALPHA_DROPPED,)
        assert (picture.pixels == expected).all()


def test_gray_and_sixteen_bits(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 5), 77, np.uint8)).save(tmp_path / "gray.png")
    assert (read_image(tmp_path / "gray.png").pixels == 77).all()
    deep = np.array([[0, 257, 25_700, 65_535]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    picture = read_image(tmp_path / "deep.png")
    assert picture.flags == (Flag.NOT_8_BIT,)
    assert picture.pixels[0].tolist() == [[level] * 3 for level in (0, 1, 100, 255)]


def test_files_that_are_no_picture(tmp_path: Path, noise: Noise, clips: Path) -> None:
    assert reason(tmp_path / "absent.png") is Reason.MISSING_CONDITION_IMAGE
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "script.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    write_image(tmp_path / "whole.png", noise(1)[0])
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:3000])
    for path in (
        *(tmp_path / f"{name}.png" for name in ("empty", "text", "folder", "script", "cut")),
        clips / "fast.mp4",
    ):
        assert reason(path) is Reason.UNDECODABLE, path


def test_too_many_pixels_are_refused_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_image(tmp_path / "picture.png", np.zeros((40, 50, 3), np.uint8))
    monkeypatch.setattr("gen_eval.media.images.settings", lambda: Settings(max_pixels=1999))
    with pytest.raises(ItemError, match="50x40"):
        read_image(tmp_path / "picture.png")
    monkeypatch.setattr("gen_eval.media.images.settings", lambda: Settings(max_pixels=2000))
    assert read_image(tmp_path / "picture.png").pixels.shape == (40, 50, 3)
    for limit in (1500, 900):  # Pillow's own guard: first a warning, then an error
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        assert reason(tmp_path / "picture.png") is Reason.UNDECODABLE


@pytest.mark.parametrize(
    ("pixels", "name", "message"),
    [
        (np.zeros((1, 4, 4, 3), np.uint8), "a.png", r"\(1, 4, 4, 3\)"),
        (np.zeros((4, 4), np.uint8), "a.png", r"\(4, 4\)"),
        (np.full((4, 4, 3), 2.0), "a.png", "0..1"),
        (np.zeros((4, 4, 3), np.uint8), "a.tiff", "a.tiff"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, pixels: np.ndarray, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_image(tmp_path / name, pixels)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("shape", "width", "expected"),
    [((108, 192), 96, (96, 54)), ((108, 192), 400, (192, 108)), ((1, 400), 10, (10, 1)), ((400, 1), 10, (1, 400))],
)
def test_thumbnails(noise: Noise, shape: tuple[int, int], width: int, expected: tuple[int, int]) -> None:
    frame = noise(1, *shape)[0]
    data = encode_thumbnail(frame, width)
    assert data == encode_thumbnail(frame / 255, width)
    with Image.open(io.BytesIO(data)) as picture:
        assert (picture.format, picture.size) == ("JPEG", expected)


def test_thumbnail_of_no_width() -> None:
    with pytest.raises(ValueError, match="width"):
        encode_thumbnail(np.zeros((4, 4, 3), np.uint8), 0)
