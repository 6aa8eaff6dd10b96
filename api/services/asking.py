"""Asking a model many questions about many clips: each clip decoded once, each answer kept as it comes.

A *question group* is one clip (or none) with all questions about it. A few groups are in flight at a time, so memory
does not grow with their number; how many requests are under way at once is the asker's affair. An answer is written to
the run the moment it is there, and is not asked for again: after a kill the same call asks what is left.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.services.keeping import Keeper
from api.services.manifest_entries import Progress, silent
from gen_eval.mllm import ChatError, ChatRequest
from gen_eval.mllm.answering import answered
from gen_eval.mllm.asking import Asker
from gen_eval.mllm.showing import Shown
from gen_eval.records import Answer, ItemError, MissingPart, Score, digest_of
from gen_eval.records.answer import MAIN
from gen_eval.records.run import RunFolder

CLIP = "clip"
"""The clip that a group is about."""

_SILENT_AFTER = 24
"""So many failed calls in a row, of different questions, mean that the endpoint is gone and not that they are hard."""


@dataclass(frozen=True)
class Question:
    """One question about the clip of its group.

    Attributes:
        uid: its name within the sample; empty where a sample has one question.
        request: makes the request from what is shown.
        condition: what is changed, see :class:`gen_eval.records.Answer`.
        shows: which clip of the group is shown; empty for a question that is asked without any.
    """

    uid: str
    request: Callable[[Shown | None], ChatRequest]
    condition: str = MAIN
    shows: str = CLIP

    @property
    def key(self) -> tuple[str, str]:
        """What tells the questions of a group apart."""
        return (self.uid, self.condition)


@dataclass(frozen=True)
class QuestionGroup:
    """One clip and all questions about it.

    Attributes:
        sample: id of the sample.
        member: seed of the generation, or of the run.
        clips: name -> what decodes that clip and encodes what is shown of it, once for all questions; raises ItemError
            when that cannot be done. Nearly always only :data:`CLIP`.
        questions: what is asked; keys are unique.
    """

    sample: str
    member: str
    clips: Mapping[str, Callable[[], Shown]]
    questions: tuple[Question, ...]


Finish = Callable[[QuestionGroup, Sequence[Answer]], Iterable[Score]]
"""Turns the answers of a group into its rows."""


def ask_groups(
    run: RunFolder,
    model: str,
    groups: Sequence[QuestionGroup],
    asker: Asker,
    finish: Finish,
    *,
    at_once: int = 0,
    progress: Progress = silent,
) -> None:
    """Ask everything that ``run`` has no lasting answer for, and write answers and rows.

    Args:
        run: where answers and rows go.
        model: label of the system that is evaluated.
        groups: what is asked.
        asker: asks, and is left open.
        finish: called when a group is complete.
        at_once: groups in flight; 0 takes twice the number of cores, at least four.
        progress: told how far the questions are.

    Raises:
        InputError: the model or the key is refused by the endpoint.
        MissingPart: the endpoint does not answer any more.
        KeyboardInterrupt: stopped by the user; what was answered is kept.
    """
    asyncio.run(ask_groups_async(run, model, groups, asker, finish, at_once=at_once, progress=progress))


async def ask_groups_async(
    run: RunFolder,
    model: str,
    groups: Sequence[QuestionGroup],
    asker: Asker,
    finish: Finish,
    *,
    at_once: int = 0,
    progress: Progress = silent,
) -> None:
    """:func:`ask_groups` for callers with an event loop of their own."""
    answered_by = digest_of((await asker.identity()).to_json())
    left = iter(groups)
    async with Keeper(run) as keeper:
        work = _Work(run, keeper, model, asker, finish, progress, sum(len(group.questions) for group in groups))
        work.answered_by = answered_by

        async def worker() -> None:
            for group in left:  # shared by all workers: each takes the next one
                await work.do(group)

        await _all_or_first_error([worker() for _ in range(at_once or max(4, 2 * (os.cpu_count() or 1)))])


async def _all_or_first_error(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; the first error cancels the others and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Work:
    """What the workers of one call share."""

    def __init__(
        self,
        run: RunFolder,
        keeper: Keeper,
        model: str,
        asker: Asker,
        finish: Finish,
        progress: Progress,
        total: int,
    ) -> None:
        self.run, self.keeper, self.model, self.asker, self.finish = run, keeper, model, asker, finish
        self.answered_by = ""
        self._progress, self._total, self._done = progress, total, 0
        self._decoding = asyncio.Semaphore(os.cpu_count() or 1)
        self._failed_in_a_row = 0
        self._failed_groups: set[tuple[str, str]] = set()

    async def do(self, group: QuestionGroup) -> None:
        """Ask what is left of ``group`` and write its rows."""
        known = {(one.question, one.condition): one for one in self._known(group)}
        needed = dict.fromkeys(question.shows for question in group.questions if question.shows)
        shown = {name: await self._shown(group.clips[name]) for name in needed}
        found: list[Answer] = []

        async def one(question: Question) -> None:
            found.append(await self._answer(group, question, shown.get(question.shows), known.get(question.key)))
            self._done += 1
            self._progress("asking", self._done, self._total)

        await _all_or_first_error([one(question) for question in group.questions])
        found.sort(key=lambda answer: answer.key)
        await self.keeper.write(self.finish(group, found))
        self.run.log(
            "asked",
            group=(group.sample, group.member),
            seconds=[round(answer.seconds, 4) for answer in found],
            attempts=[answer.attempts for answer in found],
        )

    def _known(self, group: QuestionGroup) -> Iterable[Answer]:
        kept = self.run.answers(sample=group.sample)
        return [one for one in kept if (one.model, one.member) == (self.model, group.member) and one.settled]

    async def _shown(self, prepare: Callable[[], Shown]) -> Shown | ItemError:
        """What is shown, or the problem with it."""
        async with self._decoding:
            try:
                return await asyncio.to_thread(prepare)
            except ItemError as error:
                return error

    async def _answer(
        self, group: QuestionGroup, question: Question, shown: Shown | ItemError | None, known: Answer | None
    ) -> Answer:
        empty = Answer(self.model, group.sample, group.member, question.uid, question.condition)
        if isinstance(shown, ItemError):
            return await self.keeper.keep(
                replace(empty, reason=shown.reason, message=shown.message, shown=shown.detail)
            )
        request = question.request(shown)
        asked = digest_of({"request": request.digest, "answered_by": self.answered_by})
        if known is not None and known.asked == asked:
            return known
        facts = {} if shown is None else {**shown.facts, "flags": [str(flag) for flag in shown.flags]}
        empty = replace(empty, asked=asked, shown=facts)
        try:
            reply = await self.asker.ask(request)
        except ChatError as error:
            self._count_failure(error, group)
            detail = {**facts, "failure": error.detail} if error.detail else facts
            failed = replace(empty, reason=error.reason, message=error.message, shown=detail, attempts=error.attempts)
            return await self.keeper.keep(failed)
        self._failed_in_a_row = 0
        self._failed_groups.clear()
        return await self.keeper.keep(answered(empty, reply, self.asker.entry))

    def _count_failure(self, error: ChatError, group: QuestionGroup) -> None:
        """Give up when nothing answers any more, in place of waiting for every question in turn.

        A request that the endpoint understood and refused says that it lives, and one clip that it cannot take, however
        many questions there are about it, says nothing about the others.
        """
        if not error.retry:
            return
        self._failed_in_a_row += 1
        self._failed_groups.add((group.sample, group.member))
        if self._failed_in_a_row >= _SILENT_AFTER and len(self._failed_groups) > 1:
            raise MissingPart(
                f"{self._failed_in_a_row} questions in a row got no answer ({error.message}); what was answered is "
                "kept. Look after the endpoint and run the same command again"
            ) from error
