"""What a rating method gives: ratings with intervals, differences, rank ranges, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gen_eval.arena.comparisons import Unit
from gen_eval.arena.systems import REAL
from gen_eval.arena.votes import RejectedVote
from gen_eval.records import Reason, Status
from gen_eval.stats.summaries import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class IntervalRule:
    """How the intervals of a tracker were made.

    Attributes:
        method: ``bootstrap``, ``sandwich`` or ``none``.
        level: nominal coverage.
        unit: what was taken as independent: ``votes``, ``samples`` or ``annotators``.
        units: how many there are.
        resamples: that gave ratings; 0 without a bootstrap.
        undefined: resamples without ratings (not connected, one-sided); left out of the percentiles.
        seed: of the draws.
        words: one sentence that says all of it.
    """

    method: str
    level: float
    unit: Unit
    units: int
    resamples: int = 0
    undefined: int = 0
    seed: int = 0
    words: str = ""


@dataclass(frozen=True)
class Difference:
    """How far system ``a`` is above system ``b``, in points, with an interval of its own.

    Attributes:
        chance: probability that a is preferred to b when neither is called a tie (ties count half), 0..1.
        clear: whether the interval leaves out 0.
    """

    a: str
    b: str
    difference: float
    lower: float | None
    upper: float | None
    chance: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.lower is not None and self.upper is not None and (self.lower > 0 or self.upper < 0)


@dataclass(frozen=True)
class Rank:
    """Place of a system, 1 is best (equal ratings share the better place), and the places that the data allow.

    ``best`` is one more than the number of systems that are clearly above; ``worst`` is M less those clearly below.
    """

    rank: int
    best: int
    worst: int


@dataclass(frozen=True)
class Spread:
    """What the order of the votes does to one rating of sequential Elo, over random orders, in points."""

    mean: float
    sd: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Parameter:
    """A further number of the model with its interval: the side term (points), the tie parameter nu."""

    value: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class TrackerRatings(Mapping[str, "float | None"]):
    """Ratings of one tracker: ``tracker["x"]`` is the rating of the system x.

    Attributes:
        tracker: its name.
        ratings: points by system (mean 1000); every one is ``None`` when there is a reason.
        n: votes that count.
        votes_of: votes by system.
        reason: ``not_connected`` or ``one_sided``; ``None`` with ratings.
        message: the reason in words: which systems, and what to do.
        groups: without ratings, the sets of systems that cannot be compared with each other, strongest first where one
            set always wins.
        lower: lower end by system.
        upper: upper end by system.
        interval: how the ends were made; ``None`` without any.
        other_intervals: ends by a second method: name -> (lower, upper) by system.
        differences: of every two systems, the higher one first.
        ranks: by system.
        side: how many points standing on the left (or first) is worth; ``None`` when not asked for.
        tie_parameter: Davidson's nu; ``None`` when ties count half.
        order_spread: by system, for Elo over random orders.
        rankings: number of different rankings over those orders.
        log_likelihood: of the fit, natural logarithm; ``None`` for Elo.
        without_votes: systems with votes on another question only.
        draws: ``(resamples, M)`` ratings of the resamples, columns in the order of ``ratings``; ``None`` without.
    """

    tracker: str
    ratings: Mapping[str, float | None]
    n: int
    votes_of: Mapping[str, int] = field(default_factory=dict)
    reason: Reason | None = None
    message: str = ""
    groups: tuple[tuple[str, ...], ...] = ()
    lower: Mapping[str, float | None] = field(default_factory=dict)
    upper: Mapping[str, float | None] = field(default_factory=dict)
    interval: IntervalRule | None = None
    other_intervals: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    ranks: Mapping[str, Rank] = field(default_factory=dict)
    side: Parameter | None = None
    tie_parameter: Parameter | None = None
    order_spread: Mapping[str, Spread] = field(default_factory=dict)
    rankings: int | None = None
    log_likelihood: float | None = None
    without_votes: tuple[str, ...] = ()
    draws: Floats | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, model: str) -> float | None:
        return self.ratings[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ratings)

    def __len__(self) -> int:
        return len(self.ratings)

    @property
    def status(self) -> Status:
        """``ok``, or that of the reason."""
        return Status.OK if self.reason is None else self.reason.status

    @property
    def best_first(self) -> list[str]:
        """Systems by rating, those without one last; equal ones by name."""
        return best_first(self.ratings)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        rule = self.interval
        return {
            "ratings": dict(self.ratings),
            "lower": {name: self.lower.get(name) for name in self.ratings},
            "upper": {name: self.upper.get(name) for name in self.ratings},
            "n": self.n,
            "votes": dict(self.votes_of),
            "reason": None if self.reason is None else str(self.reason),
            "message": self.message,
            "groups": [list(group) for group in self.groups],
            "interval": None if rule is None else dict(vars(rule)),
            "other_intervals": {
                name: {"lower": dict(lower), "upper": dict(upper)}
                for name, (lower, upper) in self.other_intervals.items()
            },
            "differences": [{**vars(one), "clear": one.clear} for one in self.differences],
            "ranks": {name: dict(vars(one)) for name, one in self.ranks.items()},
            "side": None if self.side is None else dict(vars(self.side)),
            "tie_parameter": None if self.tie_parameter is None else dict(vars(self.tie_parameter)),
            "order_spread": {name: dict(vars(one)) for name, one in self.order_spread.items()},
            "rankings": self.rankings,
            "log_likelihood": self.log_likelihood,
            "without_votes": list(self.without_votes),
        }

    def plot(self, *, real: Collection[str] = REAL) -> Figure:
        """Ratings with their intervals, best first; see :func:`gen_eval.arena.plots.rating_intervals`."""
        from gen_eval.arena.plots import rating_intervals

        return rating_intervals(self, real=real)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.tracker}: no ratings ({self.reason}, n = {self.n}). {self.message}".rstrip()
        lines = [f"{self.tracker} ({self.n} votes)"]
        for name in self.best_first:
            value, low, high = self.ratings[name], self.lower.get(name), self.upper.get(name)
            ends = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
            lines.append(f"  {name} {value:.1f}{ends}")
        return "\n".join(lines)


@dataclass(frozen=True)
class ArenaRatings(Mapping[str, TrackerRatings]):
    """Ratings of all trackers by one method: ``found["quality"]["x"]`` is the rating of the system x.

    What a single tracker has (``ratings``, ``lower``, ``upper``, ``n``, ``differences``, ``ranks``, ``reason``,
    ``status``, ``message``) stands here for :attr:`main`.

    Attributes:
        method: ``elo`` or ``bradley-terry``.
        order: order of the votes for Elo (``given``, ``time``, ``mean``); ``None`` where it does not matter.
        n_votes: votes that were taken.
        rejected: records that were not.
        trackers: by name.
        options: every parameter that moves a rating.
    """

    method: str
    order: str | None
    n_votes: int
    trackers: Mapping[str, TrackerRatings]
    rejected: tuple[RejectedVote, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, tracker: str) -> TrackerRatings:
        return self.trackers[tracker]

    def __iter__(self) -> Iterator[str]:
        return iter(self.trackers)

    def __len__(self) -> int:
        return len(self.trackers)

    @property
    def main(self) -> TrackerRatings:
        """The overall tracker; the first one where no vote counts for overall.

        Raises:
            ValueError: no vote counts for any tracker.
        """
        if not self.trackers:
            raise ValueError(f"there are no ratings: none of the votes counts ({len(self.rejected)} were rejected)")
        name = "overall" if "overall" in self.trackers else next(iter(self.trackers))
        return self.trackers[name]

    @property
    def ratings(self) -> Mapping[str, float | None]:
        """Of :attr:`main`, by system."""
        return self.main.ratings

    @property
    def lower(self) -> Mapping[str, float | None]:
        """Lower ends of :attr:`main`, by system."""
        return self.main.lower

    @property
    def upper(self) -> Mapping[str, float | None]:
        """Upper ends of :attr:`main`, by system."""
        return self.main.upper

    @property
    def n(self) -> int:
        """Votes that count for :attr:`main`."""
        return self.main.n

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Of every two systems in :attr:`main`."""
        return self.main.differences

    @property
    def ranks(self) -> Mapping[str, Rank]:
        """Of :attr:`main`, by system."""
        return self.main.ranks

    @property
    def reason(self) -> Reason | None:
        """Why :attr:`main` has no ratings; ``None`` when it has."""
        return self.main.reason

    @property
    def status(self) -> Status:
        """``ok``, or that of the reason."""
        return self.main.status

    @property
    def message(self) -> str:
        """The reason in words."""
        return self.main.message

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena rate --json``."""
        return {
            "method": self.method,
            "order": self.order,
            "n_votes": self.n_votes,
            "rejected": [one.to_json() for one in self.rejected],
            "options": dict(self.options),
            "trackers": {name: one.to_json() for name, one in self.trackers.items()},
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line a tracker and system: rating, lower, upper, rank, best, worst, votes."""
        import pandas as pd

        lines = [
            {
                "tracker": name,
                "model": model,
                "rating": value,
                "lower": one.lower.get(model),
                "upper": one.upper.get(model),
                **({} if model not in one.ranks else vars(one.ranks[model])),
                "votes": one.votes_of.get(model),
            }
            for name, one in self.trackers.items()
            for model, value in one.ratings.items()
        ]
        return pd.DataFrame(lines)

    def plot(self, *, real: Collection[str] = REAL) -> Figure:
        """The trackers side by side; see :func:`gen_eval.arena.plots.several_rating_intervals`."""
        from gen_eval.arena.plots import several_rating_intervals

        return several_rating_intervals(self, real=real)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self.trackers.values())


def best_first(values: Mapping[str, float | None]) -> list[str]:
    """Names by their values, the highest first, those without one last; equal ones by name.

    >>> best_first({"a": 1.0, "b": None, "c": 2.0})
    ['c', 'a', 'b']
    """
    return sorted(values, key=lambda name: (values[name] is None, -(values[name] or 0.0), name))


MOST_POINTS = 1e9
"""Largest number in the formula of a scale of points: squares of its ratings are then far from the end of floats."""


def check_points(*, scale: float, **others: float) -> None:
    """Refuse a scale of points on which a rating, or what is made of it, could leave the range of the floats.

    Raises:
        ValueError: a number is beyond :data:`MOST_POINTS`, or the scale is below its inverse.
    """
    for name, value in {"scale": scale, **others}.items():
        if abs(value) > MOST_POINTS:
            raise ValueError(f"{name} is {value:g}; expected at most {MOST_POINTS:g} (published: k 32, scale 400)")
    if scale < 1 / MOST_POINTS:
        raise ValueError(f"scale is {scale:g}; expected at least {1 / MOST_POINTS:g} points (400 is published)")


__all__ = [
    "ArenaRatings",
    "Difference",
    "IntervalRule",
    "Parameter",
    "Rank",
    "Spread",
    "TrackerRatings",
    "best_first",
    "check_points",
]
