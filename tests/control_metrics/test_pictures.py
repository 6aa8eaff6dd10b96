"""Pictures that show why a frame counts as it does, on cases that can be read by eye."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_metrics._bits import pack
from control_metrics.blur import METRIC as BLUR
from control_metrics.depth import METRIC as DEPTH
from control_metrics.edge import METRIC as EDGE
from control_metrics.mask import METRIC as MASK
from control_metrics.pictures import (
    BOTH,
    INVALID,
    ONLY_GENERATED,
    ONLY_REFERENCE,
    PALETTE,
    UNMATCHED,
    depth_pictures,
    edge_agreement,
    lowest_overlap,
)
from gen_eval.data.signal_files import write_depth, write_masks
from gen_eval.features.extraction import extract
from gen_eval.protocols import load_protocol


def measure(metric):
    return load_protocol(metric.name, "corrected").measure


def test_edges_have_one_colour_for_each_case():
    own, other = np.zeros((2, 4), np.uint8), np.zeros((2, 4), np.uint8)
    own[0, :2], other[0, 1:3] = 255, 255
    shown = edge_agreement(own, other)
    assert [tuple(pixel) for pixel in shown[0].tolist()] == [ONLY_GENERATED, BOTH, ONLY_REFERENCE, (0, 0, 0)]
    assert not shown[1].any()


def test_a_thin_line_is_still_seen_in_a_small_picture():
    maps = np.zeros((360, 640), np.uint8)
    maps[:, 320] = 255
    shown = edge_agreement(maps, maps)
    assert shown.shape == (108, 192, 3)
    assert shown.max() > 200


def test_edge_evidence_is_that_of_the_frame(make_clip):
    clip, features = make_clip(0, 3), EDGE.member_features(measure(EDGE))
    other = clip.copy()
    other[1] = 0
    chunks = [extract(features, one) for one in (other, clip)]
    (shown,) = EDGE.evidence(chunks, 1).values()
    assert {tuple(pixel) for pixel in shown.reshape(-1, 3).tolist()} == {(0, 0, 0), ONLY_REFERENCE}
    (same,) = EDGE.evidence(chunks, 2).values()
    assert {tuple(pixel) for pixel in same.reshape(-1, 3).tolist()} == {(0, 0, 0), BOTH}


def test_blurred_frames_are_those_that_are_compared(make_clip):
    clip = make_clip(0, 2, 16, 24)
    chunks = [extract(BLUR.member_features(measure(BLUR)), clip), extract(BLUR.reference_features(measure(BLUR)), clip)]
    found = BLUR.evidence(chunks, 1)
    assert set(found) == set(BLUR.evidence_words)
    for picture in found.values():
        assert picture.shape == clip.shape[1:]
        assert picture.dtype == np.uint8
    np.testing.assert_array_equal(found["blurred"], found["blurred_reference"])


def test_depth_of_the_frame_with_the_largest_error(tmp_path):
    rng = np.random.default_rng(0)
    reference = rng.uniform(1, 5, (9, 12, 16)).astype(np.float32)
    member = 3 * reference
    member[6, :6] *= 2
    reference[6, 0, 0] = np.nan
    write_depth(tmp_path / "own.npz", member)
    write_depth(tmp_path / "other.npz", reference)
    files = (tmp_path / "own.npz", tmp_path / "other.npz", measure(DEPTH))
    counts, _ = DEPTH.measure_files(*files, limit=None)
    frame, pictures = DEPTH.file_evidence(counts, *files)
    assert frame == 6
    assert set(pictures) == set(DEPTH.evidence_words)
    assert all(picture.shape == (12, 16, 3) for picture in pictures.values())
    assert tuple(pictures["depth_error"][0, 0]) == INVALID
    bright = pictures["depth_error"].astype(int).sum(axis=2)
    assert bright[:6].mean() != pytest.approx(bright[6:].mean(), rel=0.05), "the error is in one half"
    counts, _ = DEPTH.measure_files(files[0], files[0], files[2], limit=None)
    dead = [replace(counts[0], finite=None)] * 3
    assert DEPTH.file_evidence(dead, *files) == (None, {})


def test_maps_without_a_valid_pixel_have_no_picture():
    assert depth_pictures(np.zeros((2, 2)), np.ones((2, 2))) == {}


@pytest.mark.parametrize(
    ("kind", "unit"), [(np.float32, 2.0**-100), (np.float32, 2.0**120), (np.float64, 2.0**-400), (np.float64, 2.0**400)]
)
def test_maps_in_any_unit_give_the_same_pictures(tmp_path, kind, unit):
    maps = np.random.default_rng(0).random((2, 2, 8, 8)).astype(np.float32) + np.float32(0.5)
    shown = []
    for place, factor in enumerate((1.0, unit)):
        own, other = files = [tmp_path / f"{side}{place}.npz" for side in range(2)]
        for file, clip in zip(files, maps, strict=True):
            np.savez(file, data=(clip * kind(factor)).astype(kind))
        counts, _ = DEPTH.measure_files(own, other, measure(DEPTH), limit=None)
        shown.append(DEPTH.file_evidence(counts, own, other, measure(DEPTH)))
    assert shown[0][0] == shown[1][0]
    for role, picture in shown[0][1].items():
        assert np.array_equal(picture, shown[1][1][role]), role
    assert set(shown[0][1]) == {"depth", "depth_reference", "depth_error"}


def test_maps_of_far_apart_units_give_pictures_without_a_warning():
    small, large = np.full((4, 4), 5e-324), np.full((4, 4), 1e308)
    shown = depth_pictures(large, small)
    assert {picture.shape for picture in shown.values()} == {(4, 4, 3)}
    assert shown["depth"].max() == shown["depth_error"].max() > shown["depth_reference"].max()


def boxes(*spans, frames=4, size=(5, 7)):
    """A mask that is a box of columns in each frame."""
    mask = np.zeros((frames, *size), np.bool_)
    for frame, (left, right) in enumerate(spans):
        mask[frame, 1:4, left:right] = True
    return mask


def test_masks_of_the_frame_where_matched_classes_overlap_least(tmp_path):
    still = boxes(*[(0, 3)] * 4)
    moved = boxes((0, 3), (0, 3), (2, 5), (1, 4))
    alone = boxes(*[(6, 7)] * 4)
    write_masks(tmp_path / "other.masks.json", [("car", still), ("tree", alone)])
    write_masks(tmp_path / "own.masks.json", [("a car", moved)])
    files = (tmp_path / "own.masks.json", tmp_path / "other.masks.json", measure(MASK))
    counts, _ = MASK.measure_files(*files, limit=None)
    frame, pictures = MASK.file_evidence(counts, *files)
    assert frame == 2
    assert set(pictures) == set(MASK.evidence_words)
    assert [tuple(pixel) for pixel in pictures["masks"][2].tolist()] == [
        (0, 0, 0), (0, 0, 0), PALETTE[0], PALETTE[0], PALETTE[0], (0, 0, 0), (0, 0, 0)
    ]  # fmt: skip
    assert [tuple(pixel) for pixel in pictures["masks_reference"][2].tolist()] == [
        PALETTE[0], PALETTE[0], PALETTE[0], (0, 0, 0), (0, 0, 0), (0, 0, 0), UNMATCHED
    ]  # fmt: skip
    result = MASK.decide(counts, load_protocol("mask_miou", "corrected").decide)
    assert result.detail["unmatched"] == {"reference": ["tree"], "prediction": []}
    short = MASK.measure_files(*files, limit=2)[0]
    assert MASK.file_evidence(short, *files)[0] < 2, "only frames that were compared"


def test_without_a_matched_class_the_fullest_frame_is_shown(tmp_path):
    write_masks(tmp_path / "other.masks.json", [("car", boxes((0, 1), (0, 3), (0, 1), (0, 1)))])
    write_masks(tmp_path / "own.masks.json", [], size=(4, 5, 7))
    files = (tmp_path / "own.masks.json", tmp_path / "other.masks.json", measure(MASK))
    counts, _ = MASK.measure_files(*files, limit=None)
    frame, pictures = MASK.file_evidence(counts, *files)
    assert frame == 1
    assert not pictures["masks"].any()
    write_masks(tmp_path / "other.masks.json", [], size=(4, 5, 7))
    counts, _ = MASK.measure_files(*files, limit=None)
    assert MASK.file_evidence(counts, *files) == (None, {})


def test_classes_that_lie_on_each_other_have_the_same_one_on_top_on_both_sides():
    everywhere = pack(np.ones((1, 2, 3), np.bool_))
    _, pictures = lowest_overlap([everywhere] * 3, [everywhere] * 2, [(0, 1), (2, 0)], (1, 2, 3))
    assert {tuple(pixel) for side in pictures.values() for pixel in side.reshape(-1, 3).tolist()} == {PALETTE[0]}


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 9), st.integers(1, 9))
def test_packed_frames_are_counted_as_plain_ones(seed, frames, height, width):
    rng = np.random.default_rng(seed)
    sides = rng.random((2, frames, height, width)) < 0.4
    frame, pictures = lowest_overlap([pack(sides[0])], [pack(sides[1])], [(0, 0)], (frames, height, width))
    shared, united = ((rule(*sides)).sum(axis=(1, 2)) for rule in (np.logical_and, np.logical_or))
    overlaps = [one / all_ if all_ else np.inf for one, all_ in zip(shared, united, strict=True)]
    if np.isfinite(overlaps).any():
        assert overlaps[frame] == min(overlaps)
    np.testing.assert_array_equal(pictures["masks"].any(axis=2), sides[1][frame])


def test_colours_are_those_of_the_docs_and_differ():
    assert len(PALETTE) == len(set(PALETTE)) == 23
