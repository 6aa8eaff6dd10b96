"""The smaller commands: data, metrics, generate, doctor."""

import json
from pathlib import Path

import pytest
import typer

from api.cli import score
from api.cli.benchmarks import make
from api.cli.door import progress_bar
from api.cli.generate import generate
from api.services.audit import not_audited
from gen_eval.media import write_clip


def test_a_benchmark_of_scenes_is_made_described_verified_and_generated_for(cli, tmp_path):
    size = ["--height", "48", "--width", "64", "--frames", "5", "--per-kind", "1"]
    made = cli("data", "make", "--out", "data", "--kinds", "falling,bouncing", *size)
    assert made.code == 0, made
    described = cli("data", "describe", "data", "--json")
    assert described.code == 0, described
    assert described.json["layout"] == "pai-c"
    assert described.json["samples"] == 2
    assert described.json["has"]["depth"] == described.json["has"]["masks"] == 2
    assert described.json["has"]["all six captions"] == 2
    verified = cli("data", "verify", "data", "--json")
    assert verified.code == 0, verified
    generated = cli("generate", "--generator", "scenes", "--data", "data", "--out", "out", "--seeds", "0,1", "--json")
    assert generated.code == 0, generated
    assert len(generated.json["clips"]) == 4
    videos = sorted(path.name for path in (tmp_path / "out" / "videos").glob("*__?.mp4"))
    assert len(videos) == 4
    scored = cli("score", "control", "--videos", "out/videos", "--data", "data", "--out", "run", "--json")
    assert scored.code == 0, scored
    for metric in ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou"):
        total = scored.json["aggregate"][metric]["corrected"]
        assert (total["n"], total["members"]["n"]) == (2, 4), metric
    quality = cli("score", "quality", "--videos", "out/videos", "--data", "data", "--out", "quality", "--json")
    assert quality.code == 0, quality
    assert set(quality.json["groups"]) == {"common_sense", "physics"}


def test_captions_are_generated_one_by_one(cli, tmp_path):
    size = ["--height", "32", "--width", "48", "--frames", "3", "--per-kind", "1"]
    cli("data", "make", "--out", "data", "--kinds", "falling", *size)
    done = cli("generate", "--generator", "scenes", "--data", "data", "--out", "out", "--captions", "--json")
    assert done.code == 0, done
    assert [one["member"] for one in done.json["clips"]] == ["0", "1", "2", "3", "4", "5"]


def test_verify_names_what_is_broken(cli, tmp_path, make_clip):
    data = tmp_path / "refs"
    data.mkdir()
    write_clip(data / "good.mp4", make_clip(0), 24.0)
    (data / "bad.mp4").write_text("no video")
    done = cli("data", "verify", data, "--json")
    assert done.code == 1, done
    assert [(one["where"], one["reason"]) for one in done.json["problems"]] == [("bad reference", "undecodable")]


def test_benchmarks_are_listed_with_their_terms(cli):
    done = cli("data", "list", "--json")
    assert done.code == 0, done
    terms = {one["name"]: one["licence"] for one in done.json["benchmarks"]}
    assert terms["pai-bench-g"] == "CC BY-NC 4.0"
    assert "CC BY-NC 4.0" in cli("data", "list").out


def test_metrics_are_listed_with_their_facts(cli):
    done = cli("metrics", "list", "--json")
    assert done.code == 0, done
    found = {one["name"]: one for one in done.json["metrics"]}
    assert found["depth_si_rmse"]["higher_is_better"] is False
    assert set(found["edge_f1"]["protocols"]) == {"reference", "reference-v2", "corrected"}
    assert found["i2v_subject"]["uses_condition_image"]
    assert found["overall_consistency"]["uses_prompt"]
    assert found["aesthetic_quality"]["networks"] == ["clip_vitl14_visual", "aesthetic_head"]
    assert found["temporal_flickering"]["networks"] == []
    lines = {line.split()[1]: line for line in cli("metrics", "list").out.splitlines() if line.startswith("│ ")}
    assert "frames of clip" in lines["blur_ssim"]
    assert "not ranked" in lines["dynamic_degree"]
    assert "raft_things" in lines["dynamic_degree"]


def test_an_audit_names_what_it_left_out():
    left = not_audited([{"metric": "mask_miou.all"}, {"metric": "blur_ssim"}])
    assert not {"mask_miou", "blur_ssim"} & set(left)
    assert "weights" in left["subject_consistency"]
    assert "no scene" in left["overall_consistency"]


def test_doctor_tries_what_it_says(cli):
    done = cli("doctor", "--json")
    assert done.code == 0, done
    assert done.json["healthy"]
    assert {check["name"] for check in done.json["checks"]} >= {"results store", "metrics load"}
    networks = done.json["networks"]
    assert {*networks["here"], *networks["absent"]} >= {"dino_vitb16", "viclip", "dover", "vgg16"}
    known = [name for one in networks["tracks"].values() for name in (*one["here"], *one["absent"])]
    assert sorted(known) == sorted([*networks["here"], *networks["absent"]])
    assert "lpips_alex" not in known, "no shipped metric needs it"


def test_doctor_names_the_command_for_absent_weights(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path))
    done = cli("doctor")
    assert done.code == 0, done
    assert "gen-eval weights fetch aesthetic_head amt_s" in done.out
    assert "gen-eval weights fetch dover grounding_dino_tiny sam2_hiera_large vda_small vgg16" in done.out
    assert str(tmp_path) in done.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["generate", "--generator", "scene", "--data", "d", "--out", "o"], "did you mean scenes"),
        (["generate", "--generator", "scenes", "--data", "absent", "--out", "o"], "no benchmark data"),
        (["generate", "--generator", "scenes", "--data", "d", "--out", "o", "--seeds", "x"], "whole numbers"),
        (["data", "describe", "absent"], "no benchmark data"),
        (["data", "make", "--out", "o", "--kinds", "flying"], "no kind of scene flying"),
    ],
)
def test_bad_arguments_are_explained(cli, arguments, expected):
    done = cli(*arguments)
    assert done.code == 2, done
    assert expected in done.err
    assert "Traceback" not in done.err


def test_a_sample_that_is_no_scene_is_declined_and_named(cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x_full_info.json").write_text(json.dumps([{"video_id": "av_1", "prompt_en": "p"}]))
    done = cli("generate", "--generator", "scenes", "--data", "d", "--out", "o", "--json")
    assert done.code == 1, done
    assert [one["reason"] for one in done.json["clips"]] == ["generator_declined"]


def test_an_unknown_flaw_ends_before_anything_is_made(cli, tmp_path):
    size = ["--height", "32", "--width", "48", "--frames", "3", "--per-kind", "1"]
    cli("data", "make", "--out", "data", "--kinds", "falling", *size)
    done = cli("generate", "--generator", "scenes", "--data", "data", "--out", "out", "--flaw", "melting")
    assert done.code == 2, done
    assert "melting" in done.err
    assert not Path(tmp_path / "out").exists()


def test_verify_opens_depth_maps_masks_and_control_signals(cli, tmp_path):
    size = ["--height", "32", "--width", "48", "--frames", "3", "--per-kind", "1"]
    cli("data", "make", "--out", "data", "--kinds", "falling", *size)
    broken = [next((tmp_path / "data" / folder).iterdir()) for folder in ("blur", "depth_npzs", "masks")]
    for path in broken:
        path.write_bytes(path.read_bytes()[:40])
    done = cli("data", "verify", "data", "--json")
    assert done.code == 1, done
    assert {one["where"].split(" ", 1)[1] for one in done.json["problems"]} == {"control blur", "depth", "masks"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: generate("scenes", Path("d"), Path("o"), strength=0.5), "give --flaw too"),
        (lambda: score.quality(Path("v"), Path("o"), media=Path("m")), "give --samples too"),
    ],
)
def test_options_that_would_do_nothing_are_refused(capsys, call, expected):
    with pytest.raises(typer.Exit) as ended:
        call()
    assert ended.value.exit_code == 2
    assert expected in capsys.readouterr().err


def test_an_error_before_any_progress_is_one_line(capsys):
    with progress_bar() as move:
        move("scoring", 0, 0)
    assert capsys.readouterr().err == ""
    with progress_bar() as move:
        move("scoring", 3, 3)
    assert "3/3" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "data"])
def test_an_output_that_cannot_be_written_is_an_error_of_one_line(tmp_path, capsys, below):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(typer.Exit) as ended:
        make(tmp_path / "file" / below)
    assert ended.value.exit_code == 2
    found = capsys.readouterr().err
    assert found.startswith("error: ")
    assert found.count("\n") == 1
    assert str(tmp_path / "file") in found
