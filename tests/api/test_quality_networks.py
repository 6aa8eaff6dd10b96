"""`gen-eval score quality` with all its networks, small ones with stand-in numbers, through the command line."""

import json
import shutil

import av
import numpy as np
import pytest

from api.services.request import ScoreRequest
from api.services.results import RunResults
from api.services.scoring import Execution
from api.services.scoring import score as run_services
from bench import stand_in
from gen_eval import weights
from gen_eval.media import write_clip, write_image
from gen_eval.records import InputError
from gen_eval.settings import settings

DIMENSIONS = {
    "aesthetic_quality",
    "background_consistency",
    "i2v_background",
    "i2v_subject",
    "imaging_quality",
    "motion_smoothness",
    "overall_consistency",
    "subject_consistency",
}
GUARDS = {"dynamic_degree", "temporal_flickering"}
HEIGHT, WIDTH, FRAMES = 126, 130, 5


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The environment in which the command line finds small networks."""
    names = [name for name in weights.checkpoint_names() if weights.checkpoint(name).track == "quality"]
    return stand_in.write(tmp_path_factory.mktemp("networks"), names, small=True)


def pictures(seed, frames=FRAMES, height=HEIGHT, width=WIDTH):
    rng = np.random.default_rng(seed)
    ground = rng.integers(40, 200, (height // 10 + 1, width // 10 + 1, 3), dtype=np.uint8)
    ground = ground.repeat(10, axis=0).repeat(10, axis=1)[:height, :width]
    clip = np.repeat(ground[None], frames, axis=0)
    for frame in range(frames):
        clip[frame, 40:80, 9 * frame : 9 * frame + 40] = (220, 60 + 10 * seed, 30)
    return clip


def write_matroska(path, frames):
    """The same pictures in another container, by another codec, without loss."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=8)
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], "bgr0"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


@pytest.fixture
def benchmark(tmp_path):
    """Two samples with two seeds each, in the public layout."""
    data, videos = tmp_path / "data", tmp_path / "model"
    (data / "condition_image").mkdir(parents=True)
    videos.mkdir()
    entries = []
    for number, sample in enumerate(("robot_1", "av_2")):
        first = pictures(number)
        write_image(data / "condition_image" / f"{sample}.png", first[0])
        entries.append(
            {"video_id": sample, "prompt_en": f"a red box slides to the right, {sample}", "image_name": f"{sample}.png"}
        )
        for seed in (0, 1):
            noise = np.random.default_rng([number, seed]).integers(-12, 13, first.shape)
            write_clip(
                videos / f"{sample}__{seed}.mp4", np.clip(first + noise, 0, 255).astype(np.uint8), 8.0, lossless=True
            )
    (data / "cosmos_predict2_bench_full_info.json").write_text(json.dumps(entries))
    return data, videos


class Done:
    """What a run holds, as the command line would print it."""

    def __init__(self, results):
        self.results, self.json, self.code = results, results.to_json(), results.exit_code

    def __repr__(self):
        rows = [f"{row.key} {row.status} {row.reason} {row.detail.get('message')}" for row in self.results.rows]
        return "\n".join(rows)


@pytest.fixture
def use(monkeypatch):
    """Set environment variables for this process."""

    def setting(values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    yield setting
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def score(benchmark, networks, use, tmp_path):
    """Score with the small networks in this process, where they are loaded once for all tests."""
    data, videos = benchmark
    use(networks | {"GEN_EVAL_THREADS": "1"})

    def run(*metrics, out="run", update=False, env=None, **request):
        use(env or networks)
        asked = ScoreRequest("quality", request.pop("videos", videos), data, metrics=metrics or None, **request)
        run_services(asked, tmp_path / out, Execution(workers=1, update=update))
        return Done(RunResults.read(tmp_path / out))

    return run


@pytest.fixture
def command(cli, benchmark, networks, tmp_path):
    """The same through the command line."""
    data, videos = benchmark

    def run(*arguments, out="run", env=None):
        return cli(
            "score", "quality", "--videos", videos, "--data", data, "--out", tmp_path / out, "--json",
            *arguments, **(networks | (env or {})),
        )  # fmt: skip

    return run


def values(result, protocol="corrected"):
    return {
        (row["sample"], row["member"], row["metric"]): row["value"]
        for row in result.json["rows"]
        if row["protocol"] == protocol
    }


def test_all_dimensions_come_out_of_one_run(command, tmp_path):
    result = command()
    assert result.code == 0, result
    rows = result.json["rows"]
    assert {row["metric"] for row in rows} == DIMENSIONS | GUARDS
    assert all(row["status"] == "ok" and row["value"] is not None for row in rows)
    assert {row["protocol"] for row in rows} == {"corrected", "reference"}  # what costs nothing stands beside
    assert all((row["weights"] is None) == (row["metric"] == "temporal_flickering") for row in rows)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["networks"]["placement"]["dtype"] == "float32"
    assert all(len(digest) == 64 for digest in manifest["networks"]["weights"].values())
    # Quality is the mean of the eight, recomputed from the rows alone
    found = values(result)
    seeds_first = {
        metric: np.mean([np.mean([found[sample, seed, metric] for seed in "01"]) for sample in ("av_2", "robot_1")])
        for metric in DIMENSIONS
    }
    totals = result.json["totals"]["quality"]["corrected"]
    assert totals["value"] == pytest.approx(np.mean(list(seeds_first.values())), abs=1e-9)


def test_a_metric_alone_and_one_frame_at_a_time_have_the_same_values(score):
    together = values(score("i2v_background", "motion_smoothness", "i2v_subject", "subject_consistency"))
    alone = values(score("i2v_background", "motion_smoothness", chunk=1, out="alone"))
    assert len(alone) == 8
    for key, value in alone.items():
        assert value == pytest.approx(together[key], rel=1e-5)


@pytest.fixture
def one_video(tmp_path):
    """A folder with a single video of the benchmark, written by `write`."""

    def make(name, write):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, pictures(0))
        return folder

    return make


def test_no_score_depends_on_the_container(score, one_video):
    first = one_video("mp4", lambda folder, frames: write_clip(folder / "robot_1__0.mp4", frames, 8.0, lossless=True))
    second = one_video("mkv", lambda folder, frames: write_matroska(folder / "robot_1__0.mkv", frames))
    one, two = (values(score(out=folder.name + "-run", videos=folder, model="m")) for folder in (first, second))
    scored = {key: value for key, value in one.items() if value is not None}
    assert {metric for _, _, metric in scored} == DIMENSIONS | GUARDS
    assert one == two


def test_the_frame_rate_moves_only_what_depends_on_time(score, one_video):
    rows = []
    for rate in (8.0, 24.0):
        folder = one_video(
            f"at{rate:.0f}",
            lambda folder, frames, rate=rate: write_clip(folder / "robot_1__0.mp4", frames, rate, lossless=True),
        )
        rows.append(score(out=f"run{rate:.0f}", videos=folder, model="m").json["rows"])
    for one, two in zip(*rows, strict=True):
        if one["metric"] == "dynamic_degree" and one["status"] == "ok":
            assert (one["detail"]["video"]["fps"], two["detail"]["video"]["fps"]) == (8.0, 24.0)
            assert one["values"]["motion"] != two["values"]["motion"]
        else:
            assert one["value"] == two["value"]


EXPECTED = {
    # frames, height, width, constant -> metric -> reason under `corrected`; what is not named has a value
    "one": ((1, 126, 130), dict.fromkeys(DIMENSIONS | GUARDS, "too_few_frames") | dict.fromkeys(
        ("aesthetic_quality", "imaging_quality", "overall_consistency"))),
    "two": ((2, 126, 130), {"motion_smoothness": "too_few_frames"}),
    "three": ((3, 126, 131), {}),
    "small": ((3, 40, 60), {"motion_smoothness": "too_small", "dynamic_degree": "too_small"}),
    "portrait": ((3, 190, 121), {}),
}  # fmt: skip


def test_short_small_odd_upright_and_constant_clips(score, tmp_path):
    folder = tmp_path / "unusual"
    folder.mkdir()
    for name, ((frames, height, width), _) in EXPECTED.items():
        clip = np.stack([pictures(0, 1, max(height, 126), max(width, 130))[0][:height, :width]] * frames)
        clip[-1] = 255 - clip[-1]
        write_clip(folder / f"robot_1__{name}.mp4", clip, 8.0, lossless=True)
    write_clip(folder / "robot_1__constant.mp4", np.full((3, 126, 130, 3), 77, np.uint8), 8.0, lossless=True)
    rows = {
        (row["member"], row["metric"]): row
        for row in score(videos=folder).json["rows"]
        if (row["sample"], row["protocol"]) == ("robot_1", "corrected")
    }
    for name, (_, expected) in EXPECTED.items():
        found = {metric: rows[name, metric]["reason"] for metric in DIMENSIONS | GUARDS}
        assert found == dict.fromkeys(DIMENSIONS | GUARDS) | expected, name
    for metric in DIMENSIONS | GUARDS:
        row = rows["constant", metric]
        assert row["status"] == "ok"
        assert row["flags"] == ["frames_repeated", "constant_frame"][metric != "overall_consistency" :], metric
    for metric in ("subject_consistency", "background_consistency", "temporal_flickering"):
        assert rows["constant", metric]["value"] == pytest.approx(1, abs=1e-6)


def test_absent_weights_are_skips_with_the_command_that_fetches_them(score, networks, tmp_path):
    nowhere = networks | {"GEN_EVAL_WEIGHTS": str(tmp_path / "nowhere")}
    result = score(env=nowhere)
    assert result.code == 0, result  # temporal_flickering has its values
    skipped = {row["metric"] for row in result.json["rows"] if row["reason"] == "missing_weights"}
    assert skipped == DIMENSIONS | {"dynamic_degree"}
    (message,) = {row["detail"]["message"] for row in result.json["rows"] if row["metric"] == "motion_smoothness"}
    assert "gen-eval weights fetch amt_s" in message
    assert "CC BY-NC 4.0" in message
    assert result.json["totals"]["quality"]["corrected"]["value"] is None
    assert score("motion_smoothness", out="nothing", env=nowhere).code == 3


def test_after_fetching_an_update_fills_the_gaps_and_keeps_the_rest(score, networks, tmp_path):
    some = tmp_path / "some"
    shutil.copytree(networks["GEN_EVAL_WEIGHTS"], some)
    shutil.rmtree(some / "dino_vitb16")
    asked = ("subject_consistency", "imaging_quality")
    partly = score(*asked, env=networks | {"GEN_EVAL_WEIGHTS": str(some)})
    assert {row["metric"] for row in partly.json["rows"] if row["status"] == "skipped"} == {"subject_consistency"}
    with pytest.raises(InputError, match="--update"):
        score(*asked)
    whole = score(*asked, update=True)
    assert whole.code == 0, whole
    assert all(row["status"] == "ok" for row in whole.json["rows"])
    assert values(whole) == values(score(*asked, out="fresh"))


def test_a_damaged_file_and_one_of_another_network_are_named(score, networks, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(networks["GEN_EVAL_WEIGHTS"], broken)
    (broken / "lock.json").unlink(missing_ok=True)
    musiq = broken / "musiq_spaq" / "stand-in.safetensors"
    musiq.write_bytes(musiq.read_bytes()[:-100])
    shutil.copy(broken / "amt_s" / "stand-in.safetensors", broken / "dino_vitb16" / "stand-in.safetensors")
    asked = ("imaging_quality", "subject_consistency", "i2v_subject", "background_consistency")
    result = score(*asked, env=networks | {"GEN_EVAL_WEIGHTS": str(broken)})
    assert result.code == 1, result
    bad = {row["metric"]: row["detail"]["message"] for row in result.json["rows"] if row["reason"] == "bad_weights"}
    assert set(bad) == {"imaging_quality", "subject_consistency", "i2v_subject"}
    assert "stand-in.safetensors" in bad["imaging_quality"]
    assert "cls_token" in bad["subject_consistency"]
    assert "comb_block" in bad["subject_consistency"]
    others = {row["metric"] for row in result.json["rows"] if row["status"] == "ok"}
    assert others == {"background_consistency"}


def test_a_run_in_another_number_format_is_another_run(score, tmp_path):
    asked = ("i2v_subject", "motion_smoothness")
    first, half = score(*asked), score(*asked, dtype="bfloat16", out="half")
    assert half.code == 0, half
    assert half.json["run"] != first.json["run"]
    assert half.json["networks"]["placement"]["dtype"] == "bfloat16"
    one, two = values(first), values(half)
    assert one != two
    assert all(two[key] == pytest.approx(value, abs=0.02) for key, value in one.items())
    with pytest.raises(InputError, match="holds another run"):
        score(*asked, dtype="bfloat16")


@pytest.mark.parametrize(
    ("request_", "message"),
    [({"device": "tpu"}, "auto, cpu, cuda or cuda:N"), ({"dtype": "float8"}, "float32, bfloat16, float16")],
)
def test_unknown_devices_and_formats_are_refused(score, request_, message):
    with pytest.raises(InputError, match=message):
        score("i2v_subject", **request_)


def test_missing_pictures_and_prompts_cost_the_metrics_that_need_them(score, benchmark):
    data, _ = benchmark
    (data / "condition_image" / "av_2.png").unlink()
    entries = json.loads((data / "cosmos_predict2_bench_full_info.json").read_text())
    entries[0]["prompt_en"] = ""
    (data / "cosmos_predict2_bench_full_info.json").write_text(json.dumps(entries))
    result = score("i2v_subject", "i2v_background", "overall_consistency", "background_consistency")
    assert result.code == 1, result
    gaps = {
        (row["sample"], row["metric"], row["protocol"]): row["reason"] for row in result.json["rows"] if row["reason"]
    }
    assert gaps == {
        ("av_2", "i2v_subject", "corrected"): "missing_condition_image",
        ("av_2", "i2v_background", "corrected"): "missing_condition_image",
        ("robot_1", "overall_consistency", "corrected"): "missing_prompt",
        ("av_2", "i2v_subject", "reference"): "reference_stops",
        ("av_2", "i2v_background", "reference"): "reference_stops",
        ("robot_1", "overall_consistency", "reference"): "reference_stops",
    }


def test_a_run_that_was_killed_goes_on_and_ends_alike(killed, command, benchmark, networks, tmp_path):
    data, videos = benchmark
    asked = ("--metrics", "imaging_quality,motion_smoothness")
    whole = command(*asked, out="whole")
    arguments = ["score", "quality", "--videos", videos, "--data", data, *asked]
    left = killed(arguments, tmp_path / "killed", len(whole.json["rows"]), **networks)
    assert 0 < left < len(whole.json["rows"])
    ended = command(*asked, out="killed")
    assert ended.code == 0, ended
    assert ended.json == whole.json


def test_a_dry_run_says_what_would_be_skipped(command, tmp_path):
    result = command("--dry-run", env={"GEN_EVAL_WEIGHTS": str(tmp_path / "nowhere")})
    assert result.code == 0, result
    without = {one["metric"]: one["without"] for one in result.json["metrics"]}
    assert without["subject_consistency"] == {"missing_weights": 4}
    assert without["temporal_flickering"] == {}
