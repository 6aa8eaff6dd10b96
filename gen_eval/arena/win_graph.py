"""The graph of who got a share of a point from whom, for many resamples at once: when a maximum exists.

Draw an edge from i to j when i got at least a share of a point from j. The likelihood has a single finite maximum if
and only if this graph is strongly connected (Ford 1957, American Mathematical Monthly 64); otherwise some set of
systems only ever won, or was never compared with the rest, and its rating would be where an optimiser stopped.

With a side term b there is one more direction in which a likelihood may grow for ever. Give an edge the weight +1 when
its winner stood on the left and -1 when on the right. Strengths t can make up for ever larger b when every edge i -> j
has t_j <= t_i + weight: a system of difference constraints, which has a solution if and only if no cycle has a negative
sum. The same with all signs turned for ever smaller b. So a maximum exists if and only if the graph is strongly
connected and holds both a cycle of negative and one of positive sum.

Edges are columns of ``(R, 2 T)`` flags: for each term whether a got a share, then for each whether b did.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from gen_eval.arena.comparisons import Ints
from gen_eval.arena.terms import Terms
from gen_eval.stats.summaries import Floats

Flags = NDArray[np.bool_]

_ROUNDS = 4
"""Steps of the search that all resamples take together; graphs of votes are hardly ever wider."""

_BLOCK = 1 << 22
"""Entries of ``(resamples, M, M)`` held at a time."""


class WinGraph:
    """The edges that all votes have, and tests of the edges that resamples keep."""

    def __init__(self, terms: Terms, wins: Floats, losses: Floats) -> None:
        """Edges of the terms' all votes.

        Args:
            terms: of the likelihood.
            wins: ``(T,)`` points that a got in all votes.
            losses: ``(T,)`` points that b got.
        """
        self.systems, self.side = terms.systems, terms.side
        self.source: Ints = np.concatenate([terms.a, terms.b])
        self.target: Ints = np.concatenate([terms.b, terms.a])
        self.weight: Ints = np.concatenate([terms.left, -terms.left])
        self.points: Floats = np.concatenate([wins, losses])
        self._pair_starts = terms.pair_starts
        self._frame = self._most_certain()

    @property
    def matrix(self) -> sparse.csr_array:
        """``(M, M)``: above 0 at (i, j) where i got a share from j."""
        return self._graph(np.flatnonzero(self.points > 0))

    def identified(self, wins: Floats, losses: Floats) -> Flags:
        """``(R,)`` whether each row of ``(R, T)`` points has a single finite maximum."""
        edges = np.concatenate([wins > 0, losses > 0], axis=1)
        found = self._keeps_frame(edges)
        found[~found] = self._connected(edges[~found])
        if self.side:
            found[found] = self._side_is_told(edges[found])
        return found

    def cycles(self) -> tuple[bool, bool]:
        """Whether the edges of all votes hold a cycle of negative sum, and one of positive sum."""
        edges = self.points > 0
        return self._negative_cycle(edges, 1), self._negative_cycle(edges, -1)

    def _graph(self, kept: Ints) -> sparse.csr_array:
        ones = np.ones(len(kept), dtype=np.int64)
        shape = (self.systems, self.systems)
        return sparse.coo_array((ones, (self.source[kept], self.target[kept])), shape=shape).tocsr()

    # --- strong connection ---------------------------------------------------------------------------------------

    def _most_certain(self) -> Ints | None:
        """Edges that connect all systems strongly by themselves and are hardly ever lost; ``None`` if none do.

        Among the edges of most points, no more than are needed, a tree from the first system and one towards it.
        """
        levels = np.unique(self.points[self.points > 0])
        best: Ints | None = None
        low, high = 0, len(levels)
        while low < high:
            middle = (low + high) // 2
            kept = np.flatnonzero(self.points >= levels[middle])
            if _strong(self._graph(kept)):
                best, low = kept, middle + 1
            else:
                high = middle
        if best is None:
            return None
        ends = self.source[best], self.target[best]
        frame: Ints = best[np.concatenate([_tree(*ends, self.systems), _tree(*ends[::-1], self.systems)])]
        return frame

    def _keeps_frame(self, edges: Flags) -> Flags:
        if self._frame is None:
            return np.zeros(len(edges), dtype=bool)
        kept: Flags = np.logical_and.reduce(edges[:, self._frame], axis=1)
        return kept

    def _connected(self, edges: Flags) -> Flags:
        found = np.empty(len(edges), dtype=bool)
        rows = max(1, _BLOCK // self.systems**2)
        for start in range(0, len(edges), rows):
            found[start : start + rows] = self._connected_block(edges[start : start + rows])
        return found

    def _connected_block(self, edges: Flags) -> Flags:
        graph = np.zeros((len(edges), self.systems, self.systems), dtype=bool)
        half = len(self.source) // 2
        again = np.ones(half, dtype=bool)
        again[self._pair_starts] = False  # a pair stands here once for each side, and either makes the edge
        for kept in (np.flatnonzero(~again), np.flatnonzero(again)):
            for places in (kept, half + kept):
                graph[:, self.source[places], self.target[places]] |= edges[:, places]
        forward, settled = _reached(graph)
        backward, settled_too = _reached(graph.transpose(0, 2, 1))
        found: Flags = forward & backward
        for row in np.flatnonzero(~(settled & settled_too)):
            found[row] = _strong(sparse.csr_array(graph[row]))
        return found

    # --- the side term -------------------------------------------------------------------------------------------

    def _side_is_told(self, edges: Flags) -> Flags:
        """``(R,)`` whether each row, strongly connected, has cycles of negative and of positive sum."""
        told = np.ones(len(edges), dtype=bool)
        for sign in (1, -1):
            for row in np.flatnonzero(told & ~self._two_cycle(edges, sign)):
                told[row] = self._negative_cycle(edges[row], sign)
        return told

    def _two_cycle(self, edges: Flags, sign: int) -> Flags:
        """``(R,)`` whether both systems of some pair won on the side that makes the sum negative."""
        wanted = edges & (sign * self.weight < 0)
        parts = np.split(wanted, 2, axis=1)
        a, b = (np.logical_or.reduceat(part, self._pair_starts, axis=1) for part in parts)
        found: Flags = np.logical_or.reduce(a & b, axis=1)
        return found

    def _negative_cycle(self, edges: Flags, sign: int) -> bool:
        return negative_cycle(self.source[edges], self.target[edges], sign * self.weight[edges], self.systems)


def negative_cycle(source: Ints, target: Ints, weight: Ints, nodes: int) -> bool:
    """Whether the weights along some cycle have a negative sum (Bellman and Ford).

    So it is exactly when paths of as many edges as there are nodes, or more, can still become shorter.

    Args:
        source: ``(E,)`` where each edge begins, 0..nodes - 1.
        target: ``(E,)`` where it ends.
        weight: ``(E,)`` whole numbers.
        nodes: of the graph.
    """
    distance = np.zeros(nodes, dtype=np.int64)
    for _ in range(nodes):
        shorter = distance.copy()
        np.minimum.at(shorter, target, distance[source] + weight)
        if (shorter == distance).all():
            return False
        distance = shorter
    return True


def _strong(graph: sparse.csr_array) -> bool:
    parts: int = csgraph.connected_components(graph, connection="strong", return_labels=False)
    return parts == 1


def _tree(source: Ints, target: Ints, systems: int) -> Ints:
    """Places of edges that lead from the first system to every other one."""
    place = {pair: index for index, pair in enumerate(zip(source.tolist(), target.tolist(), strict=True))}
    ones = np.ones(len(source), dtype=np.int64)
    graph = sparse.coo_array((ones, (source, target)), shape=(systems, systems)).tocsr()
    order, before = csgraph.breadth_first_order(graph, 0)
    return np.array([place[int(before[one]), int(one)] for one in order[1:]], dtype=np.int64)


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
    complete: Flags = np.logical_and.reduce(reached, axis=1)
    return complete, settled


__all__ = ["Flags", "WinGraph", "negative_cycle"]
