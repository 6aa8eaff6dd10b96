"""Depth files written as maps come: content, equal bytes, nothing left behind."""

import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_metrics.signals import open_depth
from gen_eval.data.signal_files import DepthWriter, write_depth


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
