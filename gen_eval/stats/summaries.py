"""Numbers of one column: checked input, the exact mean, percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


def finite_array(values: ArrayLike, name: str, *, ndim: int = 1) -> Floats:
    """``values`` as float64, every entry finite.

    Raises:
        TypeError: the entries are not numbers.
        ValueError: an entry is ``None``, NaN or infinite (its position is named), or the number of axes is another.
    """
    given = np.asarray(values)
    if given.dtype == object:
        given = _numbers(given, name)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"{name} holds {given.dtype} entries; numbers are needed")
    if given.ndim != ndim:
        raise ValueError(f"{name} has shape {given.shape}; {ndim} axis or axes are needed")
    array = given.astype(np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name}[{_position(bad[0])}] is {array[tuple(bad[0])]}; {_WANTED}")
    return array


def finite_number(value: float, where: str) -> float:
    """``value`` as a float.

    Raises:
        TypeError: it is not a number.
        ValueError: it is NaN, infinite or too large for a float; ``where`` names its position.
    """
    if not isinstance(value, int | float | np.number | np.bool_):
        raise TypeError(f"{where} is {value!r}; a number is needed")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{where} is beyond 1.8e308; {_WANTED}") from error
    if not math.isfinite(number):
        raise ValueError(f"{where} is {number}; {_WANTED}")
    return number


def members_with_value(members: Mapping[str, float | None] | Sequence[float | None], where: str) -> list[float]:
    """The values of one sample's members without the gaps; ``where`` names the sample in messages."""
    pairs: Iterable[tuple[Any, float | None]] = members.items() if isinstance(members, Mapping) else enumerate(members)
    return [finite_number(value, f"{where}[{key!r}]") for key, value in pairs if value is not None]


def exact_mean(values: Sequence[float]) -> float:
    """Mean of the exact sum, rounded last: the same bits in whatever order the values come.

    It never leaves the range of the values, so that the mean of equal numbers is that number.

    Raises:
        ValueError: there are no values.
    """
    if not len(values):
        raise ValueError("the mean of no values does not exist; check for an empty column first")
    try:
        total = math.fsum(values)
    except OverflowError:  # the sum may leave the range of the floats, the mean cannot
        return float(sum(map(Fraction, values)) / len(values))
    return min(max(total / len(values), min(values)), max(values))


def percentile(values: ArrayLike, q: float) -> float:
    """The ``q``-th percentile by linear interpolation between neighbours in sorted order.

    With the n values sorted as v[0] <= ... <= v[n-1], the percentile lies at position (n - 1) q / 100, counted from 0;
    between two positions it is interpolated in proportion (type 7 of Hyndman and Fan, NumPy's ``linear``).

    Args:
        values: at least one finite number.
        q: percent, 0..100.

    Raises:
        ValueError: no values, a value that is not finite, or ``q`` outside 0..100.

    >>> percentile([10, 20, 40], 75)
    30.0
    """
    array = finite_array(values, "values")
    if not len(array):
        raise ValueError("values is empty; a percentile needs at least one value")
    if not 0 <= q <= 100:
        raise ValueError(f"q is {q}; a percentile lies in 0..100 (0.5 means half a percent, not the median)")
    return float(np.percentile(array, q, method="linear"))


_WANTED = "a finite number is needed: leave out what has no value and count it"


def _numbers(given: NDArray[Any], name: str) -> Floats:
    for position in np.ndindex(given.shape):
        entry: Any = given[position]
        where = f"{name}[{_position(position)}]"
        if entry is None:
            raise ValueError(f"{where} is None; {_WANTED}")
        finite_number(entry, where)
    return given.astype(np.float64)


def _position(index: Iterable[int]) -> str:
    return ", ".join(str(int(part)) for part in index)
