"""Boxes in replies: found, read as numbers, and brought from the declared unit and order to fractions of the picture.

The convention belongs to the model and is declared; nothing is rescaled and no reading is chosen because it would fit
better. What looks like another convention is flagged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from gen_eval.records.reasons import Flag
from gen_eval.replies.box_values import BoxValue, box_values, each_box, tagged_boxes
from gen_eval.replies.payload import Payload, find_payload
from gen_eval.replies.prelude import unwrap
from gen_eval.replies.reading import Reading

Size: TypeAlias = tuple[int, int]
"""Height and width of a picture, in pixels."""

TOLERANCE = 0.02
"""How far a value may lie outside its range, as a share of the range."""

_RANGES = {"thousandths": 1000.0, "fraction": 1.0, "bin_100": 99.0}
_SUSPECT_KEY = "box_2d"  # the name that a family with y before x gives its boxes


class Declared(Protocol):
    """Unit and order of boxes, as a model entry declares them."""

    @property
    def unit(self) -> str:
        """``thousandths``, ``fraction``, ``pixel_of_input``, ``pixel_of_source`` or ``bin_100``."""

    @property
    def order(self) -> str:
        """``xyxy`` or ``yxyx``."""

    @property
    def keys(self) -> Mapping[str, str]:
        """Names of box keys whose order is another one."""


@dataclass(frozen=True)
class Box:
    """One box of a reply.

    Attributes:
        x0: left edge, as a fraction of the width, 0..1.
        y0: upper edge, as a fraction of the height, 0..1.
        x1: right edge, as a fraction of the width; at least ``x0``.
        y1: lower edge, as a fraction of the height; at least ``y0``.
        label: what the reply says it is.
        score: how sure the reply says it is.
        name: the key under which the box stood, where boxes are the values of an object (``frame_3``).
        fields: everything else of its object, such as a time or a frame.
        flags: what was unusual about this box.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    label: str | None = None
    score: float | None = None
    name: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    flags: tuple[Flag, ...] = ()

    @property
    def xyxy(self) -> tuple[float, float, float, float]:
        """Left, upper, right and lower edge."""
        return self.x0, self.y0, self.x1, self.y1


def read_boxes(
    reply: Any,
    coordinates: Declared,
    *,
    size: Size | None = None,
    input_size: Size | None = None,
    values: Literal["first", "all"] = "first",
    zero_area: Literal["drop", "keep"] = "drop",
) -> Reading[tuple[Box, ...]]:
    """The boxes of a reply, as fractions of the picture.

    Args:
        reply: the raw reply; ``None`` for none.
        coordinates: unit and order that the model entry declares.
        size: height and width of the picture itself; needed for ``pixel_of_source``.
        input_size: height and width of the picture as the model was shown it; needed for ``pixel_of_input``.
        values: of several lists scattered in prose, the first or all.
        zero_area: whether a box without area is dropped or kept.

    Returns:
        The boxes in the order of the reply; an empty list or object is read as no boxes. Failures: those of the
        prelude, ``no_answer``, ``bad_json``, ``no_usable_box``, ``out_of_range``. Flags: ``clipped``,
        ``corners_swapped``, ``scale_suspect``, ``order_suspect``, ``cut_off``. ``detail["dropped"]`` counts boxes that
        were left out, as ``out_of_range`` or ``unreadable``; ``detail["absent"]`` those given as null under a name.

    Raises:
        ValueError: the declared unit needs a size that was not given, or is not known.
    """
    ranges = _ranges(coordinates.unit, size, input_size)
    opened = unwrap(reply)
    if opened.value is None:
        return Reading(None, opened.failure, opened.rule)
    text = opened.value
    if not text.strip():
        return Reading(None, Flag.EMPTY, "nothing left")
    payload = _located(text, values)
    if payload is None:
        failure = Flag.BAD_JSON if text.lstrip().startswith(("{", "[")) else Flag.NO_ANSWER
        return Reading(None, failure, "no box")
    return _placed(payload, coordinates, ranges, zero_area == "keep")


def _located(text: str, values: Literal["first", "all"]) -> Payload | None:
    if tagged := tagged_boxes(text):
        return Payload(tagged, "tags")
    return find_payload(text, _has_box, every=values == "all")


def _has_box(value: Any) -> bool:
    return any(one.numbers is not None for one in each_box(value))


def _ranges(unit: str, size: Size | None, input_size: Size | None) -> tuple[float, float]:
    """The highest value of x and of y."""
    if unit in _RANGES:
        return _RANGES[unit], _RANGES[unit]
    if unit not in {"pixel_of_input", "pixel_of_source"}:
        raise ValueError(f"no unit of boxes is called {unit!r}; see gen_eval.mllm.entry.Coordinates")
    picture, name = (input_size, "input_size") if unit == "pixel_of_input" else (size, "size")
    if picture is None or min(picture) < 1:
        raise ValueError(f"boxes in {unit} need {name}, the height and width in pixels; got {picture}")
    return float(picture[1]), float(picture[0])


# --- from numbers to fractions


@dataclass
class _Found:
    """What becomes of the boxes of one reply."""

    boxes: list[Box] = field(default_factory=list)
    flags: set[Flag] = field(default_factory=set)
    out_of_range: int = 0
    unreadable: int = 0
    absent: int = 0

    @property
    def detail(self) -> dict[str, Any]:
        dropped = {
            name: count
            for name, count in (("out_of_range", self.out_of_range), ("unreadable", self.unreadable))
            if count
        }
        return {**({"dropped": dropped} if dropped else {}), **({"absent": self.absent} if self.absent else {})}


def _placed(
    payload: Payload, coordinates: Declared, ranges: tuple[float, float], keep_flat: bool
) -> Reading[tuple[Box, ...]]:
    found = _Found(flags={Flag.CUT_OFF} if payload.cut else set())
    values = box_values(payload.value)
    if _looks_like_fractions(values, coordinates.unit):
        found.flags.add(Flag.SCALE_SUSPECT)
    for value in values:
        _place(value, found, coordinates, ranges, keep_flat)
    flags = tuple(flag for flag in _ORDER_OF_FLAGS if flag in found.flags)
    lost = found.out_of_range + found.unreadable
    if not found.boxes and (lost or payload.cut):
        failure = Flag.OUT_OF_RANGE if found.out_of_range else Flag.NO_USABLE_BOX
        return Reading(None, failure, payload.rule, flags, found.detail)
    return Reading(tuple(found.boxes), rule=payload.rule, flags=flags, detail=found.detail)


_ORDER_OF_FLAGS = (Flag.CLIPPED, Flag.CORNERS_SWAPPED, Flag.SCALE_SUSPECT, Flag.ORDER_SUSPECT, Flag.CUT_OFF)


def _looks_like_fractions(values: list[BoxValue], unit: str) -> bool:
    """Whether all numbers of a reply lie in 0..1 under a unit of which that is a hundredth or less."""
    numbers = [number for value in values if value.numbers for number in value.numbers]
    return unit != "fraction" and bool(numbers) and all(0 <= number <= 1 for number in numbers)


def _place(value: BoxValue, found: _Found, coordinates: Declared, ranges: tuple[float, float], keep_flat: bool) -> None:
    if value.absent:
        found.absent += 1
        return
    if value.numbers is None:
        found.unreadable += 1
        return
    order = _order(value, coordinates)
    flags = set()
    if value.key == _SUSPECT_KEY and order == "xyxy" and _SUSPECT_KEY not in coordinates.keys:
        flags.add(Flag.ORDER_SUSPECT)
    a, b, c, d = value.numbers
    corners = (a, b, c, d) if order == "xyxy" else (b, a, d, c)
    fractions = [number / ranges[axis % 2] for axis, number in enumerate(corners)]
    if any(not -TOLERANCE - _ULP <= one <= 1 + TOLERANCE + _ULP for one in fractions):
        found.out_of_range += 1
        found.flags |= flags
        return
    inside = [min(max(one, 0.0), 1.0) for one in fractions]
    if inside != fractions:
        flags.add(Flag.CLIPPED)
    (x0, x1), (y0, y1) = sorted(inside[0::2]), sorted(inside[1::2])
    if [x0, y0, x1, y1] != inside:
        flags.add(Flag.CORNERS_SWAPPED)
    found.flags |= flags
    if not keep_flat and (x1 <= x0 or y1 <= y0):
        found.unreadable += 1
        return
    own = tuple(flag for flag in _ORDER_OF_FLAGS if flag in flags)
    found.boxes.append(Box(x0, y0, x1, y1, value.label, value.score, value.name, value.fields, own))


_ULP = math.ulp(2.0)  # the edge of the tolerance itself is inside, whatever the unit


def _order(value: BoxValue, coordinates: Declared) -> str:
    """The order of a box: by name where its corners have names, else as declared for its key."""
    if value.named_corners:
        return "xyxy"
    return coordinates.keys.get(value.key, coordinates.order) if value.key else coordinates.order
