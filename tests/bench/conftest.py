"""Small clips for benches."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def noise():
    """A clip (T, 24, 30, 3) of coarse coloured noise."""

    def make(frames, seed):
        coarse = np.random.default_rng(seed).integers(0, 256, (frames, 6, 8, 3), dtype=np.uint8)
        return np.ascontiguousarray(coarse.repeat(4, axis=1).repeat(4, axis=2)[:, :, :30])

    return make
