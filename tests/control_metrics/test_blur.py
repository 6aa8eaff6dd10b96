"""Blur SSIM: goldens, an independent computation, tiny cases, properties."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from skimage.metrics import structural_similarity  # noqa: TID251

from control_metrics import blur_ssim
from control_metrics.blur import METRIC, bilateral_blur, blur_feature, moments_feature
from gen_eval.features import StreamInfo, measure_pair
from gen_eval.features.alignment import resize_frames
from gen_eval.protocols import Protocol, load_protocol
from gen_eval.records import Flag, InputError, Reason, Status

CASES = [
    "identical", "same_size", "soft", "other_scene", "pred_smaller", "pred_larger", "pred_lower_but_wider",
    "pred_fewer_frames", "pred_more_frames", "pred_fewer_and_smaller", "gt_has_constant_frame",
    "both_have_equal_constant_frame", "both_constant_frame_other_level", "gt_without_edges", "pred_without_edges",
    "low_contrast_gt",
]  # fmt: skip
CLIP = st.tuples(st.integers(1, 3), st.integers(7, 12), st.integers(7, 12)).flatmap(
    lambda size: arrays.arrays(np.uint8, (*size, 3))
)


def test_every_golden_case_is_named_here(golden):
    assert [case["id"] for case in golden("pixel_metrics.json")["cases"]] == CASES


@pytest.mark.parametrize("protocol", ["reference", "reference-v2"])
@pytest.mark.parametrize("case", CASES)
def test_golden_reference(golden, golden_cases, case, protocol):
    clips, expected = golden("clips.npz"), golden_cases("pixel_metrics.json", case)
    result = blur_ssim(clips[expected["pred"]], clips[expected["gt"]], protocol=protocol)
    frames = np.array([float(value) for value in expected["blur_ssim_per_frame"]])
    np.testing.assert_allclose(result.curves["blur_ssim"], frames, rtol=0, atol=1e-9)  # NaN where NaN is
    if expected["expect"]["blur_ssim"] == "nan":
        assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)
    else:
        assert float(result) == pytest.approx(expected["expect"]["blur_ssim"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_golden_corrected(golden, golden_cases, case):
    clips, golden_case = golden("clips.npz"), golden_cases("pixel_metrics.json", case)
    expected = golden_case["corrected"]
    result = blur_ssim(clips[golden_case["pred"]], clips[golden_case["gt"]])
    if "reason" in expected:
        assert (result.status, result.reason) == (expected["status"], expected["reason"])
        assert result.detail["sizes_hw"] == expected["sizes_hw"]
        assert result.flags == ()
        return
    assert float(result) == pytest.approx(expected["blur_ssim"], abs=1e-9)
    assert list(result.flags) == expected.get("blur_flags", [])
    assert result.detail["covered"] == expected["covered"]


def compared(own, real, filtered):
    """SSIM of frames of one size as it is under ``reference``, with another filter in place of the bilateral one."""
    protocol = load_protocol("blur_ssim", "reference")
    blurred, moments = blur_feature(protocol.measure), moments_feature(protocol.measure)
    meter = METRIC.meter(protocol.measure, StreamInfo(*real.shape[1:3]))
    own, real = (np.stack([filtered(frame) for frame in frames]) for frames in (own, real))
    meter.update({blurred: own}, {blurred: real, moments: moments(real)})
    return METRIC.decide(meter.counts(), protocol.decide)


def aligned(own, real, rule):
    frames = min(len(own), len(real))
    return resize_frames(own[:frames], real.shape[1:3], rule), real[:frames]


@pytest.mark.parametrize("case", CASES)
def test_golden_of_other_filters(golden, golden_cases, case):
    """A Gaussian that the public code has and does not use; and no filter, where the metric resizes bilinearly."""
    clips, expected = golden("clips.npz"), golden_cases("pixel_metrics.json", case)
    own, real = clips[expected["pred"]], clips[expected["gt"]]
    bilinear = np.stack([cv2.resize(frame, real.shape[2:0:-1], interpolation=cv2.INTER_LINEAR) for frame in own])
    found = {
        "gaussian_ssim": compared(*aligned(own, real, "by_height"), lambda one: cv2.GaussianBlur(one, (25, 25), 12.5)),
        "raw_ssim_no_blur": compared(*aligned(bilinear, real, "by_height"), np.asarray),
    }
    for name, result in found.items():
        if expected[name] == "nan":
            assert result.reason is Reason.NOT_FINITE, name
        else:
            assert float(result) == pytest.approx(expected[name], abs=1e-9), name


@pytest.mark.parametrize("case", CASES)
def test_mean_square_error_is_left_out_because_it_wraps_round(golden, golden_cases, case):
    """The golden is the mean square of differences in 8 bits, squared in 8 bits: no distance, and nothing we give."""
    clips, expected = golden("clips.npz"), golden_cases("pixel_metrics.json", case)
    own, real = clips[expected["pred"]], clips[expected["gt"]]
    blurred = blur_feature(load_protocol("blur_ssim", "reference").measure)
    left, right = (blurred(frames) for frames in aligned(own, real, "by_height"))
    gap = left - right
    assert gap.dtype == np.uint8
    assert np.mean(gap * gap) == pytest.approx(expected["expect"]["blur_mse"], abs=1e-9)
    distance = np.mean((left.astype(int) - right) ** 2)
    assert distance >= np.mean(gap * gap)
    if case == "other_scene":
        assert distance > 10 * np.mean(gap * gap)
        result = blur_ssim(own, real, protocol="reference")
        assert not result.values
        assert "mse" not in " ".join([*result.detail, *result.curves])


@pytest.mark.parametrize("case", ["same_size", "soft", "pred_larger"])
def test_golden_single_precision(golden, golden_cases, case):
    clips, expected = golden("clips.npz"), golden_cases("pixel_metrics.json", case)
    stated = load_protocol("blur_ssim", "reference")
    single = Protocol(stated.name, stated.metric, {**stated.measure, "precision": "float32"}, stated.decide)
    result = measure_pair(METRIC, clips[expected["pred"]], clips[expected["gt"]], single)
    assert float(result) == pytest.approx(expected["expect"]["blur_ssim"], abs=2e-5)


@pytest.mark.parametrize("case", ["same_size", "pred_smaller", "pred_larger"])
def test_golden_blurred_and_resized_frames(golden, golden_cases, case):
    clips, maps, named = golden("clips.npz"), golden("pixel_maps.npz"), golden_cases("pixel_metrics.json", case)
    measure = load_protocol("blur_ssim", "reference").measure
    first = clips[named["gt"]][:1]
    blurred = blur_feature(measure)(first)[0].astype(int)
    assert np.abs(blurred - maps[f"{case}__gt_blur_frame0"]).max() <= 1
    resized = maps[f"{case}__pred_resized_frame0"][None]
    assert np.abs(blur_feature(measure)(resized)[0].astype(int) - maps[f"{case}__pred_blur_frame0"]).max() <= 1


def test_blur_is_bit_equal_to_opencv(noise):
    clip = noise(3, 41, 37)
    clip[1] = clip[0]  # a frame that stands still
    blurred = bilateral_blur(clip, diameter=30, sigma_color=150.0, sigma_space=100.0)
    for frame, own in zip(clip, blurred, strict=True):
        assert np.array_equal(own, cv2.bilateralFilter(frame, 30, 150, 100))


@pytest.mark.parametrize("size", [(7, 7), (9, 15), (33, 20)])
def test_equals_an_independent_computation(noise, size):
    real, own = noise(2, *size, seed=1), noise(2, *size, seed=2)
    expected = []
    for x, y in zip(real, own, strict=True):
        x, y = (cv2.bilateralFilter(frame, 30, 150, 100) for frame in (x, y))
        reach = int(x.max()) - int(x.min())
        expected.append(structural_similarity(x, y, data_range=reach, channel_axis=2, full=True)[1].mean())
    assert float(blur_ssim(own, real)) == pytest.approx(np.mean(expected), abs=1e-12)


@given(CLIP)
@settings(max_examples=10, deadline=None)
def test_a_clip_equals_itself(clip):
    assert float(blur_ssim(clip, clip)) == pytest.approx(1.0, abs=1e-15)


@given(CLIP, st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_bounded_and_independent_of_frame_order(clip, seed):
    other = np.random.default_rng(seed).integers(0, 256, clip.shape, dtype=np.uint8)
    value = float(blur_ssim(other, clip))
    assert -1 <= value <= 1
    assert float(blur_ssim(other[::-1], clip[::-1])) == pytest.approx(value, abs=1e-14)
    assert float(blur_ssim(other[..., ::-1], clip[..., ::-1])) == pytest.approx(value, abs=1e-13)


def test_chunks_do_not_change_the_value(noise):
    measure = load_protocol("blur_ssim", "corrected").measure
    real, own = noise(5, seed=3), noise(5, seed=4)
    blurred, moments = blur_feature(measure), moments_feature(measure)
    found = []
    for size in (1, 2, 5):
        meter = METRIC.meter(measure, StreamInfo(*real.shape[1:3]))
        for start in range(0, 5, size):
            part = slice(start, start + size)
            there = blurred(real[part])
            worst = meter.update({blurred: blurred(own[part])}, {blurred: there, moments: moments(there)})
            assert len(worst) == len(there)
        found.append(meter.counts().frames)
    assert found[0] == found[1] == found[2]


def test_features_are_shared_by_equal_parameters():
    first, second = (load_protocol("blur_ssim", name).measure for name in ("reference", "corrected"))
    assert blur_feature(first) == blur_feature(second)
    assert moments_feature(first) == moments_feature(second)
    assert moments_feature(first).source == blur_feature(first)


@pytest.mark.parametrize("side", range(1, 7))
@pytest.mark.parametrize("protocol", ["reference", "reference-v2", "corrected"])
def test_sides_below_the_window(side, protocol):
    clip = np.zeros((2, side, 20, 3), np.uint8)
    for one in (clip, clip.swapaxes(1, 2).copy()):
        result = blur_ssim(one, one, protocol=protocol)
        assert result.reason == (Reason.TOO_SMALL if protocol == "corrected" else Reason.REFERENCE_STOPS)
        assert result.detail["reference_exception"] == "ValueError"


def test_constant_frames_by_hand():
    real, own = np.full((1, 9, 9, 3), 200, np.uint8), np.full((1, 9, 9, 3), 100, np.uint8)
    result = blur_ssim(own, real)
    c1 = 2.55**2
    assert float(result) == pytest.approx((2 * 200 * 100 + c1) / (200**2 + 100**2 + c1), abs=1e-12)
    assert result.flags == (Flag.CONSTANT_FRAME,)
    assert result.detail["constant_frames"] == [0]
    assert blur_ssim(own, real, protocol="reference").reason is Reason.NOT_FINITE


def test_one_frame(noise):
    clip = noise(1)
    assert float(blur_ssim(clip, clip)) == pytest.approx(1)


@pytest.mark.parametrize(
    "broken",
    [
        np.zeros((2, 9, 9, 3), np.float32),
        np.zeros((2, 9, 9, 3), np.int16),
        np.zeros((1, 2, 9, 9, 3), np.uint8),
        np.zeros((2, 9, 9), np.uint8),
        np.zeros((2, 9, 9, 4), np.uint8),
        np.zeros((0, 9, 9, 3), np.uint8),
    ],
    ids=["float", "int16", "batch axis", "no channels", "alpha", "no frame"],
)
def test_other_arrays_are_refused_by_shape_and_type(broken):
    good = np.zeros((2, 9, 9, 3), np.uint8)
    for pair in ((broken, good), (good, broken)):
        with pytest.raises(ValueError, match=r"prediction|reference"):
            blur_ssim(*pair)


def test_a_list_is_refused_and_an_unknown_protocol_named():
    good = np.zeros((2, 9, 9, 3), np.uint8)
    with pytest.raises(TypeError, match="not list"):
        blur_ssim([good], good)
    with pytest.raises(InputError, match="reference-v2"):
        blur_ssim(good, good, protocol="reference-v3")


def test_an_unknown_rule_is_refused():
    with pytest.raises(InputError, match="ignored"):
        METRIC.decide(METRIC.meter(load_protocol("blur_ssim", "corrected").measure, StreamInfo(9, 9)).counts(),
                      {"constant_frames": "ignored"})  # fmt: skip
