"""Depth of clips that come without maps: made by the network of the protocol, then measured like given ones."""

from pathlib import Path

import numpy as np
import pytest

from bench.stand_in import write
from control_metrics import depth_si_rmse
from gen_eval.data.signal_files import write_depth
from gen_eval.features import ClipFrames, StreamInfo
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.networks.depth import DEPTH_KEYS, depth_maps
from gen_eval.protocols import Preset, load_protocol
from gen_eval.records import Flag, Generation, Group, InputError, Reason, Sample, Status
from gen_eval.registry import load
from gen_eval.settings import settings

METRIC = load("gen_eval.metrics", "depth_si_rmse")
SMALL = "depth_si_rmse: {base: %s, measure: {base_side: 28%s}}\n"
OTHER = "depth_anything_v2_small"


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory, write_depth_anything):
    environment = write(tmp_path_factory.mktemp("depth"), ["vda_small"], small=True)
    write_depth_anything(Path(environment["GEN_EVAL_WEIGHTS"]) / OTHER)
    return environment


@pytest.fixture
def networks(stand_ins, kept_networks, use_environment):
    use_environment(stand_ins)


@pytest.fixture
def protocol(tmp_path):
    """`protocol(base, more)`: a shipped one with small pictures for the network, by the path of a file of one's own."""

    def make(base="corrected", more=""):
        path = tmp_path / f"small-{base}.yaml"
        path.write_text(SMALL % (base, more))
        return load_protocol("depth_si_rmse", str(path))

    return make


@pytest.fixture
def clip(tmp_path):
    def make(name, frames):
        path = tmp_path / f"{name}.mp4"
        write_clip(path, frames, 24.0, lossless=True)
        return path

    return make


def smooth(frames, height=30, width=44, seed=0):
    coarse = np.random.default_rng(seed).integers(0, 256, (frames, 6, 8, 3), np.uint8)
    return np.ascontiguousarray(coarse.repeat(8, axis=1).repeat(8, axis=2)[:, :height, :width])


def score(protocol, members, reference=None, depth=None):
    plan = Plan.of([(METRIC, [protocol])], Preset("all", None), 8)
    made = tuple(Generation("s", str(number), path) for number, path in enumerate(members))
    group = Group("m", Sample("s", reference=reference, depth=depth), made)
    return [one.result for one in score_group(group, plan).outcomes]


def maps(frames, protocol):
    parameters = {name: protocol.measure[name] for name in DEPTH_KEYS}
    return np.concatenate(list(depth_maps(ClipFrames(StreamInfo(*frames.shape[1:3]), [frames]), **parameters)))


@pytest.mark.usefixtures("networks")
def test_made_maps_are_measured_like_given_ones(clip, protocol):
    own, other, chosen = smooth(5, seed=1), smooth(4, seed=2), protocol()
    same, differing = score(chosen, [clip("a", own), clip("b", other)], clip("r", own))
    assert (same.value, same.values) == (0, {"log": 0})
    expected = depth_si_rmse(maps(other, chosen), maps(own, chosen))
    assert differing.value == pytest.approx(expected.value, rel=1e-6)
    assert differing.values["log"] == pytest.approx(expected.values["log"], rel=1e-6)
    assert differing.flags == expected.flags
    told = differing.detail["signal"]["generated"]
    assert (told["network"], told["dtype"], told["network_hw"]) == ("vda_small", "float32", [28, 42])


@pytest.mark.usefixtures("networks")
@pytest.mark.parametrize(
    ("base", "seen"), [("reference", [28, 42]), ("reference-v2", [28, 56]), ("corrected", [28, 56])]
)
def test_size_that_the_network_sees(clip, protocol, base, seen):
    """A wider clip: at the reference's size, or at its own with the map resized."""
    tolerance = "0.9" if base == "corrected" else "null"
    chosen = protocol(base, f", clip_aspect_tolerance: {tolerance}")
    (result,) = score(chosen, [clip("a", smooth(3, 30, 60, seed=3))], clip("r", smooth(3)))
    assert result.value is not None
    assert Flag.RESIZED in result.flags
    assert result.detail["signal"]["generated"]["network_hw"] == seen
    assert result.detail["signal"]["reference"]["network_hw"] == [28, 42]


@pytest.mark.usefixtures("networks")
def test_shapes_too_far_apart(clip, protocol):
    wide, reference = clip("a", smooth(3, 30, 60)), clip("r", smooth(3))
    assert score(protocol(), [wide], reference)[0].reason is Reason.ASPECT_MISMATCH
    assert score(protocol("reference"), [wide], reference)[0].value is not None


@pytest.mark.usefixtures("networks")
def test_given_maps_of_the_reference_are_taken(clip, protocol, tmp_path):
    own = smooth(3, seed=4)
    given = maps(own, protocol()) + 1
    write_depth(tmp_path / "r.npz", given)
    (result,) = score(protocol(), [clip("a", own)], clip("r", smooth(3)), tmp_path / "r.npz")
    assert result.value == pytest.approx(float(depth_si_rmse(maps(own, protocol()), given)), rel=1e-6)
    assert "reference" not in result.detail["signal"]


@pytest.mark.usefixtures("networks")
def test_depth_anything_by_a_protocol_of_ones_own(clip, request):
    """The file that docs/protocols.md shows."""
    text = (request.config.rootpath / "docs" / "protocols.md").read_text()
    lines = [line.strip() for line in text.splitlines() if f"network: {OTHER}" in line]
    assert len(lines) == 1
    path = request.getfixturevalue("tmp_path") / "per-frame.yaml"
    path.write_text(lines[0].replace("measure: {", "measure: {base_side: 28, "))
    chosen = load_protocol("depth_si_rmse", str(path))
    own, other = smooth(2, seed=5), smooth(2, seed=6)
    same, differing = score(chosen, [clip("a", own), clip("b", other)], clip("r", own))
    assert same.value == 0
    assert differing.detail["signal"]["generated"]["network"] == OTHER
    assert differing.value == pytest.approx(float(depth_si_rmse(maps(other, chosen), maps(own, chosen))), rel=1e-6)


def test_without_the_network(clip, protocol, tmp_path, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "nothing"))
    settings.cache_clear()
    write_depth(tmp_path / "r.npz", np.ones((3, 30, 44), np.float32))
    member, reference = clip("a", smooth(3)), clip("r", smooth(3))
    (no_truth,) = score(protocol(), [member], reference)
    assert (no_truth.status, no_truth.reason) == (Status.SKIPPED, Reason.MISSING_GROUND_TRUTH)
    (no_maps,) = score(protocol(), [member], reference, tmp_path / "r.npz")
    assert (no_maps.status, no_maps.reason) == (Status.SKIPPED, Reason.MISSING_WEIGHTS)
    assert "weights fetch vda_small" in no_maps.detail["message"]
    settings.cache_clear()


@pytest.mark.usefixtures("networks")
def test_memory_that_runs_out_is_a_row(clip, protocol, monkeypatch):
    def no_room(*_):
        raise MemoryError("no room")

    monkeypatch.setattr("gen_eval.networks.video_depth.VideoDepth.encode", no_room)
    (result,) = score(protocol(), [clip("a", smooth(2))], clip("r", smooth(2, seed=1)))
    assert (result.status, result.reason) == (Status.FAILED, Reason.OUT_OF_MEMORY)


@pytest.mark.parametrize("base", ["reference", "reference-v2", "corrected"])
def test_what_the_protocols_say_of_the_clip(base):
    measure = load_protocol("depth_si_rmse", base).measure
    shown = {name: measure[f"clip_{name}"] for name in ("size", "aspect_tolerance", "crf")}
    own = {"size": "own", "aspect_tolerance": None, "crf": None}
    expected = {
        "reference": own | {"size": "reference"},
        "reference-v2": own,
        "corrected": own | {"aspect_tolerance": 0.05},
    }
    assert shown == expected[base]
    assert (measure["network"], measure["base_side"], measure["multiple"]) == ("vda_small", 518, 14)


@pytest.mark.parametrize(("more", "said"), [("network: 3", "network is 3"), ("window: all", "window is 'all'")])
def test_another_kind_of_parameter_is_refused(protocol, more, said):
    with pytest.raises(InputError, match=said):
        protocol("corrected", f", {more}")
