"""Folders that generators fill, with the generator ``scenes`` and small ones made for the purpose."""

import json
from pathlib import Path

import numpy as np
import pytest

from control_metrics.segmentation_file import read_segmentation
from gen_eval.data import load_benchmark, match_videos
from gen_eval.generators import MANIFEST, GeneratedClip, Generator, generate_folder
from gen_eval.generators.scenes import GENERATOR, recipe_of
from gen_eval.media import read_clip
from gen_eval.records import InputError, ItemError, Reason, Sample
from gen_eval.registry import load
from gen_eval.scenes import Recipe, render, write_benchmark

SIZE, FPS, FRAMES = (32, 48), 10, 5
ID = "common_sense_bouncing_003"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    write_benchmark(out, kinds=("bouncing", "pushed"), size=SIZE, fps=FPS, frames=FRAMES, seed=3, controls=False)
    return out


def samples(data, track="quality"):
    return load_benchmark(data, videos=data / "videos", track=track).samples


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_scenes_is_found_by_name():
    assert load("gen_eval.generators", "scenes") is GENERATOR
    assert GENERATOR.name == "scenes"


@pytest.mark.parametrize("track", ["quality", "control"])
def test_both_tracks_lead_to_the_recipe_that_was_written(data, track):
    assert [recipe_of(sample) for sample in samples(data, track)] == [
        Recipe("bouncing", 3, SIZE, FPS, FRAMES),
        Recipe("pushed", 3, SIZE, FPS, FRAMES),
    ]
    assert recipe_of(Sample(id="av_occluded_004")) == Recipe("occluded", 4)


def test_seeds_are_takes_of_one_scene_with_exact_signals(data, tmp_path):
    made = generate_folder(GENERATOR, samples(data), tmp_path, seeds=(0, 1), lossless=True)
    assert [(record.sample, record.member, record.video) for record in made] == [
        (name, seed, f"{name}__{seed}.mp4") for name in (ID, "robot_pushed_003") for seed in ("0", "1")
    ]
    takes = [read_clip(tmp_path / "videos" / f"{ID}__{seed}.mp4") for seed in (0, 1)]
    assert takes[0].frames.shape == (FRAMES, *SIZE, 3)
    assert (takes[0].frames != takes[1].frames).any()
    for seed in (0, 1):
        twin = render("bouncing", seed=3, size=SIZE, fps=FPS, frames=FRAMES, variation=seed)
        np.testing.assert_array_equal(takes[seed].frames, twin.frames)
        with np.load(tmp_path / "depth_npzs" / f"{ID}__{seed}.npz", allow_pickle=False) as archive:
            np.testing.assert_array_equal(archive["data"], twin.depth)
        ((phrase, mask),) = read_segmentation(tmp_path / "masks" / f"{ID}__{seed}.masks.json")
        assert phrase == twin.masks[0][0]
        np.testing.assert_array_equal(mask, twin.masks[0][1])
    benchmark = load_benchmark(data, videos=tmp_path / "videos", track="control")
    matched = match_videos(benchmark, tmp_path / "videos", model="scenes", track="control")
    assert not matched.unknown
    members = [member for group in matched.groups for member in group.members]
    assert len(members) == 4
    assert all(member.path and member.depth and member.masks for member in members)


def test_captions_become_members(data, tmp_path):
    made = generate_folder(GENERATOR, samples(data, "control")[:1], tmp_path, captions=True)
    assert [record.video for record in made] == [f"{ID}__{k}.mp4" for k in range(6)]
    assert {record.seed for record in made} == {0}
    assert len({record.sha256 for record in made}) == 6


def test_flaws_are_options_and_are_recorded(data, tmp_path):
    options = {"flaw": "vanish", "strength": 1.0}
    generate_folder(GENERATOR, samples(data)[:1], tmp_path, options=options)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert manifest["generator"] == "scenes"
    assert manifest["options"] == options
    document = json.loads((tmp_path / "masks" / f"{ID}__0.masks.json").read_text())
    assert document["objects"][0]["rle"][-1] is None


def test_started_again_it_keeps_what_is_there_and_ends_the_same(data, tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    generate_folder(GENERATOR, samples(data), whole, seeds=(0, 1))
    generate_folder(GENERATOR, samples(data)[:1], parted, seeds=(1,))
    video = parted / "videos" / f"{ID}__1.mp4"
    kept = video.stat().st_mtime_ns
    (parted / "videos" / f".{ID}__0.1234.part").write_bytes(b"half")
    generate_folder(GENERATOR, samples(data), parted, seeds=(0, 1))
    assert video.stat().st_mtime_ns == kept
    assert content(parted) == content(whole)


def test_a_folder_is_not_shared_by_two_models(data, tmp_path):
    generate_folder(GENERATOR, samples(data)[:1], tmp_path)
    before = content(tmp_path)
    with pytest.raises(InputError, match="choose another folder"):
        generate_folder(GENERATOR, samples(data)[:1], tmp_path, options={"flaw": "blur"})
    assert content(tmp_path) == before


def test_a_sample_that_is_no_scene_is_declined_and_the_rest_goes_on(data, tmp_path):
    stranger = Sample(id="task_0001", prompt="A cat plays the piano.")
    done = []
    made = generate_folder(GENERATOR, [stranger, *samples(data)[:1]], tmp_path, done=done.append)
    assert [(record.sample, record.reason) for record in made] == [
        (ID, None),
        ("task_0001", Reason.GENERATOR_DECLINED),
    ]
    assert "built-in simulator" in made[1].message
    assert len(done) == 2
    clips = json.loads((tmp_path / MANIFEST).read_text())["clips"]
    assert [clip["reason"] for clip in clips] == [None, "generator_declined"]
    assert list((tmp_path / "videos").iterdir()) == [tmp_path / "videos" / f"{ID}__0.mp4"]


class Gray(Generator):
    """Frames only, of odd size; remembers what it was asked."""

    name = "gray"

    def __init__(self):
        self.asked = []

    def generate(self, sample, *, seed, prompt=None, **options):
        self.asked.append((sample.id, seed, prompt))
        return GeneratedClip(np.full((2, 17, 19, 3), 40 * seed, dtype=np.uint8), 8.0)


def test_a_generator_without_signals_writes_videos_only(tmp_path):
    generator = Gray()
    made = generate_folder(generator, [Sample(id="a__b", prompt="x")], tmp_path, seeds=(2, 0))
    assert generator.asked == [("a__b", 2, None), ("a__b", 0, None)]
    assert [record.member for record in made] == ["0", "2"]
    assert not (tmp_path / "masks").exists()
    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert names == ["a__b__0.mp4", "a__b__0.preview.mp4", "a__b__2.mp4", "a__b__2.preview.mp4"]
    assert read_clip(tmp_path / "videos" / "a__b__2.mp4").frames.shape == (2, 17, 19, 3)
    generate_folder(generator, [Sample(id="a__b", prompt="x")], tmp_path, seeds=(2, 0))
    assert len(generator.asked) == 2


def test_captions_of_a_sample_without_variants_are_its_prompt(tmp_path):
    generator = Gray()
    generate_folder(generator, [Sample(id="a", prompt="x")], tmp_path, captions=True, seeds=(3,))
    assert generator.asked == [("a", 3, "x")]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "different"),
        ({"seeds": (-1,)}, "-1"),
        ({"seeds": (0, 1), "captions": True}, "exactly one"),
        ({"options": {"colour": "red"}}, "colour"),
        ({"options": {"flaw": "melting"}}, "melting"),
        ({"options": {"flaw": "blur", "strength": 2.0}}, "strength"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_made(tmp_path, arguments, named):
    with pytest.raises(InputError, match=named):
        generate_folder(GENERATOR, [Sample(id=ID)], tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../escape", "a/b", ".hidden", "a\\b", "nul\0", ""])
def test_an_id_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="file name"):
        generate_folder(Gray(), [Sample(id=name)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_generator_without_options_refuses_them(tmp_path):
    with pytest.raises(InputError, match="speed"):
        generate_folder(Gray(), [Sample(id="a")], tmp_path, options={"speed": 2})


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / MANIFEST).write_text('{"clips": 3}')
    with pytest.raises(InputError, match="list of clips"):
        generate_folder(Gray(), [Sample(id="a")], tmp_path)


def test_a_damaged_scene_in_the_data_is_declined():
    for scene in ({"kind": "melting"}, {"kind": "falling", "seed": "0", "size": [16, 16], "fps": 8, "frames": 2}):
        with pytest.raises(ItemError) as failure:
            recipe_of(Sample(id="x", extra={"scene": scene}))
        assert failure.value.reason is Reason.GENERATOR_DECLINED


def test_a_sample_with_other_paths_falls_back_to_its_id(tmp_path):
    sample = Sample(id="physics_rolling_001", reference=Path(tmp_path / "videos" / "x.mp4"))
    assert recipe_of(sample) == Recipe("rolling", 1)
