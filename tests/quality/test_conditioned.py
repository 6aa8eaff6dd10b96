"""Image-to-video subject and background: goldens, tiny cases, properties, condition images."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.protocols import Preset, load_protocol
from gen_eval.quality import i2v_background, i2v_subject
from gen_eval.quality.i2v_background import METRIC as BACKGROUND
from gen_eval.quality.i2v_subject import METRIC as SUBJECT
from gen_eval.records import Flag, Generation, Group, Reason, Sample, Status

CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
FUNCTIONS = {"i2v_subject": i2v_subject, "i2v_background": i2v_background}
METRICS = pytest.mark.parametrize("metric", [SUBJECT, BACKGROUND], ids=lambda metric: metric.name)
CASES = ["mixed_signs", "all_positive", "alternating_opposites", "two_frames", "identical"]
VECTORS = st.tuples(st.integers(3, 8), st.integers(2, 5)).flatmap(
    lambda shape: arrays.arrays(np.float32, shape, elements=st.floats(-8, 8, width=32, allow_subnormal=False))
)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("protocol", ["reference", "corrected"])
def test_golden(golden_clip, golden_scores, clip, name, protocol):
    expected = golden_scores[clip][name]
    result = FUNCTIONS[name](*golden_clip(clip), protocol=protocol)
    if isinstance(expected, dict):
        stops = protocol == "reference"
        assert result.reason is (Reason.REFERENCE_STOPS if stops else Reason.TOO_FEW_FRAMES)
        assert result.detail.get("reference_exception") == (expected["error"] if stops else None)
        return
    assert float(result) == pytest.approx(expected, abs=1e-5)


@METRICS
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_golden_of_the_metric_layer(measured, metric_layer, metric, case, size):
    features, condition, expected = metric_layer[0][case]
    result = measured(metric, features, condition[None], size=size)
    golden = expected["i2v" if metric is SUBJECT else "i2v_background"]
    assert float(result) == pytest.approx(golden, abs=1e-6)


@METRICS
def test_golden_of_the_metric_layer_for_one_frame(measured, metric_layer, metric):
    features, condition, expected = metric_layer[0]["one_frame"]
    result = measured(metric, features, condition[None], protocol="reference")
    assert (result.status, result.reason) == (Status.FAILED, Reason.REFERENCE_STOPS)
    assert result.detail["reference_exception"] == expected["i2v"]["error"]
    result = measured(metric, features, condition[None])
    assert (result.value, result.status, result.reason) == (None, Status.UNDEFINED, Reason.TOO_FEW_FRAMES)


@METRICS
def test_by_hand(measured, metric):
    features = np.array([[1, 0], [1, 1], [0, 2], [0, -1]], np.float32)
    result = measured(metric, features, np.array([[0.5, 0.5]], np.float32))
    half = math.sqrt(0.5)
    np.testing.assert_allclose(result.curves["to_condition"], [half, 1, half, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.curves[metric.name][1:], [half, half, 0], rtol=0, atol=1e-12)
    assert math.isnan(result.curves[metric.name][0])
    assert float(result) == pytest.approx(0.4 * 1 + 0.3 * 2 * half / 3 + 0.3 * 0, abs=1e-12)
    assert result.detail["parts"] == pytest.approx({"condition": 1, "mean": 2 * half / 3, "least": 0})


@METRICS
def test_two_frames_are_one_pair(measured, metric):
    features = np.array([[1, 0], [1, 1]], np.float32)
    result = measured(metric, features, features[:1])
    assert float(result) == pytest.approx(0.4 + 0.6 * math.sqrt(0.5), abs=1e-12)


@METRICS
@given(features=VECTORS, size=st.integers(1, 8), factor=st.sampled_from([0.25, 1.0, 4.0, 1024.0]))
@settings(max_examples=40, deadline=None)
def test_it_is_its_definition_whatever_the_chunks_and_the_scale(measured, metric, features, size, factor):
    features[np.abs(features) < 1e-3] = 0
    condition, frames = features[:1], features[1:]
    unit = features.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    c = np.maximum(unit[1:] @ unit[0], 0)
    e = np.maximum((unit[2:] * unit[1:-1]).sum(1), 0)
    expected = 0.4 * c.max() + 0.3 * e.mean() + 0.3 * e.min()
    result = measured(metric, frames, condition, size=size)
    assert float(result) == pytest.approx(expected, abs=1e-9)
    assert 0 <= float(result) <= 1 + 1e-12
    scaled = measured(metric, frames * np.float32(factor), condition / np.float32(factor))
    assert float(scaled) == pytest.approx(float(result), abs=1e-12)


@METRICS
def test_a_still_clip_of_its_condition_image_is_perfect(measured, metric):
    frame = np.random.default_rng(0).normal(size=(1, 16)).astype(np.float32)
    result = measured(metric, np.repeat(frame, 5, axis=0), frame)
    assert float(result) == pytest.approx(1, abs=1e-12)


@METRICS
@pytest.mark.parametrize("where", ["condition", 0, 2])
def test_features_that_are_not_finite_give_no_value(measured, metric, where):
    features, condition = np.ones((4, 3), np.float32), np.ones((1, 3), np.float32)
    (condition[0] if where == "condition" else features[where])[1] = math.nan
    for protocol in ("reference", "corrected"):
        result = measured(metric, features, condition, protocol=protocol)
        assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [(2, 31, 47), (3, 64, 36)])
def test_few_small_odd_and_portrait_frames(name, size):
    clip = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    result = FUNCTIONS[name](clip, clip[0, :25, :20])
    assert 0 < float(result) < 1


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_colour_is_perfect_and_marked(name):
    clip = np.full((3, 40, 50, 3), 77, np.uint8)
    result = FUNCTIONS[name](clip, clip[0])
    assert float(result) == pytest.approx(1, abs=1e-6)
    assert result.flags == (Flag.CONSTANT_FRAME,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_condition_image_must_be_there_and_uint8(name):
    clip = np.zeros((2, 40, 40, 3), np.uint8)
    assert FUNCTIONS[name](clip, None).reason is Reason.MISSING_CONDITION_IMAGE
    result = FUNCTIONS[name](clip, None, protocol="reference")
    assert result.reason is Reason.REFERENCE_STOPS
    assert result.detail["reference_exception"] == "FileNotFoundError"
    with pytest.raises(ValueError, match="condition_image must be"):
        FUNCTIONS[name](clip, clip[0] / 255)


@pytest.mark.usefixtures("no_networks")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_weights_it_is_skipped(name):
    clip = np.zeros((2, 40, 40, 3), np.uint8)
    result = FUNCTIONS[name](clip, clip[0])
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)


# --- pictures in files ------------------------------------------------------------------------------------------------


@pytest.fixture
def scored(tmp_path, golden_clip):
    """`scored(save)`: what both protocols make of a clip and the picture that `save(image, path)` writes."""
    clip, condition = golden_clip("clip_b")
    write_clip(tmp_path / "s__0.mp4", clip[2:5], 8.0, lossless=True)

    def run(save):
        path = tmp_path / "condition.png"
        save(Image.fromarray(condition), path)
        group = Group("m", Sample("s", condition_image=path), (Generation("s", "0", tmp_path / "s__0.mp4"),))
        metrics = [(one, [load_protocol(one.name, name) for name in ("reference", "corrected")]) for one in METRICS_]
        outcomes = score_group(group, Plan.of(metrics, Preset("all", None), 2)).outcomes
        found = {(one.measurement.metric.name, one.protocol.name): one.result for one in outcomes}
        assert len(found) == 4
        return found, clip[2:5], condition

    return run


METRICS_ = [SUBJECT, BACKGROUND]
EXIF = 0x0112


def save_turned(image, path):
    exif = image.getexif()
    exif[EXIF] = 3
    image.save(path, exif=exif)


@pytest.mark.usefixtures("small_networks")
def test_videos_and_pictures_in_files_score_as_arrays_do(scored):
    found, clip, condition = scored(lambda image, path: image.save(path))
    for (name, protocol), result in found.items():
        assert float(result) == pytest.approx(float(FUNCTIONS[name](clip, condition, protocol=protocol)), abs=1e-9)
        assert result.flags == ()


@pytest.mark.usefixtures("small_networks")
def test_a_picture_with_a_rotation_tag_is_turned_or_left(scored):
    found, clip, condition = scored(save_turned)
    for (name, protocol), result in found.items():
        seen = condition[::-1, ::-1] if protocol == "corrected" else condition
        assert float(result) == pytest.approx(float(FUNCTIONS[name](clip, np.ascontiguousarray(seen))), abs=1e-9)
        assert result.flags == ((Flag.ROTATED,) if protocol == "corrected" else ())


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("mode", ["L", "P", "RGBA"])
def test_a_picture_that_is_not_rgb_is_converted_or_stops_the_reference(scored, mode):
    found, _, _ = scored(lambda image, path: image.convert(mode).save(path))
    for (_, protocol), result in found.items():
        if protocol == "reference":
            assert result.reason is Reason.REFERENCE_STOPS
            assert result.detail["reference_exception"] == "RuntimeError"
        else:
            assert 0 < float(result) <= 1
            assert (Flag.ALPHA_DROPPED in result.flags) == (mode == "RGBA")


@pytest.mark.usefixtures("small_networks")
def test_an_absent_picture_costs_these_rows_only(scored):
    found, _, _ = scored(lambda image, path: None)
    for (_, protocol), result in found.items():
        wanted = Reason.REFERENCE_STOPS if protocol == "reference" else Reason.MISSING_CONDITION_IMAGE
        assert (result.status, result.reason) == (Status.FAILED, wanted)
