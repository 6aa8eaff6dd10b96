"""Equal comparisons counted once: what a likelihood needs of the votes, and of any resample of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from gen_eval.arena.comparisons import Comparisons, Ints, Unit
from gen_eval.stats.resampling import BLOCK, resampled_counts
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class Cells:
    """The C distinct rows (a, b, left, score, tie) of n comparisons, in ascending order of those five.

    Every row is turned so that a < b, so neither the order of the votes nor which system was called A shows here.

    Attributes:
        models: M names, sorted.
        a: ``(C,)`` place of the first system of the pair.
        b: ``(C,)`` place of the second, above ``a``.
        left: ``(C,)`` +1 where system a stood on the left (or came first), -1 where b did.
        score: ``(C,)`` share of the point that system a got, 0..1.
        tie: ``(C,)`` share of the questions that were answered by a tie, 0..1.
        counts: ``(C,)`` comparisons in each cell, above 0.
        codes: ``(n,)`` cell of each comparison.
    """

    models: tuple[str, ...]
    a: Ints
    b: Ints
    left: Ints
    score: Floats
    tie: Floats
    counts: Floats
    codes: Ints

    def __len__(self) -> int:
        return len(self.a)

    @cached_property
    def pair_starts(self) -> Ints:
        """``(P,)`` first cell of each pair of systems."""
        return _starts(self.a, self.b)

    @cached_property
    def term_starts(self) -> Ints:
        """``(T,)`` first cell of each pair of systems with a side."""
        return _starts(self.a, self.b, self.left)


def _starts(*columns: Ints) -> Ints:
    changes = np.zeros(len(columns[0]), dtype=bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)


def cells_of(comparisons: Comparisons) -> Cells:
    """Count equal comparisons.

    Raises:
        ValueError: there is no comparison.
    """
    if not len(comparisons):
        raise ValueError("there is no comparison; at least one is needed")
    turned = comparisons.a > comparisons.b
    a = np.where(turned, comparisons.b, comparisons.a)
    b = np.where(turned, comparisons.a, comparisons.b)
    scores, score = np.unique(np.where(turned, 1 - comparisons.score, comparisons.score), return_inverse=True)
    ties, tie = np.unique(comparisons.tie, return_inverse=True)
    on_left = (comparisons.left > 0) != turned
    models = len(comparisons.models)
    # one number a row, in the order of (a, b, left, score, tie): M^2 * 2 * scores * ties stays far below 2^63
    keys = (((a * models + b) * 2 + on_left) * len(scores) + score) * len(ties) + tie
    found, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    rest, tie = np.divmod(found, len(ties))
    rest, score = np.divmod(rest, len(scores))
    pair, on_left = np.divmod(rest, 2)
    return Cells(
        models=comparisons.models,
        a=pair // models,
        b=pair % models,
        left=2 * on_left - 1,
        score=scores[score],
        tie=ties[tie],
        counts=counts.astype(np.float64),
        codes=codes.astype(np.int64),
    )


def cluster_cells(cells: Cells, clusters: Ints) -> sparse.csr_array:
    """``(clusters, C)`` sparse: comparisons that each cluster has in each cell.

    Args:
        cells: of n comparisons.
        clusters: ``(n,)`` place of each comparison's cluster, 0 and up.
    """
    units = int(clusters.max()) + 1
    ones = np.ones(len(clusters))
    return sparse.coo_array((ones, (clusters, cells.codes)), shape=(units, len(cells))).tocsr()


def cell_counts(cells: Cells, clusters: Ints, weights: Floats) -> Floats:
    """How often each cell occurs when cluster c is taken ``weights[r, c]`` times.

    Args:
        cells: of n comparisons.
        clusters: ``(n,)`` place of each comparison's cluster (from :meth:`Comparisons.clusters`, or places of your
            own on which votes and other data are drawn together).
        weights: ``(R, clusters)``.

    Returns:
        ``(R, C)`` counts. Each row is summed by itself and in the same order, so that blocks of rows give equal bits.
    """
    members = cluster_cells(cells, clusters)
    if weights.shape[1] < members.shape[0]:
        raise ValueError(f"weights has {weights.shape[1]} columns for {members.shape[0]} clusters; give one for each")
    return _taken(members, weights)


def _taken(members: sparse.csr_array, weights: Floats) -> Floats:
    product = members.T.tocsr() @ np.ascontiguousarray(weights[:, : members.shape[0]].T)
    return np.ascontiguousarray(product.T)


def ordered_clusters(comparisons: Comparisons, unit: Unit) -> tuple[Ints, int]:
    """``(n,)`` place of each comparison's unit in the order of their names, and how many there are.

    Unlike the order of first appearance this does not move with the votes. Those without a name come first, as given.
    """
    found, units = comparisons.clusters(unit)
    if unit == "votes":
        return found, units
    labels = comparisons.samples if unit == "samples" else comparisons.annotators
    names: list[str | None] = [None] * units
    for unit_place, label in zip(found.tolist(), labels, strict=True):
        names[unit_place] = label
    rank = np.empty(units, dtype=np.int64)
    rank[sorted(range(units), key=lambda place: (names[place] is not None, names[place] or ""))] = np.arange(units)
    return rank[found], units


def resampled_cells(
    cells: Cells,
    comparisons: Comparisons,
    unit: Unit,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    block: int | None = None,
) -> Iterator[Floats]:
    """Counts of the cells in bootstrap resamples of ``unit``, which is drawn whole and as often as there are units.

    Votes are drawn in the order of their cells, clusters in that of their names: the order in which votes were given
    moves nothing.

    Args:
        cells: of ``comparisons``.
        comparisons: n comparisons.
        unit: what is drawn.
        resamples: R, at least 1.
        seed: non-negative.
        block: counts held at a time; changes memory and speed, never the result.

    Yields:
        ``(k, C)`` counts, R rows in all.

    Raises:
        ValueError: an argument outside its range, or annotators are drawn and a vote has none.
    """
    waiting: list[Floats] = []
    rows = max(1, (BLOCK if block is None else block) // len(cells))
    for counts in _drawn(cells, comparisons, unit, resamples, seed, block):
        waiting.append(counts)
        if sum(map(len, waiting)) >= rows:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _drawn(
    cells: Cells, comparisons: Comparisons, unit: Unit, resamples: int, seed: int, block: int | None
) -> Iterator[Floats]:
    """Blocks ``(k, C)`` as they come: few rows where there are many units."""
    if unit == "votes":
        firsts = (np.cumsum(cells.counts) - cells.counts).astype(np.int64)
        for drawn in resampled_counts(len(comparisons), resamples=resamples, seed=seed, block=block):
            yield np.add.reduceat(drawn, firsts, axis=1)
        return
    clusters, units = ordered_clusters(comparisons, unit)
    members = cluster_cells(cells, clusters)
    rows = max(1, (BLOCK if block is None else block) // max(units, len(cells)))
    for drawn in resampled_counts(units, resamples=resamples, seed=seed, block=rows * units):
        yield _taken(members, drawn)


__all__ = ["Cells", "cell_counts", "cells_of", "cluster_cells", "ordered_clusters", "resampled_cells"]
