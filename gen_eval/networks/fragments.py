"""What DOVER looks at: some frames of a clip, and of each frame small patches at their own resolution, put together.

Frames and places are drawn. The draws are those that NumPy (frames) and torch (places) make after they were seeded,
from generators of their own: nothing global is read or changed, and torch is not needed.

Source: Wu et al. 2022, FAST-VQA (fragments); PAI-Bench-C, public code of the technical score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError, ItemError, Reason

_WORDS = 2**32


def segment_frames(length: int, *, segments: int, frames: int, step: int, seed: int) -> list[int]:
    """Numbers of the frames that are looked at: ``frames`` of each of ``segments`` equal parts of the clip.

    A part begins at its first frame, or, when it has room for more than ``frames`` steps, at a frame drawn from those
    that leave room. Behind the end of the clip its first frames come again.

    Args:
        length: frames of the clip, 1 or more.
        segments: parts of the clip.
        frames: frames of a part.
        step: from one of them to the next.
        seed: of NumPy's generator.

    Returns:
        segments x frames numbers, part by part; not in order where the end of the clip was reached.

    >>> segment_frames(12, segments=2, frames=4, step=2, seed=0)
    [0, 2, 4, 6, 6, 8, 10, 0]
    """
    part = length // segments
    room = part - frames * step
    offsets = np.random.RandomState(seed).randint(0, room, segments) if room > 0 else np.zeros(segments, np.int64)
    starts = np.arange(segments) * part + offsets
    numbers: list[int] = ((starts[:, None] + np.arange(frames) * step) % length).ravel().tolist()
    return numbers


@dataclass(frozen=True)
class Grid:
    """How patches are cut from the frames of a clip.

    Attributes:
        cells: rows and columns of the grid.
        patch: side of a patch in pixels.
        segments: parts of the clip; each has its own places.
        seed: of the generator that draws places.
        laid_over: frames smaller than all patches together are enlarged; the grid is then laid over the ``enlarged``
            frame, or has the places that the ``original`` one would have (the far part is then never looked at).
    """

    cells: int
    patch: int
    segments: int
    seed: int
    laid_over: str

    def __post_init__(self) -> None:
        """Refuse what makes no grid.

        Raises:
            InputError: the value and what it may be.
        """
        if self.laid_over not in {"enlarged", "original"}:
            raise InputError(f"the grid lies over the enlarged or the original frame, not {self.laid_over!r}")
        if min(self.cells, self.patch, self.segments) < 1:
            raise InputError(f"a grid needs cells, pixels and segments, 1 or more of each, not {self}")

    @property
    def side(self) -> int:
        """Side of all patches together, in pixels."""
        return self.cells * self.patch

    def enlarges(self, height: int, width: int) -> bool:
        """Whether frames of this size are enlarged before patches are cut."""
        return min(height, width) < self.side


@dataclass(frozen=True)
class Places:
    """Where patches lie in the frame, or in the enlarged one.

    Attributes:
        tops: first row of each patch, (segments, cells, cells) int64.
        lefts: first column, likewise.
        scale: pixels of the frame for one of the enlarged frame; 1 where nothing is enlarged.
    """

    tops: NDArray[np.int64]
    lefts: NDArray[np.int64]
    scale: float

    def pixels(self, patch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and column of each pixel of the pictures of patches, each (segments, side, side)."""
        segments, cells, _ = self.tops.shape
        inside = np.arange(patch)
        rows = self.tops[:, :, None, :, None] + inside[:, None, None]
        columns = self.lefts[:, :, None, :, None] + inside
        shape, side = (segments, cells, patch, cells, patch), cells * patch
        down, across = (np.broadcast_to(one, shape).reshape(segments, side, side) for one in (rows, columns))
        return down, across


def _draw(twister: np.random.RandomState, limit: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Numbers below ``limit`` as ``torch.randint`` draws them on the CPU: words of the Mersenne Twister modulo it."""
    words = twister.randint(0, _WORDS, shape, dtype=np.uint32)
    return (words % np.uint32(limit)).astype(np.int64)


def offsets(height: int, width: int, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How far patches lie below and right of the corners of their cells, each (cells, cells, segments).

    They are drawn along a side whose cells are larger than a patch, rows first, and 0 along another.

    Args:
        height: pixels of the frame that the grid is laid over.
        width: likewise.
        grid: cells, patch, segments and seed.
    """
    twister = np.random.RandomState(grid.seed)
    shape = (grid.cells, grid.cells, grid.segments)
    room = [side // grid.cells - grid.patch for side in (height, width)]
    down, across = (_draw(twister, limit, shape) if limit > 0 else np.zeros(shape, np.int64) for limit in room)
    return down, across


@lru_cache(maxsize=16)
def places(height: int, width: int, grid: Grid) -> Places:
    """Which pixels of frames of this size are looked at.

    Raises:
        ItemError: ``too_small``: a side of the original frame, over which the grid is laid, is below a patch's.
    """
    scale = min(height / grid.side, width / grid.side) if grid.enlarges(height, width) else 1.0
    if grid.laid_over == "enlarged" and scale < 1:
        height, width = (int(side * (1 / scale)) for side in (height, width))
    if min(height, width) < grid.patch:
        raise ItemError(
            Reason.TOO_SMALL,
            f"frames of {width}x{height} pixels (width x height) are smaller than a patch of {grid.patch}, and the "
            "grid is laid over the frame before it is enlarged; take the protocol corrected, or larger frames",
            {"size_hw": [height, width]},
        )
    down, across = offsets(height, width, grid)
    cells = np.arange(grid.cells)
    tops = np.minimum(height // grid.cells * cells, height - grid.patch)
    lefts = np.minimum(width // grid.cells * cells, width - grid.patch)
    return Places(tops[:, None] + np.moveaxis(down, 2, 0), lefts + np.moveaxis(across, 2, 0), scale)


def cut_fragments(frame: NDArray[np.uint8], slot: int, *, grid: Grid, frames: int) -> NDArray[np.uint8]:
    """The patches of one frame, put together.

    Args:
        frame: (H, W, 3) uint8 RGB.
        slot: position of the frame among those that :func:`segment_frames` names.
        grid: how patches are cut.
        frames: frames of a segment.

    Returns:
        (side, side, 3) uint8 RGB.

    Raises:
        ItemError: see :func:`places`.
    """
    height, width = frame.shape[:2]
    found, segment = places(height, width, grid), slot // frames
    if found.scale < 1:
        return _enlarged(frame, blends(height, width, grid)[segment])
    picture, size = np.empty((grid.side, grid.side, frame.shape[2]), np.uint8), grid.patch
    for i, j in np.ndindex(grid.cells, grid.cells):
        top, left = found.tops[segment, i, j], found.lefts[segment, i, j]
        target = picture[i * size : (i + 1) * size, j * size : (j + 1) * size]
        target[:] = frame[top : top + size, left : left + size]
    return picture


@dataclass(frozen=True)
class Blend:
    """Between which pixels of the frame those of an enlarged one lie.

    Attributes:
        corners: positions of the four neighbours in the frame read row by row: above left, above right, below left,
            below right; each (side x side,).
        beside: weight of the right ones, (side x side,) float32.
        below: weight of the lower ones, likewise.
    """

    corners: tuple[NDArray[np.int64], ...]
    beside: NDArray[np.float32]
    below: NDArray[np.float32]


@lru_cache(maxsize=8)
def blends(height: int, width: int, grid: Grid) -> tuple[Blend, ...]:
    """How the pixels of the pictures of patches are made from frames of this size, segment by segment."""
    found = places(height, width, grid)
    segments = zip(*found.pixels(grid.patch), strict=True)
    return tuple(_blend(rows, columns, height, width, found.scale) for rows, columns in segments)


def _blend(rows: NDArray[np.int64], columns: NDArray[np.int64], height: int, width: int, scale: float) -> Blend:
    top, bottom, below = _neighbours(rows.ravel(), height, scale)
    left, right, beside = _neighbours(columns.ravel(), width, scale)
    corners = tuple(line * width + column for line in (top, bottom) for column in (left, right))
    return Blend(corners, beside, below)


def _neighbours(
    enlarged: NDArray[np.int64], side: int, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """The two pixels of a side between whose centres each place of the enlarged one lies, and the second's weight."""
    step = np.float32(scale)
    exact = np.maximum(step * (enlarged.astype(np.float32) + np.float32(0.5)) - np.float32(0.5), np.float32(0))
    low = np.minimum(exact.astype(np.int64), side - 1)
    weight = np.minimum(exact - low.astype(np.float32), np.float32(1))
    return low, np.minimum(low + 1, side - 1), weight


def _enlarged(frame: NDArray[np.uint8], blend: Blend) -> NDArray[np.uint8]:
    """Pixels of the enlarged frame: bilinear, in float32 on 0..1, cut to whole levels.

    Only these are computed; a frame with one short side would become very large.
    """
    colours = frame.shape[2]
    levels = frame.reshape(-1, colours).T.astype(np.float32) / np.float32(255)  # each colour apart: four times as fast
    a, b, c, d = (levels.take(corner, axis=1) for corner in blend.corners)
    above = a * (1 - blend.beside) + b * blend.beside
    under = c * (1 - blend.beside) + d * blend.beside
    mixed = above * (1 - blend.below) + under * blend.below
    side = math.isqrt(mixed.shape[1])
    cut: NDArray[np.uint8] = np.ascontiguousarray((mixed * np.float32(255)).astype(np.uint8).T)
    return cut.reshape(side, side, colours)
