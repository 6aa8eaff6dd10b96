"""aesthetic_quality: goldens with networks, tiny cases, properties, short clips."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.quality import aesthetic_quality, background_consistency
from gen_eval.quality.aesthetic_quality import METRIC
from gen_eval.records import Flag, InputError, Reason, Status

CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("protocol", ["reference", "corrected"])
def test_golden(golden_clip, golden_scores, quality_goldens, clip, protocol):
    result = aesthetic_quality(golden_clip(clip)[0], protocol=protocol)
    assert float(result) == pytest.approx(golden_scores[clip]["aesthetic_quality"], abs=1e-5)
    with np.load(quality_goldens / "features.npz") as arrays:
        ratings = arrays[f"{clip}/aesthetic_0_10"]
    np.testing.assert_allclose(10 * result.curves["aesthetic_quality"], ratings, rtol=0, atol=5e-5)


def test_by_hand(measured):
    result = measured(METRIC, np.array([5.0, 6.5, 3.5, 4.0]))
    assert float(result) == pytest.approx(0.475, abs=1e-15)
    np.testing.assert_allclose(result.curves["aesthetic_quality"], [0.5, 0.65, 0.35, 0.4], rtol=0, atol=1e-15)
    assert result.detail == {"frames": 4, "count": 4, "sum": pytest.approx(1.9)}


def test_values_are_not_clipped(measured):
    assert float(measured(METRIC, np.array([-1.0, -3.0]))) == pytest.approx(-0.2)
    assert float(measured(METRIC, np.array([12.0]))) == pytest.approx(1.2)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=9), st.integers(1, 9), st.randoms())
@settings(max_examples=40, deadline=None)
def test_it_is_a_mean_whatever_the_order_and_the_chunks(measured, ratings, size, random):
    value = float(measured(METRIC, np.array(ratings), size=size))
    assert value == pytest.approx(np.mean(ratings) / 10, abs=1e-12)
    assert min(ratings) / 10 - 1e-12 <= value <= max(ratings) / 10 + 1e-12
    random.shuffle(ratings)
    assert float(measured(METRIC, np.array(ratings))) == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_ratings_that_are_not_finite_give_no_value(measured, broken):
    result = measured(METRIC, np.array([1.0, broken]))
    assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("size", [(1, 31, 47), (3, 64, 36)])
def test_few_small_odd_and_portrait_frames(size):
    clip = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert math.isfinite(float(aesthetic_quality(clip)))


@pytest.mark.usefixtures("small_networks")
def test_one_colour_has_a_value_and_is_marked():
    result = aesthetic_quality(np.full((2, 40, 50, 3), 77, np.uint8))
    assert result.status is Status.OK
    assert result.flags == (Flag.CONSTANT_FRAME,)


@pytest.mark.usefixtures("small_networks")
def test_the_head_stays_float32_when_clip_does_not(golden_clip):
    clip, _ = golden_clip("clip_b")
    exact, rough = aesthetic_quality(clip[:2]), aesthetic_quality(clip[:2], dtype="bfloat16")
    assert 0 < abs(float(exact) - float(rough)) < 1e-2


@pytest.mark.usefixtures("no_networks")
def test_without_weights_it_is_skipped():
    result = aesthetic_quality(np.zeros((2, 40, 40, 3), np.uint8))
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="uint8 RGB"):
        aesthetic_quality(np.zeros((2, 40, 40, 4), np.uint8))
    with pytest.raises(InputError, match="no protocol 'vbench'"):
        aesthetic_quality(np.zeros((2, 40, 40, 3), np.uint8), protocol="vbench")


@pytest.mark.usefixtures("small_networks")
def test_it_sees_what_background_consistency_sees(golden_clip, monkeypatch):
    from gen_eval.features.extraction import ChunkFeatures
    from gen_eval.networks import views
    from gen_eval.protocols import load_protocol
    from gen_eval.quality.background_consistency import METRIC as BACKGROUND

    made = []
    make = views.make
    monkeypatch.setattr(views, "make", lambda *args, **more: made.append(more) or make(*args, **more))
    clip, _ = golden_clip("clip_c")
    features = [
        feature
        for metric in (METRIC, BACKGROUND)
        for feature in metric.member_features(load_protocol(metric.name, "corrected").measure)
    ]
    ChunkFeatures(clip).of(features)
    assert len(made) == 1
    assert float(background_consistency(clip)) > 0
