"""How many more votes would separate two systems, and how small a difference the votes at hand could show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gen_eval.arena.comparisons import Comparisons, Unit
from gen_eval.arena.connectivity import Diagnosis
from gen_eval.arena.information import Information, information_of
from gen_eval.arena.intervals import quantile
from gen_eval.arena.scale import POINTS
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.records import Reason
from gen_eval.stats.intervals import check_level

ASSUMES = (
    "takes the estimated difference as the true one, which it is not: a difference that chance made look large needs "
    "more votes than this says; normal theory, further votes as noisy and as dependent as those at hand"
)
"""What the numbers of votes rest on."""

_ZERO = 1e-9
"""Points below which a difference is one of rounding."""


@dataclass(frozen=True)
class PairPower:
    """What it takes to separate two systems.

    Attributes:
        a: the system that is rated higher (of equals the first by name).
        b: the other.
        difference: points that a is above b, 0 or more.
        se: standard error of the difference, points.
        lower: lower end of its interval.
        upper: upper end.
        votes: votes about this pair so far.
        separated: whether the interval leaves out 0; no further vote is then needed.
        direct: further votes, all about this pair, after which a study of this size separates the two with the wanted
            power; ``None`` when no number does.
        spread: further votes spread over pairs as they are so far; likewise.
        detectable: smallest true difference, in points, that a study of the present size would show with that power.
        message: what there is to say in words.
    """

    a: str
    b: str
    difference: float
    se: float
    lower: float
    upper: float
    votes: int
    separated: bool
    direct: int | None
    spread: int | None
    detectable: float
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))

    def __str__(self) -> str:
        gap = f"{self.a} over {self.b}: {self.difference:.1f} [{self.lower:.1f}, {self.upper:.1f}]"
        return f"{gap}, {self.message}; the votes so far would show a true difference of {self.detectable:.1f} points"


@dataclass(frozen=True)
class Power:
    """Votes that are missing to tell systems apart.

    Attributes:
        tracker: its name.
        n: votes that count.
        level: of the intervals of the differences.
        power: chance of separation that is asked for.
        pairs: one asked for, or every two neighbours in the ranking, from the top.
        clustering: how many times as much variance the differences have as independent votes would give, 1 or more.
        unit: what was taken as independent.
        units: how many there are.
        reason: ``not_connected`` or ``one_sided``: there are then no ratings and no pairs.
        message: the reason in words.
        assumes: see :data:`ASSUMES`.
    """

    tracker: str
    n: int
    level: float
    power: float
    pairs: tuple[PairPower, ...]
    clustering: float = 1.0
    unit: str = ""
    units: int = 0
    reason: Reason | None = None
    message: str = ""
    assumes: str = ASSUMES

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **vars(self),
            "pairs": [one.to_json() for one in self.pairs],
            "reason": None if self.reason is None else str(self.reason),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head = f"{self.tracker} ({self.n} votes): votes for a power of {self.power:g} at level {self.level:g}"
        if self.reason is not None:
            return f"{head}: none ({self.reason}). {self.message}"
        return "\n".join([head, *(f"  {one}" for one in self.pairs), f"  {self.assumes}"])


def power(
    votes: AnyVotes,
    tracker: str = "overall",
    a: str | None = None,
    b: str | None = None,
    *,
    power: float = 0.8,
    level: float = 0.95,
    clusters: Unit | None = None,
) -> Power:
    """How many more votes separate two systems, under Bradley-Terry with ties as half a win.

    With d the estimated difference, its variance must fall to (d / (z_level + z_power))^2, z_level being the two-sided
    quantile and z_power the quantile of the power: of the normal distribution for votes, and for K clusters of
    Student's t with K - 1 degrees of freedom, as if further votes were about the same clusters. Votes spread as so far
    divide the variance by the growth of their number. m votes about the pair itself change it from v to
    (v + m c h^2) / (1 + m w h)^2, where w = p (1 - p), c = Var(s) is the variance of such a vote, and h the
    variance that the model alone gives. Where v = h c / w this is 1 / (1 / v + m w^2 / c): the precision with the
    information of m votes added. See :mod:`gen_eval.arena.information`.

    Args:
        votes: in any form that :func:`gen_eval.arena.vote_files.votes_from` takes.
        tracker: one of :data:`gen_eval.arena.votes.TRACKERS`.
        a: a system; ``None`` with ``b`` for every two neighbours in the ranking.
        b: another one.
        power: chance that the interval leaves out 0, 0.5 or more and below 1.
        level: of that interval, strictly between 0 and 1.
        clusters: what is independent; ``None`` takes votes, or samples where an annotator judged a sample twice.

    Raises:
        ValueError: no such tracker or system, one system without the other, or a number outside its range.
    """
    _check(power, level)
    found = votes_from(votes)
    comparisons = found.comparisons(tracker)
    wanted = _wanted(found.models, a, b)
    absent = [name for name in wanted or () if name not in comparisons.models]
    if absent or not len(comparisons):
        message = (
            f"no vote on {tracker} is about {' and '.join(map(repr, absent))}" if absent else f"no vote on {tracker}"
        )
        return Power(tracker, len(comparisons), level, power, (), reason=Reason.NOT_CONNECTED, message=message)
    known = information_of(comparisons, clusters)
    if isinstance(known, Diagnosis):
        return Power(tracker, len(comparisons), level, power, (), reason=known.reason, message=known.message)
    order = sorted(range(len(known.models)), key=lambda place: (-known.theta[place], known.models[place]))
    chosen = [place for place in order if wanted is None or known.models[place] in wanted]
    counts = _votes_by_pair(comparisons)
    pairs = tuple(
        _pair_power(known, high, low, counts.get((min(high, low), max(high, low)), 0), power, level)
        for high, low in pairwise(chosen)
    )
    return Power(tracker, known.n, level, power, pairs, known.clustering, known.unit, known.units)


def _check(wanted: float, level: float) -> None:
    if not 0.5 <= wanted < 1:
        raise ValueError(f"power is {wanted}; it lies in 0.5 up to 1, 1 excluded (80 % is 0.8)")
    check_level(level)


def _wanted(models: tuple[str, ...], a: str | None, b: str | None) -> tuple[str, str] | None:
    if a is None and b is None:
        return None
    if a is None or b is None:
        alone = repr(a or b)[:80]
        raise ValueError(f"one system alone, {alone}; give a and b both, or neither for all neighbours in the ranking")
    if a == b:
        raise ValueError(f"a and b are both {a!r:.80}; expected two systems")
    for name in (a, b):
        if name not in models:
            raise ValueError(f"no vote names the system {name!r:.80}; the votes are about {', '.join(models[:20])}")
    return a, b


def _votes_by_pair(comparisons: Comparisons) -> Mapping[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for one, other in zip(comparisons.a.tolist(), comparisons.b.tolist(), strict=True):
        pair = (min(one, other), max(one, other))
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def _pair_power(known: Information, high: int, low: int, votes: int, wanted: float, level: float) -> PairPower:
    bar = quantile((1 + level) / 2, known.freedom)
    both = bar + quantile(wanted, known.freedom)
    variance = float(known.variances()[high, low])
    gap, se = POINTS * float(known.theta[high] - known.theta[low]), POINTS * math.sqrt(variance)
    lower, upper = gap - bar * se, gap + bar * se
    separated = gap > _ZERO and lower > 0
    direct, spread = (0, 0) if separated else _missing(known, (high, low), variance, gap / POINTS / both)
    return PairPower(
        a=known.models[high],
        b=known.models[low],
        difference=gap,
        se=se,
        lower=lower,
        upper=upper,
        votes=votes,
        separated=separated,
        direct=direct,
        spread=spread,
        detectable=both * se,
        message=_words(separated, direct, spread),
    )


def _missing(
    known: Information, pair: tuple[int, int], variance: float, target: float
) -> tuple[int | None, int | None]:
    """Further votes about the pair itself, and spread as so far, until the standard error is ``target``."""
    if POINTS * target <= _ZERO:
        return None, None
    aim = target**2
    along = known.bread[:, pair[0]] - known.bread[:, pair[1]]
    alone = float(along[pair[0]] - along[pair[1]])
    # aim (1 + k)^2 = variance + k noise h, with k = m w h: the positive root
    linear = 2 * aim - known.noise * alone
    root = (-linear + math.sqrt(linear**2 + 4 * aim * max(variance - aim, 0.0))) / (2 * aim)
    direct = root / (known.curvature(*pair) * alone)
    return math.ceil(direct), math.ceil(known.n * (variance / aim - 1))


def _words(separated: bool, direct: int | None, spread: int | None) -> str:
    if separated:
        return "separated already, 0 more votes"
    if direct is None or spread is None:
        return "the estimated difference is 0, and no number of votes separates equal systems"
    return f"{direct} more votes about this pair, or {spread} spread as so far"


__all__ = ["ASSUMES", "PairPower", "Power", "power"]
