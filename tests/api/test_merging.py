"""Shards become the run that one machine would have made; nothing is mixed, and nothing is done twice."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from api.services.merging import merge
from api.services.reporting import SUFFIXES, render
from api.services.results import RunResults
from gen_eval.records import InputError, Reason
from gen_eval.records.run import RunFolder


@pytest.fixture
def manifest(maker):
    names = [f"s{number}" for number in range(7)]
    return maker.manifest([maker.sample(name, domain="av" if name in {"s1", "s2"} else "robot") for name in names])


@pytest.fixture
def shards(maker, manifest):
    return [maker(f"shard{number}", manifest, shard=(number, 3)) for number in (1, 2, 3)]


def reports(path):
    return {suffix: render([RunResults.read(path)], suffix) for suffix in SUFFIXES}


def contents(path):
    """Digest of every file that a report is made of, and the rows."""
    files = [one for folder in ("curves", "frames") for one in (path / folder).iterdir()]
    digests = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in files}
    return digests, (path / "manifest.json").read_bytes(), RunResults.read(path).rows


def test_shards_in_any_order_give_the_whole_run(maker, manifest, shards, tmp_path):
    whole = maker("whole", manifest)
    merged = merge([shards[2], shards[0], shards[1]], tmp_path / "merged")
    assert merged.complete
    assert (merged.rows, merged.written) == (56, 56)
    assert contents(tmp_path / "merged") == contents(whole)
    assert reports(tmp_path / "merged") == reports(whole)
    assert not (tmp_path / "merged" / "shard.json").exists()


def test_a_second_merge_does_nothing(shards, tmp_path):
    merge(shards, tmp_path / "merged")
    before, rows = contents(tmp_path / "merged"), (tmp_path / "merged" / "scores.sqlite").read_bytes()
    again = merge(shards, tmp_path / "merged")
    assert (again.rows, again.written, again.complete) == (56, 0, True)
    assert contents(tmp_path / "merged") == before
    assert (tmp_path / "merged" / "scores.sqlite").read_bytes() == rows


def test_a_missing_shard_is_named_and_can_follow(shards, tmp_path):
    merged = merge([shards[0], shards[2]], tmp_path / "merged")
    assert not merged.complete
    assert merged.missing_shards == ("2/3",)
    assert {key[1] for key in merged.missing} == {"s1", "s4"}
    assert len(merged.missing) == 16
    later = merge([shards[1]], tmp_path / "merged")
    assert (later.written, later.complete, later.missing_shards) == (16, True, ())


def test_rows_that_a_given_shard_lacks_are_listed_without_calling_the_shard_missing(maker, manifest, shards, tmp_path):
    lacking = maker("lacking", manifest, shard=(2, 3), change=lambda row: None if row.sample == "s4" else row)
    merged = merge([shards[0], lacking, shards[2]], tmp_path / "merged")
    assert {key[1] for key in merged.missing} == {"s4"}
    assert merged.missing_shards == ()


def test_runs_of_other_manifests_are_refused_with_what_differs(maker, manifest, shards, tmp_path):
    other = maker("other", {**manifest, "chunk": 16}, shard=(2, 3))
    with pytest.raises(InputError, match=r"shard of the same run.*what differs: chunk: 8 -> 16"):
        merge([shards[0], other], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_overlapping_rows_must_be_equal(maker, manifest, shards, tmp_path):
    whole = maker("whole", manifest)
    assert merge([whole, *shards], tmp_path / "merged").complete
    changed = maker("changed", manifest, change=lambda row: replace(row, value=0.25) if row.sample == "s3" else row)
    with pytest.raises(InputError, match=r"shard1 and .*changed both hold the row alpha / s3 / 0 / .* differ in value"):
        merge([shards[0], changed], tmp_path / "another")
    with pytest.raises(InputError, match="already holds another row"):
        merge([changed], tmp_path / "merged")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_settled_row_takes_the_place_of_one_that_may_end_otherwise(maker, manifest, shards, tmp_path, backwards):
    def change(row):
        return maker.missing(row, Reason.OUT_OF_MEMORY, "memory ran out") if row.sample == "s0" else row

    unlucky = maker("unlucky", manifest, shard=(1, 3), change=change)
    given = [unlucky, *shards]
    merge(given[::-1] if backwards else given, tmp_path / "merged")
    assert {row.reason for row in RunResults.read(tmp_path / "merged").rows} == {None}
    later = tmp_path / "later"
    merge([unlucky, shards[1], shards[2]], later)
    assert merge(shards, later).written == 8
    assert contents(later) == contents(tmp_path / "merged")
    assert merge([unlucky], later).written == 0


def test_a_damaged_file_is_refused(shards, tmp_path):
    picture = next((shards[1] / "frames").iterdir())
    picture.write_bytes(picture.read_bytes()[:-1])
    with pytest.raises(InputError, match=f"{picture.name} is damaged"):
        merge(shards[1:], tmp_path / "merged")
    picture.unlink()
    merged = merge([shards[1]], tmp_path / "merged")
    assert merged.missing_files == (f"frames/{picture.name}",)
    assert not merged.complete


def test_a_row_that_points_outside_is_refused(maker, manifest, tmp_path):
    (tmp_path / "secret.parquet").write_bytes(b"x")
    run = maker("hostile", manifest, change=lambda row: replace(row, curve="../../secret"))
    with pytest.raises(InputError, match="is no digest"):
        merge([run], tmp_path / "merged")


def test_the_place_of_the_merged_run_is_checked(maker, manifest, shards, tmp_path):
    with pytest.raises(InputError, match="is one of the runs to merge"):
        merge(shards, shards[0])
    fourth = maker("fourth", manifest, shard=(1, 2))
    with pytest.raises(InputError, match="holds shard 1/2 itself"):
        merge(shards, fourth)
    with pytest.raises(InputError, match="nothing to merge"):
        merge([], tmp_path / "merged")
    with pytest.raises(InputError, match="is no run"):
        merge([tmp_path / "nowhere"], tmp_path / "merged")


def test_rows_can_go_into_a_database(maker, manifest, shards, tmp_path):
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    merged = merge(shards, tmp_path / "merged", store=url)
    assert merged.complete
    assert not (tmp_path / "merged" / "scores.sqlite").exists()
    there = RunResults.read(tmp_path / "merged", store=url)
    whole = RunResults.read(maker("whole", manifest))
    assert there.rows == whole.rows
    assert render([there], ".html") == render([whole], ".html")
    assert merge(shards, tmp_path / "merged", store=url).written == 0


_KILLED = """
import os, signal, sys
from pathlib import Path
from api.services import merging
from gen_eval.records.run import RunFolder

merging._BATCH = 10
moment, calls = int(sys.argv[1]), 0

def counted(function):
    def call(*arguments):
        global calls
        calls += 1
        if calls == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return call

RunFolder.write = counted(RunFolder.write)
merging.write_atomic = counted(merging.write_atomic)
merging.merge([Path(one) for one in sys.argv[3:]], Path(sys.argv[2]))
"""


@pytest.mark.parametrize("moment", [1, 5, 12, 18, 22])
def test_killed_at_any_moment_it_is_finished_by_the_same_call(maker, manifest, shards, tmp_path, moment):
    """Seven curve files and ten pictures, then six batches of rows are written."""
    out = tmp_path / "merged"
    script = [sys.executable, "-c", _KILLED, str(moment), out, *shards]
    done = subprocess.run(script, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}, timeout=120)
    assert done.returncode == -signal.SIGKILL
    with RunFolder(out) as run:
        for row in run.rows():
            assert (out / "curves" / f"{row.curve}.parquet").is_file()
            assert all((out / "frames" / f"{name}.jpg").is_file() for name in row.frames.values())
    assert merge(shards, out).complete
    whole = maker("whole", manifest)
    assert contents(out) == contents(whole)
    assert reports(out) == reports(whole)


def test_the_command_says_what_is_missing_and_writes_the_report(cli, maker, manifest, shards, tmp_path):
    half = cli("merge", shards[0], shards[1], "--out", "merged")
    assert half.code == 1
    assert "missing shards: 3/3" in half.out
    assert "missing: 16 rows of 2 samples: s2, s5" in half.out
    done = cli("merge", *shards, "--out", "merged", "--json")
    assert done.code == 0
    assert done.json["complete"] is True
    assert done.json["missing"] == []
    whole = maker("whole", manifest)
    assert (tmp_path / "merged" / "report.html").read_bytes() == render([RunResults.read(whole)], ".html")
    refused = cli("merge", shards[0], tmp_path, "--out", "merged")
    assert refused.code == 2
    assert json.loads((tmp_path / "merged" / "manifest.json").read_text()) == manifest
