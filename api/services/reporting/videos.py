"""The table of videos: a line for each generated video, with pictures, curves, values, flags and reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from api.services import wording
from api.services.facts import facts_of
from api.services.reporting.assets import Assets, Curve
from api.services.reporting.charts import Scale, Sparkline, sparkline
from api.services.reporting.evidence import Shot, shots_of
from api.services.reporting.limits import Limits
from api.services.results import RunResults
from gen_eval.records import Score, Status

Clip = tuple[str, str]
"""Sample and member."""


@dataclass(frozen=True)
class Cell:
    """A metric of a video under the protocol that was asked for.

    Attributes:
        sort: the value as text for the script that sorts; empty without one.
        reason: why there is no value.
        title: the reason in words.
    """

    metric: str
    text: str
    sort: str
    reason: str
    title: str
    curve: Sparkline | None = None


@dataclass(frozen=True)
class Entry:
    """A row of the run, in words."""

    metric: str
    protocol: str
    text: str
    further: str
    status: str
    reason: str
    words: str
    message: str
    flags: str


@dataclass(frozen=True)
class Line:
    """One video.

    Attributes:
        facts: frames and rate.
        statuses: statuses under the protocol that was asked for, for the filter.
        entries: all rows under all protocols; only for videos that are shown in full.
    """

    sample: str
    member: str
    domain: str
    file: str
    facts: str
    statuses: str
    cells: tuple[Cell, ...]
    flags: tuple[tuple[str, str], ...]
    reasons: tuple[tuple[str, str], ...]
    entries: tuple[Entry, ...] = ()
    thumbnail: str | None = None
    shots: tuple[Shot, ...] = ()


@dataclass(frozen=True)
class VideoTable:
    """The lines that a page shows, and how many there are.

    Attributes:
        total: videos of the run.
        pictured: those shown in full: with all values, and with pictures and curves if the run holds any.
        statuses: statuses that occur, for the filter.
    """

    metrics: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    total: int
    pictured: int
    statuses: tuple[str, ...]


def video_table(run: RunResults, limits: Limits) -> VideoTable:
    """The lines of ``run`` in key order; with more than ``limits`` allow, the failed and the worst ones."""
    clips: dict[Clip, list[Score]] = defaultdict(list)
    for row in run.rows:
        clips[row.sample, row.member].append(row)
    protocol = str(run.manifest["protocol"])
    order = _by_importance(clips, protocol)
    listed, pictured = set(order[: limits.listed]), order[: min(limits.pictured, limits.listed)]
    writer = _Writer(run, protocol)
    lines = {clip: writer.line(clip, rows) for clip, rows in clips.items() if clip in listed}
    illustrated = _Illustrator(run, protocol, limits.picture_bytes).illustrated(
        lines, {one: clips[one] for one in pictured}
    )
    metrics = tuple((name, facts_of(name).source) for name in writer.metrics)
    found = {str(row.status) for row in run.rows if row.protocol == protocol}
    statuses = tuple(str(status) for status in Status if str(status) in found)
    return VideoTable(metrics, tuple((lines | illustrated).values()), len(clips), len(illustrated), statuses)


def _by_importance(clips: Mapping[Clip, Sequence[Score]], protocol: str) -> list[Clip]:
    """Failed and refused first, then by the worst rank that a clip has in any metric."""
    ranked: dict[str, list[tuple[float, Clip]]] = defaultdict(list)
    broken: dict[Clip, bool] = {}
    for clip, rows in clips.items():
        asked = [row for row in rows if row.protocol == protocol]
        broken[clip] = any(row.status in {Status.FAILED, Status.REFUSED} for row in asked)
        for row in asked:
            if row.value is not None:
                ranked[row.metric].append((row.value if facts_of(row.metric).higher_is_better else -row.value, clip))
    worst: dict[Clip, float] = {}
    for found in ranked.values():
        for place, (_, clip) in enumerate(sorted(found)):
            worst[clip] = min(worst.get(clip, 1.0), place / len(found))
    return sorted(clips, key=lambda clip: (not broken[clip], worst.get(clip, 1.0), clip))


class _Writer:
    """Puts the rows of a clip into words."""

    def __init__(self, run: RunResults, protocol: str) -> None:
        self._run, self._protocol = run, protocol
        self.metrics = sorted(run.manifest["metrics"])
        self._files: dict[Clip, str] = {
            (sample["id"], member["id"]): member.get("path") or ""
            for sample in run.manifest["samples"]
            for member in sample["members"]
        }

    def line(self, clip: Clip, rows: Sequence[Score]) -> Line:
        """The line of a clip, still without pictures and curves."""
        asked = {row.metric: row for row in rows if row.protocol == self._protocol}
        reasons = dict.fromkeys(row.reason for row in asked.values() if row.reason is not None)
        flags = dict.fromkeys(flag for row in asked.values() for flag in row.flags)
        found = {row.status for row in asked.values()}
        return Line(
            sample=clip[0],
            member=clip[1],
            domain=self._run.domains.get(clip[0]) or "",
            file=self._files.get(clip, ""),
            facts=_facts(rows),
            statuses=" ".join(str(status) for status in Status if status in found),
            cells=tuple(_cell(metric, asked.get(metric)) for metric in self.metrics),
            flags=tuple((str(flag), wording.FLAG_WORDS[flag]) for flag in flags),
            reasons=tuple((str(reason), wording.REASON_WORDS[reason]) for reason in reasons),
        )


def _facts(rows: Sequence[Score]) -> str:
    """Frames and rate of the video, as far as its rows record them."""
    video: Mapping[str, Any] = next(
        (row.detail["video"] for row in rows if isinstance(row.detail.get("video"), Mapping)), {}
    )
    decoded, declared, fps = (video.get(name) for name in ("decoded_frames", "declared_frames", "fps"))
    parts = []
    if isinstance(decoded, int):
        parts.append(wording.counted(decoded, "frame"))
        if isinstance(declared, int) and declared != decoded:
            parts[-1] += f" of {declared:,} declared"
    if isinstance(fps, int | float):
        parts.append(f"{fps:.6g} fps")
    return ", ".join(parts)


def _cell(metric: str, row: Score | None) -> Cell:
    if row is None:
        return Cell(metric, wording.NO_VALUE, "", "", "there is no row yet")
    reason = "" if row.reason is None else str(row.reason)
    title = "" if row.reason is None else wording.REASON_WORDS[row.reason]
    sort = "" if row.value is None else repr(row.value)
    return Cell(metric, wording.number(row.value, facts_of(metric).unit), sort, reason, title)


def _entry(row: Score) -> Entry:
    facts = facts_of(row.metric)
    further = (f"{name} {_further(value, facts.unit_of(name))}" for name, value in sorted(row.values.items()))
    return Entry(
        metric=row.metric,
        protocol=row.protocol,
        text=wording.number(row.value, facts.unit),
        further=", ".join(further),
        status=str(row.status),
        reason="" if row.reason is None else str(row.reason),
        words="" if row.reason is None else wording.REASON_WORDS[row.reason],
        message=str(row.detail.get("message", "")),
        flags=" ".join(map(str, row.flags)),
    )


def _further(value: float | None, unit: str) -> str:
    """A further number with its unit, which need not be that of the metric."""
    text = wording.number(value, unit)
    return text if value is None or unit == "ratio" else f"{text} {wording.unit_of(unit)}".rstrip()


class _Illustrator:
    """Adds pictures and curves to lines until the bytes are used up."""

    def __init__(self, run: RunResults, protocol: str, picture_bytes: int) -> None:
        self._assets = Assets(run.path)
        self._protocol = protocol
        self._left = picture_bytes

    def illustrated(self, lines: Mapping[Clip, Line], clips: Mapping[Clip, Sequence[Score]]) -> dict[Clip, Line]:
        """The lines of ``clips``, which come in the order of their importance, with what there is to see."""
        drawn: dict[Clip, Line] = {}
        for clip, rows in clips.items():
            asked = [row for row in rows if row.protocol == self._protocol]
            before = self._left
            thumbnail = self._picture(
                next((row.frames["thumbnail"] for row in asked if "thumbnail" in row.frames), None)
            )
            shots = tuple(shots_of(asked, self._assets.curves, self._picture))
            if self._left < 0:
                self._left = before
                break
            drawn[clip] = replace(lines[clip], thumbnail=thumbnail, shots=shots, entries=tuple(map(_entry, rows)))
        return self._with_curves(drawn, clips)

    def _picture(self, name: str | None) -> str | None:
        address = None if name is None else self._assets.address(name)
        self._left -= len(address or "")
        return address

    def _with_curves(self, drawn: dict[Clip, Line], clips: Mapping[Clip, Sequence[Score]]) -> dict[Clip, Line]:
        """All curves of a metric share one scale, so that videos can be compared by eye."""
        found = {clip: self._first_curves(clips[clip]) for clip in sorted(drawn)}
        ranges: dict[str, list[float]] = defaultdict(list)
        for curves in found.values():
            for metric, (_, _, curve) in curves.items():
                finite = curve[np.isfinite(curve)]
                if len(finite):
                    ranges[metric] += [float(finite.min()), float(finite.max())]
        scales = {metric: Scale(min(ends), max(ends)) for metric, ends in ranges.items()}
        return {
            clip: replace(line, cells=tuple(self._drawn(cell, found[clip], scales) for cell in line.cells))
            for clip, line in drawn.items()
        }

    def _first_curves(self, rows: Sequence[Score]) -> dict[str, tuple[Score, str, Curve]]:
        found = {}
        for row in rows:
            if row.protocol == self._protocol:
                for name, curve in self._assets.curves(row).items():
                    found[row.metric] = (row, name, curve)
                    break
        return found

    @staticmethod
    def _drawn(cell: Cell, found: Mapping[str, tuple[Score, str, Curve]], scales: Mapping[str, Scale]) -> Cell:
        if cell.metric not in found or cell.metric not in scales:
            return cell
        row, name, curve = found[cell.metric]
        worst = row.detail.get("worst_frame")
        facts = facts_of(cell.metric)
        unit = facts.curve_unit or facts.unit
        return replace(
            cell,
            curve=sparkline(name, curve, scales[cell.metric], unit, worst if isinstance(worst, int) else None),
        )
