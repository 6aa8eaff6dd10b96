"""What :func:`gen_eval.arena.compare_metrics` gives: metrics side by side against one rating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gen_eval.arena.coefficients import Coefficient
from gen_eval.arena.correlations import Subset
from gen_eval.arena.names import called
from gen_eval.records import Reason


@dataclass(frozen=True)
class MetricAgreement:
    """How far one metric agrees with the rating; larger is better also for errors (their sign is turned).

    Attributes:
        name: of the metric.
        n: systems, the same for all metrics.
        reason: why there is no value; ``None`` with one.
        pearson: -1..1.
        spearman: likewise.
        kendall_tau_b: likewise.
        lower: lower end of the interval of the coefficient that decides; ``None`` without resamples that have one.
        upper: upper end.
        undefined: resamples without a coefficient; left out of the interval.
        without_real: the coefficients without real videos; ``None`` where there are none.
        higher_is_better: ``False`` for an error.
    """

    name: str
    n: int
    reason: Reason | None
    pearson: float | None
    spearman: float | None
    kendall_tau_b: float | None
    lower: float | None
    upper: float | None
    undefined: int
    without_real: Subset | None
    higher_is_better: bool

    def value(self, by: Coefficient) -> float | None:
        """The coefficient of that name."""
        found: float | None = getattr(self, by)
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        fields = {name: value for name, value in vars(self).items() if name not in {"name", "without_real"}}
        without = None if self.without_real is None else self.without_real.to_json()
        reason = None if self.reason is None else str(self.reason)
        return {"metric": self.name, **fields, "reason": reason, "without_source_videos": without}


@dataclass(frozen=True)
class MetricDifference:
    """How much better metric ``a`` agrees with the rating than metric ``b``, on the same resamples.

    Attributes:
        a: the metric that agrees better.
        b: the other one.
        difference: of the coefficients, 0 or above.
        lower: lower end of the percentile interval; ``None`` without a resample in which both have a value.
        upper: upper end.
        share_above: share of these resamples in which a is above b.
        p_value: two-sided bootstrap p, as for paired differences of scores.
        p_holm: the same after Holm's correction over every two metrics.
        williams_t: Williams' t of two dependent correlations (Pearson only).
        williams_p: two-sided.
        williams_p_holm: the same after Holm's correction.
        resamples: in which both have a value.
        real: whether the difference is larger than chance explains, all corrections made.
        words: the same as a sentence.
    """

    a: str
    b: str
    difference: float
    lower: float | None
    upper: float | None
    share_above: float | None
    p_value: float | None
    p_holm: float | None
    williams_t: float | None
    williams_p: float | None
    williams_p_holm: float | None
    resamples: int
    real: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class MetricComparison:
    """Metrics against one rating, over the systems that all of them have.

    Attributes:
        rating: its name.
        by: the coefficient that decides.
        agreements: by metric, the one that agrees best first, those without a value last.
        best: name of that metric; ``None`` where none has a value.
        best_without_real: the metric that agrees best without real videos; ``None`` where there are none.
        differences: of every two metrics that have a value.
        systems: names that count.
        left_out: systems of the rating that do not, with the metrics that have no number for them (none where it is
            the rating that has none).
        real: systems that are real videos.
        level: nominal coverage of the intervals.
        drawn: what the resamples draw, in words.
        rule: when a difference is called real, in words.
    """

    rating: str
    by: Coefficient
    agreements: Mapping[str, MetricAgreement]
    best: str | None
    best_without_real: str | None
    differences: tuple[MetricDifference, ...]
    systems: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    real: tuple[str, ...]
    level: float
    drawn: str
    rule: str

    @property
    def n(self) -> int:
        """Systems that count."""
        return len(self.systems)

    @property
    def what_is_drawn(self) -> str:
        """The start of :attr:`drawn`: systems, or samples with their votes and scores."""
        return self.drawn.partition(",")[0]

    @property
    def to_best(self) -> tuple[MetricDifference, ...]:
        """The differences of the best metric to each other one."""
        return tuple(one for one in self.differences if one.a == self.best)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "rating": self.rating,
            "by": self.by,
            "n": self.n,
            "systems": list(self.systems),
            "left_out": {name: list(metrics) for name, metrics in self.left_out.items()},
            "real": list(self.real),
            "metrics": {name: one.to_json() for name, one in self.agreements.items()},
            "best": self.best,
            "best_without_source_videos": self.best_without_real,
            "differences": [one.to_json() for one in self.differences],
            "sign": "an error metric is turned: larger always means that it agrees better with people",
            "level": self.level,
            "drawn": self.drawn,
            "rule": self.rule,
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.rating} (n = {self.n} systems; {self.what_is_drawn}), by {called(self.by)}"]
        for name, one in self.agreements.items():
            value = one.value(self.by)
            if value is None:
                lines.append(f"  {name}: no value ({one.reason})")
                continue
            ends = "" if one.lower is None or one.upper is None else f" [{one.lower:.3f}, {one.upper:.3f}]"
            lines.append(f"  {name} {value:.3f}{ends}")
        lines += [f"  {one.words}" for one in self.to_best]
        return "\n".join(lines)


__all__ = ["MetricAgreement", "MetricComparison", "MetricDifference"]
