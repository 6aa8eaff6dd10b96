"""What metrics get beside the frames: memory of earlier frames, chosen frames, the prompt, the condition image."""

import io
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from gen_eval.features import FRAMES, Feature, Metric, Selection, StreamFeature, measure_single
from gen_eval.features.plan import Plan, companions
from gen_eval.features.planner import score_group
from gen_eval.media import read_image, write_clip
from gen_eval.protocols import Preset, Protocol
from gen_eval.records import Flag, Generation, Group, MetricResult, Reason, Sample

CALLS: Counter[str] = Counter()
ALL = Preset("all", None)


def noise(count, height=24, width=32, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


class Collected:
    """Keeps what its feature gives, and the sum of chosen frames."""

    def __init__(self, feature=None, start=0.0):
        self.feature, self.total, self.seen = feature, start, []

    def update(self, chunk):
        if self.feature is not None:
            self.seen += list(chunk[self.feature])

    def end(self, selected):
        ((_, self.total),) = selected.items()

    def counts(self):
        return self


class Toy(Metric):
    name, track, inputs, source, bounds = "toy", "quality", "single", "tests", (None, None)
    feature: Feature | None = None

    def member_features(self, measure):
        return () if self.feature is None else (self.feature,)

    def meter(self, measure, member, *, image=None, text=None):
        return Collected(self.feature)

    def decide(self, counts, decide):
        return MetricResult.of(self.name, float(counts.total), curves={self.name: np.array(counts.seen, np.float64)})


def opened(info, least):
    """The largest change since the frame before, and the time between the two."""
    last: dict[str, object] = {}
    CALLS["opened"] += 1

    def changes(frames, times):
        CALLS["frames"] += len(frames)
        if len(frames) > least:
            raise MemoryError
        found = np.full(len(frames), np.nan)
        for index, (frame, time) in enumerate(zip(frames, times, strict=True)):
            if last:
                found[index] = np.abs(frame.astype(int) - last["frame"]).max() + (time - last["time"])
            last.update(frame=frame.astype(int), time=time)
        return found

    return changes


class ToyStream(Toy):
    name = "toy_stream"

    def __init__(self, least=100):
        self.feature = StreamFeature("changes", opened, (("least", least),))


def middle(length):
    return [0, length // 2, length - 1]


MIDDLE = Selection("middle", middle, lambda frames, scale: frames.mean() * scale, (("scale", 2),))


class ToyChosen(Toy):
    name = "toy_chosen"

    def selections(self, measure):
        return (MIDDLE,)


def length_of(prompts):
    CALLS["text"] += 1
    return np.array([float(len(prompt)) for prompt in prompts])


TEXT = Feature("length", length_of)


class ToyText(Toy):
    name, uses_prompt = "toy_text", True

    def text_features(self, measure):
        return (TEXT,)

    def meter(self, measure, member, *, image=None, text=None):
        return Collected(start=float(text[TEXT][0]))


def corner(pictures):
    CALLS["image"] += 1
    return pictures[:, 0, 0].astype(float).sum(axis=1)


CORNER = Feature("corner", corner)


class ToyImage(Toy):
    name, uses_condition_image, marks_constant_frames = "toy_image", True, True

    def image_features(self, measure):
        return (CORNER,)

    def meter(self, measure, member, *, image=None, text=None):
        return Collected(start=float(image[CORNER][0]))


class ToyNetwork(Toy):
    name = "toy_network"

    def networks(self, measure):
        return (measure["network"],)


def protocol(metric, name="p", measure=None, **sections):
    return Protocol(name, metric.name, measure=measure or {}, **sections)


def plan(*metrics, chunk=4, preset=ALL, protocols=None):
    return Plan.of([(metric, protocols or [protocol(metric)]) for metric in metrics], preset, chunk)


def results(group, plan_):
    return {
        (one.member, one.protocol.name, one.measurement.metric.name): one.result
        for one in score_group(group, plan_).outcomes
    }


@pytest.fixture
def group(tmp_path):
    def make(*clips, **sample):
        members = []
        for number, frames in enumerate(clips):
            path = tmp_path / f"{number}.mp4"
            write_clip(path, frames, 8.0, lossless=True)
            members.append(Generation("s", str(number), path))
        return Group("m", Sample("s", **sample), tuple(members))

    return make


@pytest.fixture(autouse=True)
def _fresh_counts():
    CALLS.clear()


# --- features that remember -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 50])
def test_a_stream_feature_sees_frames_and_times_in_order_whatever_the_chunk(group, chunk):
    frames = noise(7)
    found = results(group(frames), plan(ToyStream(), chunk=chunk))["0", "p", "toy_stream"]
    steps = np.abs(np.diff(frames.astype(int), axis=0)).max(axis=(1, 2, 3)) + 1 / 8
    assert np.isnan(found.curves["toy_stream"][0])
    assert found.curves["toy_stream"][1:] == pytest.approx(steps)
    assert CALLS == {"opened": 1, "frames": 7}


def test_each_clip_has_a_memory_of_its_own(group):
    first, second = noise(5, seed=1), noise(5, seed=2)
    found = results(group(first, second), plan(ToyStream(), chunk=2))
    for member, frames in (("0", first), ("1", second)):
        steps = np.abs(np.diff(frames.astype(int), axis=0)).max(axis=(1, 2, 3)) + 1 / 8
        assert found[member, "p", "toy_stream"].curves["toy_stream"][1:] == pytest.approx(steps)
    assert CALLS["opened"] == 2


def test_a_stream_feature_that_needs_less_memory_goes_on_with_smaller_pieces(group):
    frames = noise(9)
    whole = results(group(frames), plan(ToyStream(), chunk=8))["0", "p", "toy_stream"]
    pieces = results(group(frames), plan(ToyStream(least=3), chunk=8))["0", "p", "toy_stream"]
    np.testing.assert_array_equal(pieces.curves["toy_stream"], whole.curves["toy_stream"])


def test_the_array_door_has_the_same_memory(group):
    frames = noise(11)
    metric = ToyStream(least=3)
    found = measure_single(metric, frames, protocol(metric), fps=8.0)
    video = results(group(frames), plan(metric, chunk=8))["0", "p", "toy_stream"]
    np.testing.assert_array_equal(found.curves["toy_stream"], video.curves["toy_stream"])


class Judge(Collected):
    """The frame before each is judged by its mean: the darkest is the worst."""

    def __init__(self):
        super().__init__()
        self.last = None

    def update(self, chunk):
        found = []
        for frame in chunk[FRAMES]:
            found.append(float("inf") if self.last is None else self.last)
            self.last = float(frame.mean())
        return found


class ToyLate(Toy):
    name, judges_frame_before, feature = "toy_late", True, FRAMES

    def meter(self, measure, member, *, image=None, text=None):
        return Judge()


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("dark", [0, 2, 3, 7])
def test_the_worst_frame_of_a_late_judge_has_its_number_and_picture(group, chunk, dark):
    frames = np.full((9, 24, 32, 3), 200, np.uint8) - np.arange(9, dtype=np.uint8)[:, None, None, None]
    frames[dark] = 10
    made, asked = group(frames), plan(ToyLate(), chunk=chunk)
    (outcome,) = score_group(made, asked).outcomes
    assert outcome.result.detail["worst_frame"] == dark
    picture = np.asarray(Image.open(io.BytesIO(outcome.pictures["worst"])).convert("RGB"))
    assert picture.mean() == pytest.approx(10, abs=2)


# --- frames chosen by length ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "chunk"), [(1, 4), (2, 4), (9, 4), (10, 1), (10, 30)])
def test_chosen_frames_are_those_of_the_length(group, length, chunk):
    frames = noise(length)
    found = results(group(frames), plan(ToyChosen(), chunk=chunk))["0", "p", "toy_chosen"]
    assert float(found) == pytest.approx(2 * frames[middle(length)].mean())
    assert float(measure_single(ToyChosen(), frames, protocol(ToyChosen()))) == pytest.approx(float(found))


def test_chosen_frames_follow_the_preset(group):
    frames = noise(10)
    found = results(group(frames), plan(ToyChosen(), preset=Preset("five", 5)))["0", "p", "toy_chosen"]
    assert float(found) == pytest.approx(2 * frames[middle(5)].mean())


def test_chosen_frames_of_a_cut_file_are_those_that_it_holds(group, tmp_path):
    made = group(noise(24, 48, 64))
    (member,) = made.members
    write_clip(tmp_path / "whole.mp4", noise(24, 48, 64), 8.0)  # the index comes first, so that a cut file still opens
    content = (tmp_path / "whole.mp4").read_bytes()
    member.path.write_bytes(content[: int(len(content) * 0.6)])
    found = results(made, plan(ToyChosen(), ToyStream()))
    held = len(found["0", "p", "toy_stream"].curves["toy_stream"])
    assert 1 < held < 24
    assert Flag.TRUNCATED in found["0", "p", "toy_chosen"].flags
    write_clip(tmp_path / "held.mp4", noise(24, 48, 64), 8.0)
    from gen_eval.media import Explicit, read_clip

    expected = read_clip(tmp_path / "held.mp4", Explicit(middle(held))).frames
    assert float(found["0", "p", "toy_chosen"]) == pytest.approx(2 * expected.mean())


# --- prompt -----------------------------------------------------------------------------------------------------------


def test_the_prompt_is_looked_at_once_for_all_members(group):
    found = results(group(noise(2), noise(2), prompt="a red ball"), plan(ToyText()))
    assert [float(one) for one in found.values()] == [10.0, 10.0]
    assert CALLS["text"] == 1


@pytest.mark.parametrize("prompt", [None, "", " \n"])
def test_without_a_prompt_there_is_no_value(group, prompt):
    found = results(group(noise(2), prompt=prompt), plan(ToyText()))["0", "p", "toy_text"]
    assert found.reason is Reason.MISSING_PROMPT
    assert measure_single(ToyText(), noise(2), protocol(ToyText()), prompt=prompt).reason is Reason.MISSING_PROMPT


# --- condition image --------------------------------------------------------------------------------------------------

UPRIGHT, STORED = (
    protocol(ToyImage(), name, {"condition_image": name}, reasons=reasons)
    for name, reasons in (("upright", {}), ("stored", {"not_uint8_rgb": "reference_stops"}))
)


@pytest.fixture
def picture(tmp_path):
    def make(name, mode="RGB", orientation=None):
        pixels = noise(1, 6, 8, seed=3)[0]
        image = Image.fromarray(pixels).convert(mode)
        exif = image.getexif()
        if orientation:
            exif[0x0112] = orientation
        image.save(tmp_path / name, exif=exif)
        return tmp_path / name

    return make


def test_a_plain_picture_is_read_once_for_all_members_and_both_readings(group, picture):
    path = picture("plain.png")
    found = results(group(noise(2), noise(2), condition_image=path), plan(ToyImage(), protocols=[UPRIGHT, STORED]))
    corner_ = float(read_image(path).pixels[0, 0].sum())
    assert {float(one) for one in found.values()} == {corner_}
    assert all(one.flags == () and one.detail["condition_image"]["mode"] == "RGB" for one in found.values())
    assert CALLS["image"] <= 2


def test_a_turned_picture_is_two_pictures(group, picture):
    path = picture("turned.png", orientation=3)
    found = results(group(noise(2), condition_image=path), plan(ToyImage(), protocols=[UPRIGHT, STORED]))
    stored = read_image(path, upright=False).pixels
    assert float(found["0", "stored", "toy_image"]) == stored[0, 0].sum()
    assert float(found["0", "upright", "toy_image"]) == stored[-1, -1].sum()
    assert found["0", "upright", "toy_image"].flags == (Flag.ROTATED,)
    assert found["0", "stored", "toy_image"].flags == ()


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_a_picture_that_is_not_rgb_is_converted_or_refused(group, picture, mode):
    path = picture("other.png", mode)
    found = results(group(noise(2), condition_image=path), plan(ToyImage(), protocols=[UPRIGHT, STORED]))
    assert float(found["0", "upright", "toy_image"]) == read_image(path).pixels[0, 0].sum()
    assert (Flag.ALPHA_DROPPED in found["0", "upright", "toy_image"].flags) == (mode == "RGBA")
    assert found["0", "stored", "toy_image"].reason is Reason.REFERENCE_STOPS
    assert mode in found["0", "stored", "toy_image"].detail["message"]


def test_readings_of_the_picture_cost_nothing_more():
    assert companions(ToyImage(), [UPRIGHT, STORED], UPRIGHT) == [STORED]


def test_the_array_door_wants_the_picture_as_uint8():
    frames = noise(2)
    assert float(measure_single(ToyImage(), frames, UPRIGHT, image=frames[0])) == frames[0, 0, 0].sum()
    assert measure_single(ToyImage(), frames, UPRIGHT).reason is Reason.MISSING_CONDITION_IMAGE
    with pytest.raises(ValueError, match="condition_image must be"):
        measure_single(ToyImage(), frames, UPRIGHT, image=frames[0] / 255)


# --- frames of one colour, networks -----------------------------------------------------------------------------------


def test_a_clip_with_a_frame_of_one_colour_is_marked(group, picture):
    path, frames = picture("plain.png"), noise(5)
    frames[3] = (10, 200, 30)
    found = results(group(frames, noise(5, seed=2), condition_image=path), plan(ToyImage(), chunk=2))
    assert found["0", "p", "toy_image"].flags == (Flag.CONSTANT_FRAME,)
    assert found["1", "p", "toy_image"].flags == ()
    assert measure_single(ToyImage(), frames, UPRIGHT, image=frames[0]).flags == (Flag.CONSTANT_FRAME,)


def test_a_metric_whose_weights_are_absent_is_skipped_and_others_go_on(group, monkeypatch, tmp_path):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "none"))
    from gen_eval.settings import settings

    settings.cache_clear()
    try:
        metric = ToyNetwork()
        named = protocol(metric, measure={"network": "amt_s"})
        asked = Plan.of([(metric, [named]), (ToyStream(), [protocol(ToyStream())])], ALL, 4)
        found = results(group(noise(3)), asked)
    finally:
        settings.cache_clear()
    assert found["0", "p", "toy_network"].reason is Reason.MISSING_WEIGHTS
    assert "gen-eval weights fetch amt_s" in found["0", "p", "toy_network"].detail["message"]
    assert found["0", "p", "toy_stream"].reason is None
    assert asked.networks == ("amt_s",)
