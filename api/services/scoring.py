"""Scoring a folder of videos: resumable, interruptible, and equal however often it was stopped."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from api.services.manifest_entries import Progress, silent
from api.services.network_facts import runs_networks
from api.services.preparation import Key, Prepared, prepare
from api.services.recording import record, record_lost
from api.services.request import ScoreRequest
from gen_eval.execution import Lost, parse_shard, run_groups, shard_of
from gen_eval.features.plan import Plan
from gen_eval.features.planner import GroupOutcome, score_group
from gen_eval.records import Group, InputError, Score, canonical_json
from gen_eval.records.run import RunFolder
from gen_eval.settings import settings


@dataclass(frozen=True)
class Execution:
    """How the work is done; nothing here moves a score.

    Attributes:
        workers: processes; 0 takes what suits the plan.
        shard: (i, N) when only every N-th group is to be done here.
        store: database URL for the rows instead of the run folder.
        update: take over rows whose inputs did not change from another run in the same folder.
    """

    workers: int = 0
    shard: tuple[int, int] | None = None
    store: str | None = None
    update: bool = False

    def processes(self, plan: Plan) -> int:
        """The number of processes: as asked, else one for each core, but a single one when networks run.

        Each process holds all networks of the run (about 5 GB for the quality track), so more are for the user to ask.
        """
        return self.workers or settings().workers or (1 if runs_networks(plan) else os.cpu_count() or 1)

    def threads(self, plan: Plan) -> int:
        """Threads that each process may use for arithmetic: as set, else the cores divided among the processes."""
        return settings().threads or max(1, (os.cpu_count() or 1) // self.processes(plan))


@dataclass(frozen=True)
class Worked:
    """What a call of :func:`score` did.

    Attributes:
        run: id of the run.
        scored: groups that were worked on.
        kept: groups whose rows were there already.
    """

    run: str
    scored: int
    kept: int


def score(
    request: ScoreRequest,
    out: Path,
    execution: Execution | None = None,
    *,
    progress: Progress = silent,
    on_rows: Callable[[list[Score]], None] = lambda rows: None,
) -> Worked:
    """Score everything that ``request`` names and that ``out`` does not hold yet.

    Args:
        request: what to score.
        out: folder of the run; made when absent, continued when it holds the same run.
        execution: processes, shard, store.
        progress: told how far the work is.
        on_rows: called with the rows of each finished group.

    Raises:
        InputError: bad input, or ``out`` holds another run.
        KeyboardInterrupt: stopped by the user; what was finished is kept and the same call goes on from there.
    """
    how = execution or Execution()
    prepared = prepare(request, progress)
    if how.update:
        take_over(out, prepared, how.store)
    with RunFolder.create(out, prepared.manifest, store=how.store) as run, run.locked():
        run.mark_shard(how.shard)
        mine = shard_of(prepared.groups, how.shard)
        todo = pending(run, prepared, mine)
        run.log(
            "start",
            host=platform.node(),
            workers=how.processes(prepared.plan),
            threads=how.threads(prepared.plan),
            groups=len(mine),
            pending=len(todo),
        )
        _work(run, prepared, todo, how, progress, on_rows)
        run.log("end")
        return Worked(run.id, scored=len(todo), kept=len(mine) - len(todo))


def _work(
    run: RunFolder,
    prepared: Prepared,
    todo: list[Group],
    how: Execution,
    progress: Progress,
    on_rows: Callable[[list[Score]], None],
) -> None:
    progress("scoring", 0, len(todo))
    results = run_groups(
        todo,
        partial(score_group, plan=prepared.plan),
        workers=how.processes(prepared.plan),
        threads=how.threads(prepared.plan),
        attempts=settings().attempts,
        again=_again,
    )
    with closing(results):
        for done, ended in enumerate(results, start=1):
            if isinstance(ended, Lost):
                rows = record_lost(run, prepared, ended)
                run.log("lost", group=ended.item.key, message=ended.message)
            else:
                rows = record(run, prepared, ended.result)
                run.log("group", group=ended.item.key, seconds=ended.seconds, attempt=ended.attempt)
                for trace in ended.result.log:
                    run.log("traceback", group=ended.item.key, text=trace)
            on_rows(rows)
            progress("scoring", done, len(todo))


def _again(outcome: GroupOutcome) -> bool:
    return outcome.transient


def pending(run: RunFolder, prepared: Prepared, groups: list[Group]) -> list[Group]:
    """The groups with a row that is not there, or that may end otherwise when tried again."""
    settled = run.settled()
    return [group for group in groups if any(key not in settled for key, _, _ in prepared.expected(group))]


def take_over(out: Path, prepared: Prepared, store: str | None) -> int:
    """Turn the run in ``out`` into the one that is asked for, keeping each row whose inputs are the same.

    The new run is complete in the store before the manifest changes, and the old one is removed after that, so that a
    kill in between loses nothing: the same call does it again.

    Returns:
        The number of rows that were kept.
    """
    if not (out / "manifest.json").is_file():
        return 0
    started = time.monotonic()
    with RunFolder(out, store=store) as old, old.locked():
        wanted = _wanted(prepared)
        kept = [row for row in old.rows() if wanted.get(row.key) == row.inputs]
        replaced = old.become(prepared.manifest, kept)
        old.log("update", replaced=replaced, kept=len(kept), seconds=time.monotonic() - started)
        return len(kept)


def _wanted(prepared: Prepared) -> dict[Key, str]:
    """Every row that the run will have, with the digest of all that it is computed from."""
    return {
        key: prepared.inputs_digest(key, measurement, protocol)
        for group in prepared.groups
        for key, measurement, protocol in prepared.expected(group)
    }


def plan_only(
    request: ScoreRequest, out: Path, execution: Execution | None = None
) -> tuple[Prepared, list[Group], list[Group]]:
    """What :func:`score` would do, without writing anything: the preparation, the groups to be scored, all groups.

    Raises:
        InputError: bad input, or ``out`` holds another run and rows are not to be taken over.
    """
    how = execution or Execution()
    prepared = prepare(request)
    mine = shard_of(prepared.groups, how.shard)
    if not (out / "manifest.json").is_file():
        return prepared, mine, mine
    with RunFolder(out, store=how.store) as run:
        if run.manifest == json.loads(canonical_json(dict(prepared.manifest))):
            return prepared, pending(run, prepared, mine), mine
        if not how.update:
            raise InputError(f"{out} holds another run ({run.id[:12]}); give another --out, or --update")
        settled = run.settled()
        wanted = _wanted(prepared)
        kept = {row.key for row in run.rows() if row.key in settled and row.inputs == wanted.get(row.key)}
        return prepared, [one for one in mine if any(key not in kept for key, _, _ in prepared.expected(one))], mine


__all__ = ["Execution", "Worked", "parse_shard", "pending", "plan_only", "score", "take_over"]
