"""Zip files of foreign origin, and the DreamSim archive: read by name, adapter merged."""

import io
import json
import stat
import struct
import zipfile

import pytest
import torch
from safetensors.torch import save

from gen_eval.records import ItemError, Reason
from gen_eval.weights import archives, load_state
from gen_eval.weights.archives import ArchiveError, CheckedZip

WIDTH, RANK, ALPHA = 4, 2, 3.0


def packed(path, members, **kwargs):
    with zipfile.ZipFile(path, "w", **kwargs) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../a", "/etc/a", "a/../../b", "a\\b", "C:/a", "a\nb"])
def test_names_that_lead_out_are_refused(tmp_path, name):
    with pytest.raises(ArchiveError, match=r"leads out of the archive|control characters"):
        CheckedZip(packed(tmp_path / "a.zip", {"fine": b"1", name: b"2"}))


def test_a_symbolic_link_is_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    packed(tmp_path / "a.zip", {link: b"/etc/passwd"})
    with pytest.raises(ArchiveError, match="symbolic link"):
        CheckedZip(tmp_path / "a.zip")


def test_a_name_that_comes_twice_is_refused(tmp_path):
    content = packed(tmp_path / "a.zip", {"a": b"1", "b": b"2"}).read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(b"b", b"a"))
    with pytest.raises(ArchiveError, match="'a' more than once"):
        CheckedZip(tmp_path / "a.zip")


def test_a_bomb_is_refused(tmp_path):
    packed(tmp_path / "a.zip", {"bomb": bytes(4 * 2**20)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ArchiveError, match="expands 100 times and more"):
        CheckedZip(tmp_path / "a.zip")


def test_members_and_totals_above_the_limits_are_refused(tmp_path, monkeypatch):
    packed(tmp_path / "a.zip", {"a": bytes(600), "b": bytes(600)})
    monkeypatch.setattr(archives, "MOST_TOTAL", 1000)
    with pytest.raises(ArchiveError, match="expands to 1200 bytes, more than 1000"):
        CheckedZip(tmp_path / "a.zip")
    monkeypatch.setattr(archives, "MOST_MEMBER", 500)
    with pytest.raises(ArchiveError, match="'a' expands to 600 bytes, more than 500"):
        CheckedZip(tmp_path / "a.zip")


def test_a_table_that_lies_about_a_length_is_noticed(tmp_path):
    path = packed(tmp_path / "a.zip", {"a": bytes(range(200))})
    content = path.read_bytes()
    lied = content.replace(struct.pack("<II", 200, 200), struct.pack("<II", 100, 100))
    assert lied != content
    path.write_bytes(lied)
    with CheckedZip(path) as archive, pytest.raises(ArchiveError, match="cannot be read"):
        archive.read("a")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no zip"])
def test_what_is_no_zip_file_is_named(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ArchiveError, match="no zip file"):
        CheckedZip(tmp_path / "a.zip")


def test_a_member_is_found_in_folders_and_two_are_too_many(tmp_path):
    with CheckedZip(packed(tmp_path / "a.zip", {"x/deep/a.txt": b"1", "__MACOSX/x/deep/a.txt": b"2"})) as archive:
        assert archive.find("deep/a.txt") == "x/deep/a.txt"
        assert archive.find("b.txt") is None
    packed(tmp_path / "b.zip", {"x/a": b"1", "y/a": b"2"})
    with CheckedZip(tmp_path / "b.zip") as archive, pytest.raises(ArchiveError, match="several members"):
        archive.find("a")


# --- DreamSim


def tower(seed, proj=True):
    """A tower of one block in DINO's naming."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"cls_token": (1, 1, WIDTH), "blocks.0.attn.qkv.weight": (3 * WIDTH, WIDTH), "norm.bias": (WIDTH,)}
    shapes |= {"proj": (WIDTH, 2)} if proj else {}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def adapter(pattern="base_model.model.extractor_list.{}.model.blocks.0.attn.qkv.lora_{}.weight"):
    generator = torch.Generator().manual_seed(9)
    shapes = {"A": (RANK, WIDTH), "B": (3 * WIDTH, RANK)}
    return {
        pattern.format(place, side): torch.randn(shape, generator=generator)
        for place in range(3)
        for side, shape in shapes.items()
    }


def pickled(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def members(**changes):
    """The archive as published, one block a tower; a change to ``None`` leaves the member out."""
    plain = {
        "dino_vitb16_pretrain.pth": b"never opened",
        "clip_vitb16_pretrain.pth.tar": pickled({"state_dict": tower(1)}),
        "open_clip_vitb16_pretrain.pth.tar": pickled({"state_dict": tower(2)}),
        "ensemble_lora/adapter_config.json": json.dumps({"r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.3}),
        "ensemble_lora/adapter_model.safetensors": save(adapter()),
    }
    renamed = {name.replace("__", "/"): content for name, content in changes.items()}
    return {name: content for name, content in {**plain, **renamed}.items() if content is not None}


@pytest.fixture
def ensemble(folder, catalogue, make_entry):
    """Put an archive and its DINO tower in place."""
    catalogue(
        own=make_entry({"file": "a.zip", "container": "dreamsim_archive", "needs": ["dino"]}),
        dino=make_entry({"file": "d.pth", "container": "state_dict"}),
    )
    (folder / "own").mkdir()
    (folder / "dino").mkdir()
    torch.save(tower(0, proj=False), folder / "dino" / "d.pth")
    return lambda content: packed(folder / "own" / "a.zip", content)


def merged_by_hand():
    wanted = {}
    for place in range(3):
        for name, tensor in tower(place, proj=place > 0).items():
            middle = "" if name == "proj" else "model."
            wanted[f"extractor_list.{place}.{middle}{name}"] = tensor.clone()
    parts = adapter()
    for place in range(3):
        stem = f"base_model.model.extractor_list.{place}.model.blocks.0.attn.qkv.lora_"
        down, up = parts[f"{stem}A.weight"], parts[f"{stem}B.weight"]
        weight = wanted[f"extractor_list.{place}.model.blocks.0.attn.qkv.weight"]
        for row in range(3 * WIDTH):
            for column in range(WIDTH):
                added = sum(up[row, k] * down[k, column] for k in range(RANK))
                weight[row, column] += ALPHA / RANK * added
    return wanted


def check(state):
    wanted = merged_by_hand()
    assert set(state) == set(wanted)
    for name, tensor in wanted.items():
        torch.testing.assert_close(state[name], tensor)


def test_towers_and_adapter_are_merged(ensemble):
    ensemble(members())
    check(load_state("own"))


@pytest.mark.parametrize(
    "pattern",
    [
        "base_model.model.extractor_list.{}.model.blocks.0.attn.qkv.lora_{}.default.weight",
        "extractor_list.{}.model.blocks.0.attn.qkv.lora_{}.weight",
        "base_model.model.base_model.model.extractor_list.{}.model.base_model.model.blocks.0.attn.qkv.lora_{}.weight",
    ],
)
def test_wrappers_in_the_names_of_an_adapter_do_not_matter(ensemble, pattern):
    content = members(
        **{
            "ensemble_lora__adapter_model.safetensors": None,
            "ensemble_lora__adapter_model.bin": pickled(adapter(pattern)),
        }
    )
    ensemble({f"some_folder/{name}": data for name, data in content.items()})
    check(load_state("own"))


def config(**changes):
    plain = {"r": RANK, "lora_alpha": ALPHA}
    return {"ensemble_lora__adapter_config.json": json.dumps({**plain, **changes})}


def weights(**changes):
    parts = {name: changes.get(name.split(".lora_")[1][0], tensor) for name, tensor in adapter().items()}
    parts = {name: tensor.clone() for name, tensor in parts.items() if tensor is not None}
    return {"ensemble_lora__adapter_model.safetensors": save(parts | changes.get("more", {}))}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clip_vitb16_pretrain.pth.tar": None, "x/clip.tar": b""}, "holds no clip_vitb16_pretrain.pth.tar"),
        ({"ensemble_lora__adapter_config.json": None}, "holds no ensemble_lora/adapter_config.json"),
        ({"ensemble_lora__adapter_model.safetensors": None}, "adapter_model.safetensors or"),
        ({"ensemble_lora__adapter_config.json": "{"}, "does not state r and lora_alpha"),
        ({"ensemble_lora__adapter_config.json": "[1]"}, "does not state r and lora_alpha"),
        (config(r=0), "has r 0 and lora_alpha 3.0"),
        (config(r="16"), "has r '16'"),
        (config(use_rslora=True), "uses use_rslora, which is another formula"),
        (config(r=1), "with r 1 and a weight of"),
        (weights(A=torch.ones(RANK, WIDTH + 1)), "it must be [2, 4], [12, 2]"),
        (weights(B=None), "has no side 'B'"),
        (weights(more={"mlp.weight": torch.ones(1)}), "the entry 'mlp.weight', which is none of an attn.qkv"),
        (weights(more={k.replace("blocks.0", "blocks.7"): v for k, v in adapter().items()}), "do not fit"),
        ({"clip_vitb16_pretrain.pth.tar": pickled({"model": {}})}, "no entry 'state_dict'"),
        ({"clip_vitb16_pretrain.pth.tar": pickled({"state_dict": tower(1, proj=False)})}, "has no entry proj"),
        ({"ensemble_lora__adapter_model.safetensors": b"12345678"}, "no whole safetensors file"),
        ({"../evil": b"x"}, "leads out of the archive"),
    ],
)
def test_what_does_not_fit_is_named(ensemble, changes, said):
    ensemble(members(**changes))
    with pytest.raises(ItemError) as raised:
        load_state("own")
    assert raised.value.reason is Reason.BAD_WEIGHTS
    assert said in raised.value.message


def test_without_its_dino_tower_the_one_to_fetch_is_named(ensemble, folder):
    ensemble(members())
    (folder / "dino" / "d.pth").unlink()
    with pytest.raises(ItemError, match="`gen-eval weights fetch dino`") as raised:
        load_state("own")
    assert raised.value.reason is Reason.MISSING_WEIGHTS
