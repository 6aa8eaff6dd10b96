"""What is measured on every group: metrics, their protocols, and the preset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gen_eval.features.metric import Metric
from gen_eval.protocols import Preset, Protocol
from gen_eval.records import canonical_json

_ALIGNMENT = ("resize", "aspect_tolerance")


@dataclass(frozen=True)
class Measurement:
    """One way of counting, and the protocols that decide on its counts."""

    metric: Metric
    measure: Mapping[str, Any]
    protocols: tuple[Protocol, ...]

    @property
    def arithmetic(self) -> str:
        """Identity of the counting itself, without the rule by which clips are brought to one size."""
        rest = {key: value for key, value in self.measure.items() if key not in _ALIGNMENT}
        return f"{self.metric.name} {canonical_json(rest)}"


@dataclass(frozen=True)
class Plan:
    """All measurements of a run.

    Attributes:
        measurements: protocols of one metric with equal ``measure`` sections share one.
        preset: what the metrics are shown.
        chunk: frames of each member that are held at a time.
    """

    measurements: tuple[Measurement, ...]
    preset: Preset
    chunk: int

    @classmethod
    def of(cls, metrics: Iterable[tuple[Metric, Iterable[Protocol]]], preset: Preset, chunk: int) -> Plan:
        """The plan for ``metrics`` under their protocols."""
        found: dict[tuple[str, str], Measurement] = {}
        for metric, protocols in metrics:
            for protocol in protocols:
                key = (metric.name, canonical_json(dict(protocol.measure)))
                before = found[key].protocols if key in found else ()
                found[key] = Measurement(metric, protocol.measure, (*before, protocol))
        return cls(tuple(found.values()), preset, chunk)

    def on(self, signal: str) -> tuple[Measurement, ...]:
        """The measurements whose metrics work on ``signal``."""
        return tuple(one for one in self.measurements if one.metric.signal == signal)


def companions(metric_protocols: Iterable[Protocol], chosen: Protocol) -> list[Protocol]:
    """Other protocols of a metric whose numbers cost nothing more than those of ``chosen``.

    They count alike and differ only in how counts become a value, or in the filter that clips of another size go
    through.
    """

    def arithmetic(protocol: Protocol) -> str:
        return canonical_json({key: value for key, value in protocol.measure.items() if key not in _ALIGNMENT})

    return [one for one in metric_protocols if one.name != chosen.name and arithmetic(one) == arithmetic(chosen)]
