"""What coefficients of correlation and of agreement have in common: a value, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from gen_eval.records.errors import ItemError
from gen_eval.records.reasons import Reason


@dataclass(frozen=True)
class Coefficient:
    """One coefficient.

    Attributes:
        name: of the coefficient.
        value: ``None`` exactly when there is a reason.
        reason: why there is no value.
        n: what it was computed over.
    """

    name: str
    value: float | None
    reason: Reason | None
    n: int

    def __float__(self) -> float:
        """The value.

        Raises:
            ItemError: there is none; the error carries the reason.
        """
        if self.value is None:
            assert self.reason is not None
            raise ItemError(self.reason, f"{self.name} has no value: {self.reason} (n = {self.n})", {"n": self.n})
        return self.value


__all__ = ["Coefficient"]
