"""Depth of clips as a stream: sizes, a literal reading of the windows, chunks, memory; networks of single frames."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.nn import functional

from bench.stand_in import write
from control_metrics.signals import open_depth
from gen_eval.features import ClipFrames, StreamInfo
from gen_eval.networks import depth as module_of_depth
from gen_eval.networks import placed, placement_of
from gen_eval.networks.depth import DEPTH_KEYS, DepthView, depth_maps, depth_signal
from gen_eval.networks.loading import loaded
from gen_eval.networks.windows import WindowRule, windows
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.settings import settings as own_settings

PROTOCOL = load_protocol("depth_si_rmse", "corrected").measure
MEASURE = {**PROTOCOL, "base_side": 28}  # small pictures
PARAMETERS = {name: MEASURE[name] for name in DEPTH_KEYS}
VIEW = DepthView(**{name: PROTOCOL[name] for name in DepthView.__dataclass_fields__})
FOLDER = "depth_anything_v2_small"


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory, write_depth_anything):
    environment = write(tmp_path_factory.mktemp("depth"), ["vda_small"], small=True)
    write_depth_anything(Path(environment["GEN_EVAL_WEIGHTS"]) / FOLDER)
    return environment


@pytest.fixture(autouse=True)
def networks(stand_ins, kept_networks, use_environment):
    use_environment(stand_ins)


def noise(frames, height=30, width=44, seed=0):
    coarse = np.random.default_rng(seed).integers(0, 256, (frames, height // 5 + 1, width // 5 + 1, 3), np.uint8)
    return coarse.repeat(5, axis=1).repeat(5, axis=2)[:, :height, :width]


def chunks(clip, *sizes):
    """The clip in chunks whose memory is used again."""
    buffer = np.empty((max(sizes), *clip.shape[1:]), np.uint8)
    start = 0
    while start < len(clip):
        for size in sizes:
            part = buffer[: len(clip[start : start + size])]
            part[:] = clip[start : start + size]
            if len(part):
                yield part
            buffer[:] = 7
            start += size


def run(clip, *sizes, **changes):
    frames = ClipFrames(StreamInfo(*clip.shape[1:3]), chunks(clip, *(sizes or (8,))))
    return np.concatenate(list(depth_maps(frames, **PARAMETERS | changes)))


def literal(clip, base):
    """The protocol as it is written: all windows first, then the stitching, nothing kept short."""
    network, height, width = loaded("vda_small"), *clip.shape[1:3]
    seen = DepthView(**VIEW.__dict__ | {"base_side": base}).size(height, width)
    pictures = [cv2.resize(f.astype(np.float32) / 255, seen[::-1], interpolation=cv2.INTER_CUBIC) for f in clip]
    mean, deviation = (np.float32(v) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    inputs = torch.from_numpy(np.stack([(p - mean) / deviation for p in pictures]).transpose(0, 3, 1, 2))
    padded = list(range(len(clip))) + [len(clip) - 1] * ((22 - len(clip) % 22) % 22 + 10)
    outputs, previous = [], None
    for start in range(0, len(clip), 22):
        slots = padded[start : start + 32]
        if previous is not None:
            slots[:10] = [previous[slot] for slot in (0, 12, *range(24, 32))]
        with torch.inference_mode():
            maps = functional.interpolate(network.depth(inputs[slots])[:, None], (height, width), mode="bilinear",
                                          align_corners=True)[:, 0].numpy()  # fmt: skip
        outputs.append(maps)
        previous = slots
    done = list(outputs[0])
    pair = [outputs[0][0], outputs[0][12]]
    for maps in outputs[1:]:
        own, target = np.stack(maps[:2]).astype(np.float64), np.stack(pair).astype(np.float64)
        (scale, shift), *_ = np.linalg.lstsq(np.stack([own.ravel(), np.ones(own.size)], 1), target.ravel(), rcond=None)
        moved = [np.maximum(one * scale + shift, 0) for one in maps]
        for place, slot in enumerate(range(2, 10)):
            done[place - 8] = done[place - 8] * (1 - place / 7) + moved[slot] * (place / 7)
        done += moved[10:]
        pair = [pair[0], moved[12]]
    return np.stack(done[: len(clip)])


@pytest.mark.parametrize("frames", [1, 2, 23, 31, 32, 33, 54, 55, 121])
def test_it_is_the_protocol_as_it_is_written(frames):
    clip = noise(frames)
    found, expected = run(clip), literal(clip, 28)
    assert (found.shape, found.dtype) == (clip.shape[:3], np.float32)
    assert found.min() >= 0
    assert found.std() > 0.05
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * float(expected.max()))


@pytest.mark.parametrize("size", [(44, 30), (16, 120), (150, 20), (30, 30), (28, 42)])
def test_portrait_strips_and_squares(size):
    clip = noise(3, *size)
    found = run(clip, base_side=56)
    np.testing.assert_allclose(found, literal(clip, 56), rtol=0, atol=2e-3 * float(found.max()))


@given(st.integers(1, 40), st.lists(st.integers(1, 45), min_size=1, max_size=4))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_chunks_do_not_matter(frames, sizes):
    clip = noise(frames, 20, 28)
    np.testing.assert_array_equal(run(clip, *sizes, base_side=14), run(clip, frames, base_side=14))


def test_still_and_empty_pictures_have_depth():
    """Frames of one colour, and frames that do not change."""
    clip = noise(1).repeat(40, axis=0)
    found = run(clip)
    assert np.isfinite(found).all()
    plain = np.full((3, 30, 44, 3), 90, np.uint8)
    np.testing.assert_allclose(run(plain), literal(plain, 28), rtol=0, atol=2e-3 * float(found.max()))


def test_golden_sizes(request):
    cases = json.loads((request.config.rootpath / "tests/goldens/control/vda.json").read_text())["input_sizes"]
    assert len(cases) == 9
    for case in cases:
        assert VIEW.size(*case["frame_hw"]) == tuple(case["network_hw"])


@given(st.integers(1, 3000), st.integers(1, 3000))
@example(1, 115)
@example(1, 116)
@settings(max_examples=60)
def test_sizes_are_multiples_and_turn_with_the_frame(height, width):
    if 518 * 1.777 * min(height, width) / max(height, width) < 8:  # 7 is half a patch, which is none
        with pytest.raises(ItemError, match="too long a strip"):
            VIEW.size(height, width)
        return
    found = VIEW.size(height, width)
    assert all(side % 14 == 0 and side > 0 for side in found)
    assert VIEW.size(width, height) == found[::-1]
    assert max(found) * min(found) <= 518 * 980  # however large or long a frame is, memory is bounded


def test_a_strip_without_a_shorter_side_is_refused():
    with pytest.raises(ItemError, match="4000x20 pixels") as caught:
        VIEW.size(20, 4000)
    assert caught.value.reason is Reason.TOO_SMALL


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"base_side": 7}, "base_side"), ({"multiple": 0}, "multiple"), ({"filter": "lanczos"}, "bicubic, bilinear"),
        ({"map_filter": "nearest"}, "bilinear_corners"), ({"normalise": "none of these"}, "none of these"),
        ({"overlap": 2}, "overlap"), ({"window": 40}, "at most 32 frames"), ({"multiple": 16}, "multiples of 14"),
        ({"network": "dino_vitb16"}, "dino"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(wrong, said):
    with pytest.raises((InputError, ItemError), match=said):
        run(noise(3), **wrong)


class Watched:
    """A network that counts what it is asked for and runs out of memory above a number of frames."""

    def __init__(self, network, most=10**6):
        self.network, self.most, self.encoded = network, most, []

    def __getattr__(self, name):
        return getattr(self.network, name)

    def encode(self, pictures):
        if len(pictures) > self.most:
            raise MemoryError("no room")
        self.encoded.append(len(pictures))
        return self.network.encode(pictures)

    def render(self, related):
        if len(related[0]) > self.most:
            raise torch.OutOfMemoryError("no room")
        return self.network.render(related)


@pytest.fixture
def watched(monkeypatch):
    def watch(**changes):
        from gen_eval.networks import loading

        network = Watched(loaded("vda_small"), **changes)
        monkeypatch.setattr(loading, "able", lambda *_: network)
        return network

    return watch


def test_each_frame_is_encoded_once(watched):
    network = watched()
    run(noise(55))
    assert sum(network.encoded) == 55  # three windows of 32 slots look at them


def test_frames_are_encoded_as_the_windows_need_them(watched, monkeypatch):
    monkeypatch.setattr(module_of_depth, "_MOST", 2)
    network, seen = watched(), []
    frames = ClipFrames(StreamInfo(30, 44), chunks(noise(70), 5))
    for maps in depth_maps(frames, **PARAMETERS):
        seen += [(sum(network.encoded), len(maps))]
    assert [count for count, _ in seen[:24]] == [32] * 24  # the first maps leave before frame 33 is looked at
    assert sum(length for _, length in seen) == 70


def test_memory_that_runs_out_halves_what_is_done_at_a_time(watched):
    clip = noise(34)
    expected = run(clip)
    network = watched(most=3)
    np.testing.assert_allclose(run(clip), expected, rtol=0, atol=1e-3 * float(expected.max()))
    assert max(network.encoded) <= 3


def test_a_frame_that_does_not_fit_is_out_of_memory(watched, tmp_path):
    watched(most=0)
    frames = ClipFrames(StreamInfo(30, 44), [noise(3)])
    with pytest.raises(ItemError, match="does not fit into memory") as caught:
        depth_signal(MEASURE)(frames, tmp_path / "d.npz")
    assert caught.value.reason is Reason.OUT_OF_MEMORY
    assert list(tmp_path.iterdir()) == []


def test_the_signal_writes_what_the_stream_gives(tmp_path):
    clip = noise(34)
    signal = depth_signal(MEASURE)
    assert (signal.name, signal.suffix, signal.networks, signal.uses_prompt) == ("depth", ".npz", ("vda_small",), False)
    assert signal == depth_signal({**MEASURE, "residual_cap": 3.0})
    assert signal != depth_signal(PROTOCOL)
    facts = signal(ClipFrames(StreamInfo(30, 44), [clip]), tmp_path / "d.npz")
    assert facts == {"network": "vda_small", "dtype": "float32", "network_hw": [28, 42]}
    with open_depth(tmp_path / "d.npz") as file:
        np.testing.assert_array_equal(np.concatenate(list(file.chunks(5))), run(clip))


def test_the_number_format_is_told_and_moves_the_maps_a_little(tmp_path):
    clip = noise(2)
    exact = run(clip)
    with placed(placement_of("cpu", "bfloat16")):
        rough = run(clip)
        facts = depth_signal(MEASURE)(ClipFrames(StreamInfo(30, 44), [clip]), tmp_path / "d.npz")
    assert facts["dtype"] == "bfloat16"
    assert 0 < np.abs(rough - exact).max() < 0.5 * exact.max()


def test_depth_that_is_no_number_has_a_reason(watched, tmp_path):
    network = watched()
    whole = network.network.render
    network.network.__dict__["render"] = lambda related: whole(related) * float("nan")
    network.render = network.network.render
    with pytest.raises(ItemError, match="in frame 0") as caught:
        depth_signal(MEASURE)(ClipFrames(StreamInfo(30, 44), [noise(3)]), tmp_path / "d.npz")
    assert caught.value.reason is Reason.NOT_FINITE
    assert list(tmp_path.iterdir()) == []


def test_a_clip_without_frames_has_a_reason(tmp_path):
    with pytest.raises(ItemError) as caught:
        depth_signal(MEASURE)(ClipFrames(StreamInfo(30, 44), []), tmp_path / "d.npz")
    assert caught.value.reason is Reason.UNDECODABLE


def test_a_network_of_single_frames_needs_no_windows():
    clip = noise(35, 70, 84)
    found = run(clip, network=FOLDER, base_side=70)
    assert found.shape == clip.shape[:3]
    assert found.std() > 0
    np.testing.assert_allclose(
        found[::5], run(clip[::5], network=FOLDER, base_side=70), rtol=0, atol=1e-4 * found.max()
    )
    picture = torch.from_numpy(VIEW.resized(clip[7], (70, 84))).permute(2, 0, 1)[None]
    mean, deviation = (torch.tensor(v).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    with torch.inference_mode():
        expected = loaded(FOLDER).model(pixel_values=(picture - mean) / deviation).predicted_depth
    np.testing.assert_allclose(found[7], expected[0], rtol=0, atol=1e-4 * found.max())


def test_pictures_of_another_shape_are_refused_by_it_too():
    with pytest.raises(InputError, match="multiples of 14"):
        run(noise(2), network=FOLDER, multiple=16)


@pytest.mark.parametrize(
    ("breaking", "said"),
    [("drop", "1 missing"), ("add", "1 unexpected"), ("reshape", "of another shape"), ("metric", "metric depth")],
)
def test_folders_of_another_network_are_refused(stand_ins, tmp_path, monkeypatch, breaking, said):
    home = tmp_path / "weights" / FOLDER
    shutil.copytree(Path(stand_ins["GEN_EVAL_WEIGHTS"]) / FOLDER, home)
    state = load_file(home / "model.safetensors")
    key = "head.conv1.bias"
    if breaking == "drop":
        del state[key]
    elif breaking == "add":
        state["head.conv4.bias"] = state[key].clone()
    elif breaking == "reshape":
        state[key] = torch.zeros(3)
    else:
        config = json.loads((home / "config.json").read_text())
        (home / "config.json").write_text(json.dumps(config | {"depth_estimation_type": "metric", "max_depth": 20}))
    save_file(state, home / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "weights"))
    own_settings.cache_clear()
    with pytest.raises(ItemError, match=said) as caught:
        loaded(FOLDER)
    assert caught.value.reason is Reason.BAD_WEIGHTS
    assert str(tmp_path) not in str(caught.value)


def test_windows_of_the_protocol_are_those_of_the_rule():
    rule = WindowRule(MEASURE["window"], MEASURE["overlap"], MEASURE["key_slot"])
    assert next(windows(range(40), rule)).slots == list(range(32))
