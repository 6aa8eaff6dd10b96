"""CLIP's image towers and the aesthetic head: goldens small and full, names, the shortcut in the last block."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from gen_eval.networks import clip, linear
from gen_eval.networks.attention import QuickGELU
from gen_eval.networks.views import make

pytestmark = pytest.mark.usefixtures("no_gradients")
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
SMALL = {
    "clip_b32": {"patch": 32, "width": 128, "layers": 3, "heads": 2, "output": 64},
    "clip_l14": {"patch": 14, "width": 96, "layers": 3, "heads": 3, "output": 768},
}
FULL = {
    "clip_vitb32_visual": {"patch": 32, "width": 768, "layers": 12, "heads": 12, "output": 512},
    "clip_vitl14_visual": {"patch": 14, "width": 1024, "layers": 24, "heads": 16, "output": 768},
}


@pytest.fixture(scope="module")
def small(seeded):
    return {name: seeded(clip.build(**sizes), "clip_visual") for name, sizes in SMALL.items()}


@pytest.fixture(scope="module")
def head(seeded):
    return seeded(linear.build(inputs=768, outputs=1), "aesthetic_head")


@pytest.mark.parametrize("name", CLIPS)
def test_golden(small, head, golden_clip, golden_features, view_rules, name):
    seen = make(golden_clip(name)[0], **view_rules["clip"])
    for key, network in small.items():
        found = network.embed(seen)
        np.testing.assert_allclose(found, golden_features[f"{name}/{key}"], rtol=0, atol=5e-5, err_msg=key)
    rated = head.embed(functional.normalize(found))[:, 0]
    np.testing.assert_allclose(rated, golden_features[f"{name}/aesthetic_0_10"], rtol=0, atol=5e-5)


def test_golden_full_size_b32(seeded, unset, golden_clip, full_size, view_rules):
    network = seeded(unset(clip.build, **FULL["clip_vitb32_visual"]), "clip_visual")
    seen = make(golden_clip("clip_a")[0][:2], **view_rules["clip"])
    np.testing.assert_allclose(network.embed(seen), full_size["clip_b32/frame0_to_1"], rtol=0, atol=5e-5)


def test_golden_full_size_l14(seeded, unset, head, golden_clip, full_size, view_rules):
    network = seeded(unset(clip.build, **FULL["clip_vitl14_visual"]), "clip_visual")
    found = network.embed(make(golden_clip("clip_a")[0][:1], **view_rules["clip"]))
    np.testing.assert_allclose(found, full_size["clip_l14/frame0"], rtol=0, atol=5e-5)
    rated = head.embed(functional.normalize(found))[:, 0]
    np.testing.assert_allclose(rated, full_size["clip_l14/aesthetic_0_10"], rtol=0, atol=5e-5)


@pytest.mark.parametrize("name", [*FULL, "aesthetic_head"])
def test_names_and_shapes_are_those_of_the_published_checkpoint(name):
    from gen_eval.weights import manifest

    with torch.device("meta"):
        network = clip.build(**FULL[name]) if name in FULL else linear.build(768, 1)
    assert {key: list(tensor.shape) for key, tensor in network.state_dict().items()} == manifest(name)
    assert not list(network.buffers())


@pytest.mark.parametrize("name", SMALL)
def test_it_is_open_clips_own_tower(small, name):
    batch = torch.randn(3, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    found = small[name].embed(batch)
    torch.testing.assert_close(found, small[name].visual(batch), rtol=0, atol=5e-6)
    torch.testing.assert_close(found[1:2], small[name].embed(batch[1:2]), rtol=0, atol=5e-6)


@pytest.mark.parametrize("shape", [(1, 3, 224, 225), (1, 3, 196, 224), (1, 1, 224, 224)])
def test_pictures_of_another_size_are_refused(small, shape):
    with pytest.raises(ValueError, match=r"\(n, 3, 224, 224\)"):
        small["clip_b32"].embed(torch.zeros(shape))


def test_quick_gelu_by_its_definition():
    x = torch.linspace(-30, 30, 601, dtype=torch.float64)
    torch.testing.assert_close(QuickGELU()(x.clone()), x * torch.sigmoid(1.702 * x), rtol=1e-12, atol=1e-12)


def test_the_head_is_a_weighted_sum_in_float32():
    network = linear.build(2, 1)
    network.load_state_dict({"weight": torch.tensor([[3.0, -1.0]]), "bias": torch.tensor([0.5])})
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = network.embed(torch.tensor([[1.001, 2.0], [0.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[1.503], [0.5]]), rtol=0, atol=1e-6)


def test_half_precision_is_near(seeded):
    network = seeded(clip.build(**SMALL["clip_l14"]), "clip_visual")
    batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    exact = network.embed(batch)
    rough = network.to(torch.bfloat16).embed(batch.to(torch.bfloat16)).float()
    assert functional.cosine_similarity(exact, rough).min() > 0.995
