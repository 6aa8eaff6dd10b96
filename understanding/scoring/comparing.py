"""Two models on the same questions: McNemar's exact test, and the paired difference with a bootstrap over videos."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from gen_eval.stats import PairedDifference, paired_difference


@dataclass(frozen=True)
class McNemar:
    """Questions that exactly one of two models has right.

    Attributes:
        only_first: right for the first only.
        only_second: right for the second only.
        both: right for both.
        neither: wrong for both.
        p_value: exact two-sided p of "each is as likely"; 1 without a discordant question.
    """

    only_first: int
    only_second: int
    both: int
    neither: int
    p_value: float

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "only_first": self.only_first,
            "only_second": self.only_second,
            "both": self.both,
            "neither": self.neither,
            "p_value": self.p_value,
        }


def exact_p(one: int, other: int) -> float:
    """Two-sided binomial p of ``one`` against ``other`` when both are equally likely (McNemar's exact test).

    Twice the smaller tail, at most 1. The sum is exact (whole numbers), whatever the counts.

    Raises:
        ValueError: a count is negative.

    >>> exact_p(1, 9), exact_p(0, 0)
    (0.021484375, 1.0)
    """
    if one < 0 or other < 0:
        raise ValueError(f"{one} and {other} must be counts")
    total, least = one + other, min(one, other)
    term, tail = 1, 1
    for k in range(1, least + 1):
        term = term * (total - k + 1) // k
        tail += term
    above, below = 2 * tail, 1 << total
    return 1.0 if above >= below else above / below


def mcnemar(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> McNemar | None:
    """McNemar's test over the questions that both have; ``None`` when a value is neither 0 nor 1 (several seeds).

    Args:
        first: question -> 1 right, 0 wrong, ``None`` for no value.
        second: likewise.
    """
    pairs = [(first[name], second[name]) for name in first.keys() & second.keys()]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if any(value not in {0.0, 1.0} for pair in known for value in pair):
        return None
    counts = {(one, other): known.count((one, other)) for one in (0.0, 1.0) for other in (0.0, 1.0)}
    only_first, only_second = counts[1.0, 0.0], counts[0.0, 1.0]
    return McNemar(only_first, only_second, counts[1.0, 1.0], counts[0.0, 0.0], exact_p(only_first, only_second))


@dataclass(frozen=True)
class PairedComparison:
    """How two models differ on the questions that both have.

    Attributes:
        difference: second minus first, with its interval over videos.
        test: McNemar's; ``None`` with several seeds a question.
    """

    difference: PairedDifference
    test: McNemar | None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        one = self.difference
        return {
            "difference": one.difference,
            "lower": one.lower,
            "upper": one.upper,
            "n": one.n,
            "only_first": list(one.only_b),
            "only_second": list(one.only_a),
            "bootstrap_p": one.p_value,
            "interval": None if one.interval is None else one.interval.method,
            "mcnemar": None if self.test is None else self.test.to_json(),
        }


def compare(
    first: Mapping[str, float | None],
    second: Mapping[str, float | None],
    clusters: Mapping[str, Hashable],
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedComparison:
    """Second minus first, question by question.

    Args:
        first: question -> value (mean over seeds), ``None`` for none.
        second: likewise.
        clusters: question -> its video; questions of one video are drawn together.
        resamples: of the bootstrap.
        seed: of its draws.
    """
    found = paired_difference(second, first, clusters=clusters, resamples=resamples, seed=seed)
    return PairedComparison(found, mcnemar(first, second))
