"""What the catalogue says, how one's own entries win, and what is said of entries that are wrong."""

import pytest
import torch
import yaml

from gen_eval.records import InputError
from gen_eval.weights import checkpoint, checkpoint_names, manifest, with_needs

QUALITY = {
    "dino_vitb16": 150,
    "clip_vitb32_visual": 152,
    "clip_vitl14_visual": 296,
    "aesthetic_head": 2,
    "amt_s": 213,
    "musiq_spaq": 248,
    "viclip": 447,
    "dreamsim_ensemble": 456,
    "raft_things": 179,
}


@pytest.mark.parametrize(("name", "tensors"), QUALITY.items())
def test_every_network_of_the_quality_track_is_there_with_its_list_of_tensors(name, tensors):
    entry = checkpoint(name)
    assert entry.track == "quality"
    assert entry.network["kind"]
    assert entry.used_by
    assert len(manifest(name)) == tensors


def test_all_shipped_entries_are_whole():
    for name in checkpoint_names():
        entry = checkpoint(name)
        manifest(name)
        assert entry.licence
        assert entry.sources or entry.note
        for source in entry.sources:
            assert source.url or source.hub or source.package
            assert (source.url or "https://").startswith("https://")
            for other in source.needs:
                checkpoint(other)


def test_parameters_of_the_lists_are_those_of_the_networks():
    def parameters(name, without=()):
        total = 0
        for key, shape in manifest(name).items():
            count = 1
            for side in shape:
                count *= side
            total += 0 if key.endswith(without or ("\0",)) else count
        return total

    statistics = ("running_mean", "running_var", "num_batches_tracked")
    again = (".norm3.weight", ".norm3.bias")  # a second name of downsample.1
    assert parameters("amt_s") == 2_990_543
    assert parameters("viclip") == 427_590_145
    assert parameters("musiq_spaq") == 27_125_825
    assert parameters("raft_things", without=statistics + again) == 5_257_536


def test_what_may_not_be_used_commercially():
    restricted = {name for name in QUALITY if checkpoint(name).restricted}
    assert restricted == {"amt_s", "musiq_spaq", "viclip"}
    assert checkpoint("amt_s").commercial == "no"
    assert checkpoint("dover").commercial == "no"
    assert "no commercial use" in checkpoint("amt_s").terms


def test_the_published_digests():
    published = {name: checkpoint(name).sources[0].sha256 for name in QUALITY if checkpoint(name).sources[0].sha256}
    assert {name: digest[:8] for name, digest in published.items()} == {
        "clip_vitb32_visual": "40d36571",
        "clip_vitl14_visual": "b8cca3fd",
        "aesthetic_head": "2cd4e60f",
    }


def test_an_entry_of_ones_own_wins_by_id(catalogue, make_entry):
    small = {"kind": "dino", "width": 96, "depth": 3, "heads": 4, "patch": 16}
    catalogue(
        dino_vitb16=make_entry({"file": "small.safetensors", "container": "safetensors"}, network=small),
        mine=make_entry({"file": "a.pth", "container": "state_dict"}),
    )
    assert checkpoint("dino_vitb16").network == small
    assert manifest("dino_vitb16") is None
    assert checkpoint("mine").name == "mine"
    assert checkpoint("viclip").network["vision_width"] == 1024


def test_a_catalogue_that_changed_is_read_again(catalogue, make_entry):
    catalogue(mine=make_entry({"file": "a.pth", "container": "state_dict"}, title="old"))
    assert checkpoint("mine").title == "old"
    catalogue(mine=make_entry({"file": "a.pth", "container": "state_dict"}, title="changed"))
    assert checkpoint("mine").title == "changed"


def test_near_names_are_offered():
    with pytest.raises(InputError, match="did you mean dino_vitb16"):
        checkpoint("dino_vitb_16")


SOURCE = {"file": "a.pth", "container": "state_dict"}


@pytest.mark.parametrize(
    ("fields", "source", "said"),
    [
        ({"licence": None}, {}, "licence: Input should be a valid string"),
        ({"commercial": "maybe"}, {}, "commercial: Input should be 'yes', 'no' or 'unknown'"),
        ({"colour": "red"}, {}, "colour: Extra inputs are not permitted"),
        ({"network": {"width": 3}}, {}, "network: must name the kind"),
        ({}, {"container": "tar"}, "sources.0.container: Input should be"),
        ({}, {"file": "../a.pth"}, "sources.0.file: must be a plain relative file name"),
        ({}, {"file": "/etc/passwd"}, "sources.0.file: must be a plain relative file name"),
        ({}, {"file": ".hidden"}, "sources.0.file: must be a plain relative file name"),
        ({}, {"container": "nested"}, "container nested needs the key"),
        ({}, {"container": "zip"}, "container zip needs the member"),
        ({}, {"hub": "a/b"}, "hub needs a revision"),
        ({}, {"hub": "a/b", "revision": "main", "url": "https://a.example/b"}, "give one of url, hub, package"),
        ({}, {"sha256": "abc"}, "sources.0.sha256: String should match"),
        ({}, {"size": "big"}, "sources.0.size: Input should be a valid integer"),
    ],
)
def test_a_malformed_entry_is_named_with_file_id_and_field(catalogue, make_entry, fields, source, said):
    path = catalogue(mine=make_entry({**SOURCE, **source}, **fields))
    with pytest.raises(InputError) as raised:
        checkpoint("mine")
    assert str(raised.value).startswith(f"{path}: checkpoint mine: ")
    assert said in str(raised.value)


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [", "mine: 3\n"])
def test_a_file_that_is_no_catalogue_is_named(catalogue, content):
    path = catalogue()
    path.write_text(content)
    with pytest.raises(InputError, match=r"own\.yaml"):
        checkpoint_names()


def test_a_manifest_that_does_not_exist_is_named(catalogue, make_entry):
    catalogue(mine=make_entry(SOURCE, manifest="absent"))
    with pytest.raises(InputError, match="the manifest 'absent', which does not exist"):
        manifest("mine")


def test_an_id_cannot_lead_out_of_the_weights_folder(catalogue, make_entry):
    path = catalogue()
    path.write_text(yaml.safe_dump({"../evil": make_entry(SOURCE)}))
    with pytest.raises(InputError, match="plain relative file name"):
        checkpoint_names()


def test_every_network_of_a_metric_is_in_the_catalogue_and_knows_the_metric():
    from gen_eval.protocols import load_protocol, protocol_names
    from gen_eval.records import MetricFacts
    from gen_eval.registry import load, names

    metrics = {name: load("gen_eval.metrics", name) for name in names("gen_eval.metrics")}
    for name, metric in metrics.items():
        if isinstance(metric, MetricFacts):
            continue  # its networks are those of the model that is asked
        for protocol in protocol_names(name):
            networks = metric.networks(load_protocol(name, protocol).measure)
            beside = {other for one in networks for other in with_needs(one)[1:]}  # layers below another's heads
            for needed in networks:
                assert name in checkpoint(needed).used_by, (name, needed)
                assert checkpoint(needed).network is not None or needed in beside


def test_every_shipped_network_has_exactly_the_tensors_of_its_list():
    from gen_eval.networks.loading import build

    def shapes(tensors):
        return {key: list(tensor.shape) for key, tensor in tensors.items()}

    for name in QUALITY:
        module = build(checkpoint(name).network, name=name)
        listed = {key: torch.empty(shape, device="meta") for key, shape in manifest(name).items()}
        translate = getattr(module, "translate", dict)
        assert shapes(module.state_dict()) == shapes(translate(listed)), name


@pytest.mark.parametrize("needs", [{"one": "one"}, {"one": "two", "two": "one"}, {"one": "two", "two": "two"}])
def test_checkpoints_that_need_each_other_in_a_circle_are_refused(catalogue, make_entry, needs):
    sources = {
        name: {"file": "a.zip", "container": "dreamsim_archive", "needs": [other]} for name, other in needs.items()
    }
    catalogue(**{name: make_entry(source) for name, source in sources.items()})
    with pytest.raises(InputError, match=r"in a circle: one -> (one|two)"):
        checkpoint("one")


@pytest.mark.parametrize(
    "change",
    [
        {"heads": 5},
        {"heads": 0},
        {"depth": -1},
        {"depth": [3]},
        {"patch": 0},
        {"width": "96"},
        {"width": 10**9},
        {"wdth": 96},
        {"kind": "nonsense"},
    ],
)
def test_a_network_that_cannot_be_built_is_bad_input(change):
    from gen_eval.networks.loading import build

    arguments = {"kind": "dino", "width": 96, "depth": 3, "heads": 4, "patch": 16} | change
    with pytest.raises(InputError, match=r"'own' cannot be built from|'own' has no network here"):
        build(arguments, name="own")
