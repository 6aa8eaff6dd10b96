"""Depth si-RMSE: goldens, tiny cases, properties, files."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from control_metrics import depth_si_rmse
from control_metrics.depth import METRIC, DepthMeter, FrameError, absolute_errors
from gen_eval.data.signal_files import write_depth
from gen_eval.features import FRAMES, StreamInfo
from gen_eval.features.arrays import finish
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, ItemError, Reason, Status
from gen_eval.scenes import render

CASES = [
    "same", "pure_scale", "gt_zeros", "both_zeros", "gt_dead_frame", "all_zero_gt", "pred_short", "pred_long",
    "pred_small", "pred_large", "outliers", "gt_has_nan", "masked", "masked_zeros",
]  # fmt: skip
KEYS = {"reference": "si_rmse", "reference-v2": "reference_v2_capped"}
DEPTH = arrays.array_shapes(min_dims=3, max_dims=3, max_side=6).flatmap(
    lambda shape: arrays.arrays(np.float64, shape, elements=st.floats(0.01, 100))
)


def test_every_golden_case_is_named_here(golden):
    assert [case["id"] for case in golden("depth_metrics.json")["cases"]] == CASES


@pytest.mark.parametrize("protocol", KEYS)
@pytest.mark.parametrize("case", CASES)
def test_golden_reference(golden, golden_cases, case, protocol):
    maps, named = golden("depth_maps.npz"), golden_cases("depth_metrics.json", case)
    mask = None if named["mask"] is None else maps[named["mask"]]
    result = depth_si_rmse(maps[named["pred"]], maps[named["gt"]], mask, protocol=protocol)
    tolerance = {"abs": 1e-6} if case == "pure_scale" else {"rel": 1e-6}
    assert float(result) == pytest.approx(named[KEYS[protocol]], **tolerance)


@pytest.mark.parametrize("case", CASES)
def test_golden_corrected(golden, golden_cases, case):
    maps, named = golden("depth_maps.npz"), golden_cases("depth_metrics.json", case)
    mask = None if named["mask"] is None else maps[named["mask"]]
    result = depth_si_rmse(maps[named["pred"]], maps[named["gt"]], mask)
    expected = named["corrected"]
    if expected["depth_si_rmse"] is None:
        assert (result.status, result.reason) == (expected["status"], expected["reason"])
    else:
        tolerance = {"abs": 1e-6} if case == "pure_scale" else {"rel": 1e-6}
        assert float(result) == pytest.approx(expected["depth_si_rmse"], **tolerance)
    assert list(result.flags) == expected.get("flags", [])
    assert result.detail["covered"] == pytest.approx(expected["covered"])
    assert result.detail["dead_frames"] == expected.get("dead_frames", 0)


@pytest.mark.parametrize("case", CASES)
def test_golden_in_log_space_and_of_the_first_frame(golden, golden_cases, case):
    maps, named = golden("depth_maps.npz"), golden_cases("depth_metrics.json", case)
    mask = None if named["mask"] is None else maps[named["mask"]]
    result = depth_si_rmse(maps[named["pred"]], maps[named["gt"]], mask, protocol="reference")
    tolerance = {"abs": 1e-6} if case == "pure_scale" else {"rel": 1e-6}
    assert result.values["log"] == pytest.approx(named["si_rmse_log"], **tolerance)
    first = np.nan_to_num(result.curves["depth_si_rmse"][0])  # a dead frame counts as 0
    assert first == pytest.approx(named["si_rmse_first_frame"], **tolerance)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("masked")])
def test_golden_without_scaling(golden, golden_cases, case):
    maps, named = golden("depth_maps.npz"), golden_cases("depth_metrics.json", case)
    expected = named["absrel"]
    if "raises" in expected:
        with pytest.raises(ValueError, match="both must have the same") as caught:
            absolute_errors(maps[named["pred"]], maps[named["gt"]])
        assert not isinstance(caught.value, ItemError)
    elif expected["abs_rel"] == "nan":
        with pytest.raises(ItemError, match="no pixel with positive depth") as caught:
            absolute_errors(maps[named["pred"]], maps[named["gt"]])
        assert caught.value.reason is Reason.NO_VALID_DEPTH
    else:
        found = absolute_errors(maps[named["pred"]], maps[named["gt"]])
        assert found.abs_rel == pytest.approx(expected["abs_rel"], rel=1e-6)
        assert found.deltas == pytest.approx([expected[f"delta{power}"] for power in (1, 2, 3)], rel=1e-6, abs=1e-9)


def test_in_log_space_by_hand():
    reference = np.array([[[1.0, math.e, 0.0]], [[0.0, 0.0, 0.0]]])
    prediction = np.array([[[math.e**3, math.e**2, 5.0]], [[1.0, 1.0, 1.0]]])  # differences 3 and 1; a dead frame
    assert depth_si_rmse(prediction, reference).values["log"] == pytest.approx(1)
    assert depth_si_rmse(prediction, reference, protocol="reference").values["log"] == pytest.approx(1 / 2)
    assert depth_si_rmse(prediction, 0 * reference).values == {}
    prediction[0, 0, 2] = reference[0, 0, 2] = np.inf
    assert depth_si_rmse(prediction, reference).values["log"] == pytest.approx(1)


@given(DEPTH, st.floats(0.01, 100), st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_in_log_space_no_scale_matters(depth, scale, other_scale):
    other = depth[::-1, ::-1, ::-1] + 0.5
    once = depth_si_rmse(other, depth).values["log"]
    assert depth_si_rmse(other * scale, depth * other_scale).values["log"] == pytest.approx(once, abs=1e-9)
    assert depth_si_rmse(depth, other).values["log"] == pytest.approx(once, abs=1e-9)  # nor which is which


def test_more_noise_is_worse_and_scale_is_nothing_on_a_scene_with_exact_depth():
    near = render("occluded", size=(24, 32), fps=6, frames=4).depth
    noise = np.random.default_rng(0).standard_normal(near.shape).astype(np.float32)
    results = [depth_si_rmse(near * np.exp(strength * noise), near) for strength in (0, 0.02, 0.1, 0.3)]
    assert float(results[0]) == results[0].values["log"] == 0
    assert [float(one) for one in results] == sorted({float(one) for one in results})
    assert [one.values["log"] for one in results] == sorted({one.values["log"] for one in results})
    tripled = depth_si_rmse(3 * near * np.exp(0.1 * noise), near)
    assert float(tripled) == pytest.approx(float(results[2]), rel=1e-5)


def test_by_hand():
    reference = np.array([[[2.0, 4.0, 6.0, 0.0]]])
    prediction = np.array([[[1.0, 1.0, 3.0, 9.0]]])  # the last pixel has no reference
    # medians 4 and 1, so 4, 4, 12 against 2, 4, 6
    assert float(depth_si_rmse(prediction, reference)) == pytest.approx(math.sqrt((4 + 0 + 36) / 3))


def test_an_even_number_of_pixels_takes_the_middle_of_two():
    reference = np.array([[[1.0, 2.0, 4.0, 8.0]]])
    # medians 3 and 1: 3, 3, 3, 3 against 1, 2, 4, 8
    assert float(depth_si_rmse(np.ones((1, 1, 4)), reference)) == pytest.approx(math.sqrt((4 + 1 + 1 + 25) / 4))


def test_the_cap_cuts_residuals_by_hand():
    reference, prediction = np.array([[[1.0, 1.0, 101.0]]]), np.ones((1, 1, 3))
    assert float(depth_si_rmse(prediction, reference)) == pytest.approx(math.sqrt(100**2 / 3))
    assert float(depth_si_rmse(prediction, reference, protocol="reference-v2")) == pytest.approx(math.sqrt(100 / 3))


@pytest.mark.parametrize("size", [(33, 40_000), (7, 11), (1, 1)])
def test_equals_numpy_written_out(size):
    """More pixels than a block, fewer, and one; some invalid."""
    rng = np.random.default_rng(size[0])
    reference = rng.random((2, *size), dtype=np.float32) + 0.01
    prediction = rng.random((2, *size), dtype=np.float32) * 3 + 0.01
    if size[0] > 1:
        reference[:, 0] = 0
        prediction[:, :, 0] = -1
    errors = []
    for own, other in zip(prediction, reference, strict=True):
        valid = (own > 0) & (other > 0)
        p, g = own[valid].astype(float), other[valid].astype(float)
        errors.append(math.sqrt(np.mean((g - np.median(g) / np.median(p) * p) ** 2)))
    assert float(depth_si_rmse(prediction, reference)) == pytest.approx(np.mean(errors), rel=1e-9, abs=1e-12)


@given(DEPTH, st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_scale_of_the_prediction_does_not_matter(depth, scale):
    other = depth[::-1, ::-1, ::-1] + 0.5
    assert float(depth_si_rmse(other * scale, depth)) == pytest.approx(float(depth_si_rmse(other, depth)), rel=1e-9)


@given(DEPTH, st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_error_has_the_reference_s_unit(depth, scale):
    other = depth[::-1, ::-1, ::-1] + 0.5
    once, scaled = float(depth_si_rmse(other, depth)), float(depth_si_rmse(other, depth * scale))
    assert scaled == pytest.approx(once * scale, rel=1e-9, abs=1e-9)


@given(DEPTH)
@settings(max_examples=25, deadline=None)
def test_a_scaled_copy_has_no_error(depth):
    result = depth_si_rmse(depth * 3, depth)
    assert 0 <= float(result) < 1e-10


@given(DEPTH, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_of_pixels_does_not_matter(depth, random):
    other = depth[::-1, ::-1, ::-1] + 0.5
    order = list(range(depth.shape[2]))
    random.shuffle(order)
    shuffled = depth_si_rmse(other[..., order], depth[..., order])
    assert float(shuffled) == pytest.approx(float(depth_si_rmse(other, depth)), rel=1e-9, abs=1e-12)


@given(DEPTH, st.data())
@settings(max_examples=25, deadline=None)
def test_a_mask_is_the_same_as_zeros_outside(depth, data):
    mask = data.draw(arrays.arrays(bool, depth.shape))
    assume(mask.any())
    other = depth[::-1, ::-1, ::-1] + 0.5
    masked, zeroed = depth_si_rmse(other, depth, mask), depth_si_rmse(other, np.where(mask, depth, 0))
    assert float(masked) == pytest.approx(float(zeroed), rel=1e-12, abs=1e-12)


def test_dead_frames_are_left_out_or_count_zero():
    reference = np.array([[[1.0, 2.0, 4.0]], [[0.0, 0.0, 0.0]]])
    prediction = np.ones((2, 1, 3))
    alone = float(depth_si_rmse(prediction[:1], reference[:1]))
    result = depth_si_rmse(prediction, reference)
    assert float(result) == alone
    assert (result.flags, result.detail["dead_frames"], result.detail["covered"]) == ((Flag.DEAD_FRAMES,), 1, 0.5)
    assert np.isnan(result.curves["depth_si_rmse"]).tolist() == [False, True]
    assert float(depth_si_rmse(prediction, reference, protocol="reference")) == alone / 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("side", ["prediction", "reference"])
def test_pixels_that_are_not_finite_are_left_out(value, side):
    maps = {"prediction": np.array([[[1.0, 2.0, 3.0]]]), "reference": np.array([[[2.0, 2.0, 5.0]]])}
    kept = {name: one[..., :2] for name, one in maps.items()}
    maps[side][0, 0, 2] = value
    assert float(depth_si_rmse(**maps)) == pytest.approx(float(depth_si_rmse(**kept)))


def test_infinity_ends_in_not_finite_where_the_reference_keeps_it():
    prediction, reference = np.array([[[1.0, 2.0, np.inf]]]), np.array([[[2.0, 2.0, 5.0]]])
    result = depth_si_rmse(prediction, reference, protocol="reference")
    assert (result.status, result.reason) == (Status.FAILED, Reason.NOT_FINITE)
    only = depth_si_rmse(np.full((1, 1, 3), np.inf), reference)
    assert only.reason is Reason.NO_VALID_DEPTH


def test_extreme_values_never_give_a_number_that_is_not_one():
    tiny, huge = np.full((1, 2, 2), 5e-324), np.full((1, 2, 2), 1e300)
    huge[0, 0, 0] = 1e290
    result = depth_si_rmse(tiny, huge)
    assert result.reason is Reason.NOT_FINITE


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4"])
def test_float_types(kind):
    reference = np.array([[[1.0, 2.0, 4.0]]]).astype(kind)
    assert float(depth_si_rmse(np.ones((1, 1, 3), kind), reference)) == pytest.approx(math.sqrt((1 + 0 + 4) / 3))


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (5, 3), (21, 33)])
@pytest.mark.parametrize("protocol", ["reference", "reference-v2", "corrected"])
def test_a_prediction_of_another_size_is_resized_whatever_its_shape(size, protocol):
    rng = np.random.default_rng(0)
    reference, prediction = rng.random((2, 9, 12)) + 0.1, rng.random((2, *size)) + 0.1
    result = depth_si_rmse(prediction, reference, protocol=protocol)
    assert result.flags == (Flag.RESIZED,)
    assert float(result) > 0


def test_the_meter_resizes_chunks_and_orders_frames_by_error():
    measure = load_protocol("depth_si_rmse", "corrected").measure
    rng = np.random.default_rng(1)
    reference, prediction = rng.random((5, 8, 8), dtype=np.float32) + 0.1, rng.random((5, 4, 4), dtype=np.float32) + 0.1
    reference[4] = 0
    meter = METRIC.meter(measure, StreamInfo(8, 8))
    worst = []
    for part in (slice(0, 2), slice(2, 5)):
        worst += meter.update({FRAMES: prediction[part]}, {FRAMES: reference[part]})
    whole = depth_si_rmse(prediction, reference)
    assert finish(METRIC, meter.counts(), load_protocol("depth_si_rmse", "corrected")).value == whole.value
    assert worst[:4] == (-whole.curves["depth_si_rmse"][:4]).tolist()
    assert worst[4] == math.inf  # a frame without a value is never the worst


@pytest.mark.parametrize("limit", [None, 4, 30])
def test_files_give_what_arrays_give(tmp_path, limit):
    rng = np.random.default_rng(2)
    reference, prediction = rng.random((20, 6, 7), dtype=np.float32), rng.random((17, 3, 5), dtype=np.float32)
    reference[3] = 0
    write_depth(tmp_path / "own.npz", prediction)
    write_depth(tmp_path / "other.npz", reference)
    protocol = load_protocol("depth_si_rmse", "corrected")
    counts, coverage = METRIC.measure_files(tmp_path / "own.npz", tmp_path / "other.npz", protocol.measure, limit=limit)
    found = coverage.annotate(finish(METRIC, counts, protocol))
    expected = depth_si_rmse(prediction[:limit], reference[:limit])
    assert (found.value, found.flags, found.detail) == (expected.value, expected.flags, expected.detail)


def test_a_broken_file_is_an_item_error(tmp_path):
    (tmp_path / "own.npz").write_bytes(b"")
    measure = load_protocol("depth_si_rmse", "corrected").measure
    with pytest.raises(ItemError, match=r"own\.npz"):
        METRIC.measure_files(tmp_path / "own.npz", tmp_path / "own.npz", measure, limit=None)


@pytest.mark.parametrize(
    "broken",
    [
        np.zeros((2, 4, 4), np.uint8),
        np.zeros((2, 4, 4), np.int64),
        np.zeros((2, 4, 4), complex),
        np.zeros((2, 4, 4, 1)),
        np.zeros((4, 4)),
        np.zeros((0, 4, 4)),
    ],
    ids=["uint8", "int64", "complex", "channel axis", "one map", "no frame"],
)
def test_other_arrays_are_refused(broken):
    good = np.ones((2, 4, 4))
    for pair in ((broken, good), (good, broken)):
        with pytest.raises(ValueError, match=r"prediction|reference"):
            depth_si_rmse(*pair)


@pytest.mark.parametrize("mask", [np.ones((2, 4, 4)), np.ones((2, 4, 5), bool), np.ones((1, 4, 4), bool), [[True]]])
def test_masks_that_do_not_fit_are_refused(mask):
    with pytest.raises(ValueError, match="mask"):
        depth_si_rmse(np.ones((2, 4, 4)), np.ones((2, 4, 4)), mask)


def test_lists_and_unknown_rules_are_refused():
    with pytest.raises(TypeError, match="list"):
        depth_si_rmse([1.0], np.ones((1, 1, 1)))
    with pytest.raises(InputError, match="average"):
        METRIC.decide([FrameError(1.0, 1.0)], {"dead_frames": "average", "infinities": "kept"})


def test_no_frames_is_no_score():
    assert METRIC.decide(DepthMeter({"resize": "nearest", "residual_cap": None}).counts(),
                         {"dead_frames": "zero", "infinities": "kept"}).reason is Reason.TOO_FEW_FRAMES  # fmt: skip
