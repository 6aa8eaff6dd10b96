"""What a parameter of a protocol may be, asked for where it is used: whole numbers, numbers, and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from gen_eval.records import InputError


def whole_number(section: Mapping[str, Any], name: str, *, least: int = 0, most: int | None = None) -> int:
    """The whole number ``section[name]``.

    Raises:
        InputError: it is none, or lies outside of ``least`` to ``most``.
    """
    value = section[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, not {value!r}")
    if most is not None and value > most:
        raise InputError(f"{name} must be a whole number, {most} at most, not {value!r}")
    return int(value)


def number_above(section: Mapping[str, Any], name: str, least: float, *, or_equal: bool = False) -> float:
    """The finite number ``section[name]``, above ``least``.

    Raises:
        InputError: it is none, or not above ``least`` (``or_equal``: below it).
    """
    value = section[name]
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or value < least or (value == least and not or_equal):
        expected = f"{least:g} or more" if or_equal else f"above {least:g}"
        raise InputError(f"{name} must be a number {expected}, not {value!r}")
    return float(value)


def word_of(section: Mapping[str, Any], name: str, known: Iterable[str]) -> str:
    """The word ``section[name]``, one of ``known``.

    Raises:
        InputError: it is another.
    """
    words = tuple(known)
    if section[name] not in words:
        raise InputError(f"{name} must be {' or '.join(words)}, not {section[name]!r}")
    return str(section[name])
