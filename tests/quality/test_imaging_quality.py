"""imaging_quality: goldens with the network, tiny cases, properties, short, narrow and small clips, other modes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.protocols import load_protocol
from gen_eval.quality import imaging_quality
from gen_eval.quality.imaging_quality import METRIC
from gen_eval.records import Flag, InputError, Reason, Status

CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]


def column(*ratings):
    return np.array(ratings, np.float32)[:, None]


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("protocol", ["reference", "corrected"])
def test_golden(golden_clip, golden_scores, quality_goldens, clip, protocol):
    result = imaging_quality(golden_clip(clip)[0], protocol=protocol)
    raw = golden_scores[clip]["imaging_quality_raw_0_100"]
    assert result.values["raw"] == pytest.approx(raw, abs=1e-4)
    assert float(result) == pytest.approx(raw / 100, abs=1e-6)
    with np.load(quality_goldens / "features.npz") as arrays:
        ratings = arrays[f"{clip}/musiq_0_100"]
    np.testing.assert_allclose(100 * result.curves["imaging_quality"], ratings, rtol=0, atol=5e-5)
    assert result.flags == ()
    assert result.detail == {"frames": len(ratings)}


def test_by_hand(measured):
    result = measured(METRIC, column(50, 65, 35, 40))
    assert float(result) == pytest.approx(0.475, abs=1e-15)
    assert result.values == {"raw": 47.5}
    np.testing.assert_allclose(result.curves["imaging_quality"], [0.5, 0.65, 0.35, 0.4], rtol=0, atol=1e-15)


def test_values_are_not_clipped(measured):
    assert float(measured(METRIC, column(-10, -30))) == pytest.approx(-0.2)
    assert float(measured(METRIC, column(120))) == pytest.approx(1.2)


@given(st.lists(st.floats(-20, 120, width=32), min_size=1, max_size=9), st.integers(1, 9), st.randoms())
@settings(max_examples=40, deadline=None)
def test_it_is_a_mean_whatever_the_order_and_the_chunks(measured, ratings, size, random):
    result = measured(METRIC, column(*ratings), size=size)
    value = float(result)
    assert value == pytest.approx(np.mean(ratings) / 100, abs=1e-12)
    assert result.values["raw"] == pytest.approx(100 * value, abs=1e-12)
    assert min(ratings) / 100 - 1e-12 <= value <= max(ratings) / 100 + 1e-12
    random.shuffle(ratings)
    assert float(measured(METRIC, column(*ratings))) == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("broken", [[math.nan], [math.inf], [math.inf, -math.inf]])
def test_ratings_that_are_not_finite_give_no_value(measured, broken):
    result = measured(METRIC, column(1.0, *broken))
    assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 31, 33), (2, 90, 47), (3, 16, 300)])
def test_few_small_odd_and_portrait_frames(size):
    clip = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    result = imaging_quality(clip)
    assert math.isfinite(float(result))
    alone = imaging_quality(clip[-1:])
    assert alone.curves["imaging_quality"][0] == pytest.approx(result.curves["imaging_quality"][-1], abs=1e-7)


@pytest.mark.usefixtures("small_networks")
def test_one_colour_has_a_value_and_is_marked():
    result = imaging_quality(np.full((2, 40, 50, 3), 77, np.uint8))
    assert result.status is Status.OK
    assert result.flags == (Flag.CONSTANT_FRAME,)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("size", [(1, 448), (600, 1), (2, 1200)])
def test_strips_of_which_nothing_would_be_left(size):
    clip = np.random.default_rng(0).integers(0, 256, (2, *size, 3), dtype=np.uint8)
    result = imaging_quality(clip)
    assert (result.value, result.status, result.reason) == (None, Status.UNDEFINED, Reason.TOO_SMALL)
    assert f"{size[1]}x{size[0]}" in result.detail["message"]
    stopped = imaging_quality(clip, protocol="reference")
    assert (stopped.status, stopped.reason) == (Status.FAILED, Reason.REFERENCE_STOPS)
    assert stopped.detail["reference_exception"] == "RuntimeError"


@pytest.mark.usefixtures("small_networks")
def test_other_modes_are_protocols_of_ones_own(tmp_path, golden_clip):
    clip = golden_clip("clip_wide")[0][:1]  # 360 x 640
    modes = {
        "shorter": "resize: shorter_at_most, side: 96",
        "shorter_centercrop": "resize: shorter_at_most, side: 96, crop: 96",
        "untouched": "resize: none",
        "longer": "resize: longer_at_most",
    }
    found = {}
    for mode, text in modes.items():
        path = tmp_path / f"{mode}.yaml"
        path.write_text(f"imaging_quality: {{base: corrected, measure: {{{text}}}}}")
        result = imaging_quality(clip, protocol=str(path))
        assert result.protocol == mode
        found[mode] = float(result)
    assert len(set(found.values())) == 4
    assert found["longer"] == float(imaging_quality(clip))
    from torch import from_numpy, inference_mode

    from gen_eval.networks.loading import loaded

    with inference_mode():
        seen = from_numpy(clip).permute(0, 3, 1, 2) / 255
        assert found["untouched"] == pytest.approx(float(loaded("musiq_spaq").embed(seen)) / 100, abs=1e-7)


@pytest.mark.usefixtures("no_networks")
def test_without_weights_it_is_skipped():
    result = imaging_quality(np.zeros((2, 40, 40, 3), np.uint8))
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)
    assert "gen-eval weights fetch musiq_spaq" in result.detail["message"]


def test_bad_arguments_are_refused():
    clip = np.zeros((1, 8, 8, 3), np.uint8)
    with pytest.raises(ValueError, match="clip"):
        imaging_quality(clip[0])
    with pytest.raises(InputError, match="corrected"):
        imaging_quality(clip, protocol="vbench")
    with pytest.raises(InputError, match="tpu"):
        imaging_quality(clip, device="tpu")


def test_protocols_look_at_the_same_thing():
    reference, corrected = (load_protocol(METRIC.name, name) for name in ("reference", "corrected"))
    assert reference.measure == corrected.measure
    assert (reference.decide, reference.measure["side"]) == (corrected.decide, 512)
