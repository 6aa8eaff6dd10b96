"""temporal_flickering: goldens, tiny cases, properties, chunks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gen_eval.features import FRAMES, StreamInfo
from gen_eval.protocols import load_protocol
from gen_eval.quality import temporal_flickering
from gen_eval.quality.temporal_flickering import METRIC, FlickerCounts
from gen_eval.records import InputError, Reason, Status

GOLDENS = Path(__file__).parent.parent / "goldens" / "quality"
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
CLIP = st.tuples(st.integers(2, 5), st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda size: arrays.arrays(np.uint8, (*size, 3))
)


@pytest.fixture(scope="module")
def golden():
    expected = json.loads((GOLDENS / "flicker_motion.json").read_text())["temporal_flickering"]
    assert sorted(expected) == CLIPS

    def read(name):
        with np.load(GOLDENS / "clips" / f"{name}.npz") as arrays_:
            return arrays_["frames"], expected[name]

    return read


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("protocol", ["reference", "corrected"])
def test_golden(golden, name, protocol):
    clip, expected = golden(name)
    result = temporal_flickering(clip, protocol=protocol)
    assert result.detail["frames"] == expected["frames"]
    if name == "clip_d":
        reason = {"reference": Reason.NOT_FINITE, "corrected": Reason.TOO_FEW_FRAMES}[protocol]
        assert (result.value, result.reason, result.status) == (None, reason, reason.status)
        return
    assert float(result) == pytest.approx(expected[protocol]["score"], abs=1e-6)
    curve = result.curves["temporal_flickering"]
    assert np.isnan(curve[0])
    np.testing.assert_allclose(255 * (1 - curve[1:]), expected["per_pair_mean_abs"], rtol=0, atol=1e-5)


def test_by_hand():
    clip = np.zeros((3, 1, 2, 3), np.uint8)
    clip[1] = 30
    clip[2, 0, 0] = 30  # back to 0 in one of two pixels
    result = temporal_flickering(clip)
    assert float(result) == pytest.approx((255 - (30 + 15) / 2) / 255, abs=1e-15)
    assert result.detail["mean_absolute_difference"] == 22.5
    np.testing.assert_allclose(result.curves["temporal_flickering"][1:], [225 / 255, 240 / 255])


def test_differences_do_not_wrap_around():
    clip = np.zeros((2, 2, 2, 3), np.uint8)
    clip[1] = 255
    assert float(temporal_flickering(clip)) == 0.0
    assert float(temporal_flickering(clip[::-1])) == 0.0


@given(CLIP)
@settings(max_examples=40, deadline=None)
def test_equals_the_definition_and_does_not_hang_on_direction_or_channels(clip):
    value = float(temporal_flickering(clip))
    plain = np.abs(np.diff(clip.astype(int), axis=0)).mean()
    assert value == pytest.approx((255 - plain) / 255, abs=1e-12)
    assert float(temporal_flickering(clip[::-1])) == pytest.approx(value, abs=1e-14)
    assert float(temporal_flickering(clip[..., ::-1])) == value
    assert 0 <= value <= 1


@given(CLIP)
@settings(max_examples=10, deadline=None)
def test_a_still_clip_is_perfect(clip):
    assert float(temporal_flickering(np.repeat(clip[:1], 3, axis=0))) == 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_chunks_of_any_size_whose_memory_is_used_again(size):
    clip = np.random.default_rng(0).integers(0, 256, (7, 5, 6, 3), dtype=np.uint8)
    meter = METRIC.meter({}, StreamInfo(5, 6))
    buffer = np.empty((size, 5, 6, 3), np.uint8)
    worst = []
    for start in range(0, 7, size):
        part = buffer[: len(clip[start : start + size])]
        part[:] = clip[start : start + size]
        worst += meter.update({FRAMES: part})
        buffer[:] = 99
    result = METRIC.decide(meter.counts(), load_protocol("temporal_flickering", "corrected").decide)
    whole = temporal_flickering(clip)
    assert result.value == whole.value
    assert worst[0] == math.inf
    np.testing.assert_allclose(worst[1:], whole.curves["temporal_flickering"][1:], rtol=0, atol=1e-15)


@pytest.mark.parametrize("side", range(1, 8))
def test_small_and_odd_sizes(side):
    clip = np.random.default_rng(side).integers(0, 256, (3, side, 5, 3), dtype=np.uint8)
    assert 0 < float(temporal_flickering(clip)) < 1


def test_a_single_frame_and_no_frame():
    result = temporal_flickering(np.zeros((1, 4, 4, 3), np.uint8))
    assert (result.value, result.status, result.reason) == (None, Status.UNDEFINED, Reason.TOO_FEW_FRAMES)
    assert METRIC.decide(FlickerCounts(12), load_protocol("temporal_flickering", "corrected").decide).value is None


@pytest.mark.parametrize(
    "broken", [np.zeros((2, 4, 4, 3)), np.zeros((2, 4, 4), np.uint8), np.zeros((0, 4, 4, 3), np.uint8)]
)
def test_other_arrays_are_refused(broken):
    with pytest.raises(ValueError, match="clip"):
        temporal_flickering(broken)


def test_unknown_protocols_and_precisions_are_refused():
    with pytest.raises(InputError, match="corrected"):
        temporal_flickering(np.zeros((2, 4, 4, 3), np.uint8), protocol="vbench")
    with pytest.raises(InputError, match="float16"):
        METRIC.decide(FlickerCounts(12), {"precision": "float16", "single_frame": "too_few_frames"})


def test_results_go_to_pandas_and_plot():
    clip = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    result = temporal_flickering(clip)
    table = result.to_pandas()
    assert table.shape == (4, 1)
    np.testing.assert_array_equal(table["temporal_flickering"].to_numpy(), result.curves["temporal_flickering"])
    assert "temporal_flickering" in result.plot().get_title()
