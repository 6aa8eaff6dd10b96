"""Control signals: pictures by the metrics' own functions, depth maps in files."""

import io
import tracemalloc
import zipfile

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib import format as npy

from control_metrics.signals import blur_signal, edge_signal, open_depth
from gen_eval.data.signal_files import write_depth, write_edges
from gen_eval.protocols import load_protocol
from gen_eval.records import ItemError, Reason


@pytest.fixture
def save(tmp_path):
    """Writes an ``.npz`` whose arrays are given as bytes or arrays."""

    def saver(compression=zipfile.ZIP_DEFLATED, **members):
        with zipfile.ZipFile(tmp_path / "x.npz", "w", compression) as archive:
            for name, content in members.items():
                if isinstance(content, np.ndarray):
                    buffer = io.BytesIO()
                    npy.write_array(buffer, content)
                    content = buffer.getvalue()
                archive.writestr(f"{name}.npy", content)
        return tmp_path / "x.npz"

    return saver


def whole(path, size=3, limit=None):
    with open_depth(path) as depth:
        chunks = list(depth.chunks(size, limit))
    return np.concatenate(chunks)


def refused(path):
    with pytest.raises(ItemError) as caught:
        whole(path)
    assert caught.value.reason is Reason.UNDECODABLE
    assert caught.value.detail == {"file": path.name}
    return caught.value.message


# --- pictures --------------------------------------------------------------------------------------------------------


def test_edge_signal_is_the_metric_s_map_in_three_channels(noise, golden):
    clips, maps = golden("clips.npz"), golden("pixel_maps.npz")
    shown = edge_signal(clips["a_gt"], load_protocol("edge_f1", "reference").measure)
    assert shown.shape == clips["a_gt"].shape
    assert set(np.unique(shown)) == {0, 255}
    assert (shown == shown[..., :1]).all()
    assert np.array_equal(np.packbits(shown[..., 0], axis=-1), maps["same_size__gt_edges"])
    gray = edge_signal(noise(1), load_protocol("edge_f1", "reference-v2").measure)[0, ..., 0]
    assert np.array_equal(gray, cv2.Canny(cv2.cvtColor(noise(1)[0], cv2.COLOR_RGB2GRAY), 100, 200))


def test_blur_signal_is_the_metric_s_filter(noise):
    shown = blur_signal(noise(2), load_protocol("blur_ssim", "corrected").measure)
    assert np.array_equal(shown[1], cv2.bilateralFilter(noise(2)[1], 30, 150, 100))


def test_exact_edges_come_back(tmp_path):
    maps = np.random.default_rng(0).random((3, 5, 7)) < 0.3
    write_edges(tmp_path / "x.npz", maps)
    with np.load(tmp_path / "x.npz") as found:
        assert np.array_equal(found["data"], maps)
    with pytest.raises(ValueError, match="bool"):
        write_edges(tmp_path / "x.npz", maps.astype(np.uint8))


# --- depth files -----------------------------------------------------------------------------------------------------


@given(
    arrays.array_shapes(min_dims=3, max_dims=3, max_side=7).flatmap(
        lambda shape: arrays.arrays(np.float32, shape, elements=st.floats(0, 10, width=32))
    ),
    st.integers(1, 9),
)
@settings(max_examples=25, deadline=None)
def test_depth_comes_back_in_chunks(tmp_path_factory, depth, size):
    path = tmp_path_factory.mktemp("depth") / "x.npz"
    write_depth(path, depth)
    with open_depth(path) as found:
        assert found.shape == depth.shape
        chunks = list(found.chunks(size))
    assert [len(chunk) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
    assert np.array_equal(np.concatenate(chunks), depth)


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_float_types_orders_and_compressions(save, kind, order, compression):
    depth = np.asarray(np.arange(5 * 3 * 4).reshape(5, 3, 4), dtype=kind, order=order)
    found = whole(save(compression, data=depth))
    assert found.dtype == (np.float64 if kind.endswith("8") else np.float32)
    assert np.array_equal(found, depth)


def test_a_limit_reads_the_first_frames(save):
    depth = np.random.default_rng(0).random((7, 2, 2))
    assert np.array_equal(whole(save(data=depth), limit=4), depth[:4])
    assert np.array_equal(whole(save(data=np.asfortranarray(depth)), limit=4), depth[:4])


def test_numpy_s_own_files_are_read(tmp_path):
    depth = np.random.default_rng(0).random((3, 4, 5), dtype=np.float32)
    np.savez(tmp_path / "a.npz", data=depth, other=np.arange(3))
    assert np.array_equal(whole(tmp_path / "a.npz"), depth)


def test_reading_holds_a_chunk_and_not_the_clip(save):
    path = save(data=np.zeros((400, 64, 64), np.float32))
    tracemalloc.start()
    with open_depth(path) as depth:
        for _ in depth.chunks(8):
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20  # the clip has 6.25 MiB


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"depth": np.ones((2, 2, 2))}, "it holds depth"),
        ({}, "nothing"),
        ({"data": np.ones((2, 2))}, r"(2, 2)"),
        ({"data": np.ones((1, 2, 2, 1))}, r"(1, 2, 2, 1)"),
        ({"data": np.ones((0, 2, 2))}, r"(0, 2, 2)"),
        ({"data": np.ones((2, 2, 2), np.uint16)}, "uint16"),
        ({"data": np.ones((2, 2, 2), complex)}, "complex"),
        ({"data": np.ones((2, 2, 2), np.longdouble)}, "float128"),
        ({"data": b""}, "x.npz"),
        ({"data": b"\x93NUMPY\x09\x00"}, "9"),
        ({"data": b"\x93NUMPY\x01\x00\x04\x00abc\n"}, "x.npz"),
    ],
)
def test_other_content_is_named(save, members, named):
    assert named in refused(save(**members))


def header(shape, descr="<f4", fortran=False):
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": fortran, "shape": shape})
    return buffer.getvalue()


def test_objects_are_never_unpickled(save):
    buffer = io.BytesIO()
    npy.write_array(buffer, np.array([[[print]]], dtype=object), allow_pickle=True)
    assert "object" in refused(save(data=buffer.getvalue()))


@pytest.mark.parametrize(
    "content",
    [
        header((3, 4, 4)) + b"\0" * 40,
        header((3, 4, 4), fortran=True) + b"\0" * 40,
        header((10**9, 10**9, 10**9)),
        header((2, 10**6, 10**6)),
        header((10**5, 10**3, 10**3), fortran=True),
        header((-1, 4, 4)),
    ],
    ids=["short", "short columns", "huge", "huge map", "huge columns", "negative"],
)
def test_declared_sizes_are_not_believed(save, content):
    tracemalloc.start()
    refused(save(data=content))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


def test_damaged_archives_are_refused(tmp_path):
    write_depth(tmp_path / "x.npz", np.random.default_rng(0).random((4, 32, 32)))
    content = (tmp_path / "x.npz").read_bytes()
    for number, broken in enumerate((b"", b"PK", content[: len(content) // 2], b"text" * 40)):
        path = tmp_path / f"broken_{number}.npz"
        path.write_bytes(broken)
        refused(path)
    flipped = bytearray(content)
    for place in range(200, 400):
        flipped[place] ^= 255
    (tmp_path / "flipped.npz").write_bytes(flipped)
    refused(tmp_path / "flipped.npz")


def test_an_absent_file_is_refused(tmp_path):
    assert "none.npz" in refused(tmp_path / "none.npz")


def test_equal_depth_gives_equal_bytes(tmp_path):
    depth = np.random.default_rng(0).random((2, 3, 4), dtype=np.float32)
    for name in ("a.npz", "b.npz"):
        write_depth(tmp_path / name, depth)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("depth", [np.ones((2, 2)), np.ones((2, 2, 2), np.uint8)])
def test_writing_refuses_what_is_no_depth(tmp_path, depth):
    with pytest.raises(ValueError, match="depth"):
        write_depth(tmp_path / "x.npz", depth)
    assert not (tmp_path / "x.npz").exists()


def test_a_header_that_is_no_python_text_is_an_undecodable_file(save):
    header = b"{'descr': [[[[, 'fortran_order': False, 'shape': (2, 2, 2), }\n"
    path = save(data=b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ItemError, match=r"^x\.npz cannot be read as depth maps") as caught:
        open_depth(path)
    assert caught.value.reason is Reason.UNDECODABLE
