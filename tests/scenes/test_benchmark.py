"""A benchmark of scenes on disk: readable by both tracks, equal bytes every time, resumable."""

import csv
import json

import numpy as np
import pytest

from control_metrics.segmentation_file import read_segmentation
from control_metrics.signals import open_depth
from gen_eval.data import load_benchmark
from gen_eval.data.signal_files import depth_archive, masks_document
from gen_eval.media import read_clip, read_image
from gen_eval.records import InputError
from gen_eval.scenes import KINDS, Recipe, read_recipes, render, scene, write_benchmark
from gen_eval.scenes.signals import depth_picture, masks_picture

ARGUMENTS = {"kinds": ("falling", "occluded"), "per_kind": 2, "size": (24, 40), "fps": 10, "frames": 4, "seed": 7}
IDS = ("physics_falling_007", "physics_falling_008", "av_occluded_007", "av_occluded_008")


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "benchmark"
    assert write_benchmark(out, **ARGUMENTS) == IDS
    return out


def truth(name):
    recipe = Recipe.of_id(name)
    return render(recipe.kind, seed=recipe.seed, size=(24, 40), fps=10, frames=4)


def test_equal_arguments_give_equal_bytes(data, tmp_path):
    write_benchmark(tmp_path / "again", **ARGUMENTS)
    assert content(tmp_path / "again") == content(data)


def test_the_public_layout_of_the_conditional_track(data):
    names = {
        f"{folder}/{name}.mp4" for folder in ("videos", "canny", "blur", "depth_vids", "sam2_vids") for name in IDS
    }
    names |= {f"depth_npzs/{name}.npz" for name in IDS} | {f"masks/{name}.masks.json" for name in IDS}
    variants = ("", *(f"_caption{k}" for k in range(1, 6)))
    captions = {f"captions/{name}{variant}.json" for name in IDS for variant in variants}
    assert names | captions <= content(data).keys()
    for name in captions:
        entry = json.loads((data / name).read_text())
        assert len(entry) == 1
        assert all(isinstance(value, str) and value for value in entry.values())
    with (data / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["domain"]) for row in rows] == [
        (name, "physics" if "falling" in name else "av") for name in IDS
    ]


def test_the_loader_of_the_control_track_finds_everything(data):
    benchmark = load_benchmark(data, videos=data / "videos", track="control")
    assert benchmark.layout == "pai-c"
    assert not benchmark.rejected
    assert [sample.id for sample in benchmark.samples] == sorted(IDS)
    for sample in benchmark.samples:
        drawn = scene(*(lambda recipe: (recipe.kind, recipe.seed))(Recipe.of_id(sample.id)))
        assert sample.captions == (drawn.prompt, *drawn.captions)
        assert sample.domain == drawn.domain
        assert sample.controls.keys() == {"edge", "blur", "depth", "seg"}
        clip = truth(sample.id)
        read = read_clip(sample.reference)
        np.testing.assert_array_equal(read.frames, clip.frames)  # lossless
        objects = list(read_segmentation(sample.masks))
        assert [phrase for phrase, _ in objects] == [phrase for phrase, _ in clip.masks]
        for (_, own), (_, other) in zip(objects, clip.masks, strict=True):
            np.testing.assert_array_equal(own, other)
        with np.load(sample.depth, allow_pickle=False) as archive:
            assert list(archive) == ["data"]
            np.testing.assert_array_equal(archive["data"], clip.depth)
        with open_depth(sample.depth) as maps:
            assert maps.shape == (4, 24, 40)


def test_the_loader_of_the_generation_track_finds_everything(data):
    benchmark = load_benchmark(data, videos=data / "videos", track="quality")
    assert benchmark.layout == "pai-g"
    assert not benchmark.rejected
    assert [sample.id for sample in benchmark.samples] == sorted(IDS)
    for sample in benchmark.samples:
        clip = truth(sample.id)
        assert sample.prompt == clip.prompt
        assert sample.domain == clip.domain
        np.testing.assert_array_equal(read_image(sample.condition_image).pixels, clip.frames[0])
        assert Recipe.from_json(sample.extra["scene"]) == Recipe(clip.kind, clip.seed, (24, 40), 10.0, 4)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_questions_are_written_for_judges_and_for_understanding(data):
    judged, chosen = lines(data / "questions.jsonl"), lines(data / "understanding.jsonl")
    expected = {(name, question.uid): question for name in IDS for question in truth(name).questions}
    assert {(line["id"], line["uid"]) for line in judged} == {
        key for key, question in expected.items() if question.is_yes_no
    }
    for line in judged:
        assert line.keys() == {"id", "uid", "question", "index2ans", "answer", "task"}
        assert line["index2ans"][line["answer"]] == expected[line["id"], line["uid"]].answer_text
    assert len(chosen) == len(expected) == len({line["id"] for line in chosen})
    for line in chosen:
        name, uid = line["id"].split("__")
        assert line["options"][line["answer"]] == expected[name, uid].answer_text
        assert (data / line["video"]).is_file()
        assert set(line["options"]) <= set("ABCD")
    for name in IDS:
        own = json.loads((data / "vqa" / f"{name}.json").read_text())
        assert [{"id": name, **entry} for entry in own] == [line for line in judged if line["id"] == name]


def test_control_videos_show_the_signals(data):
    clip, name = truth(IDS[2]), IDS[2]
    for folder, expected in (
        ("canny", clip.edges[..., None] * np.uint8(255)),
        ("depth_vids", depth_picture(clip.depth)),
        ("sam2_vids", masks_picture(clip.masks)),
    ):
        shown = read_clip(data / folder / f"{name}.mp4").frames.astype(float)
        error = np.abs(shown - expected).mean()
        assert error < 6, folder  # compressed, with half the colour resolution
        assert error < np.abs(shown - expected[::-1]).mean() + 1e-9
        assert np.ptp(shown) > 100
    blur = read_clip(data / "blur" / f"{name}.mp4").frames.astype(float)
    assert np.abs(np.diff(blur, axis=2)).mean() < np.abs(np.diff(clip.frames.astype(float), axis=2)).mean()


def test_interrupted_and_started_again_it_ends_with_the_same_bytes(data, tmp_path):
    class StopError(Exception):
        pass

    def stop(name):
        if name == IDS[1]:
            raise StopError

    with pytest.raises(StopError):
        write_benchmark(tmp_path, **ARGUMENTS, done=stop)
    assert not (tmp_path / "videos" / f"{IDS[2]}.mp4").exists()
    (tmp_path / "videos" / f".{IDS[2]}.abcdef.part").write_bytes(b"half")
    (tmp_path / "masks" / f"{IDS[0]}.masks.json").unlink()
    kept = (tmp_path / "videos" / f"{IDS[0]}.mp4").stat().st_mtime_ns
    seen = []
    write_benchmark(tmp_path, **ARGUMENTS, done=seen.append)
    assert seen == list(IDS)
    assert (tmp_path / "videos" / f"{IDS[0]}.mp4").stat().st_mtime_ns == kept
    assert content(tmp_path) == content(data)


@pytest.mark.parametrize("change", [{"size": (24, 42)}, {"seed": 8}, {"lossless": False}, {"kinds": ("falling",)}])
def test_a_folder_of_other_scenes_is_not_mixed_with(data, change):
    before = content(data)
    with pytest.raises(InputError, match="choose another folder"):
        write_benchmark(data, **{**ARGUMENTS, **change})
    assert content(data) == before


@pytest.mark.parametrize(
    "change", [{"per_kind": 0}, {"kinds": ("melting",)}, {"size": (2, 2)}, {"frames": 0}, {"fps": -1}]
)
def test_bad_arguments_write_nothing(tmp_path, change):
    with pytest.raises((ValueError, InputError)):
        write_benchmark(tmp_path / "new", **{**ARGUMENTS, **change})
    assert not (tmp_path / "new").exists()


def test_without_control_videos_and_with_odd_sides(tmp_path):
    names = write_benchmark(tmp_path, kinds=("pushed",), size=(17, 23), fps=5, frames=2, controls=False)
    assert names == ("robot_pushed_000",)
    assert not (tmp_path / "canny").exists()
    clip = render("pushed", size=(17, 23), fps=5, frames=2)
    np.testing.assert_array_equal(read_clip(tmp_path / "videos" / "robot_pushed_000.mp4").frames, clip.frames)


def test_recipes_are_read_back(data, tmp_path):
    recipes = read_recipes(data)
    assert tuple(recipes) == IDS
    assert all(recipe.id == name and recipe.size == (24, 40) for name, recipe in recipes.items())
    assert read_recipes(tmp_path) == {}
    (tmp_path / "scenes.json").write_text('{"scenes": {"a": {"kind": "melting"}}}')
    with pytest.raises(InputError, match="melting"):
        read_recipes(tmp_path)
    (tmp_path / "scenes.json").write_text("[")
    with pytest.raises(InputError, match="write the benchmark anew"):
        read_recipes(tmp_path)


def test_ids_name_their_scene():
    for kind in KINDS:
        recipe = Recipe(kind, 12)
        assert Recipe.of_id(recipe.id) == recipe
    for other in ("physics_falling", "robot_falling_001", "physics_falling_01", "task_0001", "physics_falling_000__1"):
        assert Recipe.of_id(other) is None


def test_archives_are_compact_and_reproducible():
    clip = render("falling", size=(64, 96), frames=8)
    assert depth_archive(clip.depth) == depth_archive(clip.depth.copy())
    assert len(depth_archive(clip.depth)) < clip.depth.nbytes / 10
    document = json.loads(masks_document(clip.masks))
    assert document["size"] == [8, 64, 96]
    vanished = render("falling", size=(64, 96), frames=8, fps=5, flaw="vanish")
    texts = json.loads(masks_document(vanished.masks))["objects"][0]["rle"]
    assert [text is None for text in texts] == list(~vanished.masks[0][1].any(axis=(1, 2)))
    assert None in texts


def test_pictures_of_signals():
    flat = np.full((2, 3, 4), 0.5, dtype=np.float32)
    assert not depth_picture(flat).any()
    ramp = np.linspace(1, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    assert depth_picture(ramp)[0, 0, 0].tolist() == [0, 0, 0]
    assert depth_picture(ramp)[1, 2, 3].tolist() == [255, 255, 255]
    large, small = np.ones((1, 4, 4), dtype=bool), np.zeros((1, 4, 4), dtype=bool)
    small[0, 1:3, 1:3] = True
    picture = masks_picture([("a small thing", small), ("a large thing", large)])
    assert (picture[0, 1, 1] != picture[0, 0, 0]).any()
    assert picture.any(axis=-1).all()
