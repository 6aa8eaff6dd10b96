"""A prompt file and a folder of videos that do not fit together: every video is a row or is listed."""

import json
import shutil

import pytest

from api.services.preparation import prepare
from api.services.request import ScoreRequest
from gen_eval.media import write_clip
from gen_eval.records import InputError


@pytest.fixture
def place(tmp_path, goldens, make_clip):
    """The golden's prompt file and folder, with its extra files, two files for one seed and ids of no known domain."""
    golden = json.loads((goldens / "quality" / "file_mapping.json").read_text())
    data, videos = tmp_path / "data", tmp_path / "videos"
    data.mkdir()
    videos.mkdir()
    entries = [*golden["prompt_file"], {"video_id": "nowhere_1", "prompt_en": "p"}, {"video_id": "absent_1"}]
    (data / "bench_full_info.json").write_text(json.dumps([*entries, entries[0], {"prompt_en": "no id"}]))
    write_clip(tmp_path / "clip.mp4", make_clip(0, frames=3), 8.0)
    extra = [
        name
        for key in ("with_non_video_file", "unknown_video_id", "upper_case_suffix")
        for name in golden[key]["extra"]
    ]
    for name in (*golden["videos"], *extra, "robot_001__0.mkv", "nowhere_1__0.mp4"):
        shutil.copy(tmp_path / "clip.mp4", videos / name)
    return golden, data, videos


def test_every_video_is_a_row_or_is_listed(place, tmp_path, cli):
    golden, data, videos = place
    done = cli(
        *("score", "quality", "--videos", videos, "--data", data, "--out", tmp_path / "run", "--workers", 1),
        *("--metrics", "temporal_flickering", "--json"),
    )
    assert done.code == 1, done
    rows = {(row["sample"], row["member"]): row for row in done.json["rows"] if row["protocol"] == "corrected"}
    assert {key: row["reason"] for key, row in rows.items() if row["status"] != "ok"} == {
        ("robot_001", "0"): "duplicate_video",
        ("absent_1", "0"): "missing_video",
    }
    read = [entry["video"] for entry in golden["result"] if entry["video"] != "robot_001__0.mp4"]
    read += ["human_9__0.MP4", "nowhere_1__0.mp4"]
    names = [f"{sample}__{member}" for (sample, member), row in rows.items() if row["status"] == "ok"]
    assert sorted(names) == sorted(name.rsplit(".", 1)[0] for name in read)
    assert rows["robot_001", "0"]["detail"]["files"] == ["robot_001__0.mkv", "robot_001__0.mp4"]
    assert rows["nowhere_1", "0"]["flags"] == ["unknown_domain"]
    assert rows["av_02", "7"]["domain"] == "av"
    assert done.json["unknown_videos"] == ["other_1__0.mp4"]
    assert [one["reason"] for one in done.json["rejected"]] == ["duplicate_id", "malformed_record"]
    main = done.json["aggregate"]["temporal_flickering"]["corrected"]
    assert (main["n"], main["N"]) == (5, 6)
    assert (main["members"]["n"], main["members"]["N"]) == (5, 7)
    assert main["reasons"] == {"duplicate_video": 1, "missing_video": 1}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seeds": ("0", "1", "0")}, "--seeds names 0 more than once"),
        ({"metrics": ("temporal_flickering",) * 2}, "--metrics names temporal_flickering more than once"),
        ({"domains": ("av", "av")}, "--domains names av more than once"),
    ],
)
def test_what_is_named_twice_is_refused(place, options, named):
    _, data, videos = place
    with pytest.raises(InputError, match=named):
        prepare(ScoreRequest("quality", videos, data=data, **options))
