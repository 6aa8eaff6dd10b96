"""Networks that are written here, loaded strictly from files packed as their checkpoints are published."""

import argparse
import io
import zipfile

import pytest

torch = pytest.importorskip("torch")

from gen_eval.networks.loading import build, forget, loaded  # noqa: E402
from gen_eval.networks.registry import BUILDERS  # noqa: E402
from gen_eval.records import ItemError, Reason  # noqa: E402
from gen_eval.settings import settings  # noqa: E402
from gen_eval.weights import checkpoint  # noqa: E402


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path))
    settings.cache_clear()
    forget()
    yield tmp_path
    settings.cache_clear()
    forget()


def tensors(name):
    """Numbers for every tensor of a checkpoint, by the network's own names."""
    generator = torch.Generator().manual_seed(0)
    section = checkpoint(name).network
    pytest.importorskip(BUILDERS[section["kind"]].partition(":")[0])
    state = build(section, name=name).state_dict()
    return {
        key: torch.randn(tensor.shape, generator=generator) if tensor.is_floating_point() else torch.zeros(tensor.shape)
        for key, tensor in state.items()
    }


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


@pytest.mark.parametrize(
    ("name", "pack"), [("amt_s", amt), ("musiq_spaq", musiq), ("raft_things", raft)], ids=["amt", "musiq", "raft"]
)
def test_every_tensor_arrives(folder, name, pack):
    path = folder / name / checkpoint(name).sources[0].file
    path.parent.mkdir()
    state = tensors(name)
    pack(path, state)
    found = loaded(name).state_dict()
    assert list(found) == list(state)
    for key, tensor in state.items():
        assert torch.equal(found[key], tensor.to(found[key].dtype)), key


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
