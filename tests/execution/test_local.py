import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from gen_eval.execution import Done, Lost, parse_shard, run_groups, shard_of
from gen_eval.records import InputError, Reason


def double(item):
    return 2 * item


def die_on(item, *, victim, folder, times):
    """Kill this process on ``victim`` until it has happened ``times`` times."""
    marks = Path(folder)
    if item == victim and len(list(marks.iterdir())) < times:
        (marks / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def leave(item):
    os._exit(7) if item == 1 else None
    return item


def outcomes(results):
    return {one.item: one for one in results}


@pytest.mark.parametrize("workers", [1, 2])
def test_every_item_once(workers):
    found = outcomes(run_groups(range(9), double, workers=workers))
    assert {item: one.result for item, one in found.items()} == {item: 2 * item for item in range(9)}


def test_a_killed_worker_costs_nothing_but_another_try(tmp_path):
    work = partial(die_on, victim=3, folder=str(tmp_path), times=1)
    found = outcomes(run_groups(range(6), work, workers=2, attempts=2))
    assert sorted(found) == list(range(6))
    assert isinstance(found[3], Done)
    assert found[3].attempt == 2


def test_an_item_that_always_kills_is_lost_and_the_others_go_on(tmp_path):
    work = partial(die_on, victim=3, folder=str(tmp_path), times=99)
    found = outcomes(run_groups(range(6), work, workers=2, attempts=2))
    assert isinstance(found[3], Lost)
    assert found[3].reason is Reason.OUT_OF_MEMORY
    assert "SIGKILL in 2 attempts" in found[3].message
    assert sum(isinstance(one, Done) for one in found.values()) == 5


def test_an_exit_is_named():
    found = outcomes(run_groups([1, 2], leave, workers=2, attempts=1))
    assert found[1].reason is Reason.INTERNAL_ERROR
    assert "exit code 7" in found[1].message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_result_may_ask_for_another_try(workers, tmp_path):
    def ask(result):
        return result < 0

    work = partial(negative_first, folder=str(tmp_path))
    found = outcomes(run_groups([1, 2, 3], work, workers=workers, attempts=3, again=ask))
    assert {item: (one.result, one.attempt) for item, one in found.items()} == {1: (1, 2), 2: (2, 2), 3: (3, 2)}


def negative_first(item, *, folder):
    mark = Path(folder) / str(item)
    if mark.exists():
        return item
    mark.touch()
    return -item


def test_the_last_try_is_returned_as_it_is():
    found = outcomes(run_groups([1, 2], double, workers=1, attempts=2, again=lambda result: True))
    assert {item: one.attempt for item, one in found.items()} == {1: 2, 2: 2}


def slow(item):
    time.sleep(600)
    return item


def test_closing_the_iterator_ends_the_workers():
    results = run_groups(range(4), first_fast, workers=2)
    next(results)
    assert len(multiprocessing.active_children()) == 2
    results.close()
    assert multiprocessing.active_children() == []


def first_fast(item):
    return item if item == 0 else slow(item)


def test_shards_share_everything_once():
    items = list(range(11))
    parts = [shard_of(items, (i, 4)) for i in range(1, 5)]
    assert sorted(item for part in parts for item in part) == items
    assert shard_of(items, None) == items


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", ""])
def test_a_bad_shard_says_what_is_expected(text):
    with pytest.raises(InputError, match="i/N with 1 <= i <= N"):
        parse_shard(text)
