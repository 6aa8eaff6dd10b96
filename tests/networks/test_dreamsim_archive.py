"""The DreamSim ensemble from an archive packed as the published one: towers in DINO's naming, adapter apart."""

import io
import json
import zipfile

import numpy as np
import pytest
import torch

from gen_eval.networks.dreamsim import build
from gen_eval.networks.views import make
from gen_eval.weights import check_names
from gen_eval.weights.dreamsim_archive import TOWERS, read_archive

pytestmark = pytest.mark.usefixtures("no_gradients")
SMALL = {"width": 96, "depth": 12, "heads": 4, "output": 48}
RANK, ALPHA = 16, 8


def pickled(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def tower(network, place):
    """One tower of the network under the names of its own file."""
    inner, projection = f"extractor_list.{place}.model.", f"extractor_list.{place}.proj"
    state = network.state_dict()
    found = {name.removeprefix(inner): tensor for name, tensor in state.items() if name.startswith(inner)}
    return found | ({"proj": state[projection]} if projection in state else {})


@pytest.fixture
def archive(tmp_path, seeded, seeded_array):
    """The archive's path, and the tensors of the DINO tower that lie elsewhere."""
    network = seeded(build(**SMALL), "dreamsim")
    adapter = {}
    for name, weight in network.state_dict().items():
        if name.endswith("attn.qkv.weight"):
            module = f"base_model.model.{name.removesuffix('.weight')}"
            for side, shape in (("A", (RANK, weight.shape[1])), ("B", (weight.shape[0], RANK))):
                values = seeded_array(f"{module}.lora_{side}.default.weight", shape)
                adapter[f"{module}.lora_{side}.weight"] = torch.from_numpy(values)
    path = tmp_path / "dreamsim_ensemble_checkpoint.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("dino_vitb16_pretrain.pth", pickled({"student": {"module.head.mlp.0.bias": torch.ones(3)}}))
        for place, name in TOWERS.items():
            file.writestr(name, pickled({"state_dict": tower(network, place), "epoch": 31}))
        file.writestr("ensemble_lora/adapter_config.json", json.dumps({"r": RANK, "lora_alpha": ALPHA}))
        file.writestr("ensemble_lora/adapter_model.bin", pickled(adapter))
    return path, tower(network, 0)


def test_golden_with_adapter_from_the_archive(archive, golden_clip, quality_goldens, view_rules):
    state = read_archive(*archive)
    network = build(**SMALL)
    check_names("dreamsim", state, {name: tensor.shape for name, tensor in network.state_dict().items()})
    network.load_state_dict(state, strict=True)
    frames, condition = golden_clip("clip_a")
    rule = view_rules["i2v_background"]
    with np.load(quality_goldens / "dreamsim_adapter.npz") as expected:
        found = network.eval().embed(make(condition, **rule, backend="pillow"))
        np.testing.assert_allclose(found, expected["condition"], rtol=0, atol=5e-5)
        found = network.embed(make(frames[:2], **rule))
        np.testing.assert_allclose(found, expected["frames0_1"], rtol=0, atol=5e-5)
