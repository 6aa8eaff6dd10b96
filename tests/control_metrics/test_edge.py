"""Edge F1: goldens, tiny cases, properties."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from control_metrics import edge_f1
from control_metrics.edge import METRIC, EdgeCounts, EdgeResult, canny_parameters, count_edges, edge_feature, edge_maps
from gen_eval.features import StreamInfo
from gen_eval.features.alignment import resize_frames
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, ItemError, Reason, Status

MAPS = ["same_size", "pred_smaller", "pred_larger"]
CLIP = st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 12)).flatmap(
    lambda size: arrays.arrays(np.uint8, (*size, 3), elements=st.sampled_from([0, 90, 255]))
)


def numbers(result):
    return result.value, result.precision, result.recall


@pytest.mark.parametrize(
    ("protocol", "key"), [("reference", "expect"), ("reference-v2", "reference_v2_gray_canny")], ids=["rgb", "gray"]
)
def test_golden_reference(golden, protocol, key):
    clips = golden("clips.npz")
    for case in golden("pixel_metrics.json")["cases"]:
        expected = [case[key][f"canny_{name}"] for name in ("f1_score", "precision", "recall")]
        result = edge_f1(clips[case["pred"]], clips[case["gt"]], protocol=protocol)
        if expected == [None, None, None]:
            assert (result.status, result.reason) == (Status.UNDEFINED, Reason.REFERENCE_UNSET), case["id"]
            assert numbers(result) == (None, None, None)
        else:
            assert numbers(result) == pytest.approx(expected, abs=1e-12), case["id"]


def test_golden_corrected(golden):
    clips = golden("clips.npz")
    for case in golden("pixel_metrics.json")["cases"]:
        expected = case["corrected"]
        result = edge_f1(clips[case["pred"]], clips[case["gt"]])
        if "reason" in expected:
            assert (result.status, result.reason) == (expected["status"], expected["reason"])
            continue
        wanted = tuple(expected[f"edge_{name}"] for name in ("f1", "precision", "recall"))
        assert [one is None for one in numbers(result)] == [one is None for one in wanted], case["id"]
        for own, other in zip(numbers(result), wanted, strict=True):
            assert own == pytest.approx(other, abs=1e-12), case["id"]
        assert list(result.flags) == expected.get("edge_flags", []), case["id"]
        assert result.detail["covered"] == expected["covered"]


def test_golden_edge_counts_of_each_frame(golden):
    clips = golden("clips.npz")
    edges = edge_feature(load_protocol("edge_f1", "reference").measure)
    for case in golden("pixel_metrics.json")["cases"]:
        real, own = clips[case["gt"]], clips[case["pred"]]
        aligned = resize_frames(own[: len(real)], real.shape[1:3], "by_height")
        assert list(aligned.shape) == case["expect"]["pred_resized_shape"], case["id"]
        for side, frames in (("gt", real), ("pred", aligned)):
            found = [int((one > 0).sum()) for one in edges(frames)]
            assert found == case["edge_counts"][f"{side}_per_frame"], (case["id"], side)


@pytest.mark.parametrize("case", MAPS)
def test_golden_edge_maps_bit_for_bit(golden, golden_cases, case):
    clips, maps, named = golden("clips.npz"), golden("pixel_maps.npz"), golden_cases("pixel_metrics.json", case)
    canny = canny_parameters(load_protocol("edge_f1", "reference").measure)
    assert np.array_equal(np.packbits(edge_maps(clips[named["gt"]], **canny), axis=-1), maps[f"{case}__gt_edges"])
    if case == "same_size":
        own = edge_maps(clips[named["pred"]], **canny)
        assert np.array_equal(np.packbits(own, axis=-1), maps[f"{case}__pred_edges"])
    else:
        first = edge_maps(maps[f"{case}__pred_resized_frame0"][None], **canny)
        assert np.array_equal(np.packbits(first[0], axis=-1), maps[f"{case}__pred_edges"][0])
    result = METRIC.decide(counted(maps[f"{case}__pred_edges"], maps[f"{case}__gt_edges"]), {"no_edges": "unset"})
    assert result.value == pytest.approx(named["expect"]["canny_f1_score"], abs=1e-12)


def counted(own, other):
    """Counts from maps that are packed along their width."""
    own, other = (np.unpackbits(maps, axis=-1) for maps in (own, other))
    counts = EdgeCounts(own.shape[1] * own.shape[2])
    counts.frames.extend(map(tuple, count_edges(own, other).tolist()))
    return counts


def test_by_hand():
    own = np.array([[[1, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]], np.uint8)
    other = np.array([[[1, 0, 0, 1], [1, 0, 0, 0]], [[0, 1, 0, 0], [0, 0, 0, 0]]], np.uint8)
    counts = EdgeCounts(8, list(map(tuple, count_edges(own, other).tolist())))
    result = METRIC.decide(counts, {"no_edges": "defined"})
    # 2 in both, 3 of ours, 4 of the reference
    assert numbers(result) == pytest.approx((2 * 2 / 7, 2 / 3, 2 / 4))
    assert {name: result.detail[name] for name in ("tp", "fp", "fn", "pixels")} == {
        "tp": 2, "fp": 1, "fn": 2, "pixels": 16,
    }  # fmt: skip
    np.testing.assert_allclose(result.curves["edge_f1"], [2 / 3, 0.0])


def test_frames_are_pooled_and_not_averaged():
    counts = EdgeCounts(100, [(10, 10, 10), (0, 1, 1)])
    assert METRIC.decide(counts, {"no_edges": "defined"}).value == pytest.approx(10 / 11)


def test_a_frame_without_edges_has_no_value_of_its_own_and_is_never_the_worst(noise):
    edges = edge_feature(load_protocol("edge_f1", "corrected").measure)
    clip = noise(2)
    clip[1] = 7
    meter = METRIC.meter(load_protocol("edge_f1", "corrected").measure, StreamInfo(24, 30))
    assert meter.update({edges: edges(clip)}, {edges: edges(clip)}) == [1.0, math.inf]
    result = edge_f1(clip, clip)
    assert result.flags == ()
    assert np.isnan(result.curves["edge_f1"]).tolist() == [False, True]


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (2, 8, 8), (4, 16, 24), (1, 3, 64)])
def test_maps_are_counted_like_booleans(shape):
    rng = np.random.default_rng(sum(shape))
    own, other = rng.random(shape) < 0.4, rng.random(shape) < 0.4
    found = count_edges(own.astype(np.uint8) * 255, other.astype(np.uint8) * 255)
    expected = [(both.sum(), one.sum(), two.sum()) for both, one, two in zip(own & other, own, other, strict=True)]
    assert found.tolist() == [list(map(int, row)) for row in expected]


@given(CLIP)
@settings(max_examples=25, deadline=None)
def test_a_clip_equals_itself(clip):
    assert numbers(edge_f1(clip, clip)) == (1.0, 1.0, 1.0)


@given(CLIP, st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_exchanging_the_clips_exchanges_precision_and_recall(clip, seed):
    other = np.random.default_rng(seed).choice(np.array([0, 90, 255], np.uint8), clip.shape)
    there, back = edge_f1(clip, other), edge_f1(other, clip)
    assert there.value == pytest.approx(back.value, abs=1e-15)
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert 0 <= there.value <= 1


def test_gray_and_colour_edges_differ_where_only_a_channel_changes():
    clip = np.zeros((1, 16, 16, 3), np.uint8)
    clip[:, :, 8:, 2] = 140  # blue is little of the gray picture
    colour, gray = (
        edge_maps(clip, **canny_parameters(load_protocol("edge_f1", name).measure))
        for name in ("corrected", "reference-v2")
    )
    assert colour.any()
    assert not gray.any()
    assert np.array_equal(colour[0], cv2.Canny(clip[0], 100, 200))


@pytest.mark.parametrize("side", range(1, 8))
def test_small_sides(side):
    clip = np.random.default_rng(side).integers(0, 256, (1, side, 9, 3), dtype=np.uint8)
    for one in (clip, clip.swapaxes(1, 2).copy()):
        assert float(edge_f1(one, one)) == 1.0


def test_results_without_a_value_have_neither_part(golden):
    clips = golden("clips.npz")
    result = edge_f1(clips["a_wide"], clips["a_gt"])
    assert isinstance(result, EdgeResult)
    assert numbers(result) == (None, None, None)
    with pytest.raises(ItemError, match="120x48"):
        float(result)


def test_only_edges_is_unset_in_the_reference_and_counted_otherwise():
    counts = EdgeCounts(4, [(2, 4, 2)])
    assert METRIC.decide(counts, {"no_edges": "unset"}).reason is Reason.REFERENCE_UNSET
    assert numbers(METRIC.decide(counts, {"no_edges": "defined"})) == pytest.approx((2 / 3, 0.5, 1.0))


def test_no_frames_is_no_score():
    assert METRIC.decide(EdgeCounts(4), {"no_edges": "defined"}).reason is Reason.TOO_FEW_FRAMES


def test_unknown_rules_are_refused(noise):
    with pytest.raises(InputError, match="hsv"):
        edge_maps(noise(1), low=100, high=200, aperture=3, l2_gradient=False, picture="hsv")
    with pytest.raises(InputError, match="one"):
        METRIC.decide(EdgeCounts(4), {"no_edges": "one"})


def test_one_side_flag(noise):
    flat = np.zeros_like(noise(2))
    assert edge_f1(flat, noise(2)).flags == (Flag.NO_EDGES_ONE_SIDE,)


def test_a_float_clip_is_refused(noise):
    with pytest.raises(ValueError, match="float64"):
        edge_f1(noise(1) / 255, noise(1))
