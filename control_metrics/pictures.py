"""Pictures that show why a frame counts as it does: agreement of edges, depth and its error, matched masks.

They are made for one frame a clip, small enough for a report, and are no part of any score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from control_metrics._bits import Words
from gen_eval.media.signal_pictures import PALETTE

Picture = NDArray[np.uint8]

BOTH = (255, 255, 255)
ONLY_GENERATED = (230, 159, 0)
ONLY_REFERENCE = (86, 180, 233)
"""Colours that people with any colour vision tell apart (Okabe and Ito)."""

UNMATCHED = (110, 110, 110)
INVALID = (110, 110, 110)

_WIDTH = 192  # of a picture in a report
_GAIN = 4.0  # thin lines grow faint when a picture shrinks


def edge_agreement(prediction: NDArray[np.uint8], reference: NDArray[np.uint8]) -> Picture:
    """Edges of both frames in one picture: white in both, orange in the prediction only, blue in the reference only.

    Args:
        prediction: (H, W), anything but 0 on edges.
        reference: likewise.

    Returns:
        (h, w, 3) uint8 RGB, at most 192 pixels wide; lines keep their brightness when it is smaller than the maps.
    """
    own, other = prediction != 0, reference != 0
    shown = np.zeros((*own.shape, 3), np.uint8)
    shown[own & other], shown[own & ~other], shown[other & ~own] = BOTH, ONLY_GENERATED, ONLY_REFERENCE
    factor = own.shape[1] / _WIDTH
    if factor <= 1:
        return shown
    small = cv2.resize(shown, (_WIDTH, max(1, round(own.shape[0] / factor))), interpolation=cv2.INTER_AREA)
    bright: Picture = np.clip(small * min(factor, _GAIN), 0, 255).astype(np.uint8)
    return bright


def depth_pictures(
    prediction: NDArray[np.floating[Any]], reference: NDArray[np.floating[Any]]
) -> Mapping[str, Picture]:
    """Both maps on one scale, and where they differ.

    Args:
        prediction: (H, W), already multiplied by the fitted scale.
        reference: (H, W).

    Returns:
        ``depth``, ``depth_reference`` and ``depth_error`` (absolute, on the same scale), (H, W, 3) uint8 RGB; pixels
        that do not count are gray.
    """
    valid = (prediction > 0) & (reference > 0) & np.isfinite(prediction) & np.isfinite(reference)
    if not valid.any():
        return {}
    unit = float(reference[valid].max())  # so that neither very large nor very small maps leave what numbers can hold
    with np.errstate(over="ignore"):  # beyond the brightest colour
        own, other = (np.where(valid, one, 0).astype(np.float64) / unit for one in (prediction, reference))
        low, high = np.percentile(other[valid], (1, 99))
        reach = max(float(high - low), 1e-6)
        return {
            "depth": _coloured((own - low) / reach, valid),
            "depth_reference": _coloured((other - low) / reach, valid),
            "depth_error": _coloured(np.abs(other - own) / reach, valid),
        }


def _coloured(values: NDArray[np.floating[Any]], valid: NDArray[np.bool_]) -> Picture:
    levels = np.clip(np.where(valid, values, 0) * 255, 0, 255).astype(np.uint8)
    shown: Picture = np.ascontiguousarray(cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1])
    shown[~valid] = INVALID
    return shown


def lowest_overlap(
    reference: Sequence[Words],
    prediction: Sequence[Words],
    pairs: Sequence[tuple[int, int]],
    size: tuple[int, int, int],
) -> tuple[int, Mapping[str, Picture]]:
    """The frame in which matched classes overlap least, with the classes of both sides painted.

    Args:
        reference: packed mask of each class over all frames (see :mod:`control_metrics._bits`).
        prediction: likewise.
        pairs: matched classes, numbers in ``reference`` and ``prediction``.
        size: frames, height, width.

    Returns:
        Number of the frame (without a matched pair: the frame with the most pixels of any class), and ``masks`` and
        ``masks_reference``, (H, W, 3) uint8 RGB: a matched pair has one colour on both sides, others are gray.
    """
    frames, height, width = size
    overlaps = [_overlap(reference, prediction, pairs, frame, height * width) for frame in range(frames)]
    worst = int(np.argmin(overlaps))
    if not np.isfinite(overlaps[worst]):
        pixels = [sum(_count(_frame(one, frame, height * width)) for one in (*reference, *prediction))
                  for frame in range(frames)]  # fmt: skip
        worst = int(np.argmax(pixels))
    sides = {"masks": (prediction, {own: place for place, (_, own) in enumerate(pairs)}),
             "masks_reference": (reference, {other: place for place, (other, _) in enumerate(pairs)})}  # fmt: skip
    return worst, {role: _painted(classes, places, worst, (height, width)) for role, (classes, places) in sides.items()}


def _overlap(
    reference: Sequence[Words], prediction: Sequence[Words], pairs: Sequence[tuple[int, int]], frame: int, pixels: int
) -> float:
    """Pixels that matched pairs share / pixels of either; infinite in a frame where there is none of them."""
    shared = united = 0
    for row, column in pairs:
        other, own = _frame(reference[row], frame, pixels), _frame(prediction[column], frame, pixels)
        shared += _count(own & other)
        united += _count(own | other)
    return shared / united if united else float("inf")


def _frame(words: Words, frame: int, pixels: int) -> NDArray[np.uint8]:
    """The packed pixels of one frame."""
    octets = words.view(np.uint8)
    start, stop = frame * pixels, (frame + 1) * pixels
    if pixels % 8 == 0:
        return octets[start // 8 : stop // 8]
    return np.packbits(_bits(octets, start, stop))


def _bits(octets: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.uint8]:
    found = np.unpackbits(octets[start // 8 : -(-stop // 8)])
    return found[start % 8 : start % 8 + stop - start]


def _count(octets: NDArray[np.uint8]) -> int:
    return int(np.bitwise_count(octets).sum(dtype=np.int64))


def _painted(classes: Sequence[Words], places: Mapping[int, int], frame: int, size: tuple[int, int]) -> Picture:
    shown = np.zeros((*size, 3), np.uint8)
    pixels = size[0] * size[1]
    # matched ones above the others, and on both sides in the same order
    for number in sorted(range(len(classes)), key=lambda one: -places.get(one, len(classes))):
        mask = _bits(classes[number].view(np.uint8), frame * pixels, (frame + 1) * pixels).reshape(size).astype(bool)
        shown[mask] = PALETTE[places[number] % len(PALETTE)] if number in places else UNMATCHED
    return shown
