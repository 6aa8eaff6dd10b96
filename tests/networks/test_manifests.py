"""Names and shapes of the small networks are those of the given lists; DreamSim's list has no projections."""

import json

import pytest

from bench.stand_in import SMALL
from gen_eval import weights
from gen_eval.networks.loading import build

LISTS = {
    "dino_small": "dino_vitb16",
    "clip_b32_visual_small": "clip_vitb32_visual",
    "clip_l14_visual_small": "clip_vitl14_visual",
    "musiq_small": "musiq_spaq",
    "viclip_small": "viclip",
    "dreamsim_small": "dreamsim_ensemble",
}
PROJECTIONS = ("extractor_list.1.proj", "extractor_list.2.proj")


@pytest.mark.parametrize("given", LISTS)
def test_a_small_network_has_the_given_names_and_shapes(given, quality_goldens):
    expected = json.loads((quality_goldens / "manifests" / f"{given}.json").read_text())
    module = build(SMALL[LISTS[given]])
    found = {name: list(tensor.shape) for name, tensor in module.state_dict().items()}
    own = {name: found.pop(name) for name in PROJECTIONS if name in found}
    assert {name.removeprefix("visual."): shape for name, shape in found.items()} == {
        name.removeprefix("visual."): shape for name, shape in expected.items()
    }
    assert len(own) == (2 if given == "dreamsim_small" else 0)


def test_the_list_of_the_full_ensemble_is_the_given_one_and_its_projections(quality_goldens):
    given = json.loads((quality_goldens / "manifests" / "dreamsim_ensemble_merged.json").read_text())
    ours = weights.manifest("dreamsim_ensemble")
    assert ours == given | {name: [768, 512] for name in PROJECTIONS}
