"""Several tests at once: the p values that allow for how many were looked at."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (S. Holm, 1979): holds the chance of any false finding, whatever the dependence.

    With the m p values sorted upwards the i-th (from 0) is multiplied by m - i, held at most 1 and never below
    the one before it.

    Args:
        p_values: each 0..1; ``None`` for a test that could not be made, which does not count in m.

    Returns:
        The corrected values in the same order.

    Raises:
        ValueError: a value outside 0..1.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    for place, value in enumerate(p_values):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"p_values[{place}] is {value}; a p value lies in 0..1")
    made = sorted((value, place) for place, value in enumerate(p_values) if value is not None)
    corrected: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (value, place) in enumerate(made):
        least = max(least, min(1.0, (len(made) - rank) * value))
        corrected[place] = least
    return corrected
