"""Every container that checkpoints are published in, made here, opened without running what it says."""

import argparse
import collections
import os
import warnings
import zipfile

import numpy as np
import pytest
import torch

from gen_eval.records import ItemError, Reason
from gen_eval.weights import check_names, load_state
from gen_eval.weights.digests import compute_digest

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7)}


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def saved(content, zipped=True):
    return lambda path: torch.save(content, path, _use_new_zipfile_serialization=zipped)


def same(found, wanted=TENSORS):
    assert sorted(found) == sorted(wanted)
    for name, tensor in wanted.items():
        assert torch.equal(found[name], tensor)
        assert found[name].device.type == "cpu"


def refusal(name="own"):
    with pytest.raises(ItemError) as raised:
        load_state(name)
    assert raised.value.reason is Reason.BAD_WEIGHTS
    return raised.value.message


@pytest.fixture
def torchscript(tmp_path):
    """A TorchScript archive with the tensors `visual.weight`, `visual.bias`, `text.weight`, in half precision."""

    class Towers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.visual = torch.nn.Linear(3, 2)
            self.text = torch.nn.Linear(3, 2, bias=False)

        def forward(self, x):
            return self.visual(x) + self.text(x)

    path = tmp_path / "script.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Towers().half()).save(str(path))
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_a_plain_state_dict_in_both_formats(own, zipped):
    own("a.pth", "state_dict", saved(collections.OrderedDict(TENSORS), zipped))
    same(load_state("own"))


def test_safetensors(own):
    from safetensors.torch import save_file

    own("a.safetensors", "safetensors", lambda path: save_file(TENSORS, path))
    same(load_state("own"))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_nested_dictionary(own, zipped):
    own("a.pth", "nested", saved({"model": TENSORS, "epoch": 3, "text": "x", "list": [1.0]}, zipped), key="model")
    same(load_state("own"))


def test_a_nested_dictionary_without_its_key_says_what_there_is(own):
    own("a.pth", "nested", saved({"params": TENSORS, "epoch": 3}), key="model")
    assert "no entry 'model' that holds tensors; it has params, epoch" in refusal()


@pytest.mark.parametrize("content", [TENSORS, {"state_dict": TENSORS, "epoch": 2}])
def test_a_state_dict_that_may_be_nested(own, content):
    own("a.pth", "state_dict", saved(content), key="state_dict")
    same(load_state("own"))


def test_a_state_dict_with_other_entries_says_where_the_tensors_may_be(own):
    own("a.pth", "state_dict", saved({"state_dict": TENSORS, "epoch": 2}))
    assert "no tensors: state_dict, epoch; the tensors may be under 'state_dict'" in refusal()


def test_the_prefix_of_data_parallel_training_is_removed_when_all_names_have_it(own):
    path = own("a.pth", "state_dict", saved({f"module.{name}": tensor for name, tensor in TENSORS.items()}))
    same(load_state("own"))
    torch.save({"module.a": torch.ones(1), "b": torch.ones(1)}, path)
    message = refusal()  # another file: pinned on first use
    assert "pinned is" in message


def test_names_with_a_prefix_on_some_only_stay(own):
    own("a.pth", "state_dict", saved({"module.a": torch.ones(1), "b": torch.ones(1)}))
    assert list(load_state("own")) == ["module.a", "b"]


def test_only_what_is_kept_and_half_precision_becomes_float32(own):
    content = {"visual.a": torch.ones(2).half(), "visual.b": torch.ones(2).bfloat16(), "text.a": torch.ones(3)}
    own("a.pth", "state_dict", saved(content), keep=["visual."])
    state = load_state("own")
    assert {name: tensor.dtype for name, tensor in state.items()} == dict.fromkeys(
        ("visual.a", "visual.b"), torch.float32
    )


def test_tensors_saved_on_another_device_come_to_this_one(own):
    own("a.pth", "state_dict", saved({"a": torch.nn.Parameter(torch.ones(2))}))
    tensor = load_state("own")["a"]
    assert type(tensor) is torch.Tensor
    assert not tensor.requires_grad


OPTIONS = {
    "namespace": argparse.Namespace(lr=1e-3),
    "numpy scalar": np.float64(0.25),
}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", OPTIONS)
def test_training_options_beside_the_tensors_are_refused_and_the_converter_is_named(own, kind, zipped):
    own("a.pth", "nested", saved({"state_dict": TENSORS, "options": OPTIONS[kind]}, zipped), key="state_dict")
    message = refusal()
    assert "which the converter can leave out" in message
    assert "`gen-eval weights convert own --to safetensors`" in message


@pytest.mark.parametrize("zipped", [True, False])
def test_a_malicious_pickle_is_refused_and_nothing_runs(own, tmp_path, zipped):
    own("a.pth", "state_dict", saved({**TENSORS, "x": Evil(tmp_path / "owned")}, zipped))
    message = refusal()
    assert "system" in message
    assert "never loaded: do not trust this file" in message
    assert "convert it" not in message
    assert not (tmp_path / "owned").exists()


def test_a_pickled_module_is_refused(own):
    own("a.pth", "state_dict", saved(torch.nn.Linear(2, 2)))
    assert "torch.nn.modules.linear.Linear" in refusal()


def test_a_torchscript_archive_opens_with_its_published_digest_only(own, torchscript):
    path = own("a.pt", "torchscript", lambda path: path.write_bytes(torchscript.read_bytes()), keep=["visual."])
    message = refusal()
    assert "TorchScript archive without a published digest; convert it" in message
    own("a.pt", "torchscript", keep=["visual."], sha256=compute_digest(path))
    state = load_state("own")
    assert list(state) == ["visual.weight", "visual.bias"]
    assert state["visual.weight"].dtype == torch.float32


def test_a_torchscript_archive_in_place_of_a_state_dict_names_the_converter(own, torchscript):
    own("a.pth", "state_dict", lambda path: path.write_bytes(torchscript.read_bytes()))
    assert "is a TorchScript archive, not a saved dictionary; convert it" in refusal()


@pytest.mark.parametrize("zipped", [True, False])
def test_a_member_of_a_zip_file(own, tmp_path, zipped):
    torch.save(
        {f"module.{name}": tensor for name, tensor in TENSORS.items()},
        tmp_path / "raft.pth",
        _use_new_zipfile_serialization=zipped,
    )

    def pack(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(tmp_path / "raft.pth", "models/raft.pth")
            archive.writestr("models/other.pth", b"x")

    own("a.zip", "zip", pack, member="models/raft.pth")
    same(load_state("own"))


@pytest.mark.parametrize("container", ["safetensors", "state_dict", "torchscript", "zip"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", bytes(300)])
def test_what_is_no_checkpoint_is_named(own, container, content):
    more = {"member": "a"} if container == "zip" else {}
    own("a.bin", container, lambda path: path.write_bytes(content), **more)
    message = refusal()
    assert message.startswith("own/a.bin")
    assert "fetch it again (`gen-eval weights fetch own`)" in message


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["zipped", "old", "safetensors"])
def test_a_truncated_file_is_named(own, kind, share):
    from safetensors.torch import save_file

    big = {"a": torch.rand(400), "b": torch.rand(40)}

    def cut(path):
        save_file(big, path) if kind == "safetensors" else saved(big, kind == "zipped")(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    own("a.bin", "safetensors" if kind == "safetensors" else "state_dict", cut)
    assert "fetch it again" in refusal()


def test_an_absent_checkpoint_names_the_command_and_the_licence(folder):
    for name, said in {
        "dino_vitb16": "`gen-eval weights fetch dino_vitb16`",
        "amt_s": "`gen-eval weights fetch amt_s --accept-licence` (licence: CC BY-NC 4.0: no commercial use)",
        "internvideo2_clip": "no file is known for internvideo2_clip",
    }.items():
        with pytest.raises(ItemError) as raised:
            load_state(name)
        assert raised.value.reason is Reason.MISSING_WEIGHTS
        assert said in raised.value.message


def test_what_is_wrong_on_the_machine_is_said_without_its_paths(own, folder, monkeypatch):
    from gen_eval.weights import located

    own("a.pth", "state_dict", saved(TENSORS))
    (folder / "lock.json").write_text("{")
    assert refusal() == "the file of pinned digests is damaged; `gen-eval weights verify` says where it lies"
    (folder / "lock.json").unlink()

    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(located, "file_digest", forbidden)
    assert refusal() == "own/a.pth cannot be read (Permission denied); check its rights"


def test_names_that_fit_pass():
    check_names("own", TENSORS, {"b": [], "a.weight": (2, 3)})


def test_names_that_differ_are_listed_both_ways():
    state = {**{f"x{number}": torch.ones(1) for number in range(9)}, "a.weight": torch.ones(3, 2)}
    with pytest.raises(ItemError) as raised:
        check_names("own", state, {"a.weight": [2, 3], "b": [], "c": [4]})
    message = raised.value.message
    assert raised.value.reason is Reason.BAD_WEIGHTS
    assert "2 missing (b, c)" in message
    assert "9 unexpected (x0, x1, x2, x3, x4, …)" in message
    assert "1 of another shape (a.weight [3, 2], expected [2, 3])" in message
    assert raised.value.detail == {"checkpoint": "own", "missing": 2, "unexpected": 9, "shape": 1}
