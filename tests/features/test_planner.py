"""The video door: groups in lockstep, shared features, chunks, and troubles that stay where they are."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import control_metrics
from gen_eval.features import FRAMES, Feature, Metric, StreamInfo
from gen_eval.features.plan import Plan
from gen_eval.features.planner import SET_MEMBER, score_group
from gen_eval.media import write_clip, write_image
from gen_eval.protocols import Preset, Protocol, load_protocol
from gen_eval.records import Generation, Group, ItemError, MetricResult, Reason, Sample, Status
from gen_eval.registry import load

CALLS: Counter[str] = Counter()
ALL = Preset("all", None)


def mean_level(frames):
    CALLS["mean_level"] += len(frames)
    return frames.reshape(len(frames), -1).mean(axis=1)


LEVEL = Feature("level", mean_level)


def squares(levels):
    CALLS["squares"] += len(levels)
    return levels**2, np.ones(len(levels))


SQUARES = Feature("squares", squares, source=LEVEL)


class Sums:
    """Adds up what its features give, frame by frame."""

    def __init__(self, features):
        self.features = features
        self.seen = []

    def update(self, *chunks):
        flat = chunks[0] if isinstance(chunks[0], list) else chunks
        values = [chunk[feature] for chunk in flat for feature in self.features]
        values = [value[0] if isinstance(value, tuple) else value for value in values]
        self.seen += [sum(float(value[frame]) for value in values) for frame in range(len(values[0]))]
        return None

    def counts(self):
        return self.seen


class Toy(Metric):
    name, track, inputs, source = "toy", "quality", "single", "tests"
    bounds = (None, None)
    features: tuple[Feature, ...] = (LEVEL,)

    def member_features(self, measure):
        return self.features

    def meter(self, measure, member, *, image=None):
        return Sums(self.features)

    def decide(self, counts, decide):
        return MetricResult.of(self.name, float(np.sum(counts)), curves={self.name: np.array(counts)})


class ToyPair(Toy):
    name, inputs, track = "toy_pair", "pair", "control"


class ToySet(Toy):
    name, inputs = "toy_set", "set"


class ToyImage(Toy):
    name, uses_condition_image = "toy_image", True

    def image_features(self, measure):
        return (LEVEL,)

    def meter(self, measure, member, *, image=None):
        meter = Sums(self.features)
        meter.seen.append(float(image[LEVEL][0]))
        return meter


class ToyChained(Toy):
    name, features = "toy_chained", (SQUARES, LEVEL)


def greedy(frames):
    if len(frames) > 2:
        raise MemoryError
    return frames.reshape(len(frames), -1).mean(axis=1)


class ToyGreedy(Toy):
    name, features = "toy_greedy", (Feature("greedy", greedy),)


def bottomless(frames):
    raise MemoryError


class ToyBottomless(Toy):
    name, features = "toy_bottomless", (Feature("bottomless", bottomless),)


def broken(frames):
    raise ZeroDivisionError("by zero")


class ToyBroken(Toy):
    name, features = "toy_broken", (Feature("broken", broken),)


class ToyRefusing(Toy):
    name = "toy_refusing"

    def meter(self, measure, member, *, image=None):
        raise ItemError(Reason.TOO_SMALL, "too small for this toy", {"side": 1})


def plan(*metrics, chunk=4, preset=ALL, measure=None):
    resize = {"resize": "by_pixels", "aspect_tolerance": 0.05}
    return Plan.of(
        [(metric, [Protocol("p", metric.name, measure={**resize, **(measure or {})})]) for metric in metrics],
        preset,
        chunk,
    )


def noise(count, height=24, width=32, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture
def clip(tmp_path):
    def write(name, frames, fps=24.0):
        path = tmp_path / f"{name}.mp4"
        write_clip(path, frames, fps, lossless=True)
        return path

    return write


def group(paths, reference=None, **sample):
    members = tuple(Generation("s", str(number), path) for number, path in enumerate(paths))
    return Group("m", Sample("s", reference=reference, **sample), members)


def results(group_, plan_):
    return {(one.member, one.measurement.metric.name): one.result for one in score_group(group_, plan_).outcomes}


@pytest.mark.parametrize("chunk", [1, 2, 4, 7, 100])
def test_every_frame_is_seen_once_in_order_whatever_the_chunk(clip, chunk):
    frames = noise(7)
    found = results(group([clip("a", frames)]), plan(Toy(), chunk=chunk))["0", "toy"]
    assert found.curves["toy"].tolist() == frames.reshape(7, -1).mean(axis=1).tolist()


def test_a_chained_feature_and_its_source_are_computed_once(clip):
    CALLS.clear()
    frames = noise(6)
    found = results(group([clip("a", frames)]), plan(ToyChained(), Toy(), chunk=4))
    assert CALLS == {"mean_level": 6, "squares": 6}
    levels = frames.reshape(6, -1).mean(axis=1)
    assert float(found["0", "toy_chained"]) == pytest.approx(float((levels**2 + levels).sum()))


def test_the_reference_side_is_computed_once_for_six_captions(clip):
    CALLS.clear()
    reference = clip("ref", noise(5, seed=9))
    members = [clip(f"m{k}", noise(5, seed=k)) for k in range(6)]
    found = results(group(members, reference), plan(ToyPair(), chunk=2))
    assert CALLS["mean_level"] == 5 * 7
    assert len({float(result) for result in found.values()}) == 6


def test_a_pair_is_compared_over_the_common_frames(clip):
    reference, member = noise(6, seed=1), noise(9, seed=2)
    found = results(group([clip("long", member), clip("short", member[:4])], clip("ref", reference)), plan(ToyPair()))
    levels = [clip_.reshape(len(clip_), -1).mean(axis=1) for clip_ in (reference, member)]
    assert found["0", "toy_pair"].curves["toy_pair"] == pytest.approx(levels[0] + levels[1][:6])
    assert found["1", "toy_pair"].curves["toy_pair"] == pytest.approx((levels[0] + levels[1][:6])[:4])
    assert found["0", "toy_pair"].flags == ("long_clip",)
    assert found["1", "toy_pair"].flags == ("short_clip",)
    assert found["1", "toy_pair"].detail["covered"] == pytest.approx(4 / 6)
    assert found["0", "toy_pair"].detail["frames"] == {"member": 9, "reference": 6, "compared": 6}


def test_a_set_sees_all_members_of_the_common_prefix_together(clip):
    clips = [noise(count, seed=count) for count in (5, 3, 6)]
    found = results(group([clip(f"c{len(one)}", one) for one in clips]), plan(ToySet(), chunk=2))
    expected = sum(one[:3].reshape(3, -1).mean(axis=1) for one in clips)
    result = found[SET_MEMBER, "toy_set"]
    assert result.curves["toy_set"] == pytest.approx(expected)
    assert result.detail["members"] == ["0", "1", "2"]


def test_a_set_goes_on_without_an_absent_member_and_names_it(clip, tmp_path):
    paths = [clip("a", noise(3)), tmp_path / "absent.mp4", clip("b", noise(3, seed=1))]
    result = results(group(paths), plan(ToySet()))[SET_MEMBER, "toy_set"]
    assert result.status is Status.OK
    assert (result.detail["members"], result.detail["absent"]) == (["0", "2"], ["1"])


def test_the_condition_image_is_a_chunk_of_one(clip, tmp_path):
    picture = noise(1, seed=5)[0]
    write_image(tmp_path / "c.png", picture)
    found = results(group([clip("a", noise(2))], condition_image=tmp_path / "c.png"), plan(ToyImage()))
    assert found["0", "toy_image"].curves["toy_image"][0] == pytest.approx(picture.mean())
    absent = results(group([clip("b", noise(2))], condition_image=tmp_path / "d.png"), plan(ToyImage(), Toy()))
    assert absent["0", "toy_image"].reason is Reason.MISSING_CONDITION_IMAGE
    assert absent["0", "toy"].status is Status.OK


def test_out_of_memory_halves_the_chunk_and_keeps_the_value(clip):
    """H13."""
    path = clip("a", noise(11))
    found = results(group([path]), plan(ToyGreedy(), Toy(), ToyBottomless(), chunk=8))
    assert float(found["0", "toy_greedy"]) == float(found["0", "toy"])
    assert found["0", "toy_bottomless"].reason is Reason.OUT_OF_MEMORY
    assert "single frame" in found["0", "toy_bottomless"].detail["message"]


def test_a_surprise_ends_one_metric_and_keeps_its_traceback(clip):
    outcome = score_group(group([clip("a", noise(3))]), plan(ToyBroken(), Toy(), ToyRefusing()))
    found = {one.result.metric: one.result for one in outcome.outcomes}
    assert found["toy_broken"].reason is Reason.INTERNAL_ERROR
    assert "ZeroDivisionError: by zero" in found["toy_broken"].detail["message"]
    assert found["toy_refusing"].reason is Reason.TOO_SMALL
    assert found["toy"].status is Status.OK
    assert "ZeroDivisionError" in outcome.log[0]
    assert outcome.transient


def test_one_broken_member_leaves_the_others_alone(clip, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    paths = [clip("a", noise(4)), tmp_path / "text.mp4", tmp_path / "empty.mp4", tmp_path / "absent.mp4"]
    found = results(group(paths, clip("ref", noise(4))), plan(Toy(), ToyPair()))
    reasons = [found[str(number), "toy_pair"].reason for number in range(4)]
    assert reasons == [None, Reason.UNDECODABLE, Reason.UNDECODABLE, Reason.MISSING_VIDEO]
    assert [found[str(number), "toy"].reason for number in range(4)] == reasons


def test_a_broken_reference_ends_pairs_only_and_says_whose_it_is(clip, tmp_path):
    (tmp_path / "ref.mp4").write_text("no video")
    found = results(group([clip("a", noise(4))], tmp_path / "ref.mp4"), plan(Toy(), ToyPair()))
    assert found["0", "toy"].status is Status.OK
    assert found["0", "toy_pair"].reason is Reason.UNDECODABLE
    assert found["0", "toy_pair"].detail["side"] == "reference"
    without = results(group([clip("b", noise(4))]), plan(ToyPair()))["0", "toy_pair"]
    assert (without.status, without.reason) == (Status.SKIPPED, Reason.MISSING_GROUND_TRUTH)


def test_a_reference_that_breaks_behind_the_end_of_all_members_ends_pairs(clip, tmp_path):
    """It changes its size at frame 7; the members have ended with the chunk before."""
    path = tmp_path / "ref.ts"
    write_size_change(path)
    found = results(group([clip("a", noise(6, 48, 64))], path), plan(Toy(), ToyPair(), chunk=6))
    assert found["0", "toy_pair"].reason is Reason.SIZE_CHANGES
    assert found["0", "toy_pair"].detail["side"] == "reference"
    assert found["0", "toy"].status is Status.OK


def test_another_shape_is_refused_with_both_sizes(clip):
    """H5."""
    found = results(group([clip("a", noise(2, 32, 24))], clip("ref", noise(2, 24, 32))), plan(ToyPair()))
    result = found["0", "toy_pair"]
    assert result.reason is Reason.ASPECT_MISMATCH
    assert result.detail["sizes_hw"] == [[24, 32], [32, 24]]
    assert "resized" not in result.flags


def test_another_size_of_one_shape_is_resized(clip):
    found = results(group([clip("a", noise(2, 48, 64))], clip("ref", noise(2, 24, 32))), plan(ToyPair()))
    assert found["0", "toy_pair"].flags == ("resized",)


def test_another_rate_is_flagged_and_frames_pair_by_index(clip):
    frames = noise(3)
    found = results(group([clip("a", frames, 12.0)], clip("ref", frames, 24.0)), plan(ToyPair()))
    assert found["0", "toy_pair"].flags == ("fps_mismatch",)


def test_the_preset_limits_all_clips(clip):
    found = results(group([clip("a", noise(9))], clip("ref", noise(9))), plan(Toy(), ToyPair(), preset=Preset("3", 3)))
    assert len(found["0", "toy"].curves["toy"]) == 3
    assert found["0", "toy_pair"].detail["frames"] == {"member": 3, "reference": 3, "compared": 3}


@pytest.mark.parametrize("chunk", [1, 3, 8, 64])
@pytest.mark.parametrize("name", ["blur_ssim", "edge_f1"])
@pytest.mark.parametrize("protocol", ["corrected", "reference", "reference-v2"])
def test_the_video_door_gives_the_bits_of_the_array_door(clip, name, chunk, protocol):
    reference, member = noise(9, 40, 56, seed=1) // 2 + 60, noise(8, 40, 56, seed=2) // 2 + 60
    own = Plan.of([(load("gen_eval.metrics", name), [load_protocol(name, protocol)])], ALL, chunk)
    video = results(group([clip("a", member)], clip("ref", reference)), own)["0", name]
    array = getattr(control_metrics, name)(member, reference, protocol=protocol)
    assert video.value == array.value
    assert video.flags == array.flags
    assert np.array_equal(video.curves[name], array.curves[name], equal_nan=True)


def test_files_beside_the_clips(clip, tmp_path):
    """Metrics on depth maps and masks read what is given and say what is absent."""
    depth = load("gen_eval.metrics", "depth_si_rmse")
    own = Plan.of([(depth, [load_protocol("depth_si_rmse", "corrected")])], ALL, 8)
    maps = np.random.default_rng(0).random((4, 12, 16), dtype=np.float32) + 0.5
    for name, content in (("ref", maps), ("a", 3 * maps), ("b", maps[::-1])):
        np.savez(tmp_path / f"{name}.npz", data=content)
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    members = (
        Generation("s", "scaled", clip("x", noise(4)), depth=tmp_path / "a.npz"),
        Generation("s", "other", clip("y", noise(4)), depth=tmp_path / "b.npz"),
        Generation("s", "broken", clip("z", noise(4)), depth=tmp_path / "bad.npz"),
        Generation("s", "without", clip("w", noise(4))),
        Generation("s", "gone", None, problem=Reason.MISSING_VIDEO),
    )
    found = results(Group("m", Sample("s", depth=tmp_path / "ref.npz"), members), own)
    assert float(found["scaled", "depth_si_rmse"]) == pytest.approx(0, abs=1e-6)
    array = control_metrics.depth_si_rmse(maps[::-1], maps)
    assert found["other", "depth_si_rmse"].value == array.value
    assert found["broken", "depth_si_rmse"].reason is Reason.UNDECODABLE
    assert found["without", "depth_si_rmse"].status is Status.SKIPPED
    assert "weights fetch vda_small" in found["without", "depth_si_rmse"].detail["message"]
    assert found["gone", "depth_si_rmse"].reason is Reason.MISSING_VIDEO
    no_truth = results(Group("m", Sample("s"), members[:1]), own)["scaled", "depth_si_rmse"]
    assert no_truth.reason is Reason.MISSING_GROUND_TRUTH


def test_pictures_show_the_worst_frame(clip):
    """A clip that equals its reference but for one frame."""
    reference = np.full((6, 40, 56, 3), 90, np.uint8)
    reference[:, 10:20, 10:30] = 180
    member = reference.copy()
    member[4] = noise(1, 40, 56, seed=3)[0]
    blur = load("gen_eval.metrics", "blur_ssim")
    own = Plan.of([(blur, [load_protocol("blur_ssim", "corrected")])], ALL, 4)
    (outcome,) = score_group(group([clip("a", member)], clip("ref", reference)), own).outcomes
    assert outcome.result.detail["worst_frame"] == 4
    pictures = ["blurred", "blurred_reference", "thumbnail", "worst", "worst_reference"]
    assert [role for role in sorted(outcome.pictures) if role in pictures] == pictures
    assert all(picture.startswith(b"\xff\xd8") for picture in outcome.pictures.values())


def test_stream_info_is_that_of_the_reference_for_pairs(clip):
    sizes = []

    class Asking(ToyPair):
        def meter(self, measure, member, *, image=None):
            sizes.append(member)
            return Sums(self.features)

    results(group([clip("a", noise(2, 48, 64))], clip("ref", noise(2, 24, 32)), prompt="a ball"), plan(Asking()))
    assert sizes == [StreamInfo(24, 32, fps=24.0, prompt="a ball")]


def test_frames_is_the_feature_of_the_pixels_themselves(clip):
    class Pixels(Toy):
        features = (FRAMES,)

        def meter(self, measure, member, *, image=None):
            return Copies()

        def decide(self, counts, decide):
            return MetricResult.of(self.name, float(np.concatenate(counts).sum()))

    class Copies:
        def __init__(self):
            self.parts = []

        def update(self, chunk):
            self.parts.append(chunk[FRAMES].copy())

        def counts(self):
            return self.parts

    frames = noise(5)
    assert float(results(group([clip("a", frames)]), plan(Pixels(), chunk=2))["0", "toy"]) == float(frames.sum())


def test_where_the_public_code_stops_the_exception_is_named(clip, tmp_path):
    """Every `reference_stops`, of the meter or of the decoder."""
    small, path = noise(3, 6, 8), tmp_path / "turns.ts"
    write_size_change(path)
    flicker = load("gen_eval.metrics", "temporal_flickering")
    own = Plan.of([(flicker, [load_protocol("temporal_flickering", "reference")])], ALL, 4)
    changed = results(group([path]), own)["0", "temporal_flickering"]
    assert changed.reason is Reason.REFERENCE_STOPS
    assert changed.detail["reference_exception"] == "TypeError"
    stopped = control_metrics.blur_ssim(small, small, protocol="reference")
    assert stopped.detail["reference_exception"] == "ValueError"
    many = [(f"thing {k}", np.ones((1, 2, 2), bool)) for k in range(256)]
    assert "reference_exception" in control_metrics.mask_miou(many, many, protocol="reference").detail


def write_size_change(path):
    """A transport stream whose frames change their size in the middle."""
    import av

    parts = []
    for height in (48, 64):
        part = path.with_suffix(f".{height}.ts")
        with av.open(str(part), "w", format="mpegts") as out:
            stream = out.add_stream("libx264", rate=24)
            stream.height, stream.width, stream.pix_fmt = height, 64, "yuv420p"
            for frame in noise(6, height, 64):
                out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            out.mux(stream.encode())
        parts.append(part.read_bytes())
    path.write_bytes(b"".join(parts))


def test_paths_may_hold_any_sign(clip, tmp_path):
    odd = tmp_path / "a b%20'\"$(x);é帧.mp4"
    clip("a", noise(2)).rename(odd)
    assert results(group([Path(odd)]), plan(Toy()))["0", "toy"].status is Status.OK


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(OSError(5, "Input/output error"), Reason.INTERNAL_ERROR), (MemoryError(), Reason.OUT_OF_MEMORY)],
)
def test_trouble_outside_of_all_metrics_costs_the_rows_of_its_group_only(monkeypatch, trouble, reason):
    def broken(*_):
        raise trouble

    monkeypatch.setattr("gen_eval.features.planner.Clip.open", broken)
    metric = load("gen_eval.metrics", "edge_f1")
    plan = Plan.of([(metric, [load_protocol("edge_f1", "corrected")])], ALL, 8)
    members = tuple(Generation("s", str(seed), Path("absent.mp4")) for seed in range(2))
    outcome = score_group(Group("m", Sample("s"), members), plan)
    assert [(one.member, one.result.reason) for one in outcome.outcomes] == [("0", reason), ("1", reason)]
    assert all(one.result.detail["message"] for one in outcome.outcomes)
