"""Binary maps as packed bits: an eighth of the memory, and 64 pixels counted at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_PIXELS = 65_536  # packed at a time; a multiple of 64
_BYTES = 262_144  # counted at a time


def blank(maps: int, pixels: int) -> Words:
    """Maps of ``pixels`` pixels of which none is set, (maps, words); together, so that memory comes in large pages."""
    return np.zeros((maps, -(-pixels // 64)), np.uint64)


def pack(mask: NDArray[Any]) -> Words:
    """The pixels of ``mask`` (any shape; bool, or integers of which every value but 0 counts as set) as bits.

    Returns:
        (words,) uint64; bits beyond the last pixel are 0.
    """
    words: Words = blank(1, mask.size)[0]
    merge(mask, words)
    return words


def merge(mask: NDArray[Any], into: Words, taken: Words | None = None) -> None:
    """Set the pixels of ``mask`` in ``into``.

    Parts of the mask without a set pixel are only looked at: objects are mostly small and in one place.

    Args:
        mask: any shape; bool or uint8.
        into: the packed map that is changed.
        taken: pixels that belong to others; they are left out, and those of ``mask`` are added to them.
    """
    flat = np.ascontiguousarray(mask).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), _PIXELS):
        pixels = flat[start : start + _PIXELS]
        if not cv2.hasNonZero(pixels):
            continue
        words = _words(np.packbits(pixels))
        part = slice(start // 64, start // 64 + len(words))
        if taken is not None:
            others = taken[part]
            words ^= words & others
            others |= words
        own = into[part]
        own |= words


def _words(octets: NDArray[np.uint8]) -> Words:
    if len(octets) % 8:
        octets = np.concatenate([octets, np.zeros(-len(octets) % 8, np.uint8)])
    return octets.view(np.uint64)


def count_pairs(
    left: Sequence[Words], right: Sequence[Words]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Bits set in both of each pair, (len(left), len(right)), and in each map of either side.

    OpenCV's Hamming distance counts what differs in one pass; what is shared is half of what is set less what differs.

    Args:
        left: maps (words,) uint64.
        right: likewise, of the same length.
    """
    sides = ([one.view(np.uint8) for one in left], [one.view(np.uint8) for one in right])
    own, other = (np.zeros(len(side), np.int64) for side in sides)
    differing = np.zeros((len(left), len(right)), np.int64)
    length = max((len(one) for side in sides for one in side), default=0)
    for start in range(0, length, _BYTES):  # parts stay in the cache while all pairs are formed
        first, second = ([one[start : start + _BYTES] for one in side] for side in sides)
        own += _sums([cv2.norm(one, cv2.NORM_HAMMING) for one in first])
        other += _sums([cv2.norm(one, cv2.NORM_HAMMING) for one in second])
        differing += _sums([cv2.norm(one, two, cv2.NORM_HAMMING) for one in first for two in second]).reshape(
            differing.shape
        )
    return (own[:, None] + other[None, :] - differing) // 2, own, other


def _sums(norms: Sequence[float]) -> NDArray[np.int64]:
    return np.array(norms, np.int64)
