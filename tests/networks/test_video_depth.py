"""Video-Depth-Anything: goldens of the full network by the way users load it, names, its spatial half, pieces."""

import json

import numpy as np
import pytest
import torch

from bench.stand_in import SMALL, write
from gen_eval.features import ClipFrames, StreamInfo
from gen_eval.networks import placed, placement_of, temporal, video_depth
from gen_eval.networks.depth import DEPTH_KEYS, depth_maps
from gen_eval.networks.loading import build, forget, loaded
from gen_eval.networks.temporal import Temporal
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError
from gen_eval.weights import checkpoint, manifest

pytestmark = pytest.mark.usefixtures("no_gradients")
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


@pytest.fixture(scope="module")
def golden(request):
    folder = request.config.rootpath / "tests" / "goldens" / "control"
    with np.load(folder / "vda.npz") as arrays:
        return json.loads((folder / "vda.json").read_text()), dict(arrays)


@pytest.fixture(scope="module")
def full_size_folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("vda"), ["vda_small"], small=False)


@pytest.fixture
def network(full_size_folder, use_environment):
    """The full network with stand-in numbers, read from its file once."""
    use_environment(full_size_folder)
    return loaded("vda_small")


@pytest.fixture(scope="module")
def small(seeded_array):
    """The small network with stand-in numbers."""
    module = build(SMALL["vda_small"])
    state = {name: torch.from_numpy(seeded_array(name, tuple(one.shape))) for name, one in module.state_dict().items()}
    module.load_state_dict(state, assign=True)
    yield module.eval()
    forget()


def formula(T, H, W, k):
    """The goldens' clip."""
    t, y, x, c = np.ogrid[:T, :H, :W, :3]
    values = x * (3 + c) + y * (5 - c) + 7 * t * (c + 1) + 13 * (((x // 16) ^ (y // 16)) & 7) + 17 * k
    return (values % 256).astype(np.uint8)


def seen(clip):
    return torch.from_numpy(((clip / np.float32(255) - MEAN) / DEVIATION).transpose(0, 3, 1, 2).astype(np.float32))


def noise(frames, height, width):
    return torch.randn((frames, 3, height, width), generator=torch.Generator().manual_seed(frames))


def test_golden_forward(network, golden):
    cases, maps = golden
    assert len(cases["forward"]) == 3
    for case in cases["forward"]:
        pictures = seen(formula(**case["clip"]))
        found = network.depth(pictures).numpy()
        np.testing.assert_allclose(found, maps[f"forward_{case['id']}"], rtol=0, atol=2e-3)
        assert found.mean() == pytest.approx(case["depth_mean"], abs=1e-4)
        assert (found.min(), found.max()) == pytest.approx((case["depth_min"], case["depth_max"]), abs=2e-3)
        assert (found == 0).mean() == pytest.approx(case["zero_fraction"], abs=1e-3)
        for tokens, expected in zip(network.pretrained(pictures), case["features"], strict=True):
            numbers = [float(tokens.mean()), float(tokens.std()), *tokens[0, :5, 0, 0].tolist()]
            given = [expected["patch_mean"], expected["patch_std"], *expected["patch_first5"]]
            assert numbers == pytest.approx(given, abs=1e-5)


def test_golden_inference(network, golden):
    cases, maps = golden
    (case,) = cases["inference"]
    clip = formula(**case["clip"])
    measure = load_protocol("depth_si_rmse", "corrected").measure
    parameters = {name: measure[name] for name in DEPTH_KEYS} | {"base_side": case["input_size"]}
    frames = ClipFrames(StreamInfo(*clip.shape[1:3]), [clip[:5], clip[5:]])
    found = np.concatenate(list(depth_maps(frames, **parameters)))
    np.testing.assert_allclose(found, maps[case["id"]], rtol=0, atol=2e-3)


def test_names_and_shapes_are_those_of_the_published_checkpoint():
    found = {name: list(tensor.shape) for name, tensor in build(checkpoint("vda_small").network).state_dict().items()}
    assert found == manifest("vda_small")
    assert len(found) == 351
    with torch.device("meta"):
        assert {name: list(tensor.shape) for name, tensor in video_depth.build().state_dict().items()} == found


def test_the_table_of_positions_is_the_sinusoid():
    table = Temporal(32, 4, 6).temporal_transformer.transformer_blocks[0].attention_blocks[0].pos_encoder.pe
    steps = np.arange(6)[:, None] / 10000 ** (np.arange(0, 32, 2) / 32)
    np.testing.assert_allclose(table[0, :, 0::2], np.sin(steps), atol=1e-6)
    np.testing.assert_allclose(table[0, :, 1::2], np.cos(steps), atol=1e-6)


PARTS = {
    "pretrained.cls_token": "backbone.embeddings.cls_token",
    "pretrained.pos_embed": "backbone.embeddings.position_embeddings",
    "pretrained.mask_token": "backbone.embeddings.mask_token",
    "pretrained.patch_embed.proj": "backbone.embeddings.patch_embeddings.projection",
    "pretrained.norm": "backbone.layernorm",
    "head.scratch.output_conv1": "head.conv1",
    "head.scratch.output_conv2.0": "head.conv2",
    "head.scratch.output_conv2.2": "head.conv3",
}
OF_A_LEVEL = {
    "head.projects.{level}": "neck.reassemble_stage.layers.{level}.projection",
    "head.resize_layers.{level}": "neck.reassemble_stage.layers.{level}.resize",
    "head.scratch.layer{after}_rn": "neck.convs.{level}",
    "head.scratch.refinenet{back}.out_conv": "neck.fusion_stage.layers.{level}.projection",
    **{
        f"head.scratch.refinenet{{back}}.resConfUnit{unit}.conv{conv}": (
            f"neck.fusion_stage.layers.{{level}}.residual_layer{unit}.convolution{conv}"
        )
        for unit in (1, 2)
        for conv in (1, 2)
    },
}
OF_A_BLOCK = {
    "norm1": "norm1", "norm2": "norm2", "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2", "attn.proj": "attention.o_proj",
    "ls1.gamma": "layer_scale1.lambda1", "ls2.gamma": "layer_scale2.lambda1",
}  # fmt: skip


def of_transformers(state, depth):
    """The spatial half's tensors under the names that transformers gives them."""
    names = dict(PARTS)
    for level in range(4):
        numbers = {"level": level, "after": level + 1, "back": 4 - level}
        names |= {ours.format(**numbers): theirs.format(**numbers) for ours, theirs in OF_A_LEVEL.items()}
    for number in range(depth):
        ours, theirs = f"pretrained.blocks.{number}", f"backbone.encoder.layer.{number}"
        names |= {f"{ours}.{own}": f"{theirs}.{other}" for own, other in OF_A_BLOCK.items()}
    found = {}
    for name, tensor in state.items():
        stem, _, ending = name.rpartition(".")
        if stem.endswith("attn.qkv"):
            layer = stem.split(".")[2]
            for part, one in zip("qkv", tensor.chunk(3), strict=True):
                found[f"backbone.encoder.layer.{layer}.attention.{part}_proj.{ending}"] = one
        elif "motion_modules" not in name:
            found[names[name] if name in names else f"{names[stem]}.{ending}"] = tensor
    return found


def test_the_spatial_half_is_depth_anything(small):
    """With the temporal output projections zeroed, at the size that positions were learned for."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation

    module = build(SMALL["vda_small"])
    state = {
        name: torch.zeros_like(one) if ".temporal_transformer.proj_out." in name else one
        for name, one in small.state_dict().items()
    }
    module.load_state_dict(state, assign=True)
    config = DepthAnythingConfig(
        backbone_config={
            "model_type": "dinov2", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
            "image_size": 70, "patch_size": 14, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False,
            "apply_layernorm": True,
        },
        reassemble_hidden_size=64, patch_size=14, neck_hidden_sizes=[16, 32, 64, 128], fusion_hidden_size=64,
    )  # fmt: skip
    other = DepthAnythingForDepthEstimation(config).eval()
    other.load_state_dict(of_transformers(state, depth=4))
    pictures = noise(3, 70, 70)
    expected = other(pixel_values=pictures).predicted_depth
    assert float(expected.std()) > 0.1
    torch.testing.assert_close(module.eval().depth(pictures), expected, rtol=0, atol=1e-5)
    assert float((small.depth(pictures) - expected).abs().max()) > 0.1  # with them the frames see each other


def test_frames_of_a_window_see_each_other_but_are_encoded_and_rendered_alone(small):
    pictures = noise(5, 56, 70)
    whole = small.depth(pictures)
    encoded = [small.encode(one[None]) for one in pictures]
    related = small.relate(tuple(map(torch.cat, zip(*encoded, strict=True))))
    apart = torch.cat([small.render(tuple(part[at : at + 1] for part in related)) for at in range(5)])
    torch.testing.assert_close(apart, whole, rtol=0, atol=1e-4)
    other = pictures.clone()
    other[4] += 1
    assert float((small.depth(other)[0] - whole[0]).abs().max()) > 1e-3
    assert whole.min() >= 0


def test_pixels_are_taken_in_pieces(small, monkeypatch):
    pictures = noise(3, 42, 56)
    whole = small.depth(pictures)
    monkeypatch.setattr(temporal, "_PIXELS", 5)
    torch.testing.assert_close(small.depth(pictures), whole, rtol=0, atol=1e-5)


def test_half_precision_leaves_the_last_convolutions_in_float32(small):
    kinds = []
    last = small.head.scratch.output_conv2
    hooks = [last[name].register_forward_hook(lambda _, given, out: kinds.extend((given[0].dtype, out.dtype)))
             for name in ("0", "2")]  # fmt: skip
    pictures = noise(2, 42, 56)
    exact = small.depth(pictures)
    kinds.clear()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = small.depth(pictures)
    for hook in hooks:
        hook.remove()
    assert kinds == [torch.float32] * 8
    assert rough.dtype == torch.float32
    assert 0 < float((rough - exact).abs().max()) < 0.5 * float(exact.max())


def test_it_is_loaded_without_rounding_its_numbers(network):
    with placed(placement_of("cpu", "bfloat16")):
        assert {one.dtype for one in loaded("vda_small").state_dict().values()} == {torch.float32}


@pytest.mark.parametrize("shape", [(2, 3, 43, 28), (2, 1, 42, 28), (3, 42, 28), (2, 3, 0, 28)])
def test_pictures_of_another_shape_are_refused(small, shape):
    with pytest.raises(ValueError, match="multiples of 14"):
        small.depth(torch.zeros(shape))


def test_more_frames_than_a_window_are_refused(small):
    with pytest.raises(ValueError, match="at most 32 frames, not 33"):
        small.depth(noise(33, 14, 14))


@pytest.mark.parametrize(
    "wrong", [{"taps": [1, 2, 4, 3]}, {"taps": [1, 2, 3, 13]}, {"levels": [16, 32, 64]}, {"depths": 3}]
)
def test_sizes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(InputError, match="cannot be built"):
        build(SMALL["vda_small"] | wrong, name="vda_small")
