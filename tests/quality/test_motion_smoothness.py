"""motion_smoothness: goldens through the network, the decision table, tiny cases, properties, sizes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.features import StreamInfo
from gen_eval.features.arrays import finish
from gen_eval.networks import to_device
from gen_eval.protocols import load_protocol
from gen_eval.quality import motion_smoothness
from gen_eval.quality.motion_smoothness import METRIC, InterpolationErrors
from gen_eval.records import Flag, InputError, Reason, Status

MEASURE = load_protocol("motion_smoothness", "corrected").measure
(FEATURE,) = METRIC.member_features(MEASURE)


def measured(errors, chunk=8, height=128, width=128, protocol="corrected"):
    """What the metric makes of errors, one entry a frame; and what it says to pick the worst frame by."""
    meter, worst = METRIC.meter(MEASURE, StreamInfo(height, width)), []
    for start in range(0, len(errors), chunk):
        worst += meter.update({FEATURE: np.array(errors[start : start + chunk], float)})
    return finish(METRIC, meter.counts(), load_protocol(METRIC.name, protocol)), worst


def entries(frames, errors):
    """Errors as the feature hands them over: at frames 2, 4, 6, ..."""
    found = np.full(frames, math.nan)
    found[2::2] = errors
    return found


@pytest.mark.usefixtures("motion_networks")
@pytest.mark.parametrize("name", ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"])
def test_golden(golden_clip, golden_scores, name):
    frames, expected = golden_clip(name)[0], golden_scores[name]["motion_smoothness"]
    corrected, reference = (motion_smoothness(frames, protocol=one) for one in ("corrected", "reference"))
    if isinstance(expected, dict):
        assert (corrected.value, corrected.reason) == (None, Reason.TOO_FEW_FRAMES)
        assert corrected.detail["frames"] == len(frames)
        assert "3 are needed" in corrected.detail["message"]
        assert (reference.value, reference.reason) == (None, Reason.REFERENCE_STOPS)
        assert reference.detail["reference_exception"] == expected["error"]
        return
    assert float(corrected) == pytest.approx(expected, abs=5e-5)
    assert float(corrected) == float(reference)
    assert corrected.detail["guessed"] == math.ceil(len(frames) / 2) - 1
    curve = corrected.curves["motion_smoothness"]
    assert len(curve) == len(frames)
    assert np.flatnonzero(np.isfinite(curve)).tolist() == list(range(1, len(frames) - 1, 2))
    assert np.nanmean(curve) == pytest.approx(float(corrected), abs=1e-12)


@pytest.mark.usefixtures("motion_networks")
def test_the_network_gives_the_same_whatever_the_chunks(golden_clip):
    clip = golden_clip("clip_a")[0][:6, :, :128]
    planes, parameters = to_device(clip), dict(FEATURE.parameters)
    found = []
    for chunk in (1, 3, 8):
        function = FEATURE.compute(StreamInfo(128, 128), **parameters)
        pieces = [function(planes[start : start + chunk], np.zeros(0)) for start in range(0, len(clip), chunk)]
        found.append(np.concatenate(pieces))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[0], found[2], rtol=0, atol=1e-5)
    assert np.isfinite(found[0]).tolist() == [False, False, True, False, True, False]


@pytest.mark.usefixtures("motion_networks")
@pytest.mark.parametrize(("height", "width"), [(113, 131), (150, 117)])
def test_odd_sizes_and_portrait(height, width):
    clip = np.random.default_rng(height).integers(0, 256, (3, height, width, 3), dtype=np.uint8)
    assert 0 <= float(motion_smoothness(clip)) <= 1


@pytest.mark.usefixtures("motion_networks")
def test_one_colour_is_marked():
    result = motion_smoothness(np.full((4, 128, 128, 3), 90, np.uint8))
    assert Flag.CONSTANT_FRAME in result.flags
    assert 0 <= float(result) <= 1
    assert result.detail["frames"] == 4
    assert result.detail["guessed"] == 1  # the last frame of an even number is not used


@pytest.mark.usefixtures("motion_networks")
def test_a_side_below_113_is_too_small():
    clip = np.zeros((3, 112, 300, 3), np.uint8)
    result = motion_smoothness(clip)
    assert (result.value, result.status, result.reason) == (None, Status.UNDEFINED, Reason.TOO_SMALL)
    assert "300x112" in result.detail["message"]
    assert motion_smoothness(clip, protocol="reference").reason is Reason.NOT_FINITE
    assert motion_smoothness(clip[:2]).reason is Reason.TOO_FEW_FRAMES  # that comes first, as in the public code


def test_by_hand():
    result, worst = measured(entries(7, [10, 51, 20]))
    assert float(result) == pytest.approx((255 - 27) / 255, abs=1e-15)
    assert result.detail["mean_absolute_difference"] == 27
    curve = result.curves["motion_smoothness"]
    np.testing.assert_allclose(curve[1::2], 1 - np.array([10, 51, 20]) / 255, rtol=0, atol=1e-15)
    assert np.isnan(curve[::2]).all()
    assert min(worst) == worst[4] == pytest.approx(0.8)  # frame 3, judged when frame 4 is there


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_frame_numbers_are_right_in_chunks_of_any_size(chunk):
    expected, _ = measured(entries(9, [10, 20, 30, 40]))
    result, worst = measured(entries(9, [10, 20, 30, 40]), chunk)
    assert result.value == expected.value
    np.testing.assert_array_equal(result.curves["motion_smoothness"], expected.curves["motion_smoothness"])
    assert len(worst) == 9
    np.testing.assert_array_equal(worst[1:], np.nan_to_num(result.curves["motion_smoothness"][:-1], nan=math.inf))


@pytest.mark.parametrize("frames", [1, 2])
def test_one_and_two_frames(frames):
    result, _ = measured(np.full(frames, math.nan))
    assert (result.value, result.status, result.reason) == (None, Status.UNDEFINED, Reason.TOO_FEW_FRAMES)


@given(st.lists(st.floats(0, 255), min_size=1, max_size=20), st.booleans(), st.sampled_from([1, 3, 8]))
@settings(max_examples=60, deadline=None)
def test_range_order_and_chunks(errors, even, chunk):
    frames = 2 * len(errors) + 1 + even
    padded = np.append(entries(frames - even, errors), [math.nan] * even)
    value = float(measured(padded, chunk)[0])
    assert 0 <= value <= 1
    assert value == pytest.approx(1 - np.mean(errors) / 255, abs=1e-12)
    assert float(measured(np.append(entries(frames - even, errors[::-1]), [math.nan] * even))[0]) == value
    worse = float(measured(entries(2 * len(errors) + 1, [min(255, error + 1) for error in errors]))[0])
    assert worse <= value


@pytest.mark.parametrize("protocol", ["corrected", "reference"])
def test_what_the_network_gives_that_is_no_number(protocol):
    result, _ = measured(entries(5, [10, math.nan]), protocol=protocol)
    assert (result.value, result.reason) == (None, Reason.NOT_FINITE)


def test_counts_alone_decide():
    counts = InterpolationErrors((128, 128), frames=3, errors=[0.0])
    assert float(METRIC.decide(counts, {})) == 1.0


@pytest.mark.usefixtures("no_networks")
def test_without_the_checkpoint_it_is_skipped():
    result = motion_smoothness(np.zeros((3, 128, 128, 3), np.uint8))
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)
    assert "weights fetch amt_s" in result.detail["message"]


@pytest.mark.parametrize("broken", [np.zeros((3, 128, 128, 3)), np.zeros((3, 128, 128), np.uint8)])
def test_other_arrays_are_refused(broken):
    with pytest.raises(ValueError, match="clip"):
        motion_smoothness(broken)


def test_unknown_protocols_devices_and_formats_are_refused():
    clip = np.zeros((3, 128, 128, 3), np.uint8)
    with pytest.raises(InputError, match="corrected"):
        motion_smoothness(clip, protocol="vbench")
    with pytest.raises(InputError, match="float8"):
        motion_smoothness(clip, dtype="float8")
    with pytest.raises(InputError, match="tpu"):
        motion_smoothness(clip, device="tpu")
