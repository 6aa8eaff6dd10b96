"""Networks that are folders: opened strictly, checked file by file, told apart from each other."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file, save_file

from api.services.network_facts import _definition
from api.services.weights import verify
from gen_eval import weights
from gen_eval.networks import Placement, placed
from gen_eval.networks.loading import able, forget, loaded
from gen_eval.records import InputError, ItemError, Reason
from gen_eval.settings import settings

pytest.importorskip("transformers")
DINO, SAM = "grounding_dino_tiny", "sam2_hiera_large"


@pytest.fixture
def folders(segmenters_folder, tmp_path, monkeypatch):
    """A copy of the stand-ins that may be damaged; `folders(name)` is a checkpoint's folder."""
    for variable, value in segmenters_folder.items():
        copy = tmp_path / Path(value).name
        shutil.copytree(value, copy, ignore=shutil.ignore_patterns("*.json.lock", "digests.json", "lock.json"))
        monkeypatch.setenv(variable, str(copy))
    settings.cache_clear()
    yield lambda name: tmp_path / "weights" / name
    settings.cache_clear()
    forget()


def refused(name):
    with pytest.raises(ItemError) as error:
        loaded(name)
    assert str(Path.cwd().anchor + "tmp") not in error.value.message  # no path of the machine
    return error.value.reason, error.value.message


def test_both_are_opened_by_the_path_that_users_take(folders):
    assert able(DINO, "detect") is loaded(DINO)
    assert able(SAM, "track").side == 128
    for name in (DINO, SAM):
        module = loaded(name)
        assert not module.training
        assert {str(tensor.dtype) for tensor in module.parameters()} == {"torch.float32"}
        assert not any(tensor.requires_grad for tensor in module.parameters())
    pins = json.loads((folders(DINO).parent / "lock.json").read_text())
    assert set(pins) == {
        f"{DINO}/model.safetensors", f"{DINO}/config.json", f"{DINO}/tokenizer.json",
        f"{SAM}/model.safetensors", f"{SAM}/config.json",
    }  # fmt: skip


def test_every_tensor_is_that_of_the_file(folders):
    held = load_file(folders(SAM) / "model.safetensors")
    for name, tensor in loaded(SAM).network.state_dict().items():
        assert np.array_equal(tensor.numpy(), held[name]), name


def test_a_network_asked_for_what_it_does_not_do(folders):
    with pytest.raises(InputError, match="does not find what a text names"):
        able(SAM, "detect")


def test_weights_stay_float32_under_mixed_precision(folders):
    with placed(Placement("cpu", "bfloat16")):
        assert {str(tensor.dtype) for tensor in loaded(DINO).parameters()} == {"torch.float32"}


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_a_missing_companion(folders, file):
    (folders(DINO) / file).unlink()
    reason, message = refused(DINO)
    assert reason is Reason.MISSING_WEIGHTS
    assert file in message
    assert f"`gen-eval weights fetch {DINO}`" in message
    (line,) = verify([DINO])
    assert line["status"] == "bad"
    assert file in line["problems"][0]


def test_the_folder_of_another_network(folders):
    for file in ("config.json", "model.safetensors"):
        shutil.copy(folders(SAM) / file, folders(DINO) / file)
    reason, message = refused(DINO)
    assert reason is Reason.BAD_WEIGHTS
    assert "'sam2_video', expected 'grounding-dino'" in message


def test_tensors_of_another_network(folders):
    shutil.copy(folders(DINO) / "model.safetensors", folders(SAM) / "model.safetensors")
    reason, message = refused(SAM)
    assert reason is Reason.BAD_WEIGHTS
    assert "322 missing" in message
    assert "unexpected" in message
    (line,) = verify([SAM])
    assert line["status"] == "bad"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda held: held.pop("no_memory_embedding"), "1 missing (no_memory_embedding)"),
        (lambda held: held.update(surplus=np.zeros(1, np.float32)), "1 unexpected (surplus)"),
        (lambda held: held.update(no_object_pointer=np.zeros((1, 64), np.float32)), "1 of another shape (no_object_p"),
    ],
)
def test_tensors_that_do_not_fit(folders, damage, said):
    held = load_file(folders(SAM) / "model.safetensors")
    damage(held)
    save_file(held, folders(SAM) / "model.safetensors", metadata={"format": "pt"})
    reason, message = refused(SAM)
    assert reason is Reason.BAD_WEIGHTS
    assert said in message


def test_a_file_that_ends_early(folders):
    path = folders(SAM) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    reason, message = refused(SAM)
    assert reason is Reason.BAD_WEIGHTS
    assert f"`gen-eval weights fetch {SAM}`" in message
    assert refused(SAM) == (reason, message)  # told again without another attempt


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"model_type": 3}', '{"model_type": "grounding-dino", "d_model": "x"}']
)
def test_a_configuration_that_cannot_be_read(folders, content):
    (folders(DINO) / "config.json").write_text(content)
    assert refused(DINO)[0] is Reason.BAD_WEIGHTS


def test_a_tokenizer_of_another_network(folders):
    path = folders(DINO) / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"]["surplus"] = 5000
    path.write_text(json.dumps(content))
    assert "token 5000; its network knows 1030" in refused(DINO)[1]
    path.write_text("{}")
    assert refused(DINO)[0] is Reason.BAD_WEIGHTS


def test_a_file_that_changed_since_it_was_pinned(folders):
    loaded(DINO)
    path = folders(DINO) / "config.json"
    path.write_text(path.read_text() + "\n")
    reason, message = refused(DINO)
    assert reason is Reason.BAD_WEIGHTS
    assert "pinned" in message
    assert f"{DINO}/config.json" in message
    assert verify([DINO])[0]["status"] == "bad"
    assert verify([DINO], repin=True)[0]["status"] == "ok"
    forget()
    loaded(DINO)


def test_verify_says_that_all_is_well(folders):
    lines = verify([DINO, SAM])
    assert [line["status"] for line in lines] == ["ok", "ok"]
    assert lines[1]["names"] == "322 as expected"


def test_what_is_recorded_tells_configurations_apart(folders):
    before = _definition(SAM)
    assert before["network"] == {"kind": "sam2_video"}
    assert before["companions"] == {"config.json": weights.locate(SAM).companions[0].sha256}
    path = folders(SAM) / "config.json"
    path.write_text(path.read_text() + "\n")
    assert _definition(SAM) != before


def test_an_entry_that_names_another_file_or_other_arguments(folders, tmp_path):
    path = tmp_path / "configs" / "weights" / "stand-in.yaml"
    catalogue = yaml.safe_load(path.read_text())
    catalogue[SAM]["network"]["width"] = 3
    path.write_text(yaml.safe_dump(catalogue))
    with pytest.raises(InputError, match="width"):
        loaded(SAM)
    (folders(SAM) / "model.safetensors").rename(folders(SAM) / "ours.safetensors")
    catalogue[SAM] |= {"network": {"kind": "sam2_video"}}
    catalogue[SAM]["sources"] = [{"file": "ours.safetensors", "container": "safetensors"}]
    path.write_text(yaml.safe_dump(catalogue))
    with pytest.raises(InputError, match=r"tensors are in model\.safetensors"):
        loaded(SAM)


def test_kinds_that_do_not_exist(folders, tmp_path):
    path = tmp_path / "configs" / "weights" / "stand-in.yaml"
    catalogue = yaml.safe_load(path.read_text())
    catalogue[SAM]["network"] = {"kind": "sam9"}
    path.write_text(yaml.safe_dump(catalogue))
    with pytest.raises(InputError, match=r"'sam9'.*dino, clip.*as folders .*grounding_dino, sam2_video"):
        loaded(SAM)


def test_the_shipped_entries_name_what_is_read():
    from bench.stand_in_folders import COMPANIONS

    for name in (DINO, SAM):
        entry = weights.checkpoint(name)
        (source,) = entry.sources
        assert set(COMPANIONS[entry.network["kind"]]) <= set(source.companions)
        assert source.file == "model.safetensors"
