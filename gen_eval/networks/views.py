"""What a network sees of a frame, as data: one function that resizes, rounds, crops and normalises as it is told.

The values are those of a protocol's ``measure`` section. What goes without saying in the public code is said here:

========== =============================================================================================
resize     ``shorter``: shorter side to ``side``, the other to ``int(side * long / short)``; ``square``: both sides to
           ``side``, whatever the shape; ``longer_at_most`` / ``shorter_at_most``: when the longer / shorter side has
           more than ``side`` pixels, both sides times ``side / it``, cut to whole pixels; ``none``
side       pixels
filter     ``bilinear`` or ``bicubic`` (with backend ``torch`` a = -0.75, with antialias or Pillow -0.5)
antialias  whether the filter widens when it shrinks (Pillow's always does)
rounding   ``none``: the resized values stay floats, beyond 0..255 where the filter overshoots; ``uint8``: clamped to
           0..255 and rounded, half to even
crop       pixels of the centre square, or ``none``; after ``..._at_most`` only a resized picture is cropped
normalise  after division by 255: ``imagenet``, ``clip`` or ``none``
backend    ``torch``, or ``pillow`` for pictures of 8 bits
========== =============================================================================================

Source: torchvision's ``Resize`` and ``CenterCrop`` on tensors and on Pillow images, as the public code calls them.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gen_eval.networks.resampling import Window, cut, interpolated, resample
from gen_eval.records import InputError, ItemError, Reason

_WHITE = 255.0
_MOST_ELONGATED = (
    64  # of a strip that is longer than wide by more, a transformer would have tens of thousands of patches
)
_STATISTICS = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}
_KNOWN: dict[str, tuple[Any, ...]] = {
    "resize": ("shorter", "square", "longer_at_most", "shorter_at_most", "none"),
    "filter": ("bilinear", "bicubic", "none"),
    "antialias": (True, False),
    "rounding": ("none", "uint8"),
    "normalise": tuple(_STATISTICS),
    "backend": ("torch", "pillow"),
}


def planes_of(frames: NDArray[np.uint8]) -> Tensor:
    """``frames`` (n, H, W, 3) with each colour apart: (n, 3, H, W) uint8, a copy."""
    planes = np.empty((len(frames), 3, *frames.shape[1:3]), np.uint8)
    for frame, parts in zip(frames, planes, strict=True):  # a fifth of the time of a transposed copy
        cv2.split(frame, list(parts))
    return torch.from_numpy(planes)


def make(
    frames: Tensor | NDArray[np.uint8],
    *,
    resize: str,
    side: int | None = None,
    filter: str = "none",
    antialias: bool = False,
    rounding: str = "none",
    crop: int | str = "none",
    normalise: str = "none",
    backend: str = "torch",
) -> Tensor:
    """What a network sees of ``frames``; the parameters are explained above.

    Args:
        frames: (n, H, W, 3) uint8 RGB, or (with backend ``torch``) colours apart: a tensor (n, 3, H, W), uint8 or
            float32 0..255, on any device.
        resize: rule for the size.
        side: its pixels.
        filter: kind of interpolation.
        antialias: see above.
        rounding: see above.
        crop: see above.
        normalise: see above.
        backend: see above.

    Returns:
        (n, 3, h, w) float32, contiguous, on the device of ``frames``.

    Raises:
        InputError: a parameter has a value that is not known here.
        ItemError: ``too_small``: a side would have no pixel, or fewer than the crop; or the shorter side is resized and
            the longer, which is not cropped, has more than 64 times as many.
    """
    _check(resize=resize, filter=filter, antialias=antialias, rounding=rounding, normalise=normalise, backend=backend)
    pillow = backend == "pillow"
    height, width = frames.shape[1:3] if isinstance(frames, np.ndarray) else frames.shape[2:]
    size = resized_size(height, width, resize, side)
    untouched = resize.endswith("at_most") and size == (height, width)
    window = _window(size, "none" if untouched else crop)
    if resize == "shorter" and max(window.height, window.width) > _MOST_ELONGATED * min(size):
        raise ItemError(
            Reason.TOO_SMALL,
            f"the clip is {width}x{height}: its longer side is more than {_MOST_ELONGATED} times the shorter, too much "
            f"for a network that looks at the whole frame with {side} pixels on the shorter side; crop the clip",
            {"size_hw": [height, width]},
        )
    if size != (height, width) and filter == "none":
        raise InputError(f"frames of {width}x{height} are resized to {size[1]}x{size[0]}: name a filter")
    if pillow:
        seen = _with_pillow(np.asarray(frames), size, window, filter)
    else:
        planes = planes_of(frames) if isinstance(frames, np.ndarray) else frames
        seen = _with_torch(planes, size, window, filter, antialias=antialias, rounded=rounding == "uint8")
    return _normalised_bytes(seen, normalise)


def at_size(
    frames: NDArray[np.uint8],
    size: tuple[int, int],
    *,
    filter: str,
    antialias: bool = False,
    normalise: str = "none",
    backend: str = "torch",
) -> Tensor:
    """``frames`` (n, H, W, 3) uint8 RGB, whole, at another size: (n, 3, *size) float32 in main memory.

    For networks that say themselves which size they look at; the other parameters are those of :func:`make`.

    Raises:
        InputError: a parameter has a value that is not known here.
    """
    _check(filter=filter, antialias=antialias, normalise=normalise, backend=backend)
    window = Window(0, 0, *size)
    if backend == "pillow":
        return _normalised_bytes(_with_pillow(frames, size, window, filter), normalise)
    seen = _with_torch(planes_of(frames), size, window, filter, antialias=antialias, rounded=False)
    return _normalised_bytes(seen, normalise)


def _check(**values: Any) -> None:
    for name, value in values.items():
        if value not in _KNOWN[name]:
            raise InputError(f"a view has no {name} {value!r}; expected one of {', '.join(map(str, _KNOWN[name]))}")


def resized_size(height: int, width: int, rule: str, side: int | None) -> tuple[int, int]:
    """Height and width that a picture of ``height`` x ``width`` has after ``rule`` (see ``resize`` above).

    Raises:
        InputError: the rule needs a positive ``side``.
        ItemError: ``too_small``: nothing would be left of a side.
    """
    if rule == "none":
        return height, width
    if not isinstance(side, int) or side < 1:
        raise InputError(f"resize {rule} needs a side in pixels, not {side!r}")
    if rule == "square":
        return side, side
    short, long = min(height, width), max(height, width)
    if rule == "shorter":
        other = int(side * long / short)
        return (side, other) if height <= width else (other, side)
    decisive = long if rule == "longer_at_most" else short
    if decisive <= side:
        return height, width
    scale = side / decisive
    size = (int(scale * height), int(scale * width))
    if min(size) < 1:
        raise ItemError(
            Reason.TOO_SMALL,
            f"frames of {width}x{height} pixels shrink to {size[1]}x{size[0]}; nothing would be left of a side",
            {"size_hw": [height, width]},
        )
    return size


def _window(size: tuple[int, int], crop: int | str) -> Window:
    height, width = size
    if crop == "none":
        return Window(0, 0, height, width)
    if not isinstance(crop, int) or crop < 1:
        raise InputError(f"crop must be a number of pixels or none, not {crop!r}")
    if min(size) < crop:
        raise ItemError(
            Reason.TOO_SMALL,
            f"the resized frame has {width}x{height} pixels, and {crop}x{crop} are cut out of it",
            {"size_hw": [height, width]},
        )
    return Window(round((height - crop) / 2), round((width - crop) / 2), crop, crop)  # half to even


def _with_torch(
    planes: Tensor, size: tuple[int, int], window: Window, kind: str, *, antialias: bool, rounded: bool
) -> Tensor:
    if not rounded:
        return resample(planes, size, window, kind=kind, antialias=antialias)
    if planes.shape[2:] != size:
        # rounding magnifies the last bit: these few frames go through the operation itself
        planes = interpolated(planes, size, kind, antialias=antialias).clamp_(0, _WHITE).round_()
    return cut(planes, window)


def _with_pillow(frames: NDArray[np.uint8], size: tuple[int, int], window: Window, kind: str) -> Tensor:
    from PIL import Image

    chosen = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}.get(kind)
    top, left, height, width = window
    seen = np.empty((len(frames), height, width, 3), np.uint8)
    for frame, place in zip(frames, seen, strict=True):
        picture = Image.fromarray(frame)
        if frame.shape[:2] != size:
            picture = picture.resize((size[1], size[0]), chosen)
        place[:] = np.asarray(picture)[top : top + height, left : left + width]
    return planes_of(seen).float()


def normalised(pictures: Tensor, name: str) -> Tensor:
    """``pictures`` (n, 3, h, w), 0..1, less each channel's mean and over its deviation (``imagenet``, ``clip``).

    Raises:
        InputError: there are no statistics of that name.
    """
    _check(normalise=name)
    mean, deviation = (torch.tensor(values, device=pictures.device).view(3, 1, 1) for values in _STATISTICS[name])
    return ((pictures - mean) / deviation).to(pictures.dtype)


def _normalised_bytes(seen: Tensor, name: str) -> Tensor:
    """The same of ``seen``, 0..255 float32; in place."""
    mean, deviation = (torch.tensor(values, device=seen.device).view(3, 1, 1) for values in _STATISTICS[name])
    return seen.mul_(1 / (_WHITE * deviation)).sub_(mean / deviation)
