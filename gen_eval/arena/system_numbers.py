"""Single numbers of systems, gathered into columns: one protocol a column, one number a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gen_eval.arena.systems import SystemColumn, key_of
from gen_eval.data.records_file import Refused, text
from gen_eval.records import InputError, Reason, Rejection

NAME_COLUMNS = ("model", "system", "name")
"""Where the name of a system stands; the first of them that a line fills."""

PREFERRED_PROTOCOL = "corrected"
"""Taken where several are there and nobody chooses."""


class Number(NamedTuple):
    """What a file says of one system.

    Attributes:
        system: its name.
        x: tracker, total or metric.
        value: ``None`` where it has none.
        lower: lower end of its interval.
        upper: upper end.
        protocol: under which it was computed, empty when not told.
        source: column or part of the file.
        samples: how many it was made from, where that is told.
        reason: why there is no value, by name, where that is told.
        message: the same in words.
    """

    system: str
    x: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    protocol: str = ""
    source: str = ""
    samples: int | None = None
    reason: str = ""
    message: str = ""


def system_in(record: Mapping[str, Any]) -> str:
    """The name of the system that a line is of.

    Raises:
        Refused: none of :data:`NAME_COLUMNS` holds one.
    """
    for name in NAME_COLUMNS:
        if value := (text(record, name) or "").strip():
            return value
    raise Refused(Rejection.MISSING_FIELD, f"no name of a system in {', '.join(NAME_COLUMNS)}")


def columns_of(
    numbers: Iterable[Number],
    path: Path,
    *,
    protocol: str | None = None,
    higher_is_better: Mapping[str, bool] | None = None,
) -> dict[str, SystemColumn]:
    """Columns by x, in the order in which they appear.

    Args:
        numbers: of any systems, in any order.
        path: the file that they come from, for messages and sources.
        protocol: the only one that is taken (numbers that name none stay where an x has no other); without it
            ``corrected``, or the only one that an x has.
        higher_is_better: by x; larger is better for what it does not name.

    Raises:
        InputError: a system has two numbers of one x, an x has several names, or several protocols of which none is
            chosen, or nothing is there under the one that is.
    """
    gathered: dict[str, dict[str, list[Number]]] = {}
    for number in numbers:
        gathered.setdefault(number.x, {}).setdefault(number.protocol, []).append(number)
    chosen = {x: _chosen(set(found), protocol, x, path) for x, found in gathered.items()}
    taken = {x: gathered[x][name] for x, name in chosen.items() if name is not None}
    if gathered and not taken:
        there = ", ".join(sorted({name for found in gathered.values() for name in found}))
        raise InputError(f"{path} has nothing under the protocol {protocol}; it has {there}")
    _check_distinct(list(taken), path)
    better = higher_is_better or {}
    return {x: _column(x, found, path, better.get(x, True)) for x, found in taken.items()}


def _chosen(protocols: set[str], wanted: str | None, x: str, path: Path) -> str | None:
    if wanted is not None:
        return next((name for name in (wanted, "") if name in protocols), None)
    if len(protocols) == 1 or PREFERRED_PROTOCOL in protocols:
        return PREFERRED_PROTOCOL if PREFERRED_PROTOCOL in protocols else next(iter(protocols))
    named = ", ".join(sorted(name or "no protocol" for name in protocols))
    raise InputError(f"{path} has {x} under several protocols ({named}), which do not compare; choose one")


def _check_distinct(names: list[str], path: Path) -> None:
    """See that no two names are of one x (``plausibility``, ``domain``).

    Raises:
        InputError: two are.
    """
    first: dict[str, str] = {}
    for name in names:
        before = first.setdefault(key_of(name), name)
        if before != name:
            raise InputError(f"{path} has {before} and {name}, which are one thing; keep one of them")


def _column(x: str, numbers: list[Number], path: Path, higher_is_better: bool) -> SystemColumn:
    values: dict[str, float | None] = {}
    for one in numbers:
        if one.system in values:
            raise InputError(f"{path} gives {x} of {one.system!r:.80} more than once; keep one line a system")
        values[one.system] = one.value
    reason, message = _reason(numbers)
    return SystemColumn(
        name=x,
        values=values,
        lower={one.system: one.lower for one in numbers if one.lower is not None},
        upper={one.system: one.upper for one in numbers if one.upper is not None},
        source=", ".join(filter(None, (path.name, numbers[0].source, numbers[0].protocol))),
        higher_is_better=higher_is_better,
        samples={one.system: one.samples for one in numbers if one.samples is not None},
        reason=reason,
        message=message,
    )


def _reason(numbers: Sequence[Number]) -> tuple[Reason | None, str]:
    """Why no system has a value, where all tell the same."""
    told = {one.reason for one in numbers}
    if any(one.value is not None for one in numbers) or len(told) != 1 or not told <= {*Reason}:
        return None, ""
    return Reason(told.pop()), numbers[0].message[:2000]


__all__ = ["NAME_COLUMNS", "PREFERRED_PROTOCOL", "Number", "columns_of", "system_in"]
