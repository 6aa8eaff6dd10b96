"""Networks that are written here, loaded strictly from files packed as their checkpoints are published."""

import argparse
import io
import zipfile

import pytest
import torch
import yaml

from gen_eval.networks.loading import build, forget, loaded
from gen_eval.records import ItemError, Reason
from gen_eval.settings import settings
from gen_eval.weights import checkpoint, manifest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path))
    settings.cache_clear()
    forget()
    yield tmp_path
    settings.cache_clear()
    forget()


def tensors(name):
    """Numbers for every tensor of a checkpoint, by the published names."""
    generator = torch.Generator().manual_seed(0)
    return {key: torch.randn(shape, generator=generator) for key, shape in manifest(name).items()}


def parallel(state):
    return {f"module.{key}": tensor for key, tensor in state.items()}


def amt(path, state):
    torch.save({"state_dict": state, "epoch": 300}, path)


def musiq(path, state):
    torch.save(parallel(state), path)


def raft(path, state):
    content = io.BytesIO()
    torch.save(parallel(state), content, _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("models/raft-small.pth", b"another")
        archive.writestr("models/raft-things.pth", content.getvalue())


def video_depth(path, state):
    torch.save(state, path)


@pytest.mark.parametrize(
    ("name", "pack"),
    [("amt_s", amt), ("musiq_spaq", musiq), ("raft_things", raft), ("vda_small", video_depth)],
    ids=["amt", "musiq", "raft", "video_depth"],
)
def test_every_tensor_arrives(folder, name, pack):
    path = folder / name / checkpoint(name).sources[0].file
    path.parent.mkdir()
    state = tensors(name)
    pack(path, state)
    network = loaded(name)
    found, expected = network.state_dict(), getattr(network, "translate", dict)(state)
    assert sorted(found) == sorted(expected)
    for key, tensor in expected.items():
        assert torch.equal(found[key], tensor.to(found[key].dtype)), key


def test_a_port_with_other_names_is_verified_through_the_network(folder, monkeypatch):
    from api.services.weights import verify

    path = folder / "raft_things" / "port.pth"
    path.parent.mkdir()
    torch.save(build({"kind": "raft"}).to_empty(device="cpu").state_dict(), path)
    entry = checkpoint("raft_things").model_dump(exclude={"name"})
    entry["sources"] = [{"file": "port.pth", "container": "state_dict", "names": "torchvision"}]
    configs = folder / "configs" / "weights"
    configs.mkdir(parents=True)
    (configs / "own.yaml").write_text(yaml.safe_dump({"raft_things": entry}))
    monkeypatch.setenv("GEN_EVAL_CONFIGS", str(folder / "configs"))
    line = verify(["raft_things"])[0]
    assert (line["status"], line["problems"]) == ("ok", [])


def test_the_checkpoint_of_another_network_is_refused_with_the_names_that_differ(folder):
    path = folder / "amt_s" / "amt-s.pth"
    path.parent.mkdir()
    amt(path, {"weight": torch.ones(1, 768), "bias": torch.ones(1)})
    with pytest.raises(ItemError, match=r"213 missing \(.*; 2 unexpected \(weight, bias\)") as raised:
        loaded("amt_s")
    assert raised.value.reason is Reason.BAD_WEIGHTS


def test_training_options_in_the_file_name_the_converter(folder):
    path = folder / "amt_s" / "amt-s.pth"
    path.parent.mkdir()
    torch.save({"state_dict": tensors("amt_s"), "args": argparse.Namespace(lr=1e-4)}, path)
    with pytest.raises(ItemError, match="gen-eval weights convert amt_s --to safetensors"):
        loaded("amt_s")
