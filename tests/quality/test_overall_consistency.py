"""overall_consistency: goldens with the network, choice of frames, tiny cases, properties, prompts, files."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.protocols import Preset, load_protocol
from gen_eval.quality import overall_consistency
from gen_eval.quality.overall_consistency import METRIC, Embeddings, middle_frames
from gen_eval.records import Flag, Generation, Group, InputError, Reason, Sample, Status

CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
VECTORS = st.integers(2, 6).flatmap(
    lambda size: arrays.arrays(np.float64, (2, size), elements=st.floats(-8, 8, width=32, allow_subnormal=False))
)


def compared(clip, text, *, frames=9, cut=0):
    return METRIC.decide(Embeddings(np.array(text, float), cut, 8, np.array(clip, float), frames), {})


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("protocol", ["reference", "corrected"])
def test_golden(golden_clip, golden_scores, clip, protocol):
    frames, expected = golden_clip(clip)[0], golden_scores[clip]
    result = overall_consistency(frames, expected["prompt"], protocol=protocol)
    assert float(result) == pytest.approx(expected["overall_consistency"], abs=1e-5)
    assert result.flags == ((Flag.FRAMES_REPEATED,) if len(frames) < 8 else ())
    assert result.detail["cut_tokens"] == (16 if clip == "clip_a" else 0)
    assert result.detail["frames"] == len(frames)
    assert result.detail["frames_seen"] == middle_frames(len(frames), 8)


def test_frames_are_chosen_as_the_golden_says(quality_goldens):
    golden = json.loads((quality_goldens / "sampling.json").read_text())
    counts = golden["indices_by_frame_count"]
    assert len(counts) == 34
    for length, indices in counts.items():
        assert middle_frames(int(length), golden["num_frames"]) == indices, length


@given(st.integers(1, 10_000), st.integers(1, 32))
def test_chosen_frames_are_of_the_clip_and_in_order(length, count):
    indices = middle_frames(length, count)
    assert len(indices) == count
    assert indices == sorted(indices)
    assert indices[0] >= 0
    assert indices[-1] < length
    assert len(set(indices)) == min(length, count)
    gaps = np.diff(indices[: min(length, count)])
    assert not len(gaps) or gaps.max() - gaps.min() <= 2


def test_by_hand():
    assert float(compared([3, 4], [4, 3])) == pytest.approx(24 / 25, abs=1e-15)
    assert float(compared([1, 2, 2], [-2, -4, -4])) == -1  # not clamped
    assert float(compared([1, 0], [0, 5])) == 0
    assert compared([1, 0], [0, 5], cut=7).detail["cut_tokens"] == 7


@pytest.mark.parametrize(("frames", "repeated"), [(1, True), (2, True), (7, True), (8, False), (9, False)])
def test_short_clips_are_marked(frames, repeated):
    result = compared([3, 4], [4, 3], frames=frames)
    assert (Flag.FRAMES_REPEATED in result.flags) is repeated
    assert float(result) == pytest.approx(0.96)


@given(VECTORS, st.floats(0.01, 100))
@settings(max_examples=60, deadline=None)
def test_it_is_a_cosine(pair, factor):
    result = compared(*pair)
    if not (pair**2).sum(axis=1).all():
        assert result.reason is Reason.NOT_FINITE
        return
    value = float(result)
    assert -1 <= value <= 1
    assert value == pytest.approx(float(compared(*pair[::-1])), abs=1e-12)
    assert value == pytest.approx(float(compared(factor * pair[0], pair[1])), abs=1e-12)
    assert -value == pytest.approx(float(compared(-pair[0], pair[1])), abs=1e-12)
    assert float(compared(pair[0], pair[0])) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("broken", [[math.nan, 1], [math.inf, 1], [0, 0]])
def test_embeddings_without_a_direction_give_no_value(broken):
    for pair in [(broken, [1, 1]), ([1, 1], broken)]:
        result = compared(*pair, frames=3)
        assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)
        assert result.flags == ()


def test_no_frame_gives_no_value():
    result = METRIC.decide(Embeddings(np.ones(3), 0, 8), {})
    assert (result.value, result.reason) == (None, Reason.TOO_FEW_FRAMES)


@pytest.mark.usefixtures("small_networks")
def test_only_the_chosen_frames_and_the_first_thirty_tokens_count(make_clip):
    clip = make_clip(1, frames=20)
    prompt = "left " * 30
    value = float(overall_consistency(clip, prompt))
    unseen = sorted({*range(20)} - {*middle_frames(20, 8)})
    clip[unseen] = 0
    longer = overall_consistency(clip, prompt + "right up down")
    assert float(longer) == value
    assert longer.detail["cut_tokens"] == 3
    clip[middle_frames(20, 8)[3]] = 0
    assert float(overall_consistency(clip, prompt)) != value
    assert float(overall_consistency(clip[:19], "right " * 30)) != value


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("size", [(1, 31, 47), (2, 64, 36), (3, 225, 224)])
def test_few_small_odd_and_portrait_frames(size):
    clip = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert -1 <= float(overall_consistency(clip, "noise")) <= 1


@pytest.mark.usefixtures("small_networks")
def test_one_colour_has_a_value_and_is_marked():
    result = overall_consistency(np.full((8, 40, 50, 3), 77, np.uint8), "a wall")
    assert result.status is Status.OK
    assert result.flags == (Flag.CONSTANT_FRAME,)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("prompt", [None, "", " \t\n"])
def test_without_a_prompt_there_is_no_value(prompt):
    clip = np.zeros((8, 40, 40, 3), np.uint8)
    result = overall_consistency(clip, prompt)
    assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.MISSING_PROMPT)
    stopped = overall_consistency(clip, prompt, protocol="reference")
    assert (stopped.value, stopped.reason) == (None, Reason.REFERENCE_STOPS)


@pytest.fixture
def scored(tmp_path):
    """`scored(clips, prompt, chunk)`: results of files by member and protocol."""

    def run(clips, prompt, chunk):
        for member, clip in clips.items():
            write_clip(tmp_path / f"s__{member}.mp4", clip, 8.0, lossless=True)
        members = tuple(Generation("s", member, tmp_path / f"s__{member}.mp4") for member in clips)
        protocols = [load_protocol(METRIC.name, name) for name in ("reference", "corrected")]
        plan = Plan.of([(METRIC, protocols)], Preset("all", None), chunk)
        outcomes = score_group(Group("m", Sample("s", prompt=prompt), members), plan).outcomes
        return {(one.member, one.protocol.name): one.result for one in outcomes}

    return run


@pytest.mark.usefixtures("small_networks")
def test_videos_in_files_score_as_arrays_do_in_chunks_of_any_size(scored, make_clip):
    clips = {"0": make_clip(0, frames=11), "1": make_clip(1, frames=3)}
    for chunk in (1, 4, 16):
        found = scored(clips, "a car turns left", chunk)
        assert len(found) == 4
        for (member, protocol), result in found.items():
            expected = overall_consistency(clips[member], "a car turns left", protocol=protocol)
            assert float(result) == pytest.approx(float(expected), abs=1e-9)
            assert result.flags == expected.flags == ((Flag.FRAMES_REPEATED,) if member == "1" else ())


@pytest.mark.usefixtures("small_networks")
def test_a_sample_without_a_prompt_gives_rows_with_the_reason(scored, make_clip):
    found = scored({"0": make_clip(0)}, None, 8)
    assert {key[1]: result.reason for key, result in found.items()} == {
        "reference": Reason.REFERENCE_STOPS,
        "corrected": Reason.MISSING_PROMPT,
    }


@pytest.mark.usefixtures("no_networks")
def test_without_weights_it_is_skipped():
    result = overall_consistency(np.zeros((8, 40, 40, 3), np.uint8), "a wall")
    assert (result.status, result.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)
    assert "gen-eval weights fetch viclip" in result.detail["message"]


def test_bad_arguments_are_refused():
    clip = np.zeros((1, 8, 8, 3), np.uint8)
    with pytest.raises(TypeError, match="clip"):
        overall_consistency([clip], "a")
    with pytest.raises(InputError, match="corrected"):
        overall_consistency(clip, "a", protocol="vbench")
    with pytest.raises(InputError, match="float8"):
        overall_consistency(clip, "a", dtype="float8")
