"""Which pairs to ask next: where a vote tells most, or what links systems that cannot be compared yet."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.connectivity import Diagnosis, diagnose, named
from gen_eval.arena.information import Information, information_of
from gen_eval.arena.scale import POINTS
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.records import Reason
from gen_eval.stats.intervals import check_level

Goal = Literal["widest", "ranking"]
"""What votes are for: every difference alike, or which of two neighbours in the ranking is better."""

_STEP = 0.1
"""Votes of one suggestion, unless told, as a share of the votes that a pair has on average."""

_SAMPLES = 3
"""Samples named for one pair; more, up to the second number, where more votes are asked for."""

_MOST_SAMPLES = 10


@dataclass(frozen=True)
class Suggestion:
    """A pair to ask about, sides drawn at random.

    Attributes:
        a: the system whose name comes first.
        b: the other.
        votes: votes about this pair that count for the tracker so far.
        samples: to ask about, those with the fewest votes about this pair first, suggestions above this one counted;
            empty when votes name no samples.
        width: width of the interval of the difference now, points; ``None`` when there are no ratings.
        width_after: the width that is expected once this suggestion and all above it are answered.
        why: in words.
    """

    a: str
    b: str
    votes: int
    samples: tuple[str, ...]
    width: float | None
    width_after: float | None
    why: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "samples": list(self.samples)}

    def __str__(self) -> str:
        widths = "" if self.width is None else f", interval {self.width:.1f} points wide, then {self.width_after:.1f}"
        samples = f"; samples {', '.join(self.samples)}" if self.samples else ""
        return f"{self.a} and {self.b} ({self.votes} votes{widths}): {self.why}{samples}"


@dataclass(frozen=True)
class NextPairs:
    """Pairs to ask next, in this order.

    Attributes:
        tracker: its name.
        goal: ``widest`` or ``ranking``.
        n: votes that count so far.
        level: of the intervals.
        each: votes that each suggestion stands for.
        pairs: the suggestions.
        reason: ``not_connected`` or ``one_sided`` when there are no ratings: the suggestions then link the groups.
        message: the reason in words.
        groups: systems that cannot be compared with each other yet; empty without a reason.
    """

    tracker: str
    goal: str
    n: int
    level: float
    each: int
    pairs: tuple[Suggestion, ...]
    reason: Reason | None = None
    message: str = ""
    groups: tuple[tuple[str, ...], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **vars(self),
            "pairs": [one.to_json() for one in self.pairs],
            "groups": [list(group) for group in self.groups],
            "reason": None if self.reason is None else str(self.reason),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        why = [] if self.reason is None else [f"  no ratings yet ({self.reason}): {self.message}"]
        head = f"{self.tracker}: next pairs, {self.each} vote{'s' * (self.each > 1)} each"
        return "\n".join([head, *why, *(f"  {one}" for one in self.pairs)])


def next_pairs(
    votes: AnyVotes,
    tracker: str = "overall",
    count: int = 10,
    *,
    goal: Goal = "widest",
    each: int | None = None,
    level: float = 0.95,
    clusters: Unit | None = None,
) -> NextPairs:
    """The pairs whose votes are worth most now, under Bradley-Terry with ties as half a win.

    ``widest`` takes the pair whose difference has the widest interval, adds what ``each`` votes about it are expected
    to tell (see :mod:`gen_eval.arena.information`), and goes on from there. ``ranking`` does the same among neighbours
    in the ranking whose interval holds 0, and among all pairs once no such neighbours are left. Equal widths go to the
    pair with fewer votes. Without ratings (systems that are not linked, or a set that never lost) the pairs link the
    groups.

    Args:
        votes: in any form that :func:`gen_eval.arena.vote_files.votes_from` takes; systems that they name for another
            question only take part, too.
        tracker: one of :data:`gen_eval.arena.votes.TRACKERS`.
        count: suggestions, at least 1.
        goal: ``widest`` or ``ranking``.
        each: votes that a suggestion stands for; ``None`` takes a tenth of the votes that a pair has on average, at
            least 1: where each pair has many votes, one more changes too little to move on to another pair.
        level: of the intervals, strictly between 0 and 1.
        clusters: what is independent; ``None`` takes votes, or samples where an annotator judged a sample twice.

    Raises:
        ValueError: no such tracker or goal, fewer than two systems, or a number outside its range.
    """
    _check(count, goal, level, each)
    found = votes_from(votes)
    comparisons, models = found.comparisons(tracker), found.models
    if len(models) < 2:
        raise ValueError(f"the votes name {len(models)} systems; at least two are needed to compare")
    known = _unlinked(models, comparisons) or information_of(comparisons, clusters)
    step = max(1, round(_STEP * len(comparisons) / math.comb(len(models), 2))) if each is None else each
    if isinstance(known, Diagnosis):
        asked = _Asked(comparisons, 1 if each is None else each)
        pairs = tuple(_linking(known, asked, count))
        links = (known.reason, known.message, known.groups)
        return NextPairs(tracker, goal, len(comparisons), level, asked.each, pairs, *links)
    pairs = tuple(_informing(known, _Asked(comparisons, step), count, goal, level))
    return NextPairs(tracker, goal, len(comparisons), level, step, pairs)


def _check(count: int, goal: str, level: float, each: int | None) -> None:
    if count < 1:
        raise ValueError(f"count is {count}; expected 1 suggestion or more")
    if each is not None and each < 1:
        raise ValueError(f"each is {each}; expected 1 vote or more for a suggestion")
    if goal not in get_args(Goal):
        raise ValueError(f"goal is {goal!r}; expected one of {', '.join(get_args(Goal))}")
    check_level(level)


class _Asked:
    """Votes by pair and sample, to which suggestions of ``each`` votes are added as they are made."""

    def __init__(self, comparisons: Comparisons, each: int) -> None:
        self.each = each
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.models: Counter[str] = Counter()
        self.samples: Counter[str] = Counter()
        self.cells: Counter[tuple[str, str, str]] = Counter()
        self.shown: dict[str, set[str]] = defaultdict(set)
        rows = zip(comparisons.a.tolist(), comparisons.b.tolist(), comparisons.samples, strict=True)
        for one, other, sample in rows:
            a, b = sorted((comparisons.models[one], comparisons.models[other]))
            self._count(a, b, 1, () if sample is None else (sample,))
            if sample is not None:
                self.shown[sample] |= {a, b}
        self.before = Counter(self.pairs)

    def _count(self, a: str, b: str, votes: int, samples: Sequence[str]) -> None:
        self.pairs[a, b] += votes
        self.models.update({a: votes, b: votes})
        self.samples.update(samples)
        self.cells.update((a, b, sample) for sample in samples)

    def take(self, one: str, other: str) -> tuple[str, str, int, tuple[str, ...]]:
        """The pair by name, its votes so far, and its samples, the first ``each`` of which now count as asked."""
        a, b = sorted((one, other))
        # a sample for which both systems have been shown is sure to have both videos
        sure = [sample for sample, models in self.shown.items() if {a, b} <= models] or list(self.samples)
        sure.sort(key=lambda sample: (self.cells[a, b, sample], self.samples[sample], sample))
        self._count(a, b, self.each, sure[: self.each])
        return a, b, self.before[a, b], tuple(sure[: max(_SAMPLES, min(self.each, _MOST_SAMPLES))])


def _unlinked(models: tuple[str, ...], comparisons: Comparisons) -> Diagnosis | None:
    """Systems without a vote on this tracker, as groups of their own beside those that have some."""
    alone = [name for name in models if name not in comparisons.models]
    if not alone:
        return None
    groups: list[tuple[str, ...]] = []
    if len(comparisons):
        found = diagnose(comparisons)
        linked = found is None or found.reason is not Reason.NOT_CONNECTED
        groups = [comparisons.models] if found is None or linked else list(found.groups)
    message = f"no vote on this question is about {named(alone)}"
    return Diagnosis(Reason.NOT_CONNECTED, (*groups, *((one,) for one in alone)), message)


def _linking(problem: Diagnosis, asked: _Asked, count: int) -> Iterator[Suggestion]:
    """Pairs across groups, each seam in turn, those asked least first; of these the systems with the most votes."""
    groups = problem.groups
    if problem.reason is Reason.NOT_CONNECTED:
        hub = max(groups, key=lambda group: (sum(asked.models[name] for name in group), len(group)))
        seams = [(hub, group) for group in groups if group is not hub]
        why = "links {b} to systems that it was never compared with"
    else:
        seams = list(pairwise(groups))
        why = "{a} and those above never lost a share of a point to {b} and those below: more votes may show one"
    for place in range(count):
        upper, lower = seams[place % len(seams)]
        one, other = min(
            ((one, other) for one in upper for other in lower),
            key=lambda pair: (
                asked.pairs[min(pair), max(pair)],
                -asked.models[pair[0]] - asked.models[pair[1]],
                pair,
            ),
        )
        a, b, votes, samples = asked.take(one, other)
        yield Suggestion(a, b, votes, samples, None, None, why.format(a=one, b=other))


def _informing(known: Information, asked: _Asked, count: int, goal: Goal, level: float) -> Iterator[Suggestion]:
    order = sorted(range(len(known.models)), key=lambda place: (-known.theta[place], known.models[place]))
    every = [(i, j) for i in range(len(order)) for j in range(i + 1, len(order))]
    neighbours = [(min(pair), max(pair)) for pair in pairwise(order)]
    now = 2 * POINTS * known.half_widths(level)
    for _ in range(count):
        half = known.half_widths(level)
        close = [
            (i, j) for i, j in neighbours if goal == "ranking" and abs(known.theta[i] - known.theta[j]) <= half[i, j]
        ]
        i, j = _widest(close or every, half, asked, known.models)
        known = known.with_votes(i, j, asked.each)
        after = 2 * POINTS * float(known.half_widths(level)[i, j])
        a, b, votes, samples = asked.take(known.models[i], known.models[j])
        why = "neighbours in the ranking that are not told apart" if close else "the widest interval of a difference"
        yield Suggestion(a, b, votes, samples, float(now[i, j]), after, why)


def _widest(
    pairs: Sequence[tuple[int, int]], half: np.ndarray[Any, np.dtype[np.float64]], asked: _Asked, models: Sequence[str]
) -> tuple[int, int]:
    largest = max(half[pair] for pair in pairs)
    # widths that only rounding tells apart are equal, so that votes in another order give the same list
    equal = [pair for pair in pairs if half[pair] >= largest * (1 - 1e-9)]
    return min(equal, key=lambda pair: (asked.pairs[models[pair[0]], models[pair[1]]], pair))


__all__ = ["Goal", "NextPairs", "Suggestion", "next_pairs"]
