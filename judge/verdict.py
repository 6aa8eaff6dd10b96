"""From a judge's reply to right or wrong, with the rule that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gen_eval.records import Answer, Flag, ItemError, Reason
from gen_eval.replies import Reading, read_phrase, read_reference, read_yes_no
from judge.questions import JudgeQuestion

READINGS = ("replies", "substring")
"""Readers that a protocol may name: the shared one, and the rule of the public code."""

COUNTED_AS_WRONG = frozenset({Reason.CONTENT_FILTER, Reason.MISSING_REPLY})
"""Reasons for which an answer without a reply is a wrong one: it stays in the denominator."""


@dataclass(frozen=True)
class Verdict:
    """One answer of a judge, read.

    Attributes:
        sample: id of the sample.
        seed: of the generation.
        uid: of the question.
        right: whether it agrees with the key; ``None`` when nothing was answered because something failed.
        said: ``yes`` or ``no`` when that was read, else ``None``.
        rule: which rule of which reader decided.
        flags: ``unparsed`` with the failure's name, and what else was unusual about the reply.
        reason: why there is no reply.
        reply: raw text.
        message: the reason in words.
    """

    sample: str
    seed: str
    uid: str
    right: bool | None
    said: str | None = None
    rule: str = ""
    flags: tuple[Flag, ...] = ()
    reason: Reason | None = None
    reply: str | None = None
    message: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells verdicts apart."""
        return (self.sample, self.seed, self.uid)

    @property
    def unparsed(self) -> Flag | None:
        """Why the reply could not be read, ``None`` when it could."""
        if Flag.UNPARSED not in self.flags:
            return None
        return self.flags[self.flags.index(Flag.UNPARSED) + 1]


def read(question: JudgeQuestion, reply: Any, reading: str) -> Reading[str]:
    """What ``reply`` says to ``question``.

    Args:
        question: its right answer decides which reader is used: yes/no, or a text that must occur.
        reply: raw text.
        reading: one of :data:`READINGS`.

    Returns:
        A value ``yes`` or ``no`` for yes/no questions; the key's own text for others when it occurs.

    Raises:
        ValueError: there is no such reader.
    """
    if reading == "substring":
        return read_reference("substring", reply, key=question.truth)
    if reading != "replies":
        raise ValueError(f"there is no reader {reading!r}; there are {', '.join(READINGS)}")
    return read_yes_no(reply) if question.binary is not None else read_phrase(reply, question.truth)


def verdict_of(question: JudgeQuestion, answer: Answer, reading: str) -> Verdict:
    """Whether ``answer`` is right.

    A reply that cannot be read is wrong and flagged; one that the endpoint declined to give, or that a file of replies
    does not hold, is wrong and carries its reason. Where the call itself failed there is no verdict.

    Raises:
        ValueError: there is no such reader.
    """
    place = (question.sample, answer.member, question.uid)
    if answer.reason is not None:
        right = False if answer.reason in COUNTED_AS_WRONG else None
        return Verdict(*place, right, reason=answer.reason, reply=answer.reply, message=answer.message)
    found = read(question, answer.given, reading)
    expected = question.binary or question.truth.strip().casefold()
    right = found.value is not None and found.value.strip().casefold() == expected
    # the public code extracts nothing, so nothing can be unreadable to it
    flags = found.unparsed if reading == "replies" else found.flags
    if flags and found.failure is not None and answer.finish_reason == "length" and Flag.CUT_OFF not in flags:
        flags = (*flags, Flag.CUT_OFF)
    said = found.value if question.binary is not None else None
    return Verdict(*place, right, said, found.rule, flags, reply=answer.reply)


def failed(question: JudgeQuestion, seed: str, error: ItemError) -> Verdict:
    """The verdict of a question that could not be asked, because of its clip or of the endpoint."""
    right = False if error.reason in COUNTED_AS_WRONG else None
    return Verdict(question.sample, seed, question.uid, right, reason=error.reason, message=error.message)


__all__ = ["COUNTED_AS_WRONG", "READINGS", "Verdict", "failed", "read", "verdict_of"]
