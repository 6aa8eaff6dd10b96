"""LPIPS as a module: names, loading from two checkpoints, pieces and strips, refusals."""

import json

import numpy as np
import pytest

from bench.stand_in import write
from gen_eval import weights
from gen_eval.networks import distances, lpips
from gen_eval.networks.loading import build, loaded
from gen_eval.records import InputError, ItemError


@pytest.fixture(scope="module")
def goldens_of_control(request):
    return request.config.rootpath / "tests" / "goldens" / "control"


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    return write(tmp_path_factory.mktemp("lpips"), ["lpips_vgg"], small=True)


@pytest.fixture
def small(stand_in, use_environment):
    use_environment(stand_in)
    return loaded("lpips_vgg")


@pytest.mark.parametrize("backbone", ["vgg", "alex"])
def test_names_and_shapes_are_the_given_ones(backbone, goldens_of_control):
    given = json.loads((goldens_of_control / f"lpips_{backbone}_manifest.json").read_text())["state_dict"]
    module = build(weights.checkpoint(f"lpips_{backbone}").network)
    assert {name: list(tensor.shape) for name, tensor in module.state_dict().items()} == given


@pytest.mark.parametrize(
    ("backbone", "heads", "layers"),
    [("vgg", "lpips_vgg", "vgg16"), ("alex", "lpips_alex", "alexnet")],
)
def test_heads_and_backbone_fill_every_name(backbone, heads, layers, goldens_of_control):
    """What the two files hold, and nothing else: a classifier that was not left out would be noticed."""
    import torch

    module = build(weights.checkpoint(heads).network)
    state = {name: torch.zeros(shape) for one in (heads, layers) for name, shape in weights.manifest(one).items()}
    expected = {name: tensor.shape for name, tensor in module.state_dict().items()}
    weights.check_names(heads, module.translate(state), expected)
    for extra in ("classifier.0.weight", "features.99.weight"):
        wrong = module.translate({**state, extra: torch.zeros(1)})
        with pytest.raises(ItemError, match=extra):
            weights.check_names(heads, wrong, expected)
    del state["lin3.model.1.weight"]
    wrong = module.translate(state)
    with pytest.raises(ItemError, match=r"2 missing \(lin3"):
        weights.check_names(heads, wrong, expected)


def test_the_heads_of_the_package_are_the_given_ones(goldens_of_control):
    for backbone in ("vgg", "alex"):
        given = json.loads((goldens_of_control / f"lpips_{backbone}_manifest.json").read_text())["head_sums"]
        state = weights.load_state(f"lpips_{backbone}")
        assert {name: float(tensor.sum()) for name, tensor in state.items()} == pytest.approx(given, rel=1e-5)


def pictures(count, height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (1, count, height, width, 3), dtype=np.uint8)


def test_as_the_package_itself_drives_its_layers(small, no_gradients):
    import torch

    frames = pictures(4, 21, 35)
    found = distances(frames, network="lpips_vgg")[0]
    planes = torch.from_numpy(frames[0]).permute(0, 3, 1, 2).float() / 127.5 - 1
    expected = [small(planes[i : i + 1], planes[j : j + 1]).item() for i in range(4) for j in range(i + 1, 4)]
    assert found == pytest.approx(expected, rel=1e-5)
    assert found.min() > 0


@pytest.mark.parametrize(("pieces", "strip"), [(1, 2**18), (2 * 20 * 24, 2**18), (2**20, 1), (2**20, 777)])
def test_pieces_and_strips_change_nothing(small, pieces, strip, monkeypatch):
    frames = pictures(5, 20, 24)
    whole = distances(frames, network="lpips_vgg")
    monkeypatch.setattr(lpips, "_PICTURE_PIXELS", pieces)
    monkeypatch.setattr(lpips, "_STRIP_VALUES", strip)
    assert distances(frames, network="lpips_vgg") == pytest.approx(whole, rel=1e-5)


def test_pictures_that_are_too_small_are_refused_in_words(small):
    with pytest.raises(InputError, match=r"40x15 pixels, and vgg needs sides of 16"):
        distances(pictures(2, 15, 40), network="lpips_vgg")


@pytest.mark.parametrize("backbone", ["vgg", "alex"])
def test_the_least_side_is_the_least_that_every_layer_takes(backbone, unset, no_gradients):
    import torch

    module, least = unset(lpips.build, backbone=backbone, narrow=16), lpips.LEAST_SIDES[backbone]
    for tensor in module.state_dict().values():
        tensor.fill_(1)
    assert module.distances(torch.zeros(2, 3, least, least, dtype=torch.uint8)).tolist() == [0.0]
    with pytest.raises(RuntimeError, match="size"):
        module(torch.zeros(1, 3, least - 1, least), torch.zeros(1, 3, least - 1, least))


def test_no_other_backbone():
    with pytest.raises(InputError, match="no backbone 'squeeze'"):
        build({"kind": "lpips", "backbone": "squeeze"})


def test_nothing_is_fetched_and_nothing_said(capsys, recwarn, monkeypatch):
    import torch

    def fetched(*_arguments, **_more):
        raise AssertionError("fetched")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fetched)
    build({"kind": "lpips", "backbone": "vgg"})
    assert capsys.readouterr().out == ""
    assert not [one for one in recwarn if "pretrained" in str(one.message)]


def test_a_network_that_tells_nothing_apart_is_refused(small, monkeypatch):
    monkeypatch.delattr(lpips.Lpips, "distances")
    with pytest.raises(InputError, match="does not tell how different pictures look"):
        distances(pictures(2, 16, 16), network="lpips_vgg")
