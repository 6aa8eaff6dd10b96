"""`gen-eval weights` as a user types it, against a server on this machine."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import gen_eval

CONTENT = bytes(range(256)) * 40
SHA = hashlib.sha256(CONTENT).hexdigest()
TENSORS = {"weight": (1, 768), "bias": (1,)}


def header_only(path, shapes):
    """A safetensors file of zeros."""
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4
        for side in shape:
            size *= side
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))


@pytest.fixture
def weights(cli, tmp_path, site, make_entry):
    """Run `gen-eval weights` with a folder, a hub and a catalogue of its own."""
    hub = {"hub": "someone/networks", "revision": "main"}
    entries = {
        "free": make_entry({"file": "a.pth", "container": "state_dict", "sha256": SHA, **hub}, used_by=["some_metric"]),
        "bound": make_entry(
            {"file": "b.pth", "container": "state_dict", **hub},
            used_by=["some_metric"],
            commercial=False,
            licence="CC BY-NC 4.0",
        ),
        "head": make_entry(
            {"file": "h.safetensors", "container": "safetensors", "companions": ["config.json"], **hub},
            track="control",
            manifest="aesthetic_head",
        ),
        "script": make_entry({"file": "s.pt", "container": "torchscript"}, track="control"),
    }
    configs = tmp_path / "configs" / "weights"
    configs.mkdir(parents=True)
    (configs / "own.yaml").write_text(yaml.safe_dump(entries))
    for file in ("a.pth", "b.pth"):
        site.files[f"/someone/networks/resolve/main/{file}"] = CONTENT
    proxies = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
    env = {
        **proxies,
        "GEN_EVAL_CONFIGS": str(tmp_path / "configs"),
        "GEN_EVAL_WEIGHTS": str(tmp_path / "weights"),
        "GEN_EVAL_HUB": site.address,
    }

    def run(*arguments, **more):
        return cli("weights", *arguments, **{**env, **more})

    run.env = env
    return run


def test_list_says_what_there_is_without_reading_files(weights, tmp_path):
    entries = {entry["id"]: entry for entry in weights("list", "--json").json["weights"]}
    assert {"dino_vitb16", "clip_vitb32_visual", "viclip", "vgg16", "free"} <= set(entries)
    assert entries["amt_s"]["licence"] == "CC BY-NC 4.0"
    assert entries["amt_s"]["commercial"] == "no"
    assert entries["amt_s"]["where"] is None
    assert entries["aesthetic_head"]["digest_published"]
    table = weights("list", "--for", "some_metric").out
    assert "CC BY-NC 4.0" in table
    assert "dino_vitb16" not in table
    assert str(tmp_path / "weights") in table
    assert not (tmp_path / "weights").exists()


def test_a_licence_is_shown_before_downloading_and_must_be_accepted(weights, site, tmp_path):
    refused = weights("fetch", "--for", "some_metric")
    assert refused.code == 2
    assert "bound: A network. CC BY-NC 4.0: no commercial use." in refused.err
    assert "accept these terms with --accept-licence: bound: CC BY-NC 4.0" in refused.err
    assert "`gen-eval weights fetch free`" in refused.err
    assert site.asked == []
    done = weights("fetch", "some_metric", "--accept-licence", "--json")
    assert done.code == 0
    assert "CC BY-NC 4.0: no commercial use" in done.err
    assert [line["status"] for line in done.json["weights"]] == ["fetched", "fetched"]
    assert (tmp_path / "weights" / "bound" / "b.pth").read_bytes() == CONTENT
    assert json.loads((tmp_path / "weights" / "lock.json").read_text()) == {"bound/b.pth": SHA}
    again = weights("fetch", "some_metric")
    assert again.code == 0
    assert again.out.splitlines() == ["bound: present", "free: present"]
    assert len(site.asked) == 2


def test_what_cannot_be_fetched_is_said_and_the_rest_is_fetched(weights, site, tmp_path):
    del site.files["/someone/networks/resolve/main/a.pth"]
    site.files["/someone/networks/resolve/main/h.safetensors"] = CONTENT
    site.files["/someone/networks/resolve/main/config.json"] = b"{}"
    done = weights("fetch", "free", "head", "script", "--json")
    assert done.code == 1
    lines = {line["id"]: line for line in done.json["weights"]}
    assert "the server answered 404" in lines["free"]["message"]
    assert f"put the file at {tmp_path / 'weights' / 'free' / 'a.pth'}" in lines["free"]["message"]
    assert "GEN_EVAL_WEIGHTS_MIRROR" in lines["free"]["message"]
    assert lines["head"]["status"] == "fetched"
    assert (tmp_path / "weights" / "head" / "config.json").read_bytes() == b"{}"
    assert set(json.loads((tmp_path / "weights" / "lock.json").read_text())) == {
        "head/h.safetensors",
        "head/config.json",
    }
    assert "no address is known; put the file at" in lines["script"]["message"]


def test_a_companion_that_is_absent_is_fetched_later(weights, site, tmp_path):
    header_only(tmp_path / "weights" / "head" / "h.safetensors", TENSORS)
    site.files["/someone/networks/resolve/main/config.json"] = b"{}"
    site.files["/someone/networks/resolve/main/h.safetensors"] = CONTENT
    (line,) = weights("fetch", "head", "--json").json["weights"]
    assert line["status"] == "fetched"
    assert (tmp_path / "weights" / "head" / "config.json").read_bytes() == b"{}"
    assert (tmp_path / "weights" / "head" / "h.safetensors").read_bytes() != CONTENT  # it was there and is kept
    assert [path for path, _ in site.asked] == ["/someone/networks/resolve/main/config.json"]
    assert weights("fetch", "head").out.splitlines() == ["head: present"]


def test_a_file_that_differs_from_the_published_digest_is_not_kept(weights, site, tmp_path):
    site.files["/someone/networks/resolve/main/a.pth"] = CONTENT[::-1]
    done = weights("fetch", "free")
    assert done.code == 1
    assert f"expected {SHA}" in done.out
    assert hashlib.sha256(CONTENT[::-1]).hexdigest() in done.out
    assert not (tmp_path / "weights" / "free" / "a.pth").exists()


def test_a_file_that_differs_from_the_pinned_digest_is_not_kept(weights, site, tmp_path):
    (tmp_path / "project.lock.json").write_text(json.dumps({"bound/b.pth": "c" * 64}))
    done = weights("fetch", "bound", "--accept-licence", GEN_EVAL_WEIGHTS_LOCK=str(tmp_path / "project.lock.json"))
    assert done.code == 1
    assert f"expected {'c' * 64}" in done.out


def test_a_full_disk_keeps_the_part_and_the_same_command_goes_on(weights, site, tmp_path):
    limited = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
sys.argv = ["gen-eval", "weights", "fetch", "free"]
from api.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, timeout=120, env={**os.environ, **weights.env}
    )
    assert done.returncode == 1
    assert "no room for a.pth" in done.stdout
    assert "4000 bytes are kept, about 6240 more bytes are needed" in done.stdout
    assert (tmp_path / "weights" / "free" / "a.pth.part").stat().st_size == 4000
    assert weights("fetch", "free").code == 0
    assert site.asked[-1][1]["Range"] == "bytes=4000-"
    assert (tmp_path / "weights" / "free" / "a.pth").read_bytes() == CONTENT


def test_an_interrupted_fetch_says_so_and_goes_on(weights, site, start, tmp_path):
    site.stall = 4000
    process = start("weights", "fetch", "free", **weights.env)
    part = tmp_path / "weights" / "free" / "a.pth.part"
    until = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size == 4000) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert b"the same command goes on from there" in process.stderr.read()
    site.stall = None
    assert weights("fetch", "free").code == 0
    assert site.asked[-1][1]["Range"] == "bytes=4000-"


def test_a_mirror_serves_without_network(weights, site, tmp_path):
    mirror = tmp_path / "mirror"
    (mirror / "bound").mkdir(parents=True)
    (mirror / "bound" / "b.pth").write_bytes(CONTENT)
    env = {"GEN_EVAL_WEIGHTS_MIRROR": str(mirror)}
    done = weights("fetch", "bound", **env)
    assert done.code == 0
    assert done.out == "bound: present\n"
    assert site.asked == []
    listed = {entry["id"]: entry for entry in weights("list", "--json", **env).json["weights"]}
    assert listed["bound"]["where"] == "mirror"
    assert listed["bound"]["digest"] == "as pinned"


def test_an_unknown_name_offers_near_ones(weights):
    done = weights("fetch", "raft_thing")
    assert done.code == 2
    assert "did you mean raft_things" in done.err
    assert "did you mean dino_vitb16" in weights("list", "--for", "dino").err


def test_a_metric_without_a_network_needs_no_checkpoint(weights):
    done = weights("fetch", "temporal_flickering")
    assert done.code == 2
    assert "temporal_flickering needs no checkpoint" in done.err


def test_verify_without_anything_there(weights):
    done = weights("verify", "free")
    assert done.code == 3
    assert "`gen-eval weights fetch free`" in done.err


def test_verify_compares_digests_names_and_shapes(weights, tmp_path):
    path = tmp_path / "weights" / "head" / "h.safetensors"
    header_only(path, TENSORS)
    first = hashlib.sha256(path.read_bytes()).hexdigest()
    done = weights("verify", "head")
    assert done.code == 0, done
    assert f"SHA-256 {first}" in done.out
    assert "digest pinned now; names: 2 as expected" in done.out

    header_only(path, {"weight": (768, 1), "gain": (2,)})  # another network's file
    second = hashlib.sha256(path.read_bytes()).hexdigest()
    done = weights("verify", "head", "--json")
    assert done.code == 1
    line = done.json["weights"][0]
    assert line["status"] == "bad"
    assert f"has SHA-256 {second}, pinned is {first}" in line["problems"][0]

    done = weights("verify", "head", "--pin")
    assert done.code == 1
    assert "1 missing (bias); 1 unexpected (gain); 1 of another shape (weight [768, 1], expected [1, 768])" in done.out
    assert json.loads((tmp_path / "weights" / "lock.json").read_text())["head/h.safetensors"] == second


def test_verify_finds_a_corrupt_file_with_a_published_digest(weights, tmp_path):
    path = tmp_path / "weights" / "free" / "a.pth"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:-1] + b"!")
    done = weights("verify", "free", "--pin")
    assert done.code == 1
    assert f"published is {SHA}" in done.out
    assert hashlib.sha256(path.read_bytes()).hexdigest() in done.out


def test_verify_without_torch_says_what_it_did_not_compare(weights, cli_process, tmp_path):
    path = tmp_path / "weights" / "script" / "s.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    blocked = tmp_path / "blocked" / "torch"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    paths = os.pathsep.join(
        [str(tmp_path / "blocked"), os.environ.get("PYTHONPATH", ""), str(Path(gen_eval.__file__).parents[1])]
    )
    # in a process of its own: in this one another test may have loaded torch
    done = cli_process("weights", "verify", "script", **{**weights.env, "PYTHONPATH": paths})
    assert done.code == 0
    assert "digest pinned now; names: not compared: the package 'torch' is not installed" in done.out
    assert SHA in done.out


def test_convert_makes_a_torchscript_archive_usable(weights, tmp_path):
    import warnings

    import torch

    path = tmp_path / "weights" / "script" / "s.pt"
    path.parent.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(3, 1)).save(str(path))
    refused = weights("convert", "script", "--to", "safetensors")
    assert refused.code == 2
    assert "neither the catalogue nor the lock file knows" in refused.err
    done = weights("convert", "script", "--to", "safetensors", "--trust", "--json")
    assert done.code == 0, done
    assert done.json["tensors"] == 2
    assert done.json["source"]["container"] == "torchscript"
    verified = weights("verify", "script", "--json").json["weights"][0]
    assert verified["status"] == "ok"
    assert verified["sha256"] == done.json["source"]["sha256"]


def test_convert_of_something_that_is_not_there(weights):
    done = weights("convert", "absent.pth")
    assert done.code == 2
    assert "neither a file nor a checkpoint" in done.err
    assert weights("convert", "free").code == 2


def test_convert_of_what_needs_none(weights, tmp_path):
    header_only(tmp_path / "weights" / "head" / "h.safetensors", TENSORS)
    done = weights("convert", "head")
    assert done.code == 2
    assert "is safetensors already" in done.err
    assert len(list((tmp_path / "weights" / "head").iterdir())) == 1
