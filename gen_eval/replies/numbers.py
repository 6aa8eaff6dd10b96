"""Single numbers in replies: JSON numbers, or text that holds exactly one."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["plain", "seconds", "pixels", "frame"]
"""What a number stands for; it decides which words around it are read over."""

_LONGEST = 64  # characters of a text that is one number
_LEADING = {
    "plain": r"(?:about\b|approx\b\.?)",
    "seconds": r"(?:about\b|approx\b\.?)",
    "pixels": r"(?:about\b|approx\b\.?)",
    "frame": r"(?:about\b|approx\b\.?|frame\b)",
}
_SUFFIX = {"plain": "", "seconds": r"(?:seconds?|secs?|s)", "pixels": "px", "frame": r"(?:seconds?|secs?|s)"}
_PATTERNS: dict[str, re.Pattern[str]] = {
    kind: re.compile(
        rf"(?:{_LEADING[kind]}\s*)*([+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?)\s*(?:{_SUFFIX[kind]})?\.?"
    )
    for kind in _SUFFIX
}


def read_number(value: Any, kind: Kind = "plain") -> float | None:
    """The number that ``value`` is, or that it holds as text.

    A text may have a sign, a leading point, an exponent, a comma as decimal mark (one comma and no point), the words
    about, approx. and (for frames) frame before it, and the unit that fits its kind after it. A percentage is none.

    Args:
        value: from JSON.
        kind: what it stands for.

    Returns:
        A finite number; ``None`` for truth values, ``None``, NaN, infinities and everything else.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _of_text(value, kind)
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def tidy(text: str) -> str:
    """``text`` in plain form: compatibility characters resolved, one sort of minus, lower case, no outer blanks."""
    return unicodedata.normalize("NFKC", text).replace("\u2212", "-").casefold().strip()


def _of_text(text: str, kind: Kind) -> float | None:
    if len(text) > _LONGEST:
        return None
    match = _PATTERNS[kind].fullmatch(tidy(text))
    if match is None or ("," in match.group(1) and "." in match.group(1)):
        return None
    number = float(match.group(1).replace(",", "."))
    return number if math.isfinite(number) else None
