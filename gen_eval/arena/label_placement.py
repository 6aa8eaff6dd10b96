"""Where the names of points go in a scatter, so that they hide neither each other nor the points.

A small greedy rule: every label tries places around its point, near ones first, the most crowded point first; a few
rounds let each move again. Nothing is random, so equal points give equal places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gen_eval.stats.summaries import Floats

_ROUNDS = 4
_DISTANCES = (7.0, 15.0, 28.0, 45.0, 66.0)
_ANGLES = (0, 180, 45, -45, 135, -135, 90, -90)
_OVERLAP, _HIDDEN, _CROSSED, _OUTSIDE, _FAR = 1.0, 1.5, 0.3, 200.0, 4.0
"""What it costs to lie on a square pixel of a label, a point, an obstacle; a pixel outside; the way to the point."""

Boxes = NDArray[np.float64]
"""``(K, 4)`` rectangles: left, bottom, right, top."""


@dataclass(frozen=True)
class Place:
    """Where a label goes: its left lower corner, and whether it is so far off that a line must lead to it."""

    x: float
    y: float
    led: bool


def place_labels(points: Floats, sizes: Floats, frame: Sequence[float], obstacles: Boxes | None = None) -> list[Place]:
    """A place for every label.

    Args:
        points: ``(n, 2)`` points, in the pixels of the drawing.
        sizes: ``(n, 2)`` width and height of each label.
        frame: left, bottom, right and top of the area that labels stay within.
        obstacles: rectangles to keep clear of where that is cheap, as error bars.
    """
    marks = np.concatenate([points - 5, points + 5], axis=1)
    crossed = np.zeros((0, 4)) if obstacles is None else obstacles
    choices = [_choices(point, size) for point, size in zip(points, sizes, strict=True)]
    costs = [_fixed_cost(boxes, far, marks, crossed, frame) for boxes, far in choices]
    near = np.hypot(*(points[:, None, :] - points[None, :, :]).transpose(2, 0, 1))
    crowded = np.argsort(-(near < 90).sum(axis=1), kind="stable")
    chosen: dict[int, int] = {}
    for _ in range(_ROUNDS):
        for index in map(int, crowded):
            others = np.array([choices[one][0][at] for one, at in chosen.items() if one != index]).reshape(-1, 4)
            boxes = choices[index][0]
            chosen[index] = int(np.argmin(costs[index] + _OVERLAP * _shared(boxes, others)))
    return [
        Place(float(boxes[chosen[index], 0]), float(boxes[chosen[index], 1]), bool(far[chosen[index]] > 0.1))
        for index, (boxes, far) in enumerate(choices)
    ]


def _choices(point: Floats, size: Floats) -> tuple[Boxes, Floats]:
    """``(C, 4)`` rectangles around ``point``, and how far off each is, 0..1."""
    width, height = float(size[0]), float(size[1])
    boxes, far = [], []
    for distance in _DISTANCES:
        for angle in _ANGLES:
            across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            x = float(point[0]) + distance * across - width * (1 - across) / 2
            y = float(point[1]) + distance * up - height * (1 - up) / 2
            boxes.append((x, y, x + width, y + height))
            far.append((distance - _DISTANCES[0]) / (_DISTANCES[-1] - _DISTANCES[0]))
    return np.array(boxes), np.array(far)


def _fixed_cost(boxes: Boxes, far: Floats, marks: Boxes, crossed: Boxes, frame: Sequence[float]) -> Floats:
    """What a place costs whatever the other labels do: points hidden, parts outside, the way to the point."""
    low, high = np.array([frame[0], frame[1]]), np.array([frame[2], frame[3]])
    outside = np.maximum(low - boxes[:, :2], 0).sum(axis=1) + np.maximum(boxes[:, 2:] - high, 0).sum(axis=1)
    order = 0.2 * (np.arange(len(boxes)) % len(_ANGLES))
    hidden = _HIDDEN * _shared(boxes, marks) + _CROSSED * _shared(boxes, crossed)
    cost: Floats = hidden + _OUTSIDE * outside + _FAR * (10 * far + order)
    return cost


def _shared(boxes: Boxes, others: Boxes) -> Floats:
    """``(C,)`` area that each box shares with any of the others, in pixels of a typical line of text."""
    across = np.minimum(boxes[:, None, 2], others[None, :, 2]) - np.maximum(boxes[:, None, 0], others[None, :, 0])
    up = np.minimum(boxes[:, None, 3], others[None, :, 3]) - np.maximum(boxes[:, None, 1], others[None, :, 1])
    area: Floats = (np.maximum(across + 2, 0) * np.maximum(up + 1, 0)).sum(axis=1)
    return area


__all__ = ["Boxes", "Place", "place_labels"]
