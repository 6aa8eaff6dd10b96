"""What results and reports know about a metric, installed or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from gen_eval.records import InputError, MetricFacts

if TYPE_CHECKING:
    from gen_eval.features.metric import Metric


@dataclass(frozen=True)
class Facts:
    """What results and reports need to know about a metric.

    Attributes:
        inputs: ``single``, ``pair``, ``set`` or ``answers``; ``None`` when the metric is not installed.
        reads: files of a sample that a value depends on, as the manifest names them.
        caveat: why its values must not rank systems alone.
        version: of the metric; 1 when it is not installed.
        further_units: units of further numbers that have another one than the value.
        curve_unit: unit of the numbers a frame, when they have another one than the value.
        evidence_words: role of a picture that shows why a frame counts as it does -> what it shows.
        track: which command makes its values; ``None`` when the metric is not installed.
    """

    unit: str
    higher_is_better: bool
    bounds: tuple[float | None, float | None]
    source: str
    inputs: str | None = None
    reads: tuple[str, ...] = ()
    caveat: str = ""
    version: int = 1
    further_units: Mapping[str, str] = field(default_factory=dict)
    curve_unit: str | None = None
    evidence_words: Mapping[str, str] = field(default_factory=dict)
    track: str | None = None

    def unit_of(self, name: str) -> str:
        """Unit of the further number ``name``."""
        return self.further_units.get(name, self.unit)


@lru_cache(maxsize=256)
def facts_of(metric: str) -> Facts:
    """Unit, direction and range of ``metric``; cautious ones for a metric that is not installed any more."""
    from gen_eval.features.metric import Metric
    from gen_eval.registry import load

    try:
        found = load("gen_eval.metrics", metric)
    except InputError:
        found = None
    if isinstance(found, MetricFacts):
        return Facts(
            found.unit,
            found.higher_is_better,
            found.bounds,
            found.source,
            inputs="answers",
            caveat=found.caveat,
            version=found.version,
            further_units=found.further_units,
            track=found.track,
        )
    if not isinstance(found, Metric):
        return Facts("unknown", True, (None, None), "not installed here", None, _SAMPLE_FILES)
    return Facts(
        found.unit,
        found.higher_is_better,
        found.bounds,
        found.source,
        found.inputs,
        _reads(found),
        found.caveat,
        found.version,
        found.further_units,
        found.curve_unit,
        found.evidence_words,
        found.track,
    )


_SAMPLE_FILES = ("reference", "depth", "masks", "condition_image")


def _reads(metric: Metric) -> tuple[str, ...]:
    if metric.inputs == "pair":
        return ({"frames": "reference"}.get(metric.signal, metric.signal),)
    return ("condition_image",) if metric.uses_condition_image else ()
