"""Whether judges agree: the share of equal answers, and Cohen's kappa, which takes off what chance would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from gen_eval.data.benchmark import domain_of_id
from gen_eval.records import Reason
from gen_eval.stats import Interval, resampled_sums
from gen_eval.stats.agreement import above_chance
from gen_eval.stats.intervals import percentile_interval
from gen_eval.stats.summaries import Floats

Key: TypeAlias = tuple[str, ...]
"""What tells answers apart; the first part is the sample."""

Said: TypeAlias = Mapping[Key, str | None]
"""Key -> ``yes``, ``no``, or ``None`` for a reply that could not be read."""

_METHOD = "percentile bootstrap, whole samples drawn with replacement, seed 0"


@dataclass(frozen=True)
class Agreement:
    """Two judges on the questions that both answered with yes or no.

    Attributes:
        n: such questions.
        samples: they are about.
        raw: share of equal answers; ``None`` without such questions.
        raw_interval: ``None`` with fewer than two samples.
        kappa: Cohen's kappa, -1..1, 0 is chance; ``None`` when it has no value.
        kappa_interval: over the resamples in which it has a value.
        reason: ``no_variance`` when both judges always say the same word, so that kappa has no value.
        yes_a: share of yes of the first judge among these questions.
        yes_b: of the second.
        unread_a: questions that both were asked and the first's reply could not be read.
        unread_b: likewise.
    """

    n: int
    samples: int
    raw: float | None
    raw_interval: Interval | None
    kappa: float | None
    kappa_interval: Interval | None
    reason: Reason | None
    yes_a: float | None
    yes_b: float | None
    unread_a: int
    unread_b: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = dict(vars(self))
        for name in ("raw_interval", "kappa_interval"):
            ends: Interval | None = plain[name]
            plain[name] = None if ends is None else {"lower": ends.lower, "upper": ends.upper}
        plain["reason"] = None if self.reason is None else str(self.reason)
        return plain


@dataclass(frozen=True)
class Pair:
    """How two judges agree.

    Attributes:
        a: name of the first.
        b: name of the second.
        overall: on everything.
        by_domain: within each domain; samples without one are in ``overall`` only.
        only_a: questions that only the first was asked.
        only_b: only the second.
    """

    a: str
    b: str
    overall: Agreement
    by_domain: Mapping[str, Agreement] = field(default_factory=dict)
    only_a: int = 0
    only_b: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "a": self.a,
            "b": self.b,
            "overall": self.overall.to_json(),
            "by_domain": {name: one.to_json() for name, one in self.by_domain.items()},
            "only_a": self.only_a,
            "only_b": self.only_b,
        }


def agreement(a: Said, b: Said, *, resamples: int = 10_000, seed: int = 0) -> Agreement:
    """How far two judges agree on the questions that both were asked.

    Replies that could not be read are left out and counted.

    Args:
        a: what the first said.
        b: what the second said.
        resamples: of the intervals, which draw whole samples; 0 for none.
        seed: non-negative.

    Raises:
        ValueError: an answer is neither ``yes``, ``no`` nor ``None``.

    >>> said = {("s", "q0"): "yes", ("s", "q1"): "no", ("t", "q0"): "no", ("t", "q1"): "no"}
    >>> agreement(said, {**said, ("t", "q1"): "yes"}, resamples=0).kappa
    0.5
    """
    common = sorted(a.keys() & b.keys())
    if strange := [said for key in common for said in (a[key], b[key]) if said not in ("yes", "no", None)]:
        raise ValueError(f"a judge said {strange[0]!r}; expected yes, no or None")
    counts: dict[str, list[int]] = {}
    for key in common:
        if a[key] is None or b[key] is None:
            continue
        own = counts.setdefault(key[0], [0, 0, 0, 0])
        yes = (a[key] == "yes", b[key] == "yes")
        for place, one in enumerate((True, yes[0] == yes[1], *yes)):
            own[place] += one
    unread = tuple(sum(side[key] is None for key in common) for side in (a, b))
    if not counts:
        return Agreement(0, 0, None, None, None, None, None, None, None, *unread)
    table = np.array([counts[sample] for sample in sorted(counts)], dtype=np.float64)
    whole = table.sum(axis=0, keepdims=True)
    raw, kappa = _figures(whole)
    intervals: tuple[Interval | None, Interval | None] = (None, None)
    if resamples and len(table) > 1:
        intervals = _intervals(table, resamples, seed)
    value = None if np.isnan(kappa[0]) else float(kappa[0])
    total, _, yes_a, yes_b = whole[0].tolist()
    return Agreement(
        int(total),
        len(table),
        float(raw[0]),
        intervals[0],
        value,
        None if value is None else intervals[1],
        Reason.NO_VARIANCE if value is None else None,
        yes_a / total,
        yes_b / total,
        *unread,
    )


def _figures(sums: Floats) -> tuple[Floats, Floats]:
    """Raw agreement and kappa for each row of (n, equal, yes of a, yes of b); nan where kappa has no value."""
    n, equal, yes_a, yes_b = sums.T
    raw, share_a, share_b = equal / n, yes_a / n, yes_b / n
    chance = share_a * share_b + (1 - share_a) * (1 - share_b)
    return raw, above_chance(raw, chance)


def _intervals(table: Floats, resamples: int, seed: int) -> tuple[Interval, Interval | None]:
    raw, kappa = _figures(resampled_sums(table, resamples=resamples, seed=seed))
    kept = kappa[~np.isnan(kappa)]
    of_kappa = percentile_interval(kept, 0.95, resamples, _METHOD) if len(kept) else None
    return percentile_interval(raw, 0.95, resamples, _METHOD), of_kappa


def pairs(judges: Mapping[str, Said], *, resamples: int = 10_000) -> list[Pair]:
    """Every two of ``judges``, overall and by the domain that the sample's id names, in the order given."""
    found = []
    for (a, said_a), (b, said_b) in combinations(judges.items(), 2):
        common = said_a.keys() & said_b.keys()
        domains = sorted({name for key in common if (name := domain_of_id(key[0])) is not None})
        by_domain = {
            name: agreement(_within(said_a, name), _within(said_b, name), resamples=resamples) for name in domains
        }
        overall = agreement(said_a, said_b, resamples=resamples)
        found.append(Pair(a, b, overall, by_domain, len(said_a.keys() - common), len(said_b.keys() - common)))
    return found


def _within(said: Said, domain: str) -> Said:
    return {key: word for key, word in said.items() if domain_of_id(key[0]) == domain}


def mean_kappa(found: Sequence[Pair]) -> float | None:
    """Mean of the kappas that have a value; ``None`` without any."""
    values = [one.overall.kappa for one in found if one.overall.kappa is not None]
    return sum(values) / len(values) if values else None


__all__ = ["Agreement", "Pair", "agreement", "mean_kappa", "pairs"]
