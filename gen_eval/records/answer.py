"""One exchange with a model as it is kept: the raw reply, and all that is known of how it came about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gen_eval.records.reasons import Reason

MAIN = ""
"""The condition of the question itself; reference points and checks have names of their own."""

NOT_TEXT = "not_text"
"""Where ``raw`` keeps a reply that is no text."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DEEPEST = 100
"""Levels of a backend's answer that are kept; below them is ``None``."""


def _storable(value: Any, depth: int = 0) -> Any:
    """``value`` without NUL characters, halves of surrogate pairs, and nesting that no encoder takes."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list | tuple | Mapping) and depth >= _DEEPEST:
        return None
    if isinstance(value, list | tuple):
        return [_storable(one, depth + 1) for one in value]
    if isinstance(value, Mapping):
        return {_storable(key): _storable(one, depth + 1) for key, one in value.items()}
    return value


@dataclass(frozen=True)
class Answer:
    """The reply to one question, or why there is none.

    Attributes:
        model: label of the system that is evaluated (a generator for a judge, a VLM for understanding).
        sample: id of the sample.
        member: seed of the generation, or of the run.
        question: uid of the question; empty where a sample has one question only.
        condition: empty, or what was changed: ``without_video``, ``shuffled``, ``rotation:1``, ``second_stage``, …
        asked: digest of the request and of what answered.
        reply: raw text; ``None`` for none.
        reason: why there is no reply.
        message: the same in words.
        finish_reason: how the reply ended.
        shown: what the model was shown: form, frames, size, ignored options, budget (JSON values only).
        chances: log-probabilities of answer words, when they came back.
        usage: tokens by kind.
        answered_by: the model's name as the backend gave it.
        attempts: requests that were made; 0 when it came from the cache.
        seconds: of the last attempt. Volatile: no report shows it.
        cost: in the currency of the model entry, ``None`` when no price is known; 0 for a reply from the cache.
        raw: the backend's answer, whole.
    """

    model: str
    sample: str
    member: str
    question: str
    condition: str = MAIN
    asked: str = ""
    reply: str | None = None
    reason: Reason | None = None
    message: str = ""
    finish_reason: str | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)
    chances: Mapping[str, float] | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    answered_by: str | None = None
    attempts: int = 1
    seconds: float = 0.0
    cost: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put U+FFFD for what not every store takes, so that a reply reads the same before and after it was kept."""
        for name in ("reply", "message", "finish_reason", "answered_by", "shown", "chances", "raw"):
            value = getattr(self, name)
            if value:
                object.__setattr__(self, name, _storable(value))

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What tells answers apart within a run; they are sorted by it."""
        return (self.model, self.sample, self.member, self.question, self.condition)

    @property
    def given(self) -> Any:
        """What a reader is given: the text, or whatever came in its place; ``None`` for nothing."""
        return self.raw.get(NOT_TEXT, self.reply)

    @property
    def settled(self) -> bool:
        """Whether asking again would not change it."""
        return self.reason is None or not self.reason.transient

    def to_json(self) -> dict[str, Any]:
        """Everything but what is volatile (seconds, attempts) and the backend's whole answer."""
        return {
            "model": self.model,
            "sample": self.sample,
            "member": self.member,
            "question": self.question,
            "condition": self.condition,
            "reply": self.reply,
            "reason": None if self.reason is None else str(self.reason),
            "message": self.message,
            "finish_reason": self.finish_reason,
            "shown": dict(self.shown),
            "chances": None if self.chances is None else dict(self.chances),
            "usage": dict(self.usage),
            "answered_by": self.answered_by,
            "cost": self.cost,
        }
