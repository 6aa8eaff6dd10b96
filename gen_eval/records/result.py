"""What a metric returns: a value, or a status and a reason, with everything else that the metric knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from gen_eval.records.errors import ItemError
from gen_eval.records.reasons import Flag, Reason, Status

if TYPE_CHECKING:  # the command line imports this module: it stays free of everything heavy
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MetricResult:
    """One number of one metric, or the reason why there is none.

    Attributes:
        metric: metric name.
        value: the number; ``None`` exactly when ``status`` is not ``ok``.
        status: see :class:`gen_eval.records.Status`.
        reason: why there is no value; ``None`` when there is one.
        flags: what was unusual, in the order in which it was noticed.
        values: further numbers of the metric by name (``None`` where one is undefined).
        detail: counts, sizes and parameters that explain the value (JSON values only).
        curves: per-frame values by name; the curve named as the metric is the one a report draws first. ``nan`` marks
            a frame without a value (curves are arrays, never part of a mean).
        protocol: name of the protocol that the value was computed under.
    """

    metric: str
    value: float | None
    status: Status = Status.OK
    reason: Reason | None = None
    flags: tuple[Flag, ...] = ()
    values: Mapping[str, float | None] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    curves: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    protocol: str = ""

    def __post_init__(self) -> None:
        """Refuse results that contradict themselves.

        Raises:
            ValueError: a value without status ``ok``, status ``ok`` without a value, or a value that is not finite.
        """
        if (self.value is not None) != (self.status is Status.OK):
            raise ValueError(f"{self.metric}: value {self.value!r} does not go with status {self.status}")
        if (self.reason is None) != (self.status is Status.OK):
            raise ValueError(f"{self.metric}: reason {self.reason!r} does not go with status {self.status}")
        numbers = [self.value, *self.values.values()]
        if any(number is not None and not math.isfinite(number) for number in numbers):
            raise ValueError(f"{self.metric}: {numbers} holds a number that is not finite; use a reason in its place")

    @classmethod
    def without_value(cls, metric: str, reason: Reason, message: str = "", **fields: Any) -> Self:
        """The result of a metric that has no number, with the status that belongs to ``reason``."""
        detail = dict(fields.pop("detail", {}))
        if message:
            detail["message"] = message
        return cls(metric, None, reason.status, reason, detail=detail, **fields)

    @classmethod
    def of(cls, metric: str, value: float, **fields: Any) -> Self:
        """The result for ``value``; a number that is not finite becomes ``failed: not_finite``."""
        if math.isfinite(value):
            return cls(metric, float(value), **fields)
        fields.pop("values", None)
        return cls.without_value(
            metric,
            Reason.NOT_FINITE,
            f"the formula gave {value}; check the input for numbers that are not finite",
            **fields,
        )

    def with_flags(self, *flags: Flag) -> Self:
        """The same result with ``flags`` added (each once)."""
        added = tuple(flag for flag in dict.fromkeys(flags) if flag not in self.flags)
        return replace(self, flags=self.flags + added)

    def with_values(self, **values: float | None) -> Self:
        """The same result with further numbers."""
        return replace(self, values={**self.values, **values})

    def with_detail(self, **detail: Any) -> Self:
        """The same result with more detail."""
        return replace(self, detail={**self.detail, **detail})

    def __float__(self) -> float:
        """The value.

        Raises:
            ItemError: there is none; the error carries the reason.
        """
        if self.value is None:
            assert self.reason is not None
            message = self.detail.get("message", "")
            raise ItemError(
                self.reason, f"{self.metric} has no value: {self.reason}. {message}".rstrip(". "), self.detail
            )
        return self.value

    def __str__(self) -> str:
        number = f"{self.value:.6g}" if self.value is not None else f"no value ({self.status}: {self.reason})"
        others = "".join(
            f", {name} {'-' if other is None else format(other, '.6g')}" for name, other in self.values.items()
        )
        flags = f" [{', '.join(self.flags)}]" if self.flags else ""
        return f"{self.metric} {number}{others}{flags}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(str(self))}</code>"

    def to_pandas(self) -> pd.DataFrame:
        """The per-frame curves, one column each, indexed by frame; without curves one row with the value."""
        import pandas as pd

        if not self.curves:
            return pd.DataFrame({self.metric: [self.value], **{name: [number] for name, number in self.values.items()}})
        return pd.DataFrame({name: pd.Series(curve) for name, curve in self.curves.items()}).rename_axis("frame")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the per-frame curves on ``axes`` (a new figure when ``None``) and return the axes."""
        from matplotlib.figure import Figure

        target = axes if axes is not None else Figure(figsize=(6, 2.5), layout="constrained").add_subplot()
        for name, curve in self.curves.items():
            target.plot(range(len(curve)), curve, label=name)
        if self.value is not None:
            target.axhline(self.value, linestyle="--", linewidth=1, color="0.5")
        target.set(title=str(self), xlabel="frame")
        if self.curves:
            target.legend()
        return target
