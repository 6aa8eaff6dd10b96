"""Depth and mask files written as frames come: content, equal bytes, nothing left behind."""

import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from control_metrics.segmentation_file import read_segmentation
from control_metrics.signals import open_depth
from gen_eval.data.signal_files import DepthWriter, MasksWriter, masks_document, write_depth


def read(path):
    with open_depth(path) as file:
        return np.concatenate(list(file.chunks(3)))


def maps(frames=7, height=5, width=6):
    return np.random.default_rng(frames).random((frames, height, width), dtype=np.float32)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_how_maps_come_does_not_matter(tmp_path, sizes):
    whole = maps(sum(sizes))
    for name, cuts in (("a", np.cumsum(sizes)[:-1]), ("b", [])):
        with DepthWriter(tmp_path / f"{name}.npz") as writer:
            for part in np.split(whole, cuts):
                writer.add(part)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    np.testing.assert_array_equal(read(tmp_path / "a.npz"), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_numpy_reads_it_and_it_holds_what_the_whole_form_holds(tmp_path):
    whole = maps().astype(np.float64)
    with DepthWriter(tmp_path / "deep" / "a.npz") as writer:
        writer.add(whole[:4])
        writer.add(np.asfortranarray(whole[4:]))
    write_depth(tmp_path / "b.npz", whole)
    with np.load(tmp_path / "deep" / "a.npz", allow_pickle=False) as one, np.load(tmp_path / "b.npz") as other:
        assert one.files == other.files == ["data"]
        assert one["data"].dtype == np.float32
        np.testing.assert_array_equal(one["data"], other["data"])
    with zipfile.ZipFile(tmp_path / "deep" / "a.npz") as archive:
        assert archive.testzip() is None


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path):
    (tmp_path / "old.npz").write_bytes(b"old")

    def broken(path):
        with DepthWriter(path) as writer:
            writer.add(maps())
            raise KeyError("in the middle")

    for name in ("new", "old"):
        with pytest.raises(KeyError):
            broken(tmp_path / f"{name}.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["old.npz"]
    assert (tmp_path / "old.npz").read_bytes() == b"old"


def empty(path):
    with DepthWriter(path):
        pass


def test_no_maps_are_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"no depth was given for a\.npz"):
        empty(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.zeros((2, 5, 6), np.uint8), "of floats"),
        (np.zeros((5, 6), np.float32), "of floats"),
        (np.zeros((1, 6, 5), np.float32), r"\(6, 5\) pixels follows depth of \(5, 6\)"),
    ],
)
def test_other_arrays_are_refused(tmp_path, wrong, said):
    with DepthWriter(tmp_path / "a.npz") as writer:
        writer.add(maps())
        with pytest.raises(ValueError, match=said):
            writer.add(wrong)
    with pytest.raises(ValueError, match="inside of the with block"):
        writer.add(maps())
    np.testing.assert_array_equal(read(tmp_path / "a.npz"), maps())


# --- masks


MASKS = st.integers(0, 3).flatmap(lambda count: arrays.arrays(bool, (3, count, 4, 5)))


@given(MASKS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_masks_frame_by_frame_are_the_whole_document(tmp_path, masks):
    phrases = [f"thing {number}, größer" for number in range(masks.shape[1])]
    with MasksWriter(tmp_path / "a.masks.json", phrases, 4, 5) as writer:
        for frame in masks:
            writer.add(frame)
    whole = masks_document(zip(phrases, masks.swapaxes(0, 1), strict=True), (3, 4, 5))
    assert (tmp_path / "a.masks.json").read_bytes() == whole
    read_back = read_segmentation(tmp_path / "a.masks.json")
    assert read_back.size == (3, 4, 5)
    for number, (phrase, mask) in enumerate(read_back):
        assert phrase == phrases[number]
        np.testing.assert_array_equal(mask, masks[:, number])


def test_masks_that_end_with_an_error_leave_nothing(tmp_path):
    def interrupted():
        with MasksWriter(tmp_path / "a.masks.json", ["a"], 4, 5) as writer:
            writer.add(np.zeros((1, 4, 5), bool))
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("masks", [np.zeros((2, 4, 5), bool), np.zeros((1, 5, 4), bool), np.zeros((1, 4, 5), np.uint8)])
def test_masks_of_another_kind(tmp_path, masks):
    with pytest.raises(ValueError, match=r"\(1, 4, 5\) bool"), MasksWriter(tmp_path / "a", ["a"], 4, 5) as writer:
        writer.add(masks)
