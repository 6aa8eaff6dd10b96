"""What one reply to one sample is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gen_eval.records import Flag, Reason, Status
from understanding.data.samples import TaskSample

COUNTED_AS_WRONG = frozenset({Reason.MISSING_REPLY, Reason.CONTENT_FILTER})
"""Gaps that stay in the denominator with the value of an empty answer; all others leave it and are counted."""


@dataclass(frozen=True)
class SampleScore:
    """One sample under one seed.

    Attributes:
        sample: what was asked.
        value: the task's main number; ``None`` when there is none.
        status: see :class:`gen_eval.records.Status`.
        reason: why there is no reply that counts.
        flags: what was unusual, ``unparsed`` and the failure's name first.
        values: further numbers by name.
        parsed: what was read (JSON values), ``None`` for nothing.
        failure: why nothing could be read.
        rule: which rule of which reader decided.
        dropped: elements of the reply that were left out, by kind.
        detail: what explains it (JSON values).
        member: seed.
    """

    sample: TaskSample
    value: float | None
    status: Status = Status.OK
    reason: Reason | None = None
    flags: tuple[Flag, ...] = ()
    values: Mapping[str, float | None] = field(default_factory=dict)
    parsed: Any = None
    failure: Flag | None = None
    rule: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    member: str = "0"

    @property
    def unparsed(self) -> bool:
        """Whether there was a reply and nothing could be read from it."""
        return Flag.UNPARSED in self.flags

    @property
    def right(self) -> bool | None:
        """Whether the answer is right, for tasks where it is right or wrong; ``None`` without a value."""
        return None if self.value is None else self.value == 1.0
