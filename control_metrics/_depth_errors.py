"""Errors of one depth map, over pixels that were chosen before.

Source: PAI-Bench-C, depth si-RMSE.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Maps = NDArray[np.floating[Any]]

_BLOCK = 32_768


def si_rmse(prediction: Maps, reference: Maps, cap: float | None = None) -> float:
    """Scale-invariant error of one frame.

    Args:
        prediction: (n,) depth of the pixels that count, at least one.
        reference: (n,) depth of the same pixels, whose unit the error has.
        cap: residuals are clipped to ±cap before they are squared.

    Returns:
        sqrt(mean((reference - s * prediction)^2)) with s = median(reference) / median(prediction); not finite when a
        pixel is infinite.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.float64(median(reference)) / np.float64(median(prediction))
        return math.sqrt(_sum_of_squares(prediction, reference, scale, cap) / prediction.size)


def median(values: Maps) -> float:
    """Median of ``values`` (n,)."""
    middle = values.size // 2
    split = np.partition(values, middle)
    upper = float(split[middle])
    return upper if values.size % 2 else (float(split[:middle].max()) + upper) / 2


def _sum_of_squares(own: Maps, other: Maps, scale: np.float64, cap: float | None) -> float:
    """Sum of (other - scale * own)^2 in float64, in blocks that stay in the cache."""
    total = 0.0
    buffer = np.empty(min(_BLOCK, own.size), np.float64)
    for start in range(0, own.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        residual = buffer[: len(own[part])]
        np.copyto(residual, own[part])
        residual *= -scale
        residual += other[part]
        if cap is not None:
            np.clip(residual, -cap, cap, out=residual)
        residual *= residual
        total += float(residual.sum())
    return total


def log_rmse(prediction: Maps, reference: Maps) -> float:
    """Scale-invariant error of one frame in log space.

    Args:
        prediction: (n,) depth of the pixels that count, at least one; positive and finite.
        reference: (n,) depth of the same pixels, likewise.

    Returns:
        sqrt(mean(d^2) - mean(d)^2) with d = log(prediction) - log(reference).

    Source:
        Eigen et al. 2014, Depth map prediction from a single image using a multi-scale deep network.
    """
    first = float(np.log(prediction[0], dtype=np.float64) - np.log(reference[0], dtype=np.float64))
    own, other = (np.empty(min(_BLOCK, prediction.size), maps.dtype) for maps in (prediction, reference))
    difference = np.empty(len(own), np.float64)
    total = squares = 0.0
    for start in range(0, prediction.size, _BLOCK):  # blocks stay in the cache
        count = min(_BLOCK, prediction.size - start)
        part, block = slice(start, start + count), difference[:count]
        np.subtract(np.log(prediction[part], out=own[:count]), np.log(reference[part], out=other[:count]), out=block)
        block -= first  # near 0 for most pixels: the two means below do not cancel
        total += float(block.sum())
        squares += float(block @ block)
    mean = total / prediction.size
    return math.sqrt(max(squares / prediction.size - mean * mean, 0.0))


def chosen(prediction: Maps, reference: Maps, valid: NDArray[np.bool_]) -> tuple[Maps, Maps] | None:
    """The pixels of both maps that are ``valid``, flat; ``None`` when there is none."""
    if valid.all():
        return prediction.ravel(), reference.ravel()
    return (prediction[valid], reference[valid]) if valid.any() else None
