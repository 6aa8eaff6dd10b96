"""Goldens of the control metrics, and small clips, masks and depth maps."""

import json
from pathlib import Path

import numpy as np
import pytest

GOLDENS = Path(__file__).parent.parent / "goldens" / "control"


@pytest.fixture(scope="session")
def golden():
    """Reads a golden: parsed JSON, or the arrays of an ``.npz``."""

    def read(name):
        path = GOLDENS / name
        if path.suffix == ".json":
            return json.loads(path.read_text())
        with np.load(path) as arrays:
            return dict(arrays)

    return read


@pytest.fixture(scope="session")
def golden_cases(golden):
    """The case of a golden JSON by its id."""

    def find(name, case):
        return next(one for one in golden(name)["cases"] if one["id"] == case)

    return find


@pytest.fixture(scope="session")
def noise():
    """A clip (T, H, W, 3) of smooth coloured noise."""

    def make(frames=3, height=24, width=30, seed=0):
        rng = np.random.default_rng(seed)
        coarse = rng.integers(0, 256, (frames, -(-height // 4), -(-width // 4), 3), dtype=np.uint8)
        return np.ascontiguousarray(coarse.repeat(4, axis=1).repeat(4, axis=2)[:, :height, :width])

    return make


@pytest.fixture(scope="session")
def box_mask():
    """A mask (T, H, W) that is set in rows and columns [top:bottom, left:right] of every frame."""

    def make(top, bottom, left, right, size=(2, 10, 10)):
        mask = np.zeros(size, bool)
        mask[:, top:bottom, left:right] = True
        return mask

    return make
