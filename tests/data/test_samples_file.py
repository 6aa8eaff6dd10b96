import gzip
import json

import pytest

from gen_eval.data import load_benchmark, load_samples_file
from gen_eval.records import InputError

LINE = {
    "id": "t1",
    "captions": ["a red ball", "a ball that is red"],
    "video": "videos/t1.mp4",
    "controls": {"edge": "canny/t1.mp4"},
    "depth": "d/t1.npz",
    "masks": "m/t1.masks.json",
    "domain": "robot",
    "mood": "kept",
}


def write(path, *lines):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_the_conditional_form(tmp_path):
    benchmark = load_samples_file(write(tmp_path / "s.jsonl", LINE, "", {"id": "t0", "captions": ["x"]}))
    assert [sample.id for sample in benchmark.samples] == ["t0", "t1"]
    sample = benchmark.by_id["t1"]
    assert sample.prompt == "a red ball"
    assert sample.reference == tmp_path / "videos" / "t1.mp4"
    assert sample.controls == {"edge": tmp_path / "canny" / "t1.mp4"}
    assert (sample.domain, sample.extra) == ("robot", {"mood": "kept"})


def test_the_generation_form_and_a_compressed_file(tmp_path):
    with gzip.open(tmp_path / "s.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "physics_1", "prompt_en": "p", "image_name": "i.jpg"}))
    found = {
        track: load_benchmark(tmp_path / "s.jsonl.gz", videos=tmp_path, track=track).by_id["physics_1"]
        for track in ("quality", "control")
    }
    sample = found["quality"]
    assert (sample.domain, sample.prompt, sample.condition_image) == ("physics", "p", tmp_path / "i.jpg")
    assert found["control"].domain is None, "the domain of a control sample is what it says, not how its id begins"


def test_media_paths_may_lie_elsewhere(tmp_path):
    benchmark = load_samples_file(write(tmp_path / "s.jsonl", LINE), media=tmp_path / "media")
    assert benchmark.by_id["t1"].reference == tmp_path / "media" / "videos" / "t1.mp4"


def test_the_long_form_of_a_video(tmp_path):
    line = {"id": "a", "captions": [], "video": {"path": "v.mp4", "fps": 24, "n_frames": 49}}
    assert load_samples_file(write(tmp_path / "s.jsonl", line)).by_id["a"].reference == tmp_path / "v.mp4"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "line_not_json"),
        ('{"id": NaN}', "line_not_json"),
        ("[" * 100_000, "line_not_json"),
        ("[1]", "malformed_record"),
        ({"id": 7}, "malformed_record"),
        ({"id": ""}, "malformed_record"),
        ({"prompt_en": "x"}, "missing_field"),
        ({"id": "b", "captions": "text"}, "malformed_record"),
        ({"id": "b", "video": "../up.mp4"}, "malformed_record"),
        ({"id": "b", "video": "/etc/passwd"}, "malformed_record"),
        ({"id": "b", "video": "http://example.org/x.mp4"}, "malformed_record"),
        ({"id": "b", "video": "a\\..\\..\\x.mp4"}, "malformed_record"),
        ({"id": "b", "video": 3}, "malformed_record"),
        ({"id": "b", "controls": ["edge"]}, "malformed_record"),
        ({"id": "nul\0"}, "malformed_record"),
        ({"id": "good"}, "duplicate_id"),
    ],
)
def test_a_bad_line_is_listed_and_the_others_stay(tmp_path, line, reason):
    benchmark = load_samples_file(write(tmp_path / "s.jsonl", {"id": "good"}, line, {"id": "also"}))
    assert [sample.id for sample in benchmark.samples] == ["also", "good"]
    assert [(one.where, one.reason) for one in benchmark.rejected] == [("s.jsonl:2", reason)]


def test_a_number_as_id_says_what_to_write(tmp_path):
    benchmark = load_samples_file(write(tmp_path / "s.jsonl", {"id": "good"}, {"id": 7}))
    assert '"7"' in benchmark.rejected[0].message


def test_a_file_without_any_sample_ends_the_command(tmp_path):
    with pytest.raises(InputError, match=r"no sample that can be used: s\.jsonl:1"):
        load_samples_file(write(tmp_path / "s.jsonl", "{"))


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.jsonl.gz"])
def test_an_absent_file_ends_the_command(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        load_samples_file(tmp_path / name)


def test_bytes_that_are_no_text_end_the_command(tmp_path):
    (tmp_path / "s.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load_samples_file(tmp_path / "s.jsonl")
    (tmp_path / "s.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(InputError, match="cannot be read"):
        load_samples_file(tmp_path / "s.jsonl.gz")


@pytest.mark.parametrize(
    "line", ['{"id": "\\ud800"}', '{"id": "x", "prompt": "\\udc00"}', '{"id": "x", "extra": ["\\ud83d"]}']
)
def test_half_a_character_rejects_the_line(tmp_path, line):
    benchmark = load_samples_file(write(tmp_path / "s.jsonl", '{"id": "whole \\ud83d\\ude00"}', line))
    assert [sample.id for sample in benchmark.samples] == ["whole 😀"]
    assert [(one.where, str(one.reason)) for one in benchmark.rejected] == [("s.jsonl:2", "malformed_record")]
