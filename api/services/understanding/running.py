"""`gen-eval understand run`: asking a model the questions of a task; resumable, and nothing is asked twice.

Every way of asking that is compared (numbers of frames, thinking, effort) is a run folder of its own, so that reports
and comparisons read each like any other run: ``--out`` itself for one, folders below it for several.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from api.services.asking import QuestionGroup, ask_groups_async
from api.services.manifest_entries import Digests, Progress, environment, silent
from api.services.understanding.asking import ROTATION, TaskAsking, spread_subset
from api.services.understanding.checking import check_capabilities, check_request
from api.services.understanding.decoding import decoding_of
from api.services.understanding.documents import ModelScores, Scored
from api.services.understanding.further import further_of
from api.services.understanding.manifest import manifest_of
from api.services.understanding.request import Condition, TaskRequest
from api.services.understanding.rows import Scorer, by_condition
from api.services.understanding.runs import ConditionRun, TaskRun
from api.services.understanding.second_stage import SecondReader
from gen_eval.execution import shard_of
from gen_eval.mllm import ModelEntry, load_model
from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.mllm.cache import ReplyCache, cache_of_settings
from gen_eval.mllm.taking import entry_as_taken
from gen_eval.protocols.shown import load_shown
from gen_eval.records import Answer, InputError, Reason, Score
from gen_eval.records.answer import MAIN
from gen_eval.records.run import RunFolder
from understanding.data.samples import Samples
from understanding.task import REPLIES
from understanding.tasks.choices import SECOND_STAGE, ChoiceTask


@dataclass(frozen=True)
class Working:
    """How the work is done; nothing here moves a score.

    Attributes:
        store: database URL for rows and answers instead of the run folders.
        shard: (i, N) when only every N-th question is to be asked here.
        update: turn another run in the same folder into this one; answers to equal requests are kept.
        limits: how hard the endpoint is asked; as set by the environment by default.
    """

    store: str | None = None
    limits: Limits | None = None
    shard: tuple[int, int] | None = None
    update: bool = False


def run_task(request: TaskRequest, out: Path, how: Working | None = None, *, progress: Progress = silent) -> TaskRun:
    """Ask everything that ``out`` holds no answer for, and write answers and rows.

    Raises:
        InputError: bad input, or ``out`` holds another run.
        MissingPart: the endpoint or a package is absent; what was answered is kept.
        KeyboardInterrupt: stopped by the user; what was answered is kept.
    """
    return asyncio.run(run_task_async(request, out, how, progress=progress))


async def run_task_async(
    request: TaskRequest, out: Path, how: Working | None = None, *, progress: Progress = silent
) -> TaskRun:
    """:func:`run_task` for callers with an event loop of their own."""
    how = how or Working()
    entry = load_model(request.model, endpoint=request.endpoint, served_as=request.served_as)
    check_request(request, entry)
    scorer = Scorer.of(request.task, request.protocol, request.dialect, preset=request.preset)
    samples = scorer.main.samples(request.data, media=request.media).restricted(request.domains).limited(request.limit)
    if not samples.samples:
        raise InputError(f"{request.data} holds no question with a right answer; there is nothing to ask")
    conditions = request.conditions()
    for condition in conditions:
        decoding_of(request, condition, entry, scorer.main)  # what cannot be used is said before anything is read
    digests = Digests(progress, total=len(samples.samples))
    files = {one.id: _digest(one, digests) for one in samples.samples}
    done = []
    with cache_of_settings() as cache:
        client = open_client(entry, device=request.device, dtype=request.dtype)
        async with Asker(client, limits=how.limits or Limits.of_settings(), cache=cache) as asker:
            await asker.identity()  # what a server does is known after that
            check_capabilities(request, entry, client.capabilities)
            for condition in conditions:
                work = _Work(request.alone(condition), condition, entry, scorer, samples, files, how, cache, progress)
                folder = out if len(conditions) == 1 else out / condition.folder
                done.append(await work.run(asker, folder))
    return TaskRun(request.task, done)


def asking_of(
    request: TaskRequest, condition: Condition, entry: ModelEntry, scorer: Scorer, samples: Samples[Any]
) -> TaskAsking:
    """How the questions are put under one condition."""
    main = scorer.main
    decoding = decoding_of(request, condition, entry, main)
    preset = None
    if condition.frames != 0:
        preset = load_shown(decoding.preset or main.form["preset"])
        preset = preset if condition.frames is None else preset.with_frames(condition.frames)
    seeds: dict[str, int | None] = {str(seed): seed for seed in request.seeds} or {"0": None}
    rotated = spread_subset([one.id for one in samples.samples], request.rotations)
    return TaskAsking(main, entry, preset, decoding.options, seeds, rotated, decoding.record)


def _digest(sample: Any, digests: Digests) -> str | None:
    digests.step()
    return digests.of(sample.media.path) if sample.media is not None and sample.media.path is not None else None


@dataclass(frozen=True)
class _Work:
    """One condition."""

    request: TaskRequest
    condition: Condition
    entry: ModelEntry
    scorer: Scorer
    samples: Samples[Any]
    files: Mapping[str, str | None]
    how: Working
    cache: ReplyCache | None
    progress: Progress

    @property
    def blind(self) -> bool:
        """Whether nothing of the video is shown."""
        return self.condition.frames == 0

    @property
    def mine(self) -> list[Any]:
        """The questions that are asked here: all, or those of this shard."""
        return shard_of(self.samples.samples, self.how.shard)

    @property
    def label(self) -> str:
        return self.request.label or self.entry.name

    def asking(self) -> TaskAsking:
        return asking_of(self.request, self.condition, self.entry, self.scorer, self.samples)

    async def run(self, asker: Asker, out: Path) -> ConditionRun:
        """Ask, score, and say what came of it."""
        asking = self.asking()
        identity = (await asker.identity()).to_json()
        second = await self._second_stage()
        try:
            record = None if second is None else await second.record()
            manifest = self._manifest(asking, identity, record)
            if self.how.update:
                RunFolder.turn(out, manifest, store=self.how.store)
            fixed = {name: manifest[name] for name in ("asked", "preset", "environment")}
            scorer = replace(self.scorer, model=self.label, fixed=fixed)
            asking = replace(asking, entry=entry_as_taken(asker.client))
            with RunFolder.create(out, manifest, store=self.how.store) as run, run.locked():
                run.mark_shard(self.how.shard)
                run.log("start", host=platform.node(), questions=len(self.mine))
                await self._ask(run, asking, asker, scorer)
                if second is not None:
                    await second.read(run, self.label, scorer, self.samples.by_id, self.progress)
                run.log("end", tally=asker.tally.to_json())
                scores = self._scores(run, scorer, asking, second is not None)
                return ConditionRun(self.condition, run.id, out, replace(scores, run=out), asker.tally)
        finally:
            if second is not None:
                await second.asker.aclose()

    def _manifest(
        self, asking: TaskAsking, identity: Mapping[str, Any], second: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        main, preset = self.scorer.main, asking.preset
        shown: dict[str, Any] = {"name": "without video", "limit": None, "digest": None}
        if preset is not None:
            shown = {"name": preset.name, "limit": None, "digest": preset.digest, "frames": self.condition.frames}
        asked = {
            "model": self.entry.to_json(),
            "identity": dict(identity),
            "form": {name: main.form[name] for name in ("name", "digest")},
            "options": asking.options.asked,
            "decoding": dict(asking.decoding),
            "rotated": sorted(asking.rotated),
            "second_stage": second,
        }
        words = self.condition.words
        members = {one.id: list(asking.seeds) for one in self.samples.samples}
        manifest = manifest_of(
            replace(self.scorer, model=self.label),
            self.samples,
            members,
            self.samples.rejected,
            protocol=self.request.protocol,
            preset=shown,
            digests=self.files,
            asked=asked,
            **({"condition": words} if words else {}),
        )
        domains = None if self.request.domains is None else sorted(self.request.domains)
        return {**manifest, "environment": environment(), "limit": self.request.limit, "domains": domains}

    # --- asking ---------------------------------------------------------------------------------------------------

    async def _ask(self, run: RunFolder, asking: TaskAsking, asker: Asker, scorer: Scorer) -> None:
        absent = [] if self.blind else [one for one in self.mine if not _has_media(one)]
        run.write(row for sample in absent for row in self._absent_rows(sample, scorer, asking))
        names = {one.id for one in absent}
        by_id = {one.id: one for one in self.mine if one.id not in names}
        pending = self._pending(run, asking, scorer, list(by_id.values()))

        def finish(group: QuestionGroup, answers: Sequence[Answer]) -> list[Score]:
            return scorer.rows_of(by_id[group.sample], group.member, {one.condition: one for one in answers})

        groups = asking.groups(list(by_id.values()), wanted=pending)
        await ask_groups_async(run, self.label, groups, asker, finish, progress=self.progress)

    def _absent_rows(self, sample: Any, scorer: Scorer, asking: TaskAsking) -> list[Score]:
        name = sample.media.name if sample.media is not None else "none named"
        message = f"the clip is not here ({name}); the question is not asked without it"
        rows: list[Score] = []
        for member in asking.seeds:
            answer = Answer(self.label, sample.id, member, "", reason=Reason.MISSING_MEDIA, message=message)
            rows += scorer.rows(scorer.scores(sample, member, answer), None)
        return rows

    def _pending(
        self, run: RunFolder, asking: TaskAsking, scorer: Scorer, samples: Sequence[Any]
    ) -> set[tuple[str, str]]:
        """Sample and seed of every group in which a row or a rotated answer is not there, or may end otherwise."""
        settled = run.settled()
        answered = {(one.sample, one.member, one.condition) for one in run.answers() if one.settled}
        found = set()
        for sample in samples:
            wanted = [f"{ROTATION}{places}" for places in asking.rotations(sample)]
            for member in asking.seeds:
                keys = [(self.label, sample.id, member, one.metric, one.protocol.name) for one in scorer.tasks]
                asked = [(sample.id, member, condition) for condition in (MAIN, *wanted)]
                if not (all(key in settled for key in keys) and all(one in answered for one in asked)):
                    found.add((sample.id, member))
        return found

    # --- the second stage -------------------------------------------------------------------------------------------

    async def _second_stage(self) -> SecondReader | None:
        """Who reads the replies that the reader could not."""
        if self.request.second_stage is None:
            return None
        bound = next((one for one in self.scorer.tasks if one.reading == REPLIES), None)
        if not isinstance(bound, ChoiceTask):
            raise InputError(f"{self.scorer.main.name} has no letters to be read; leave --second-stage out")
        entry = load_model(self.request.second_stage, endpoint=self.request.second_endpoint)
        client = open_client(entry, device=self.request.device, dtype=self.request.dtype)
        return SecondReader(Asker(client, limits=self.how.limits or Limits.of_settings(), cache=self.cache), bound)

    # --- what came of it ------------------------------------------------------------------------------------------

    def _scores(self, run: RunFolder, scorer: Scorer, asking: TaskAsking, second: bool) -> ModelScores:
        """All scores, made again from the answers of the run; clips that are not here have none."""
        answers = by_condition([one for one in run.answers() if one.model == self.label])
        scored: list[Scored] = []
        for sample in self.mine:
            missing = not self.blind and not _has_media(sample)
            for member in asking.seeds:
                own = {} if missing else answers.get((sample.id, member), {})
                if missing:
                    gap = Answer(self.label, sample.id, member, "", reason=Reason.MISSING_MEDIA, message="no clip")
                    scored.append(Scored(scorer.scores(sample, member, gap)))
                    continue
                read = own.get(SECOND_STAGE) if second else None
                scored.append(Scored(scorer.scores(sample, member, own.get(MAIN), read), own.get(MAIN)))
        main = scorer.main.protocol.name
        rows = [row for row in run.rows() if row.protocol == main]
        return ModelScores(scorer, scored, self.samples.rejected, further_of(run.manifest, rows, run.answers()))


def _has_media(sample: Any) -> bool:
    return sample.media is not None and bool(sample.media.present)
