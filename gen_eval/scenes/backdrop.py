"""The still surroundings: a panelled wall and a tiled floor in perspective, with their exact inverse depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.coverage import Camera
from gen_eval.scenes.world import OBJECT_DEPTH, Array, generator

HORIZON = 0.17
"""Height in the picture at which the floor ends and the wall begins, in scene units."""
_VANISHING = 0.45  # height at which the floor's parallel lines would meet, hidden by the wall
_SAMPLES = 3  # a pixel is the mean of this many samples each way
_TINTS = ((226, 221, 210), (206, 214, 220), (214, 219, 205), (221, 210, 214))
_FLOORS = ((152, 128, 104), (122, 128, 136), (138, 142, 122), (160, 148, 132))


def background_depth(y: Array) -> Array:
    """Relative inverse depth of floor and wall at height ``y``: two planes that meet at the horizon.

    Inverse depth of a plane is linear in picture coordinates. The floor is the plane whose inverse depth vanishes at
    the vanishing line and equals that of the moving bodies at y = 0; the wall leans back slightly.
    """
    floor = OBJECT_DEPTH * (_VANISHING - np.minimum(y, HORIZON)) / _VANISHING
    return np.maximum(floor - 0.05 * np.maximum(y - HORIZON, 0.0), 0.05)


@dataclass(frozen=True)
class Backdrop:
    """Colours and texture of wall and floor, drawn from a seed."""

    wall: tuple[int, int, int]
    floor: tuple[int, int, int]
    panel: float
    tile: float
    phase: tuple[float, float]
    grain: NDArray[np.float64]

    _CELLS: ClassVar[int] = 64

    @classmethod
    def drawn(cls, kind: str, seed: int) -> Backdrop:
        """The surroundings of one scene."""
        rng = generator(f"backdrop {kind}", seed)
        wall, floor = _TINTS[rng.integers(len(_TINTS))], _FLOORS[rng.integers(len(_FLOORS))]
        panel, tile = float(rng.uniform(0.28, 0.5)), float(rng.uniform(0.5, 0.9))
        phase = (float(rng.uniform()), float(rng.uniform()))
        return cls(wall, floor, panel, tile, phase, rng.uniform(-1.0, 1.0, (cls._CELLS, cls._CELLS)))

    def picture(self, camera: Camera, height: int, width: int) -> NDArray[np.float32]:
        """(H, W, 3) RGB 0..255 of the surroundings alone; each pixel is the mean of a grid of samples."""
        x = camera.x((np.arange(width * _SAMPLES) + 0.5) / _SAMPLES)
        y = camera.y((np.arange(height * _SAMPLES) + 0.5) / _SAMPLES)
        shade = np.where((y > HORIZON)[:, None], self._wall_shade(x, y), self._floor_shade(x, y))
        shade = shade.reshape(height, _SAMPLES, width, _SAMPLES).mean(axis=(1, 3))
        # A pixel row that holds both wall and floor gets the colour of its mean.
        share = (y > HORIZON).astype(np.float64).reshape(height, _SAMPLES).mean(axis=1)[:, None, None]
        colour = share * np.array(self.wall) + (1 - share) * np.array(self.floor)
        picture: NDArray[np.float32] = np.clip(colour * shade[:, :, None], 0.0, 255.0).astype(np.float32)
        return picture

    def _wall_shade(self, x: Array, y: Array) -> Array:
        """Brightness: lighter towards the top, soft stains, dark seams between panels, a skirting board."""
        seam = np.abs((x / self.panel + self.phase[0]) % 1.0 - 0.5) * self.panel
        seams = np.where(seam < 0.004, 0.82, 1.0)[None, :]
        skirting = np.where((y > HORIZON) & (y < HORIZON + 0.035), 0.72, 1.0)[:, None]
        light = (0.93 + 0.08 * np.clip(y, 0.0, 1.0))[:, None]
        return np.asarray(light * np.minimum(seams, skirting) * (1.0 + 0.035 * self._noise(x, y, 5.0)))

    def _floor_shade(self, x: Array, y: Array) -> Array:
        """Brightness: tiles in perspective, a little uneven."""
        distance = 0.2 / (_VANISHING - np.minimum(y, HORIZON))  # from the eye, along the floor
        across = x[None, :] * distance[:, None] / (0.25 * self.tile) + self.phase[0]
        along = distance / (0.16 * self.tile) + self.phase[1]
        light = (np.floor(across) + np.floor(along)[:, None]) % 2.0
        return np.asarray((0.86 + 0.16 * light) * (1.0 + 0.03 * self._noise(x, 3.0 * y, 9.0)))

    def _noise(self, x: Array, y: Array, frequency: float) -> Array:
        """Smooth noise -1..1 on the grid of ``y`` by ``x``: a random lattice, interpolated by a cubic step."""

        def cell(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
            scaled = values * frequency + self._CELLS / 2
            low = np.floor(scaled).astype(np.int64)
            part = scaled - low
            return low % self._CELLS, (low + 1) % self._CELLS, part * part * (3 - 2 * part)

        (x0, x1, u), (y0, y1, v) = cell(x), cell(y)
        left = self.grain[:, x0] * (1 - u) + self.grain[:, x1] * u
        return left[y0] * (1 - v)[:, None] + left[y1] * v[:, None]

    def depth(self, camera: Camera, height: int, width: int) -> NDArray[np.float32]:
        """(H, W) relative inverse depth of the surroundings at pixel centres."""
        rows = background_depth(camera.y(np.arange(height) + 0.5)).astype(np.float32)
        return np.repeat(rows[:, None], width, axis=1)
