"""The DreamSim ensemble: goldens small, with adapter and full, names, normalisation of the embedding."""

import numpy as np
import pytest
import torch

from gen_eval.networks.dreamsim import build
from gen_eval.networks.views import make

pytestmark = pytest.mark.usefixtures("no_gradients")
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_d", "clip_wide"]
SMALL = {"width": 96, "depth": 12, "heads": 4, "output": 48}
RANK, ALPHA = 16, 8


@pytest.fixture(scope="module")
def small(seeded):
    return seeded(build(**SMALL), "dreamsim")


@pytest.mark.parametrize("name", CLIPS)
def test_golden(small, golden_clip, golden_features, view_rules, name):
    frames, condition = golden_clip(name)
    rule = view_rules["i2v_background"]
    found = small.embed(make(frames, **rule))
    np.testing.assert_allclose(found, golden_features[f"{name}/dreamsim"], rtol=0, atol=5e-5)
    found = small.embed(make(condition, **rule, backend="pillow"))
    np.testing.assert_allclose(found, golden_features[f"{name}/dreamsim_condition"], rtol=0, atol=5e-5)


def test_golden_with_adapter(seeded, seeded_array, golden_clip, quality_goldens, view_rules):
    network = seeded(build(**SMALL), "dreamsim")
    adapted = 0
    for name, weight in network.state_dict().items():
        if name.endswith("attn.qkv.weight"):
            module = f"base_model.model.{name.removesuffix('.weight')}"
            a = seeded_array(f"{module}.lora_A.default.weight", (RANK, weight.shape[1]))
            b = seeded_array(f"{module}.lora_B.default.weight", (weight.shape[0], RANK))
            weight += torch.from_numpy(ALPHA / RANK * b @ a)
            adapted += 1
    assert adapted == 36
    frames, condition = golden_clip("clip_a")
    rule = view_rules["i2v_background"]
    with np.load(quality_goldens / "dreamsim_adapter.npz") as expected:
        found = network.embed(make(condition, **rule, backend="pillow"))
        np.testing.assert_allclose(found, expected["condition"], rtol=0, atol=5e-5)
        found = network.embed(make(frames[:2], **rule))
        np.testing.assert_allclose(found, expected["frames0_1"], rtol=0, atol=5e-5)


def test_golden_full_size(seeded, unset, golden_clip, full_size, view_rules):
    network = seeded(unset(build), "dreamsim")
    frames, condition = golden_clip("clip_a")
    rule = view_rules["i2v_background"]
    seen = torch.cat([make(condition, **rule, backend="pillow"), make(frames[:1], **rule)])
    expected = np.concatenate([full_size["dreamsim/condition"], full_size["dreamsim/frame0"]])
    np.testing.assert_allclose(network.embed(seen), expected, rtol=0, atol=5e-5)


def test_names_and_shapes_are_those_of_the_merged_checkpoint():
    from gen_eval.weights import manifest

    with torch.device("meta"):
        network = build()
    assert {name: list(tensor.shape) for name, tensor in network.state_dict().items()} == manifest("dreamsim_ensemble")
    assert not list(network.buffers())


def test_embeddings_have_mean_zero_and_norm_one(small):
    batch = torch.rand(3, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    found = small.embed(batch)
    assert found.shape == (3, 192)
    torch.testing.assert_close(found.mean(1), torch.zeros(3), rtol=0, atol=1e-7)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3), rtol=0, atol=1e-6)
    torch.testing.assert_close(found[2:], small.embed(batch[2:]), rtol=0, atol=1e-6)


def test_pictures_of_another_size_are_refused(small):
    with pytest.raises(ValueError, match=r"\(n, 3, 224, 224\)"):
        small.embed(torch.zeros(1, 3, 224, 240))


def test_half_precision_is_near(seeded):
    network = seeded(build(**SMALL), "dreamsim")
    batch = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    exact = network.embed(batch)
    rough = network.to(torch.bfloat16).embed(batch.to(torch.bfloat16))
    assert rough.dtype == torch.float32
    assert (exact * rough).sum(1).min() > 0.99
