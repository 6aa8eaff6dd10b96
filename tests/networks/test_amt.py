"""AMT-S: goldens with every stage, names, batches, memory used again, number formats."""

import json

import numpy as np
import pytest
import torch

from bench import plain_amt as literal
from gen_eval.networks.amt import build, positions, sampled
from gen_eval.networks.correlation import Scratch
from gen_eval.networks.motion import padded, unpadded

pytestmark = pytest.mark.usefixtures("no_gradients")
PAIRS = ["clip_a_0_2", "clip_b_2_4"]


@pytest.fixture(scope="module")
def network(seeded):
    return seeded(build(), "amt_s")


@pytest.fixture(scope="module")
def goldens(quality_goldens):
    with np.load(quality_goldens / "amt.npz") as arrays:
        outputs = dict(arrays)
    expected = json.loads((quality_goldens / "amt.json").read_text())["pairs"]
    assert sorted(outputs) == sorted(expected) == PAIRS
    return outputs, expected


@pytest.fixture(scope="module")
def ends(golden_clip, goldens):
    """`ends(name)`: both frames of a golden pair, padded (1, 3, H, W)."""

    def of(name):
        frames, _ = golden_clip(name[:6])
        chosen = torch.from_numpy(frames[goldens[1][name]["frames"]]).permute(0, 3, 1, 2)
        return padded(chosen.float() / 255, 16).split(1)

    return of


def pictures(height, width, count=2, seed=0):
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(seed))


def test_names_and_shapes_are_those_of_the_published_checkpoint():
    from gen_eval.weights import manifest

    with torch.device("meta"):
        network = build()
    assert {name: list(tensor.shape) for name, tensor in network.state_dict().items()} == manifest("amt_s")
    assert not list(network.buffers())


@pytest.mark.parametrize("name", PAIRS)
def test_golden(network, goldens, ends, name):
    outputs, expected = goldens
    first, last = ends(name)
    assert list(first.shape[2:]) == expected[name]["padded_hw"]
    made = network.interpolate(first, last)
    assert made.shape == first.shape
    away = (unpadded(made[0], *outputs[name].shape[1:]) - torch.from_numpy(outputs[name])).abs()
    assert away.max() < 1e-3
    assert away.mean() < 1e-5


def outputs_of(network, names, first, last):
    """Outputs of parts of the network, in one run."""
    found = {}
    hooks = [
        network.get_submodule(name).register_forward_hook(lambda _, __, output, name=name: found.update({name: output}))
        for name in names
    ]
    network.interpolate(first, last)
    for hook in hooks:
        hook.remove()
    return found


def assert_like(tensor, stage, what):
    """A stage of one image (C, H, W) has the recorded shape, mean, deviation and first values."""
    assert [1, *tensor.shape] == stage["shape"], what
    scale = 1e-3 * stage["std"]
    assert float(tensor.mean()) == pytest.approx(stage["mean"], abs=scale), what
    assert float(tensor.std(correction=0)) == pytest.approx(stage["std"], abs=scale), what
    np.testing.assert_allclose(tensor.flatten()[:6], stage["first"], rtol=0, atol=scale, err_msg=what)


@pytest.mark.parametrize("name", PAIRS)
def test_golden_stages(network, goldens, ends, name):
    stages = goldens[1][name]["stages"]
    updates = ["update4", "update3", "update2"]
    decoders = ["decoder4", "decoder3", "decoder2", "decoder1"]
    found = outputs_of(network, ["feat_encoder", "encoder", *updates, *decoders, "comb_block"], *ends(name))
    for image in (0, 1):
        assert_like(found["feat_encoder"][image], stages["feat_encoder"][0][image], "feat_encoder")
        for scale, feature in enumerate(found["encoder"]):
            assert_like(feature[image], stages["encoder"][image][scale], f"encoder {scale}")
    for update in updates:
        for part in (0, 1):
            assert_like(found[update][part][0], stages[update][0][part], f"{update} {part}")
    flows_and_features = found["decoder4"][0]
    for part, channels in enumerate((slice(0, 2), slice(2, 4), slice(4, None))):
        assert_like(flows_and_features[channels], stages["decoder4"][0][part], f"decoder4 {part}")
    for decoder in ("decoder3", "decoder2"):  # their flows are recorded after the coarser ones have been added
        assert_like(found[decoder][0, 4:], stages[decoder][0][2], decoder)
    assert_like(found["decoder1"][0, 12:15].sigmoid(), stages["decoder1"][0][2], "masks")
    assert_like(found["decoder1"][0, 15:], stages["decoder1"][0][3], "residuals")
    assert_like(found["comb_block"][0], stages["comb_block"][0][0], "comb_block")


@pytest.mark.parametrize(("height", "width"), [(128, 144), (176, 128)])
def test_the_description_read_to_the_letter_gives_the_same(network, height, width):
    ends = pictures(height, width, seed=3).split(1)
    expected = literal.interpolate(network, *ends)
    torch.testing.assert_close(network.interpolate(*ends), expected, rtol=0, atol=1e-3)
    assert (network.interpolate(*ends) - expected).abs().mean() < 1e-5


def test_a_batch_is_what_its_pairs_are_alone(network):
    first, last = pictures(128, 144, 4).chunk(2)
    together = network.interpolate(first, last)
    alone = [network.interpolate(*pair) for pair in zip(first.split(1), last.split(1), strict=True)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-4)


def test_memory_that_is_used_again_changes_nothing(network):
    scratch = Scratch()
    sizes = [(128, 144), (128, 144), (144, 128), (128, 144)]
    for seed, (height, width) in enumerate(sizes):
        first, last = pictures(height, width, seed=seed).split(1)
        kept = network.interpolate(first, last, scratch)
        before = kept.clone()
        assert torch.equal(kept, network.interpolate(first, last))
        network.interpolate(last, first, scratch)
        assert torch.equal(kept, before)


def test_values_stay_pictures(network, seeded):
    wild = seeded(build(), "amt_s")
    with torch.no_grad():
        wild.comb_block[2].bias.add_(torch.tensor([3.0, -3.0, 0.0]))
    made = wild.interpolate(*pictures(128, 128).split(1))
    assert made[0, 0].eq(1).all()
    assert made[0, 1].eq(0).all()
    assert 0 <= made.min() <= made.max() <= 1


def test_another_number_format_is_for_the_layers_only(network, seeded):
    other = seeded(build(), "amt_s").double()
    ends = pictures(128, 128).split(1)
    made = other.interpolate(*ends)
    assert made.dtype == torch.float32
    torch.testing.assert_close(made, network.interpolate(*ends), rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_features_of_half_precision_are_read_at_exact_positions(kind):
    """Half precision knows a wide map's columns to whole pixels only."""
    ramp = torch.arange(600.0).div(600).expand(1, 1, 4, 600)
    flows = torch.full((1, 2, 4, 600), 0.25)
    read = sampled(ramp.to(kind), positions(flows))
    assert read.dtype == kind
    torch.testing.assert_close(read.float(), sampled(ramp, positions(flows)), rtol=0, atol=2.0**-8)
    flows[:, 0] = torch.linspace(-9999, 9999, 600)
    assert sampled(ramp.to(kind), positions(flows)).isfinite().all()


def test_reading_by_hand():
    """One pixel to the right, half a pixel down; border pixels go on."""
    image = torch.tensor([[[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]]])
    flows = torch.tensor([1.0, 0.5]).view(1, 2, 1, 1).expand(1, 2, 2, 3)
    expected = torch.tensor([[[[6.0, 7.0, 7.0], [11.0, 12.0, 12.0]]]])
    torch.testing.assert_close(sampled(image, positions(flows)), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["feat_encoder.layer1.0.conv3.bias", "comb_block.2.bias"])
def test_numbers_that_are_not_finite_come_out_as_such(seeded, name, bad):
    network = seeded(build(), "amt_s")
    network.get_parameter(name).data.fill_(bad)
    drawn = network.interpolate(*pictures(128, 128).split(1))
    assert drawn.isnan().any()
    assert not drawn.isinf().any()
