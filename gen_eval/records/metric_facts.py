"""What results and reports need to know of a metric that is not computed from frames but from answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class MetricFacts:
    """A metric whose values come from replies of models.

    Attributes:
        name: fixed public name, also the name of its entry point.
        track: ``domain`` (judge) or ``understanding``.
        source: where the definition comes from.
        version: raised whenever a value changes for equal input and parameters.
        unit: of the value.
        bounds: least and largest value, ``None`` where there is no bound.
        higher_is_better: direction.
        further_units: units of further numbers that have another one than the value.
        caveat: why its values must not rank systems alone; empty for metrics that may.
    """

    name: str
    track: str
    source: str
    version: int = 1
    unit: str = "ratio"
    bounds: tuple[float | None, float | None] = (0.0, 1.0)
    higher_is_better: bool = True
    further_units: Mapping[str, str] = field(default_factory=dict)
    caveat: str = ""
