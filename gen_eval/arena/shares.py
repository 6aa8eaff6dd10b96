"""A share of votes or answers: how many of how many, with Wilson's interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gen_eval.stats import wilson


@dataclass(frozen=True)
class Share:
    """``count`` of ``n`` cases.

    Attributes:
        count: cases that something is true of.
        n: all cases.
        lower: lower end of Wilson's 95 % interval, which takes the cases as independent; ``None`` without a case.
        upper: upper end.
    """

    count: int
    n: int
    lower: float | None = None
    upper: float | None = None

    @classmethod
    def of(cls, count: int, n: int) -> Share:
        """The share with its interval.

        >>> Share.of(1, 2).value
        0.5
        """
        return cls(count, n, *wilson(count / n, n)) if n else cls(0, 0)

    @property
    def value(self) -> float | None:
        """``count / n``, 0..1; ``None`` without a case."""
        return self.count / self.n if self.n else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"value": self.value, **vars(self)}

    def __str__(self) -> str:
        if self.value is None or self.lower is None or self.upper is None:
            return "no value (n = 0)"
        return f"{100 * self.value:.1f} % [{100 * self.lower:.1f}, {100 * self.upper:.1f}] (n = {self.n})"


__all__ = ["Share"]
