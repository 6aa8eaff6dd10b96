"""Killed, interrupted, failed, sharded, started again: the run ends the same."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from api.services.reporting import render
from api.services.results import RunResults

PIXELS = ("--metrics", "blur_ssim,edge_f1")
REPORTS = ("html", "json", "csv", "parquet", "tex")

# a metric that can be told to fail once, or to wait, for one sample; it reads its orders from the environment
PLUGIN = """
import os, pathlib, time
from gen_eval.features import FRAMES, Metric
from gen_eval.records import MetricResult

class Troubled(Metric):
    name, track, inputs, unit, bounds, source = "troubled", "quality", "single", "level", (0, 255), "a test"
    def meter(self, measure, member, *, image=None):
        return Meter()
    def decide(self, counts, decide):
        return MetricResult.of(self.name, counts)

class Meter:
    level = 0.0
    def update(self, chunk):
        self.level = max(self.level, float(chunk[FRAMES].mean()))
        folder = pathlib.Path(os.environ["TROUBLE"])
        for order in folder.glob("*"):
            kind, wanted = order.name.split("@")
            if abs(float(wanted) - self.level) < 1e-6:
                if kind == "fail":
                    order.unlink()
                    raise RuntimeError("told to fail once")
                if kind == "wait":
                    (folder.parent / "waiting").touch()
                    time.sleep(600)
    def counts(self):
        return self.level
METRIC = Troubled()
"""


@pytest.fixture
def troubled(plugin, tmp_path):
    configs = tmp_path / "configs" / "protocols"
    configs.mkdir(parents=True)
    (configs / "troubled.yaml").write_text("troubled: {corrected: {}}")
    (tmp_path / "orders").mkdir()
    env = plugin("troubles", PLUGIN, metrics={"troubled": "troubles:METRIC"})
    return {**env, "GEN_EVAL_CONFIGS": str(tmp_path / "configs"), "TROUBLE": str(tmp_path / "orders")}


def level_of(path):
    from gen_eval.media import read_clip

    return float(read_clip(path).frames.mean())  # clips of one chunk


def reports(run):
    """A report of the run in every form; what `gen-eval report` writes."""
    return {kind: render([RunResults.read(run)], f".{kind}") for kind in REPORTS}


def test_resume_tries_failed_items_again_and_does_nothing_twice(cli, start, small_benchmark, troubled, tmp_path):
    """H12: ten items, number 2 fails once, the process is killed during number 7, started again, and a third time."""
    _, videos = small_benchmark(10, seeds=(0,), frames=8)
    options = ["score", "quality", "--videos", videos, "--metrics", "troubled,temporal_flickering", "--workers", "1"]
    whole = cli(*options, "--out", "whole", "--json", **troubled)
    assert whole.code == 0, whole
    assert whole.json["aggregate"]["troubled"]["corrected"]["n"] == 10

    orders = tmp_path / "orders"
    once = {**troubled, "GEN_EVAL_ATTEMPTS": "1"}
    (orders / f"fail@{level_of(videos / 'item02__0.mp4')}").touch()
    (orders / f"wait@{level_of(videos / 'item07__0.mp4')}").touch()
    process = start(*options, "--out", "run", **once)
    wait_for(tmp_path / "waiting", process)
    process.kill()
    process.wait()
    for order in orders.iterdir():
        order.unlink()

    from gen_eval.records.run import RunFolder

    with RunFolder(tmp_path / "run") as run:
        before = {(row.sample, row.metric): row for row in run.rows() if row.protocol == "corrected"}
    assert before["item02", "troubled"].reason == "internal_error"
    assert before["item02", "temporal_flickering"].reason is None
    assert ("item07", "troubled") not in before
    assert len(before) == 14

    again = cli(*options, "--out", "run", "--json", **once)
    assert again.code == 0, again
    assert again.json == whole.json
    keys = [tuple(row[key] for key in ("sample", "member", "metric", "protocol")) for row in again.json["rows"]]
    assert len(keys) == len(set(keys))
    assert len([key for key in keys if key[2] == "troubled"]) == 10

    first = (tmp_path / "run" / "report.html").read_bytes()
    third = cli(*options, "--out", "run", "--json", **once)
    assert "nothing was left to do" in third.err
    assert (tmp_path / "run" / "report.html").read_bytes() == first
    assert (tmp_path / "whole" / "report.html").read_bytes() == first


def test_an_item_that_fails_once_is_tried_again_within_the_run(cli, small_benchmark, troubled, tmp_path):
    _, videos = small_benchmark(2, seeds=(0,), frames=8)
    (tmp_path / "orders" / f"fail@{level_of(videos / 'item01__0.mp4')}").touch()
    done = cli("score", "quality", "--videos", videos, "--metrics", "troubled", "--out", "run", "--json", **troubled)
    assert done.code == 0, done
    log = [json.loads(line) for line in (tmp_path / "run" / "run.log.jsonl").read_text().splitlines()]
    assert sorted(line["attempt"] for line in log if line["event"] == "group") == [1, 2]


def wait_for(path, process, seconds=300):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, "it never got there"
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def killed_at_random(cli, killed, small_benchmark, tmp_path, moments, seed):
    """The first kill comes before the first group is written or soon after, the others between first and last."""
    data, videos = small_benchmark(6, frames=9)
    options = ["score", "control", "--videos", videos, "--data", data, *PIXELS]
    whole = cli(*options, "--out", "whole", "--json")
    assert whole.code == 0, whole
    rows, seconds = len(whole.json["rows"]), seconds_of_a_group(tmp_path / "whole")
    rng = random.Random(seed)
    for number in range(moments):
        run = tmp_path / f"run{number}"
        groups, delay = (rng.randint(1, 4) if number else 0), rng.uniform(0, 2 * seconds)
        left = killed([*options, "--workers", "2"], run, rows, groups, delay)
        assert 0 < left < rows or (number == 0 and left == 0)
        again = cli(*options, "--out", run, "--json")
        assert again.code == 0, again
        assert again.json == whole.json
        assert (run / "report.html").read_bytes() == (tmp_path / "whole" / "report.html").read_bytes()
    expected = reports(tmp_path / "whole")
    assert reports(tmp_path / f"run{moments - 1}") == expected


def seconds_of_a_group(run):
    """The longest time that a group took, by the run's own log."""
    log = [json.loads(line) for line in (run / "run.log.jsonl").read_text().splitlines()]
    return max(line["seconds"] for line in log if line["event"] == "group")


def test_killed_at_random_moments_it_ends_with_the_same_report(cli, killed, small_benchmark, tmp_path):
    killed_at_random(cli, killed, small_benchmark, tmp_path, moments=3, seed=20)


@pytest.mark.soak
def test_killed_at_twenty_random_moments(cli, killed, small_benchmark, tmp_path):
    killed_at_random(cli, killed, small_benchmark, tmp_path, moments=20, seed=7)


def test_nothing_is_left_running_after_a_kill(start, small_benchmark, troubled, tmp_path):
    """Killed while one of two workers is within an item, so that all processes are there."""
    _, videos = small_benchmark(4, seeds=(0,), frames=8)
    (tmp_path / "orders" / f"wait@{level_of(videos / 'item02__0.mp4')}").touch()
    options = ["score", "quality", "--videos", videos, "--metrics", "troubled", "--out", "run", "--workers", "2"]
    process = start(*options, **troubled)
    wait_for(tmp_path / "waiting", process)
    assert len(session_members(process.pid)) >= 4, "the command, two workers and a decoder"
    process.kill()
    process.wait()
    end = time.monotonic() + 120  # the item would wait for longer
    while members := session_members(process.pid):
        assert time.monotonic() < end, f"still running: {members}"
        time.sleep(0.1)


def session_members(leader):
    """Processes of the session that `leader` began."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader:
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if state != "Z":
                        found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_done_and_exits_130(start, cli, small_benchmark, troubled, tmp_path, how):
    _, videos = small_benchmark(4, seeds=(0,), frames=8)
    options = ["score", "quality", "--videos", videos, "--metrics", "troubled", "--workers", "1", "--out", "run"]
    (tmp_path / "orders" / f"wait@{level_of(videos / 'item02__0.mp4')}").touch()
    process = start(*options, **troubled)
    wait_for(tmp_path / "waiting", process)
    process.send_signal(how)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert b"goes on from there" in err
    for order in (tmp_path / "orders").iterdir():
        order.unlink()
    again = cli(*options, "--json", **troubled)
    assert again.code == 0, again
    assert again.json["aggregate"]["troubled"]["corrected"]["n"] == 4


def test_values_do_not_depend_on_workers_chunks_or_order(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(3, frames=12)
    options = ["score", "control", "--videos", videos, "--data", data, *PIXELS, "--json"]
    one = cli(*options, "--out", "one", "--workers", "1").json
    two = cli(*options, "--out", "two", "--workers", "2").json
    assert one == two
    other = cli(*options, "--out", "three", "--workers", "1", "--chunk", "5").json
    for mine, theirs in zip(one["rows"], other["rows"], strict=True):
        assert mine["reason"] == theirs["reason"]
        assert mine["value"] is theirs["value"] or mine["value"] == pytest.approx(theirs["value"], rel=1e-5)
    for folder in (videos, data):  # the same clips under names that sort the other way round
        for path in folder.glob("item*"):
            path.rename(path.with_name(path.name.replace("item", f"z{9 - int(path.name[4:6])}")))
    turned = cli(*options, "--out", "four", "--workers", "2").json
    by_clip = [
        {
            (int(row["sample"][-2:]), row["member"], row["metric"], row["protocol"]): row["value"]
            for row in found["rows"]
        }
        for found in (one, turned)
    ]
    assert [row["sample"] for row in turned["rows"]] == sorted(row["sample"] for row in turned["rows"])
    assert by_clip[0] == by_clip[1]


def test_shards_merge_into_the_whole(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(5)
    options = ["score", "control", "--videos", videos, "--data", data, *PIXELS]
    whole = cli(*options, "--out", "whole", "--json")
    for index in (1, 2, 3):
        done = cli(*options, "--out", f"part{index}", "--shard", f"{index}/3", "--json")
        assert done.code == 0, done
    merged = cli("merge", "part1", "part2", "part3", "--out", "merged")
    assert merged.code == 0, merged
    assert reports(tmp_path / "merged") == reports(tmp_path / "whole")
    again = cli(*options, "--out", "merged", "--json")
    assert "nothing was left to do" in again.err
    assert again.json == whole.json


def test_update_keeps_rows_whose_inputs_did_not_change(cli, small_benchmark, tmp_path, make_clip):
    from gen_eval.media import write_clip

    data, videos = small_benchmark(3, seeds=(0,))
    options = ["score", "control", "--videos", videos, "--data", data, *PIXELS, "--json"]
    first = cli(*options, "--out", "run")
    write_clip(videos / "item01__0.mp4", make_clip(77), 24.0, lossless=True)
    refused = cli(*options, "--out", "run")
    assert refused.code == 2
    assert "item01" in refused.err
    assert "--update" in refused.err
    updated = cli(*options, "--out", "run", "--update")
    assert updated.code == 0, updated
    log = [json.loads(line) for line in (tmp_path / "run" / "run.log.jsonl").read_text().splitlines()]
    assert [line["group"][1] for line in log if line["event"] == "group"][-1:] == ["item01"]
    assert sum(line["event"] == "group" for line in log) == 4
    fresh = cli(*options, "--out", "fresh")
    assert updated.json == fresh.json
    assert updated.json != first.json


def test_a_store_elsewhere_holds_several_runs(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(2)
    url = f"sqlite:///{tmp_path}/shared.sqlite"
    options = ["score", "control", "--videos", videos, "--data", data, *PIXELS, "--store", url, "--json"]
    both = cli(*options, "--out", "both")
    one = cli(*options, "--out", "one", "--limit", "1")
    assert both.code == one.code == 0, one
    assert not list((tmp_path / "both").glob("scores.sqlite"))
    assert len(one.json["rows"]) * 2 == len(both.json["rows"])
    missing = cli("report", "both", "--out", "r.json")
    assert missing.code == 2
    assert "--store" in missing.err
    found = cli("report", "both", "--out", "r.json", GEN_EVAL_STORE=url)
    assert found.code == 0, found


def test_shards_may_share_a_store(cli, small_benchmark, tmp_path):
    data, videos = small_benchmark(3, seeds=(0,))
    url = f"sqlite:///{tmp_path}/shared.sqlite"
    options = ["score", "control", "--videos", videos, "--data", data, "--store", url, "--metrics", "edge_f1", "--json"]
    parts = [cli(*options, "--out", f"part{index}", "--shard", f"{index}/2") for index in (1, 2)]
    assert [part.code for part in parts] == [0, 0], parts
    whole = cli(*options, "--out", "part1", "--shard", "1/2")
    assert len(whole.json["rows"]) == 3 * 2
