"""The bilateral filter on the device against OpenCV's, here with torch on the CPU."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import control_metrics.blur
from control_metrics import blur_ssim
from gen_eval.networks import Placement, bilateral
from gen_eval.networks.bilateral import bilateral_filter
from gen_eval.records import InputError

PUBLISHED = {"diameter": 30, "sigma_color": 150.0, "sigma_space": 100.0}


def by_opencv(frames, diameter=30, sigma_color=150.0, sigma_space=100.0):
    return np.stack([cv2.bilateralFilter(frame, diameter, sigma_color, sigma_space) for frame in frames])


def off(frames, **parameters):
    """Largest difference in levels, and share of values that differ."""
    parameters = PUBLISHED | parameters
    difference = np.abs(bilateral_filter(frames, **parameters).astype(int) - by_opencv(frames, **parameters))
    return difference.max(), (difference > 0).mean()


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def scene(height, width):
    """Gradients, a wave and a sharp box."""
    y, x = np.mgrid[:height, :width]
    picture = np.stack([x * 2 % 256, y * 3 % 256, 127 + 100 * np.sin(x / 9) * np.cos(y / 7)], -1)
    picture[height // 3 : height // 2, width // 4 : width // 2] = (230, 20, 60)
    return picture.clip(0, 255).astype(np.uint8)[None]


FRAMES = {
    "noise": noise(2, 37, 45, 3),
    "scene": scene(50, 63),
    "constant": np.full((1, 20, 21, 3), 77, np.uint8),
    "black and white": (noise(1, 33, 31, 1) // 128 * 255).repeat(3, -1),
    "smaller than the radius": noise(2, 9, 13, 3),
    "one row": noise(1, 1, 40, 3),
    "one column": noise(1, 24, 1, 3),
    "one pixel": noise(1, 1, 1, 3),
    "not contiguous": noise(2, 20, 50, 3)[:, :, ::2],
}


@pytest.mark.parametrize("name", FRAMES)
def test_within_a_level_of_opencv(name):
    most, share = off(FRAMES[name])
    assert most <= 1
    assert share < 0.02


@pytest.mark.parametrize("parameters", [{"diameter": 9, "sigma_color": 75.0, "sigma_space": 75.0}, {"diameter": 1}])
def test_other_parameters(parameters):
    assert off(FRAMES["noise"], **parameters)[0] <= 1


@settings(max_examples=15)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 12), st.floats(1, 300), st.floats(0.5, 100))
def test_any_size_and_sigmas(height, width, diameter, sigma_color, sigma_space):
    frames = noise(1, height, width, 3, seed=height * width)
    assert off(frames, diameter=diameter, sigma_color=sigma_color, sigma_space=sigma_space)[0] <= 1


def test_frames_in_pieces_are_the_same(monkeypatch):
    frames = noise(5, 12, 14, 3)
    whole = bilateral_filter(frames, **PUBLISHED)
    monkeypatch.setattr(bilateral, "_PIXELS", 2 * 12 * 14)
    assert np.array_equal(bilateral_filter(frames, **PUBLISHED), whole)


def test_parameters_that_mean_nothing():
    with pytest.raises(InputError, match="positive diameter"):
        bilateral_filter(FRAMES["noise"], diameter=0, sigma_color=1.0, sigma_space=1.0)


def test_blur_ssim_uses_it_on_an_accelerator_only(monkeypatch):
    own, other = scene(40, 52), np.roll(scene(40, 52), 3, axis=2)
    calls, original = [], bilateral.bilateral_filter

    def counted(frames, **parameters):
        calls.append(len(frames))
        return original(frames, **parameters)

    monkeypatch.setattr(bilateral, "bilateral_filter", counted)
    exact = float(blur_ssim(own, other))
    assert not calls
    monkeypatch.setattr(control_metrics.blur, "current", lambda: Placement("cuda:0"))
    assert float(blur_ssim(own, other)) == pytest.approx(exact, abs=1e-4)
    assert calls == [1, 1]  # each clip once
