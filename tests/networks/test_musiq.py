"""MUSIQ: goldens small and full, names, a literal reading of the network, sizes, batches."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from gen_eval.networks import musiq
from gen_eval.networks.views import make
from gen_eval.records import ItemError, Reason

pytestmark = pytest.mark.usefixtures("no_gradients")
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
SMALL = {"hidden": 96, "mlp": 128, "heads": 3, "layers": 3}
VIEW = {"resize": "longer_at_most", "side": 512, "filter": "bilinear", "antialias": False}


@pytest.fixture(scope="module")
def small(seeded, unset):
    return seeded(unset(musiq.build, **SMALL), "musiq")


def pictures(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", CLIPS)
def test_golden(small, golden_clip, golden_features, name):
    found = small.embed(make(golden_clip(name)[0], **VIEW))
    assert found.shape[1:] == (1,)
    np.testing.assert_allclose(found[:, 0], golden_features[f"{name}/musiq_0_100"], rtol=0, atol=5e-5)


def test_golden_odd_sizes(small, golden_clip, quality_goldens):
    expected = json.loads((quality_goldens / "musiq_sizes.json").read_text())["score_by_hxw"]
    assert len(expected) == 4
    frame = golden_clip("clip_b")[0][:1]
    for size, score in expected.items():
        height, width = map(int, size.split("x"))
        found = small.embed(make(frame[:, :height, :width], **VIEW))
        assert float(found) == pytest.approx(score, abs=5e-5), size


def test_golden_full_size(seeded, unset, golden_clip, full_size):
    network = seeded(unset(musiq.build), "musiq")
    for clip, key in {"clip_a": "musiq/frame0_score", "clip_wide": "musiq/clip_wide_frame0_score"}.items():
        found = network.embed(make(golden_clip(clip)[0][:1], **VIEW))
        np.testing.assert_allclose(found[:, 0], full_size[key], rtol=0, atol=5e-4, err_msg=clip)


def test_names_and_shapes_are_those_of_the_published_checkpoint(quality_goldens):
    from gen_eval.weights import manifest

    small = json.loads((quality_goldens / "manifests" / "musiq_small.json").read_text())
    for sizes, expected in (({}, manifest("musiq_spaq")), (SMALL, small)):
        with torch.device("meta"):
            network = musiq.build(**sizes)
        assert {key: list(tensor.shape) for key, tensor in network.state_dict().items()} == expected
        assert not list(network.buffers())


def literal(network, picture):
    """The network as it is described: fixed lengths, rows of zeros as padding, a mask of -1000 before the softmax."""
    normal = 2 * (picture - 0.5)
    patches, places, scales, mask = [], [], [], []
    for scale, (side, length) in enumerate([(224, 49), (384, 144), (None, None)]):
        seen = normal
        if side is not None:
            ratio = side / max(normal.shape[2:])
            size = [round(n * ratio) for n in normal.shape[2:]]
            seen = functional.interpolate(normal, size, mode="bicubic", align_corners=False)
        down, right = (-n % 32 for n in seen.shape[2:])
        seen = functional.pad(seen, (right // 2, right - right // 2, down // 2, down - down // 2))
        rows, columns = seen.shape[2] // 32, seen.shape[3] // 32
        flat = functional.unfold(seen, 32, stride=32)[0].T  # a row is a patch, colour by colour
        ten = torch.arange(10.0)[None, None]
        of_row, of_column = (functional.interpolate(ten, n, mode="nearest")[0, 0].long() for n in (rows, columns))
        absent = 0 if length is None else length - len(flat)
        patches.append(functional.pad(flat, (0, 0, 0, absent)))
        places.append(functional.pad((10 * of_row[:, None] + of_column).flatten(), (0, absent)))
        scales.append(functional.pad(torch.full((len(flat),), scale), (0, absent)))
        mask.append(functional.pad(torch.ones(len(flat)), (0, absent)))
    encoder = network.transformer_encoder
    tokens = network._stem_piece(torch.cat(patches).view(-1, 3, 32, 32))
    tokens = tokens + encoder.posembed_input.position_emb[0][torch.cat(places)]
    tokens = tokens + encoder.scaleembed_input.scale_emb[torch.cat(scales)]
    tokens = torch.cat([encoder.cls[0], tokens])
    present = torch.cat([torch.ones(1), *mask])
    for block in encoder.transformer.values():
        tokens = tokens + attended(block.attention, block.norm1(tokens), present)
        hidden = functional.gelu(block.mlp.fc1(block.norm2(tokens)))
        tokens = tokens + block.mlp.fc2(hidden)
    return network.head(encoder.encoder_norm(tokens[:1]))


def attended(attention, tokens, present):
    q, k, v = (
        layer(tokens).view(len(tokens), attention.heads, -1).transpose(0, 1)
        for layer in (attention.query, attention.key, attention.value)
    )
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(present[:, None] * present[None, :] == 0, -1e3)
    return attention.out((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))


@pytest.mark.parametrize("size", [(31, 33), (70, 250), (250, 70), (1, 1), (3, 200), (224, 384), (40, 40)])
def test_it_is_the_network_as_described(small, size):
    picture = pictures(1, 3, *size)
    torch.testing.assert_close(small.embed(picture), literal(small, picture), rtol=0, atol=5e-6)


def test_frames_of_a_batch_do_not_see_each_other(small, monkeypatch):
    batch = pictures(3, 3, 60, 90)
    together = small.embed(batch)
    apart = torch.cat([small.embed(picture[None]) for picture in batch])
    torch.testing.assert_close(together, apart, rtol=0, atol=2e-6)
    assert len(set(together.flatten().tolist())) == 3
    monkeypatch.setattr(musiq, "_PIECE", 7)
    torch.testing.assert_close(small.embed(batch), together, rtol=0, atol=2e-6)


def test_one_colour_has_a_value(small):
    for level in (0.0, 0.5, 1.0):
        assert math.isfinite(float(small.embed(torch.full((1, 3, 50, 70), level))))


def test_pictures_that_have_no_small_scale_are_refused(small):
    assert math.isfinite(float(small.embed(pictures(1, 3, 1, 447))))
    for size in [(1, 448), (448, 1), (2, 1000)]:
        with pytest.raises(ItemError, match=f"{size[1]}x{size[0]}") as caught:
            small.embed(pictures(1, 3, *size))
        assert caught.value.reason is Reason.TOO_SMALL


def test_half_precision_moves_the_value_a_little(small):
    picture = pictures(2, 3, 90, 60)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = small.embed(picture)
    assert rough.dtype == torch.float32
    assert 0 < float((rough - small.embed(picture)).abs().max()) < 0.05
