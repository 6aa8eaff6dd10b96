"""Judging as functions to call: one question, or all questions about one video.

    async with Asker(open_client(judge.model)) as asker:
        found = await ask(Path("clip.mp4"), "Is the light red?", asker, judge)

Nothing is stored here; :mod:`gen_eval.mllm.cache` keeps replies and a run keeps answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gen_eval.mllm import ChatError
from gen_eval.mllm.answering import answered
from gen_eval.mllm.asking import Asker
from gen_eval.mllm.showing import Shown, show
from gen_eval.protocols.shown import ShownPreset, load_shown
from gen_eval.records import Answer, Flag, InputError, ItemError, Reason
from gen_eval.replies import Reading
from judge.domain import Rules, by_question, sample_value
from judge.entry import JudgeEntry
from judge.questions import JudgeQuestion
from judge.soft import yes_probability
from judge.verdict import Verdict, failed, read, verdict_of

TEXT_RESERVE = 512
"""Tokens left free for the text of a question besides the reply; the longest shipped one needs about a quarter."""


@dataclass(frozen=True)
class Asked:
    """One question, asked.

    Attributes:
        question: its text.
        answer: everything that came back.
        reading: what it says by the shared reader: ``yes`` or ``no``, or a named failure.
        chance: probability of yes against no by log-probabilities; ``None`` when they did not come back.
        flags: of the clip and of what is shown of it.
        currency: of the cost.
    """

    question: str
    answer: Answer
    reading: Reading[str]
    chance: float | None
    flags: tuple[Flag, ...] = ()
    currency: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        reading = self.reading
        return {
            "question": self.question,
            "reply": self.answer.reply,
            "reading": {
                "value": reading.value,
                "failure": None if reading.failure is None else str(reading.failure),
                "rule": reading.rule,
                "flags": [str(flag) for flag in reading.flags],
            },
            "yes_probability": self.chance,
            "finish_reason": self.answer.finish_reason,
            "usage": dict(self.answer.usage),
            "cost": self.answer.cost,
            "currency": None if self.answer.cost is None else self.currency,
            "answered_by": self.answer.answered_by,
            "attempts": self.answer.attempts,
            "seconds": self.answer.seconds,
            "shown": dict(self.answer.shown),
            "flags": [str(flag) for flag in self.flags],
        }


@dataclass(frozen=True)
class JudgedVideo:
    """All questions about one video.

    Attributes:
        value: share of right answers; ``None`` when a question has no verdict.
        verdicts: in the order of the questions.
        answers: likewise; of a question that could not be asked there is a reason in it.
        flags: of the clip and of what is shown of it.
    """

    value: float | None
    verdicts: tuple[Verdict, ...]
    answers: tuple[Answer, ...]
    flags: tuple[Flag, ...] = ()


def show_video(path: Path, judge: JudgeEntry, preset: ShownPreset | None = None) -> Shown:
    """What ``judge`` is shown of a clip.

    Raises:
        ItemError: nothing of it can be shown.
    """
    reserve = judge.options.max_tokens + TEXT_RESERVE
    return show(path, preset or load_shown(judge.preset), judge.model, context=judge.context, reserve=reserve)


async def ask(
    video: Path | None, question: str, asker: Asker, judge: JudgeEntry, *, preset: ShownPreset | None = None
) -> Asked:
    """Ask one question about a video, or about none.

    Args:
        video: the clip; ``None`` asks without one.
        question: its text, to be answered by yes or no.
        asker: asks.
        judge: how it is asked.
        preset: what is shown, in place of the judge's own.

    Raises:
        InputError: the question is empty.
        ItemError: the clip cannot be shown, or (ChatError) there is no reply.
        MissingPart: the endpoint cannot be reached.
    """
    if not question.strip():
        raise InputError("the question is empty; give a text that is answered by yes or no")
    asked = JudgeQuestion(video.stem if video else "", "", question, {"yes": "Yes", "no": "No"}, "yes")
    shown = None if video is None else await asyncio.to_thread(show_video, video, judge, preset)
    reply = await asker.ask(judge.request(asked, None if shown is None else shown.part))
    facts = {} if shown is None else dict(shown.facts)
    answer = answered(Answer(judge.name, asked.sample, "", "", shown=facts), reply, asker.entry)
    price = asker.entry.price
    return Asked(
        question,
        answer,
        read(asked, answer.reply, "replies"),
        yes_probability(answer.chances),
        () if shown is None else shown.flags,
        None if price is None else price.currency,
    )


async def judge_video(
    video: Path,
    questions: Sequence[JudgeQuestion],
    asker: Asker,
    judge: JudgeEntry,
    *,
    seed: str = "0",
    preset: ShownPreset | None = None,
    reading: str = "replies",
    rules: Rules | None = None,
) -> JudgedVideo:
    """Ask all questions about one video, which is decoded once; what fails is in the verdicts.

    Args:
        video: the clip.
        questions: about it.
        asker: asks; it bounds how many at once.
        judge: how it is asked.
        seed: of the generation.
        preset: what is shown, in place of the judge's own.
        reading: reader of the replies, see :data:`judge.verdict.READINGS`.
        rules: how repeated uids are treated; as in the corrected protocol by default.

    Raises:
        InputError: the model or the key is refused.
        MissingPart: the endpoint cannot be reached.
    """
    name = f"{questions[0].sample}__{seed}" if questions else video.stem
    try:
        shown = await asyncio.to_thread(show_video, video, judge, preset)
    except ItemError as error:
        answers = [_failure(judge, one, seed, error) for one in questions]
        return JudgedVideo(None, tuple(failed(one, seed, error) for one in questions), tuple(answers))
    found = await asyncio.gather(*(_answer(one, seed, name, shown, asker, judge) for one in questions))
    verdicts = [verdict_of(one, answer, reading) for one, answer in zip(questions, found, strict=True)]
    complete = bool(verdicts) and all(one.right is not None for one in verdicts)
    value = sample_value(by_question(verdicts, questions, rules or Rules())) if complete else None
    return JudgedVideo(value, tuple(verdicts), tuple(found), shown.flags)


async def _answer(
    question: JudgeQuestion, seed: str, name: str, shown: Shown, asker: Asker, judge: JudgeEntry
) -> Answer:
    empty = Answer(judge.name, question.sample, seed, question.uid, shown=dict(shown.facts))
    try:
        reply = await asker.ask(judge.request(question, shown.part, video=name))
    except ChatError as error:
        return replace(empty, reason=error.reason, message=error.message, attempts=error.attempts)
    return answered(empty, reply, asker.entry)


def _failure(judge: JudgeEntry, question: JudgeQuestion, seed: str, error: ItemError) -> Answer:
    reason: Reason = error.reason
    return Answer(judge.name, question.sample, seed, question.uid, reason=reason, message=error.message, attempts=0)


__all__ = ["TEXT_RESERVE", "Asked", "JudgedVideo", "ask", "judge_video", "show_video"]
