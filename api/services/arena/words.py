"""Numbers of the human study as people read them; page, tables and fragments share these words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from api.services import wording
from gen_eval.arena.names import called
from gen_eval.records import Reason

NO_VALUE = wording.NO_VALUE


def points(value: float | None) -> str:
    """A rating.

    >>> points(1012.345), points(None)
    ('1012.3', '–')
    """
    return NO_VALUE if value is None else f"{value:.1f}"


def signed_points(value: float | None) -> str:
    """A difference of ratings, with its sign."""
    return NO_VALUE if value is None else f"{value:+.1f}"


def coefficient(value: float | None) -> str:
    """A coefficient in -1..1.

    >>> coefficient(0.91811)
    '0.918'
    """
    return NO_VALUE if value is None else f"{value:.3f}"


def chance(value: float | None) -> str:
    """A p value."""
    return NO_VALUE if value is None else f"{value:.2g}"


def percent(value: float | None) -> str:
    """A share in percent."""
    return NO_VALUE if value is None else f"{100 * value:.1f} %"


def ends(lower: float | None, upper: float | None, digits: int = 1, *, scale: float = 1, unit: str = "") -> str:
    """Both ends of an interval.

    >>> ends(0.6508, 0.9829, 2), ends(None, 1.0)
    ('0.65 … 0.98', '–')
    """
    if lower is None or upper is None:
        return NO_VALUE
    return f"{scale * lower:.{digits}f} … {scale * upper:.{digits}f}{unit}"


def both(found: tuple[float, float] | None, digits: int = 2) -> str:
    """An interval that may not be there."""
    return NO_VALUE if found is None else ends(*found, digits=digits)


def percent_ends(lower: float | None, upper: float | None) -> str:
    """Both ends of an interval of a share, in percent."""
    return ends(lower, upper, scale=100, unit=" %")


def why(reason: Reason | None) -> str:
    """A reason by name and in words.

    >>> why(Reason.NO_VARIANCE)
    'no_variance: one side has the same value everywhere'
    """
    return "" if reason is None else f"{reason}: {wording.REASON_WORDS[reason]}"


def plain(value: Any) -> str:
    """Any option in a line.

    >>> plain(True), plain(None), plain("half"), plain({"a": 1}), plain(["x", "y"])
    ('yes', 'none', 'half', 'a: 1', 'x, y')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


__all__ = [
    "NO_VALUE",
    "both",
    "called",
    "chance",
    "coefficient",
    "ends",
    "percent",
    "percent_ends",
    "plain",
    "points",
    "signed_points",
    "why",
]
