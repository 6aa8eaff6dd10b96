"""Several metrics against the same single votes, and whether one meets more of them than another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from gen_eval.arena.systems import VideoScores
from gen_eval.arena.vote_accuracy import correctness
from gen_eval.arena.vote_cases import cases_of
from gen_eval.arena.vote_files import AnyVotes
from gen_eval.stats.intervals import bootstrap_columns, check_level
from gen_eval.stats.multiple import holm
from gen_eval.stats.paired import PairedDifference, paired_difference
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class MetricAccuracy:
    """Accuracy of one metric over the common votes, with its interval (``None`` with one sample only)."""

    name: str
    accuracy: float
    lower: float | None
    upper: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class AccuracyDifference:
    """How many more votes metric ``a`` meets than metric ``b``, as a share of the common votes.

    Attributes:
        a: the metric that meets more.
        b: the other one.
        difference: of the accuracies, 0..1.
        lower: lower end of the paired bootstrap interval, samples drawn whole; ``None`` with one sample only.
        upper: upper end.
        p_value: two-sided, of the same bootstrap.
        p_holm: the same after Holm's correction over every two metrics.
        only_a: votes that a meets better than b.
        only_b: votes that b meets better.
        mcnemar_p: exact two-sided p of these two counts (McNemar's test); it takes votes as independent.
        real: whether the corrected bootstrap p is small.
    """

    a: str
    b: str
    difference: float
    lower: float | None
    upper: float | None
    p_value: float | None
    p_holm: float | None
    only_a: int
    only_b: int
    mcnemar_p: float
    real: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class AccuracyComparison:
    """Metrics over the votes that are no ties and for which each of them has both scores.

    Attributes:
        tracker: the question that was answered.
        n: these votes.
        N: votes in all.
        ties: tied votes for which each metric has both scores.
        without: votes left out by reason, see :class:`VoteAccuracy`; a vote is counted once.
        metrics: by name, the best first; empty when there is no common vote.
        differences: of every two metrics.
        level: nominal coverage; 1 - level is also the error that the verdicts allow.
    """

    tracker: str
    n: int
    N: int
    ties: int
    without: Mapping[str, int]
    metrics: Mapping[str, MetricAccuracy]
    differences: tuple[AccuracyDifference, ...]
    level: float

    @property
    def best(self) -> str | None:
        """The metric that meets most votes; ``None`` without a common vote."""
        return next(iter(self.metrics), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **vars(self),
            "without": dict(self.without),
            "best": self.best,
            "metrics": {name: one.to_json() for name, one in self.metrics.items()},
            "differences": [one.to_json() for one in self.differences],
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.tracker}: {self.n} common votes without ties of {self.N}"]
        for one in self.metrics.values():
            ends = "" if one.lower is None or one.upper is None else f" [{100 * one.lower:.1f}, {100 * one.upper:.1f}]"
            lines.append(f"  {one.name} {100 * one.accuracy:.1f} %{ends}")
        for pair in self.differences:
            if pair.a == self.best:
                verdict = "real" if pair.real else "not to be told from chance"
                lines.append(f"  {pair.a} over {pair.b}: {100 * pair.difference:+.1f} points, {verdict}")
        return "\n".join(lines)


def compare_accuracy(
    votes: AnyVotes,
    scores: Sequence[VideoScores],
    tracker: str = "overall",
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> AccuracyComparison:
    """Accuracy of several metrics over the votes that all of them can answer, and their paired differences.

    Args:
        votes: in any form that :func:`gen_eval.arena.votes_from` takes.
        scores: metrics; two of one name are told apart by their protocol.
        tracker: ``overall``, ``quality`` or ``plausibility``.
        resamples: of the samples, each drawn with all its votes, the same for all metrics.
        seed: of these.
        level: nominal coverage.

    Raises:
        ValueError: no metric, two metrics of one name and protocol, there is no such tracker, a score is not finite, or
            an argument is outside its range.
    """
    check_resampling(1, resamples, seed)
    check_level(level)
    names = names_of(scores)
    cases = cases_of(votes, scores, tracker)
    decided = cases.answers != 0
    correct = np.array([correctness(cases.answers, row)[decided] for row in cases.differences])
    samples = [sample for sample, taken in zip(cases.samples, decided.tolist(), strict=True) if taken]
    metrics: dict[str, MetricAccuracy] = {}
    differences: list[AccuracyDifference] = []
    if samples:
        found = _accuracies(names, correct, samples, resamples, seed, level)
        metrics = {one.name: one for one in sorted(found, key=lambda one: (-one.accuracy, one.name))}
        columns = dict(zip(names, correct, strict=True))
        pairs = list(combinations(metrics, 2))
        paired = [_paired(columns[a], columns[b], samples, resamples, seed, level) for a, b in pairs]
        corrected = holm([one.p_value for one in paired])
        differences = [
            _difference(a, b, columns, one, p, level) for (a, b), one, p in zip(pairs, paired, corrected, strict=True)
        ]
    return AccuracyComparison(
        tracker=tracker,
        n=len(samples),
        N=cases.N,
        ties=int(np.count_nonzero(~decided)),
        without=cases.without,
        metrics=metrics,
        differences=tuple(differences),
        level=level,
    )


def names_of(scores: Sequence[VideoScores]) -> list[str]:
    """A name for each metric: its own, with the protocol where several have it.

    Raises:
        ValueError: no metric, or two of one name and protocol.
    """
    if not scores:
        raise ValueError("scores hold no metric; give the scores of at least one")
    often = Counter(one.metric for one in scores)
    names = [one.metric if often[one.metric] == 1 else f"{one.metric} ({one.protocol})" for one in scores]
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"scores hold {twice} twice; give each metric once, or with different protocols")
    return names


def _accuracies(
    names: list[str], correct: Floats, samples: list[str], resamples: int, seed: int, level: float
) -> list[MetricAccuracy]:
    means = correct.mean(axis=1).tolist()
    if len(set(samples)) < 2:
        return [MetricAccuracy(name, mean, None, None) for name, mean in zip(names, means, strict=True)]
    ends = bootstrap_columns(correct.T, clusters=samples, resamples=resamples, seed=seed, level=level)
    return [
        MetricAccuracy(name, mean, *((None, None) if one is None else (one.lower, one.upper)))
        for name, mean, one in zip(names, means, ends, strict=True)
    ]


def _paired(a: Floats, b: Floats, samples: list[str], resamples: int, seed: int, level: float) -> PairedDifference:
    keys = [f"{place:09d}" for place in range(len(samples))]  # keeps the order of the samples
    return paired_difference(
        dict(zip(keys, a.tolist(), strict=True)),
        dict(zip(keys, b.tolist(), strict=True)),
        clusters=dict(zip(keys, samples, strict=True)),
        resamples=resamples,
        seed=seed,
        level=level,
    )


def _difference(
    a: str, b: str, columns: Mapping[str, Floats], paired: PairedDifference, p_holm: float | None, level: float
) -> AccuracyDifference:
    only_a = int(np.count_nonzero(columns[a] > columns[b]))
    only_b = int(np.count_nonzero(columns[a] < columns[b]))
    assert paired.difference is not None  # there are common votes
    return AccuracyDifference(
        a=a,
        b=b,
        difference=paired.difference,
        lower=paired.lower,
        upper=paired.upper,
        p_value=paired.p_value,
        p_holm=p_holm,
        only_a=only_a,
        only_b=only_b,
        mcnemar_p=exact_mcnemar(only_a, only_b),
        real=p_holm is not None and p_holm <= 1 - level,
    )


def exact_mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p of McNemar's test: a fair coin thrown ``only_a + only_b`` times.

    >>> exact_mcnemar(5, 0)
    0.0625
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


__all__ = [
    "AccuracyComparison",
    "AccuracyDifference",
    "MetricAccuracy",
    "compare_accuracy",
    "exact_mcnemar",
    "names_of",
]
