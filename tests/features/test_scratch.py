"""Scratch folders: gone at the end, and after a kill when the next one is made; those in use stay."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gen_eval.features.scratch import remove_abandoned, scratch_folder

HOLDER = """
import sys, time
from gen_eval.features.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "depth-0.npz").write_bytes(b"0" * 1000)
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def folders(where):
    return sorted(path.name for path in where.iterdir())


def test_a_folder_is_gone_at_the_end_whatever_happens(temporary):
    def interrupted():
        with scratch_folder() as folder:
            (folder / "deep").mkdir()
            (folder / "deep" / "file").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert folders(temporary) == []


def test_a_killed_process_leaves_its_folder_to_the_next_one(temporary):
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, env=os.environ) as holder:
        name = holder.stdout.readline().strip()
        remove_abandoned()
        assert Path(name, "depth-0.npz").is_file(), "a folder in use is not touched"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert len(folders(temporary)) == 1
    with scratch_folder() as folder:
        assert folders(temporary) == [folder.name]
    assert folders(temporary) == []


def test_other_folders_stay(temporary):
    (temporary / "gen-eval-scratch-mine").mkdir()
    (temporary / "other").mkdir()
    remove_abandoned()
    assert folders(temporary) == ["gen-eval-scratch-mine", "other"]
