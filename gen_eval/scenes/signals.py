"""Control signals of a clip: outlines, masks, depth; as arrays and as pictures for people."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.media import signal_pictures

Masks = Sequence[tuple[str, NDArray[np.bool_]]]
Bool = NDArray[np.bool_]


def outlines(masks: Sequence[Bool]) -> Bool:
    """(T, H, W) pixels of any mask (T, H, W) that touch, by a side, a pixel outside of that mask.

    The border of the picture is no outline: an object that leaves the view goes on beyond it.
    """
    edges: Bool = np.zeros(masks[0].shape, dtype=bool)
    for mask in masks:
        inner = mask.copy()
        inner[:, 1:] &= mask[:, :-1]
        inner[:, :-1] &= mask[:, 1:]
        inner[:, :, 1:] &= mask[:, :, :-1]
        inner[:, :, :-1] &= mask[:, :, 1:]
        edges |= mask & ~inner
    return edges


def eroded(masks: Sequence[Bool], share: float) -> list[Bool]:
    """Masks without the pixels whose distance to the outside is at most ``share`` of the largest such distance.

    At least the outermost pixels go (where something is left), and an object that is seen keeps a pixel.
    """
    if not share:
        return list(masks)
    return [np.stack([_eroded(frame, share) for frame in mask]) for mask in masks]


def _eroded(mask: Bool, share: float) -> Bool:
    padded = np.pad(mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]
    largest = float(distance.max())
    if largest <= 1:
        return mask
    kept: Bool = distance > max(1.0, share * largest)
    return kept


def depth_picture(depth: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Depth for people: stretched over the clip to 0..255, near is bright; a constant clip is black."""
    return signal_pictures.depth_picture(depth, float(depth.min()), float(depth.max()))


def masks_picture(masks: Masks) -> NDArray[np.uint8]:
    """Masks for people: each object in its own colour on black, small ones painted over large ones."""
    frames, height, width = masks[0][1].shape
    order = signal_pictures.largest_first([int(mask.sum()) for _, mask in masks])
    return signal_pictures.masks_picture((masks[index][1] for index in order), (frames, height, width))


def blurred(frames: NDArray[np.uint8], diameter: int, sigma_color: float, sigma_space: float) -> NDArray[np.uint8]:
    """Each frame through the bilateral filter of the conditional track."""
    return np.stack([cv2.bilateralFilter(frame, diameter, sigma_color, sigma_space) for frame in frames])
