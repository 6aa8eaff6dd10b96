"""Whether a maximum exists: against a search of all directions, row by row, and what is said of it."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.arena import Comparisons
from gen_eval.arena.cells import cells_of
from gen_eval.arena.connectivity import diagnose, identified
from gen_eval.arena.fitting import fit
from gen_eval.records import Reason

SHARES = st.sampled_from([0.0, 0.5, 1.0])


def comparisons_of(rows):
    """From (a, b, share, left)."""
    return replace(Comparisons.of([row[:3] for row in rows]), left=np.array([row[3] for row in rows]))


def rows_of(names, most):
    one = st.tuples(st.sampled_from(names), st.sampled_from(names), SHARES, st.sampled_from([-1, 1]))
    return st.lists(one.filter(lambda row: row[0] != row[1]), min_size=1, max_size=most)


def has_maximum(comparisons, side):
    """No direction but that of all strengths together along which no outcome that was seen falls behind.

    Directions are looked for on a grid that holds every extreme one: steps of at most 1 on a path, side term 1 or -1.
    """
    systems = len(comparisons.models)
    reach = range(-systems + 1, systems) if side else range(2)
    for *t, b in product(*[reach] * systems, (-1, 0, 1) if side else (0,)):
        if b == 0 and len(set(t)) == 1:
            continue
        gap = np.array(t)[comparisons.a] - np.array(t)[comparisons.b] + b * comparisons.left
        if (gap[comparisons.score > 0] >= 0).all() and (gap[comparisons.score < 1] <= 0).all():
            return False
    return True


@settings(max_examples=150)
@given(rows_of("wxyz", 10))
def test_exact_without_a_side_term(rows):
    comparisons = comparisons_of(rows)
    assert (diagnose(comparisons) is None) == has_maximum(comparisons, False)


@settings(max_examples=150)
@given(rows_of("xyz", 14))
def test_exact_with_a_side_term(rows):
    comparisons = comparisons_of(rows)
    assert (diagnose(comparisons, side=True) is None) == has_maximum(comparisons, True)


@settings(max_examples=40)
@given(rows_of("vwxyz", 40), st.booleans(), st.integers(0, 99))
def test_rows_together_are_rows_alone(rows, side, seed):
    cells = cells_of(comparisons_of(rows))
    counts = np.random.default_rng(seed).poisson(cells.counts * 2, size=(20, len(cells))).astype(float)
    counts[0], counts[1] = cells.counts, 0
    alone = [bool(row.any()) and diagnose(cells, row, side=side) is None for row in counts]
    assert identified(cells, counts, side=side).tolist() == alone
    found = fit(cells, counts, side=side)
    assert found.identified.tolist() == alone
    assert not found.theta[~found.identified].any()


def test_long_chains():
    """Longer than the search that is made for all rows together."""
    names = [f"{place:03}" for place in range(60)]
    cells = cells_of(Comparisons.of([(a, b, 0.5) for a, b in pairwise(names)]))
    counts = np.ones((3, len(cells)))
    counts[1, 30] = 0
    counts[2, 58] = 0
    assert identified(cells, counts).tolist() == [True, False, False]


def test_every_pair_shown_one_way_round_is_not_enough_for_two():
    both = [("x", "y", 1.0, 1), ("y", "x", 1.0, -1)]
    assert diagnose(comparisons_of(both)) is None
    found = diagnose(comparisons_of(both), side=True)
    assert (found.reason, found.groups) == (Reason.ONE_SIDED, ())
    assert "cannot be told" in found.message
    turned = [*both, ("x", "y", 0.5, -1)]
    assert diagnose(comparisons_of(turned), side=True) is None


def test_the_left_always_wins():
    rows = [("x", "y", 1.0, 1), ("y", "x", 1.0, 1)] * 3
    assert diagnose(comparisons_of(rows)) is None
    assert "left side accounts for every result" in diagnose(comparisons_of(rows), side=True).message
    right = [(a, b, share, -1) for a, b, share, _ in rows]
    assert "right side accounts for every result" in diagnose(comparisons_of(right), side=True).message
    assert diagnose(comparisons_of(rows + right), side=True) is None


def test_groups_come_strongest_first():
    rows = [("b", "a", 1.0), ("a", "d", 1.0), ("d", "c", 0.5), ("b", "c", 1.0)]
    found = diagnose(Comparisons.of(rows))
    assert found.groups == (("b",), ("a",), ("c", "d"))
    assert found.message.startswith("b never loses a share of a point against a, c, d")
    assert "compare b with a" in found.message
    two = diagnose(Comparisons.of([("x", "y", 0.5), ("x", "z", 1.0), ("y", "z", 1.0)]))
    assert two.message.startswith("x, y never lose a share of a point against z")


def test_long_lists_of_names_are_cut():
    found = diagnose(Comparisons.of([(f"a{place}", f"b{place}", 0.5) for place in range(9)]))
    assert found.reason is Reason.NOT_CONNECTED
    assert len(found.groups) == 9
    assert "and 4 more" in found.message


def test_no_comparison():
    with pytest.raises(ValueError, match="at least one"):
        diagnose(Comparisons.of([]))
