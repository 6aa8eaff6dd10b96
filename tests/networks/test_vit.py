"""DINO's vision transformer: goldens small and full, names, its rule for positions, the shortcut in the last block."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from gen_eval.networks.views import make
from gen_eval.networks.vit import build

pytestmark = pytest.mark.usefixtures("no_gradients")
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]


@pytest.fixture(scope="module")
def small(seeded):
    return seeded(build(width=96, depth=3, heads=4, patch=16), "dino")


@pytest.mark.parametrize("name", CLIPS)
def test_golden(small, golden_clip, golden_features, view_rules, name):
    frames, condition = golden_clip(name)
    rule = view_rules["i2v_subject"]
    for key, seen in {
        "dino_subject": make(frames, **view_rules["subject"]),
        "dino_i2v": make(frames, **rule),
        "dino_i2v_condition": make(condition, **rule, backend="pillow"),
    }.items():
        np.testing.assert_allclose(small.embed(seen), golden_features[f"{name}/{key}"], rtol=0, atol=5e-5, err_msg=key)


def test_golden_full_size(seeded, unset, golden_clip, full_size, view_rules):
    network = seeded(unset(build), "dino")
    frames, condition = golden_clip("clip_a")
    found = network.embed(make(frames[:1], **view_rules["subject"]))
    np.testing.assert_allclose(found, full_size["dino_vitb16/subject_frame0"], rtol=0, atol=5e-5)
    found = network.embed(make(condition, **view_rules["i2v_subject"], backend="pillow"))
    np.testing.assert_allclose(found, full_size["dino_vitb16/i2v_condition"], rtol=0, atol=5e-5)


def test_names_and_shapes_are_those_of_the_published_checkpoint():
    from gen_eval.weights import manifest

    with torch.device("meta"):
        network = build()
    assert {name: list(tensor.shape) for name, tensor in network.state_dict().items()} == manifest("dino_vitb16")
    assert not list(network.buffers())


def pictures(height, width, count=2):
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(height * width))


def test_on_the_learned_square_it_is_timms_own_network(small):
    batch = pictures(224, 224)
    torch.testing.assert_close(small.embed(batch), small(batch), rtol=0, atol=2e-6)


def test_all_blocks_in_full_give_the_same_token(small):
    batch = pictures(224, 304)
    tokens = small.patch_embed.proj(batch).flatten(2).transpose(1, 2)
    tokens = torch.cat([small.cls_token.expand(2, -1, -1), tokens], 1) + small.positions(224, 304)
    whole = small.norm(small.blocks(tokens))[:, 0]
    torch.testing.assert_close(small.embed(batch), whole, rtol=0, atol=2e-6)


@pytest.mark.parametrize(("height", "width"), [(224, 225), (224, 239), (239, 224), (230, 300)])
def test_pixels_that_fill_no_patch_are_not_seen(small, height, width):
    batch = pictures(height, width)
    changed = batch.clone()
    changed[:, :, height // 16 * 16 :] = 5
    changed[:, :, :, width // 16 * 16 :] = -5
    assert torch.equal(small.embed(batch), small.embed(changed))


def test_positions_are_kept_on_the_learned_square_only(small):
    assert torch.equal(small.positions(224, 224), small.pos_embed)
    assert torch.equal(small.positions(230, 230), small.pos_embed)  # 14 x 14 patches of a square
    assert not torch.equal(small.positions(224, 230), small.pos_embed)  # as many patches, no square


@pytest.mark.parametrize(("height", "width"), [(224, 230), (224, 398), (400, 224), (16, 16), (33, 700)])
def test_positions_are_resized_by_a_factor_with_a_tenth_of_a_patch(small, height, width):
    rows, columns = height // 16, width // 16
    found = small.positions(height, width)
    assert found.shape == (1, 1 + rows * columns, 96)
    assert torch.equal(found[:, 0], small.pos_embed[:, 0])
    grid = small.pos_embed[:, 1:].reshape(1, 14, 14, 96).permute(0, 3, 1, 2)
    for row, column in [(0, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)]:
        y = (row + 0.5) * 14 / (rows + 0.1) - 0.5
        x = (column + 0.5) * 14 / (columns + 0.1) - 0.5
        expected = cubic(grid[0].double().numpy(), y, x)
        np.testing.assert_allclose(found[0, 1 + row * columns + column], expected, rtol=0, atol=5e-4)


def cubic(grid, y, x, a=-0.75):
    """Bicubic interpolation of `grid` (C, H, W) at a position, borders repeated."""

    def weights(position):
        start = math.floor(position)
        distances = [abs(position - (start + step)) for step in range(-1, 3)]
        inner = [(a + 2) * d**3 - (a + 3) * d**2 + 1 for d in distances]
        outer = [a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a for d in distances]
        chosen = [one if d <= 1 else other for one, other, d in zip(inner, outer, distances, strict=True)]
        return np.clip(np.arange(start - 1, start + 3), 0, 13), np.array(chosen)

    rows, along_rows = weights(y)
    columns, along_columns = weights(x)
    return np.einsum("cij,i,j->c", grid[:, rows][:, :, columns], along_rows, along_columns)


def test_frames_are_embedded_alike_in_any_batch(small):
    batch = pictures(224, 256, 5)
    whole = small.embed(batch)
    torch.testing.assert_close(whole, torch.cat([small.embed(part) for part in batch.split(2)]), rtol=0, atol=2e-6)
    assert whole.shape == (5, 96)


def test_half_precision_is_near(seeded):
    network = seeded(build(width=96, depth=3, heads=4, patch=16), "dino")
    batch = pictures(224, 304)
    exact = network.embed(batch)
    rough = network.to(torch.bfloat16).embed(batch.to(torch.bfloat16)).float()
    assert functional.cosine_similarity(exact, rough).min() > 0.995
