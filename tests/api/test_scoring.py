"""Scoring through the command line: real clips, field cases, coverage, bad input."""

import itertools
import json
import os
import shutil
import sqlite3

import cv2
import numpy as np
import pytest

from gen_eval.media import read_clip, write_clip


def rows_of(document, **wanted):
    return [row for row in document["rows"] if all(row[key] == value for key, value in wanted.items())]


def values(document, metric, protocol="corrected"):
    return {(row["sample"], row["member"]): row["value"] for row in rows_of(document, metric=metric, protocol=protocol)}


def independent_blur_ssim(member, reference):
    """Protocol section 3, by scikit-image: bilateral filter, full SSIM map, range of each reference frame."""
    from skimage.metrics import structural_similarity  # noqa: TID251 - the independent reference

    maps = []
    for own, other in zip(member, reference, strict=True):
        blurred, truth = (cv2.bilateralFilter(frame, 30, 150, 100) for frame in (own, other))
        spread = float(truth.max()) - float(truth.min())
        _, full = structural_similarity(truth, blurred, data_range=spread, channel_axis=2, full=True)
        maps.append(full.mean())
    return float(np.mean(maps))


def test_real_clips_are_scored_and_equal_an_independent_computation(cli, tmp_path, real_clips):
    videos, data = tmp_path / "videos", tmp_path / "data"
    videos.mkdir()
    data.mkdir()
    shutil.copy(real_clips / "carphone_distorted.mp4", videos / "carphone__0.mp4")
    shutil.copy(real_clips / "carphone_pristine.mp4", videos / "carphone__1.mp4")
    shutil.copy(real_clips / "carphone_pristine.mp4", data / "carphone.mp4")
    (tmp_path / "some.yaml").write_text("first-40: {limit: 40}")
    options = ["--metrics", "blur_ssim,edge_f1", "--preset", tmp_path / "some.yaml"]
    done = cli("score", "control", "--videos", videos, "--data", data, *options, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done
    found = values(done.json, "blur_ssim")
    distorted, pristine = (read_clip(videos / f"carphone__{seed}.mp4").frames[:40] for seed in (0, 1))
    assert found["carphone", "0"] == pytest.approx(independent_blur_ssim(distorted, pristine), abs=1e-6)
    assert found["carphone", "1"] == 1.0
    assert values(done.json, "edge_f1")["carphone", "1"] == 1.0
    assert 0 < values(done.json, "edge_f1")["carphone", "0"] < 1


def test_all_four_real_clips_flicker_as_computed_by_hand(cli, tmp_path, real_clips):
    videos = tmp_path / "videos"
    videos.mkdir()
    for path in real_clips.glob("*.mp4"):
        shutil.copy(path, videos / f"{path.stem}__0.mp4")
    done = cli("score", "quality", "--videos", videos, "--preset", "121-frames", "--out", tmp_path / "run", "--json")
    assert done.code == 0, done
    found = values(done.json, "temporal_flickering")
    assert len(found) == 4
    for path in real_clips.glob("*.mp4"):
        assert found[path.stem, "0"] == pytest.approx(flickering_by_hand(path, 121), abs=1e-12)


def flickering_by_hand(path, limit):
    import av

    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24").astype(np.int16) for frame in container.decode(video=0)][:limit]
    pairs = [np.abs(after - before).mean(dtype=np.float64) for before, after in itertools.pairwise(frames)]
    return 1 - float(np.mean(pairs)) / 255


def test_missing_and_broken_videos_are_rows_with_reasons(cli, tmp_path, make_clip):
    """H1: eight good videos, one empty file, one absent."""
    videos = tmp_path / "videos"
    videos.mkdir()
    prompts = [{"video_id": f"physics_{number}", "prompt_en": "a ball"} for number in range(10)]
    (tmp_path / "x_full_info.json").write_text(json.dumps(prompts))
    for number in range(8):
        write_clip(videos / f"physics_{number}__0.mp4", make_clip(number), 24.0)
    (videos / "physics_8__0.mp4").touch()
    done = cli("score", "quality", "--videos", videos, "--data", tmp_path, "--out", tmp_path / "run", "--json")
    assert done.code == 1, done
    rows = rows_of(done.json, metric="temporal_flickering", protocol="corrected")
    assert [row["status"] for row in rows] == ["ok"] * 8 + ["failed"] * 2
    assert [row["reason"] for row in rows[8:]] == ["undecodable", "missing_video"]
    total = done.json["aggregate"]["temporal_flickering"]["corrected"]
    assert (total["n"], total["N"], total["members"]) == (8, 10, {"n": 8, "N": 10})
    assert "left out" in total["rule"]
    good = [row["value"] for row in rows[:8]]
    assert total["value"] == pytest.approx(np.mean(good), abs=1e-12)
    assert total["mean_missing_as_zero"] == pytest.approx(np.sum(good) / 10, abs=1e-12)


def test_no_good_video_is_a_report_without_a_value(cli, tmp_path):
    """H1: not a traceback, not 0.0."""
    videos = tmp_path / "videos"
    videos.mkdir()
    (videos / "a__0.mp4").touch()
    done = cli("score", "quality", "--videos", videos, "--out", tmp_path / "run", "--json")
    assert done.code == 1, done
    total = done.json["aggregate"]["temporal_flickering"]["corrected"]
    assert (total["value"], total["n"], total["N"]) == (None, 0, 1)
    assert (tmp_path / "run" / "report.html").is_file()
    assert "Traceback" not in done.err


def test_seeds_are_averaged_within_a_sample_first(cli, tmp_path, make_clip):
    """H2: five seeds of one sample weigh as much as one of another."""
    videos = tmp_path / "videos"
    videos.mkdir()
    rng = np.random.default_rng(0)
    for seed in range(5):
        write_clip(videos / f"a fantasy landscape__{seed}.mp4", make_clip(seed), 24.0, lossless=True)
    noise = rng.integers(0, 256, (5, 48, 64, 3), dtype=np.uint8)
    write_clip(videos / "A fantasy landscape__0.mp4", noise, 24.0, lossless=True)
    (videos / "notes.txt").write_text("not a video")
    done = cli("score", "quality", "--videos", videos, "--out", tmp_path / "run", "--json")
    found = values(done.json, "temporal_flickering")
    total = done.json["aggregate"]["temporal_flickering"]["corrected"]
    first = np.mean([value for (sample, _), value in found.items() if sample == "a fantasy landscape"])
    assert total["value"] == pytest.approx((first + found["A fantasy landscape", "0"]) / 2, abs=1e-12)
    assert total["uneven_members"] == {"min": 1, "max": 5}
    reference = values(done.json, "temporal_flickering", "reference")
    if reference:
        pooled = done.json["aggregate"]["temporal_flickering"]["reference"]["value"]
        assert pooled == pytest.approx(np.mean(list(reference.values())), abs=1e-12)


def test_every_total_follows_from_the_rows(cli, small_benchmark, tmp_path):
    """H3."""
    data, videos = small_benchmark(3)
    done = cli("score", "control", "--videos", videos, "--data", data, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done
    checked = 0
    for metric, protocols in done.json["aggregate"].items():
        for protocol, total in protocols.items():
            found = {key: value for key, value in values(done.json, metric, protocol).items() if value is not None}
            if not found:
                assert total["value"] is None
                continue
            by_sample = {}
            for (sample, _), value in found.items():
                by_sample.setdefault(sample, []).append(value)
            pooled = "all members" in total["rule"]
            expected = np.mean(list(found.values())) if pooled else np.mean([np.mean(v) for v in by_sample.values()])
            assert total["value"] == pytest.approx(expected, abs=1e-9)
            assert total["unit"] == "ratio"
            checked += 1
    assert checked >= 4


def test_equal_frames_at_another_rate(cli, tmp_path, make_clip):
    """H14: values are equal, the row says which rate it saw, and `compare` says so before any difference."""
    frames, data = make_clip(1, frames=49), tmp_path / "data"
    data.mkdir()
    write_clip(data / "clip.mp4", frames, 24.0, lossless=True)
    found = {}
    for fps in (8, 24):
        videos = tmp_path / f"at{fps}"
        videos.mkdir()
        write_clip(videos / "clip__0.mp4", frames[::-1].copy(), float(fps), lossless=True)
        for track, more in (("quality", []), ("control", ["--data", data, "--metrics", "blur_ssim,edge_f1"])):
            done = cli("score", track, "--videos", videos, "--out", f"{track}{fps}", "--json", *more)
            assert done.code in {0, 3}, done
            for row in done.json["rows"]:
                found.setdefault((row["metric"], row["protocol"]), []).append(row)
    checked = 0
    for slow, fast in found.values():
        assert (slow["value"], slow["reason"]) == (fast["value"], fast["reason"])
        if slow["value"] is not None:
            assert (slow["detail"]["video"]["fps"], fast["detail"]["video"]["fps"]) == (8.0, 24.0)
            checked += 1
    assert checked >= 5
    assert "fps_mismatch" in found["blur_ssim", "corrected"][0]["flags"]
    assert "fps_mismatch" not in found["blur_ssim", "corrected"][1]["flags"]
    compared = cli("compare", "control24", "control8").out
    assert 0 <= compared.find("frame rate") < compared.find("blur_ssim")
    quality = cli("compare", "quality24", "quality8", "--fail-if", "worse")
    assert "not ranked" in quality.out, "flickering measures motion and decides nothing alone"
    assert quality.code == 1
    assert "cannot be decided" in quality.err


def test_a_cut_clip_is_scored_over_what_there_is(cli, tmp_path):
    """H4 through the public door: the header promises 24 frames, 11 can be decoded."""
    videos = tmp_path / "videos"
    videos.mkdir()
    noise = np.stack([np.random.default_rng(i).integers(0, 255, (48, 64, 3), dtype=np.uint8) for i in range(24)])
    write_clip(videos / "a__0.mp4", noise, 24.0)
    content = (videos / "a__0.mp4").read_bytes()
    (videos / "a__0.mp4").write_bytes(content[: int(len(content) * 0.6)])
    done = cli("score", "quality", "--videos", videos, "--out", tmp_path / "run", "--json")
    (row,) = rows_of(done.json, metric="temporal_flickering", protocol="corrected")
    assert row["status"] == "ok"
    assert "truncated" in row["flags"]
    detail = row["detail"]["video"]
    assert detail["declared_frames"] == 24
    assert 0 < detail["decoded_frames"] < 24


def test_the_run_folder_is_as_described(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(2)
    cli("score", "control", "--videos", videos, "--data", data, "--out", tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"manifest.json", "scores.sqlite", "curves", "frames", "run.log.jsonl", "report.html"}
    text = (tmp_path / "run" / "manifest.json").read_text()
    assert str(tmp_path) not in text, "a manifest holds relative paths only"
    assert list((tmp_path / "run" / "curves").glob("*.parquet"))
    assert list((tmp_path / "run" / "frames").glob("*.jpg"))


def test_another_package_can_add_a_metric(cli_process, small_benchmark, plugin, tmp_path):
    _, videos = small_benchmark(1)
    source = """
from gen_eval.features import FRAMES, Metric
from gen_eval.records import MetricResult
class Length(Metric):
    name, track, inputs, unit, bounds, source = "length", "quality", "single", "frames", (0, None), "a test"
    def meter(self, measure, member, *, image=None):
        return Counter()
    def decide(self, counts, decide):
        return MetricResult.of(self.name, counts)
class Counter:
    n = 0
    def update(self, chunk):
        self.n += len(chunk[FRAMES])
    def counts(self):
        return self.n
METRIC = Length()
"""
    configs = tmp_path / "configs" / "protocols"
    configs.mkdir(parents=True)
    (configs / "length.yaml").write_text("length: {corrected: {}}")
    env = plugin("lengths", source, metrics={"length": "lengths:METRIC", "gone": "no_such_module:METRIC"})
    env["GEN_EVAL_CONFIGS"] = str(tmp_path / "configs")
    done = cli_process("score", "quality", "--videos", videos, "--metrics", "length", "--out", "run", "--json", **env)
    assert done.code == 0, done
    assert done.json["aggregate"]["length"]["corrected"]["value"] == 9
    broken = cli_process("score", "quality", "--videos", videos, "--metrics", "gone", "--out", "run2", **env)
    assert broken.code == 2
    assert "no_such_module" in broken.err
    assert "Traceback" not in broken.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--videos", "absent"], "absent cannot be read"),
        (["--videos", "empty"], "nothing to score"),
        (["--videos", "videos", "--metrics", "blur_sim"], "belongs to|did you mean blur_ssim"),
        (["--videos", "videos", "--metrics", "blur_ssim"], "belongs to `gen-eval score control`"),
        (["--videos", "videos", "--protocol", "newest"], "has no protocol 'newest'; it has reference, corrected"),
        (["--videos", "videos", "--preset", "1-frame"], "no preset '1-frame'"),
        (["--videos", "videos", "--data", "empty"], "is no benchmark data"),
        (["--videos", "videos", "--data", "empty", "--samples", "x.jsonl"], "not both"),
        (["--videos", "videos", "--shard", "3/2"], "i/N"),
        (["--videos", "videos", "--domains", "av"], "no sample has the domain av"),
        (["--videos", "videos", "--limit", "0"], "limit"),
        (["--videos", "videos", "--store", "mysql://x"], "store"),
        (["--videos", "videos", "--layout", "nonsense", "--data", "empty"], "unknown layout"),
    ],
)
def test_bad_arguments_end_with_code_2_and_advice(cli, tmp_path, make_clip, arguments, expected):
    import re

    (tmp_path / "videos").mkdir()
    (tmp_path / "empty").mkdir()
    write_clip(tmp_path / "videos" / "a__0.mp4", make_clip(0), 24.0)
    done = cli("score", "quality", *arguments, "--out", "run")
    assert done.code == 2, done
    assert re.search(expected, re.sub(r"[\s│]+", " ", done.err)), done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_part_that_is_absent_everywhere_is_code_3(cli, small_benchmark, tmp_path):
    _, videos = small_benchmark(1)
    done = cli("score", "control", "--videos", videos, "--out", tmp_path / "run", "--json")
    assert done.code == 3, done
    reasons = {row["metric"]: row["reason"] for row in done.json["rows"]}
    alone = {"visual_quality", "diversity"}  # these need no reference clip, but weights
    assert {reason for metric, reason in reasons.items() if metric not in alone} == {"missing_ground_truth"}
    assert {reason for metric, reason in reasons.items() if metric in alone} == {"missing_weights"}


def test_samples_file_and_rejected_lines(cli, small_benchmark, tmp_path):
    _, videos = small_benchmark(2)
    lines = [json.dumps({"id": f"item{n:02d}", "captions": ["c"], "video": f"data/item{n:02d}.mp4"}) for n in range(2)]
    (tmp_path / "s.jsonl").write_text("\n".join([*lines, '{"id": 7}', "{"]))
    done = cli("score", "control", "--videos", videos, "--samples", tmp_path / "s.jsonl", "--out", "run", "--json")
    assert done.code == 1, done
    assert done.json["aggregate"]["blur_ssim"]["corrected"]["n"] == 2
    assert [one["reason"] for one in done.json["rejected"]] == ["malformed_record", "line_not_json"]
    assert {flag for row in done.json["rows"] for flag in row["flags"]} == {"unknown_domain"}


def test_a_dry_run_writes_nothing_and_says_what_would_be_done(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(3)
    (videos / "item02__1.mp4").unlink()
    (videos / "stray__0.mp4").touch()
    options = ["--videos", videos, "--data", data, "--out", tmp_path / "run", "--seeds", "0,1"]
    done = cli("score", "control", *options, "--dry-run", "--json")
    assert done.code == 0, done
    assert not (tmp_path / "run").exists()
    lines = {line["metric"]: line for line in done.json["metrics"]}
    assert lines["blur_ssim"]["videos"] == 5
    assert lines["blur_ssim"]["without"] == {"missing_video": 1}
    assert lines["depth_si_rmse"]["videos"] == 0
    assert lines["depth_si_rmse"]["without"] == {"missing_ground_truth": 5, "missing_video": 1}
    assert done.json["unknown"] == ["stray__0.mp4"]
    assert done.json["seconds"] > 0
    spoken = cli("score", "control", *options, "--dry-run")
    assert "nothing was scored" in spoken.out


def test_pipes_devices_and_names_without_end_are_rows_and_hang_nothing(cli, tmp_path):
    videos = tmp_path / "videos"
    videos.mkdir()
    os.mkfifo(videos / "pipe__0.mp4")
    (videos / "endless__0.mp4").symlink_to("/dev/zero")
    (videos / "loop__0.mp4").symlink_to("loop__0.mp4")
    (videos / "folder__0.mp4").mkdir()
    lines = [{"id": name} for name in ("pipe", "endless", "loop", "folder")]
    lines.append({"id": "long", "video": "n" * 300 + ".mp4"})
    write_clip(videos / "long__0.mp4", np.zeros((2, 16, 16, 3), np.uint8), 8)
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = cli("score", "control", "--videos", videos, "--samples", tmp_path / "s.jsonl", "--out", tmp_path / "run",
               "--metrics", "edge_f1", "--json")  # fmt: skip
    assert done.code == 1, done
    reasons = {row["sample"]: row["reason"] for row in rows_of(done.json, protocol="corrected")}
    assert reasons == {"pipe": "undecodable", "endless": "undecodable", "loop": "undecodable",
                       "folder": "missing_video", "long": "missing_ground_truth"}  # fmt: skip


@pytest.mark.parametrize("option", ["--metrics", "--seeds", "--domains"])
def test_a_list_that_names_nothing_is_refused(cli, tmp_path, option):
    write_clip(tmp_path / "videos" / "a__0.mp4", np.zeros((2, 16, 16, 3), np.uint8), 8)
    done = cli("score", "quality", "--videos", tmp_path / "videos", "--out", tmp_path / "run", option, " , ")
    assert done.code == 2
    assert f"{option} names nothing" in done.err


def test_a_manifest_changed_by_hand_is_no_empty_run(cli, tmp_path):
    write_clip(tmp_path / "videos" / "a__0.mp4", np.zeros((2, 16, 16, 3), np.uint8), 8)
    assert cli("score", "quality", "--videos", tmp_path / "videos", "--out", tmp_path / "run").code == 0
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "model": "another"}))
    for command in (("report", tmp_path / "run", "--out", tmp_path / "r.json"),
                    ("merge", tmp_path / "run", "--out", tmp_path / "merged")):  # fmt: skip
        done = cli(*command)
        assert done.code == 2, done
        assert "manifest.json or scores.sqlite was changed" in done.err


def test_an_own_protocol_by_path_is_scored_recorded_and_averaged_as_it_says(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(2)
    (tmp_path / "strict.yaml").write_text(
        "edge_f1: {base: corrected, measure: {low: 30, high: 60}, aggregate: {members: pooled}}"
    )
    options = ["score", "control", "--videos", videos, "--data", data, "--metrics", "edge_f1", "--json"]
    own = cli(*options, "--protocol", tmp_path / "strict.yaml", "--out", "own")
    assert own.code == 0, own
    assert list(own.json["aggregate"]["edge_f1"]) == ["strict"]
    assert "all members" in own.json["aggregate"]["edge_f1"]["strict"]["rule"]
    (tmp_path / "strict.yaml").unlink()
    again = cli("report", "own", "--out", "own.json")
    assert again.code == 0, again
    shipped = cli(*options, "--out", "shipped")
    assert (
        shipped.json["aggregate"]["edge_f1"]["corrected"]["value"]
        != own.json["aggregate"]["edge_f1"]["strict"]["value"]
    )


def test_a_row_that_the_manifest_does_not_ask_for_is_named(cli, tmp_path):
    write_clip(tmp_path / "videos" / "a__0.mp4", np.zeros((2, 16, 16, 3), np.uint8), 8)
    assert cli("score", "quality", "--videos", tmp_path / "videos", "--out", tmp_path / "run").code == 0
    with sqlite3.connect(tmp_path / "run" / "scores.sqlite") as connection:
        connection.execute("UPDATE scores SET sample = 'other'")
    connection.close()
    done = cli("report", tmp_path / "run", "--out", tmp_path / "r.json")
    assert done.code == 2
    assert "which its manifest does not ask for" in done.err
