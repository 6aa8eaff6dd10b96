"""The converter: options are left out, nothing acts, the process is confined, what was done is written down."""

import argparse
import collections
import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from gen_eval.records import InputError
from gen_eval.weights import _child, converting, digest, load_state, locate
from gen_eval.weights.converting import ConversionError, convert
from gen_eval.weights.digests import compute_digest, pin

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7)}


class Evil:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def options():
    """What training code leaves in its files."""
    shared = torch.ones(4)
    return {
        "state_dict": {"module.a.weight": TENSORS["a.weight"], "module.b": TENSORS["b"]},
        "shared": collections.OrderedDict(x=shared, y=shared[:2]),
        "args": argparse.Namespace(lr=1e-3, betas=[0.9, 0.999]),
        "best": np.float64(0.25),
        "steps": np.int64(3),
        "flag": np.bool_(True),
    }


def test_training_options_are_left_out_and_the_checkpoint_loads(own):
    path = own(
        "a.pth",
        "nested",
        lambda path: torch.save(options(), path, _use_new_zipfile_serialization=False),
        key="state_dict",
    )
    source = compute_digest(path)
    with pytest.raises(InputError, match=f"has SHA-256 {source}, which neither the catalogue nor the lock file knows"):
        convert(path)
    pin("own/a.pth", source)
    made = convert(path)
    state = load_state("own")
    assert sorted(state) == ["a.weight", "b"]
    assert torch.equal(state["a.weight"], TENSORS["a.weight"])
    assert locate("own").path == made.path
    assert digest("own") == source  # the same tensors, so the same identity
    record = json.loads((path.parent / "a.pth.safetensors.json").read_text())
    assert record == made.record
    assert record["source"]["sha256"] == source
    assert record["result"]["sha256"] == compute_digest(made.path)
    assert "argparse.Namespace" in record["allowed_globals"]
    assert record["key"] == "state_dict"
    assert "audit hook" in record["network"]
    assert not list(path.parent.glob("*.part"))


def test_a_changed_conversion_is_noticed(own):
    from gen_eval.records import ItemError

    path = own("a.pth", "nested", lambda path: torch.save(options(), path), key="state_dict")
    converted = path.with_name("a.pth.safetensors")
    converted.write_bytes(b"changed")
    record = {"source": {"sha256": compute_digest(path)}, "result": {"sha256": "b" * 64}}
    converted.with_name("a.pth.safetensors.json").write_text(json.dumps(record))
    with pytest.raises(ItemError, match=f"has SHA-256 {compute_digest(converted)}, its record says {'b' * 64}"):
        load_state("own")


def test_a_malicious_pickle_is_refused_and_nothing_runs(folder, tmp_path):
    path = tmp_path / "evil.pth"
    torch.save({**TENSORS, "x": Evil(tmp_path / "owned")}, path)
    with pytest.raises(ConversionError, match=r"it holds \w+\.system, which is never loaded; nothing of it was run"):
        convert(path, trust=True)
    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "evil.pth.safetensors").exists()


def test_limits_hold(folder, tmp_path, monkeypatch):
    path = tmp_path / "a.pth"
    torch.save(TENSORS, path)
    with pytest.raises(ConversionError, match=r"more memory than the converter may use \(--memory\)"):
        convert(path, trust=True, memory=100_000_000)
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    with pytest.raises(ConversionError, match=r"not converted in 1 s \(--timeout\)"):
        convert(path, trust=True, seconds=1)
    assert not list(tmp_path.glob("*.safetensors*"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bytearray(2**32)", "MemoryError"),
        (
            "open({mark!r}, 'wb', buffering=0).write(bytes(5000)); open({mark!r}, 'ab', buffering=0).write(b'x')",
            "OSError",
        ),
        ("while True: pass", ""),
    ],
)
def test_the_child_limits_itself(tmp_path, line, said):
    mark = str(tmp_path / "mark")
    code = f"import runpy; runpy.run_path({_child.__file__!r})['limit'](2**30, 1, 4000)\n{line.format(mark=mark)}"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 if said else done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}
    assert said in done.stderr


def test_what_is_not_ours_is_not_written_over(folder, tmp_path):
    path = tmp_path / "a.pth"
    torch.save(TENSORS, path)
    (tmp_path / "a.pth.safetensors").write_bytes(b"someone's")
    with pytest.raises(InputError, match="was not made by the converter; give another --out"):
        convert(path, trust=True)


def test_a_file_that_is_not_there(folder, tmp_path):
    with pytest.raises(InputError, match="is no file"):
        convert(tmp_path / "absent.pth", trust=True)


ATTEMPTS = {
    "a socket": "import socket; socket.socket()",
    "a connection": "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)",
    "a name": "import socket; socket.getaddrinfo('localhost', 80)",
    "a program": "import subprocess; subprocess.run(['true'])",
    "a shell": "import os; os.system('true')",
    "a fork": "import os; os.fork()",
    "a file": "open('{mark}', 'w')",
    "a file by number": "import os; os.open('{mark}', os.O_WRONLY | os.O_CREAT)",
    "a removal": "import os; os.remove('{victim}')",
    "a new name": "import os; os.rename('{victim}', '{mark}')",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_in_the_child_these_are_refused(tmp_path, attempt):
    """The hook alone, without the namespace: what Python code could try if any ran."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = ATTEMPTS[attempt].format(port=server.getsockname()[1], mark=tmp_path / "mark", victim=victim)
        code = f"import runpy; runpy.run_path({_child.__file__!r})['forbid']()\n{line}"
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "PermissionError" in done.stderr
    assert "not allowed while converting" in done.stderr
    assert victim.exists()
    assert not (tmp_path / "mark").exists()


def test_the_child_sees_no_proxies_and_no_secrets(monkeypatch):
    seen = {}

    def run(_command, **kwargs):
        seen.update(kwargs["env"])
        raise subprocess.TimeoutExpired("", 1)

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ConversionError):
        converting._ask_child({"file": "a", "seconds": 1})
    assert set(seen) <= {"PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"}
