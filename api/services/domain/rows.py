"""From the answers about one video to its rows, one a protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services.domain.request import CONDITIONS
from gen_eval.protocols import Protocol
from gen_eval.records import Answer, Flag, Generation, Group, MetricResult, Reason, Score, digest_of
from gen_eval.records.answer import MAIN
from gen_eval.stats import exact_mean
from judge.domain import METRIC, by_question, rules_of, sample_value
from judge.questions import JudgeQuestion
from judge.soft import soft_right
from judge.verdict import Verdict, verdict_of


@dataclass(frozen=True)
class RowMaker:
    """Makes the rows of a run.

    Attributes:
        questions: of each sample.
        protocols: a row each.
        keyless: samples with a question whose key is none of its options.
        has_domains: whether a sample without a domain is worth a flag.
        fixed: what all rows depend on besides their video and questions (judge, prompt, preset).
    """

    questions: Mapping[str, tuple[JudgeQuestion, ...]]
    protocols: tuple[Protocol, ...]
    keyless: frozenset[str]
    has_domains: bool
    fixed: Mapping[str, Any]

    def rows(self, group: Group, member: Generation, answers: Sequence[Answer]) -> list[Score]:
        """The rows of one video that was asked about."""
        return [self._score(group, member, one, self._result(one, group, member, answers)) for one in self.protocols]

    def without_asking(self, group: Group, member: Generation) -> list[Score]:
        """The rows of a video that cannot be asked about: it is not there, or several claim its place."""
        assert member.problem is not None
        questions = self.questions[group.sample.id]
        unasked = [Verdict(group.sample.id, member.member, one.uid, None, reason=member.problem) for one in questions]
        detail = {**_detail(questions, unasked, (), {}, {}), **member.detail}
        rows = []
        for protocol in self.protocols:
            reason = protocol.reason(member.problem)
            result = MetricResult.without_value(METRIC.name, reason, detail=detail, protocol=protocol.name)
            rows.append(self._score(group, member, protocol, result))
        return rows

    def _score(self, group: Group, member: Generation, protocol: Protocol, result: MetricResult) -> Score:
        unknown = self.has_domains and group.sample.domain is None
        result = result.with_flags(*([Flag.UNKNOWN_DOMAIN] if unknown else []))
        used = {
            "metric": METRIC.name,
            "version": METRIC.version,
            "parameters": protocol.digest,
            "video": member.sha256,
            "questions": [one.identity() for one in self.questions[group.sample.id]],
            **self.fixed,
        }
        return Score(
            model=group.model,
            sample=group.sample.id,
            member=member.member,
            metric=METRIC.name,
            protocol=protocol.name,
            value=result.value,
            status=result.status,
            reason=result.reason,
            flags=result.flags,
            values=result.values,
            detail=result.detail,
            version=METRIC.version,
            parameters=protocol.digest,
            inputs=digest_of(used),
        )

    def _result(self, protocol: Protocol, group: Group, member: Generation, answers: Sequence[Answer]) -> MetricResult:
        questions = self.questions[group.sample.id]
        rules, reading = rules_of(protocol), str(protocol.decide["reading"])
        verdicts = _verdicts(questions, member.member, answers, MAIN, reading)
        asked = {answer.condition for answer in answers}
        beside = {
            name: _verdicts(questions, member.member, answers, name, reading) for name in CONDITIONS if name in asked
        }
        chances = _chances(questions, answers)
        detail = _detail(questions, verdicts, answers, chances, beside)
        if rules.unknown_domain == "stops" and group.sample.domain is None:
            return _stopped(protocol, detail, f"the id {group.sample.id!r} names no domain", "AssertionError")
        if protocol.decide["missing_key"] == "stops" and group.sample.id in self.keyless:
            return _stopped(protocol, detail, "the key of a question is none of its options", "KeyError")
        if protocol.decide["single_frame"] == "stops" and _single_frame(answers):
            return _stopped(protocol, detail, "the clip has a single frame", "ValueError")
        unanswered = [one for one in verdicts if one.right is None]
        if unanswered:
            return _unanswered(protocol, unanswered, detail)
        value = sample_value(by_question(verdicts, questions, rules))
        assert value is not None, "a sample without questions is not asked about"
        scores = {
            name: sample_value(by_question(own, questions, rules))
            if all(one.right is not None for one in own)
            else None
            for name, own in beside.items()
        }
        soft = sample_value(by_question(verdicts, questions, rules, lambda verdict: chances[verdict.uid]))
        values = {**_floors(questions), **_shares(verdicts), **scores, **({} if soft is None else {"soft": soft})}
        return MetricResult.of(
            METRIC.name, value, flags=_flags(verdicts, answers), values=values, detail=detail, protocol=protocol.name
        )


def _verdicts(
    questions: Sequence[JudgeQuestion], member: str, answers: Sequence[Answer], condition: str, reading: str
) -> list[Verdict]:
    own = {answer.question: answer for answer in answers if answer.condition == condition}
    missing = Answer("", "", member, "", condition, reason=Reason.MISSING_REPLY, message="no reply stands for it")
    return [verdict_of(question, own.get(question.uid, missing), reading) for question in questions]


def _chances(questions: Sequence[JudgeQuestion], answers: Sequence[Answer]) -> dict[str, float | None]:
    """Uid -> probability that the judge gives to the right word; ``None`` without log-probabilities of both."""
    own = {answer.question: answer for answer in answers if answer.condition == MAIN}
    return {one.uid: soft_right(one, own[one.uid]) if one.uid in own else None for one in questions}


def _detail(
    questions: Sequence[JudgeQuestion],
    verdicts: Sequence[Verdict],
    answers: Sequence[Answer],
    chances: Mapping[str, float | None],
    beside: Mapping[str, Sequence[Verdict]],
) -> dict[str, Any]:
    ignored = [name for answer in answers if answer.condition == MAIN for name in answer.shown.get("ignored", ())]
    shown = next((dict(answer.shown) for answer in answers if answer.condition == MAIN and answer.shown), None)
    return {
        "questions": [
            {
                **_entry(question, verdict),
                "chance": chances.get(question.uid),
                "right_under": {name: own[place].right for name, own in beside.items()},
            }
            for place, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        ],
        "answered": sum(one.right is not None for one in verdicts),
        "asked": len(questions),
        "refused": sum(one.reason is Reason.CONTENT_FILTER for one in verdicts),
        "missing": sum(one.reason is Reason.MISSING_REPLY for one in verdicts),
        "shown": shown,
        "ignored": dict(sorted(Counter(ignored).items())),
    }


def _entry(question: JudgeQuestion, verdict: Verdict) -> dict[str, Any]:
    return {
        "uid": question.uid,
        "listed_uid": question.listed_uid,
        "question": question.question,
        "task": question.task,
        "truth": question.truth,
        "reply": verdict.reply,
        "said": verdict.said,
        "right": verdict.right,
        "rule": verdict.rule,
        "flags": [str(flag) for flag in verdict.flags],
        "reason": None if verdict.reason is None else str(verdict.reason),
    }


def _single_frame(answers: Sequence[Answer]) -> bool:
    return any(answer.shown.get("total_frames") == 1 for answer in answers if answer.condition == MAIN)


def _floors(questions: Sequence[JudgeQuestion]) -> dict[str, float | None]:
    """What a judge would score on this video that always gives one answer."""
    return {f"always_{word}": exact_mean([float(one.binary == word) for one in questions]) for word in ("yes", "no")}


def _shares(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    return {"unparsed": exact_mean([float(one.unparsed is not None) for one in verdicts])}


def _flags(verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> tuple[Flag, ...]:
    """What was unusual about any answer, and about the clip as it was shown; each once."""
    of_clip = [Flag(name) for answer in answers for name in answer.shown.get("flags", ())]
    return tuple(dict.fromkeys([flag for one in verdicts for flag in one.flags] + of_clip))


def _unanswered(protocol: Protocol, unanswered: Sequence[Verdict], detail: Mapping[str, Any]) -> MetricResult:
    """A video has a value when all its questions were answered; what was answered stays in the detail."""
    # what may end otherwise comes first: it says whether to try again
    first = min(unanswered, key=lambda one: (one.reason is None or not one.reason.transient, str(one.reason)))
    assert first.reason is not None
    message = f"{len(unanswered)} of {detail['asked']} questions have no answer; {first.uid}: {first.message}"
    explained = protocol.explain(first.reason, detail)
    return MetricResult.without_value(
        METRIC.name, protocol.reason(first.reason), message, detail=explained, protocol=protocol.name
    )


def _stopped(protocol: Protocol, detail: Mapping[str, Any], message: str, exception: str) -> MetricResult:
    stopped = {**detail, "reference_exception": exception}
    return MetricResult.without_value(
        METRIC.name, Reason.REFERENCE_STOPS, message, detail=stopped, protocol=protocol.name
    )


__all__ = ["RowMaker"]
