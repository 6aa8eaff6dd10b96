"""Times and spans in replies: seconds, clock times, ranges in one field, and the ways prose names a span."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from gen_eval.records.reasons import Flag
from gen_eval.replies.numbers import read_number, tidy
from gen_eval.replies.payload import Payload, find_payload
from gen_eval.replies.prelude import unwrap
from gen_eval.replies.reading import Reading

Span: TypeAlias = tuple[float, float]
"""Start and end in seconds."""

START_KEYS = ("start", "start_time", "begin", "from")
END_KEYS = ("end", "end_time", "to")

_LONGEST = 128  # characters of a field that holds a time or a range
_UNIT = r"(?:\s{0,8}(?:seconds?|secs?|s)\b)?"
_TIME = r"[+-]?(?:\d{1,9}(?::\d{1,2}){1,2}(?:[.,]\d{1,9})?|\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?![\d:])"
_CLOCK = re.compile(r"([+-]?)(\d{1,9}):(\d{1,2})(?::(\d{1,2}))?(?:[.,](\d{1,9}))?(?:\s{0,8}(?:seconds?|secs?|s))?")
_CLOCKS = re.compile(r"(?<![\w.:])[+-]?\d{1,9}(?::\d{1,2}){1,2}(?:[.,]\d{1,9})?(?![\w:])")
_DASH = r"\s{0,8}(?:-|\u2013|\u2014)\s{0,8}"
_BRACKETS = re.compile(
    rf"[\[(]\s{{0,8}}({_TIME}){_UNIT}\s{{0,8}}(?:,|;)\s{{0,8}}({_TIME}){_UNIT}\s{{0,8}}[\])]"
    rf"|<\s{{0,8}}({_TIME}){_UNIT}\s{{0,8}}>[\s,]{{0,8}}<\s{{0,8}}({_TIME}){_UNIT}\s{{0,8}}>"
)
_RANGES = re.compile(
    rf"(?<![\w.:])({_TIME}){_UNIT}(?:{_DASH}|\s{{1,8}}to\s{{1,8}})({_TIME}){_UNIT}"
    rf"|\bbetween\s{{1,8}}({_TIME}){_UNIT}\s{{1,8}}and\s{{1,8}}({_TIME}){_UNIT}"
)
_NUMBERS = re.compile(rf"(?<![\w.:])({_TIME})(?:(?![\w:])|(?=(?:seconds?|secs?|s)\b))")
_RANGE_FIELD = re.compile(rf"\s*({_TIME}){_UNIT}(?:{_DASH}|\s{{1,8}}to\s{{1,8}})({_TIME}){_UNIT}\s*")


def read_time(value: Any) -> float | None:
    """A time in seconds: a number of seconds, or ``M:S`` or ``H:M:S`` with decimals; either may have a sign.

    Returns:
        Seconds; ``None`` when it is no time.
    """
    if (number := read_number(value, "seconds")) is not None:
        return number
    return _clock(tidy(value)) if isinstance(value, str) and len(value) <= _LONGEST else None


def read_times(value: Any) -> tuple[float | None, float | None]:
    """The start and, where one field holds a range (``00:02-00:06``), the end of a field of times."""
    if (time := read_time(value)) is not None:
        return time, None
    if isinstance(value, str) and len(value) <= _LONGEST and (match := _RANGE_FIELD.fullmatch(tidy(value))):
        return read_time(match.group(1)), read_time(match.group(2))
    return None, None


def _clock(text: str) -> float | None:
    match = _CLOCK.fullmatch(text.strip("<>"))
    if match is None:
        return None
    sign, first, second, third, decimals = match.groups()
    whole = int(first) * 60 + int(second) if third is None else (int(first) * 60 + int(second)) * 60 + int(third)
    return float(f"{sign}{whole}.{decimals or 0}")


def times_of(element: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Start and end of an object that has keys for them (``start``, ``start_time``, ``begin``, ``from`` / ``end``, …).

    A range in the start field gives the end too, where the end field is empty or absent.
    """
    fields = {str(key).casefold().strip().replace(" ", "_").replace("-", "_"): value for key, value in element.items()}
    start, end = read_times(next((fields[key] for key in START_KEYS if key in fields), None))
    given = next((fields[key] for key in END_KEYS if key in fields), None)
    if given is not None and not (isinstance(given, str) and not given.strip()):
        end = read_times(given)[0]
    return start, end


def read_span(
    reply: Any,
    *,
    duration: float | None = None,
    outside: Literal["clamp", "keep"] = "clamp",
    reversed_ends: Literal["sort", "keep"] = "sort",
) -> Reading[Span]:
    """The one span that a reply names, in seconds.

    Read from JSON where there is some, else from prose: the first bracketed pair, else the first two clock times, else
    the first range, else the first two numbers.

    Args:
        reply: the raw reply; ``None`` for none.
        duration: of the clip, in seconds; ``None`` where it is not known.
        outside: ``clamp`` brings both ends into 0 to ``duration``; ``keep`` raises what is below 0 and leaves the end.
        reversed_ends: ``sort`` exchanges ends in the wrong order; ``keep`` leaves them (an overlap of 0).

    Returns:
        Start and end. Failures: those of the prelude, ``no_answer``, ``bad_json``, ``no_usable_event``. Flags:
        ``several_spans`` (the first is taken), ``clipped``, ``cut_off``.
    """
    opened = unwrap(reply)
    if opened.value is None:
        return Reading(None, opened.failure, opened.rule)
    text = opened.value
    if not text.strip():
        return Reading(None, Flag.EMPTY, "nothing left")
    payload = find_payload(text, lambda value: any(_span(element) is not None for element in _elements(value)))
    found, rule, cut = _from_payload(payload)
    if not found and (payload is None or payload.cut):
        found, rule = _from_prose(text)
    dropped = 0 if payload is None else _spans(payload.value)[1]
    detail = {"dropped": {"unreadable": dropped}} if dropped else {}
    flags = (Flag.CUT_OFF,) if cut else ()
    if not found:
        return Reading(None, _failure(text, payload), "no span", flags, detail)
    if len(found) > 1:
        flags = (Flag.SEVERAL_SPANS, *flags)
    return _placed(found[0], rule, flags, detail, duration, outside, reversed_ends)


def _placed(
    span: Span,
    rule: str,
    flags: tuple[Flag, ...],
    detail: Mapping[str, Any],
    duration: float | None,
    outside: Literal["clamp", "keep"],
    reversed_ends: Literal["sort", "keep"],
) -> Reading[Span]:
    """A span in order and inside the clip, as far as that is asked for."""
    start, end = sorted(span) if reversed_ends == "sort" else span
    highest = duration if outside == "clamp" and duration is not None else float("inf")
    lowest = 0.0 if outside == "keep" or duration is not None else float("-inf")
    inside = (min(max(start, lowest), highest), min(max(end, lowest), highest))
    if inside != (start, end):
        flags = (*flags, Flag.CLIPPED)
    return Reading(inside, rule=rule, flags=flags, detail=detail)


def _failure(text: str, payload: Payload | None) -> Flag:
    if payload is not None and payload.value not in ([], {}):
        return Flag.NO_USABLE_EVENT
    return Flag.BAD_JSON if payload is None and text.lstrip().startswith(("{", "[")) else Flag.NO_ANSWER


# --- JSON


def _from_payload(payload: Payload | None) -> tuple[list[Span], str, bool]:
    if payload is None:
        return [], "", False
    found = _spans(payload.value)[0] or _spans(payload.closed)[0]
    return found, payload.rule, payload.cut


def _spans(value: Any) -> tuple[list[Span], int]:
    """The spans of a JSON value, in order, and how many of its elements are none."""
    elements = _elements(value)
    read = [span for element in elements if (span := _span(element)) is not None]
    return read, len(elements) - len(read)


def _elements(value: Any) -> list[Any]:
    """What may each be a span; one level of wrapping is taken off."""
    if isinstance(value, dict):
        if _span(value) is not None:
            return [value]
        lists = [inner for inner in value.values() if isinstance(inner, list) and inner]
        if len(lists) == 1 and (len(value) == 1 or isinstance(lists[0][0], dict)):
            return _elements(lists[0])
        only = next(iter(value.values())) if len(value) == 1 else None
        return [only] if isinstance(only, dict | str) else [value]
    if isinstance(value, list):
        return [value] if _span(value) is not None else value
    return []


def _span(element: Any) -> Span | None:
    if isinstance(element, Mapping):
        start, end = times_of(element)
    elif isinstance(element, list) and len(element) == 2:
        start, end = read_time(element[0]), read_time(element[1])
    else:
        start, end = read_times(element)
    return None if start is None or end is None else (start, end)


# --- prose


def _from_prose(text: str) -> tuple[list[Span], str]:
    """The spans that the first pattern with a hit finds, and its name."""
    plain = tidy(text)
    for name, find in _PROSE:
        if found := find(plain):
            return found, f"prose: {name}"
    return [], ""


def _matched(pattern: re.Pattern[str], text: str) -> list[Span]:
    found = []
    for match in pattern.finditer(text):
        start, end = (read_time(group) for group in match.groups() if group is not None)
        if start is not None and end is not None:
            found.append((start, end))
    return found


def _pairs(pattern: re.Pattern[str], text: str) -> list[Span]:
    """Every two hits in a row, the first of them alone where numbers are all that there is."""
    times = [time for match in pattern.finditer(text) if (time := read_time(match.group())) is not None]
    return list(zip(times[::2], times[1::2], strict=False))


_PROSE: tuple[tuple[str, Callable[[str], list[Span]]], ...] = (
    ("bracketed pair", lambda text: _matched(_BRACKETS, text)),
    ("clock times", lambda text: _pairs(_CLOCKS, text)),
    ("range", lambda text: _matched(_RANGES, text)),
    ("two numbers", lambda text: _pairs(_NUMBERS, text)[:1]),
)
