"""Bringing generated frames to the size of the reference clip, by the rule that the protocol names.

Source: PAI-Bench-C public code, step "common alignment"; see docs/protocols.md.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError, ItemError, Reason

Size = tuple[int, int]
"""Height and width in pixels."""

RESIZE_RULES = ("by_height", "by_pixels", "nearest")
"""See :func:`interpolation`."""


def check_aspect(member: Size, reference: Size, tolerance: float | None) -> None:
    """Refuse a pair whose width/height differ by a factor of more than ``1 + tolerance``; ``None``: accept all.

    Raises:
        ItemError: ``aspect_mismatch``, with both sizes (height, width) in the detail.
        InputError: the tolerance is below 0.
    """
    if tolerance is None:
        return
    if not tolerance >= 0:
        raise InputError(f"aspect_tolerance must be a number, 0 or more, or null, not {tolerance!r}")
    ratio = (member[1] * reference[0]) / (member[0] * reference[1])
    if max(ratio, 1 / ratio) > 1 + tolerance:
        raise ItemError(
            Reason.ASPECT_MISMATCH,
            f"the generated clip is {member[1]}x{member[0]} and the reference clip {reference[1]}x{reference[0]}: "
            f"their shapes differ by more than {tolerance:.0%}; generate in the reference's aspect ratio",
            {"sizes_hw": [list(reference), list(member)]},
        )


def interpolation(rule: str, member: Size, reference: Size) -> int:
    """The OpenCV filter by which ``member`` frames become ``reference`` frames.

    Args:
        rule: ``by_height`` (bilinear when the reference is higher, else area), ``by_pixels`` (area when the member
            has more pixels, else bilinear) or ``nearest``.
        member: height and width before.
        reference: height and width after.
    """
    if rule == "nearest":
        return int(cv2.INTER_NEAREST)
    if rule == "by_height":
        return int(cv2.INTER_LINEAR if reference[0] > member[0] else cv2.INTER_AREA)
    if rule == "by_pixels":
        return int(cv2.INTER_AREA if member[0] * member[1] > reference[0] * reference[1] else cv2.INTER_LINEAR)
    raise InputError(f"unknown resize rule {rule!r}; expected by_height, by_pixels or nearest")


def resize_frames(frames: NDArray[Any], size: Size, rule: str) -> NDArray[Any]:
    """``frames`` (n, H, W[, C]) resized to ``size``; returned as they are when the size is equal.

    The result has the input's dtype. Bilinear and area are OpenCV's, with its rounding for uint8.
    """
    before = (frames.shape[1], frames.shape[2])
    chosen = interpolation(rule, before, size)  # refuses an unknown rule, also where it would not be needed
    if before == size:
        return frames
    if len(frames) == 0:
        return np.empty((0, *size, *frames.shape[3:]), frames.dtype)
    return np.stack([cv2.resize(frame, (size[1], size[0]), interpolation=chosen) for frame in frames])
