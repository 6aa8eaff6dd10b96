"""Judging a folder of videos: resumable, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from api.services.asking import QuestionGroup, ask_groups_async
from api.services.domain.asking import Asking, question_groups
from api.services.domain.preparation import Prepared, prepare, read_data
from api.services.domain.request import DomainRequest
from api.services.domain.rows import RowMaker
from api.services.domain.scenes import truth_of_clips
from api.services.judged import STORED
from api.services.manifest_entries import Progress, silent
from gen_eval.execution import shard_of
from gen_eval.media import sha256_file
from gen_eval.mllm import ChatClient
from gen_eval.mllm.asking import Asker, Limits, Tally, open_client
from gen_eval.mllm.cache import cache_of_settings
from gen_eval.mllm.taking import entry_as_taken
from gen_eval.protocols.shown import load_shown
from gen_eval.records import Answer, Generation, Group, Score
from gen_eval.records.run import RunFolder
from judge import simulated
from judge.domain import METRIC
from judge.entry import JudgeEntry, load_judge
from judge.predictions import read_replies


@dataclass(frozen=True)
class Judging:
    """How the work is done; nothing here moves a score.

    Attributes:
        shard: (i, N) when only every N-th sample is to be done here.
        store: database URL for rows and answers instead of the run folder.
        update: turn another run in the same folder into this one; answers to equal requests are kept.
        limits: how hard the endpoint is asked; as set by the environment by default.
    """

    shard: tuple[int, int] | None = None
    store: str | None = None
    update: bool = False
    limits: Limits | None = None


@dataclass(frozen=True)
class Judged:
    """What a call of :func:`score_domain` did.

    Attributes:
        run: id of the run.
        asked: samples that were worked on.
        kept: samples whose rows were there already.
        tally: requests, retries, tokens and cost of this call.
    """

    run: str
    asked: int
    kept: int
    tally: Tally | None


def score_domain(
    request: DomainRequest, out: Path, how: Judging | None = None, *, progress: Progress = silent
) -> Judged:
    """Ask the judge everything that ``out`` holds no answer for, and write rows.

    Raises:
        InputError: bad input, or ``out`` holds another run.
        MissingPart: the endpoint or the judge's package is absent; what was answered is kept.
        KeyboardInterrupt: stopped by the user; what was answered is kept.
    """
    return asyncio.run(score_domain_async(request, out, how, progress=progress))


async def score_domain_async(
    request: DomainRequest, out: Path, how: Judging | None = None, *, progress: Progress = silent
) -> Judged:
    """:func:`score_domain` for callers with an event loop of their own."""
    how = how or Judging()
    assert request.judge is not None, "stored replies are scored by score_replies"
    judge = load_judge(request.judge, endpoint=request.endpoint, served_as=request.served_as)
    asking = asking_of(request, judge)
    prepared = await asyncio.to_thread(prepare, request, (), progress)
    client = open_client(judge.model, device=request.device, dtype=request.dtype)
    tell_truth(client, prepared)
    with cache_of_settings() as cache:
        async with Asker(client, limits=how.limits or Limits.of_settings(), cache=cache) as asker:
            return await _score(prepared, asking, asker, out, how, progress)


def score_replies(
    request: DomainRequest, out: Path, how: Judging | None = None, *, progress: Progress = silent
) -> Judged:
    """Score the replies of ``request.predictions``; nobody is asked.

    Raises:
        InputError: bad input, or ``out`` holds another run.
    """
    how = how or Judging()
    path = request.predictions
    assert path is not None
    data = read_data(request)
    stored = read_replies(path, data.questions.by_sample, model=request.model)
    if request.model is None and request.videos is None and stored.model:
        request = replace(request, model=stored.model)
    prepared = prepare(request, [key[:2] for key in stored.answers], progress, data=data)
    prepared = replace(prepared, rejected=(*prepared.rejected, *stored.rejected))
    source = {"path": path.name, "sha256": sha256_file(path)}
    judge = {"name": STORED, "title": STORED, "simulated": False, "replies": source}
    manifest = prepared.manifest(judge, {"name": "not known", "limit": None, "digest": None})
    maker = RowMaker(
        prepared.questions, prepared.protocols, prepared.keyless, prepared.benchmark.has_domains, {"judge": judge}
    )
    by_place: dict[tuple[str, str], list[Answer]] = {}
    for (sample, seed, _), answer in stored.answers.items():
        by_place.setdefault((sample, seed), []).append(replace(answer, model=request.label))
    if how.update:
        RunFolder.turn(out, manifest, store=how.store)
    with RunFolder.create(out, manifest, store=how.store) as run, run.locked():
        run.mark_shard(how.shard)
        mine = shard_of(prepared.groups, how.shard)
        todo = pending(run, prepared, mine)
        places = {place: own for place, own in places_of(todo).items() if own[1].problem is None}
        run.write_answers(answer for place in places for answer in by_place.get(place, ()))
        rows = [row for place, own in places.items() for row in maker.rows(*own, by_place.get(place, []))]
        run.write([*absent_rows(maker, todo), *rows])
        return Judged(run.id, asked=len(todo), kept=len(mine) - len(todo), tally=None)


def asking_of(request: DomainRequest, judge: JudgeEntry) -> Asking:
    """How this run puts its questions to ``judge``."""
    judge = judge if request.prompt is None else judge.with_prompt(request.prompt)
    if request.logprobs is not None:
        judge = replace(judge, options=replace(judge.options, logprobs=request.logprobs))
    return Asking(judge, load_shown(request.preset or judge.preset), request.conditions)


def judge_entry(asking: Asking, identity: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of who answers and what it is asked."""
    return {**asking.judge.to_json(), "simulated": asking.judge.simulated, "identity": dict(identity)}


async def _score(
    prepared: Prepared, asking: Asking, asker: Asker, out: Path, how: Judging, progress: Progress
) -> Judged:
    judge = judge_entry(asking, (await asker.identity()).to_json())
    preset = {"name": asking.preset.name, "limit": None, "digest": asking.preset.digest}
    manifest = prepared.manifest(judge, preset)
    if how.update:
        RunFolder.turn(out, manifest, store=how.store)
    maker = RowMaker(
        prepared.questions,
        prepared.protocols,
        prepared.keyless,
        prepared.benchmark.has_domains,
        {"judge": judge, "preset": preset["digest"]},
    )
    # the manifest has the entry as it is written; clips are shown as this backend takes them, which answers record
    asking = replace(asking, judge=replace(asking.judge, model=entry_as_taken(asker.client)))
    with RunFolder.create(out, manifest, store=how.store) as run, run.locked():
        run.mark_shard(how.shard)
        mine = shard_of(prepared.groups, how.shard)
        todo = pending(run, prepared, mine)
        price = asker.entry.price
        run.log(
            "start",
            host=platform.node(),
            groups=len(mine),
            pending=len(todo),
            price=None if price is None else price.model_dump(),
        )
        run.write(absent_rows(maker, todo))
        await _ask(run, prepared, todo, asking, asker, maker, progress)
        run.log("end", tally=asker.tally.to_json())
        return Judged(run.id, asked=len(todo), kept=len(mine) - len(todo), tally=asker.tally)


async def _ask(
    run: RunFolder,
    prepared: Prepared,
    todo: Sequence[Group],
    asking: Asking,
    asker: Asker,
    maker: RowMaker,
    progress: Progress,
) -> None:
    places = places_of(todo)

    def finish(asked: QuestionGroup, answers: Sequence[Answer]) -> list[Score]:
        return maker.rows(*places[asked.sample, asked.member], answers)

    mine = question_groups(prepared.groups, prepared.questions, asking, wanted=places.keys())
    await ask_groups_async(run, prepared.request.label, mine, asker, finish, progress=progress)


def places_of(groups: Sequence[Group]) -> dict[tuple[str, str], tuple[Group, Generation]]:
    """Sample and member -> where their rows belong."""
    return {(group.sample.id, member.member): (group, member) for group in groups for member in group.members}


def absent_rows(maker: RowMaker, groups: Sequence[Group]) -> list[Score]:
    """Rows of the videos that cannot be asked about."""
    members = [(group, member) for group in groups for member in group.members if member.problem is not None]
    return [row for group, member in members for row in maker.without_asking(group, member)]


def pending(run: RunFolder, prepared: Prepared, groups: Sequence[Group]) -> list[Group]:
    """The groups with a row that is not there, or that may end otherwise when it is asked again."""
    settled = run.settled()
    names = [(METRIC.name, protocol.name) for protocol in prepared.protocols]
    return [
        group
        for group in groups
        if any(
            (group.model, group.sample.id, member.member, *name) not in settled
            for member in group.members
            for name in names
        )
    ]


def tell_truth(client: ChatClient, prepared: Prepared) -> None:
    """Tell a simulated judge what it is to get right so and so often; real ones are never told.

    That is the key of every question, and of clips of scenes what is seen in them.
    """
    if isinstance(client, simulated.Client):
        keys = simulated.truth_of(prepared.questions)
        client.learn({**keys, **truth_of_clips(prepared.request.data, prepared.request.videos)})
