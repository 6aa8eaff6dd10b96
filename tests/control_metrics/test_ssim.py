"""The SSIM kernel against scikit-image, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from skimage.metrics import structural_similarity  # noqa: TID251

from control_metrics import _ssim
from gen_eval.records import InputError

FRAME = st.tuples(st.integers(7, 16), st.integers(7, 16)).flatmap(lambda size: arrays.arrays(np.uint8, (*size, 3)))


def ours(x, y, reach, window=7, precision="float64"):
    sums, spreads, _ = _ssim.moments(x[None], window=window)
    kernel = _ssim.FrameSsim(x.shape, window=window, k1=0.01, k2=0.03, precision=precision)
    return kernel.mean(x, y, sums[0], spreads[0], reach)


def independent(x, y, reach, window=7):
    _, full = structural_similarity(x, y, win_size=window, data_range=reach, channel_axis=2, full=True)
    return full.mean()


def noise(shape, seed):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(7, 7), (8, 7), (7, 90), (61, 13), (33, 34), (130, 9)])
@pytest.mark.parametrize("reach", [255.0, 31.0])
def test_full_map_mean_equals_scikit_image(shape, reach):
    x, y = noise((*shape, 3), 1), noise((*shape, 3), 2)
    assert ours(x, y, reach) == pytest.approx(independent(x, y, reach), abs=1e-12)


@pytest.mark.parametrize("window", [3, 5, 9, 11])
def test_other_windows_equal_scikit_image(window):
    x, y = noise((40, 23, 3), 3), noise((40, 23, 3), 4)
    assert ours(x, y, 255.0, window) == pytest.approx(independent(x, y, 255.0, window), abs=1e-12)


def test_integers_do_not_overflow_at_the_largest_values():
    x = np.full((20, 20, 3), 255, np.uint8)
    y = x.copy()
    y[::2] = 0
    x[:, ::2] = 0
    assert ours(x, y, 255.0, 11) == pytest.approx(independent(x, y, 255.0, 11), abs=1e-12)


def test_strips_change_nothing(monkeypatch):
    x, y = noise((50, 20, 3), 5), noise((50, 20, 3), 6)
    whole = ours(x, y, 255.0)
    monkeypatch.setattr(_ssim, "_STRIP_VALUES", 1)
    assert ours(x, y, 255.0) == pytest.approx(whole, abs=1e-14)


def test_single_precision_stays_within_its_tolerance():
    x, y = noise((64, 88, 3), 7), noise((64, 88, 3), 8)
    assert ours(x, y, 255.0, precision="float32") == pytest.approx(ours(x, y, 255.0), abs=2e-5)


def test_two_flat_frames_by_hand():
    # without variance only the means count: (2 * 100 * 50 + C1) / (100^2 + 50^2 + C1), C1 = (0.01 * 255)^2
    x, y = np.full((9, 9, 3), 100, np.uint8), np.full((9, 9, 3), 50, np.uint8)
    c1 = 2.55**2
    assert ours(x, y, 255.0) == pytest.approx((10_000 + c1) / (12_500 + c1), abs=1e-14)


@given(FRAME)
@settings(max_examples=25, deadline=None)
def test_a_frame_equals_itself(x):
    assert ours(x, x, 255.0) == pytest.approx(1.0, abs=1e-15)


@given(FRAME, st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_symmetric_and_bounded(x, seed):
    y = noise(x.shape, seed)
    value = ours(x, y, 255.0)
    assert ours(y, x, 255.0) == pytest.approx(value, abs=1e-13)
    assert -1 <= value <= 1


def test_moments_are_window_sums_spreads_and_range():
    x = np.arange(7 * 7 * 3, dtype=np.uint8).reshape(1, 7, 7, 3)
    sums, spreads, ranges = _ssim.moments(x, window=7)
    middle = x[0, :, :, 1].astype(int)
    assert sums[0, 3, 3, 1] == middle.sum()
    assert spreads[0, 3, 3, 1] == 49 * (middle**2).sum() - middle.sum() ** 2
    assert ranges.tolist() == [146.0]


@pytest.mark.parametrize("seed", range(4))
def test_the_literal_form_equals_scikit_image_with_a_range(seed):
    x, y = noise((12, 15, 3), seed), noise((12, 15, 3), seed + 10)
    found = _ssim.literal_mean(x, y, window=7, k1=0.01, k2=0.03, reach=200.0)
    assert found == pytest.approx(independent(x, y, 200.0), abs=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("flat_rows", [0, 6, 12, 20])
def test_the_literal_form_rounds_as_scikit_image_does_without_a_range(flat_rows):
    """A generated frame that is partly flat: number, noise or NaN, the same as the independent code gives."""
    x, y = np.full((20, 18, 3), 90, np.uint8), noise((20, 18, 3), 3)
    y[:flat_rows] = 17
    found = _ssim.literal_mean(x, y, window=7, k1=0.01, k2=0.03, reach=0.0)
    expected = independent(x, y, 0.0)
    assert np.isnan(found) == np.isnan(expected)
    assert np.isnan(found) or found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("window", [1, 4, 13])
def test_windows_that_the_integers_do_not_allow_are_refused(window):
    with pytest.raises(InputError, match=f"not {window}"):
        _ssim.moments(noise((20, 20, 3), 0)[None], window=window)


def test_an_unknown_precision_is_refused():
    with pytest.raises(InputError, match="float16"):
        _ssim.FrameSsim((8, 8, 3), window=7, k1=0.01, k2=0.03, precision="float16")
