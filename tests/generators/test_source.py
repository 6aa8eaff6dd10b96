"""The benchmark's real videos as one more system."""

import json
from pathlib import Path

import pytest

from api.services.generation import generate_videos
from control_metrics.segmentation_file import read_segmentation
from gen_eval.data import load_benchmark, match_videos
from gen_eval.generators import MANIFEST, generate_folder
from gen_eval.generators.source import GENERATOR
from gen_eval.records import InputError, Reason, Sample
from gen_eval.registry import load
from gen_eval.scenes import write_benchmark


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    write_benchmark(out, kinds=("bouncing", "pushed"), size=(32, 48), fps=8, frames=4, seed=1, controls=False)
    return out


def samples(data, track="quality"):
    return load_benchmark(data, videos=data / "videos", track=track).samples


def test_source_is_found_by_name():
    assert load("gen_eval.generators", "source") is GENERATOR


@pytest.mark.parametrize("track", ["quality", "control"])
def test_every_real_video_is_copied_byte_for_byte(data, tmp_path, track):
    made = generate_folder(GENERATOR, samples(data, track), tmp_path)
    assert len(made) == 2
    for record in made:
        assert record.video == f"{record.sample}__0.mp4"
        real, copy = data / "videos" / f"{record.sample}.mp4", tmp_path / "videos" / record.video
        assert copy.read_bytes() == real.read_bytes()
        assert not copy.is_symlink()
        assert copy.stat().st_ino != real.stat().st_ino
        assert (tmp_path / "depth_npzs" / f"{record.sample}__0.npz").is_file()
        assert read_segmentation(tmp_path / "masks" / f"{record.sample}__0.masks.json")
    assert json.loads((tmp_path / MANIFEST).read_text())["generator"] == "source"
    benchmark = load_benchmark(data, videos=tmp_path / "videos", track=track)
    found = match_videos(benchmark, tmp_path / "videos", model="source", track=track)
    assert not found.unknown
    assert all(member.problem is None for group in found.groups for member in group.members)


def test_started_again_it_changes_nothing(data, tmp_path):
    generate_folder(GENERATOR, samples(data), tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*.mp4")}
    generate_folder(GENERATOR, samples(data), tmp_path)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before


def test_another_ending_is_kept_and_pickled_masks_go_where_they_are_looked_for(tmp_path):
    video, masks = tmp_path / "x.webm", tmp_path / "x.pkl"
    video.write_bytes(b"video")
    masks.write_bytes(b"masks")
    (made,) = generate_folder(GENERATOR, [Sample(id="a", reference=video, masks=masks)], tmp_path / "out")
    assert made.video == "a__0.webm"
    assert (tmp_path / "out" / "segmentation" / "a__0.pkl").read_bytes() == b"masks"


def test_a_sample_without_a_real_video_is_named_and_the_rest_goes_on(data, tmp_path):
    strangers = [Sample(id="a"), Sample(id="b", reference=Path(tmp_path / "absent.mp4"))]
    made = generate_folder(GENERATOR, [*strangers, *samples(data)[:1]], tmp_path / "out")
    assert [record.reason for record in made] == [Reason.MISSING_GROUND_TRUTH, Reason.MISSING_GROUND_TRUTH, None]
    assert "videos/a.mp4" in made[0].message


@pytest.mark.parametrize("arguments", [{"seeds": (0, 1)}, {"seeds": (3,)}, {"captions": True}])
def test_real_videos_have_no_seeds(data, tmp_path, arguments):
    with pytest.raises(InputError, match="source has a single clip"):
        generate_folder(GENERATOR, samples(data), tmp_path / "out", **arguments)
    with pytest.raises(InputError, match="has no options"):
        generate_folder(GENERATOR, samples(data), tmp_path / "out", options={"flaw": "blur"})
    assert not (tmp_path / "out").exists()


def test_real_videos_are_scored_like_any_system(data, tmp_path, cli):
    generate_videos("source", data, tmp_path / "source")
    videos = tmp_path / "source" / "videos"
    done = cli(
        *("score", "control", "--videos", videos, "--data", data, "--out", tmp_path / "run", "--workers", 1, "--json"),
        *("--metrics", "blur_ssim,mask_miou"),
    )
    assert done.code == 0, done
    assert done.json["model"] == "source"
    assert {(row["sample"], row["member"]) for row in done.json["rows"]} == {(one.id, "0") for one in samples(data)}
    for metric in ("blur_ssim", "mask_miou"):
        assert done.json["aggregate"][metric]["corrected"]["value"] == 1.0


def test_real_videos_have_a_place_in_a_quality_report(data, tmp_path, cli):
    generate_videos("source", data, tmp_path / "source")
    done = cli(
        *("score", "quality", "--videos", tmp_path / "source" / "videos", "--data", data, "--out", tmp_path / "run"),
        *("--metrics", "temporal_flickering", "--json"),
    )
    assert done.code == 0, done
    assert done.json["model"] == "source"
    assert done.json["aggregate"]["temporal_flickering"]["corrected"]["n"] == len(samples(data))
    assert "source" in (tmp_path / "run" / "report.html").read_text()
