"""Whether two metrics correlate differently with one rating: the classical test, over systems as a sample."""

from __future__ import annotations

import math
from typing import NamedTuple

LEAST_SYSTEMS = 4
"""One more than the three parameters: the test has n - 3 degrees of freedom."""


class WilliamsTest(NamedTuple):
    """Williams' t of the difference of two correlations that share a column.

    Attributes:
        t: above 0 where the first correlation is the higher one.
        df: degrees of freedom, n - 3.
        p_value: two-sided.
    """

    t: float
    df: int
    p_value: float


def williams_test(r12: float, r13: float, r23: float, n: int) -> WilliamsTest | None:
    """Test of rho12 = rho13 for three columns of n systems (E. J. Williams 1959; Steiger 1980, equation 7).

    t = (r12 - r13) sqrt((n - 1)(1 + r23) / (2 (n - 1)/(n - 3) |R| + m^2 (1 - r23)^3)), with
    |R| = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23 and m = (r12 + r13) / 2. It takes the three columns as normal.

    Args:
        r12: correlation of the shared column with the second, -1..1.
        r13: with the third.
        r23: of the second with the third.
        n: systems.

    Returns:
        The test; ``None`` with fewer than four systems, or where two metrics differ and nothing is left to vary.

    Raises:
        ValueError: a correlation outside -1..1.

    >>> round(williams_test(0.5, 0.4, 0.1, 103).t, 2)
    0.89
    """
    from scipy.special import betainc

    for name, value in (("r12", r12), ("r13", r13), ("r23", r23)):
        if not -1 <= value <= 1:
            raise ValueError(f"{name} is {value}; a correlation lies in -1..1")
    if n < LEAST_SYSTEMS:
        return None
    df = n - 3
    if r12 == r13:
        return WilliamsTest(0.0, df, 1.0)
    left = max(0.0, 1 - r12 * r12 - r13 * r13 - r23 * r23 + 2 * r12 * r13 * r23)
    below = 2 * (n - 1) / df * left + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if below <= 0:
        return None
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return WilliamsTest(t, df, float(betainc(df / 2, 0.5, df / (df + t * t))))


__all__ = ["WilliamsTest", "williams_test"]
