"""From scores of samples to the numbers of a task: counts first, ratios last, n of N everywhere."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gen_eval.records import Reason
from gen_eval.stats import exact_mean, wilson
from understanding.scoring.intervals import Ends, over_clusters
from understanding.scoring.outcome import SampleScore

RESAMPLES = 10_000

BySample = Mapping[str, Sequence[SampleScore]]
"""Sample -> its scores, one a seed."""


@dataclass(frozen=True)
class GroupCount:
    """Right answers over questions, in a group or in all.

    Attributes:
        correct: right answers; with several seeds the sum over questions of the share that is right.
        n: questions with a value.
        N: questions that were expected.
        unparsed: replies that could not be read (wrong, and in n).
        missing: questions without a value, by reason, and those counted as wrong for want of a reply.
        wilson: interval for independent questions; ``None`` with several seeds or without a value.
        bootstrap: interval over videos; ``None`` with fewer than two.
    """

    correct: float
    n: int
    N: int
    unparsed: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    wilson: Ends | None = None
    bootstrap: Ends | None = None

    @property
    def accuracy(self) -> float | None:
        """Correct over n; ``None`` when nothing has a value."""
        return self.correct / self.n if self.n else None

    @property
    def percent(self) -> float | None:
        """The same in percent, as it is printed."""
        return 100 * self.correct / self.n if self.n else None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values (ratios in 0..1)."""
        whole = float(self.correct).is_integer()
        return {
            "accuracy": self.accuracy,
            "correct": int(self.correct) if whole else self.correct,
            "n": self.n,
            "N": self.N,
            "unparsed": self.unparsed,
            "missing": dict(self.missing),
            "wilson": None if self.wilson is None else self.wilson.to_json(),
            "bootstrap": None if self.bootstrap is None else self.bootstrap.to_json(),
        }

    def __str__(self) -> str:
        if self.percent is None:
            return f"no value (0 of {self.N})"
        return f"{self.percent:.1f} % ({self.correct:g} of {self.n})"


@dataclass(frozen=True)
class TaskAggregate:
    """All numbers of a task over its samples.

    Attributes:
        task: name.
        protocol: under which replies were read.
        dialect: of the public code, where the protocol is its reading.
        n: samples with a value.
        N: samples that were expected.
        metrics: name -> number in 0..1, ``None`` without one.
        whole: the counts behind the main metric.
        groups: way of grouping -> group -> counts.
        unparsed: failure of the reader -> how often.
        flags: flag -> how often.
        coverage: what is there of what was expected.
        floors: what needs no understanding: random guess, the most frequent letter.
        seeds: several runs over the same questions.
        reference: what the public programs print of the same answers.
    """

    task: str
    protocol: str
    n: int
    N: int
    metrics: Mapping[str, float | None]
    whole: GroupCount
    groups: Mapping[str, Mapping[str, GroupCount]]
    unparsed: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    coverage: Mapping[str, Any] = field(default_factory=dict)
    floors: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, Any] | None = None
    dialect: str | None = None
    reference: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The aggregate object of docs/understanding.md."""
        ways = self.groups.items()
        return {
            "task": self.task,
            "protocol": self.protocol,
            "dialect": self.dialect,
            "n": self.n,
            "N": self.N,
            "metrics": dict(self.metrics),
            "whole": self.whole.to_json(),
            "coverage": dict(self.coverage),
            "unparsed": dict(self.unparsed),
            "flags": dict(self.flags),
            "groups": {way: {name: one.to_json() for name, one in found.items()} for way, found in ways},
            "floors": dict(self.floors),
            "seeds": None if self.seeds is None else dict(self.seeds),
            "reference": dict(self.reference),
        }

    def __str__(self) -> str:
        named = f", dialect {self.dialect}" if self.dialect else ""
        return f"{self.task} ({self.protocol}{named}): {self.whole}, n = {self.n} of {self.N}"


def by_sample(scores: Iterable[SampleScore]) -> dict[str, list[SampleScore]]:
    """The scores of each sample, samples and seeds in key order.

    Raises:
        ValueError: two scores of one sample and seed.
    """
    found: dict[str, dict[str, SampleScore]] = defaultdict(dict)
    for score in scores:
        if score.member in found[score.sample.id]:
            raise ValueError(f"two scores of {score.sample.id!r}, seed {score.member}; one of each is expected")
        found[score.sample.id][score.member] = score
    return {name: [found[name][member] for member in sorted(found[name])] for name in sorted(found)}


def value_of(scores: Sequence[SampleScore]) -> float | None:
    """The value of a sample: the mean over its seeds that have one."""
    values = [score.value for score in scores if score.value is not None]
    return exact_mean(values) if values else None


def count(samples: BySample, *, resamples: int = RESAMPLES, seed: int = 0) -> GroupCount:
    """Right answers over questions, with both intervals.

    Args:
        samples: the scores of each.
        resamples: of the bootstrap over videos; 0 for none.
        seed: of its draws.
    """
    values = {name: value_of(scores) for name, scores in samples.items()}
    filled = {name: value for name, value in values.items() if value is not None}
    every = [score for scores in samples.values() for score in scores]
    correct, n = math.fsum(filled.values()), len(filled)
    single = all(len(scores) == 1 for scores in samples.values())
    clusters = [samples[name][0].sample.cluster for name in filled]
    return GroupCount(
        correct=correct,
        n=n,
        N=len(samples),
        unparsed=sum(score.unparsed for score in every),
        missing=dict(sorted(Counter(str(score.reason) for score in every if score.reason is not None).items())),
        wilson=Ends(*wilson(correct / n, n)) if single and n and correct.is_integer() else None,
        bootstrap=over_clusters(list(filled.values()), clusters, resamples=resamples, seed=seed) if n else None,
    )


def grouped(
    samples: BySample,
    ways: Iterable[str],
    *,
    order: Callable[[str, Iterable[str]], list[str]] = lambda _way, names: sorted(names),
    resamples: int = RESAMPLES,
) -> dict[str, dict[str, GroupCount]]:
    """Counts by every way of grouping; samples that a way does not know are in none of its groups."""
    table: dict[str, dict[str, GroupCount]] = {}
    for way in ways:
        parts: dict[str, dict[str, Sequence[SampleScore]]] = defaultdict(dict)
        for name, scores in samples.items():
            if (group := scores[0].sample.groups.get(way)) is not None:
                parts[group][name] = scores
        table[way] = {group: count(parts[group], resamples=resamples) for group in order(way, parts)}
    return table


def failures(scores: Iterable[SampleScore]) -> dict[str, int]:
    """Failure of the reader -> how often."""
    return _sorted(Counter(str(score.failure) for score in scores if score.unparsed and score.failure is not None))


def flag_counts(scores: Iterable[SampleScore]) -> dict[str, int]:
    """Flag -> how often."""
    return _sorted(Counter(str(flag) for score in scores for flag in score.flags))


def coverage(samples: BySample) -> dict[str, Any]:
    """How many samples and replies there are of those expected, and what is missing, by reason."""
    every = [score for scores in samples.values() for score in scores]
    gaps = Counter(str(score.reason) for score in every if score.reason is not None)
    answered = sum(score.reason is None for score in every)
    unanswered = {name for name, own in samples.items() if any(one.reason is Reason.MISSING_MEDIA for one in own)}
    seeds = [len(own) for own in samples.values()]
    return {
        "samples": {"n": sum(value_of(own) is not None for own in samples.values()), "N": len(samples)},
        "replies": {"n": answered, "N": len(every)},
        "seeds": {"min": min(seeds, default=0), "max": max(seeds, default=0)},
        "without": _sorted(gaps),
        "without_media": len(unanswered),
    }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
