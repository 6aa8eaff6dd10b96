"""Still pictures: condition images, and thumbnails for reports."""

from __future__ import annotations

import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.media.pixels import to_uint8
from gen_eval.records import Flag, ItemError, Reason
from gen_eval.records.files import write_atomic
from gen_eval.settings import settings

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""Picture formats that are read: plain rasters, nothing that runs a program or follows a link."""

_ORIENTATION_TAG = 0x0112
_JPEG_QUALITY = 95
_THUMBNAIL_QUALITY = 80


@dataclass(frozen=True)
class Picture:
    """A still picture, upright.

    Attributes:
        pixels: (H, W, 3) uint8 RGB.
        flags: ``rotated`` (the EXIF orientation was applied), ``alpha_dropped`` (not blended), ``not_8_bit``.
        detail: format and stored mode, JSON values only.
    """

    pixels: NDArray[np.uint8]
    flags: tuple[Flag, ...]
    detail: dict[str, Any]


def read_image(path: str | os.PathLike[str], *, upright: bool = True) -> Picture:
    """Read a picture (of an animated one the first frame).

    Args:
        path: the file.
        upright: apply the EXIF orientation; ``False`` keeps the pixels as stored (``rotated`` is then not set).

    Raises:
        ItemError: ``missing_condition_image`` (no such file) or ``undecodable`` (not a picture of :data:`FORMATS`,
            damaged, or with more pixels than the setting ``max_pixels``).
    """
    from PIL import Image

    place = Path(path)
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            raise _undecodable(place, "it is not a regular file")
        with Image.open(place, formats=FORMATS) as image:
            _check_pixels(place, image.width, image.height)
            return _picture(image, upright)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ItemError(Reason.MISSING_CONDITION_IMAGE, f"{place.name}: there is no such file") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _undecodable(place, f"it has too many pixels ({error})") from error
    except ItemError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError) as error:  # what Pillow raises on damaged files
        raise _undecodable(place, f"it cannot be read as a picture ({type(error).__name__})") from error


def _undecodable(place: Path, what: str) -> ItemError:
    return ItemError(Reason.UNDECODABLE, f"{place.name}: {what}; expected one of {', '.join(FORMATS)}")


def _check_pixels(place: Path, width: int, height: int) -> None:
    most = settings().max_pixels
    if width * height > most:
        raise _undecodable(place, f"it is {width}x{height}, more than {most} pixels (GEN_EVAL_MAX_PIXELS)")


def _picture(image: Image, upright: bool) -> Picture:
    from PIL import ImageOps

    detail = {"format": image.format, "mode": image.mode}
    deep = image.mode.startswith("I") or image.mode == "F"
    found = {
        Flag.ROTATED: upright and image.getexif().get(_ORIENTATION_TAG, 1) in range(2, 9),
        Flag.ALPHA_DROPPED: "A" in image.getbands() or "transparency" in image.info,
        Flag.NOT_8_BIT: deep,
    }
    turned = ImageOps.exif_transpose(image) if upright else image
    pixels = _from_deep(turned) if deep else np.asarray(turned.convert("RGB"))
    return Picture(np.ascontiguousarray(pixels), tuple(flag for flag, present in found.items() if present), detail)


def _from_deep(image: Image) -> NDArray[np.uint8]:
    """16-bit gray as RGB; Pillow's own conversion would cut values off at 255."""
    values = np.asarray(image, np.float64)
    if image.mode == "F" or values.min() < 0 or values.max() > 65_535:
        raise ValueError("only 8-bit and 16-bit pictures are read")
    gray = np.rint(values / 257).astype(np.uint8)
    return np.repeat(gray[..., None], 3, axis=-1)


def write_image(path: str | os.PathLike[str], pixels: NDArray[Any]) -> None:
    """Write a picture: ``.png`` keeps every value, ``.jpg`` / ``.jpeg`` has quality 95 without colour subsampling.

    Args:
        path: where; the file type follows from its name, folders are made.
        pixels: (H, W, 3) uint8 RGB, or float in 0..1.

    Raises:
        TypeError: not an array.
        ValueError: wrong shape, type or range, or another file type.
    """
    target = Path(path)
    options: dict[str, dict[str, Any]] = {
        ".png": {"format": "PNG"},
        ".jpg": {"format": "JPEG", "quality": _JPEG_QUALITY, "subsampling": 0},
    }
    options[".jpeg"] = options[".jpg"]
    chosen = options.get(target.suffix.lower())
    if chosen is None:
        raise ValueError(f"pictures are written as {', '.join(options)}, not {target.name!r}")
    write_atomic(target, _encoded(_image(pixels), **chosen))


def _image(pixels: NDArray[Any]) -> Image:
    from PIL import Image

    return Image.fromarray(to_uint8(pixels, "pixels", axes="HW3"))


def _encoded(image: Image, **options: Any) -> bytes:
    with io.BytesIO() as buffer:
        image.save(buffer, **options)
        return buffer.getvalue()


def encode_thumbnail(frame: NDArray[Any], width: int = 192) -> bytes:
    """A small JPEG of ``frame``, for reports; equal input gives equal bytes.

    Args:
        frame: (H, W, 3) uint8 RGB, or float in 0..1.
        width: pixels of the result; a frame that is narrower keeps its size. The height follows.
    """
    from PIL import Image

    if width < 1:
        raise ValueError(f"width must be at least 1, not {width}")
    image = _image(frame)
    if image.width > width:
        image = image.resize((width, max(1, round(image.height * width / image.width))), Image.Resampling.LANCZOS)
    return _encoded(image, format="JPEG", quality=_THUMBNAIL_QUALITY)
