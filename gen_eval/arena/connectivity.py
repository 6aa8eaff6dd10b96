"""Whether a Bradley-Terry maximum exists, told exactly and before anything is fitted.

Draw an edge from i to j when i got at least a share of a point from j. The likelihood has a single finite maximum if
and only if this graph is strongly connected (Ford 1957); otherwise some set of systems only ever won, or was never
compared with the rest, and its rating would be where an optimiser happened to stop.

With a side term b there is one more direction in which a likelihood may grow for ever. Give an edge the weight +1 when
its winner stood on the left and -1 when on the right. Ratings t can make up for ever larger b when t_j <= t_i + weight
on every edge i -> j: a system of difference constraints, which has a solution if and only if no cycle has a negative
sum. The same with all signs turned for ever smaller b. So a maximum exists if and only if the graph is strongly
connected and holds both a cycle of negative and one of positive sum.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from gen_eval.arena.cells import Cells, cells_of
from gen_eval.arena.comparisons import Comparisons, Ints
from gen_eval.records import Reason
from gen_eval.stats.summaries import Floats

Flags = NDArray[np.bool_]

_ROUNDS = 4
"""Steps of the search that all resamples take together; graphs of votes are hardly ever wider."""

_BLOCK = 1 << 22
"""Entries of ``(resamples, M, M)`` held at a time."""

_NAMED = 5
"""Most names of one set in a message."""


@dataclass(frozen=True)
class Diagnosis:
    """Why there are no ratings.

    Attributes:
        reason: ``not_connected`` or ``one_sided``.
        groups: sets of systems that cannot be compared with each other, the strongest first where one only wins; empty
            when only the side term is at fault.
        message: which systems, and what to do.
    """

    reason: Reason
    groups: tuple[tuple[str, ...], ...]
    message: str


def diagnose(data: Comparisons | Cells, counts: Floats | None = None, *, side: bool = False) -> Diagnosis | None:
    """Why ``data`` have no finite Bradley-Terry maximum; ``None`` when they have one.

    Args:
        data: comparisons, or their cells.
        counts: ``(C,)`` of the cells; those of ``data`` without.
        side: whether a side term is fitted with the ratings.

    >>> diagnose(Comparisons.of([("x", "y", 1.0), ("y", "z", 0.5)])).groups
    (('x',), ('y', 'z'))
    """
    cells = data if isinstance(data, Cells) else cells_of(data)
    edges = _edges(cells, (cells.counts if counts is None else counts)[None])
    graph = sparse.coo_array(_endpoints(cells, edges, 0), shape=(len(cells.models),) * 2).tocsr()
    parts, part = csgraph.connected_components(graph, directed=False)
    if parts > 1:
        return _not_connected(_groups(cells.models, part, range(parts)))
    strong, part = csgraph.connected_components(graph, directed=True, connection="strong")
    if strong > 1:
        return _one_sided(_groups(cells.models, part, _strongest_first(graph, part, cells.models)), graph, cells.models)
    if side and not _side_is_told(cells, edges)[0]:
        return _side_not_told(cells, edges)
    return None


def identified(cells: Cells, counts: Floats, *, side: bool = False) -> Flags:
    """``(R,)`` whether each row of ``(R, C)`` counts of the cells has a finite maximum."""
    edges = _edges(cells, counts)
    complete = _edges(cells, cells.counts[None])
    full = (edges == complete).all(axis=1)
    found = np.empty(len(counts), dtype=bool)
    if full.any():
        found[full] = _connected(cells, complete)[0] and (not side or _side_is_told(cells, complete)[0])
    rest = edges[~full]
    if len(rest):
        strong = _connected(cells, rest)
        if side:
            strong[strong] = _side_is_told(cells, rest[strong])
        found[~full] = strong
    return found


def _edges(cells: Cells, counts: Floats) -> Flags:
    """``(R, 2 T)``: for each pair and side whether a got a share of a point, then whether b did."""
    present = counts > 0
    shares = (present & (cells.score > 0), present & (cells.score < 1))
    return np.concatenate([np.logical_or.reduceat(one, cells.term_starts, axis=1) for one in shares], axis=1)


def _terms(cells: Cells) -> tuple[Ints, Ints, Ints]:
    """Source, target and weight of each column of :func:`_edges`."""
    a, b, left = (column[cells.term_starts] for column in (cells.a, cells.b, cells.left))
    return np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([left, -left])


def _endpoints(cells: Cells, edges: Flags, row: int) -> tuple[Ints, tuple[Ints, Ints]]:
    source, target, _ = _terms(cells)
    kept = np.flatnonzero(edges[row])
    return np.ones(len(kept), dtype=np.int64), (source[kept], target[kept])


def _connected(cells: Cells, edges: Flags) -> Flags:
    """``(R,)`` whether each row's graph is strongly connected."""
    systems = len(cells.models)
    found = np.empty(len(edges), dtype=bool)
    rows = max(1, _BLOCK // systems**2)
    for start in range(0, len(edges), rows):
        found[start : start + rows] = _connected_block(cells, edges[start : start + rows])
    return found


def _connected_block(cells: Cells, edges: Flags) -> Flags:
    systems = len(cells.models)
    source, target, _ = _terms(cells)
    graph = np.zeros((len(edges), systems, systems), dtype=bool)
    half = len(source) // 2
    for part in (slice(0, half), slice(half, None)):  # a pair may stand here once for each side: both are counted
        for kept in _each_pair_once(source[part], target[part]):
            graph[:, source[part][kept], target[part][kept]] |= edges[:, part][:, kept]
    forward, settled = _reached(graph)
    backward, settled_too = _reached(graph.transpose(0, 2, 1))
    found = forward & backward
    for row in np.flatnonzero(~(settled & settled_too)):
        sparse_graph = sparse.csr_array(graph[row])
        found[row] = csgraph.connected_components(sparse_graph, connection="strong", return_labels=False) == 1
    return found


def _each_pair_once(source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Places of the first and of the second occurrence of each pair; equal pairs are neighbours."""
    again = np.zeros(len(source), dtype=bool)
    again[1:] = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
    return np.flatnonzero(~again), np.flatnonzero(again)


def _reached(graph: Flags) -> tuple[Flags, Flags]:
    """``(R,)`` whether all are reached from the first system, and whether the search came to an end."""
    reached = graph[:, 0].copy()
    reached[:, 0] = True
    settled: Flags = np.logical_and.reduce(reached, axis=1)
    for _ in range(_ROUNDS):
        if settled.all():
            break
        wider = reached | (reached[:, :, None] & graph).any(axis=1)
        settled = np.logical_and.reduce(wider, axis=1) | np.logical_and.reduce(wider == reached, axis=1)
        reached = wider
    return np.logical_and.reduce(reached, axis=1), settled


def _side_is_told(cells: Cells, edges: Flags) -> Flags:
    """``(R,)`` whether each row, strongly connected, has cycles of negative and of positive sum."""
    told = np.ones(len(edges), dtype=bool)
    for sign in (1, -1):
        quick = _two_cycle(cells, edges, sign)
        for row in np.flatnonzero(~quick):
            told[row] &= _negative_cycle(cells, edges[row], sign)
    return told


def _two_cycle(cells: Cells, edges: Flags, sign: int) -> Flags:
    """``(R,)`` whether both systems of some pair won on the side that makes the sum negative."""
    _, _, weight = _terms(cells)
    half = len(weight) // 2
    starts = np.searchsorted(cells.term_starts, cells.pair_starts)
    wanted = edges & (sign * weight < 0)
    a, b = (np.logical_or.reduceat(wanted[:, part], starts, axis=1) for part in (slice(0, half), slice(half, None)))
    found: Flags = np.logical_or.reduce(a & b, axis=1)
    return found


def _negative_cycle(cells: Cells, edges: Flags, sign: int) -> bool:
    """Bellman and Ford's test on one strongly connected graph."""
    source, target, weight = (column[edges] for column in _terms(cells))
    distance = np.zeros(len(cells.models), dtype=np.int64)
    for _ in range(len(distance)):
        shorter = distance.copy()
        np.minimum.at(shorter, target, distance[source] + sign * weight)
        if (shorter == distance).all():
            return False
        distance = shorter
    return True


def _groups(models: Sequence[str], part: Ints, order: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name for name, one in zip(models, part, strict=True) if one == wanted) for wanted in order)


def _strongest_first(graph: sparse.csr_array, part: Ints, models: Sequence[str]) -> list[int]:
    """Strong components, each before those that it won against; where that leaves a choice, by name."""
    first: dict[int, str] = {}
    for name, one in zip(models, part.tolist(), strict=True):
        first.setdefault(one, name)
    source, target = (part[places] for places in graph.nonzero())
    beaten: dict[int, set[int]] = {one: set() for one in first}
    for winner, loser in set(zip(source.tolist(), target.tolist(), strict=True)):
        if winner != loser:
            beaten[winner].add(loser)
    above = Counter(loser for losers in beaten.values() for loser in losers)
    free = [(first[one], one) for one in first if not above[one]]
    heapq.heapify(free)
    order: list[int] = []
    while free:
        order.append(heapq.heappop(free)[1])
        for loser in beaten[order[-1]]:
            above[loser] -= 1
            if not above[loser]:
                heapq.heappush(free, (first[loser], loser))
    return order


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _not_connected(groups: tuple[tuple[str, ...], ...]) -> Diagnosis:
    first, second = groups[:2]
    return Diagnosis(
        Reason.NOT_CONNECTED,
        groups,
        f"{len(groups)} sets of systems were never compared with each other: "
        + "; ".join(_named(group) for group in groups[:_NAMED])
        + ("" if len(groups) <= _NAMED else f"; and {len(groups) - _NAMED} more")
        + f". Ratings across them mean nothing: collect votes between {first[0]} and {second[0]}, rate each set by "
        "itself, or give a ridge, which is then part of the result",
    )


def _one_sided(groups: tuple[tuple[str, ...], ...], graph: sparse.csr_array, models: Sequence[str]) -> Diagnosis:
    top, rest = groups[0], [name for group in groups[1:] for name in group]
    met = zip(*(places.tolist() for places in graph.nonzero()), strict=True)
    one, other = next((models[i], models[j]) for i, j in met if models[i] in top and models[j] not in top)
    never = "never loses" if len(top) == 1 else "never lose"
    return Diagnosis(
        Reason.ONE_SIDED,
        groups,
        f"{_named(top)} {never} a share of a point against {_named(rest)}, so the best rating is infinite: "
        f"collect votes between {one} and {other} until each has got a share, or give a ridge, which is then part of "
        "the result",
    )


def _side_not_told(cells: Cells, edges: Flags) -> Diagnosis:
    both = [_negative_cycle(cells, edges[0], sign) for sign in (1, -1)]
    if any(both):
        what = "left" if both[1] else "right"
        why = f"every result could be had from the {what} side alone, so its best value is infinite"
    else:
        why = "what the left side is worth cannot be told from what the systems are worth"
    return Diagnosis(
        Reason.ONE_SIDED,
        (),
        f"the side term has no value: {why}; show pairs both ways round, or fit without a side term",
    )


__all__ = ["Diagnosis", "diagnose", "identified"]
