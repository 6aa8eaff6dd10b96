"""Checking arrays of pixels that are to be written, and bringing them to 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_shape(array: Any, name: str, *, axes: str) -> NDArray[Any]:
    """``array`` itself if it is an array of these axes, the last of them three channels.

    Args:
        array: what was given.
        name: what it is called in messages.
        axes: the axes that are expected, such as ``"THW3"``.

    Raises:
        TypeError: not an array.
        ValueError: another number of axes (a batch axis among them), not three channels, or no pixels; the message
            names the shape.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    expected = f"({', '.join(axes)})"
    if array.ndim == len(axes) + 1:
        raise ValueError(
            f"{name} must be {expected}, not {array.shape}: there is one axis too many; write the items of a batch "
            "one by one"
        )
    if array.ndim != len(axes) or array.shape[-1] != 3 or 0 in array.shape:
        raise ValueError(f"{name} must be {expected} with at least one frame and one pixel, not {array.shape}")
    return array


def to_uint8(array: Any, name: str, *, axes: str) -> NDArray[np.uint8]:
    """``array`` as contiguous uint8 RGB.

    Args:
        array: uint8, or float in 0..1 (multiplied by 255 and rounded, so ``x / 255`` of a uint8 array gives ``x``).
        name: what it is called in messages.
        axes: see :func:`check_shape`.

    Raises:
        TypeError: not an array.
        ValueError: another shape or type, or floats outside 0..1; the message names what it is.
    """
    pixels = check_shape(array, name, axes=axes)
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    if not np.issubdtype(pixels.dtype, np.floating):
        raise ValueError(f"{name} must be uint8, or float in 0..1, not {pixels.dtype}")
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"{name} holds floats from {low:g} to {high:g}; they must lie in 0..1 (0..255 belongs into uint8)"
        )
    scaled = np.multiply(pixels, 255.0, dtype=np.result_type(pixels.dtype, np.float32))
    levels: NDArray[np.uint8] = np.rint(scaled).astype(np.uint8)
    return levels
