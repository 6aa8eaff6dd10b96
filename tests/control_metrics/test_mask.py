"""Mask mIoU: goldens, tiny cases, properties, files."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import linear_sum_assignment

from control_metrics import mask_miou
from control_metrics._bits import blank, count_pairs, merge, pack
from control_metrics.mask import METRIC
from gen_eval.data.signal_files import write_masks
from gen_eval.features import StreamInfo
from gen_eval.features.arrays import finish
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, ItemError, Reason, Status

VARIANTS = {"reference": "expect", "reference-v2": "reference_v2_drop_empty"}
SIDE = st.lists(
    st.tuples(st.sampled_from(["car", "tree", "dog"]), arrays.arrays(bool, (2, 3, 4))), min_size=1, max_size=4
)


@pytest.fixture(scope="module")
def sides(golden):
    """Objects of both sides of a golden case."""
    packed = golden("seg_masks.npz")

    def unpack(case, side):
        for number, item in enumerate(case[side]):
            frames, height, width = item["shape"]
            bits = np.unpackbits(packed[f"{case['id']}__{side}__{number}"], axis=-1)[:, : height * width]
            yield item["phrase"], bits.reshape(frames, height, width).astype(bool)

    return lambda case: (list(unpack(case, "pred")), list(unpack(case, "gt")))


@pytest.mark.parametrize("protocol", VARIANTS)
def test_golden_reference(golden, sides, protocol):
    cases = golden("seg_metrics.json")["cases"]
    assert len(cases) == 21
    for case in cases:
        expected = case[VARIANTS[protocol]]["task_level"]
        result = mask_miou(*sides(case), protocol=protocol, max_frames=case["max_frames"])
        if "raises" in expected:
            assert (result.status, result.reason) == (Status.FAILED, Reason.REFERENCE_STOPS), case["id"]
            assert result.detail["reference_exception"] == expected["raises"], case["id"]
        else:
            assert result.value == pytest.approx(expected["m_iou"], abs=1e-6), case["id"]
            assert result.values["recall"] == pytest.approx(expected["recall"], abs=1e-6), case["id"]


@pytest.mark.parametrize("matching", ["hungarian", "row_maximum"])
@pytest.mark.parametrize("protocol", VARIANTS)
def test_golden_of_both_matchings(golden, sides, protocol, matching):
    """The function that is called with a side without objects raises IndexError; the task that calls it takes 0."""
    key = {"hungarian": "hungarian", "row_maximum": "max"}[matching]
    shipped = load_protocol("mask_miou", protocol)
    for case in golden("seg_metrics.json")["cases"]:
        expected = case[VARIANTS[protocol]][key]
        if expected == {"raises": "IndexError"}:
            expected = {"m_iou": 0.0, "recall": 0.0}
        if expected == {"raises": "AssertionError"}:
            with pytest.raises(ItemError) as stopped:
                METRIC.measure_masks(*sides(case), shipped.measure, case["max_frames"])
            assert stopped.value.detail["reference_exception"] == "AssertionError"
            continue
        counts, _ = METRIC.measure_masks(*sides(case), shipped.measure, case["max_frames"])
        result = METRIC.decide(counts, {**shipped.decide, "matching": matching})
        if "raises" in expected:
            assert result.detail["reference_exception"] == expected["raises"], case["id"]
            continue
        assert result.value == pytest.approx(expected["m_iou"], abs=1e-6), case["id"]
        assert result.values["recall"] == pytest.approx(expected["recall"], abs=1e-6), case["id"]


def test_row_maximum_by_hand_and_by_a_protocol_of_ones_own(box_mask, tmp_path):
    # both halves of the reference overlap one class of ours most: 50 / 100 each
    reference = [("left", box_mask(0, 10, 0, 5)), ("right", box_mask(0, 10, 5, 10))]
    prediction = [("all", box_mask(0, 10, 0, 10)), ("dot", box_mask(0, 1, 0, 1))]
    path = tmp_path / "own.yaml"
    path.write_text("mask_miou: {base: corrected, decide: {matching: row_maximum}}")
    result, usual = mask_miou(prediction, reference, protocol=str(path)), mask_miou(prediction, reference)
    assert (result.value, result.values["recall"], result.values["all"]) == (0.5, 1.0, 0.5)
    assert [pair["prediction"] for pair in result.detail["pairs"]] == ["all", "all"]
    assert result.detail["unmatched"] == {"reference": [], "prediction": ["dot"]}
    assert (usual.value, usual.values["recall"], usual.values["all"]) == (0.5, 0.5, 0.25)
    path.write_text("mask_miou: {base: corrected, decide: {matching: greedy}}")
    with pytest.raises(InputError, match="'greedy'; expected hungarian or row_maximum"):
        load_protocol("mask_miou", str(path))


def test_golden_class_iou_matrices(golden, sides):
    measure = load_protocol("mask_miou", "reference").measure
    for case in golden("seg_metrics.json")["cases"]:
        if "class_iou_matrix_gt_rows" in case["expect"]:
            counts, _ = METRIC.measure_masks(*sides(case), measure, case["max_frames"])
            assert counts.iou("float32").tolist() == case["expect"]["class_iou_matrix_gt_rows"], case["id"]


def test_golden_corrected(golden, sides):
    for case in golden("seg_metrics.json")["cases"]:
        expected = case["corrected"]
        result = mask_miou(*sides(case), max_frames=case["max_frames"])
        assert list(result.flags) == expected.get("flags", []), case["id"]
        if expected["mask_miou"] is None:
            assert (result.value, result.status, result.reason) == (None, expected["status"], expected["reason"])
            continue
        found = {"mask_miou": result.value, **{f"mask_miou_{name}": one for name, one in result.values.items()}}
        found["recall"] = found.pop("mask_miou_recall")
        for name in ("mask_miou", "recall", "mask_miou_all", "mask_miou_same_phrase"):
            assert found[name] == pytest.approx(expected[name], abs=1e-6), (case["id"], name)


def test_by_hand(box_mask):
    # car: 4 x 6 against 4 x 4 inside it, IoU 16 / 24; tree: alone on each side
    reference = [("car", box_mask(0, 4, 0, 6)), ("tree", box_mask(8, 10, 0, 2))]
    prediction = [("bus", box_mask(0, 4, 0, 4)), ("tree", box_mask(8, 10, 8, 10))]
    result = mask_miou(prediction, reference)
    assert float(result) == pytest.approx(2 / 3)
    assert result.values == pytest.approx({"recall": 0.5, "all": 1 / 3, "same_phrase": 0.0})
    assert result.detail["pairs"] == [
        {"reference": "car", "prediction": "bus", "iou": pytest.approx(2 / 3), "kept": True},
        {"reference": "tree", "prediction": "tree", "iou": 0.0, "kept": False},
    ]


def test_iou_is_over_all_frames_and_not_a_mean_of_frames():
    reference, prediction = np.zeros((2, 1, 10), bool), np.zeros((2, 1, 10), bool)
    reference[0, 0, :8] = prediction[0, 0, :8] = True
    reference[1, 0, 0] = True
    assert float(mask_miou([("a", prediction)], [("a", reference)])) == pytest.approx(8 / 9)


def test_one_tenth_exactly_is_not_kept_and_a_pixel_more_is():
    reference, prediction = np.zeros((1, 1, 20), bool), np.zeros((1, 1, 20), bool)
    reference[..., :10] = True
    prediction[..., :1] = True
    for protocol in ("corrected", "reference"):
        assert mask_miou([("a", prediction)], [("a", reference)], protocol=protocol).value == 0.0
        prediction[..., 1] = True
        assert float(mask_miou([("a", prediction)], [("a", reference)], protocol=protocol)) == pytest.approx(0.2)
        prediction[..., 1] = False


def test_a_threshold_is_compared_as_the_fraction_it_is_written_as():
    """3/10 is not above 0.3, though it is in floating point."""
    reference, prediction = np.zeros((1, 1, 10), bool), np.zeros((1, 1, 10), bool)
    reference[...] = True
    prediction[..., :3] = True
    protocol = load_protocol("mask_miou", "corrected")
    counts, _ = METRIC.measure_masks([("a", prediction)], [("a", reference)], protocol.measure)
    assert METRIC.decide(counts, {**protocol.decide, "threshold": 0.3}).value == 0.0
    assert METRIC.decide(counts, {**protocol.decide, "threshold": 0.29}).value == pytest.approx(0.3)


def literal(prediction, reference):
    """The reference rules as loops over whole boolean maps."""
    classes = []
    for side in (reference, prediction):
        labels = np.zeros(side[0][1].shape, np.uint8)
        for number, (_, mask) in enumerate(side, start=1):
            labels[mask] = number
        unions = {}
        for number, (phrase, _) in enumerate(side, start=1):
            unions[phrase] = unions.get(phrase, np.zeros(labels.shape, bool)) | (labels == number)
        classes.append(list(unions.values()))
    iou = np.array([[(a & b).sum() / max((a | b).sum(), 1) for b in classes[1]] for a in classes[0]], dtype=np.float32)
    matched = iou[linear_sum_assignment(iou, maximize=True)]
    kept = matched[matched > np.float32(0.1)]
    return (kept.mean() if len(kept) else 0.0), len(kept) / len(matched)


@given(SIDE, SIDE)
@settings(max_examples=50, deadline=None)
def test_reference_equals_the_rules_written_out(prediction, reference):
    result = mask_miou(prediction, reference, protocol="reference")
    value, recall = literal(prediction, reference)
    assert (result.value, result.values["recall"]) == pytest.approx((value, recall), abs=1e-6)


@given(SIDE, SIDE, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_of_objects_does_not_matter(prediction, reference, random):
    before = mask_miou(prediction, reference)
    shuffled = [list(prediction), list(reference)]
    for side in shuffled:
        random.shuffle(side)
    after = mask_miou(*shuffled)
    assert (after.value, after.values, after.reason) == (before.value, before.values, before.reason)


@given(SIDE)
@settings(max_examples=30, deadline=None)
def test_a_segmentation_equals_itself(side):
    result = mask_miou(side, side)
    if not any(mask.any() for _, mask in side):
        assert result.reason is Reason.NO_REFERENCE_OBJECTS
        return
    assert (result.value, result.flags) == (1.0, ())
    assert set(result.values.values()) == {1.0}


@given(SIDE, SIDE)
@settings(max_examples=30, deadline=None)
def test_bounded_and_symmetric_in_value_and_recall(prediction, reference):
    there, back = mask_miou(prediction, reference), mask_miou(reference, prediction)
    for result in (there, back):
        assert result.value is None or 0 <= result.value <= 1
        assert all(one is None or 0 <= one <= 1 for one in result.values.values())
    if there.value and back.value:
        # several matchings may have the same sum; the sum itself is one number
        sums = [sum(pair["iou"] for pair in result.detail["pairs"]) for result in (there, back)]
        assert sums[0] == pytest.approx(sums[1])


@given(SIDE, SIDE)
@settings(max_examples=20, deadline=None)
def test_phrases_only_group(prediction, reference):
    renamed = [(f"other {phrase}", mask) for phrase, mask in prediction]
    before, after = mask_miou(prediction, reference), mask_miou(renamed, reference)
    assert (after.value, after.values.get("recall")) == (before.value, before.values.get("recall"))
    assert not after.values.get("same_phrase")


@pytest.mark.parametrize("after", [(1, 1), (3, 9), (40, 52), (64, 30), (31, 77)])
@pytest.mark.parametrize("before", [(30, 39), (7, 5), (80, 104)])
def test_masks_are_resized_as_opencv_does(before, after):
    mask = np.random.default_rng(0).random((2, *before)) < 0.5
    own = np.stack([cv2.resize(frame.astype(np.uint8), after[::-1], interpolation=cv2.INTER_NEAREST) for frame in mask])
    result = mask_miou([("a", mask)], [("a", own.astype(bool))], protocol="reference")
    expected = 1.0 if own.any() else 0.0
    assert result.value == expected
    assert (Flag.RESIZED in result.flags) == (before != after)


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 7, 9), (2, 8, 8), (3, 5, 13), (2, 600, 900)])
def test_packed_pairs_are_counted_like_plain_ones(size):
    rng = np.random.default_rng(sum(size))
    left, right = [rng.random(size) < 0.3 for _ in range(3)], [rng.random(size) < 0.6 for _ in range(2)]
    words = [[pack(mask) for mask in side] for side in (left, right)]
    shared, own, other = count_pairs(*words)
    assert shared.tolist() == [[int((a & b).sum()) for b in right] for a in left]
    assert (own.tolist(), other.tolist()) == ([int(a.sum()) for a in left], [int(b.sum()) for b in right])


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 7, 9), (2, 300, 500)])
def test_merging_leaves_out_what_is_taken(size):
    rng = np.random.default_rng(sum(size))
    first, second = rng.random(size) < 0.3, rng.random(size) < 0.3
    into, taken = pack(second & ~second), pack(first)
    merge(second, into, taken)
    assert np.array_equal(into, pack(second & ~first))
    assert np.array_equal(taken, pack(first | second))
    assert np.array_equal(pack(second.astype(np.uint8) * 255), pack(second))
    assert not blank(2, second.size).any()


def test_overlaps(box_mask):
    reference = [("road", box_mask(0, 10, 0, 10)), ("car", box_mask(2, 6, 2, 6))]
    assert mask_miou(reference[::-1], reference).value == 1.0
    changed = mask_miou(reference[::-1], reference, protocol="reference")
    assert changed.value == pytest.approx(84 / 100)  # the road of one side holds the car, that of the other does not
    assert changed.values["recall"] == 0.5


@pytest.mark.parametrize("protocol", ["reference", "reference-v2", "corrected"])
def test_many_objects(box_mask, protocol):
    mask = box_mask(0, 1, 0, 1, (1, 2, 2))
    most = [("a", mask)] * 255
    assert mask_miou(most, most, protocol=protocol).value == 1.0
    result = mask_miou([*most, ("a", mask)], most, protocol=protocol)
    if protocol == "corrected":
        assert result.value == 1.0
    else:
        assert (result.reason, result.detail["objects"]) == (Reason.REFERENCE_STOPS, 256)


def test_a_limit_cuts_both_sides():
    mask = np.ones((5, 2, 2), bool)
    late = mask.copy()
    late[2:] = False
    result = mask_miou([("a", late)], [("a", mask)], max_frames=2)
    assert (result.value, result.flags) == (1.0, ())
    assert result.detail["frames"] == {"member": 2, "reference": 2, "compared": 2}


def test_files_give_what_arrays_give(tmp_path, box_mask):
    reference = [("road", box_mask(0, 10, 0, 10)), ("car", box_mask(2, 6, 2, 6)), ("car", box_mask(7, 9, 7, 9))]
    prediction = [("car", box_mask(3, 7, 2, 6)), ("road", box_mask(0, 10, 0, 7))]
    write_masks(tmp_path / "own.masks.json", prediction)
    write_masks(tmp_path / "other.masks.json", reference)
    for name in ("reference", "reference-v2", "corrected"):
        protocol = load_protocol("mask_miou", name)
        counts, coverage = METRIC.measure_files(
            tmp_path / "own.masks.json", tmp_path / "other.masks.json", protocol.measure, limit=121
        )
        found = coverage.annotate(finish(METRIC, counts, protocol))
        expected = mask_miou(prediction, reference, protocol=name)
        assert (found.value, found.values, found.detail) == (expected.value, expected.values, expected.detail)


def test_a_short_file_stops_the_reference_and_gives_a_prefix_otherwise(tmp_path, box_mask):
    write_masks(tmp_path / "own.masks.json", [("a", box_mask(0, 3, 0, 3, (2, 5, 5)))])
    write_masks(tmp_path / "other.masks.json", [("a", box_mask(0, 3, 0, 3, (3, 5, 5)))])
    files = tmp_path / "own.masks.json", tmp_path / "other.masks.json"
    with pytest.raises(ItemError) as stopped:
        METRIC.measure_files(*files, load_protocol("mask_miou", "reference").measure, limit=121)
    assert stopped.value.reason is Reason.REFERENCE_STOPS
    _, coverage = METRIC.measure_files(*files, load_protocol("mask_miou", "corrected").measure, limit=121)
    assert coverage.flags == (Flag.SHORT_CLIP,)


def test_files_without_objects(tmp_path, box_mask):
    write_masks(tmp_path / "none.masks.json", [], (2, 10, 10))
    write_masks(tmp_path / "one.masks.json", [("a", box_mask(0, 3, 0, 3))])
    protocol = load_protocol("mask_miou", "corrected")
    for own, other, flags, reason in (("none", "one", (Flag.NO_DETECTIONS,), None),
                                      ("one", "none", (), Reason.NO_REFERENCE_OBJECTS),
                                      ("none", "none", (), Reason.NO_REFERENCE_OBJECTS)):  # fmt: skip
        counts, coverage = METRIC.measure_files(
            tmp_path / f"{own}.masks.json", tmp_path / f"{other}.masks.json", protocol.measure, limit=None
        )
        result = coverage.annotate(finish(METRIC, counts, protocol))
        assert (result.flags, result.reason) == (flags, reason)


@pytest.mark.parametrize(
    "broken",
    [np.ones((2, 3, 4)), np.ones((2, 3, 4), np.uint8), np.ones((3, 4), bool), np.ones((0, 3, 4), bool), [[[True]]]],
    ids=["float", "uint8", "one frame", "no frame", "list"],
)
def test_other_masks_are_refused(broken):
    good = [("a", np.ones((2, 3, 4), bool))]
    for pair in ((good, [("b", broken)]), ([("b", broken)], good)):
        with pytest.raises(ValueError, match=r"of bool, not"):
            mask_miou(*pair)


@pytest.mark.parametrize("frames", [np.ones((2, 3, 4, 3), np.uint8), np.ones((2, 3, 4), bool)], ids=["frames", "mask"])
def test_arrays_in_place_of_objects_are_named(frames):
    good = [("a", np.ones((2, 3, 4), bool))]
    for pair in ((good, frames), (frames, good), (frames, frames)):
        with pytest.raises(TypeError, match=r"list of pairs \(phrase, mask\), not an array \(2, 3, 4"):
            mask_miou(*pair)


def test_masks_of_one_side_must_agree_and_limits_be_positive():
    mixed = [("a", np.ones((2, 3, 4), bool)), ("b", np.ones((2, 3, 5), bool))]
    with pytest.raises(ValueError, match=r"\(2, 3, 5\)"):
        mask_miou(mixed, mixed[:1])
    with pytest.raises(ValueError, match="max_frames"):
        mask_miou(mixed[:1], mixed[:1], max_frames=0)


def test_unknown_rules_are_refused_and_there_is_no_meter(box_mask):
    protocol = load_protocol("mask_miou", "corrected")
    side = [("a", box_mask(0, 1, 0, 1))]
    counts, _ = METRIC.measure_masks(side, side, protocol.measure)
    with pytest.raises(InputError, match="skip"):
        METRIC.decide(counts, {**protocol.decide, "nothing": "skip"})
    with pytest.raises(NotImplementedError, match="measure_masks"):
        METRIC.meter(protocol.measure, StreamInfo(1, 1))
