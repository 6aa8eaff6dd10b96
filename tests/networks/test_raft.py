"""RAFT: goldens, torchvision's own run of the same layers, both lists of names."""

import json

import numpy as np
import pytest
import torch
from torchvision.models import optical_flow

from gen_eval.networks.motion import padded
from gen_eval.networks.raft import build
from gen_eval.weights import manifest

pytestmark = pytest.mark.usefixtures("no_gradients")


@pytest.fixture(scope="module")
def network(raft_state):
    with torch.device("meta"):
        made = build()
    made.load_state_dict(made.translate(raft_state), strict=True, assign=True)
    return made.eval()


@pytest.fixture(scope="module")
def torchvisions(network):
    other = optical_flow.raft_large(weights=None).eval()
    other.load_state_dict(network.state_dict(), strict=True)
    return other


@pytest.fixture(scope="module")
def golden_flows(quality_goldens):
    expected = json.loads((quality_goldens / "flicker_motion.json").read_text())["flow"]
    with np.load(quality_goldens / "flicker_motion.npz") as arrays:
        return {one["key"]: (one, arrays[one["key"]]) for one in expected}


def flow_between(network, frames, updates=20):
    features = network.features(frames)
    return network.flow(frames[:1], features[:1], features[1:], updates)


@pytest.mark.parametrize("key", ["clip_a_0_1", "clip_b_3_4"])
def test_golden(network, golden_flows, golden_clip, key):
    case, expected = golden_flows[key]
    frames, _ = golden_clip(case["clip"])
    chosen = padded(torch.from_numpy(frames[case["frames"]]).permute(0, 3, 1, 2).float(), 8)
    assert list(chosen.shape[2:]) == case["padded_hw"]
    np.testing.assert_allclose(flow_between(network, chosen)[0], expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("updates", [1, 4])
def test_torchvision_runs_these_layers_to_the_same_flow(network, torchvisions, updates):
    frames = 255 * torch.rand(2, 3, 136, 128, generator=torch.Generator().manual_seed(0))
    expected = torchvisions(*(2 * frames / 255 - 1).split(1), num_flow_updates=updates)[-1]
    torch.testing.assert_close(flow_between(network, frames, updates), expected, rtol=0, atol=1e-4)


def test_several_frames_at_once_are_what_they_are_alone(network):
    frames = 255 * torch.rand(3, 3, 128, 136, generator=torch.Generator().manual_seed(1))
    features = network.features(frames)
    together = network.flow(frames[:-1], features[:-1], features[1:], 2)
    for index in (0, 1):
        alone = flow_between(network, frames[index : index + 2], 2)
        torch.testing.assert_close(together[index : index + 1], alone, rtol=0, atol=1e-4)


def test_both_lists_of_names_are_taken(raft_state):
    with torch.device("meta"):
        network = build()
    own = network.state_dict()
    assert {name: list(tensor.shape) for name, tensor in raft_state.items()} == manifest("raft_things")
    translated = network.translate(raft_state)
    assert {name: tensor.shape for name, tensor in translated.items()} == {k: v.shape for k, v in own.items()}
    assert list(network.translate(own)) == list(own)
    dropped = {name for name in raft_state if ".0.norm3." in name}
    assert len(translated) == len(raft_state) - len(dropped)
    assert dropped


def test_the_second_name_of_a_shortcuts_normalisation_counts(raft_state):
    with torch.device("meta"):
        network = build()
    state = {**raft_state, "cnet.layer2.0.norm3.weight": torch.full((96,), 9.0)}
    kept = network.translate(state)["context_encoder.layer2.0.downsample.1.weight"]
    assert torch.equal(kept, raft_state["cnet.layer2.0.downsample.1.weight"])


@pytest.mark.parametrize(
    "name",
    [
        "fnet.conv3.weight",
        "cnet.layer1.0.conv9.bias",
        "update_block.encoder.convc9.weight",
        "update_block.gru.convz3.bias",
    ],
)
def test_names_of_other_networks_stay_and_are_told_as_unexpected(name):
    with torch.device("meta"):
        network = build()
    assert list(network.translate({name: torch.zeros(1)})) == [name]


def test_another_number_format_is_for_the_layers_only(network, raft_state):
    with torch.device("meta"):
        other = build()
    other.load_state_dict(other.translate(raft_state), assign=True)
    other = other.eval().double()
    frames = 255 * torch.rand(2, 3, 128, 128, generator=torch.Generator().manual_seed(2))
    made = flow_between(other, frames, 2)
    assert made.dtype == torch.float32
    torch.testing.assert_close(made, flow_between(network, frames, 2), rtol=0, atol=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_come_out_as_such(seeded, bad):
    network = seeded(build(), "raft")
    network.get_parameter("feature_encoder.conv.bias").data.fill_(bad)
    frames = 255 * torch.rand(2, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    own, other = network.features(frames).split(1)
    assert not network.flow(frames[:1], own, other, 2).isfinite().all()
