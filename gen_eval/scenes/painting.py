"""Painting bodies over the backdrop, and reading off what is visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.coverage import Camera, Window, coverage, place
from gen_eval.scenes.world import Body, Ellipse, Part, Polygon

Float = NDArray[np.float64]

_LIGHT = (-0.45, 0.62, 0.64)
_ROPE_WIDTH = 0.007
_STRADDLE = 0.004  # a pixel on the contact line may have its centre in front of the body; the body still wins
_ROPE_COLOUR = (66, 58, 52)


@dataclass(frozen=True)
class Pose:
    """One body at one moment: scene position, turn, colour, and where the rope ends that it holds."""

    body: Body
    centre: tuple[float, float]
    spin: float
    colour: tuple[float, float, float]
    rope_end: tuple[float, float] | None = None


@dataclass(frozen=True)
class Layer:
    """A painted body: the window it lies in, its share of each pixel there, its colour there, its inverse depth."""

    window: Window
    share: NDArray[np.float32]
    colour: NDArray[np.float32]
    depth: NDArray[np.float32]


@dataclass(frozen=True)
class Painted:
    """One frame.

    Attributes:
        picture: (H, W, 3) RGB 0..255.
        depth: (H, W) relative inverse depth.
        masks: one (H, W) bool per named body, in the order of the poses.
    """

    picture: NDArray[np.float32]
    depth: NDArray[np.float32]
    masks: list[NDArray[np.bool_]]


class Painter:
    """Paints frames of one size; a body that has not moved since the last frame is not drawn anew."""

    def __init__(self, bodies: Sequence[Body], height: int, width: int) -> None:
        self._bodies = tuple(bodies)
        self._order = sorted(range(len(bodies)), key=lambda index: bodies[index].inverse_depth)
        self._size = (height, width)
        self._layers: dict[int, tuple[tuple[Pose, Camera], Layer | None]] = {}

    def paint(
        self,
        picture: NDArray[np.float32],
        depth: NDArray[np.float32],
        poses: Sequence[Pose | None],
        camera: Camera,
    ) -> Painted:
        """Paint ``poses`` over copies of the backdrop's ``picture`` and ``depth``.

        Args:
            picture: (H, W, 3) RGB 0..255.
            depth: (H, W) relative inverse depth.
            poses: one a body, ``None`` for an absent one.
            camera: where scene units land.
        """
        canvas, near = picture.copy(), depth.copy()
        for pose in poses:
            if pose is not None and pose.body.shadow:
                self._shade_floor(canvas, pose, camera)
        shares: dict[int, NDArray[np.float32]] = {}
        for index in self._order:
            pose = poses[index]
            layer = None if pose is None else self._layer(index, pose, camera)
            if layer is None:
                continue
            where, share = layer.window.slices, layer.share
            canvas[where] += share[:, :, None] * (layer.colour - canvas[where])
            for farther in shares.values():
                farther[where] *= 1 - share
            shares[index] = np.zeros(self._size, dtype=np.float32)
            shares[index][where] = share
            nearer = np.maximum(layer.depth, depth[where] + _STRADDLE)
            near[where] = np.where(share > 0.5, nearer, near[where])
        empty = np.zeros(self._size, dtype=np.float32)
        named = (index for index, body in enumerate(self._bodies) if body.name is not None)
        return Painted(canvas, near, [shares.get(index, empty) > 0.5 for index in named])

    def _layer(self, index: int, pose: Pose, camera: Camera) -> Layer | None:
        key = (pose, camera)
        if index not in self._layers or self._layers[index][0] != key:
            self._layers[index] = (key, self._draw(pose, camera))
        return self._layers[index][1]

    def _draw(self, pose: Pose, camera: Camera) -> Layer | None:
        pieces = []
        for part in _parts(pose):
            found = coverage(place(part.shape, pose.centre), camera, *self._size)
            if found is not None:
                pieces.append((part, *found))
        if not pieces:
            return None
        windows = [window for _, window, _ in pieces]
        window = Window(
            min(each.top for each in windows),
            max(each.bottom for each in windows),
            min(each.left for each in windows),
            max(each.right for each in windows),
        )
        shape = (window.bottom - window.top, window.right - window.left)
        share, colour = np.zeros(shape), np.zeros((*shape, 3))
        depth = np.full(shape, pose.body.inverse_depth)
        for part, own, cover in pieces:
            top, left = own.top - window.top, own.left - window.left
            where = slice(top, top + cover.shape[0]), slice(left, left + cover.shape[1])
            surface, bulge = _surface(part, pose, camera, own)
            total = cover + share[where] * (1 - cover)
            weight = np.divide(cover, total, out=np.zeros_like(cover), where=total > 0)
            colour[where] += weight[:, :, None] * (surface - colour[where])
            depth[where] = np.where(cover > 0.5, pose.body.inverse_depth + bulge, depth[where])
            share[where] = total
        return Layer(window, *(each.astype(np.float32) for each in (share, colour, depth)))

    def _shade_floor(self, canvas: NDArray[np.float32], pose: Pose, camera: Camera) -> None:
        x, y = pose.centre
        above = max(0.0, y - pose.body.base)
        axes = (pose.body.shadow * (1.15 + 0.4 * above), pose.body.shadow * 0.22 + 0.01)
        found = coverage(Ellipse(axes, (x, -0.004)), camera, *self._size)
        if found is None:
            return
        window, _ = found
        u, v = _local(window, camera, (x, -0.004))
        inside = np.maximum(0.0, 1.0 - (u / axes[0]) ** 2 - (v / axes[1]) ** 2)
        dark = 0.5 * np.exp(-2.5 * above) * np.sqrt(inside)
        canvas[window.slices] *= (1.0 - dark)[:, :, None].astype(np.float32)


def _parts(pose: Pose) -> list[Part]:
    """The body's parts, its rope first."""
    if pose.rope_end is None:
        return list(pose.body.parts)
    end = (pose.rope_end[0] - pose.centre[0], pose.rope_end[1] - pose.centre[1])
    length = float(np.hypot(*end))
    if length == 0:
        return list(pose.body.parts)
    x, y = -end[1] / length * _ROPE_WIDTH, end[0] / length * _ROPE_WIDTH
    rope = Polygon(((x, y), (-x, -y), (end[0] - x, end[1] - y), (end[0] + x, end[1] + y)))
    return [Part(rope, "flat", _ROPE_COLOUR), *pose.body.parts]


def _local(window: Window, camera: Camera, centre: tuple[float, float]) -> tuple[Float, Float]:
    """Scene coordinates of pixel centres relative to ``centre``, as a row and a column."""
    x = camera.x(np.arange(window.left, window.right) + 0.5) - centre[0]
    y = camera.y(np.arange(window.top, window.bottom) + 0.5) - centre[1]
    return x[None, :], y[:, None]


def _surface(part: Part, pose: Pose, camera: Camera, window: Window) -> tuple[Float, Float]:
    """Colour (h, w, 3) and bulge towards the eye (h, w) of a part at pixel centres."""
    colour = np.array(part.colour if part.colour is not None else pose.colour, dtype=np.float64)
    if isinstance(part.shape, Ellipse):
        (a, b), middle = part.shape.axes, part.shape.centre
        x, y = _local(window, camera, (pose.centre[0] + middle[0], pose.centre[1] + middle[1]))
        finish = _wheel if part.finish == "wheel" else _ball
        return finish(colour, np.asarray(x / a), np.asarray(y / b), pose.spin, 1.0 / (min(a, b) * camera.scale))
    x, y = _local(window, camera, pose.centre)
    if part.finish == "crate":
        half = np.abs(np.array(part.shape.vertices)).max(axis=0)
        return _crate(colour, np.asarray(x / half[0]), np.asarray(y / half[1]), half)
    shade = np.broadcast_to(1.0 + 0.25 * np.clip(y, -0.4, 0.4), (y.shape[0], x.shape[1]))
    return np.clip(colour * shade[:, :, None], 0, 255), np.zeros(shade.shape)


def _ball(colour: Float, x: Float, y: Float, spin: float, pixel: float) -> tuple[Float, Float]:
    """A lit sphere with a pale stripe through its middle; ``pixel`` is the size of a pixel in radii."""
    height = np.sqrt(np.maximum(0.0, 1.0 - x * x - y * y))
    facing = np.maximum(0.0, _LIGHT[0] * x + _LIGHT[1] * y + _LIGHT[2] * height)
    across = np.abs(-np.sin(spin) * x + np.cos(spin) * y)
    stripe = np.clip((0.2 - across) / max(pixel, 1e-9) + 0.5, 0.0, 1.0)
    base = colour + 0.45 * stripe[:, :, None] * (255.0 - colour)
    lit = base * (0.5 + 0.55 * facing)[:, :, None] + 70.0 * (facing**24)[:, :, None]
    return np.clip(lit, 0, 255), 0.03 * height


def _wheel(colour: Float, x: Float, y: Float, spin: float, pixel: float) -> tuple[Float, Float]:
    """A tyre with a hub and three spokes."""
    radius = np.sqrt(x * x + y * y)
    hub = np.clip((0.6 - radius) / max(pixel, 1e-9) + 0.5, 0.0, 1.0)
    spokes = 0.5 + 0.5 * np.cos(3.0 * (np.arctan2(y, x) - spin))
    shade = colour + (hub * (70.0 + 70.0 * spokes))[:, :, None]
    return np.clip(shade, 0, 255), np.zeros(radius.shape)


def _crate(colour: Float, x: Float, y: Float, half: Float) -> tuple[Float, Float]:
    """Planks within a darker frame; ``half`` are half width and half height in scene units."""
    frame = np.minimum((1.0 - np.abs(x)) * half[0], (1.0 - np.abs(y)) * half[1]) < 0.018
    gaps = np.abs(((y + 1.0) * 1.5) % 1.0 - 0.5) > 0.45
    shade = np.where(frame, 0.72, np.where(np.broadcast_to(gaps, frame.shape), 0.82, 1.0))
    lit = shade * (1.0 + 0.08 * y)
    return np.clip(colour * lit[:, :, None], 0, 255), np.zeros(lit.shape)
