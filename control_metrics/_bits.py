"""Binary maps as packed bits: an eighth of the memory, and 64 pixels counted at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_BLOCK = 262_144  # bytes


def pack(maps: NDArray[Any]) -> Words:
    """The maps' pixels as bits, one row of words for each map.

    Args:
        maps: (n, ...) bool, or integers of which every value but 0 counts as set.

    Returns:
        (n, words) uint64; bits beyond the last pixel are 0.
    """
    octets = np.packbits(maps.reshape(len(maps), -1), axis=1)
    if octets.shape[1] % 8 == 0 and octets.size:
        return octets.view(np.uint64)
    padded = np.zeros((len(maps), -(-octets.shape[1] // 8) * 8), np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def count(words: Words) -> NDArray[np.int64]:
    """Set bits along the last axis."""
    return np.asarray(np.bitwise_count(words).sum(axis=-1, dtype=np.int64))


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
    for start in range(0, length, _BLOCK):  # blocks stay in the cache while all pairs are formed
        first, second = ([one[start : start + _BLOCK] for one in side] for side in sides)
        own += _sums([cv2.norm(one, cv2.NORM_HAMMING) for one in first])
        other += _sums([cv2.norm(one, cv2.NORM_HAMMING) for one in second])
        differing += _sums([cv2.norm(one, two, cv2.NORM_HAMMING) for one in first for two in second]).reshape(
            differing.shape
        )
    return (own[:, None] + other[None, :] - differing) // 2, own, other


def _sums(norms: Sequence[float]) -> NDArray[np.int64]:
    return np.array(norms, np.int64)
