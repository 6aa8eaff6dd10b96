"""Digests and questions about files never hang and never surprise."""

import hashlib
import os

import pytest

from gen_eval.media import sha256_file
from gen_eval.records.files import is_file


def test_the_digest_is_that_of_the_bytes(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(content)
    assert sha256_file(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_a_pipe_a_device_and_a_folder_have_no_digest(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "endless", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            sha256_file(path)


def test_what_cannot_be_a_file_is_none(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    names = ["file", "absent", "loop", "n" * 300, "file/below", "nul\0"]
    assert [name for name in names if is_file(tmp_path / name)] == ["file"]
