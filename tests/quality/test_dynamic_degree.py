"""dynamic_degree: goldens through the network, the decision table, tiny cases, properties, rates."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.features import StreamInfo
from gen_eval.features.arrays import finish
from gen_eval.networks import to_device
from gen_eval.networks.motion import Arrival, Magnitude
from gen_eval.protocols import load_protocol
from gen_eval.quality import dynamic_degree
from gen_eval.quality.dynamic_degree import METRIC, Motion, Sample, judge
from gen_eval.records import Flag, InputError, Reason, Status

PROTOCOLS = {name: load_protocol("dynamic_degree", name) for name in ("reference", "corrected")}
MEASURE = PROTOCOLS["corrected"].measure
(FEATURE,) = METRIC.member_features(MEASURE)


@pytest.fixture(scope="module")
def goldens(quality_goldens):
    return json.loads((quality_goldens / "flicker_motion.json").read_text())


def both(counts):
    return {name: finish(METRIC, counts, protocol) for name, protocol in PROTOCOLS.items()}


def test_one_measurement_serves_both_protocols():
    assert PROTOCOLS["reference"].measure == MEASURE


def motion(lengths, side=256, fps=8.0, too_small=False):
    """Counts of a clip at a constant rate in which pixels move by ``lengths`` between sampled frames."""
    pairs = [Magnitude(length, length) for length in lengths]
    interval = max(1, round((fps or 0) / 8))
    frames = list(range(0, interval * (len(lengths) + 1), interval))
    sample = Sample(frames, pairs)
    return Motion((side, 2 * side), fps, 8.0, too_small, interval * len(lengths) + 1, sample, sample)


# every clip of the goldens: whole clips through the network, both protocols from one run
CASES = [("clip_a", 8), ("clip_a", 24), ("clip_a", 12), ("clip_b", 8), ("clip_b", 30), ("clip_c", 8), ("clip_d", 8)]


@pytest.mark.usefixtures("motion_networks")
@pytest.mark.parametrize(("clip", "fps"), CASES)
def test_golden(golden_clip, goldens, clip, fps):
    assert [(one["clip"], one["fps"]) for one in goldens["dynamic_degree"]] == CASES
    (case,) = [one for one in goldens["dynamic_degree"] if (one["clip"], one["fps"]) == (clip, fps)]
    frames, _ = golden_clip(clip)
    info = StreamInfo(*frames.shape[1:3], fps=float(fps))
    meter = METRIC.meter(MEASURE, info)
    function = FEATURE.compute(info, **dict(FEATURE.parameters))
    meter.update({FEATURE: function(to_device(frames), np.arange(len(frames)) / fps)})
    found = both(meter.counts())
    expected = case["reference"]
    result = found["reference"]
    assert result.value == float(expected["dynamic"])
    assert result.detail["sampled"] == case["sampled"]
    assert result.detail["interval"] == case["interval"]
    assert (result.detail["threshold"], result.detail["pairs_needed"]) == (
        expected["threshold_pixels"],
        expected["count_needed"],
    )
    speeds = result.curves["dynamic_degree"][case["sampled"][1:]]
    np.testing.assert_allclose(speeds, np.array(expected["top5_mean_per_pair"], float), rtol=0, atol=2e-3)
    assert np.isnan(np.delete(result.curves["dynamic_degree"], case["sampled"][1:])).all()
    expected, result = case["corrected"], found["corrected"]
    assert result.value == expected["value"]
    if expected["value"] is None:
        assert (result.status, result.reason) == (Status.UNDEFINED, expected["reason"])
        return
    assert result.detail["rate"] == expected["rate"]
    assert (result.detail["threshold"], result.detail["pairs_needed"]) == (
        expected["threshold_pixels_per_eighth_second"],
        expected["count_needed"],
    )
    speeds = result.curves["dynamic_degree"][case["sampled"][1:]]
    np.testing.assert_allclose(speeds, expected["speed_per_pair"], rtol=0, atol=2e-3)
    assert result.values["motion"] == pytest.approx(expected["motion"], abs=2e-3)


@pytest.mark.usefixtures("motion_networks")
def test_through_the_public_function(golden_clip, goldens):
    expected = goldens["dynamic_degree"][0]["corrected"]["speed_per_pair"]
    frames, _ = golden_clip("clip_a")
    result = dynamic_degree(frames[:2], 8)
    assert (result.value, result.protocol, result.detail["pairs_needed"]) == (1, "corrected", 1)
    assert result.values["motion"] == pytest.approx(expected[0], abs=2e-3)


def test_golden_decisions(goldens):
    for case in goldens["decision"]:
        side, threshold = case["short_side"], case["threshold"]
        lengths = case["scores"]
        if lengths is None:
            quiet = case["sampled_frames"] - 1 - case["pairs_above"]
            lengths = [1.5 * threshold] * case["pairs_above"] + [threshold] * quiet
        assert len(lengths) == case["sampled_frames"] - 1
        found = both(motion(lengths, side))
        assert found["reference"].value == float(case["reference"]), case
        assert found["reference"].detail["pairs_needed"] == case["count_needed"]
        assert found["reference"].detail["pairs_above"] == case["pairs_above"]
        assert found["corrected"].value == case["corrected"], case
        if case["corrected"] is None:
            assert found["corrected"].reason is Reason.TOO_FEW_FRAMES
        else:
            assert found["corrected"].detail["pairs_needed"] == case["corrected_count_needed"]
            assert found["corrected"].detail["threshold"] == threshold
    assert len(goldens["decision"]) == 40


def test_by_hand():
    """Six frames at 20 a second, 512 pixels high: every second one, so ten a second; 12 pixels in an eighth."""
    found = both(motion([9, 10, 16], side=512, fps=20.0))
    assert found["reference"].detail["threshold"] == found["corrected"].detail["threshold"] == 12
    assert (found["reference"].value, found["reference"].values["motion"]) == (
        1,
        35 / 3,
    )  # 16 is above 12; one is needed
    assert found["corrected"].detail["rate"] == 10
    assert (found["corrected"].value, found["corrected"].detail["pairs_above"]) == (1, 2)  # 12.5 and 20
    assert found["corrected"].values["motion"] == pytest.approx(35 / 3 * 10 / 8)
    curve = found["corrected"].curves["dynamic_degree"]
    np.testing.assert_allclose(curve[[2, 4, 6]], [11.25, 12.5, 20])
    assert len(curve) == 7


def test_the_border_counts_under_reference_only():
    sample = Sample([0, 1, 2, 3, 4], [Magnitude(7.0, 5.0)] * 4)
    found = both(Motion((256, 256), 8.0, 8.0, False, 5, sample, sample))
    assert (found["reference"].value, found["corrected"].value) == (1, 0)


def test_each_protocol_looks_at_its_own_sample():
    by_index, by_time = Sample([0, 3], [Magnitude(1.0, 1.0)]), Sample([0, 2, 3], [Magnitude(9.0, 9.0)] * 2)
    found = both(Motion((256, 256), 24.0, 8.0, False, 4, by_index, by_time))
    assert [found[name].detail["sampled"] for name in PROTOCOLS] == [[0, 3], [0, 2, 3]]
    assert [found[name].values["motion"] for name in PROTOCOLS] == [1, 9]


def test_the_threshold_itself_is_not_above():
    assert both(motion([6.0] * 9))["corrected"].value == 0
    assert both(motion([np.nextafter(6, 7)] * 9))["corrected"].value == 1


def test_small_clips():
    """Their flow is NaN in the public code: any two of their frames are dynamic there, more are not."""
    nothing = [math.nan]
    for count, value in ((1, 1.0), (2, 0.0), (9, 0.0)):
        found = both(motion(nothing * count, side=96, too_small=True))
        assert (found["reference"].value, found["reference"].values["motion"]) == (value, None)
        assert (found["corrected"].value, found["corrected"].reason) == (None, Reason.TOO_SMALL)
        assert "192x96" in found["corrected"].detail["message"]
    found = both(motion([], side=96, too_small=True))
    assert found["reference"].value == 0.0
    assert found["corrected"].reason is Reason.TOO_FEW_FRAMES


def test_what_the_network_gives_that_is_no_number():
    found = both(motion([9.0, math.nan, 9.0]))
    assert found["reference"].value == 1.0
    assert (found["corrected"].value, found["corrected"].reason) == (None, Reason.NOT_FINITE)


def test_a_long_clip_at_few_frames_is_told_how_many_were_sampled():
    result = both(Motion((256, 256), 60.0, 8.0, False, 7, Sample([0]), Sample([0])))["corrected"]
    assert result.reason is Reason.TOO_FEW_FRAMES
    assert "1 of the clip's 7 frame(s) are sampled at 7.5 a second" in result.detail["message"]


def test_without_a_rate_eight_a_second_are_assumed():
    result = both(motion([7.0, 7.0], fps=None))["corrected"]
    assert (result.value, result.values["motion"]) == (1, 7)
    assert (result.detail["rate"], result.detail["rate_known"]) == (8, False)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.sampled_from([128, 256, 721]), st.floats(1, 120))
@settings(max_examples=60, deadline=None)
def test_properties(lengths, side, fps):
    counts = motion(lengths, side, fps)
    found = both(counts)
    for result in found.values():
        assert result.value in {0.0, 1.0}
        assert math.isfinite(result.values["motion"])
    faster = both(motion([2 * length for length in lengths], side, fps))
    assert all(faster[name].value >= found[name].value for name in PROTOCOLS)
    assert both(motion(lengths[::-1], side, fps))["corrected"].value == found["corrected"].value
    still = both(motion([0.0] * len(lengths), side, fps))["corrected"]
    assert (still.value, still.values["motion"]) == (0, 0)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_the_same_motion_is_as_fast_at_every_rate(lengths):
    """Half the frames a second: twice the way from one sampled frame to the next, and equal speeds."""
    slow, fast = motion([2 * length for length in lengths], fps=4.0), motion(lengths, fps=8.0)
    slow, fast = both(slow)["corrected"], both(fast)["corrected"]
    assert slow.values["motion"] == pytest.approx(fast.values["motion"])
    assert slow.value == fast.value


@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_arrivals_are_collected_in_chunks_of_any_size(chunk):
    one, two = Magnitude(9.0, 8.0), Magnitude(7.0, 6.0)
    none = Arrival((), (), (), ())
    arrivals = [Arrival((0,), (0,), (), ()), none, Arrival((2,), (), (one,), ()), Arrival((), (2, 3), (), (one, two))]
    meter, worst = METRIC.meter(MEASURE, StreamInfo(256, 300, fps=16.0)), []
    for start in range(0, 4, chunk):
        values = np.empty(len(arrivals[start : start + chunk]), object)
        values[:] = arrivals[start : start + chunk]
        worst += meter.update({FEATURE: values})
    assert worst == [math.inf, math.inf, 8.0, math.inf]
    counts = meter.counts()
    assert counts.by_index == Sample([0, 2], [one])
    assert counts.by_time == Sample([0, 2, 3], [one, two])
    assert (counts.frames, counts.interval, counts.rate, counts.too_small) == (4, 2, 8, False)


@pytest.mark.usefixtures("motion_networks")
def test_one_colour_portrait_and_odd_sizes():
    result = dynamic_degree(np.full((2, 131, 121, 3), 90, np.uint8), 8.0)
    assert Flag.CONSTANT_FRAME in result.flags
    assert result.value in {0.0, 1.0}


@pytest.mark.usefixtures("no_networks")
def test_without_the_checkpoint_it_is_skipped():
    result = dynamic_degree(np.zeros((3, 128, 128, 3), np.uint8), 8.0)
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)


def test_bad_arguments_are_refused():
    clip = np.zeros((2, 128, 128, 3), np.uint8)
    for fps in (0.0, -8.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="fps must be positive"):
            dynamic_degree(clip, fps)
    with pytest.raises(ValueError, match="clip"):
        dynamic_degree(clip[0], 8.0)
    with pytest.raises(InputError, match="corrected"):
        dynamic_degree(clip, 8.0, protocol="vbench")
    with pytest.raises(InputError, match="half_down"):
        judge([1.0], 128, {"threshold": 6, "share": 0.25, "rounding": "half_down", "least": 0})
