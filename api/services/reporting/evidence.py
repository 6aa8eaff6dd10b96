"""The blame view: which frame moved a score, in a sentence, with the pictures that show why."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services import wording
from api.services.facts import facts_of
from api.services.reporting.assets import Curve
from gen_eval.records import Score

_PLAIN = ("thumbnail", "worst", "worst_reference")
_NAMED = 8


@dataclass(frozen=True)
class Exhibit:
    """A picture that shows why a frame counts as it does."""

    picture: str
    words: str


@dataclass(frozen=True)
class Shot:
    """The worst frame of a clip by some metrics.

    Attributes:
        metrics: their names.
        frame: its number, ``?`` when it is not known.
        sentences: which frame, which metric, what value; one a metric.
        picture: the frame, ``None`` when it was not kept.
        beside: the same frame of the reference clip (of another clip, for metrics of all clips together).
        beside_words: which of the two that is.
        exhibits: what shows why.
    """

    metrics: str
    frame: str
    sentences: tuple[str, ...]
    picture: str | None
    beside: str | None
    beside_words: str
    exhibits: tuple[Exhibit, ...] = ()


Address = Callable[[str | None], str | None]
"""Name of a picture -> its data address, ``None`` when it cannot be shown."""


def shots_of(rows: Sequence[Score], curves: Callable[[Score], Mapping[str, Curve]], address: Address) -> Iterator[Shot]:
    """The worst frames of one clip; metrics that agree on one share it."""
    seen: dict[tuple[str | None, str | None, Any], list[Score]] = defaultdict(list)
    for row in rows:
        if any(role != "thumbnail" for role in row.frames) or any(_named(row)):
            worst = row.frames.get("worst")
            frame = row.detail.get("worst_frame")
            seen[worst, row.frames.get("worst_reference"), frame if worst is None else None].append(row)
    for (worst, beside, _), own in seen.items():
        picture = address(worst)
        exhibits = tuple(found for row in own for found in _exhibits(row, address))
        if picture is None and not exhibits and not any(found for row in own for found in _named(row)):
            continue
        frame = own[0].detail.get("worst_frame")
        together = facts_of(own[0].metric).inputs == "set"
        yield Shot(
            ", ".join(row.metric for row in own),
            str(frame) if isinstance(frame, int) else "?",
            tuple(sentence(row, curves(row)) for row in own),
            picture,
            None if picture is None else address(beside),
            "another clip" if together else "reference",
            exhibits,
        )


def _exhibits(row: Score, address: Address) -> Iterator[Exhibit]:
    words = facts_of(row.metric).evidence_words
    for role in [*words, *(role for role in row.frames if role not in words)]:  # in the order of the metric
        picture = None if role in _PLAIN else address(row.frames.get(role))
        if picture is not None:
            yield Exhibit(picture, words.get(role, role.replace("_", " ")))


def sentence(row: Score, curves: Mapping[str, Curve]) -> str:
    """Which frame moved the score of ``row``, by how much, and what else is to blame."""
    facts, frame = facts_of(row.metric), row.detail.get("worst_frame")
    parts = []
    if isinstance(frame, int):
        curve = curves.get(row.metric)
        value = curve[frame] if curve is not None and 0 <= frame < len(curve) else math.nan
        shown = "" if not math.isfinite(value) else f", {wording.number(float(value), facts.curve_unit or facts.unit)}"
        whole = "" if row.value is None else f" (clip: {wording.number(row.value, facts.unit)})"
        parts.append(f"{row.metric} is worst in frame {frame}{shown}{whole}")
    return "; ".join([*parts, *_named(row)]) or row.metric


def _named(row: Score) -> Iterator[str]:
    """What is to blame besides a frame."""
    yield from _unmatched(row)
    yield from _most_alike(row)


def _unmatched(row: Score) -> Iterator[str]:
    """Classes that have no partner on the other side."""
    found = row.detail.get("unmatched")
    if not isinstance(found, Mapping):
        return
    for side, words in (
        ("reference", "not matched in the reference clip"),
        ("prediction", "only in the generated clip"),
    ):
        names = found.get(side)
        if isinstance(names, list) and names:
            yield f"{words}: {wording.listed([str(name) or 'no phrase' for name in names], _NAMED)}"


def _most_alike(row: Score) -> Iterator[str]:
    """The two clips of a sample that differ least."""
    pairs, members = row.detail.get("pairs"), row.detail.get("members")
    if not isinstance(pairs, list) or not isinstance(members, list):
        return
    distances = [pair for pair in pairs if isinstance(pair, Mapping) and isinstance(pair.get("distance"), float)]
    if not distances:
        return
    closest = min(distances, key=lambda pair: float(pair["distance"]))
    one, other = (members[place] for place in closest["clips"])
    unit = facts_of(row.metric).unit
    yield f"most alike: the clips {one} and {other}, distance {wording.number(float(closest['distance']), unit)}"
