"""Geometry of the drawings: means with intervals, distributions, per-frame curves.

Everything is computed here and drawn by the templates as SVG that stretches to the page: x runs over 0..100 from left
to right, y over 0..HEIGHT from top to bottom. Coordinates are texts with two decimals, so that equal numbers draw
equally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from api.services import wording
from api.services.facts import Facts
from api.services.reporting.assets import Curve
from gen_eval.stats import Aggregate

HEIGHT = 24
_BINS = 20
_BUCKETS = 60


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high``, laid over the width or height of a drawing."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float], bounds: tuple[float | None, float | None]) -> Scale:
        """A little more than the range of ``values``, within ``bounds``."""
        low, high = min(values), max(values)
        margin = 0.06 * (high - low) or 0.05 * (abs(high) or 1.0)
        low, high = low - margin, high + margin
        return cls(
            low if bounds[0] is None else max(low, bounds[0]), high if bounds[1] is None else min(high, bounds[1])
        )

    def share(self, value: float) -> float:
        """Where ``value`` lies, 0..1; one half on a scale without width."""
        if self.high <= self.low:
            return 0.5
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def x(self, value: float) -> str:
        """Coordinate from left to right."""
        return f"{100 * self.share(value):.2f}"

    def y(self, value: float) -> str:
        """Coordinate from top to bottom; larger values are higher."""
        return f"{1 + (HEIGHT - 2) * (1 - self.share(value)):.2f}"


@dataclass(frozen=True)
class Track:
    """One line of an interval chart: a dot and a bar; ``None`` where there is none."""

    label: str
    text: str
    coverage: str
    dot: str | None
    bar: tuple[str, str] | None


@dataclass(frozen=True)
class IntervalChart:
    """Means of one metric with their intervals on one scale."""

    title: str
    head: str
    low: str
    high: str
    tracks: tuple[Track, ...]


def interval_chart(title: str, facts: Facts, entries: Sequence[tuple[str, Aggregate]]) -> IntervalChart | None:
    """A line for each entry; ``None`` when none of them has a value."""
    values = [end for _, one in entries for end in (one.value, one.lower, one.upper) if end is not None]
    if not values:
        return None
    scale = Scale.around(values, facts.bounds)
    tracks = []
    for label, one in entries:
        bar = None if one.lower is None or one.upper is None else (scale.x(one.lower), scale.x(one.upper))
        dot = None if one.value is None else scale.x(one.value)
        tracks.append(Track(label, wording.number(one.value, facts.unit), f"{one.n} of {one.N}", dot, bar))
    low, high = (wording.number(end, facts.unit) for end in (scale.low, scale.high))
    return IntervalChart(title, heading(facts), low, high, tuple(tracks))


@dataclass(frozen=True)
class Bar:
    """A column of a histogram and what it says when pointed at."""

    x: str
    width: str
    y: str
    height: str
    title: str


@dataclass(frozen=True)
class Histogram:
    """How the values of one metric are distributed over videos."""

    title: str
    head: str
    low: str
    high: str
    most: int
    total: int
    bars: tuple[Bar, ...]


def histogram(title: str, facts: Facts, values: Sequence[float]) -> Histogram | None:
    """Twenty columns over a little more than the range of ``values``; ``None`` for fewer than two."""
    if len(values) < 2:
        return None
    scale = Scale.around(values, facts.bounds)
    places = [min(_BINS - 1, int(_BINS * scale.share(value))) for value in values]
    counts = [places.count(place) for place in range(_BINS)]
    edges = [scale.low + (scale.high - scale.low) * place / _BINS for place in range(_BINS + 1)]
    bars = []
    for place, (count, (low, high)) in enumerate(zip(counts, pairwise(edges), strict=True)):
        height = HEIGHT * count / max(counts)
        words = f"{wording.ends(low, high, facts.unit)}: {wording.counted(count, 'video')}"
        x, width = 100 * place / _BINS, 100 / _BINS
        if count:
            bars.append(Bar(f"{x:.2f}", f"{width * 0.94:.2f}", f"{HEIGHT - height:.2f}", f"{height:.2f}", words))
    left, right = (wording.number(end, facts.unit) for end in (scale.low, scale.high))
    return Histogram(title, heading(facts), left, right, max(counts), len(values), tuple(bars))


@dataclass(frozen=True)
class Sparkline:
    """A per-frame curve, drawn small.

    Attributes:
        path: SVG path; frames without a value break it.
        dot: place of the worst frame.
    """

    path: str
    dot: tuple[str, str] | None
    title: str


def sparkline(name: str, curve: Curve, scale: Scale, unit: str, worst: int | None) -> Sparkline:
    """``curve`` on ``scale``; a long one is drawn by the least and the largest value of each stretch of frames."""
    last = max(1, len(curve) - 1)
    runs: list[list[str]] = [[]]
    for frame, value in _thinned(curve):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{100 * frame / last:.2f} {scale.y(value)}")
    path = "".join(f"M{' L'.join(points if len(points) > 1 else points * 2)}" for points in runs if points)
    dot = None
    finite = curve[np.isfinite(curve)]
    title = f"{name}, frames 0 to {len(curve) - 1}"
    if len(finite):
        ends = wording.ends(float(finite.min()), float(finite.max()), unit)
        title += f": {ends}" if unit == "ratio" else f": {ends} {wording.unit_of(unit)}".rstrip()
    if worst is not None and 0 <= worst < len(curve) and math.isfinite(curve[worst]):
        dot = (f"{100 * worst / last:.2f}", scale.y(float(curve[worst])))
        title += f"; worst frame {worst}"
    return Sparkline(path, dot, title)


def _thinned(curve: Curve) -> list[tuple[int, float | None]]:
    """(frame, value) with ``None`` for a frame without one; at most two frames of each stretch."""
    if len(curve) <= 2 * _BUCKETS:
        return [(frame, value if math.isfinite(value) else None) for frame, value in enumerate(curve.tolist())]
    kept: list[tuple[int, float | None]] = []
    edges = [len(curve) * place // _BUCKETS for place in range(_BUCKETS + 1)]
    for start, end in pairwise(edges):
        stretch = curve[start:end]
        finite = np.flatnonzero(np.isfinite(stretch))
        if not len(finite):
            kept.append((start, None))
            continue
        values = stretch[finite]
        places = sorted({int(finite[values.argmin()]), int(finite[values.argmax()])})
        kept += [(start + place, float(stretch[place])) for place in places]
    return kept


def arrow(facts: Facts) -> str:
    """Which direction is better; nothing for a metric that ranks nothing."""
    if facts.caveat:
        return ""
    return "↑" if facts.higher_is_better else "↓"


def heading(facts: Facts) -> str:
    """Direction, and the unit where it is not percent."""
    unit = "" if facts.unit == "ratio" else wording.unit_of(facts.unit)
    return f"{arrow(facts)} {unit}".strip()
