"""Why there are no Bradley-Terry ratings: which systems the votes cannot compare, and what to do about it."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import sparse
from scipy.sparse import csgraph

from gen_eval.arena.cells import Cells, cells_of
from gen_eval.arena.comparisons import Comparisons, Ints
from gen_eval.arena.terms import Terms
from gen_eval.arena.win_graph import Flags, WinGraph
from gen_eval.records import Reason
from gen_eval.stats.summaries import Floats

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

    The test is exact (see :mod:`gen_eval.arena.win_graph`) and needs no fit.

    Args:
        data: comparisons, or their cells.
        counts: ``(C,)`` of the cells; those of ``data`` without.
        side: whether a side term is fitted with the ratings.

    Raises:
        ValueError: there is no comparison.

    >>> diagnose(Comparisons.of([("x", "y", 1.0), ("y", "z", 0.5)])).groups
    (('x',), ('y', 'z'))
    """
    cells = data if isinstance(data, Cells) else cells_of(data)
    graph = _graph(cells, cells.counts if counts is None else counts, side)
    matrix = graph.matrix
    parts, part = csgraph.connected_components(matrix, directed=False)
    if parts > 1:
        return _not_connected(_groups(cells.models, part, range(parts)))
    strong, part = csgraph.connected_components(matrix, directed=True, connection="strong")
    if strong > 1:
        order = _strongest_first(matrix, part, cells.models)
        return _one_sided(_groups(cells.models, part, order), matrix, cells.models)
    return _side_not_told(*graph.cycles()) if side else None


def identified(cells: Cells, counts: Floats, *, side: bool = False) -> Flags:
    """``(R,)`` whether each row of ``(R, C)`` counts of the cells has a single finite maximum."""
    terms = Terms.of(cells, side=side)
    wins, losses = (terms.totals(counts * share) for share in (cells.score, 1 - cells.score))
    return _graph(cells, cells.counts, side).identified(wins, losses)


def _graph(cells: Cells, counts: Floats, side: bool) -> WinGraph:
    terms = Terms.of(cells, side=side)
    wins, losses = (terms.totals((counts * share)[None])[0] for share in (cells.score, 1 - cells.score))
    return WinGraph(terms, wins, losses)


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


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _not_connected(groups: tuple[tuple[str, ...], ...]) -> Diagnosis:
    first, second = groups[:2]
    return Diagnosis(
        Reason.NOT_CONNECTED,
        groups,
        f"{len(groups)} sets of systems were never compared with each other: "
        + "; ".join(named(group) for group in groups[:_NAMED])
        + ("" if len(groups) <= _NAMED else f"; and {len(groups) - _NAMED} more")
        + f". Ratings across them mean nothing: compare {first[0]} with {second[0]}, rate each set by "
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
        f"{named(top)} {never} a share of a point against {named(rest)}, so the best rating is infinite: "
        f"compare {one} with {other} until each has got a share, or give a ridge, which is then part of the result",
    )


def _side_not_told(negative: bool, positive: bool) -> Diagnosis | None:
    """From whether there are cycles of negative and of positive sum."""
    if negative and positive:
        return None
    if negative or positive:
        why = f"the {'left' if positive else 'right'} side accounts for every result, so its best value is infinite"
    else:
        why = "what the left side is worth cannot be told from what the systems are worth"
    message = f"the side term has no value: {why}; show pairs both ways round, or fit without a side term"
    return Diagnosis(Reason.ONE_SIDED, (), message)


__all__ = ["Diagnosis", "diagnose", "identified", "named"]
