"""ViCLIP: goldens small and full, names, a literal reading of the network, frames and tokens."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from gen_eval.networks import viclip
from gen_eval.networks.views import make

pytestmark = pytest.mark.usefixtures("no_gradients")
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
SMALL = {
    "vision_width": 96,
    "vision_layers": 3,
    "vision_heads": 4,
    "text_width": 64,
    "text_layers": 2,
    "text_heads": 4,
    "output": 48,
}


@pytest.fixture(scope="module")
def small(seeded, unset):
    return seeded(unset(viclip.build, **SMALL), "viclip")


@pytest.fixture(scope="module")
def prompts(quality_goldens):
    return {
        name: values["prompt"]
        for name, values in json.loads((quality_goldens / "scores.json").read_text())["clips"].items()
    }


@pytest.fixture(scope="module")
def chosen(quality_goldens, golden_clip, view_rules):
    """`chosen(clip)`: what the network sees of its eight frames."""
    indices = json.loads((quality_goldens / "sampling.json").read_text())["indices_by_frame_count"]

    def see(name):
        frames = golden_clip(name)[0]
        return make(frames[indices[str(len(frames))]], **view_rules["clip"], rounding="uint8")[None]

    return see


def clips(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", CLIPS)
def test_golden(small, chosen, prompts, golden_features, name):
    video = small.embed_clip(chosen(name))
    np.testing.assert_allclose(video, golden_features[f"{name}/viclip_video"], rtol=0, atol=5e-5)
    text = small.embed_text(small.tokenize([prompts[name]])[0])
    np.testing.assert_allclose(text, golden_features[f"{name}/viclip_text"], rtol=0, atol=5e-5)


def test_golden_full_size(seeded, unset, chosen, prompts, full_size):
    network = seeded(unset(viclip.build), "viclip")
    text = network.embed_text(network.tokenize([prompts["clip_a"]])[0])
    np.testing.assert_allclose(text, full_size["viclip/text"], rtol=0, atol=5e-5)
    video = network.embed_clip(chosen("clip_a"))
    np.testing.assert_allclose(video, full_size["viclip/video"], rtol=0, atol=5e-5)


def test_names_and_shapes_are_those_of_the_published_checkpoint(quality_goldens):
    from gen_eval.weights import manifest

    small = json.loads((quality_goldens / "manifests" / "viclip_small.json").read_text())
    for sizes, expected in (({}, manifest("viclip")), (SMALL, small)):
        with torch.device("meta"):
            network = viclip.build(**sizes)
        assert {key: list(tensor.shape) for key, tensor in network.state_dict().items()} == expected
        assert not list(network.buffers())


def literal_block(block, tokens, mask=None):
    """A block for tokens (N, B, width), by torch's own attention with the same weights."""
    attn, width = block.attn, tokens.shape[-1]
    own = torch.nn.MultiheadAttention(width, attn.heads)
    own.load_state_dict(attn.state_dict())
    seen = block.ln_1(tokens)
    tokens = tokens + own(seen, seen, seen, attn_mask=mask, need_weights=False)[0]
    hidden = block.mlp.c_fc(block.ln_2(tokens))
    return tokens + block.mlp.c_proj(hidden * torch.sigmoid(1.702 * hidden))


def literal_video(network, batch):
    tower = network.vision_encoder
    x = functional.conv3d(batch.transpose(1, 2), tower.conv1.weight, stride=(1, 14, 14))
    count, width, length = x.shape[:3]
    x = x.permute(0, 2, 3, 4, 1).reshape(count * length, 256, width)
    x = torch.cat([tower.class_embedding.expand(len(x), 1, -1), x], dim=1) + tower.positional_embedding
    first = x[::length, :1]  # of the first frame of each clip
    x = x[:, 1:].view(count, length, 256, width)
    times = tower.temporal_positional_embedding[0]
    x = x + (times if length > 1 else times.mean(0, keepdim=True))[:, None]
    x = torch.cat([first, x.transpose(1, 2).reshape(count, 256 * length, width)], dim=1)
    x = tower.ln_pre(x).transpose(0, 1)
    for block in tower.transformer.resblocks:
        x = literal_block(block, x)
    return tower.ln_post(x[0]) @ tower.proj


def literal_text(network, tokens):
    tower = network.text_encoder
    x = (tower.token_embedding(tokens) + tower.positional_embedding).transpose(0, 1)
    mask = torch.full((32, 32), -torch.inf).triu(1)
    for block in tower.transformer.resblocks:
        x = literal_block(block, x, mask)
    x = tower.ln_final(x).transpose(0, 1)
    return torch.stack([row[ids.tolist().index(49407)] for row, ids in zip(x, tokens, strict=True)]) @ (
        tower.text_projection
    )


@pytest.mark.parametrize("shape", [(2, 8), (1, 1)])
def test_video_tower_as_described(small, shape):
    batch = clips(*shape, 3, 224, 224)
    torch.testing.assert_close(small.embed_clip(batch), literal_video(small, batch), rtol=0, atol=1e-5)


def test_text_tower_as_described(small):
    texts = ["a cat", "", "one <|endoftext|> two", "word " * 50]
    tokens, cut = small.tokenize(texts)
    assert cut == [0, 0, 0, 20]
    torch.testing.assert_close(small.embed_text(tokens), literal_text(small, tokens), rtol=0, atol=1e-5)


def test_clips_of_a_batch_do_not_see_each_other_and_order_matters(small):
    batch = clips(2, 8, 3, 224, 224)
    together = small.embed_clip(batch)
    torch.testing.assert_close(together[1:], small.embed_clip(batch[1:]), rtol=0, atol=5e-6)
    assert float((together[:1] - small.embed_clip(batch[:1].flip(1))).abs().max()) > 1e-3


def test_what_stands_behind_the_end_token_is_not_read(small):
    tokens, _ = small.tokenize(["a red cube"])
    other = tokens.clone()
    other[0, 10:] = 320
    torch.testing.assert_close(small.embed_text(other), small.embed_text(tokens), rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(1, 7, 3, 224, 224), (1, 8, 3, 224, 210), (8, 3, 224, 224), (1, 8, 1, 224, 224)])
def test_clips_of_another_form_are_refused(small, shape):
    with pytest.raises(ValueError, match=r"\(B, 8, 3, 224, 224\)"):
        small.embed_clip(torch.zeros(shape))


def test_rows_of_another_length_are_refused(small):
    with pytest.raises(ValueError, match=r"\(n, 32\)"):
        small.embed_text(torch.zeros((1, 77), dtype=torch.long))
