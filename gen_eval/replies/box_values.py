"""The boxes of a JSON value as four numbers each, whatever shape they were written in; no unit is applied yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gen_eval.replies.numbers import read_number
from gen_eval.replies.repair import parse

Numbers: TypeAlias = tuple[float, float, float, float]

BOX_KEYS = (
    "bbox_2d",
    "bbox",
    "box_2d",
    "box",
    "box2d",
    "box_2",
    "bounding_box",
    "coordinates",
    "boxes",
    "bboxes",
)
_CORNERS = (("x1", "y1", "x2", "y2"), ("x0", "y0", "x1", "y1"), ("xmin", "ymin", "xmax", "ymax"))
_LABELS = ("label", "category", "class", "name")
_SCORES = ("score", "confidence")
_DEEPEST = 4  # wrappers around a box or a list of boxes
_LONGEST = 256  # characters of a box that is written as one text
_TAGGED = re.compile(r"<box>([^<]{0,256}+)", re.IGNORECASE)
_ROUND = re.compile(r"\([^()\[\]{}]{1,80}+\)(?:\s{0,4},?\s{0,4}\([^()\[\]{}]{1,80}+\))?")
_MARKS = re.compile(r"</?box>|[\[\](){}]")
_GAPS = re.compile(r"[\s,;]++")


@dataclass(frozen=True)
class BoxValue:
    """One element of a reply that stands for a box.

    Attributes:
        numbers: as written, in the order written; ``None`` when it is unusable.
        key: the box key that it stood under.
        name: the key of an object whose values are boxes.
        named_corners: whether the corners had names, which settle their order.
        absent: whether it was given as null under a name, which says that there is no box.
        label: what it is said to be.
        score: how sure the reply says it is.
        fields: the rest of its object.
    """

    numbers: Numbers | None
    key: str | None = None
    name: str | None = None
    named_corners: bool = False
    absent: bool = False
    label: str | None = None
    score: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def box_values(value: Any) -> list[BoxValue]:
    """The elements of a JSON value that stand for boxes; those that cannot be read are among them without numbers."""
    return list(each_box(value))


def each_box(value: Any) -> Iterator[BoxValue]:
    """The same one after the other, for who stops early."""
    return _elements(value, _DEEPEST)


def tagged_boxes(text: str) -> list[Any]:
    """Boxes in ``<box>…</box>``, or in round brackets where a text has no others, or a text that is one box.

    Returns:
        A value for :func:`box_values`, empty when there are none; what stands in tags and is no box is kept as text.
    """
    if tags := [match.group(1) for match in _TAGGED.finditer(text)]:
        return [_tagged(tag) for tag in tags]
    if "[" in text or "{" in text:
        return []
    pieces = [match.group() for match in _ROUND.finditer(text)] or [text]
    return [list(read[0]) for piece in pieces if (read := _of_text(piece)) is not None]


def _tagged(content: str) -> Any:
    if (read := _of_text(content)) is not None:
        return list(read[0])
    try:
        return parse(content)
    except ValueError:
        return content


def _elements(value: Any, depth: int) -> Iterator[BoxValue]:
    if isinstance(value, list):
        many = any(isinstance(item, list | dict) for item in value) or all(isinstance(item, str) for item in value)
        if _numbers(value) is not None or not many:
            yield _bare(value)
            return
        for item in value:
            yield from _element(item, depth)
    elif isinstance(value, dict):
        yield from _of_object(value, depth)
    elif value is not None:
        yield _bare(value)


def _element(item: Any, depth: int) -> Iterator[BoxValue]:
    """One item of a list: a box, an object that has one, or (nested once more) a list of those."""
    nested = isinstance(item, list) and _numbers(item) is None and all(isinstance(one, list | dict) for one in item)
    if depth > 0 and (nested or isinstance(item, dict)):
        yield from _elements(item, depth - 1)
    else:
        yield _bare(item)


def _of_object(value: dict[str, Any], depth: int) -> Iterator[BoxValue]:
    if (own := _own_box(value)) is not None:
        yield own
    elif (listed := _only_list(value)) is not None and depth > 0:
        yield from _elements(listed, depth - 1)
    elif any(_is_box(item) for item in value.values()) or (value and set(map(type, value.values())) == {type(None)}):
        yield from _named(value)
    elif len(value) == 1 and isinstance(only := next(iter(value.values())), dict | list) and depth > 0:
        yield from _elements(only, depth - 1)
    elif value:
        yield BoxValue(None, fields=value)


def _only_list(value: Mapping[str, Any]) -> list[Any] | None:
    """The only list of objects or boxes among the values, or the only list where that is empty."""
    lists = [item for item in value.values() if isinstance(item, list) and _numbers(item) is None]
    holding = [item for item in lists if any(isinstance(one, list | dict) for one in item)]
    if len(holding) == 1:
        return holding[0]
    return lists[0] if len(lists) == 1 and not lists[0] else None


def _is_box(item: Any) -> bool:
    return _numbers(item) is not None or (isinstance(item, dict) and _own_box(item) is not None)


def _named(value: Mapping[str, Any]) -> Iterator[BoxValue]:
    """The values of an object whose values are boxes; null says that there is none under that name."""
    for name, item in value.items():
        if isinstance(item, dict) and (own := _own_box(item)) is not None:
            yield replace(own, name=name)
        elif item is None:
            yield BoxValue(None, name=name, absent=True)
        elif isinstance(item, list | dict | str):
            yield replace(_bare(item), name=name)


def _own_box(value: Mapping[str, Any]) -> BoxValue | None:
    """The box of an object that has one under a box key, or corners by name."""
    names = {str(name).casefold().strip().replace(" ", "_").replace("-", "_"): name for name in value}
    for key in BOX_KEYS:
        if key not in names:
            continue
        given = value[names[key]]
        if isinstance(given, list | dict) and _numbers(given) is None and _is_many(given):
            continue  # a list of boxes: a wrapper
        return _described(value, given, key, {names[key]})
    if (corners := _corners(value)) is not None:
        return _described(value, dict(value), None, set(corners))
    return None


def _is_many(given: Any) -> bool:
    items = list(given.values()) if isinstance(given, dict) else given
    return not items or any(isinstance(item, list | dict | str) and len(item) >= 2 for item in items)


def _described(value: Mapping[str, Any], given: Any, key: str | None, used: set[str]) -> BoxValue:
    read = _numbers(given)
    label = next((value[name] for name in _LABELS if isinstance(value.get(name), str)), None)
    score = next((one for name in _SCORES if (one := read_number(value.get(name))) is not None), None)
    return BoxValue(
        read[0] if read else None,
        key,
        named_corners=isinstance(given, dict) and _corners(given) is not None,
        label=label,
        score=score if score is not None or read is None else read[1],
        fields={name: item for name, item in value.items() if name not in used},
    )


def _bare(item: Any) -> BoxValue:
    read = _numbers(item)
    return BoxValue(read[0] if read else None, score=read[1] if read else None)


# --- shapes of one box


def _corners(value: Mapping[str, Any]) -> tuple[str, ...] | None:
    names = {str(name).casefold().replace("_", ""): name for name in value}
    return next((tuple(names[one] for one in four) for four in _CORNERS if all(one in names for one in four)), None)


def _numbers(value: Any, depth: int = 2) -> tuple[Numbers, float | None] | None:
    """Four numbers and perhaps a score, or ``None``."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, dict):
        corners = _corners(value)
        return None if corners is None else _of_list([value[name] for name in corners])
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list) and depth > 0:
        return _numbers(value[0], depth - 1)
    if len(value) == 2 and all(isinstance(one, list) and len(one) == 2 for one in value):
        return _of_list([*value[0], *value[1]])
    return _of_list(value)


def _of_list(items: list[Any]) -> tuple[Numbers, float | None] | None:
    if len(items) not in (4, 5):
        return None
    read = [read_number(item, "pixels") for item in items]
    a, b, c, d, *rest = read
    if a is None or b is None or c is None or d is None:
        return None
    return (a, b, c, d), rest[0] if rest else None


def _of_text(text: str) -> tuple[Numbers, float | None] | None:
    """A box that is one text of four numbers, with or without brackets or tags around them."""
    if len(text) > _LONGEST:
        return None
    pieces = [piece for piece in _GAPS.split(_MARKS.sub(" ", text)) if piece]
    return _of_list(list(pieces)) if len(pieces) == 4 else None
