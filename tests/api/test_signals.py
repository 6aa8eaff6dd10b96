"""Depth maps and segmentation out of clips: what is written, kept and skipped, and that scores come out the same."""

import json
import tracemalloc

import numpy as np
import pytest

from api.services.extraction import extract_signals
from api.services.request import ScoreRequest
from api.services.results import RunResults
from api.services.scoring import Execution, score
from bench.stand_in import write
from control_metrics.depth import DepthSiRmse
from control_metrics.mask import MaskMiou
from control_metrics.segmentation_file import read_segmentation
from control_metrics.signal_videos import depth_video, segmentation_video
from control_metrics.signals import open_depth
from gen_eval.data.signal_files import DepthWriter, write_depth, write_masks
from gen_eval.features import ClipSignal
from gen_eval.media import read_clip, write_clip
from gen_eval.media.signal_pictures import PALETTE
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.settings import settings


def fake_depth(clip, target, *, power):
    """Brightness as depth."""
    with DepthWriter(target) as writer:
        for frames in clip.chunks:
            writer.add((frames.mean(axis=3) / 255 + 0.1).astype(np.float32) ** power)
    return {"network": "brightness"}


def fake_masks(clip, target, *, limit):
    """What is red is the first word of the prompt, what is not blue the second."""
    red, other = [], []
    for frames in clip.chunks:
        red.append(frames[..., 0] > limit)
        other.append(frames[..., 2] < 90)
    words = clip.info.prompt.split()
    write_masks(target, list(zip(words, map(np.concatenate, (red, other)), strict=False)))
    return {"phrases": words}


@pytest.fixture
def fake_networks(monkeypatch):
    """Signals without a network; `fake_networks["power"] = 2` makes others of the same clips."""
    known = {"power": 1}

    def depth(self, measure):
        return ClipSignal("depth", ".npz", fake_depth, (), (("power", known["power"]),))

    def masks(self, measure):
        return ClipSignal("masks", ".masks.json", fake_masks, (), (("limit", 150),), uses_prompt=True)

    monkeypatch.setattr(DepthSiRmse, "clip_signal", depth)
    monkeypatch.setattr(MaskMiou, "clip_signal", masks)
    return known


@pytest.fixture
def folders(tmp_path, make_clip):
    """PAI-Bench-C's layout with one task of 4 frames, and two clips of it in one naming scheme each."""
    data, videos = tmp_path / "data", tmp_path / "model" / "videos"
    for folder in (data / "videos", data / "captions", videos):
        folder.mkdir(parents=True)
    clip = make_clip(3, 4)
    write_clip(data / "videos" / "t1.mp4", clip, 30.0, lossless=True)
    (data / "captions" / "t1.json").write_text(json.dumps({"caption": "box ground"}))
    for member, name in enumerate(("t1", "t1_caption2")):
        write_clip(videos / f"{name}.mp4", np.roll(clip, 3 + member, axis=2), 24.0, lossless=True)
    return data, videos


def values(run):
    return {row.key[2:]: (row.value, row.reason, dict(row.values)) for row in run.rows}


def scored(out, videos, data, **options):
    request = ScoreRequest("control", videos, data=data, metrics=("depth_si_rmse", "mask_miou"), **options)
    score(request, out, Execution(workers=1))
    return RunResults.read(out)


def status(done):
    return {(one.video, one.signal): one.status for one in done}


def test_scores_from_extracted_files_are_those_with_networks(fake_networks, folders, tmp_path):
    data, videos = folders
    direct = scored(tmp_path / "direct", videos, data)
    assert all(row.value is not None for row in direct.rows)
    done = extract_signals(videos, tmp_path / "signals", signals=("depth", "seg"), data=data)
    assert set(status(done).values()) == {"written"}
    done = extract_signals(data / "videos", data, signals=("seg", "depth"))
    assert set(status(done).values()) == {"written"}
    given = scored(tmp_path / "given", videos, data, signals=tmp_path / "signals")
    assert values(given) == values(direct)
    assert given.run != direct.run
    assert {row.detail.get("signal") for row in given.rows} == {None}, "nothing was computed"


def test_the_public_layout_is_written_and_read_back(fake_networks, folders, tmp_path):
    data, videos = folders
    extract_signals(videos, tmp_path / "s", signals=("depth", "seg"), data=data)
    written = {str(path.relative_to(tmp_path / "s")) for path in (tmp_path / "s").rglob("*") if path.is_file()}
    assert written == {"signals.json"} | {
        f"{folder}/{name}.{kind}"
        for name in ("t1", "t1_caption2")
        for folder, kind in (
            ("depth_npzs", "npz"), ("depth_vids", "mp4"), ("masks", "masks.json"), ("sam2_vids", "mp4")
        )
    }  # fmt: skip
    record = json.loads((tmp_path / "s" / "signals.json").read_text())
    assert record["depth t1"]["facts"] == {"network": "brightness"}
    assert record["depth t1"]["source"]["dtype"] == "float32"
    shown = read_clip(tmp_path / "s" / "depth_vids" / "t1.mp4").frames
    assert shown.shape == (4, 48, 64, 3)
    assert read_clip(tmp_path / "s" / "sam2_vids" / "t1.mp4").frames.shape == (4, 48, 64, 3)


def test_files_are_kept_until_video_parameters_or_caption_change(fake_networks, folders, tmp_path):
    data, videos = folders
    both = ("depth", "seg")
    extract_signals(videos, tmp_path / "s", signals=both, data=data)
    again = status(extract_signals(videos, tmp_path / "s", signals=both, data=data))
    assert set(again.values()) == {"kept"}
    fake_networks["power"] = 2
    assert {key[1]: found for key, found in status(
        extract_signals(videos, tmp_path / "s", signals=both, data=data)
    ).items()} == {"depth": "written", "seg": "kept"}  # fmt: skip
    (data / "captions" / "t1.json").write_text(json.dumps({"caption": "crate floor"}))
    found = status(extract_signals(videos, tmp_path / "s", signals=both, data=data))
    assert {key[1]: one for key, one in found.items()} == {"depth": "kept", "seg": "written"}
    assert read_segmentation(tmp_path / "s" / "masks" / "t1.masks.json").phrases == ("crate", "floor")


def test_what_somebody_else_put_there_is_never_written_over(fake_networks, folders, tmp_path):
    data, _ = folders
    published = data / "depth_npzs" / "t1.npz"
    write_depth(published, np.ones((4, 48, 64), np.float32))
    before = published.read_bytes()
    (done,) = extract_signals(data / "videos", data, signals=("depth",))
    assert (done.status, published.read_bytes()) == ("kept", before)
    assert "another --out" in done.message
    (own,) = extract_signals(data / "videos", tmp_path / "own", signals=("depth",))
    assert own.status == "written"


def test_an_interrupted_file_is_made_again(fake_networks, folders, tmp_path, monkeypatch):
    data, _ = folders

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("api.services.signal_makers.write_clip", killed)
        with pytest.raises(KeyboardInterrupt):
            extract_signals(data / "videos", tmp_path / "s", signals=("depth",))
    assert (tmp_path / "s" / "depth_npzs" / "t1.npz").is_file()
    (done,) = extract_signals(data / "videos", tmp_path / "s", signals=("depth",))
    assert done.status == "written"


def test_captions_lie_in_the_data_or_beside_the_videos(fake_networks, folders, tmp_path, make_clip):
    data, videos = folders
    for found in extract_signals(videos, tmp_path / "none", signals=("seg",)):
        assert (found.status, found.reason) == ("failed", Reason.MISSING_PROMPT)
        assert "captions/" in found.message
    (videos.parent / "captions").mkdir()
    (videos.parent / "captions" / "t1.json").write_text(json.dumps({"any": "crate floor"}))
    assert set(status(extract_signals(videos, tmp_path / "beside", signals=("seg",))).values()) == {"written"}
    for name in ("t1", "t1_caption2"):
        masks = read_segmentation(tmp_path / "beside" / "masks" / f"{name}.masks.json")
        assert masks.phrases == ("crate", "floor"), "the original caption, for variants too"
    write_clip(videos / "other.mp4", make_clip(1, 2), 24.0)
    found = status(extract_signals(videos, tmp_path / "data", signals=("seg",), data=data))
    assert found == {
        ("other.mp4", "seg"): "failed",
        ("t1.mp4", "seg"): "written",
        ("t1_caption2.mp4", "seg"): "written",
    }


def test_a_clip_of_another_shape_fails_as_its_score_does(fake_networks, folders, tmp_path, make_clip):
    data, videos = folders
    write_clip(videos / "t1.mp4", make_clip(3, 4, 48, 48), 24.0, lossless=True)
    found = {one.video: one for one in extract_signals(videos, tmp_path / "s", signals=("depth",), data=data)}
    assert found["t1.mp4"].reason is Reason.ASPECT_MISMATCH
    assert found["t1_caption2.mp4"].status == "written"


# --- with networks ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small_depth(tmp_path, monkeypatch):
    """The small depth network, and a protocol that shows it small pictures."""

    def use(folder):
        for name, value in write(folder, ["vda_small"], small=True).items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    rules = tmp_path / "tiny.yaml"
    rules.write_text("depth_si_rmse: {base: corrected, measure: {base_side: 28}}\n")
    use(tmp_path / "networks")
    yield str(rules), use
    settings.cache_clear()


def test_depth_of_a_network_gives_the_same_score_by_either_way(small_depth, folders, tmp_path):
    pytest.importorskip("torch")
    rules, use = small_depth
    data, videos = folders
    options = {"data": data, "metrics": ("depth_si_rmse",), "protocol": rules, "device": "cpu"}
    score(ScoreRequest("control", videos, **options), tmp_path / "direct", Execution(workers=1))
    first = extract_signals(videos, tmp_path / "s", signals=("depth",), data=data, protocol=rules, device="cpu")
    assert {one.status for one in first} == {"written"}
    extract_signals(data / "videos", data, signals=("depth",), protocol=rules, device="cpu")
    score(ScoreRequest("control", videos, signals=tmp_path / "s", **options), tmp_path / "given", Execution(workers=1))
    runs = [RunResults.read(tmp_path / name) for name in ("direct", "given")]
    assert values(runs[0]) == values(runs[1])
    assert all(row.value > 0 for row in runs[0].rows)
    weights = json.loads((tmp_path / "s" / "signals.json").read_text())["depth t1"]["source"]["weights"]
    assert set(weights) == {"vda_small"}

    stand_in = tmp_path / "networks" / "weights" / "vda_small" / "stand-in.safetensors"
    content = bytearray(stand_in.read_bytes())
    content[-1] ^= 1  # other numbers of the same names
    use(tmp_path / "others")
    (tmp_path / "others" / "weights" / "vda_small" / "stand-in.safetensors").write_bytes(bytes(content))
    settings.cache_clear()
    again = extract_signals(videos, tmp_path / "s", signals=("depth",), data=data, protocol=rules, device="cpu")
    assert {one.status for one in again} == {"written"}, "other weights"


def test_masks_of_networks_give_the_same_score_by_either_way(segmenters, tmp_path, make_clip):
    pytest.importorskip("transformers")
    data, videos = tmp_path / "data", tmp_path / "model" / "videos"
    for folder in (data / "videos", data / "captions", videos):
        folder.mkdir(parents=True)
    clip = make_clip(3, 3)
    write_clip(data / "videos" / "t1.mp4", clip, 30.0, lossless=True)
    (data / "captions" / "t1.json").write_text(json.dumps({"caption": "a red box and a ball on the table"}))
    write_clip(videos / "t1__0.mp4", np.roll(clip, 5, axis=2), 24.0, lossless=True)
    options = {"data": data, "metrics": ("mask_miou",), "device": "cpu"}
    score(ScoreRequest("control", videos, **options), tmp_path / "direct", Execution(workers=1))
    extract_signals(videos, tmp_path / "s", signals=("seg",), data=data, device="cpu")
    extract_signals(data / "videos", data, signals=("seg",), device="cpu")
    score(ScoreRequest("control", videos, signals=tmp_path / "s", **options), tmp_path / "given", Execution(workers=1))
    runs = [RunResults.read(tmp_path / name) for name in ("direct", "given")]
    assert values(runs[0]) == values(runs[1])
    (row,) = (one for one in runs[0].rows if one.protocol == "corrected")
    assert row.value is not None
    assert read_segmentation(tmp_path / "s" / "masks" / "t1__0.masks.json").size == (3, 48, 64)


def test_absent_weights_are_skipped_with_the_command(folders, tmp_path, monkeypatch):
    _, videos = folders
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "nothing"))
    settings.cache_clear()
    done = extract_signals(videos, tmp_path / "s", signals=("depth", "edge"))
    settings.cache_clear()
    found = {one.signal: one for one in done if one.video == "t1.mp4"}
    assert (found["depth"].status, found["depth"].reason) == ("skipped", Reason.MISSING_WEIGHTS)
    assert "gen-eval weights fetch vda_small" in found["depth"].message
    assert found["edge"].status == "written"
    with pytest.raises(InputError, match="the device 'tpu' is not known"):
        extract_signals(videos, tmp_path / "s", signals=("edge",), device="tpu")


# --- the videos ------------------------------------------------------------------------------------------------------


def test_depth_spans_gray_over_the_whole_clip(tmp_path):
    depth = np.zeros((10, 2, 3), np.float32)
    depth[0, 0, 0], depth[9, 1, 2], depth[5] = 2, 6, 4
    depth[3, 0, 0] = np.nan
    write_depth(tmp_path / "d.npz", depth)
    shown = np.concatenate(list(depth_video(tmp_path / "d.npz")))
    assert shown.shape == (10, 2, 3, 3)
    assert shown[0, 0, 0].tolist() == [85, 85, 85]
    assert shown[9, 1, 2].tolist() == [255, 255, 255]
    assert shown[5].tolist() == np.full((2, 3, 3), 170).tolist()
    assert shown[3, 0, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [0.0, 3.5, np.nan])
def test_a_clip_of_one_depth_is_black(tmp_path, value):
    write_depth(tmp_path / "d.npz", np.full((2, 3, 4), value, np.float32))
    assert not np.concatenate(list(depth_video(tmp_path / "d.npz"))).any()


def test_small_objects_lie_above_large_ones(tmp_path):
    small, large, middle = (np.zeros((9, 4, 6), np.bool_) for _ in range(3))
    large[:], middle[:, :, 2:5], small[8, 1, 3] = True, True, True
    write_masks(tmp_path / "m.masks.json", [("dot", small), ("ground", large), ("box", middle)])
    shown = np.concatenate(list(segmentation_video(tmp_path / "m.masks.json")))
    assert shown.shape == (9, 4, 6, 3)
    assert shown[0, 0].tolist() == [list(PALETTE[place]) for place in (0, 0, 1, 1, 1, 0)]
    assert shown[8, 1, 3].tolist() == list(PALETTE[2])


def test_a_clip_without_objects_is_black_and_colours_begin_anew_after_23(tmp_path):
    write_masks(tmp_path / "m.masks.json", [], size=(3, 4, 5))
    assert not np.concatenate(list(segmentation_video(tmp_path / "m.masks.json"))).any()
    masks = np.zeros((24, 1, 1, 24), np.bool_)
    masks[range(24), 0, 0, range(24)] = True
    write_masks(tmp_path / "m.masks.json", [(str(place), mask) for place, mask in enumerate(masks)])
    (shown,) = segmentation_video(tmp_path / "m.masks.json")
    assert shown[0, 0, 23].tolist() == shown[0, 0, 0].tolist() == list(PALETTE[0])


def test_parts_of_masks_are_those_of_the_whole(tmp_path):
    masks = np.random.default_rng(0).random((5, 3, 4)) < 0.5
    write_masks(tmp_path / "m.masks.json", [("a", masks)])
    found = read_segmentation(tmp_path / "m.masks.json")
    np.testing.assert_array_equal(found.part(0, 1, 3), masks[1:3])
    np.testing.assert_array_equal(found[0][1], masks)
    content = json.loads((tmp_path / "m.masks.json").read_text())
    content["objects"][0]["rle"][4] = "0"
    (tmp_path / "m.masks.json").write_text(json.dumps(content))
    found = read_segmentation(tmp_path / "m.masks.json")
    np.testing.assert_array_equal(found.part(0, 0, 4), masks[:4])
    with pytest.raises(ItemError, match="object 0: its run lengths"):
        found.part(0, 4, 5)


def test_memory_does_not_grow_with_the_length(tmp_path):
    peaks = []
    for frames in (32, 128):
        with DepthWriter(tmp_path / f"{frames}.npz") as writer:
            for _ in range(frames // 8):
                writer.add(np.random.default_rng(0).random((8, 64, 64)).astype(np.float32))
        mask = np.zeros((frames, 64, 64), np.bool_)
        mask[:, 10:20, 10:20] = True
        write_masks(tmp_path / f"{frames}.masks.json", [("a", mask)])
        tracemalloc.start()
        for video in (depth_video(tmp_path / f"{frames}.npz"), segmentation_video(tmp_path / f"{frames}.masks.json")):
            for _ in video:
                pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        with open_depth(tmp_path / f"{frames}.npz") as file:
            assert file.shape == (frames, 64, 64)
    assert peaks[1] < 1.2 * peaks[0]
