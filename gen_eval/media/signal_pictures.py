"""Depth maps and masks as pictures for people and generators.

Source: PAI-Bench-C, making the control signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PALETTE = (
    (230, 25, 75), (60, 180, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48), (145, 30, 180), (70, 240, 240),
    (240, 50, 230), (210, 245, 60), (250, 190, 212), (0, 128, 128), (220, 190, 255), (170, 110, 40), (255, 250, 200),
    (128, 0, 0), (170, 255, 195), (128, 128, 0), (255, 215, 180), (0, 0, 128), (128, 128, 128), (255, 255, 255),
    (0, 200, 120), (120, 160, 255),
)  # fmt: skip
"""23 colours for objects and classes, always in this order: the largest object has the first."""


def gray(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(T, H, W) uint8 as (T, H, W, 3) with equal channels."""
    return np.repeat(values[..., None], 3, axis=-1)


def depth_picture(depth: NDArray[np.floating[Any]], low: float, high: float) -> NDArray[np.uint8]:
    """Depth maps (T, H, W) as gray pictures: (d - low) / (high - low) * 255, cut to whole levels.

    Args:
        depth: larger is brighter; a pixel that is not finite is black.
        low: least depth of the clip.
        high: largest depth of the clip; where it equals ``low``, all is black.

    Returns:
        (T, H, W, 3) uint8 with three equal channels.
    """
    levels = np.zeros(depth.shape, np.uint8)
    if high > low:
        finite = np.isfinite(depth)
        levels[finite] = ((depth[finite].astype(np.float64) - low) / (high - low) * 255).astype(np.uint8)
    return gray(levels)


def largest_first(areas: Sequence[int]) -> list[int]:
    """Indices of objects in the order in which they are painted; equal ones keep theirs."""
    return sorted(range(len(areas)), key=lambda index: (-areas[index], index))


def masks_picture(masks: Iterable[NDArray[np.bool_]], size: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Masks painted on black, each over those before it, the first in the first colour of :data:`PALETTE`.

    (The public code draws the order of the colours at random.)

    Args:
        masks: (T, H, W) each, in the order of :func:`largest_first`.
        size: (T, H, W).

    Returns:
        (T, H, W, 3) uint8 RGB.
    """
    shown = np.zeros((*size, 3), np.uint8)
    for place, mask in enumerate(masks):
        shown[mask] = PALETTE[place % len(PALETTE)]
    return shown
