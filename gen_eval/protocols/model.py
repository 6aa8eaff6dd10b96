"""The frozen, named parameters of one metric, and of what it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gen_eval.records import Reason, digest_of


@dataclass(frozen=True)
class Protocol:
    """The parameters of one metric under one name; the sections are explained in :mod:`gen_eval.protocols`."""

    name: str
    metric: str
    measure: Mapping[str, Any] = field(default_factory=dict)
    decide: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    exceptions: Mapping[str, str] = field(default_factory=dict)
    aggregate: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that moves a single score under this protocol (not of how scores are averaged)."""
        return digest_of(
            {
                "metric": self.metric,
                "measure": dict(self.measure),
                "decide": dict(self.decide),
                "reasons": dict(self.reasons),
            }
        )

    def reason(self, reason: Reason) -> Reason:
        """The name under which this protocol reports ``reason``."""
        return Reason(self.reasons.get(str(reason), str(reason)))

    def explain(self, reason: Reason, detail: Mapping[str, Any]) -> dict[str, Any]:
        """``detail`` of a result without a value; where the public code stops, with the exception that it raises."""
        if self.reason(reason) is not Reason.REFERENCE_STOPS:
            return dict(detail)
        return {"reference_exception": self.exceptions.get(str(reason), "not recorded"), **detail}


@dataclass(frozen=True)
class Preset:
    """What a metric is shown.

    Attributes:
        limit: only the first frames of each clip are used; ``None`` for all.
    """

    name: str
    limit: int | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the preset's values."""
        return digest_of({"limit": self.limit})
