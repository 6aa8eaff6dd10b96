"""Digests: computed once, noticed when the file changes, pinned on first use, safe with several processes."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from gen_eval.records import InputError, ItemError, Reason
from gen_eval.settings import settings
from gen_eval.weights import digest, locate
from gen_eval.weights import digests as module


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def here(own):
    """The checkpoint `own`, holding the bytes `first`."""
    return own("a.pth", "state_dict", lambda path: path.write_bytes(b"first"))


def test_a_digest_is_that_of_the_file_and_none_without_one(own):
    path = own("a.pth", "state_dict")
    assert digest("own") is None
    assert locate("own") is None
    path.write_bytes(b"first")
    assert digest("own") == sha(b"first")
    assert locate("own").path == path


def test_a_digest_is_read_once_until_the_file_changes(here, folder, monkeypatch):
    assert digest("own") == sha(b"first")
    assert json.loads((folder / "digests.json").read_text())["own/a.pth"]["sha256"] == sha(b"first")
    with monkeypatch.context() as patch:
        patch.setattr(module, "compute_digest", lambda _path: pytest.fail("read again"))
        assert digest("own") == sha(b"first")
    here.write_bytes(b"other")  # of the same length
    os.utime(here, ns=(1, 1))
    assert digest("own") == sha(b"other")


@pytest.mark.parametrize("content", ["{", "[]", '{"own/a.pth": 3}', '{"own/a.pth": {"size": 5}}'])
def test_a_damaged_memory_costs_time_only(here, folder, content):
    (folder / "digests.json").write_text(content)
    assert digest("own") == sha(b"first")


def test_the_first_use_pins_and_another_file_is_an_error_with_both_digests(here, folder):
    locate("own").check()
    assert json.loads((folder / "lock.json").read_text()) == {"own/a.pth": sha(b"first")}
    here.write_bytes(b"second")
    with pytest.raises(ItemError, match="weights verify own --pin") as raised:
        locate("own").check()
    assert raised.value.reason is Reason.BAD_WEIGHTS
    assert sha(b"first") in raised.value.message
    assert sha(b"second") in raised.value.message
    assert str(folder) not in raised.value.message


@pytest.mark.parametrize("field", ["sha256", "sha256_prefix"])
def test_a_published_digest_wins_over_a_pinned_one(own, field):
    wanted = sha(b"right")[: 64 if field == "sha256" else 8]
    path = own("a.pth", "state_dict", lambda path: path.write_bytes(b"wrong"), **{field: wanted})
    module.pin("own/a.pth", sha(b"wrong"))
    with pytest.raises(ItemError, match=f"has SHA-256 {sha(b'wrong')}, published is {wanted}"):
        locate("own").check()
    path.write_bytes(b"right")
    if field == "sha256":
        locate("own").check()
    else:  # the pin says more than a beginning does
        with pytest.raises(ItemError, match="pinned is"):
            locate("own").check()


def test_a_project_keeps_its_pins_where_it_likes(here, tmp_path, folder, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS_LOCK", str(tmp_path / "project" / "weights.lock.json"))
    settings.cache_clear()
    locate("own").check()
    assert not (folder / "lock.json").exists()
    text = (tmp_path / "project" / "weights.lock.json").read_text()
    assert json.loads(text) == {"own/a.pth": sha(b"first")}
    assert str(tmp_path) not in text


@pytest.mark.parametrize("content", ["{", "[1]", '{"own/a.pth": 7}'])
def test_a_damaged_lock_file_is_named_and_not_written_over(here, folder, content):
    (folder / "lock.json").write_text(content)
    with pytest.raises(InputError, match=r"lock\.json .*put it in order or delete it"):
        locate("own").check()
    assert (folder / "lock.json").read_text() == content


def test_a_mirror_is_looked_into_second_and_never_written(here, tmp_path, monkeypatch):
    mirror = tmp_path / "mirror"
    (mirror / "own").mkdir(parents=True)
    (mirror / "own" / "a.pth").write_bytes(b"mirrored")
    monkeypatch.setenv("GEN_EVAL_WEIGHTS_MIRROR", str(mirror))
    settings.cache_clear()
    assert digest("own") == sha(b"first")
    here.unlink()
    before = sorted(mirror.rglob("*"))
    assert digest("own") == sha(b"mirrored")
    locate("own").check()
    assert sorted(mirror.rglob("*")) == before


def test_the_digest_of_files_that_are_read_together_covers_all(folder, catalogue, make_entry):
    catalogue(
        whole=make_entry({"file": "w.zip", "container": "dreamsim_archive", "needs": ["part"]}),
        part=make_entry({"file": "p.pth", "container": "state_dict"}),
    )
    for name, file in (("whole", "w.zip"), ("part", "p.pth")):
        (folder / name).mkdir()
        (folder / name / file).write_bytes(name.encode())
    both = digest("whole")
    assert both not in {None, sha(b"whole"), sha(b"part")}
    (folder / "part" / "p.pth").write_bytes(b"another")
    assert digest("whole") not in {None, both}
    (folder / "part" / "p.pth").unlink()
    assert digest("whole") is None


def test_processes_that_pin_at_once_lose_nothing(folder):
    code = """
import sys
from gen_eval.weights.digests import pin
for number in range(20):
    assert pin(f"{sys.argv[1]}/{number}", "a" * 64)
"""
    started = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(3)]
    assert [process.wait(timeout=120) for process in started] == [0, 0, 0]
    assert len(module.pins()) == 60
    assert not list(folder.glob("*.part"))
