"""Records as votes: what each field of a vote may hold, whichever file or table it stands in."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from gen_eval.arena.votes import QUESTIONS, Answer, Vote
from gen_eval.data.records_file import Refused, seed_of, text
from gen_eval.data.table_file import number_of
from gen_eval.records import Rejection

FIELDS = (
    "id",
    "sample",
    "annotator",
    "model_a",
    "model_b",
    *QUESTIONS,
    "time",
    "seed_a",
    "seed_b",
    "shown_left",
    "seconds",
)
"""Names of the fields that a vote has; others are carried along."""

NEEDED = ("sample", "model_a", "model_b")
"""Fields that every vote has."""

_KNOWN = frozenset(FIELDS)
_LABELS = {answer.value: answer for answer in Answer}
_SIDES = ("a", "b")


def vote_of(record: Mapping[str, Any]) -> Vote:
    """The vote that ``record`` is, with an empty id where it has none.

    Blanks at the ends of a text do not belong to it, and an empty text is an absent field; case is kept.

    Raises:
        Refused: ``missing_field``, ``unknown_label``, ``self_vote`` or ``malformed_record``.
    """
    fields = {name: value for name, given in record.items() if (value := _trimmed(given)) is not None}
    sample, model_a, model_b = (_needed(fields, name) for name in NEEDED)
    clock = _clock_of(fields.get("time"))
    vote = Vote(
        id=text(fields, "id") or "",
        sample=sample,
        annotator=text(fields, "annotator"),
        model_a=model_a,
        model_b=model_b,
        quality=answer_of(fields.get("quality"), "quality"),
        plausibility=answer_of(fields.get("plausibility"), "plausibility"),
        time=clock.seconds,
        seed_a=_seed(fields.get("seed_a")),
        seed_b=_seed(fields.get("seed_b")),
        shown_left=_side(fields.get("shown_left")),
        seconds=_duration(fields.get("seconds")),
        extra={name: value for name, value in fields.items() if name not in _KNOWN},
        dated=clock.dated,
    )
    check(vote)
    return vote


def check(vote: Vote) -> None:
    """See that a vote says something about two systems.

    Raises:
        Refused: it answers no question (``missing_field``), or has one system on both sides (``self_vote``).
    """
    if vote.quality is None and vote.plausibility is None:
        raise Refused(Rejection.MISSING_FIELD, f"no answer: one of {' and '.join(QUESTIONS)} is needed")
    if vote.model_a == vote.model_b:
        message = f"model_a and model_b are both {vote.model_a!r:.80}; a vote is about two systems"
        raise Refused(Rejection.SELF_VOTE, message)


def _trimmed(value: Any) -> Any:
    return (value.strip() or None) if isinstance(value, str) else value


def _needed(fields: Mapping[str, Any], name: str) -> str:
    value = text(fields, name)
    if value is None:
        raise Refused(Rejection.MISSING_FIELD, f"the field {name} is missing or empty")
    return value


def answer_of(value: Any, question: str) -> Answer | None:
    """The answer that ``value`` spells; ``None`` when there is none.

    Raises:
        Refused: it is none of the four.
    """
    if value is None:
        return None
    answer = _LABELS.get(value) if isinstance(value, str) else None
    if answer is None:
        allowed = f"{', '.join(_LABELS)}, or nothing when it was not answered"
        raise Refused(Rejection.UNKNOWN_LABEL, f"{question} is {value!r:.80}; expected {allowed}")
    return answer


def _seed(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():  # a column of whole numbers with gaps
        value = int(value)
    return None if value is None else seed_of(value)


def _side(value: Any) -> Literal["a", "b"] | None:
    if value is None or value in _SIDES:
        return cast('Literal["a", "b"] | None', value)
    raise Refused(Rejection.UNKNOWN_LABEL, f"shown_left is {value!r:.80}; expected a, b, or nothing when not known")


def _duration(value: Any) -> float | None:
    if value is None:
        return None
    found = number_of(value)
    if found is None or found <= 0:
        message = f"seconds is {value!r:.80}; expected the time taken, a number of seconds above 0"
        raise Refused(Rejection.MALFORMED_RECORD, message)
    return found


class _Clock(NamedTuple):
    seconds: float | None
    dated: bool = False


def _clock_of(value: Any) -> _Clock:
    """A number is plain seconds; a date is seconds since 1970, of UTC where it names no zone."""
    if value is None:
        return _Clock(None)
    seconds = number_of(value)
    if seconds is not None:
        return _Clock(seconds)
    try:
        date = datetime.datetime.fromisoformat(value)
        zoned = date if date.tzinfo is not None else date.replace(tzinfo=datetime.UTC)
        return _Clock(zoned.timestamp(), dated=True)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"time is {value!r:.80}; expected ISO 8601 (2025-03-01T12:00:00Z) or seconds"
        raise Refused(Rejection.MALFORMED_RECORD, message) from error


__all__ = ["FIELDS", "NEEDED", "answer_of", "check", "vote_of"]
