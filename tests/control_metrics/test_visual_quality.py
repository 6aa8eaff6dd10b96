"""visual_quality: scale, decisions row by row, both doors, the container of the checkpoint, what is refused.

The network has stand-in numbers: what it says means nothing, so nothing is asked of its order here.
"""

import math

import cv2
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bench.stand_in import SMALL, numbers, write
from control_metrics import visual_quality
from control_metrics.visual_quality import METRIC, Ratings, fragments_selection
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import read_clip, write_clip
from gen_eval.networks.fragments import segment_frames
from gen_eval.networks.loading import forget, loaded
from gen_eval.protocols import Preset, load_protocol
from gen_eval.records import Flag, Generation, Group, InputError, Reason, Sample, Status
from gen_eval.settings import settings
from gen_eval.weights import checkpoint

PROTOCOLS = ("reference", "reference-v2", "corrected")
NUMBERS = st.floats(-50, 50)


def rated(*views, frames=121, enlarged=False, **decide):
    counts = Ratings(enlarged, frames, np.array(views, np.float64))
    return METRIC.decide(counts, {**load_protocol(METRIC.name, "corrected").decide, **decide})


def drawn(frames=4, height=240, width=256, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stand_in"), ["dover", "musiq_spaq"], small=True)


@pytest.fixture
def network(stand_in, use_environment):
    """Use the small network in this process."""
    use_environment(stand_in)


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """`own_file(content)`: the small network from a file that holds `content`, packed as the published one is."""
    import torch

    def pack(content):
        entry = {**checkpoint("dover").model_dump(exclude={"name"}), "manifest": None, "network": SMALL["dover"]}
        (tmp_path / "weights").mkdir()
        (tmp_path / "weights" / "own.yaml").write_text(yaml.safe_dump({"dover": entry}))
        (tmp_path / "dover").mkdir()
        torch.save(content, tmp_path / "dover" / "DOVER.pth")
        monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path))
        monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path))
        settings.cache_clear()
        forget()

    yield pack
    settings.cache_clear()
    forget()


@pytest.fixture(scope="module")
def tensors():
    import torch

    from gen_eval.networks.loading import build

    return {name: torch.from_numpy(one) for name, one in numbers(build(SMALL["dover"]), "dover").items()}


@pytest.fixture
def own_protocol(tmp_path):
    def make(**sections):
        path = tmp_path / "own.yaml"
        path.write_text(yaml.safe_dump({"visual_quality": {"base": "corrected", **sections}}))
        return str(path)

    return make


# --- the scale -------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_golden(golden):
    for case in golden("dover.json")["score_map"]:
        assert float(rated(case["raw"])) == pytest.approx(case["score"], rel=1e-6), case
    (whole,) = golden("dover.json")["whole_branch"]
    result = rated(*whole["raw_mean_per_view"])
    assert result.values["raw"] == pytest.approx(whole["raw_mean"], rel=1e-6)
    assert float(result) == pytest.approx(whole["score"], rel=1e-6)


def test_the_scale_by_hand():
    assert float(rated(0.1107, 0.1107, 0.1107)) == pytest.approx(50)
    assert float(rated(0.1107 + 0.07355 * math.log(3))) == pytest.approx(75)
    assert float(rated(-0.0615)) == pytest.approx(8.77, abs=0.01)  # the published level
    assert float(rated(0.0, 0.1, 0.2321)) == pytest.approx(50)  # the mean, not the mean of scores
    assert float(rated(0.3, centre=0.3, scale=10.0)) == pytest.approx(5)
    assert rated(0.25, 0.5).detail == {"frames": 121, "views": [0.25, 0.5]}


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_scores_lie_on_the_scale_and_forget_the_order(views, random):
    result = rated(*views)
    assert 0 <= result.value <= 100
    turned = random.sample(views, len(views))
    assert rated(*turned).value == result.value
    assert result.values["raw"] == pytest.approx(sum(views) / len(views), abs=1e-12)


@given(st.floats(-0.5, 0.7), st.floats(1e-6, 1))
def test_a_better_rating_is_a_better_score(raw, more):
    assert rated(raw).value < rated(raw + more).value or rated(raw).value > 100 - 1e-9


@pytest.mark.parametrize("far", [-1e9, 1e9])
def test_far_ratings_end_on_the_scale(far):
    assert rated(far).value == (0 if far < 0 else 100)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_rating_that_is_not_finite_is_no_score(broken):
    result = rated(0.1, broken)
    assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)
    assert result.detail["views"] == [0.1, None]


# --- decisions, row by row -------------------------------------------------------------------------------------------

ROWS = [  # situation, frames, height, width, flags, the reference protocols beside corrected
    ("one frame", 1, 240, 256, (Flag.FEW_FRAMES,), "same"),
    ("two frames", 2, 240, 256, (Flag.FEW_FRAMES,), "same"),
    ("three frames", 3, 240, 256, (), "same"),
    ("the size of the patches", 3, 224, 224, (), "same"),
    ("portrait, odd sides", 3, 301, 227, (), "same"),
    ("one side below", 3, 223, 300, (Flag.ENLARGED,), "other"),
    ("small and one frame", 1, 60, 90, (Flag.FEW_FRAMES, Flag.ENLARGED), "other"),
    ("a side below a patch", 3, 90, 31, (Flag.ENLARGED,), "stops"),
    ("a strip", 3, 1, 400, (Flag.ENLARGED,), "stops"),
]


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("frames", "height", "width", "flags", "how"), [one[1:] for one in ROWS], ids=[one[0] for one in ROWS]
)
def test_decisions(frames, height, width, flags, how):
    clip = drawn(frames, height, width)
    corrected = visual_quality(clip)
    assert 0 < corrected.value < 100
    assert corrected.flags == flags
    assert corrected.detail["frames"] == frames
    assert len(corrected.detail["views"]) == 3
    assert corrected.values["raw"] == pytest.approx(np.mean(corrected.detail["views"]))
    for name in ("reference", "reference-v2") if how == "stops" else ("reference-v2",):
        other = visual_quality(clip, protocol=name)
        if how == "stops":
            assert (other.value, other.reason) == (None, Reason.REFERENCE_STOPS)
            assert other.detail["reference_exception"] == "RuntimeError"
        else:
            assert other.flags == flags
            assert (other.value == corrected.value) is (how == "same")


@pytest.mark.usefixtures("network")
def test_constant_frames_have_a_score_and_nothing_is_left_to_chance():
    first, again = (visual_quality(np.full((3, 224, 230, 3), 255, np.uint8)) for _ in range(2))
    assert 0 < first.value < 100
    assert first.flags == ()
    assert first == again


@pytest.mark.usefixtures("network")
def test_it_is_what_the_network_says_of_the_patches():
    clip = drawn(7, 230, 260, seed=1)
    (selection,) = METRIC.selections(load_protocol("visual_quality", "corrected").measure)
    numbers = selection.indices(7)
    assert numbers == segment_frames(7, segments=3, frames=32, step=2, seed=0)
    kept = [selection.prepared(clip[number], slot) for slot, number in enumerate(numbers)]
    assert {one.shape for one in kept} == {(224, 224, 3)}
    assert visual_quality(clip).detail["views"] == selection(np.stack(kept)).tolist()


@pytest.mark.usefixtures("network")
def test_frames_that_were_not_chosen_play_no_part():
    clip = drawn(300, 32, 33)
    seen = set(segment_frames(300, segments=3, frames=32, step=2, seed=0))
    changed = clip.copy()
    changed[[number for number in range(300) if number not in seen]] = 0
    assert 90 < len(seen) < 300
    assert visual_quality(clip).value == visual_quality(changed).value


@pytest.mark.usefixtures("network")
def test_what_is_done_to_the_picture_is_seen(make_clip):
    clip = make_clip(0, frames=3, height=224, width=240)
    blurred = np.stack([cv2.GaussianBlur(frame, (0, 0), 2) for frame in clip])
    noise = np.random.default_rng(1).integers(-20, 21, clip.shape)
    noisy = np.clip(clip + noise, 0, 255).astype(np.uint8)
    values = {visual_quality(one).value for one in (clip, blurred, noisy)}
    assert len(values) == 3
    assert all(0 < value < 100 for value in values)


@pytest.mark.usefixtures("network")
def test_half_precision_is_near_and_not_equal():
    clip = drawn(3, 64, 64, seed=2)
    exact, rough = (visual_quality(clip, dtype=dtype).values["raw"] for dtype in ("float32", "bfloat16"))
    assert rough == pytest.approx(exact, abs=0.02)
    assert rough != exact


# --- files -----------------------------------------------------------------------------------------------------------


def scored(folder, members, reference, limit=None, protocols=PROTOCOLS):
    """Protocol and member -> result, from files."""
    paths = {name: folder / f"{name}.mp4" for name in ("reference", *members)}
    for name, clip in {**members, "reference": reference}.items():
        if clip is not None:
            write_clip(paths[name], clip, 24.0, lossless=True)
    sample = Sample("s", reference=paths["reference"] if reference is not None else None)
    group = Group("model", sample, tuple(Generation("s", name, paths[name]) for name in members))
    chosen = [(METRIC, [load_protocol("visual_quality", name) for name in protocols])]
    outcome = score_group(group, Plan.of(chosen, Preset("p", limit), 4))
    assert not outcome.log
    return {(one.protocol.name, one.member): one.result for one in outcome.outcomes}


@pytest.mark.usefixtures("network")
def test_files_score_as_arrays_do_and_the_reference_stands_beside(tmp_path):
    members = {"0": drawn(9, 96, 128, seed=3), "1": drawn(2, 230, 240, seed=4)}
    reference = drawn(9, 96, 128, seed=5)
    found = scored(tmp_path, members, reference, protocols=("corrected",))
    read = {name: read_clip(tmp_path / f"{name}.mp4").frames for name in ("0", "1", "reference")}
    beside = visual_quality(read["reference"])
    for member in members:
        result, alone = found["corrected", member], visual_quality(read[member])
        assert (result.value, result.flags) == (alone.value, alone.flags)
        assert result.values == {"raw": alone.values["raw"], "reference": beside.value}


@pytest.mark.usefixtures("network")
def test_reference_looks_at_the_aligned_clip_after_another_encoding(tmp_path):
    members = {"0": drawn(5, 96, 128, seed=6), "1": drawn(5, 192, 256, seed=6)}
    found = scored(tmp_path, members, drawn(5, 96, 128, seed=7), protocols=PROTOCOLS[:2])
    assert Flag.RESIZED not in found["reference", "0"].flags
    assert Flag.RESIZED in found["reference", "1"].flags
    for member in members:
        assert 0 < found["reference", member].value < 100
        assert found["reference", member].value != found["reference-v2", member].value
        assert found["reference", member].values["reference"] != found["reference-v2", member].values["reference"]


@pytest.mark.usefixtures("network")
def test_without_a_reference_clip_the_clip_has_its_score(tmp_path):
    found = scored(tmp_path, {"0": drawn(3, 64, 64)}, None, protocols=("reference", "corrected"))
    assert found["corrected", "0"].value is not None
    assert found["corrected", "0"].values["reference"] is None
    assert found["corrected", "0"].detail["reference_rating"]["reason"] == "missing_ground_truth"
    assert found["reference", "0"].reason is Reason.MISSING_GROUND_TRUTH


@pytest.mark.usefixtures("network")
def test_only_the_first_frames_count_where_a_preset_says_so(tmp_path):
    clip = drawn(9, 64, 64, seed=8)
    found = scored(tmp_path, {"0": clip}, clip, limit=2, protocols=("corrected",))["corrected", "0"]
    assert found.value == visual_quality(read_clip(tmp_path / "0.mp4").frames[:2]).value
    assert found.detail["frames"] == 2
    assert found.values["reference"] == found.value


# --- the checkpoint --------------------------------------------------------------------------------------------------


def aesthetic():
    import torch

    return {"aesthetic_backbone.norm.weight": torch.ones(4), "aesthetic_head.fc_last.bias": torch.ones(1)}


@pytest.mark.parametrize("nested", [True, False])
def test_the_published_container_is_read_and_its_other_branch_left_out(own_file, tensors, nested):
    content = {**aesthetic(), **tensors}
    own_file({"state_dict": content, "epoch": 3} if nested else content)
    import torch

    found = loaded("dover").state_dict()
    assert set(found) == set(tensors)
    assert all(torch.equal(found[name], one) for name, one in tensors.items())
    assert visual_quality(drawn(1, 40, 40)).value is not None


@pytest.mark.parametrize("change", ["missing", "unexpected"])
def test_names_must_fit_both_ways(own_file, tensors, change):
    content = dict(tensors)
    if change == "missing":
        del content["technical_head.fc_last.bias"]
    else:
        content["technical_head.fc_more.bias"] = content["technical_head.fc_last.bias"]
    own_file({"state_dict": {**aesthetic(), **content}})
    result = visual_quality(drawn(1, 40, 40))
    assert (result.status, result.reason) == (Status.FAILED, Reason.BAD_WEIGHTS)
    assert f"1 {change} (technical_head.fc_" in result.detail["message"]


def test_without_weights_it_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path))
    settings.cache_clear()
    result = visual_quality(drawn(1, 40, 40))
    settings.cache_clear()
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)
    assert "gen-eval weights fetch dover --accept-licence" in result.detail["message"]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("section", "name", "value", "said"),
    [
        ("measure", "frames", 0, "frames must be a whole number, 1 or more, not 0"),
        ("measure", "seed", -1, "seed must be a whole number, 0 or more, not -1"),
        ("measure", "segments", 2.5, "segments must be a whole number, 1 or more, not 2.5"),
        ("measure", "grid", "both", "enlarged or the original frame, not 'both'"),
        ("measure", "normalise", "dim", "no normalise 'dim'"),
        ("measure", "network", "musiq_spaq", r"musiq_spaq \(Musiq\) does not rate clips"),
        ("measure", "patch", 31, "multiples of"),
        ("decide", "spread", 0, "spread and scale must be above 0"),
    ],
)
def test_protocols_that_make_no_sense_are_refused(own_protocol, section, name, value, said):
    with pytest.raises(InputError, match=said):
        visual_quality(drawn(1, 40, 40), protocol=own_protocol(**{section: {name: value}}))


def test_clips_that_are_none_are_refused():
    with pytest.raises(ValueError, match="must be"):
        visual_quality(np.zeros((2, 8, 8), np.uint8))
    with pytest.raises(InputError, match="no protocol 'latest'"):
        visual_quality(drawn(1, 40, 40), protocol="latest")


def test_selections_differ_in_all_that_moves_them():
    measure = dict(load_protocol("visual_quality", "corrected").measure)
    changes = {"segments": 2, "frames": 16, "step": 1, "seed": 1, "cells": 5, "patch": 16, "grid": "original"}
    changes |= {"network": "other", "normalise": "clip"}
    made = [fragments_selection(measure | {name: value}) for name, value in changes.items()]
    assert len({fragments_selection(measure), *made}) == 10
    assert fragments_selection(measure) == fragments_selection(dict(measure))
