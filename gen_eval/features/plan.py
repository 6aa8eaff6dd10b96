"""What is measured on every group: metrics, their protocols, and the preset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gen_eval.features.metric import Metric
from gen_eval.networks.placement import Placement
from gen_eval.protocols import Preset, Protocol
from gen_eval.records import canonical_json

_SHOWN = ("clip_size", "clip_resize", "clip_aspect_tolerance")
_ALIGNMENT = {
    "pair": ("resize", "aspect_tolerance", *_SHOWN),
    "single": ("condition_image", *_SHOWN),
    "set": (),
}
"""Parts of a measure section that matter for some inputs only: clips of another size, pictures that are not RGB."""


def _arithmetic(metric: Metric, measure: Mapping[str, Any]) -> str:
    return canonical_json({key: value for key, value in measure.items() if key not in _ALIGNMENT[metric.inputs]})


@dataclass(frozen=True)
class Measurement:
    """One way of counting, and the protocols that decide on its counts."""

    metric: Metric
    measure: Mapping[str, Any]
    protocols: tuple[Protocol, ...]

    @property
    def arithmetic(self) -> str:
        """Identity of the counting itself, without the rules for unlike sizes and unusual pictures."""
        return f"{self.metric.name} {_arithmetic(self.metric, self.measure)}"

    @property
    def networks(self) -> tuple[str, ...]:
        """Checkpoints that it always needs."""
        return self.metric.networks(self.measure)

    @property
    def signal_networks(self) -> tuple[str, ...]:
        """Checkpoints that it needs where the signal of a clip was not given as a file."""
        signal = self.metric.clip_signal(self.measure)
        return () if signal is None else signal.networks


@dataclass(frozen=True)
class Plan:
    """All measurements of a run.

    Attributes:
        measurements: protocols of one metric with equal ``measure`` sections share one.
        preset: what the metrics are shown.
        chunk: frames of each member that are held at a time; also the frames that a network is given at a time.
        placement: where and how exactly networks run.
        computes: signals (``depth``, ``masks``) of which at least one file was not given.
    """

    measurements: tuple[Measurement, ...]
    preset: Preset
    chunk: int
    placement: Placement = field(default_factory=Placement)
    computes: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        metrics: Iterable[tuple[Metric, Iterable[Protocol]]],
        preset: Preset,
        chunk: int,
        placement: Placement | None = None,
    ) -> Plan:
        """The plan for ``metrics`` under their protocols."""
        found: dict[tuple[str, str], Measurement] = {}
        for metric, protocols in metrics:
            for protocol in protocols:
                key = (metric.name, canonical_json(dict(protocol.measure)))
                before = found[key].protocols if key in found else ()
                found[key] = Measurement(metric, protocol.measure, (*before, protocol))
        return cls(tuple(found.values()), preset, chunk, placement or Placement())

    @property
    def networks(self) -> tuple[str, ...]:
        """Checkpoints that any measurement needs, sorted."""
        needed = {name for one in self.measurements for name in one.networks}
        made = {name for one in self.measurements if one.metric.signal in self.computes for name in one.signal_networks}
        return tuple(sorted(needed | made))

    def on(self, signal: str) -> tuple[Measurement, ...]:
        """The measurements whose metrics work on ``signal``."""
        return tuple(one for one in self.measurements if one.metric.signal == signal)


def companions(metric: Metric, protocols: Iterable[Protocol], chosen: Protocol) -> list[Protocol]:
    """Other protocols of a metric whose numbers cost nothing more than those of ``chosen``.

    They count alike and differ only in how counts become a value, in the filter that clips of another size go through,
    or in how an unusual condition image is read.
    """
    wanted = _arithmetic(metric, chosen.measure)
    return [one for one in protocols if one.name != chosen.name and _arithmetic(metric, one.measure) == wanted]
