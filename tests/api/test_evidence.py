"""The blame view of a report: which frame moved the score, and what shows why."""

from dataclasses import replace

import numpy as np
import pytest

from api.services.reporting import render
from api.services.reporting.evidence import sentence, shots_of
from api.services.request import ScoreRequest
from api.services.results import RunResults
from api.services.scoring import score
from gen_eval.data.signal_files import write_depth, write_masks
from gen_eval.media import read_clip
from gen_eval.records import Score, Status


def row(metric, value=0.5, member="0", **fields):
    return Score("m", "s", member, metric, "corrected", value, Status.OK, **fields)


def test_a_sentence_says_frame_metric_and_value():
    curve = {"edge_f1": np.array([0.9, 0.25, 0.8])}
    said = sentence(row("edge_f1", detail={"worst_frame": 1}), curve)
    assert said == "edge_f1 is worst in frame 1, 25.00 % (clip: 50.00 %)"
    assert sentence(row("edge_f1", detail={"worst_frame": 7}), curve) == "edge_f1 is worst in frame 7 (clip: 50.00 %)"
    assert sentence(row("depth_si_rmse", 0.75, detail={}), {}) == "depth_si_rmse"


def test_classes_without_a_partner_are_named():
    detail = {"worst_frame": 2, "unmatched": {"reference": ["a tree"], "prediction": ["a dog", ""]}}
    said = sentence(row("mask_miou", detail=detail), {})
    assert "not matched in the reference clip: a tree" in said
    assert "only in the generated clip: a dog, no phrase" in said


def test_the_two_clips_that_are_most_alike_are_named():
    pairs = [
        {"clips": [0, 1], "distance": 0.4},
        {"clips": [0, 2], "distance": None},
        {"clips": [1, 2], "distance": 0.125},
    ]
    said = sentence(row("diversity", 0.3, detail={"pairs": pairs, "members": ["0", "2", "5"], "worst_frame": 0}), {})
    assert "most alike: the clips 2 and 5, distance " in said
    assert sentence(row("diversity", detail={"pairs": [{"clips": [0, 1], "distance": None}], "members": []}), {})


def test_metrics_that_agree_share_a_shot_and_keep_their_own_pictures():
    frames, pair = {"worst": "w", "worst_reference": "r"}, [{"clips": [0, 1], "distance": 0.5}]
    rows = [
        row("edge_f1", frames={**frames, "edges": "e"}, detail={"worst_frame": 1}),
        row("blur_ssim", frames={**frames, "blurred": "b", "strange_role": "x"}, detail={"worst_frame": 1}),
        row("depth_si_rmse", frames={"depth_error": "d"}, detail={"worst_frame": 1}),
        row("mask_miou", frames={"thumbnail": "t"}, detail={}),
    ]
    shots = list(shots_of(rows, lambda _: {}, lambda name: name))
    assert [shot.metrics for shot in shots] == ["edge_f1, blur_ssim", "depth_si_rmse"]
    assert [one.picture for one in shots[0].exhibits] == ["e", "b", "x"]
    assert shots[0].exhibits[0].words.startswith("edges: white in both clips")
    assert shots[0].exhibits[2].words == "strange role"
    assert shots[1].picture is None
    together = row("diversity", member="all", detail={"pairs": pair, "members": ["0", "1"]})
    (alike,) = shots_of([together], lambda _: {}, lambda name: name)
    assert (alike.picture, alike.exhibits) == (None, ())
    assert alike.sentences[0].startswith("most alike: the clips 0 and 1")
    gone = list(shots_of(rows, lambda _: {}, lambda name: None))
    assert gone == [], "pictures that are not there are not shown"


@pytest.fixture
def scored(tmp_path, small_benchmark):
    """A run of the four fidelity metrics; depth and masks were given."""
    data, videos = small_benchmark(count=1, seeds=(0,))
    clip = read_clip(data / "item00.mp4").frames[:4]
    depth = np.repeat(clip[..., 0].astype(np.float32)[None], 1, axis=0)[0] + 1
    mask = np.zeros(clip.shape[:3], np.bool_)
    mask[:, 10:20, 10:20] = True
    moved = mask.copy()
    moved[2] = np.roll(mask[2], 6, axis=1)
    worse = depth.copy()
    worse[3, :20] *= 2
    write_depth(data / "depth_npzs" / "item00.npz", depth)
    write_masks(data / "masks" / "item00.masks.json", [("box", mask), ("tree", np.roll(mask, 20, axis=1))])
    signals = tmp_path / "signals"
    write_depth(signals / "depth_npzs" / "item00__0.npz", worse)
    write_masks(signals / "masks" / "item00__0.masks.json", [("a box", moved)])
    metrics = ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou")
    score(ScoreRequest("control", videos, data=data, signals=signals, metrics=metrics), tmp_path / "run")
    return RunResults.read(tmp_path / "run")


def test_a_scored_run_shows_why(scored):
    found = {one.metric: one for one in scored.rows if one.protocol == "corrected"}
    assert set(found["edge_f1"].frames) == {"thumbnail", "worst", "worst_reference", "edges"}
    assert set(found["blur_ssim"].frames) >= {"blurred", "blurred_reference"}
    assert set(found["depth_si_rmse"].frames) == {"depth", "depth_reference", "depth_error"}
    assert set(found["mask_miou"].frames) == {"masks", "masks_reference"}
    assert found["depth_si_rmse"].detail["worst_frame"] == 3
    assert found["mask_miou"].detail["worst_frame"] == 2
    page = render([scored], ".html").decode()
    assert "depth_si_rmse is worst in frame 3, " in page
    assert "mask_miou is worst in frame 2 (clip: " in page
    assert "not matched in the reference clip: tree" in page
    assert page.count('<figure class="exhibit">') == 8
    assert render([scored], ".html") == render([RunResults.read(scored.path)], ".html")


def test_a_row_whose_pictures_are_lost_has_its_numbers_still(scored):
    for picture in (scored.path / "frames").glob("*.jpg"):
        picture.unlink()
    bare = RunResults(scored.run, scored.manifest, [replace(one) for one in scored.rows], path=scored.path)
    page = render([bare], ".html").decode()
    assert 'class="exhibit"' not in page
    assert "edge_f1" in page
