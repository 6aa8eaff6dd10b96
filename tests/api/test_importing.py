"""Old results become runs: what is kept, what is checked, and how they stand against runs of one's own."""

import csv
import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from api.services.comparison import compare
from api.services.importing import import_results
from api.services.reporting import render
from api.services.results import RunResults
from gen_eval.protocols import total_rules
from gen_eval.quality.totals import overall_total
from gen_eval.records import InputError, Reason, Status, digest_of

EIGHT = total_rules()["quality"].mean_of
VIDEOS = [f"{sample}__{seed}.mp4" for sample in ("av_1", "robot_2", "robot_3") for seed in (0, 1)]


def written(videos=VIDEOS, seed=0, dimensions=EIGHT):
    """What the public code would write for ``videos``."""
    rng = np.random.default_rng(seed)
    content = {}
    for name in dimensions:
        records = []
        for video in videos:
            value, count = float(rng.uniform(0.3, 0.9)), int(rng.integers(3, 40))
            record = {"video_path": f"/models/wan/{video}", "video_results": value}
            if name == "imaging_quality":
                record["video_results"] = 100 * value
            if name == "background_consistency":
                record |= {"video_sim": value * count, "cnt_per_video": count}
            if name.startswith("i2v"):
                record["image_path"] = f"condition_image/{video.split('__')[0]}.jpg"
            records.append(record)
        values = [record["video_results"] for record in records]
        total = float(np.mean(values)) / (100 if name == "imaging_quality" else 1)
        if name == "background_consistency":
            total = sum(one["video_sim"] for one in records) / sum(one["cnt_per_video"] for one in records)
        content[name] = [total, records]
    return content


@pytest.fixture
def bring(tmp_path):
    def to(content, name="wan_eval_results.json", out="run", **options):
        files = [content] if isinstance(content, dict) else content
        paths = []
        for place, one in enumerate(files):
            paths.append(tmp_path / (name if len(files) == 1 else f"{place}_{name}"))
            paths[-1].write_text(json.dumps(one))
        return import_results(paths, tmp_path / out, **options)

    return to


def test_every_total_of_the_file_comes_out_of_the_rows(bring):
    content = written()
    run = bring(content)
    assert run.model == "wan"
    assert run.manifest["protocol"] == "reference"
    for name, (total, _) in content.items():
        assert run.aggregate[name]["reference"].main.value == pytest.approx(total, abs=1e-12)
        assert run.manifest["imported"]["checks"][name]["agrees"]
    assert run.totals["quality"]["reference"].value == pytest.approx(
        np.mean([total for total, _ in content.values()]), abs=1e-12
    )
    assert run.exit_code == 0
    assert run.absent == []
    assert run.domains == {"av_1": "av", "robot_2": "robot", "robot_3": "robot"}
    assert {row.weights for row in run.rows} == {None}
    quality = next(row for row in run.rows if row.metric == "imaging_quality")
    assert quality.values["raw"] == pytest.approx(100 * quality.value)
    beside = run.aggregate["imaging_quality"]["reference"].values["raw"]
    assert beside.value == pytest.approx(100 * content["imaging_quality"][0])
    assert beside.unit == "of 100"
    background = next(row for row in run.rows if row.metric == "background_consistency")
    assert background.detail["sum"] == pytest.approx(background.value * background.detail["count"])
    assert next(row for row in run.rows if row.metric == "i2v_subject").detail["condition_image"] == "av_1.jpg"
    assert all("/" not in json.dumps(dict(row.detail)) for row in run.rows)


SHORT = {
    "subject_consistency": "sc", "background_consistency": "bc", "motion_smoothness": "ms", "aesthetic_quality": "aq",
    "imaging_quality": "iq", "overall_consistency": "oc", "i2v_subject": "is", "i2v_background": "ib",
}  # fmt: skip


def test_every_row_of_the_published_table_as_a_run(bring, goldens):
    """Quality of Table 3 out of runs with the printed dimensions, and Overall with the printed domain mean."""
    with (goldens / "papers" / "pai_table3.csv").open() as lines:
        table = list(csv.DictReader(lines))
    assert len(table) == 16
    for place, line in enumerate(table):
        content = {}
        for name, short in SHORT.items():
            value = float(line[f"quality_{short}"]) / 100
            shown = 100 * value if name == "imaging_quality" else value
            record = {"video_path": "av_1__0.mp4", "video_results": shown}
            if name == "background_consistency":
                record |= {"video_sim": 7 * value, "cnt_per_video": 7}
            content[name] = [value, [record]]
        run = bring(content, out=f"run{place}", model=line["model"])
        quality = run.totals["quality"]["reference"]
        assert -0.0625 - 1e-9 <= 100 * quality.value - float(line["quality_avg"]) <= 0.05 + 1e-9
        overall = overall_total(float(line["domain_avg"]) / 100, quality.value)
        assert 100 * overall.value == pytest.approx(float(line["overall"]), abs=0.08)


def test_imported_twice_is_imported_once(bring, tmp_path):
    first = bring(written())
    before = render([RunResults.read(tmp_path / "run")], ".json")
    second = bring(written())
    assert first.run == second.run
    assert render([RunResults.read(tmp_path / "run")], ".json") == before
    with pytest.raises(InputError, match="holds another run"):
        bring(written(seed=1))


def test_one_file_for_each_dimension(bring):
    content = written()
    run = bring([{name: entry} for name, entry in content.items()], model="wan")
    assert run.totals["quality"]["reference"].value == pytest.approx(np.mean([one for one, _ in content.values()]))
    assert len(run.manifest["imported"]["files"]) == 8
    with pytest.raises(InputError, match=r"i2v_subject stands in .*0_wan.* and in .*1_wan"):
        bring([written(dimensions=["i2v_subject"]), written(dimensions=["i2v_subject"])], out="other")


def test_what_is_missing_twice_or_not_finite_is_a_row_with_its_reason(bring):
    content = written(dimensions=["i2v_subject", "i2v_background"])
    records = content["i2v_subject"][1]
    records[1]["video_results"] = float("nan")
    records[2] = dict(records[3], video_results=0.5)  # one video is lost, another is there twice
    run = bring(content)
    found = {row.key[1:3]: row for row in run.rows if row.metric == "i2v_subject"}
    assert found["av_1", "1"].reason is Reason.NOT_FINITE
    assert found["robot_2", "0"].reason is Reason.MISSING_VIDEO
    assert found["robot_2", "1"].reason is Reason.DUPLICATE_VIDEO
    assert found["robot_2", "1"].detail["raw"] == [0.5, records[3]["video_results"]]
    assert sum(row.status is Status.OK for row in found.values()) == 3
    aggregate = run.aggregate["i2v_subject"]["reference"]
    assert aggregate.main.members == (3, 6)
    assert aggregate.reasons == {"duplicate_video": 1, "missing_video": 1, "not_finite": 1}
    assert run.exit_code == 1
    json.loads(render([run], ".json"), parse_constant=pytest.fail)


def test_a_video_that_is_missing_everywhere_is_one_line(bring, tmp_path, cli):
    content = written(dimensions=("subject_consistency", "motion_smoothness"))
    content["subject_consistency"][1].pop()
    for _, records in content.values():
        records.pop(0)
    (tmp_path / "g_full_info.json").write_text(json.dumps([{"video_id": "av_1", "prompt_en": "p"},
                                                           {"video_id": "robot_2", "prompt_en": "p"},
                                                           {"video_id": "robot_3", "prompt_en": "p"},
                                                           {"video_id": "misc_4", "prompt_en": "p"}]))  # fmt: skip
    (tmp_path / "w_eval_results.json").write_text(json.dumps(content))
    out = cli("import", tmp_path / "w_eval_results.json", "--data", tmp_path / "g_full_info.json", "--out", "run").out
    assert out.count("(misc_4, 0): the result file holds no record of this video") == 1
    assert "(robot_3, 1; subject_consistency): the result file" in out
    assert "--seeds" not in out, "an option that import does not have"


def test_a_total_that_does_not_follow_is_said_everywhere(bring, tmp_path, cli):
    content = written()
    content["motion_smoothness"][0] = 0.99
    run = bring(content)
    check = run.manifest["imported"]["checks"]["motion_smoothness"]
    assert (check["written"], check["agrees"]) == (0.99, False)
    assert run.aggregate["motion_smoothness"]["reference"].main.value == check["recomputed"]
    assert "the file says 0.99" in render([run], ".html").decode()
    done = cli("import", tmp_path / "wan_eval_results.json", "--out", tmp_path / "cli", "--json")
    assert done.code == 1
    assert "total of motion_smoothness: the file says 0.99" in done.err
    assert done.json["imported"]["checks"]["motion_smoothness"]["agrees"] is False
    assert (tmp_path / "cli" / "report.html").is_file()


def test_a_benchmark_decides_which_video_belongs_to_which_sample(bring, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    entries = [{"video_id": one, "prompt_en": f"p {one}"} for one in ("av_1", "robot_2", "physics_9")]
    (data / "bench_full_info.json").write_text(json.dumps(entries))
    run = bring(written(), data=data)
    assert run.manifest["unknown_videos"] == ["robot_3__0.mp4", "robot_3__1.mp4"]
    assert list(run.domains) == ["av_1", "physics_9", "robot_2"]
    assert run.aggregate["i2v_subject"]["reference"].reasons == {"missing_video": 1}
    assert run.aggregate["i2v_subject"]["reference"].main.n == 2
    assert run.totals["quality"]["reference"].parts["i2v_subject"].count == (2, 3)
    assert run.manifest["samples"][0]["prompt"] == digest_of("p av_1")


def test_names_of_vbench_are_prompts_with_an_index(bring, tmp_path):
    videos = [f"a cat runs-{k}.mp4" for k in range(5)] + ["a dog-0.mp4"]
    (tmp_path / "wan_full_info.json").write_text(
        json.dumps([{"prompt_en": "a cat runs", "video_list": [f"/v/{one}" for one in videos[:5]]}])
    )
    run = bring(written(videos, dimensions=["subject_consistency", "temporal_flickering"]))
    samples = {one["id"]: one for one in run.manifest["samples"]}
    assert [one["id"] for one in samples["a cat runs"]["members"]] == ["0", "1", "2", "3", "4"]
    assert samples["a cat runs"]["prompt"] == digest_of("a cat runs")
    assert samples["a dog"]["prompt"] is None
    total = run.totals["quality"]["reference"]
    assert (total.value, total.partial.of) == (None, ("subject_consistency",))


def test_dimensions_that_are_no_metrics_here_are_named(bring):
    content = written(dimensions=["i2v_subject"]) | {"camera_motion": [0.5, [{"video_path": "a", "video_results": 1}]]}
    run = bring(content)
    assert run.manifest["imported"]["left_out"] == ["camera_motion"]
    assert "camera_motion" in render([run], ".html").decode()
    with pytest.raises(InputError, match="holds no record of a dimension known here; it has camera_motion"):
        bring({"camera_motion": content["camera_motion"]}, out="other")
    with pytest.raises(InputError, match="no file holds i2v_background; they hold i2v_subject"):
        bring(content, out="other", metrics=("i2v_background",))


def test_a_malformed_record_is_named_in_a_line(tmp_path, cli):
    path = tmp_path / "x.json"
    path.write_text('{"i2v_subject": [0.5, [{"video_path": "a__0.mp4"}]]}')
    done = cli("import", path, "--out", tmp_path / "out")
    assert done.code == 2
    assert "i2v_subject, record 0 has no video_results" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def own_run(imported, shift=0.0):
    """A run of one's own with the same samples under the same rules, whose weights and videos are known."""
    manifest = {name: value for name, value in deepcopy(imported.manifest).items() if name != "imported"}
    manifest |= {"layout": "pai-g", "chunk": 8, "environment": {"numpy": "2.4"}, "model": "own"}
    placement = {"device": "cpu", "dtype": "float32", "compile": False}
    manifest["networks"] = {"placement": placement, "packages": {"torch": "2"}, "weights": {"dino_vitb16": "w" * 64}}
    manifest["samples"] = [
        {
            **sample,
            "prompt": digest_of("p"),
            "condition_image": {"path": "condition_image/x.jpg", "sha256": "c"},
            "members": [{**member, "sha256": "v"} for member in sample["members"]],
        }
        for sample in manifest["samples"]
    ]
    rows = [replace(row, model="own", value=row.value + shift, weights="w" * 64) for row in imported.rows]
    return RunResults(digest_of([manifest, shift]), manifest, rows)


def test_an_imported_run_stands_against_one_of_ones_own(bring):
    """H14: what differs is said first; what is not known is no difference and stops nothing."""
    imported = bring(written())
    own = own_run(imported, shift=-0.05)
    (found,) = compare(own, imported).others
    about = [one.about for one in found.differences]
    assert "the second run was imported from wan_eval_results.json" in found.differences[0].text
    assert not {"environment", "condition_image", "prompts", "networks", "chunk", "videos"} & set(about)
    assert "layout" in about
    assert found.not_compared == ()
    assert {one.metric for one in found.metrics} == set(EIGHT)
    for one in found.metrics:
        assert one.paired.difference == pytest.approx(0.05, abs=1e-12)
        assert one.other_inputs == ()
        assert one.paired.n == 3
    assert found.totals[0].paired.difference == pytest.approx(0.05, abs=1e-12)
    (back,) = compare(imported, own).others
    assert "the first run was imported" in back.differences[0].text
    assert back.worse
    page = render([own, imported], ".html").decode()
    assert "Imported from wan_eval_results.json" in page


def test_another_rule_for_the_mean_is_said(bring):
    imported = bring(written())
    own = own_run(imported)
    own.manifest["metrics"]["i2v_subject"]["members"] = {"reference": "sample_first"}
    (found,) = compare(own, imported).others
    assert any(one.about == "aggregation" and "sample_first and pooled" in one.text for one in found.differences)


@pytest.mark.parametrize("suffix", [".html", ".csv", ".tex", ".json", ".parquet"])
def test_every_form_of_report_takes_an_imported_run(bring, suffix):
    assert render([bring(written())], suffix)


def test_background_without_numbers_of_frames_is_a_plain_mean(bring):
    content = written(dimensions=["background_consistency"])
    for record in content["background_consistency"][1]:
        del record["video_sim"], record["cnt_per_video"]
    content["background_consistency"][0] = float(
        np.mean([one["video_results"] for one in content["background_consistency"][1]])
    )
    run = bring(content)
    assert run.manifest["metrics"]["background_consistency"]["members"] == {"reference": "pooled"}
    assert run.manifest["imported"]["checks"]["background_consistency"]["agrees"]
    assert run.aggregate["background_consistency"]["reference"].main.n == 3
