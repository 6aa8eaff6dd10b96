"""DOVER's technical branch: published names, goldens of the full size, attention by plain means, what is refused."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from bench.stand_in import SMALL, numbers
from gen_eval import weights
from gen_eval.networks import dover
from gen_eval.networks.fragments import Grid, cut_fragments, segment_frames
from gen_eval.networks.video_swin import VideoSwin, clipped, relative_index

SIZES = {name: value for name, value in SMALL["dover"].items() if name != "kind"}
STAGES = ["patch_embed", "layer0", "layer1", "layer2", "layer3"]


@pytest.fixture(scope="module")
def golden(goldens_control):
    return json.loads((goldens_control / "dover.json").read_text())


@pytest.fixture(scope="module")
def expected(goldens_control):
    with np.load(goldens_control / "dover_network.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def fill(unset):
    """A network with stand-in numbers."""

    def make(build, *sizes, **named):
        network = unset(lambda **own: build(*sizes, **own), **named)
        drawn = {name: torch.from_numpy(one) for name, one in numbers(network, "dover").items()}
        network.load_state_dict(drawn, strict=True)
        return network.eval()

    return make


@pytest.fixture(scope="module")
def published(fill):
    return fill(dover.build)


@pytest.fixture(scope="module")
def small(fill):
    return fill(dover.build, **SIZES)


@pytest.fixture(scope="module")
def shown(golden):
    """Frames (T, H, W, 3) uint8 as the network is shown them, (3, T, H, W)."""
    mean, std = (np.array(golden["normalisation"][name], np.float32) for name in ("mean", "std"))

    def make(frames):
        return torch.from_numpy(((frames - mean) / std).transpose(3, 0, 1, 2).copy())

    return make


def test_names_and_shapes_are_the_published_ones(goldens_control, unset):
    given_list = json.loads((goldens_control / "dover_manifest.json").read_text())["state_dict"]
    network = unset(dover.build)
    found = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
    assert len(found) == 197
    assert found == given_list == weights.manifest("dover")
    assert list(found) == list(given_list)
    catalogue = {name: one for name, one in weights.checkpoint("dover").network.items() if name != "kind"}
    other = unset(dover.build, **catalogue)
    assert {name: list(tensor.shape) for name, tensor in other.state_dict().items()} == given_list


@pytest.mark.usefixtures("no_gradients")
@pytest.mark.parametrize("case", ["tiny_16x64x64", "odd_10x72x56", "one_window_16x28x28"])
def test_golden(golden, expected, published, shown, formula_clip, case):
    said = next(one for one in golden["network"] if one["id"] == case)
    clip = shown(formula_clip(**said["clip"]))
    x = published.technical_backbone.patch_embed(clip)
    maps = [x.clone()]
    for stage in published.technical_backbone.layers:
        x = stage(x)
        maps.append(x.clone())
    assert [one["stage"] for one in said["stages"]] == STAGES
    for found, one in zip(maps, said["stages"], strict=True):
        first = found.permute(3, 0, 1, 2)
        assert [1, *first.shape] == one["shape"]
        assert float(first.mean()) == pytest.approx(one["mean"], abs=1e-5)
        assert float(first.std(correction=0)) == pytest.approx(one["std"], abs=1e-3)
        assert first.flatten()[:5].tolist() == pytest.approx(one["first5"], abs=1e-4)
    tokens = published.tokens(clip)
    assert np.abs(tokens.permute(3, 0, 1, 2).numpy() - expected[f"{case}_features"]).max() < 1e-4
    rated = published.quality_map(tokens)
    assert np.abs(rated.numpy() - expected[f"{case}_head"][0]).max() < 1e-4
    assert float(published.rate(clip[None])[0]) == pytest.approx(said["head_mean"], abs=1e-4)


def _views(golden, shown, formula_clip):
    (case,) = golden["whole_branch"]
    clip = formula_clip(**case["clip"])
    grid = Grid(7, 32, 3, 0, "original")
    frames = segment_frames(len(clip), segments=3, frames=32, step=2, seed=0)
    seen = np.stack([cut_fragments(clip[number], slot, grid=grid, frames=32) for slot, number in enumerate(frames)])
    return case, torch.stack([shown(part) for part in np.split(seen, 3)])


@pytest.mark.usefixtures("no_gradients")
def test_golden_of_a_whole_view(golden, published, shown, formula_clip):
    case, views = _views(golden, shown, formula_clip)
    assert float(published.rate(views[1:2])[0]) == pytest.approx(case["raw_mean_per_view"][1], rel=1e-4)


@pytest.mark.soak
@pytest.mark.usefixtures("no_gradients")
def test_golden_of_the_whole_branch(golden, published, shown, formula_clip):
    case, views = _views(golden, shown, formula_clip)
    assert published.rate(views).tolist() == pytest.approx(case["raw_mean_per_view"], rel=1e-4)


# --- attention by plain means ----------------------------------------------------------------------------------------


def plain_block(block, x, gated):
    """A block for a map (D, H, W, C), with every token against every other of the filled map."""
    sides = x.shape[:3]
    window, shift = clipped(block.window, block.shift, tuple(sides))
    filled = [-(-side // w) * w for side, w in zip(sides, window, strict=True)]
    seen = torch.zeros(*filled, x.shape[-1])
    seen[: sides[0], : sides[1], : sides[2]] = block.norm1(x)
    place = torch.tensor(list(np.ndindex(*filled)))
    rolled = torch.stack([(place[:, i] - shift[i]) % filled[i] for i in range(3)], 1)
    cell, inside = rolled // torch.tensor(window), rolled % torch.tensor(window)
    region = torch.stack([_region(rolled[:, i], filled[i], window[i], shift[i]) for i in range(3)], 1)
    fragment = torch.stack([place[:, i] * window[i] // filled[i] for i in (1, 2)], 1)
    number = (inside[:, 0] * window[1] + inside[:, 1]) * window[2] + inside[:, 2]
    full = torch.tensor(list(np.ndindex(*block.window)))[number]
    step = full[:, None] - full[None] + torch.tensor(block.window) - 1
    row = (step[..., 0] * (2 * block.window[1] - 1) + step[..., 1]) * (2 * block.window[2] - 1) + step[..., 2]
    bias = block.attn.relative_position_bias_table[row]
    if gated:
        distance = (fragment[:, None] - fragment[None]).abs().sum(-1, keepdim=True)
        bias = bias * distance + block.attn.fragment_position_bias_table[row] * (1 - distance)
    bias = bias - 100.0 * (region[:, None] != region[None]).any(-1)[..., None]
    apart = (cell[:, None] != cell[None]).any(-1)
    q, k, v = block.attn.qkv(seen.view(len(place), -1)).view(len(place), 3, block.attn.heads, -1).permute(1, 2, 0, 3)
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]) + bias.permute(2, 0, 1)
    mixed = scores.masked_fill(apart, -math.inf).softmax(-1) @ v
    mixed = block.attn.proj(mixed.transpose(0, 1).reshape(len(place), -1)).view(*filled, -1)
    x = x + mixed[: sides[0], : sides[1], : sides[2]]
    return x + block.mlp.fc2(functional.gelu(block.mlp.fc1(block.norm2(x))))


def _region(rolled, side, window, shift):
    return (rolled >= side - window).int() + (rolled >= side - shift).int() if shift else torch.zeros(len(rolled))


@pytest.fixture(scope="module")
def backbones(fill):
    """One stage of two blocks, the second one shifted, with and without fragments."""
    return {
        gated: fill(VideoSwin, 8, [2], [2], (4, 3, 3), (1, 1, 1), gated=int(gated), ratio=2) for gated in (True, False)
    }


@given(st.integers(1, 9), st.integers(1, 8), st.integers(1, 8), st.booleans(), st.integers(0, 99))
@example(8, 6, 6, True, 0)  # whole windows, shifted along all sides
@example(9, 7, 4, True, 1)  # filled up along all sides
@example(3, 7, 2, True, 2)  # shifted along one side, smaller than a window along the others
@settings(max_examples=25)
def test_windows_shifts_and_fragments_by_plain_means(backbones, depth, height, width, gated, seed):
    network = backbones[gated]
    clip = torch.randn(3, depth, height, width, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        x = network.patch_embed(clip)
        for block in network.layers[0].blocks:
            x = plain_block(block, x, gated)
        assert torch.allclose(network(clip), network.norm(x), atol=2e-5)


def test_the_index_of_the_tables_by_hand():
    index = relative_index((2, 1, 2))
    assert index[0].tolist() == [4, 3, 1, 0]  # (0, 0, 0) against all: steps of 3 in time, of 1 along a row
    assert index[3].tolist() == [8, 7, 5, 4]
    assert relative_index((8, 7, 7)).max() == 2534


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_gradients")
def test_clips_are_rated_one_by_one_and_left_as_they_are(small):
    clips = torch.randn(2, 3, 16, 112, 144, generator=torch.Generator().manual_seed(3))
    before = clips.clone()
    together = small.rate(clips)
    assert together.shape == (2,)
    assert together.dtype == torch.float32
    assert torch.equal(together, torch.cat([small.rate(clips[1:]), small.rate(clips[:1])]).flip(0))
    assert torch.equal(clips, before)
    assert float(together[0]) != float(together[1])


@pytest.mark.usefixtures("no_gradients")
def test_the_index_in_the_file_is_not_read(small, fill):
    other = fill(dover.build, **SIZES)
    for name, buffer in other.named_buffers():
        assert name.endswith("relative_position_index")
        buffer.fill_(7)
    clip = torch.randn(1, 3, 8, 128, 128, generator=torch.Generator().manual_seed(4))
    assert torch.equal(small.rate(clip), other.rate(clip))


@pytest.mark.usefixtures("no_gradients")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near(small, dtype):
    clips = torch.randn(1, 3, 16, 144, 144, generator=torch.Generator().manual_seed(5))
    exact = small.rate(clips)
    with torch.autocast("cpu", dtype=dtype):
        rough = small.rate(clips)
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    assert torch.allclose(rough, exact, atol=0.02)


@pytest.mark.parametrize("shape", [(3, 8, 64, 64), (1, 1, 8, 64, 64), (1, 3, 9, 64, 64), (1, 3, 8, 64, 60)])
def test_clips_of_another_form_are_refused(small, shape):
    with pytest.raises(ValueError, match=r"multiples of \(4, 16, 16\), not"):
        small.rate(torch.zeros(shape))
