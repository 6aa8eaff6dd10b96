import errno
import json
import shutil

import pytest

from gen_eval.records import InputError, Score, Status, digest_of
from gen_eval.records.run import MANIFEST_FORMAT, RunFolder, differing

MANIFEST = {"format": MANIFEST_FORMAT, "model": "m", "samples": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]}


def row(sample="a", value=0.5):
    return Score("m", sample, "0", "blur_ssim", "corrected", value, Status.OK)


def test_the_id_is_the_digest_of_the_manifest(tmp_path):
    with RunFolder.create(tmp_path / "run", MANIFEST) as run:
        assert run.id == digest_of(MANIFEST)
        assert run.store.manifest(run.id) is not None
    assert json.loads((tmp_path / "run" / "manifest.json").read_text()) == MANIFEST


def test_the_same_manifest_opens_the_same_run(tmp_path):
    with RunFolder.create(tmp_path, MANIFEST) as run:
        run.write([row()])
    with RunFolder.create(tmp_path, dict(reversed(MANIFEST.items()))) as run:
        assert list(run.rows()) == [row()]


def test_another_manifest_is_refused_and_the_difference_named(tmp_path):
    RunFolder.create(tmp_path, MANIFEST).close()
    other = {**MANIFEST, "samples": [{"id": "a", "x": 1}, {"id": "b", "x": 3}]}
    with pytest.raises(InputError, match=r"samples\.b\.x: 2 -> 3") as caught:
        RunFolder.create(tmp_path, other)
    assert "--update" in str(caught.value)


def test_become_keeps_what_it_is_given_and_forgets_the_rest(tmp_path):
    other = {**MANIFEST, "model": "n"}
    with RunFolder.create(tmp_path, MANIFEST) as run:
        run.write([row("a"), row("b")])
        before = run.become(other, [row("a")])
        assert run.store.count(before) == 0
    with RunFolder(tmp_path) as run:
        assert run.manifest == other
        assert list(run.rows()) == [row("a")]


def test_two_writers_are_told_apart(tmp_path):
    with (
        RunFolder.create(tmp_path, MANIFEST) as run,
        run.locked(),
        RunFolder(tmp_path) as second,
        pytest.raises(InputError, match="another process is writing"),
        second.locked(),
    ):
        pass


def test_the_lock_falls_when_it_is_left(tmp_path):
    with RunFolder.create(tmp_path, MANIFEST) as run:
        for _ in range(2):
            with run.locked():
                pass


def test_a_shard_cannot_become_another(tmp_path):
    with RunFolder.create(tmp_path, MANIFEST) as run:
        run.mark_shard((1, 2))
        run.write([row()])
        assert run.shard == (1, 2)
        with pytest.raises(InputError, match="holds shard 1/2 and cannot take shard 2/2"):
            run.mark_shard((2, 2))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}'])
def test_a_damaged_manifest_is_an_input_error(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match="manifest"):
        RunFolder(tmp_path)


def test_a_folder_without_a_run_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="is no run"):
        RunFolder(tmp_path)


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    RunFolder.create(tmp_path, MANIFEST).close()
    left = tmp_path / "curves" / ".abc.parquet.xyz.part"
    left.write_bytes(b"half")
    with RunFolder.create(tmp_path, MANIFEST) as run:
        assert left.exists()  # before the lock is held it may be what another process is writing right now
        with run.locked():
            assert not left.exists()


def test_differing_names_every_place():
    first = {"a": {"b": 1, "c": [1, 2]}, "d": None}
    second = {"a": {"b": 2, "c": [1]}, "e": "x"}
    assert differing(first, second) == ["a.b: 1 -> 2", "a.c: [1,2] -> [1]", 'e: null -> "x"']
    assert differing(first, first) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"index": 1}', '{"index": "x", "of": 2}'])
def test_a_damaged_shard_mark_is_named(tmp_path, content):
    with RunFolder.create(tmp_path, MANIFEST) as run:
        (tmp_path / "shard.json").write_text(content)
        with pytest.raises(InputError, match=r"shard\.json cannot be read"):
            run.mark_shard(None)


def test_a_folder_that_is_deleted_under_a_run_is_named_and_not_made_anew(tmp_path):
    with RunFolder.create(tmp_path / "run", MANIFEST) as run, run.locked():
        shutil.rmtree(run.path)
        for write in (lambda: run.add_curves(b"x"), lambda: run.add_picture(b"x"), lambda: run.log("x")):
            with pytest.raises(InputError, match="the folder is gone"):
                write()
        with pytest.raises(InputError, match="cannot be used"):
            run.write([row()])
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_named_and_writing_goes_on_when_there_is_room(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunFolder.create(tmp_path, MANIFEST) as run, run.locked():
        with monkeypatch.context() as patch:
            patch.setattr("gen_eval.records.files.os.fsync", full)
            with pytest.raises(InputError, match=r"No space left on device\. Make room"):
                run.add_curves(b"curve")
        digest = run.add_curves(b"curve")
        assert [path.name for path in run.curves.iterdir()] == [f"{digest}.parquet"]
