"""Result files of VBench and PAI-Bench: scales, totals, names, and what is malformed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.data.result_files import is_numbered, label_of_file, place_of, read_result_file
from gen_eval.records import InputError


@pytest.fixture
def write(tmp_path):
    def to(content, name="m_eval_results.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return to


def record(value, video="a__0.mp4", **more):
    return {"video_path": f"/data/{video}", "video_results": value, **more}


def the(path, name):
    return next(one for one in read_result_file(path).dimensions if one.name == name)


def test_three_scales_become_one(write):
    """H3: imaging quality 0..100 a video and 0..1 as total; booleans; sums over frames beside means."""
    path = write(
        {
            "imaging_quality": [0.6, [record(56.5), record(63.5, "b__0.mp4")]],
            "dynamic_degree": [0.5, [record(True), record(False, "b__0.mp4")]],
            "background_consistency": [
                0.7,
                [
                    record(0.6, video_sim=6.0, cnt_per_video=10),
                    record(0.75, "b__0.mp4", video_sim=15.0, cnt_per_video=20),
                ],
            ],
        }
    )
    quality = the(path, "imaging_quality")
    assert [(one.raw, one.value) for one in quality.records] == [(56.5, 0.565), (63.5, 0.635)]
    assert quality.check.agrees
    assert [one.value for one in the(path, "dynamic_degree").records] == [1.0, 0.0]
    background = the(path, "background_consistency")
    assert [(one.value, one.count) for one in background.records] == [(0.6, 10), (0.75, 20)]
    assert background.check.recomputed == pytest.approx(21 / 30)
    assert all(one.check.agrees for one in read_result_file(path).dimensions)


def test_a_total_on_the_scale_of_the_records_is_understood(write):
    check = the(write({"imaging_quality": [56.5, [record(56.5)]]}), "imaging_quality").check
    assert (check.written, check.agrees) == (0.565, True)


def test_a_total_that_does_not_follow_is_reported_and_kept(write):
    path = write({"motion_smoothness": [0.9, [record(0.5), record(0.7, "b__0.mp4")]]})
    check = the(path, "motion_smoothness").check
    assert (check.written, check.recomputed, check.agrees) == (0.9, pytest.approx(0.6), False)
    assert "the file says 0.9, its records give 0.6" in check.note
    weighted = the(write({"subject_consistency": [0.9, [record(0.5)]]}), "subject_consistency").check
    assert "single process" in weighted.note


def test_sums_in_place_of_means_are_divided_where_the_frames_are_known(write):
    path = write({"background_consistency": [0.6, [record(6.0, video_sim=6.0, cnt_per_video=10)]]})
    assert the(path, "background_consistency").records[0].value == 0.6
    with pytest.raises(InputError, match=r"subject_consistency, record 0: 10\.98 lies outside 0\.\.1"):
        read_result_file(write({"subject_consistency": [0.986, [record(10.98)]]}))


def test_numbers_that_are_not_finite_have_no_value(write):
    path = write('{"i2v_subject": [NaN, [{"video_path": "a__0.mp4", "video_results": NaN}]], "camera_motion": [1, []]}')
    found = the(path, "i2v_subject")
    assert (found.records[0].raw, found.records[0].value) == (None, None)
    assert (found.check.written, found.check.recomputed, found.check.agrees) == (None, None, True)
    assert read_result_file(path).left_out == ("camera_motion",)
    lost = the(write('{"i2v_subject": [NaN, [{"video_path": "a__0.mp4", "video_results": 0.5}]]}'), "i2v_subject")
    assert "no finite total" in lost.check.note
    odd = the(write('{"i2v_subject": [0.5, [{"video_path": "a.mp4", "video_results": Infinity}]]}'), "i2v_subject")
    assert "not finite" in odd.check.note


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", r"must be \{dimension"),
        ("{}", r"must be \{dimension"),
        ('{"i2v_subject": [1, []], "i2v_subject": [1, []]}', "'i2v_subject' stands twice"),
        ({"i2v_subject": 0.5}, r"i2v_subject must be \[total, \[records\]\], not 0.5"),
        ({"i2v_subject": [0.5]}, "i2v_subject must be"),
        ({"something": {"a": 1}}, "something must be"),
        ({"i2v_subject": ["x", []]}, "the total of i2v_subject must be a number"),
        ({"i2v_subject": [0.5, [7]]}, "i2v_subject, record 0 must be an object, not 7"),
        (
            {"i2v_subject": [0.5, [record(0.5), {"video_path": "a"}]]},
            "record 1 has no video_results; it has video_path",
        ),
        ({"i2v_subject": [0.5, [{}]]}, "record 0 has no video_results; it has nothing"),
        ({"i2v_subject": [0.5, [record("0.5")]]}, "video_results must be a number, not '0.5'"),
        ({"i2v_subject": [0.5, [record(True)]]}, "video_results must be a number, not True"),
        ({"dynamic_degree": [0.5, [record(None)]]}, "true, false or a number, not None"),
        ({"i2v_subject": [0.5, [{"video_results": 0.5}]]}, "video_path must name a file, not None"),
        ({"i2v_subject": [0.5, [{"video_results": 0.5, "video_path": "x/"}]]}, "video_path must name a file"),
        ({"i2v_subject": [0.5, [{"video_results": 0.5, "video_path": "\ud800"}]]}, "video_path must name a file"),
        ({"i2v_subject": [0.5, [record(0.5, image_path=3)]]}, "image_path must name a file, not 3"),
        ({"background_consistency": [0.5, [record(0.5, cnt_per_video=0)]]}, "cnt_per_video must be a whole number"),
        ({"overall_consistency": [0.5, [record(-1.5)]]}, r"-1\.5 lies outside -1\.\.1"),
        ({"i2v_subject": [10**400, [record(0.5)]]}, "the number .* no score is above"),
        ({"dynamic_degree": [0.5, [record(-(10**101))]]}, "the number .* no score is above"),
        ('{"i2v_subject": [1e999, []]}', "the number .* no score is above"),
    ],
)
def test_malformed_files_are_named_with_dimension_and_record(write, content, named):
    with pytest.raises(InputError, match=named) as failure:
        read_result_file(write(content))
    assert "m_eval_results.json" in str(failure.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_result_file(tmp_path / "absent.json")


def test_prompts_come_from_the_file_beside(write):
    path = write({"i2v_subject": [0.5, [record(0.5)]]})
    assert read_result_file(path).prompts == {}
    info = [{"prompt_en": "a ball", "video_list": ["/x/a__0.mp4", 3]}, {"prompt_en": 7}, "x"]
    write(info, "m_full_info.json")
    assert read_result_file(path).prompts == {"a__0.mp4": "a ball"}
    write({}, "m_full_info.json")
    with pytest.raises(InputError, match=r"m_full_info\.json beside the results"):
        read_result_file(path)


@pytest.mark.parametrize(
    ("name", "ids", "numbered", "expected"),
    [
        ("av_1__3.mp4", None, False, ("av_1", "3")),
        ("a__b__1.mp4", {"a"}, False, None),
        ("a__b__1.mp4", {"a", "a__b"}, False, ("a__b", "1")),
        ("a cat runs-4.mp4", None, True, ("a cat runs", "4")),
        ("a cat runs-4.mp4", None, False, ("a cat runs-4", "default")),
        ("physics_ball-3.mp4", {"physics_ball-3"}, True, ("physics_ball-3", "default")),
        ("a cat-0.mp4", {"a dog"}, True, None),
        ("plain.mp4", None, False, ("plain", "default")),
    ],
)
def test_names_of_videos(name, ids, numbered, expected):
    assert place_of(name, ids, numbered=numbered) == expected


def test_vbench_names_are_read_only_where_all_are_such():
    assert is_numbered(["a cat-0.mp4", "a cat-1.mp4"])
    assert not is_numbered(["physics_ball-3__0.mp4", "a-1.mp4"])
    assert not is_numbered([])


def test_labels(tmp_path):
    assert label_of_file(tmp_path / "wan_eval_results.json") == "wan"
    assert label_of_file(tmp_path / "other.json") == "other"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.sampled_from([1.0, 100.0]))
def test_a_mean_of_records_always_agrees(values, scale):
    import tempfile
    from pathlib import Path

    name = "imaging_quality" if scale == 100 else "i2v_background"
    records = [record(scale * value, f"v{place}__0.mp4") for place, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps({name: [sum(values) / len(values), records]}))
        found = the(path, name)
    assert found.check.agrees
    assert [one.value for one in found.records] == pytest.approx(values)
