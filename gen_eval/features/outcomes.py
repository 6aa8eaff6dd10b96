"""What measuring a group gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from gen_eval.features.plan import Measurement
from gen_eval.protocols import Protocol
from gen_eval.records import Group, MetricResult

SET_MEMBER = "all"
"""Member of rows that belong to all generations of a sample together."""


@dataclass(frozen=True)
class Outcome:
    """One result: a metric of a member under a protocol.

    Attributes:
        pictures: JPEG bytes by role (``thumbnail``, ``worst``, ``worst_reference``).
    """

    member: str
    measurement: Measurement
    protocol: Protocol
    result: MetricResult
    pictures: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupOutcome:
    """All results of a group, and tracebacks of what surprised."""

    group: Group
    outcomes: tuple[Outcome, ...]
    log: tuple[str, ...] = ()

    @property
    def transient(self) -> bool:
        """Whether another attempt might give more."""
        reasons = (outcome.result.reason for outcome in self.outcomes)
        return any(reason is not None and reason.transient for reason in reasons)
