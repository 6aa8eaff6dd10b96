"""Signals made by networks of whole clips, how clips are shown to them, ratings of the reference, chosen frames."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.data.signal_files import write_depth
from gen_eval.features import ClipSignal, Coverage, Metric, Selection, StreamInfo, rendition
from gen_eval.features.arrays import measure_single
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.features.selecting import Chosen, chosen_of
from gen_eval.media import write_clip
from gen_eval.protocols import Preset, Protocol
from gen_eval.records import Flag, Generation, Group, InputError, ItemError, MetricResult, Reason, Sample, Status

MADE: Counter[tuple[int, int]] = Counter()
LEFT: list[int] = []


def levels_file(clip, target: Path, scale: int):
    """What a network would do, in one line: the mean of each frame."""
    MADE[clip.info.height, clip.info.width] += 1
    LEFT.append(1 + len(list(target.parent.glob("depth-*"))))
    values = [float(frame.mean()) * scale for chunk in clip.chunks for frame in chunk]
    target.write_text(json.dumps(values))
    return {"frames": len(values), "prompt": clip.info.prompt}


def no_memory(clip, target, scale):
    MADE["memory"] += 1
    raise MemoryError


class Levels(Metric):
    """Compares the files that ``levels_file`` writes."""

    name, track, inputs, signal, source = "levels", "control", "pair", "depth", "tests"
    bounds = (None, None)
    compute = staticmethod(levels_file)
    checkpoints: tuple[str, ...] = ()

    def clip_signal(self, measure):
        return ClipSignal("depth", ".json", self.compute, self.checkpoints, (("scale", 1),))

    def meter(self, measure, member, *, image=None):
        raise NotImplementedError

    def measure_files(self, member, reference, measure, *, limit):
        own, other = (np.array(json.loads(path.read_text())) for path in (member, reference))
        common = min(len(own), len(other))
        return own[:common] - other[:common], Coverage(common, len(own), len(other))

    def file_evidence(self, counts, member, reference, measure):
        return int(np.abs(counts).argmax()), {"worst_map": np.full((4, 6, 3), 7, np.uint8)}

    def decide(self, counts, decide):
        return MetricResult.of(self.name, float(np.abs(counts).mean()), curves={self.name: counts})


class NoSignal(Levels):
    name = "no_signal"

    def clip_signal(self, measure):
        return None


class Greedy(Levels):
    name, compute = "greedy", staticmethod(no_memory)


class Rated(Metric):
    """The mean level of a clip, and the reference's beside it."""

    name, track, inputs, source = "rated", "control", "single", "tests"
    bounds, rates_reference = (None, None), True

    def meter(self, measure, member, *, image=None):
        seen: list[float] = []

        def update(chunk):
            (frames,) = chunk.values()
            seen.extend(frames.reshape(len(frames), -1).mean(axis=1).tolist())

        return SimpleNamespace(update=update, counts=lambda: (member, seen))

    def decide(self, counts, decide):
        info, seen = counts
        detail = {"size": [info.height, info.width], "frames_seen": len(seen)}
        return MetricResult.of(self.name, float(np.mean(seen)), detail=detail)


def plan(*metrics, limit=None, **measure):
    resize = {"resize": "by_pixels", "aspect_tolerance": 0.05}
    protocols = [(one, [Protocol("p", one.name, measure={**resize, **measure})]) for one in metrics]
    return Plan.of(protocols, Preset("p", limit), 4)


def smooth(count, height=32, width=48, level=0):
    ramp = np.linspace(0, 120, width)[None, None, :, None] + np.arange(count)[:, None, None, None] * 10 + level
    return np.broadcast_to(ramp, (count, height, width, 3)).astype(np.uint8)


@pytest.fixture
def clip(tmp_path):
    def write(name, frames, fps=24.0):
        write_clip(tmp_path / f"{name}.mp4", frames, fps, lossless=True)
        return tmp_path / f"{name}.mp4"

    return write


@pytest.fixture(autouse=True)
def count():
    MADE.clear()
    LEFT.clear()


def group(paths, reference=None, **sample):
    members = tuple(Generation("s", str(number), path) for number, path in enumerate(paths))
    return Group("m", Sample("s", reference=reference, **sample), members)


def results(group_, plan_):
    return {(one.member, one.measurement.metric.name): one for one in score_group(group_, plan_).outcomes}


def test_a_signal_is_made_once_of_each_clip_and_the_reference(clip):
    paths = [clip(f"c{k}", smooth(5, level=k)) for k in range(3)]
    found = results(group(paths, clip("r", smooth(5)), prompt="a cup"), plan(Levels()))
    assert [found[str(k), "levels"].result.value for k in range(3)] == pytest.approx([0, 1, 2])
    assert MADE == {(32, 48): 4}
    assert LEFT == [1, 2, 2, 2]  # of members, only the file at work is kept
    result = found["2", "levels"].result
    assert result.detail["signal"]["generated"]["prompt"] == "a cup"
    assert result.detail["signal"]["generated"]["video"]["decoded_frames"] == 5
    assert result.detail["worst_frame"] == int(np.abs(result.curves["levels"]).argmax())
    assert set(found["2", "levels"].pictures) == {"worst_map"}


def test_given_files_are_taken_as_they_are(clip, tmp_path):
    given_ = tmp_path / "given.json"
    given_.write_text("[1.0, 2.0]")
    member = Generation("s", "0", clip("c", smooth(2)), depth=given_)
    found = results(Group("m", Sample("s", depth=given_), (member,)), plan(Levels()))["0", "levels"].result
    assert (found.value, MADE) == (0, {})
    assert "signal" not in found.detail


def test_only_what_is_missing_is_made(clip, tmp_path):
    given_ = tmp_path / "given.json"
    given_.write_text("[1.0, 2.0]")
    member = Generation("s", "0", clip("c", smooth(2)))
    found = results(Group("m", Sample("s", depth=given_), (member,)), plan(Levels()))["0", "levels"].result
    assert set(found.detail["signal"]) == {"generated"}
    assert MADE == {(32, 48): 1}


@pytest.mark.parametrize(
    ("measure", "shown", "flags"),
    [
        ({}, (16, 24), ()),
        ({"clip_size": "own", "clip_aspect_tolerance": 0.05}, (16, 24), ()),
        ({"clip_size": "reference"}, (32, 48), (Flag.RESIZED,)),
        ({"clip_size": "reference", "clip_resize": "by_height", "clip_crf": 25}, (32, 48), (Flag.RESIZED,)),
    ],
)
def test_clips_are_shown_as_the_protocol_says(clip, measure, shown, flags):
    small = smooth(3, 16, 24)
    found = results(group([clip("c", small)], clip("r", smooth(3))), plan(Levels(), **measure))["0", "levels"].result
    assert found.value is not None
    assert ({(32, 48): 2} if shown == (32, 48) else {(32, 48): 1, (16, 24): 1}) == MADE
    assert (Flag.RESIZED in found.flags) == (Flag.RESIZED in flags)


def test_another_encoding_changes_a_clip_and_keeps_its_length(clip):
    noise = np.random.default_rng(0).integers(0, 256, (5, 32, 48, 3), dtype=np.uint8)
    paths, reference = [clip("c", noise)], clip("r", smooth(5))
    plain = results(group(paths, reference), plan(Levels()))["0", "levels"].result
    encoded = results(group(paths, reference), plan(Levels(), clip_crf=25))["0", "levels"].result
    assert encoded.value == pytest.approx(plain.value, abs=2)
    assert encoded.value != plain.value
    assert len(encoded.curves["levels"]) == 5


@pytest.mark.parametrize("crf", [None, 25])
@pytest.mark.parametrize(("size", "used"), [("own", 9), ("reference", 5)])
def test_frames_after_the_end_of_the_reference_are_left_out_with_its_size(clip, size, used, crf):
    one = group([clip("c", smooth(9)), clip("d", smooth(3))], clip("r", smooth(5)))
    found = results(one, plan(Levels(), clip_size=size, clip_crf=crf))
    long, short = found["0", "levels"].result, found["1", "levels"].result
    assert long.detail["signal"]["generated"]["frames"] == used
    assert short.detail["signal"]["generated"]["frames"] == 3
    assert (Flag.LONG_CLIP in long.flags, Flag.SHORT_CLIP in short.flags) == (True, True)
    rated = results(one, plan(Rated(), clip_size=size, clip_crf=crf))["0", "rated"].result if crf else None
    assert rated is None or rated.detail["frames_seen"] == used


def test_a_clip_is_encoded_again_once_for_all_who_ask(clip, monkeypatch):
    written = []
    monkeypatch.setattr(
        rendition, "write_clip", lambda path, *args, **kw: written.append(path) or write_clip(path, *args, **kw)
    )
    one = group([clip("c", smooth(3)), clip("d", smooth(3))], clip("r", smooth(3)))
    found = results(one, plan(Levels(), Rated(), clip_size="reference", clip_crf=25))
    assert all(outcome.result.value is not None for outcome in found.values())
    assert len(written) == len(set(written)) == 3


def test_equal_sizes_share_one_file_whatever_the_rule_of_resizing(clip):
    both = [
        (Levels(), [Protocol(name, "levels", measure={"resize": name, "aspect_tolerance": None, "clip_size": size})])
        for name, size in (("by_height", "reference"), ("by_pixels", "own"))
    ]
    one = group([clip("c", smooth(3))], clip("r", smooth(3)))
    assert len(score_group(one, Plan.of(both, Preset("p", None), 4)).outcomes) == 2
    assert MADE == {(32, 48): 2}


def test_another_shape_is_refused_where_the_protocol_says_so(clip):
    one = group([clip("c", smooth(3, 32, 32))], clip("r", smooth(3)))
    refused = results(one, plan(Levels(), clip_aspect_tolerance=0.05))["0", "levels"].result
    assert (refused.status, refused.reason) == (Status.FAILED, Reason.ASPECT_MISMATCH)
    assert results(one, plan(Levels(), clip_aspect_tolerance=None))["0", "levels"].result.value is not None


def test_without_a_reference_or_a_way_to_make_its_signal(clip, tmp_path):
    paths = [clip("c", smooth(3))]
    assert results(group(paths), plan(Levels()))["0", "levels"].result.reason is Reason.MISSING_GROUND_TRUTH
    named = results(group(paths, clip("r", smooth(3)), depth=tmp_path / "no.npz"), plan(Levels()))["0", "levels"].result
    assert named.reason is Reason.MISSING_GROUND_TRUTH
    assert "no.npz is not there" in named.detail["message"]
    write_depth(tmp_path / "d.npz", np.ones((3, 4, 4), np.float32))
    one = results(group(paths, depth=tmp_path / "d.npz"), plan(NoSignal()))["0", "no_signal"].result
    assert (one.status, one.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)


def test_absent_weights_are_named_for_either_side(clip, monkeypatch, tmp_path):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "none"))
    monkeypatch.setattr(Levels, "checkpoints", ("vda_small",))
    whole = results(group([clip("c", smooth(3))], clip("r", smooth(3))), plan(Levels()))["0", "levels"].result
    assert whole.reason is Reason.MISSING_GROUND_TRUTH
    assert "gen-eval weights fetch vda_small" in whole.detail["message"]
    (tmp_path / "d.json").write_text("[1.0]")
    own = results(group([clip("c2", smooth(3))], depth=tmp_path / "d.json"), plan(Levels()))["0", "levels"].result
    assert own.reason is Reason.MISSING_WEIGHTS


def test_trouble_stays_with_its_clip_and_is_met_once(clip, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    paths = [clip("c", smooth(3)), tmp_path / "text.mp4"]
    found = results(group(paths, clip("r", smooth(3))), plan(Levels(), clip_crf=25, clip_size="reference"))
    assert found["0", "levels"].result.value is not None
    assert found["1", "levels"].result.reason is Reason.UNDECODABLE
    broken = results(group(paths[:1], tmp_path / "text.mp4"), plan(Levels()))["0", "levels"].result
    assert (broken.reason, broken.detail["side"]) == (Reason.UNDECODABLE, "reference")


def test_memory_that_runs_out_is_a_reason_and_not_tried_again(clip):
    found = results(group([clip("c", smooth(3)), clip("d", smooth(3))], clip("r", smooth(3))), plan(Greedy()))
    assert {one.result.reason for one in found.values()} == {Reason.OUT_OF_MEMORY}
    assert MADE["memory"] == 1


def test_the_limit_counts_for_signals(clip):
    found = results(group([clip("c", smooth(6))], clip("r", smooth(6))), plan(Levels(), limit=4))["0", "levels"].result
    assert len(found.curves["levels"]) == 4


def test_rates_of_clips_are_compared(clip):
    one = group([clip("c", smooth(3), fps=12.0)], clip("r", smooth(3)))
    assert Flag.FPS_MISMATCH in results(one, plan(Levels()))["0", "levels"].result.flags


@pytest.mark.parametrize("crf", [None, 25])
def test_the_reference_is_rated_beside_each_clip(clip, crf):
    paths = [clip("c", smooth(5, level=40)), clip("d", smooth(9, level=80))]
    measure = {} if crf is None else {"clip_size": "reference", "clip_crf": crf}
    found = results(group(paths, clip("r", smooth(7))), plan(Rated(), **measure))
    own = [found[str(k), "rated"].result for k in range(2)]
    tolerance, used = (1e-9, 9) if crf is None else (1.5, 7)  # at the reference's size, not beyond its end
    assert [one.value for one in own] == pytest.approx(
        [smooth(5, level=40).mean(), smooth(used, level=80).mean()], abs=tolerance
    )
    assert [one.values["reference"] for one in own] == pytest.approx([smooth(7).mean()] * 2, abs=tolerance)
    assert [one.detail["frames_seen"] for one in own] == [5, used]


def test_without_a_reference_the_clip_has_its_value_and_the_row_says_why(clip, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    for reference, reason in ((None, "missing_ground_truth"), (tmp_path / "text.mp4", "undecodable")):
        result = results(group([clip("c", smooth(4))], reference), plan(Rated()))["0", "rated"].result
        assert result.value == pytest.approx(smooth(4).mean())
        assert result.values == {"reference": None}
        assert result.detail["reference_rating"]["reason"] == reason


def test_the_size_of_the_reference_is_needed_by_those_who_ask_for_it(clip):
    measure = {"clip_size": "reference", "clip_crf": 25}
    result = results(group([clip("c", smooth(4))]), plan(Rated(), **measure))["0", "rated"].result
    assert result.reason is Reason.MISSING_GROUND_TRUTH


@pytest.mark.parametrize("measure", [{"clip_size": "largest"}, {"clip_size": "reference"}])
def test_parameters_that_make_no_sense_end_the_command(clip, measure):
    with pytest.raises(InputError, match="clip_size"):
        score_group(group([clip("c", smooth(2))]), plan(Rated(), **measure))


# --- chosen frames of which little is kept ---------------------------------------------------------------------------


def corner(frame, slot, by):
    return frame[:2, :2].astype(np.int64) + by * slot


CORNERS = Selection(
    "corners",
    lambda length: [index % length for index in range(0, 2 * length, 2)],
    lambda kept, **_: kept,
    prepare=corner,
    preparation=(("by", 1000),),
)
WHOLE = Selection("whole", lambda length: [0, length - 1], lambda kept: kept)


@given(st.integers(1, 12), st.integers(1, 15), st.integers(1, 5))
def test_what_is_kept_does_not_hang_on_what_the_header_said(length, declared, chunk):
    frames = np.arange(length * 3 * 4 * 3, dtype=np.uint8).reshape(length, 3, 4, 3)
    chosen = Chosen([CORNERS, WHOLE], declared)
    for start in range(0, length, chunk):
        chosen.take(frames[start : start + chunk])
    if declared != length:
        return  # those need the file: below
    np.testing.assert_array_equal(chosen.frames(CORNERS, None), chosen_of(CORNERS, frames))
    np.testing.assert_array_equal(chosen.frames(WHOLE, None), frames[[0, -1]])
    slots = np.arange(length)[:, None, None, None] * 1000
    expected = frames[np.arange(0, 2 * length, 2) % length, :2, :2].astype(np.int64) + slots
    np.testing.assert_array_equal(chosen_of(CORNERS, frames), expected)


@pytest.mark.parametrize("declared", [None, 3, 40])
def test_a_wrong_header_costs_a_second_pass_only(clip, declared):
    frames = np.random.default_rng(1).integers(0, 256, (21, 8, 8, 3), dtype=np.uint8)
    path, chosen = clip("c", frames), Chosen([CORNERS], declared)
    chosen.take(frames)
    np.testing.assert_array_equal(chosen.frames(CORNERS, path), chosen_of(CORNERS, frames))


def test_a_frame_that_is_not_wanted_is_not_prepared():
    calls = []
    only = Selection(
        "only", lambda length: [1], lambda kept: kept, prepare=lambda frame, slot: calls.append(slot) or frame
    )
    Chosen([only], 5).take(np.zeros((5, 2, 2, 3), np.uint8))
    assert calls == [0]


class Corner(Rated):
    name, rates_reference = "corner", False

    def selections(self, measure):
        return (CORNERS,)

    def meter(self, measure, member, *, image=None):
        kept: list[float] = []
        return SimpleNamespace(
            update=lambda chunk: None, end=lambda found: kept.append(float(found[CORNERS].mean())), counts=lambda: kept
        )

    def decide(self, counts, decide):
        return MetricResult.of(self.name, counts[0])


def test_both_doors_prepare_alike(clip):
    frames = smooth(7)
    protocol = Protocol("p", "corner", measure={"resize": "by_pixels", "aspect_tolerance": None})
    by_file = results(group([clip("c", frames)]), plan(Corner()))["0", "corner"].result
    assert by_file.value == measure_single(Corner(), frames, protocol).value == chosen_of(CORNERS, frames).mean()


def test_an_item_error_of_a_signal_is_that_of_the_row(clip, monkeypatch):
    def refuse(clip_, target, scale):
        raise ItemError(Reason.MISSING_PROMPT, "no caption")

    monkeypatch.setattr(Levels, "compute", staticmethod(refuse))
    found = results(group([clip("c", smooth(2))], clip("r", smooth(2))), plan(Levels()))["0", "levels"].result
    assert (found.reason, found.detail["side"]) == (Reason.MISSING_PROMPT, "reference")
    assert StreamInfo(2, 3).prompt is None
