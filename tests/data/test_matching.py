import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.data import load_benchmark, match_videos, split_name
from gen_eval.data.benchmark import domain_of_id
from gen_eval.records import InputError, Reason

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "quality" / "file_mapping.json").read_text())


def folder(root: Path, names: list[str]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name in names:
        (root / name).write_bytes(b"x")
    return root


def prompt_file(root: Path, entries: list[dict[str, str]]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "bench_full_info.json").write_text(json.dumps(entries))
    return root


def matched(data: Path | None, videos: Path, track="quality", **options):
    benchmark = load_benchmark(data, videos=videos, track=track)
    return benchmark, match_videos(benchmark, videos, model="m", track=track, **options)


def flat(groups):
    return {(group.sample.id, member.member): member for group in groups for member in group.members}


def test_the_public_mapping(tmp_path):
    data = prompt_file(tmp_path / "data", GOLDEN["prompt_file"])
    videos = folder(tmp_path / "videos", GOLDEN["videos"] + GOLDEN["with_non_video_file"]["extra"])
    benchmark, found = matched(data, videos)
    by_file = {
        member.path.name: (group.sample.prompt, group.sample.condition_image)
        for group in found.groups
        for member in group.members
        if member.path is not None
    }
    assert by_file == {
        entry["video"]: (entry["prompt"], data / "condition_image" / Path(entry["condition"]).name)
        for entry in GOLDEN["result"]
    }
    assert [group.sample.id for group in found.groups if group.members[0].problem] == ["human_9"]
    assert found.unknown == ()
    assert benchmark.layout == "pai-g"


def test_the_prompt_file_itself_is_data_too(tmp_path):
    data = prompt_file(tmp_path / "data", GOLDEN["prompt_file"])
    (data / "other_full_info.json").write_text("[]")
    videos = folder(tmp_path / "videos", GOLDEN["videos"])
    with pytest.raises(InputError, match=r"found bench_full_info\.json, other_full_info\.json\. Give the file itself"):
        load_benchmark(data, videos=videos, track="quality")
    benchmark = load_benchmark(data / "bench_full_info.json", videos=videos, track="quality")
    assert (benchmark.layout, benchmark.root) == ("pai-g", data)
    assert benchmark.by_id["av_02"].condition_image == data / "condition_image" / "av_02.png"
    assert list(benchmark.by_id) == sorted(entry["video_id"] for entry in GOLDEN["prompt_file"])


def test_real_videos_beside_the_prompt_file_are_references(tmp_path):
    data = prompt_file(tmp_path / "data", [*GOLDEN["prompt_file"], {"video_id": "../escape"}])
    folder(data / "videos", ["av_02.mp4", "stray.mp4"])
    folder(data / "depth_npzs", ["av_02.npz"])
    folder(tmp_path / "data", ["escape.mp4"])
    by_id = load_benchmark(data, videos=data / "videos", track="quality").by_id
    assert by_id["av_02"].reference == data / "videos" / "av_02.mp4"
    assert by_id["av_02"].depth == data / "depth_npzs" / "av_02.npz"
    assert by_id["robot_001"].reference is by_id["../escape"].reference is None


def test_an_id_never_claims_the_files_of_a_longer_one(tmp_path):
    names = GOLDEN["id_that_is_prefix_of_other"]["videos"]
    for order in (["a", "a__b"], ["a__b", "a"]):
        data = prompt_file(tmp_path / order[0], [{"video_id": one, "prompt_en": one} for one in order])
        _, found = matched(data, folder(tmp_path / "v", names))
        assert {key: member.path.name for key, member in flat(found.groups).items()} == {
            ("a", "0"): "a__0.mp4",
            ("a__b", "1"): "a__b__1.mp4",
        }


@pytest.mark.parametrize("extra", ["upper_case_suffix", "gif"])
def test_other_video_endings_are_videos_too(tmp_path, extra):
    data = prompt_file(tmp_path / "data", GOLDEN["prompt_file"])
    _, found = matched(data, folder(tmp_path / "videos", GOLDEN[extra]["extra"]))
    assert flat(found.groups)["human_9", "0"].problem is None


def test_a_file_of_no_sample_is_listed_and_not_scored(tmp_path):
    data = prompt_file(tmp_path / "data", GOLDEN["prompt_file"])
    _, found = matched(data, folder(tmp_path / "videos", GOLDEN["unknown_video_id"]["extra"]))
    assert found.unknown == ("other_1__0.mp4",)
    assert {member.problem for member in flat(found.groups).values()} == {Reason.MISSING_VIDEO}


def test_missing_and_duplicate_members_are_named(tmp_path):
    data = prompt_file(tmp_path / "data", [{"video_id": one, "prompt_en": one} for one in ("a", "b")])
    videos = folder(tmp_path / "videos", ["a__0.mp4", "a__0.mkv", "a__1.mp4", "a__7.mp4"])
    _, found = matched(data, videos, seeds=("0", "1", "2"))
    members = flat(found.groups)
    assert members["a", "0"].problem is Reason.DUPLICATE_VIDEO
    assert members["a", "0"].detail["files"] == ["a__0.mkv", "a__0.mp4"]
    assert members["a", "1"].problem is None
    assert members["a", "2"].problem is Reason.MISSING_VIDEO
    assert [members["b", seed].problem for seed in "012"] == [Reason.MISSING_VIDEO] * 3
    assert found.not_asked == ("a__7.mp4",)


def test_ids_that_differ_in_case_stay_apart(tmp_path):
    """H2: two prompts that differ in capitals only."""
    data = prompt_file(tmp_path / "d", [{"video_id": one, "prompt_en": one} for one in ("a fantasy", "A fantasy")])
    _, found = matched(data, folder(tmp_path / "v", ["a fantasy__0.mp4", "A fantasy__0.mp4"]))
    assert {key: member.path.name for key, member in flat(found.groups).items()} == {
        ("A fantasy", "0"): "A fantasy__0.mp4",
        ("a fantasy", "0"): "a fantasy__0.mp4",
    }


def test_both_schemes_of_the_conditional_track(tmp_path):
    data = tmp_path / "data"
    folder(data / "videos", ["task_0000.mp4", "task_0001.mp4"])
    folder(data / "captions", [])
    (data / "captions" / "task_0000.json").write_text('{"x": "the caption"}')
    (data / "captions" / "task_0000_caption2.json").write_text('{"x": "another"}')
    (data / "captions" / "task_0001.json").write_text('{"x": "one", "y": "two"}')
    (data / "metadata.csv").write_text("id,domain\ntask_0000,robot\ntask_0001,\n")
    videos = folder(
        tmp_path / "out" / "videos", ["task_0000.mp4", "task_0000_caption2.mp4", "task_0001__0.mp4", "task_0001__5.mp4"]
    )
    folder(tmp_path / "out" / "depth_npzs", ["task_0000_caption2.npz"])
    folder(tmp_path / "out" / "masks", ["task_0001__5.masks.json"])
    benchmark, found = matched(data, videos, track="control")
    members = flat(found.groups)
    assert sorted(members) == [("task_0000", "0"), ("task_0000", "2"), ("task_0001", "0"), ("task_0001", "5")]
    assert members["task_0000", "2"].depth == tmp_path / "out" / "depth_npzs" / "task_0000_caption2.npz"
    assert members["task_0001", "5"].masks is not None
    assert benchmark.by_id["task_0000"].captions == ("the caption", "another")
    assert benchmark.by_id["task_0000"].domain == "robot"
    assert [one.where for one in benchmark.rejected] == ["task_0001.json"]


def test_an_original_named_twice_is_a_duplicate(tmp_path):
    data = tmp_path / "data"
    folder(data / "videos", ["t.mp4"])
    folder(data / "captions", [])
    _, found = matched(data, folder(tmp_path / "v", ["t.mp4", "t__0.mp4"]), track="control")
    assert flat(found.groups)["t", "0"].problem is Reason.DUPLICATE_VIDEO


def test_a_plain_folder_of_references(tmp_path):
    data = folder(tmp_path / "refs", ["car.mp4", "bird.mkv"])
    folder(data / "depth_npzs", ["car.npz"])
    benchmark, found = matched(data, folder(tmp_path / "v", ["car__0.mp4", "other__0.mp4"]), track="control")
    assert benchmark.layout == "references"
    assert benchmark.by_id["car"].depth == data / "depth_npzs" / "car.npz"
    assert found.unknown == ("other__0.mp4",)


def test_videos_alone_are_their_own_samples(tmp_path):
    videos = folder(tmp_path / "v", ["physics_a__0.mp4", "physics_a__1.mp4", "b.mp4", "notes.txt", ".hidden__0.mp4"])
    benchmark, found = matched(None, videos)
    assert sorted(flat(found.groups)) == [("b", "default"), ("physics_a", "0"), ("physics_a", "1")]
    assert benchmark.by_id["physics_a"].domain == "physics"


def test_a_part_of_a_benchmark_does_not_call_the_rest_unknown(tmp_path):
    data = prompt_file(tmp_path / "d", [{"video_id": f"av_{k}", "prompt_en": "p"} for k in range(3)])
    videos = folder(tmp_path / "v", ["av_0__0.mp4", "av_1__0.mp4", "zz__0.mp4"])
    whole = load_benchmark(data, videos=videos, track="quality")
    part = whole.restricted(limit=1)
    found = match_videos(part, videos, model="m", track="quality", known_ids=whole.by_id)
    assert [group.sample.id for group in found.groups] == ["av_0"]
    assert found.unknown == ("zz__0.mp4",)


def test_restricting_to_an_unknown_domain_names_the_known_ones(tmp_path):
    data = prompt_file(tmp_path / "d", [{"video_id": "av_1", "prompt_en": "p"}])
    benchmark = load_benchmark(data, videos=tmp_path, track="quality")
    with pytest.raises(InputError, match="no sample has the domain robot; there are av"):
        benchmark.restricted(domains=("robot",))


@pytest.mark.parametrize("content", ["{", "{}", "null"])
def test_a_prompt_file_that_is_no_list_ends_the_command(tmp_path, content):
    (tmp_path / "x_full_info.json").write_text(content)
    with pytest.raises(InputError, match=r"x_full_info\.json"):
        load_benchmark(tmp_path, videos=tmp_path, track="quality")


def test_bad_entries_of_a_prompt_file_are_listed(tmp_path):
    entries = [{"video_id": "a", "prompt_en": "p"}, {"video_id": 7}, "x", {"video_id": "a"}, {"video_id": "b"}]
    data = prompt_file(tmp_path, entries)
    benchmark = load_benchmark(data, videos=data, track="quality")
    assert list(benchmark.by_id) == ["a", "b"]
    assert [one.reason for one in benchmark.rejected] == ["malformed_record", "malformed_record", "duplicate_id"]


def test_a_condition_image_cannot_leave_its_folder(tmp_path):
    data = prompt_file(tmp_path, [{"video_id": "a", "image_name": "../../etc/passwd"}])
    assert load_benchmark(data, videos=data, track="quality").by_id["a"].condition_image is None


def test_what_is_no_benchmark_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no benchmark data"):
        load_benchmark(tmp_path, videos=tmp_path, track="quality")
    with pytest.raises(InputError, match="cannot be read"):
        load_benchmark(None, videos=tmp_path / "absent", track="quality")


names = st.text(st.characters(categories=["L", "N"], include_characters="_- ."), min_size=1, max_size=12)


@given(sample=names, member=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=4))
def test_a_written_name_reads_back(sample, member):
    assert split_name(f"{sample}__{member}", {sample}, bare_member="0") == (sample, member)


@given(sample=names, k=st.integers(0, 99))
def test_a_caption_name_reads_back(sample, k):
    assert split_name(f"{sample}_caption{k}", {sample}, bare_member="0") == (sample, str(k))


def test_domains_of_ids():
    assert domain_of_id("common_sense_12") == "common_sense"
    assert domain_of_id("avalanche") is None


def test_a_link_out_of_a_video_folder_is_followed(tmp_path):
    """Data sets are often folders of links; what the user linked is the user's own."""
    real = folder(tmp_path / "store", ["blob"]) / "blob"
    videos = tmp_path / "v"
    videos.mkdir()
    (videos / "a__0.mp4").symlink_to(real)
    _, found = matched(None, videos)
    assert flat(found.groups)["a", "0"].path == videos / "a__0.mp4"
    shutil.rmtree(tmp_path / "store")


def bytes_file(root, name):
    """A file whose name is no UTF-8, where the file system takes one."""
    try:
        Path(os.fsdecode(bytes(root / "") + b"/" + name)).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")


def test_a_file_name_that_is_no_text_belongs_to_no_sample_and_is_listed(tmp_path):
    videos = folder(tmp_path / "videos", ["a__0.mp4"])
    bytes_file(videos, b"b\xff__0.mp4")
    benchmark, found = matched(None, videos)
    assert [sample.id for sample in benchmark.samples] == ["a"]
    assert found.unknown == ("b\\xff__0.mp4",)
    references = load_benchmark(videos, videos=videos, track="control", layout="references")
    assert [sample.id for sample in references.samples] == ["a__0"]
    assert [(one.where, str(one.reason)) for one in references.rejected] == [("b\\xff__0.mp4", "malformed_record")]


def test_half_a_character_in_a_prompt_file_rejects_that_entry(tmp_path):
    entries = [{"video_id": "a", "prompt_en": "\ud800"}, {"video_id": "\udfff"}, {"video_id": "b", "prompt_en": "😀"}]
    benchmark = load_benchmark(prompt_file(tmp_path / "d", entries), videos=tmp_path, track="quality")
    assert [sample.id for sample in benchmark.samples] == ["b"]
    assert [one.where for one in benchmark.rejected] == ["bench_full_info.json entry 0", "bench_full_info.json entry 1"]


def pai_c(root, index):
    folder(root / "videos", ["a.mp4"])
    (root / "captions").mkdir()
    (root / "metadata.csv").write_bytes(index)
    return load_benchmark(root, videos=root, track="control")


def test_an_id_in_the_index_cannot_leave_the_data_folder(tmp_path):
    folder(tmp_path / "depth_npzs", ["secret.npz"])
    index = f"id,domain\na,robot\n../../depth_npzs/secret,x\n{tmp_path}/depth_npzs/secret,x\n".encode()
    benchmark = pai_c(tmp_path / "data", index)
    assert [(sample.id, sample.domain) for sample in benchmark.samples] == [("a", "robot")]
    assert len(benchmark.rejected) == 2


@pytest.mark.parametrize("index", [b"id,domain\n\xff,x\n", b"id\n" + b"x" * 200_000])
def test_an_index_that_cannot_be_read_is_named(tmp_path, index):
    with pytest.raises(InputError, match=r"metadata\.csv cannot be read as CSV"):
        pai_c(tmp_path / "data", index)


def test_names_longer_than_the_file_system_takes_are_absent_files(tmp_path):
    benchmark = pai_c(tmp_path / "data", b"id\n" + b"n" * 300 + b"\n")
    assert [sample.reference is None for sample in benchmark.samples] == [False, True]


@pytest.mark.parametrize("data", [True, False])
def test_an_unknown_layout_is_refused_with_and_without_data(tmp_path, data):
    videos = folder(tmp_path / "videos", ["a__0.mp4"])
    with pytest.raises(InputError, match="unknown layout 'nope'"):
        load_benchmark(videos if data else None, videos=videos, track="quality", layout="nope")
