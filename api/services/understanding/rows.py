"""From the answer to one sample to its scores and rows, one a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from api.services.facts import facts_of
from api.services.understanding.asking import ROTATION
from gen_eval.protocols import protocol_names
from gen_eval.records import Answer, Flag, Reason, Score, digest_of
from gen_eval.records.answer import MAIN, NOT_TEXT
from understanding.data.choices import ChoiceSample
from understanding.data.samples import TaskSample
from understanding.scoring.outcome import SampleScore
from understanding.scoring.rotation import TurnedAnswer
from understanding.task import REPLIES, Task, task
from understanding.tasks.choices import SECOND_STAGE, ChoiceTask

FIRST_STAGE = "first_stage"
"""Further number of a row that the second stage read: its value without that."""

ROTATIONS = "rotations"
"""Where the detail of a row has the answers to the question with its options in every order."""

_LENGTH = "length"


@dataclass(frozen=True)
class Scorer:
    """A task under the protocol that was asked for and under the others, which the same replies give for nothing.

    Attributes:
        tasks: the one that was asked for first.
        model: label of the system.
        fixed: what all rows depend on besides their sample and reply.
    """

    tasks: tuple[Task[Any], ...]
    model: str
    fixed: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        name: str,
        protocol: str,
        dialect: str | None,
        *,
        preset: str | None = None,
        model: str = "",
        fixed: Mapping[str, Any] | None = None,
    ) -> Scorer:
        """The scorer of the task ``name``.

        Raises:
            InputError: the task, the protocol or the dialect is not known.
        """
        asked = task(name, protocol, dialect, preset)
        others = [one for one in protocol_names(asked.metric) if one != asked.protocol.name]
        bound = [asked, *(task(name, one, dialect, preset) for one in others)]
        return cls(tuple(bound), model, fixed or {})

    @property
    def main(self) -> Task[Any]:
        """The task under the protocol that was asked for."""
        return self.tasks[0]

    def scores(
        self, sample: TaskSample, member: str, answer: Answer | None, second: Answer | None = None
    ) -> dict[str, SampleScore]:
        """Protocol -> what the answer is worth; without one the sample has no reply.

        Args:
            sample: what was asked.
            member: seed.
            answer: the answer to it.
            second: what a text model read in its reply.
        """
        return {one.protocol.name: _score(one, sample, member, answer, second) for one in self.tasks}

    def rows(self, scores: Mapping[str, SampleScore], answer: Answer | None) -> list[Score]:
        """The rows of one sample and seed."""
        return [self._row(one, scores[one.protocol.name], answer) for one in self.tasks]

    def rows_of(self, sample: TaskSample, member: str, own: Mapping[str, Answer]) -> list[Score]:
        """The rows of one sample and seed from all answers to it, by condition."""
        answer = own.get(MAIN)
        scores = self.scores(sample, member, answer, own.get(SECOND_STAGE))
        return [self._row(one, scores[one.protocol.name], answer, own) for one in self.tasks]

    def _row(
        self, bound: Task[Any], score: SampleScore, answer: Answer | None, own: Mapping[str, Answer] | None = None
    ) -> Score:
        sample = score.sample
        beside = {name: one.reply for name, one in sorted((own or {}).items()) if name != MAIN}
        used = {
            "metric": bound.metric,
            "version": facts_of(bound.metric).version,
            "parameters": bound.protocol.digest,
            "sample": [sample.id, sample.prompt, sample.truth],
            "reply": None if answer is None else [answer.reply, answer.raw.get(NOT_TEXT), answer.finish_reason],
            "asked": None if answer is None else answer.asked,
            **({"beside": beside} if beside else {}),
            **self.fixed,
        }
        return Score(
            model=self.model,
            sample=sample.id,
            member=score.member,
            metric=bound.metric,
            protocol=bound.protocol.name,
            value=score.value,
            status=score.status,
            reason=score.reason,
            flags=score.flags,
            values=score.values,
            detail={**_detail(bound, score, answer), **_rotations(bound, score, own or {})},
            version=facts_of(bound.metric).version,
            parameters=bound.protocol.digest,
            inputs=digest_of(used),
        )


def _score(
    bound: Task[Any], sample: TaskSample, member: str, answer: Answer | None, second: Answer | None
) -> SampleScore:
    if answer is None:
        return bound.gap(sample, Reason.MISSING_REPLY, "no reply stands for this sample", member=member)
    if answer.reason is not None:
        return bound.gap(sample, answer.reason, answer.message, member=member)
    found = bound.score(bound.parse(answer.given, sample), sample, member=member)
    if second is not None and found.unparsed and bound.reading == REPLIES:
        found = _second(bound, found, second)
    cut = [Flag.CUT_OFF] if found.unparsed and answer.finish_reason == _LENGTH else []
    seen = [Flag(name) for name in answer.shown.get("flags", ())]
    return replace(found, flags=tuple(dict.fromkeys([*found.flags, *cut, *seen])))


def _second(bound: Task[Any], first: SampleScore, second: Answer) -> SampleScore:
    """The score with what a text model read; what the reader found alone stays beside it."""
    assert isinstance(bound, ChoiceTask)
    assert isinstance(first.sample, ChoiceSample)
    stages = {"first": {"failure": str(first.failure), "rule": first.rule, "value": first.value}}
    if second.reason is not None:
        stages[SECOND_STAGE] = {"reason": str(second.reason), "message": second.message}
        return replace(first, detail={**first.detail, "stages": stages})
    reading = bound.second_stage_reading(second.reply, first.sample)
    stages[SECOND_STAGE] = {"reply": second.reply, "read": reading.value}
    if reading.value is None:
        return replace(first, detail={**first.detail, "stages": stages})
    found = bound.score(reading, first.sample, member=first.member)
    return replace(found, values={**found.values, FIRST_STAGE: first.value}, detail={**first.detail, "stages": stages})


def _rotations(bound: Task[Any], score: SampleScore, own: Mapping[str, Answer]) -> dict[str, Any]:
    """What was chosen under every order of the options, where there was more than that of the data."""
    sample = score.sample
    if not isinstance(sample, ChoiceSample) or not any(name.startswith(ROTATION) for name in own):
        return {}
    found = []
    for places in range(len(sample.letters)):
        answer = own.get(MAIN if places == 0 else f"{ROTATION}{places}")
        if answer is not None and answer.reason is None:
            turned = sample.rotated(places)
            one = TurnedAnswer.of_score(bound.score(bound.parse(answer.given, turned), turned, member=score.member))
            found.append({name: value for name, value in asdict(one).items() if name not in {"question", "member"}})
    return {ROTATIONS: found}


def _detail(bound: Task[Any], score: SampleScore, answer: Answer | None) -> dict[str, Any]:
    detail = {
        "task": bound.name,
        "dialect": bound.dialect,
        "parsed": score.parsed,
        "failure": None if score.failure is None else str(score.failure),
        "rule": score.rule,
        "dropped": dict(score.dropped),
        "truth": score.sample.truth,
        **score.detail,
    }
    if isinstance(score.sample, ChoiceSample):
        detail["letters"] = "".join(score.sample.letters)
    if answer is not None:
        shown = {name: value for name, value in answer.shown.items() if name not in {"times", "clip"}}
        detail |= {"reply": _shortened(answer.reply), "finish_reason": answer.finish_reason, "shown": shown}
    return detail


_SHOWN_REPLY = 2000


def _shortened(reply: str | None) -> str | None:
    """A reply as rows show it; the whole one is among the run's answers."""
    if reply is None or len(reply) <= _SHOWN_REPLY:
        return reply
    half = _SHOWN_REPLY // 2
    return f"{reply[:half]} […] {reply[-half:]}"


def row_json(scorer: Scorer, scores: Mapping[str, SampleScore], answer: Answer | None) -> dict[str, Any]:
    """One row of the document of ``gen-eval understand score`` (docs/understanding.md)."""
    own = scores[scorer.main.protocol.name]
    return {
        "id": own.sample.id,
        "task": scorer.main.name,
        "model": scorer.model,
        "seed": int(own.member) if own.member.isascii() and own.member.isdigit() else own.member,
        "protocol": scorer.main.protocol.name,
        "status": str(own.status),
        "reason": None if own.reason is None else str(own.reason),
        "flags": [str(flag) for flag in own.flags],
        "value": own.value,
        "values": {scorer.main.metric: own.value, **own.values},
        "parsed": own.parsed,
        "rule": own.rule,
        "dropped": dict(own.dropped),
        "reply": None if answer is None else answer.given,
        "message": own.detail.get("message", ""),
        **{name: _reading_json(score) for name, score in scores.items()},
    }


def _reading_json(score: SampleScore) -> dict[str, Any]:
    return {
        "value": score.value,
        "parsed": score.parsed,
        "failure": None if score.failure is None else str(score.failure),
        "rule": score.rule,
        "flags": [str(flag) for flag in score.flags],
        **({"values": dict(score.values)} if score.values else {}),
        **({"stages": score.detail["stages"]} if "stages" in score.detail else {}),
    }


def by_condition(answers: Sequence[Answer]) -> dict[tuple[str, str], dict[str, Answer]]:
    """(sample, member) -> condition -> answer."""
    found: dict[tuple[str, str], dict[str, Answer]] = {}
    for answer in answers:
        found.setdefault((answer.sample, answer.member), {})[answer.condition] = answer
    return found


def main_answer(answers: Mapping[str, Answer]) -> Answer | None:
    """The answer to the question itself."""
    return answers.get(MAIN)
