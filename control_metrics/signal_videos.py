"""Depth maps and segmentation as videos, for people and generators; metrics read the files that these are made from.

Both read their file a few frames at a time. Source: PAI-Bench-C, making the control signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from control_metrics.segmentation_file import Segmentation, read_segmentation
from control_metrics.signals import open_depth
from gen_eval.media.signal_pictures import depth_picture, largest_first, masks_picture

Frames = NDArray[np.uint8]

_CHUNK = 8


def depth_video(path: Path) -> Iterator[Frames]:
    """The depth maps in ``path`` as gray pictures: (d - min) / (max - min) over the whole clip, 255 the largest.

    A clip with one depth only is black, and so is a pixel that is not finite.

    Yields:
        (n, H, W, 3) uint8 with three equal channels.

    Raises:
        ItemError: ``undecodable``, the file cannot be read.
    """
    low, high = _range(path)
    with open_depth(path) as file:
        for maps in file.chunks(_CHUNK):
            yield depth_picture(maps, low, high)


def _range(path: Path) -> tuple[float, float]:
    """Least and largest finite depth of the clip; twice 0 when there is none."""
    low, high = np.inf, -np.inf
    with open_depth(path) as file:
        for maps in file.chunks(_CHUNK):
            finite = maps[np.isfinite(maps)]
            if finite.size:
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high) if low <= high else (0.0, 0.0)


def segmentation_video(path: Path) -> Iterator[Frames]:
    """The objects in ``path`` painted on black, the largest (over the clip) first, so that small ones lie above.

    Colours are those of :data:`gen_eval.media.signal_pictures.PALETTE` in that order: the largest object has the
    first, the 24th the first again. (The public code draws their order at random.)

    Yields:
        (n, H, W, 3) uint8 RGB; nothing for a file that does not say how many frames it has.

    Raises:
        ItemError: ``undecodable``, the file cannot be read.
    """
    objects = read_segmentation(path)
    if objects.size is None:
        return
    frames, height, width = objects.size
    areas = [_area(objects, index) for index in range(len(objects))]
    order = largest_first(areas)
    for start, stop in _parts(frames):
        parts = (objects.part(index, start, stop) for index in order)
        yield masks_picture(parts, (stop - start, height, width))


def _area(objects: Segmentation, index: int) -> int:
    assert objects.size is not None
    return sum(int(objects.part(index, start, stop).sum()) for start, stop in _parts(objects.size[0]))


def _parts(frames: int) -> Iterator[tuple[int, int]]:
    for start in range(0, frames, _CHUNK):
        yield start, min(start + _CHUNK, frames)
