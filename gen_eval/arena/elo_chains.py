"""Sequential Elo, over one order of the votes and over many orders at once.

Ratings are held in logits, ``x = (R - initial) ln(base) / scale``; what A's expected share is above one half is an odd
function of ``x_A - x_B``. A vote moves both systems by one number, whose sign changes when the sides are swapped: so
swapping A and B changes no bit, ties among equals change nothing, and the sum stays.

Many orders run as *chains*: the loop goes over the votes, and one step takes the next vote of every chain. Chains are
made in blocks, so that memory is bounded; each draws from a stream of its own, so that its bits do not depend on the
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from gen_eval.arena.comparisons import Comparisons, Ints, Unit
from gen_eval.arena.ratings import check_points
from gen_eval.arena.scale import BASE, INITIAL, SCALE
from gen_eval.stats.summaries import Floats, finite_number

MEMORY = 192 << 20
"""Bytes of the orders that are held at a time; more chains in a step cost less each."""

_STEPS = 32  # votes whose places are looked up together: two blocks of indices stay in the cache
_PERMUTATIONS, _RESAMPLES = 0, 1  # streams of random numbers that have nothing in common

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class EloRule:
    """The numbers of the formula ``R_A += k (s - 1 / (1 + base^((R_B - R_A) / scale)))``, and B the opposite.

    Attributes:
        initial: rating of every system before its first vote, points.
        k: most points that a vote can move, above 0.
        base: above 1.
        scale: points at which the odds are ``base`` to 1, above 0.

    Raises:
        ValueError: a number is outside its range or not finite.
        TypeError: it is no number.
    """

    initial: float = INITIAL
    k: float = 32.0
    base: float = BASE
    scale: float = SCALE

    def __post_init__(self) -> None:
        for name, least in (("initial", -math.inf), ("k", 0.0), ("base", 1.0), ("scale", 0.0)):
            value = finite_number(getattr(self, name), name)
            if value <= least:
                raise ValueError(
                    f"{name} is {value:g}; it must be above {least:g} (published: k 32, base 10, scale 400)"
                )
        check_points(initial=self.initial, k=self.k, base=self.base, scale=self.scale)

    @property
    def per_point(self) -> float:
        """Logits of a rating point."""
        return math.log(self.base) / self.scale

    @property
    def most(self) -> float:
        """Most logits that a vote can move."""
        return self.k * self.per_point


def elo_path(comparisons: Comparisons, rule: EloRule = EloRule()) -> Floats:
    """Ratings of the two systems after each comparison, in the order that the comparisons have.

    Args:
        comparisons: n comparisons.
        rule: the numbers of the formula.

    Returns:
        ``(n, 2)`` points: A's and B's.

    >>> elo_path(Comparisons.of([("x", "y", 1.0)])).tolist()
    [[1016.0, 984.0]]
    """
    now, path = [0.0] * len(comparisons.models), []
    drives = ((comparisons.score - 0.5) * rule.most).tolist()
    for a, b, drive in zip(comparisons.a.tolist(), comparisons.b.tolist(), drives, strict=True):
        move = drive - rule.most * math.tanh((now[a] - now[b]) / 2) / 2
        now[a] += move
        now[b] -= move
        path.append((now[a], now[b]))
    return rule.initial + np.array(path, dtype=np.float64).reshape(-1, 2) / rule.per_point


def elo_ratings(comparisons: Comparisons, rule: EloRule = EloRule()) -> Floats:
    """``(M,)`` ratings after the last comparison, in points; ``rule.initial`` for a system without any."""
    ratings = np.full(len(comparisons.models), float(rule.initial))
    path = elo_path(comparisons, rule)
    # of several assignments to one place the last one stands
    ratings[np.stack([comparisons.a, comparisons.b], axis=1).ravel()] = path.ravel()
    return ratings


def elo_orders(
    comparisons: Comparisons,
    permutations: int = 100,
    *,
    rule: EloRule = EloRule(),
    seed: int = 0,
    memory: int = MEMORY,
) -> Floats:
    """Ratings over random orders of the comparisons.

    Args:
        comparisons: n comparisons.
        permutations: P orders, each drawn from a stream of its own; the first ones are the same for every P.
        rule: the numbers of the formula.
        seed: of the streams, non-negative.
        memory: bytes of orders held at a time; changes speed, never the result.

    Returns:
        ``(P, M)`` points.
    """

    def order(codes: Ints, chain: int) -> Ints:
        return _stream(seed, _PERMUTATIONS, chain).permutation(codes)

    return _run(comparisons, rule, order, permutations, memory)


def elo_resamples(
    comparisons: Comparisons,
    resamples: int = 1000,
    *,
    shuffled: bool,
    unit: Unit | None = None,
    rule: EloRule = EloRule(),
    seed: int = 0,
    memory: int = MEMORY,
) -> Floats:
    """Ratings over bootstrap resamples: as many units as there are, drawn with replacement.

    Args:
        comparisons: n comparisons.
        resamples: R resamples.
        shuffled: whether each resample runs in one random order of its own; else what is drawn keeps its order, and
            what is drawn twice comes twice in a row.
        unit: what is drawn whole; ``None`` for what is independent (:attr:`Comparisons.unit`).
        rule: the numbers of the formula.
        seed: of the draws, non-negative.
        memory: bytes of orders held at a time; changes speed, never the result.

    Returns:
        ``(R, M)`` points. A system that a resample lacks keeps its first rating.
    """
    places, units = comparisons.clusters(comparisons.unit if unit is None else unit)
    single = units == len(comparisons)

    def order(codes: Ints, chain: int) -> Ints:
        stream = _stream(seed, _RESAMPLES, chain)
        drawn = stream.integers(0, units, units)
        if single and shuffled:
            return codes[drawn]  # independent draws come in random order
        times = np.bincount(drawn, minlength=units)
        kept = np.repeat(codes, times[places])
        return stream.permutation(kept) if shuffled else kept

    return _run(comparisons, rule, order, resamples, memory)


def _stream(seed: int, purpose: int, chain: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, chain)))


# --- chains --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Packing:
    """A comparison as one whole number: place of A, place of B, place of its score, from the highest bits down.

    There is one more place than systems, and the last score is one half: both together are a comparison of nothing
    with itself, which fills up a chain that is shorter than others.

    Attributes:
        systems: bits of a place of a system.
        points: bits of a place of a score.
        nothing: place of the system that does not exist.
        drives: what each score adds to A's x.
        codes: ``(n,)`` the comparisons.
    """

    systems: int
    points: int
    nothing: int
    drives: Floats
    codes: Ints

    @classmethod
    def of(cls, comparisons: Comparisons, most: float) -> _Packing:
        models = len(comparisons.models)
        scores, place = np.unique(comparisons.score, return_inverse=True)
        systems, points = models.bit_length(), len(scores).bit_length()
        return cls(
            systems=systems,
            points=points,
            nothing=models,
            drives=(np.append(scores, 0.5) - 0.5) * most,
            codes=(comparisons.a << (systems + points)) | (comparisons.b << points) | place,
        )

    @property
    def filling(self) -> int:
        """The comparison of nothing with itself."""
        return (self.nothing << (self.systems + self.points)) | (self.nothing << self.points) | (len(self.drives) - 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds every code."""
        return np.min_scalar_type((1 << (2 * self.systems + self.points)) - 1)

    def unpack(self, codes: Codes, first: Ints, into: _Chunk) -> None:
        """Flat places of the ratings of A and B, ``first`` being that of each chain's first, and the drives."""
        part = into.part[: len(codes)]
        for side, shift in enumerate((self.systems + self.points, self.points)):
            np.right_shift(codes, codes.dtype.type(shift), out=part)
            np.bitwise_and(part, codes.dtype.type((1 << self.systems) - 1), out=part)
            place = into.places[: len(codes), side]
            place[...] = part
            place += first
        np.bitwise_and(codes, codes.dtype.type((1 << self.points) - 1), out=part)
        np.take(self.drives, part.astype(np.intp), out=into.drives[: len(codes)], mode="clip")


class _Chunk:
    """Room for the unpacked comparisons of a few steps of all chains."""

    def __init__(self, chains: int, dtype: np.dtype[Any]) -> None:
        self.part = np.empty((_STEPS, chains), dtype=dtype)
        self.places = np.empty((_STEPS, 2, chains), dtype=np.intp)
        self.drives = np.empty((_STEPS, chains))


def _run(
    comparisons: Comparisons, rule: EloRule, order: Callable[[Ints, int], Ints], chains: int, memory: int
) -> Floats:
    """``(chains, M)`` last ratings; ``order`` gives the codes of one chain in the order in which they count."""
    packing = _Packing.of(comparisons, rule.most)
    together = max(1, memory // max(1, packing.dtype.itemsize * len(comparisons)))
    ratings = np.empty((chains, len(comparisons.models)))
    for part in np.array_split(np.arange(chains), -(-chains // together)) if chains else []:
        orders = _below_each_other((order(packing.codes, chain) for chain in part.tolist()), len(part), packing)
        ratings[part[0] : part[-1] + 1] = _last(orders, packing, rule.most)
    return rule.initial + ratings / rule.per_point


def _below_each_other(rows: Iterable[Ints], chains: int, packing: _Packing) -> Codes:
    """``(chains, longest)`` codes, shorter rows filled up."""
    width = len(packing.codes)
    orders = np.full((chains, width), packing.filling, dtype=packing.dtype)
    for target, row in enumerate(rows):
        if (missing := len(row) - orders.shape[1]) > 0:
            more = missing + width // 16  # clusters of unequal size: few rows are longer than all before
            orders = np.pad(orders, ((0, 0), (0, more)), constant_values=packing.filling)
        orders[target, : len(row)] = row
    return orders


def _last(orders: Codes, packing: _Packing, most: float) -> Floats:
    """``(chains, M)`` x after the last step."""
    chains, length = orders.shape
    x = np.zeros((chains, packing.nothing + 1))
    first = np.arange(chains) * x.shape[1]
    chunk = _Chunk(chains, packing.dtype)
    for start in range(0, length, _STEPS):
        codes = np.ascontiguousarray(orders[:, start : start + _STEPS].T)
        packing.unpack(codes, first, chunk)
        _walk(x.reshape(-1), chunk.places[: len(codes)].reshape(len(codes), -1), chunk.drives[: len(codes)], most)
    return x[:, :-1]


def _walk(x: Floats, places: Ints, drives: Floats, most: float) -> None:
    """Steps in turn; one step moves two entries of ``x`` for each chain."""
    chains = drives.shape[1]
    pair, gap, move = np.empty(2 * chains), np.empty(chains), np.empty(chains)
    a, b = pair[:chains], pair[chains:]
    half, factor = np.array(0.5), np.array(most)
    for place, drive in zip(places, drives, strict=True):
        x.take(place, None, pair, "clip")  # "raise" would copy the output first
        np.subtract(a, b, gap)
        np.abs(gap, move)
        expit(move, move)  # of the size alone, so that it is odd to the last bit; half as long as np.tanh
        np.subtract(move, half, move)
        np.multiply(move, factor, move)
        np.copysign(move, gap, move)
        np.subtract(drive, move, move)
        np.add(a, move, a)
        np.subtract(b, move, b)
        x[place] = pair


__all__ = ["MEMORY", "EloRule", "elo_orders", "elo_path", "elo_ratings", "elo_resamples"]
