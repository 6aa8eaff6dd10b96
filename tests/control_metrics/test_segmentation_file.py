"""Segmentation files: the published pickle form, ours, and everything that must be refused."""

import base64
import json
import pickle  # noqa: TID251 - malicious files are made here
import pickletools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pycocotools import mask as coco

from control_metrics import segmentation_file
from control_metrics.segmentation_file import read_segmentation, run_lengths
from gen_eval.data.signal_files import write_masks
from gen_eval.records import ItemError, Reason

MASKS = arrays.array_shapes(min_dims=3, max_dims=3, max_side=7).flatmap(lambda shape: arrays.arrays(bool, shape))


def published(mask, phrase="car"):
    """One object of the published form."""
    column = coco.encode(np.asfortranarray(mask.reshape(-1, 1), dtype=np.uint8))
    return {
        "phrase": phrase,
        "segmentation_mask_rle": {
            "data": {"size": [mask.size, 1], "counts": column["counts"]},
            "mask_shape": list(mask.shape),
        },
    }


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a file of the published form."""

    def reader(content, name="task_0001.pkl"):
        (tmp_path / name).write_bytes(content)
        return read_segmentation(tmp_path / name)

    return reader


@pytest.fixture
def refused(read):
    """The message with which bytes are refused."""

    def reader(content, name="task_0001.pkl"):
        with pytest.raises(ItemError) as caught:
            list(read(content, name))
        assert caught.value.reason is Reason.UNDECODABLE
        assert caught.value.detail == {"file": name}
        assert name in caught.value.message
        return caught.value.message

    return reader


@pytest.fixture
def good():
    """A small mask that is neither empty nor full."""
    mask = np.zeros((2, 3, 4), bool)
    mask[:, 1] = True
    return mask


# --- goldens ---------------------------------------------------------------------------------------------------------


def test_golden_published_file(golden, read):
    sample = golden("seg_rle.json")["file_sample"]
    found = read(base64.b64decode(sample["pickle_b64"]))
    assert list(found.phrases) == sample["phrases"]
    assert found.size == tuple(sample["shape"])
    assert [int(mask.sum()) for _, mask in found] == sample["pixels_on"]
    first = np.array(list(golden("seg_rle.json")["single_masks"][0]["mask_bits"])) == "1"
    assert np.array_equal(found[0][1], first.reshape(4, 10, 12))


def test_golden_run_lengths(golden, read):
    for one in golden("seg_rle.json")["single_masks"]:
        mask = (np.array(list(one["mask_bits"])) == "1").reshape(one["shape"])
        item = published(mask)
        assert item["segmentation_mask_rle"]["data"] == {
            "size": one["rle_size"], "counts": one["rle_counts"].encode(),
        }  # fmt: skip
        assert np.array_equal(read(pickle.dumps([item]))[0][1], mask), one["kind"]


# --- what is read ----------------------------------------------------------------------------------------------------


@given(st.lists(MASKS, min_size=1, max_size=1).flatmap(lambda one: st.tuples(st.just(one[0]), st.text(max_size=5))))
@settings(max_examples=40, deadline=None)
def test_both_forms_bring_back_what_was_written(tmp_path_factory, pair):
    mask, phrase = pair
    folder = tmp_path_factory.mktemp("masks")
    write_masks(folder / "a.masks.json", [(phrase, mask), ("none", np.zeros_like(mask))])
    (folder / "a.pkl").write_bytes(pickle.dumps([published(mask, phrase), published(np.zeros_like(mask), "none")]))
    for name in ("a.masks.json", "a.pkl"):
        found = read_segmentation(folder / name)
        assert (found.size, found.phrases) == (mask.shape, (phrase, "none"))
        assert np.array_equal(found[0][1], mask)
        assert not found[1][1].any()


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_run_lengths_are_those_that_were_encoded(lengths):
    total = sum(lengths)
    if total >= 2**31:
        lengths = [length % 1000 + 1 for length in lengths]
        total = sum(lengths)
    encoded = coco.frPyObjects({"counts": lengths, "size": [total, 1]}, total, 1)
    assert run_lengths(encoded["counts"]).tolist() == lengths


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_pickle_protocols(read, good, protocol):
    assert np.array_equal(read(pickle.dumps([published(good)], protocol))[0][1], good)


def test_old_pickle_protocols_name_a_function_to_write_bytes_and_are_refused(refused, good):
    assert "GLOBAL" in refused(pickle.dumps([published(good)], 2))


def test_text_counts_tuples_and_empty_lists(read, good):
    item = published(good)
    item["segmentation_mask_rle"]["mask_shape"] = tuple(good.shape)
    item["segmentation_mask_rle"]["data"]["counts"] = item["segmentation_mask_rle"]["data"]["counts"].decode()
    assert np.array_equal(read(pickle.dumps([item]))[0][1], good)
    empty = read(pickle.dumps([]))
    assert (len(empty), empty.size) == (0, None)


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # of the independent decoder
def test_our_form_is_coco_of_each_frame(tmp_path, good):
    good[1] = False
    write_masks(tmp_path / "x.masks.json", [("a cup", good)])
    document = json.loads((tmp_path / "x.masks.json").read_text())
    assert document["size"] == [2, 3, 4]
    (item,) = document["objects"]
    assert (item["phrase"], item["rle"][1]) == ("a cup", None)
    decoded = coco.decode({"size": [3, 4], "counts": item["rle"][0].encode()})
    assert np.array_equal(decoded.astype(bool), good[0])
    assert [path.name for path in tmp_path.iterdir()] == ["x.masks.json"]


def test_slices_and_counts(read, good):
    found = read(pickle.dumps([published(good, name) for name in "abc"]))
    assert [phrase for phrase, _ in found[1:]] == ["b", "c"]
    assert len(found) == 3
    with pytest.raises(IndexError):
        found[3]


# --- what is refused -------------------------------------------------------------------------------------------------


class Evil:
    """Runs something when it is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


class Plain:
    """A class, harmless in itself."""


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_calls_and_classes_are_refused_and_not_run(refused, protocol):
    for value in (Evil(), [Evil()], Plain(), np.float64(1), np.ones(3), {"phrase": Plain}):
        assert "pickle instruction" in refused(pickle.dumps([value], protocol))


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'true'\ntR.",  # GLOBAL and REDUCE
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",  # STACK_GLOBAL
        b"(S'true'\nios\nsystem\n.",  # INST
        b"Pid\n.",  # PERSID
        b"\x80\x02K\x01Q.",  # BINPERSID
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02}b.",  # BUILD
        b"\x80\x05\x97.",  # NEXT_BUFFER
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",  # BYTEARRAY8
    ],
    ids=["global", "stack_global", "inst", "persid", "binpersid", "ext", "build", "buffer", "bytearray"],
)
def test_instructions_that_plain_values_do_not_need_are_refused(refused, content):
    refused(content)


def test_the_unpickler_refuses_on_its_own(good):
    """The second line of defence, without the walk over the instructions."""
    import io

    for content in (pickle.dumps(Evil()), b"\x80\x02K\x01Q."):
        with pytest.raises(pickle.UnpicklingError):
            segmentation_file._PlainUnpickler(io.BytesIO(content)).load()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04]r\xff\xff\xff\x7f.",  # a memo entry far beyond the file
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x3f.",  # bytes far beyond the file
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x3f.",  # text far beyond the file
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x3f].",  # a frame far beyond the file
        b"\x80\x04B\xff\xff\xff\xff.",
    ],
    ids=["memo", "bytes", "text", "frame", "bytes of 4 GB"],
)
def test_sizes_beyond_the_file_reserve_nothing(refused, content):
    tracemalloc.start()
    refused(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_too_many_instructions(refused, monkeypatch):
    monkeypatch.setattr(segmentation_file, "_MAX_OPCODES", 1000)
    assert "1000" in refused(b"\x80\x02]" + b"]0" * 1000 + b".")


def test_nesting_bombs_are_refused_or_harmless(refused):
    deep = b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."
    refused(deep)
    doubling = b"\x80\x04]\x94" + b"".join(b"(h" + bytes([n]) + b"h" + bytes([n]) + b"l\x94" for n in range(40)) + b"."
    refused(doubling)


def test_every_cut_of_a_good_file_is_refused(refused, good):
    content = pickle.dumps([published(good)])
    for length in range(len(content)):
        refused(content[:length])


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_changed_bytes_are_read_or_refused_and_nothing_else(tmp_path_factory, data):
    content = bytearray(pickle.dumps([published(np.eye(4, dtype=bool)[None])]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "x.pkl"
    path.write_bytes(content)
    try:
        found = list(read_segmentation(path))
    except ItemError:
        return
    assert all(mask.dtype == bool and mask.ndim == 3 for _, mask in found)


def changed(good, **changes):
    item = published(good)
    code = item["segmentation_mask_rle"]
    for name, value in changes.items():
        target = {"phrase": item, "mask_shape": code, "data": code, "segmentation_mask_rle": item}.get(
            name, code["data"]
        )
        target[name] = value
    return pickle.dumps([item])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"phrase": 3}, "phrase"),
        ({"phrase": "x" * 20_000}, "20000"),
        ({"segmentation_mask_rle": []}, "segmentation_mask_rle"),
        ({"data": None}, "data"),
        ({"mask_shape": [2, 3]}, "mask_shape"),
        ({"mask_shape": [2, 3, 4.0]}, "mask_shape"),
        ({"mask_shape": [2, 3, True]}, "mask_shape"),
        ({"mask_shape": [0, 3, 4]}, "mask_shape"),
        ({"mask_shape": [-2, -3, 4]}, "mask_shape"),
        ({"mask_shape": [2, 3, 5]}, "size"),
        ({"size": [12, 2]}, "size"),
        ({"size": 24}, "size"),
        ({"counts": 7}, "counts"),
        ({"counts": b""}, "add up"),
        ({"counts": b"8"}, "add up"),
        ({"counts": b"\x00\xff"}, "no COCO code"),
        ({"counts": b"lP"}, "cut"),
        ({"counts": b"P" * 9 + b"0"}, "35 bits"),
        ({"counts": b"@"}, "negative"),
    ],
)
def test_wrong_fields_are_named(refused, good, changes, named):
    assert named in refused(changed(good, **changes))


@pytest.mark.parametrize("value", [None, 3, "list", {"a": 1}, [3], [[1]], [None]])
def test_other_plain_values_are_refused(refused, value):
    refused(pickle.dumps(value))


def test_huge_sizes_are_refused_before_anything_is_allocated(refused, good):
    tracemalloc.start()
    huge = {"mask_shape": [2**20, 2**20, 2**20], "size": [2**60, 1]}
    assert "pixels" in refused(changed(good, **huge))
    text = json.dumps({"size": [10**6, 10**6, 10**6], "objects": []}).encode()
    assert "pixels" in refused(text, "x.masks.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_limits_on_objects_and_bytes(refused, good, monkeypatch):
    monkeypatch.setattr(segmentation_file, "MAX_OBJECTS", 2)
    assert "3 objects" in refused(pickle.dumps([published(good)] * 3))
    assert "3 objects" in refused(json.dumps({"size": [1, 1, 1], "objects": [{}] * 3}).encode(), "x.json")
    monkeypatch.setattr(segmentation_file, "MAX_FILE_BYTES", 10)
    assert "bytes" in refused(pickle.dumps([published(good)]))


def test_objects_of_unequal_size_are_refused(refused, good):
    assert "object 1" in refused(pickle.dumps([published(good), published(good[:1])]))


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"objects": 3}', '{"size": [1, 1, 1]}', '{"size": [1, 1], "objects": []}',
        '{"size": [1, 2, 2], "objects": [{"phrase": "a"}]}',
        '{"size": [1, 2, 2], "objects": [{"phrase": "a", "rle": []}]}',
        '{"size": [1, 2, 2], "objects": [{"phrase": "a", "rle": [3]}]}',
        '{"size": [1, 2, 2], "objects": [{"phrase": "a", "rle": ["5"]}]}',
        '{"size": [1, 2, 2], "objects": [{"phrase": "a", "rle": ["\\u00e9"]}]}',
        '{"size": [1, 2, 2], "objects": [{"phrase": 1, "rle": [null]}]}',
        '{"size": ' + "[" * 100_000 + "}",
    ],
)  # fmt: skip
def test_broken_json_is_refused(refused, text):
    refused(text.encode(), "x.masks.json")


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(ItemError, match=r"none\.pkl"):
        read_segmentation(tmp_path / "none.pkl")


def test_writing_refuses_what_could_not_be_read(tmp_path, good):
    for objects in ([("a", good.astype(np.uint8))], [("a", good[0])], [("a", good), ("b", good[:1])], []):
        with pytest.raises(ValueError, match=r"mask of|size"):
            write_masks(tmp_path / "x.json", objects)
    assert list(tmp_path.iterdir()) == []


def test_the_walk_knows_every_instruction_it_allows():
    assert {opcode.name for opcode in pickletools.opcodes} >= segmentation_file._PLAIN_OPCODES


def test_a_phrase_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.masks.json"
    path.write_text('{"size": [1, 2, 2], "objects": [{"phrase": "\\ud800", "rle": [null]}]}')
    with pytest.raises(ItemError, match="no text that can be written down"):
        read_segmentation(path)
