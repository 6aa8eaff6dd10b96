"""How much of each pixel a convex shape covers.

Every pixel row is cut into bands. Within a band a convex shape is taken as one upright rectangle of the same area, and
its overlap with each pixel is computed exactly; bands at the top and bottom count by the height that lies within the
shape. Upright rectangles come out exact, other shapes to second order in the band height.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.world import Array, Ellipse, Shape

_BANDS = 8


@dataclass(frozen=True)
class Camera:
    """Where scene units land in the picture.

    Attributes:
        scale: pixels a scene unit.
        origin: (column, row) of the scene's point (0, 0), in pixels; pixel i spans [i, i + 1).
    """

    scale: float
    origin: tuple[float, float]

    @classmethod
    def fitting(cls, height: int, width: int, offset: tuple[float, float] = (0.0, 0.0)) -> Camera:
        """The camera that shows the whole stage in the middle of the picture, moved by ``offset`` pixels."""
        scale = min(width / 1.6, height / 1.1)
        return cls(scale, (width / 2 + offset[0], height / 2 + 0.4 * scale + offset[1]))

    def columns(self, x: Array | float) -> Array:
        """Pixel columns of scene coordinates x."""
        return np.asarray(self.origin[0] + self.scale * np.asarray(x))

    def rows(self, y: Array | float) -> Array:
        """Pixel rows of scene coordinates y."""
        return np.asarray(self.origin[1] - self.scale * np.asarray(y))

    def x(self, columns: NDArray[np.floating]) -> Array:
        """Scene coordinates of pixel columns."""
        return np.asarray((columns - self.origin[0]) / self.scale, dtype=np.float64)

    def y(self, rows: NDArray[np.floating]) -> Array:
        """Scene coordinates of pixel rows."""
        return np.asarray((self.origin[1] - rows) / self.scale, dtype=np.float64)


class Window(NamedTuple):
    """A part of the picture: rows [top, bottom), columns [left, right)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """To index a picture with."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


def place(shape: Shape, centre: tuple[float, float]) -> Shape:
    """``shape`` of a body at ``centre``, in scene units."""
    if isinstance(shape, Ellipse):
        return Ellipse(shape.axes, (shape.centre[0] + centre[0], shape.centre[1] + centre[1]))
    return type(shape)(tuple((x + centre[0], y + centre[1]) for x, y in shape.vertices))


def coverage(shape: Shape, camera: Camera, height: int, width: int) -> tuple[Window, NDArray[np.float64]] | None:
    """Share 0..1 of each pixel that ``shape`` covers.

    Args:
        shape: in scene units.
        camera: where it lands.
        height: of the picture.
        width: of the picture.

    Returns:
        The smallest window of whole pixels that holds the shape and the shares within it; ``None`` out of view.
    """
    low, high, left, right = _extent(shape, camera)
    window = Window(
        max(0, int(np.floor(low))),
        min(height, int(np.ceil(high))),
        max(0, int(np.floor(left))),
        min(width, int(np.ceil(right))),
    )
    if window.top >= window.bottom or window.left >= window.right:
        return None
    limits = np.arange(window.top * _BANDS, window.bottom * _BANDS + 1) / _BANDS
    upper, lower = np.maximum(limits[:-1], low), np.minimum(limits[1:], high)
    weight = np.maximum(lower - upper, 0.0)
    start, end = _interval(shape, camera, upper, lower)
    columns = np.arange(window.left, window.right, dtype=np.float64)
    overlap = np.minimum(end[:, None], columns + 1) - np.maximum(start[:, None], columns)
    shares = np.clip(overlap, 0.0, 1.0) * weight[:, None]
    return window, shares.reshape(-1, _BANDS, len(columns)).sum(axis=1)


def _extent(shape: Shape, camera: Camera) -> tuple[float, float, float, float]:
    if isinstance(shape, Ellipse):
        (a, b), (x, y) = shape.axes, shape.centre
        rows, columns = camera.rows(np.array([y + b, y - b])), camera.columns(np.array([x - a, x + a]))
    else:
        vertices = np.array(shape.vertices)
        rows, columns = camera.rows(vertices[:, 1]), camera.columns(vertices[:, 0])
    return float(rows.min()), float(rows.max()), float(columns.min()), float(columns.max())


def _interval(shape: Shape, camera: Camera, upper: Array, lower: Array) -> tuple[Array, Array]:
    """Mean left and right end of the shape between pixel rows; an empty interval where it is not."""
    if isinstance(shape, Ellipse):
        (a, b), (x, y) = shape.axes, shape.centre
        below, above = (_segment((rows - camera.rows(y)) / (b * camera.scale)) for rows in (lower, upper))
        height = np.maximum(lower - upper, 1e-12) / (b * camera.scale)
        half = a * camera.scale * np.maximum(below - above, 0.0) / height
        middle = camera.columns(x)
        return middle - half, middle + half
    rows = (upper + lower) / 2
    vertices = np.array(shape.vertices)
    columns, heights = camera.columns(vertices[:, 0]), camera.rows(vertices[:, 1])
    start, end = np.full(rows.shape, np.inf), np.full(rows.shape, -np.inf)
    for index in range(len(vertices)):
        x0, y0, x1, y1 = columns[index - 1], heights[index - 1], columns[index], heights[index]
        crossed = (rows >= min(y0, y1)) & (rows <= max(y0, y1))
        if y0 == y1 or not crossed.any():
            continue
        at = x0 + (x1 - x0) * (rows - y0) / (y1 - y0)
        start = np.where(crossed, np.minimum(start, at), start)
        end = np.where(crossed, np.maximum(end, at), end)
    return start, end


def _segment(t: Array) -> Array:
    """Integral of sqrt(1 - t^2) from 0 to ``t``, which is held within -1..1."""
    inside = np.clip(t, -1.0, 1.0)
    return np.asarray((inside * np.sqrt(1.0 - inside**2) + np.arcsin(inside)) / 2)
