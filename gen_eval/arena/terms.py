"""The terms of a Bradley-Terry likelihood: pairs of systems, with a side term once for each side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gen_eval.arena.cells import Cells
from gen_eval.arena.comparisons import Ints
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class Terms:
    """T terms in ascending order of (a, b, left).

    Attributes:
        a: ``(T,)`` place of the first system.
        b: ``(T,)`` place of the second one, above ``a``.
        left: ``(T,)`` +1 where system a stood on the left, -1 where b did; without meaning when there is no side term.
        systems: M.
        side: whether there is a side term.
        starts: ``(T,)`` first cell of each term.
    """

    a: Ints
    b: Ints
    left: Ints
    systems: int
    side: bool
    starts: Ints

    @classmethod
    def of(cls, cells: Cells, *, side: bool) -> Terms:
        """Cells that have a logit in common are one term."""
        starts = cells.term_starts if side else cells.pair_starts
        return cls(cells.a[starts], cells.b[starts], cells.left[starts], len(cells.models), side, starts)

    @classmethod
    def each(cls, cells: Cells, *, side: bool) -> Terms:
        """Every cell is a term of its own."""
        return cls(cells.a, cells.b, cells.left, len(cells.models), side, np.arange(len(cells)))

    def __len__(self) -> int:
        return len(self.a)

    def totals(self, values: Floats) -> Floats:
        """``(R, T)`` sums of ``(R, C)`` values of the cells."""
        return np.add.reduceat(values, self.starts, axis=1)

    def by_system(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of ``(R, T)`` values over the terms where each system is a, and where it is b: ``(R, M)`` each."""
        first, second = np.zeros((2, len(values), self.systems))
        first[:, self.a[self._a_starts]] = np.add.reduceat(values, self._a_starts, axis=1)
        turned = np.take(values, self._b_order, axis=1)
        second[:, self.b[self._b_order[self._b_starts]]] = np.add.reduceat(turned, self._b_starts, axis=1)
        return first, second

    def logits(self, x: Floats) -> Floats:
        """``(R, T)`` of ``(R, M)`` strengths, or ``(R, M + 1)`` with the side term last."""
        found = np.take(x, self.a, axis=1)
        found -= np.take(x, self.b, axis=1)
        if self.side:
            found += self.left * x[:, -1:]
        return found

    @cached_property
    def pair_starts(self) -> Ints:
        """``(P,)`` first term of each pair of systems."""
        return _changes(self.a * self.systems + self.b)

    @cached_property
    def _a_starts(self) -> Ints:
        return _changes(self.a)

    @cached_property
    def _b_order(self) -> Ints:
        return np.argsort(self.b, kind="stable")

    @cached_property
    def _b_starts(self) -> Ints:
        return _changes(self.b[self._b_order])


def _changes(ascending: Ints) -> Ints:
    return np.flatnonzero(np.diff(ascending, prepend=-1))


__all__ = ["Terms"]
