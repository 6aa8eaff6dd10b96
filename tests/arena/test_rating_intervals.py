"""Cells, resamples of them, fits in blocks, and intervals from draws and covariances."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from gen_eval.arena import Comparisons, Difference, Rank, bradley_terry
from gen_eval.arena.cells import cell_counts, cells_of, resampled_cells
from gen_eval.arena.fitting import fit
from gen_eval.arena.intervals import chances, from_covariance, from_draws, half_width, without_interval

VOTE = st.tuples(st.sampled_from("wxyz"), st.sampled_from("wxyz"), st.sampled_from([0, 0.1, 0.25, 0.5, 1])).filter(
    lambda vote: vote[0] != vote[1]
)


def some_votes(n=600, systems=6, samples=40, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, systems, n)
    b = (a + rng.integers(1, systems, n)) % systems
    names = [f"m{place}" for place in range(systems)]
    rows = Comparisons.of([(names[i], names[j], s) for i, j, s in zip(a, b, rng.choice([0, 0.5, 1], n), strict=True)])
    left = rng.choice([-1, 1], n)
    return replace(rows, left=left, samples=tuple(str(one) for one in rng.integers(0, samples, n)))


# --- cells ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(VOTE, min_size=1, max_size=20))
def test_cells_hold_the_votes(votes):
    comparisons = Comparisons.of(votes)
    cells = cells_of(comparisons)
    assert cells.counts.tolist() == np.bincount(cells.codes).tolist()
    rows = list(zip(cells.a, cells.b, cells.left, cells.score, cells.tie, strict=True))
    assert rows == sorted(set(rows))
    for place, (a, b, share) in enumerate(votes):
        cell = cells.codes[place]
        first, second = comparisons.models[cells.a[cell]], comparisons.models[cells.b[cell]]
        assert (first, second) == (min(a, b), max(a, b))
        assert cells.score[cell] == pytest.approx(share if a < b else 1 - share)
        assert cells.left[cell] == (1 if a < b else -1)


def test_counts_of_clusters():
    comparisons = Comparisons.of([("x", "y", 1.0), ("x", "y", 1.0), ("y", "x", 0.5), ("x", "y", 0.0)])
    cells = cells_of(comparisons)
    clusters = np.array([0, 1, 1, 2])
    found = cell_counts(cells, clusters, np.array([[1.0, 1, 1], [0, 3, 0], [2, 0, 1]]))
    # in order of side, then share: x on the left lost, won; x on the right had a tie
    places = [cells.codes[3], cells.codes[0], cells.codes[2]]
    assert found[:, places].tolist() == [[1, 2, 1], [0, 3, 3], [1, 2, 0]]
    with pytest.raises(ValueError, match="3 clusters"):
        cell_counts(cells, clusters, np.ones((1, 2)))


@pytest.mark.parametrize("unit", ["votes", "samples"])
@pytest.mark.parametrize("n", [100, 600])
def test_resamples_do_not_depend_on_blocks(unit, n):
    comparisons = some_votes(n)
    cells = cells_of(comparisons)
    whole, small = (
        np.concatenate(list(resampled_cells(cells, comparisons, unit, resamples=23, seed=5, block=block)))
        for block in (None, 700)
    )
    assert whole.tobytes() == small.tobytes()
    assert len(whole) == 23
    if unit == "votes":
        assert set(whole.sum(axis=1)) == {n}
    expected = cells.counts if unit == "votes" else None
    many = np.concatenate(list(resampled_cells(cells, comparisons, unit, resamples=3000)))
    if expected is not None:
        assert np.abs(many.mean(axis=0) - expected).max() < 6 * np.sqrt(expected.max() / 3000)


@pytest.mark.parametrize("side", [False, True])
def test_fits_do_not_depend_on_blocks(side):
    comparisons = some_votes()
    cells = cells_of(comparisons)
    counts = np.concatenate(list(resampled_cells(cells, comparisons, "votes", resamples=50)))
    best = fit(cells, cells.counts[None], side=side)
    start = np.append(best.theta[0], best.side) if side else best.theta[0]
    whole, small, far = (
        fit(cells, counts, side=side, **options) for options in ({"start": start}, {"start": start, "block": 100}, {})
    )
    assert whole.theta.tobytes() == small.theta.tobytes()
    assert whole.side.tobytes() == small.side.tobytes()
    assert far.theta == pytest.approx(whole.theta, abs=1e-9)
    for row, theta in zip(counts[:5], whole.theta, strict=False):
        assert fit(cells, row[None], side=side).theta[0] == pytest.approx(theta, abs=1e-9)


def test_lopsided_votes_are_followed_to_their_maximum():
    """A million wins against one loss along a chain: far from where the steps begin."""
    cells = cells_of(Comparisons.of([(a, b, s) for a, b in ("wx", "xy", "yz") for s in (0.0, 1.0)]))
    counts = np.where(cells.score == 1, 1e6, 1.0)[None]
    assert np.diff(fit(cells, counts).theta[0]) == pytest.approx([-np.log(1e6)] * 3, abs=1e-6)


# --- intervals -----------------------------------------------------------------------------------------------------


def test_draws_by_hand():
    draws = np.array([[1010.0, 1000, 990], [1030, 980, 990], [1020, 990, 990]])
    found = from_draws(["p", "q", "r"], np.array([1020.0, 990, 990]), draws, level=0.5)
    assert (found.lower, found.upper) == ({"p": 1015, "q": 985, "r": 990}, {"p": 1025, "q": 995, "r": 990})
    assert [(one.a, one.b, one.difference, one.lower, one.upper, one.clear) for one in found.differences] == [
        ("p", "q", 30, 20, 40, True),
        ("p", "r", 30, 25, 35, True),
        ("q", "r", 0, -5, 5, False),
    ]
    assert found.ranks == {"p": Rank(1, 1, 1), "q": Rank(2, 2, 3), "r": Rank(2, 2, 3)}
    assert found.differences[0].chance == pytest.approx(1 / (1 + 10 ** (-30 / 400)))
    assert (found.widened, found.remark) == (0, "")


def test_an_interval_that_left_out_its_estimate_is_widened_and_says_so():
    found = from_draws(["p", "q"], np.array([1000.0, 1000]), np.array([[1010.0, 990], [1020, 980]]))
    assert (found.lower["p"], found.upper["q"]) == (1000, 1000)
    assert found.widened == 3
    assert "3 ends were moved" in found.remark


def test_rounding_widens_nothing():
    rating = bradley_terry([("x", "y", 0.75)] * 7, resamples=50).main
    assert rating.interval.words.endswith("likely too narrow")
    for name, value in rating.ratings.items():
        assert rating.lower[name] <= value <= rating.upper[name]


def test_covariance_by_hand():
    covariance = np.array([[4.0, -1], [-1, 9]])
    found = from_covariance(["p", "q"], np.array([990.0, 1010]), covariance, level=0.9)
    z = NormalDist().inv_cdf(0.95)
    assert found.lower == pytest.approx({"p": 990 - 2 * z, "q": 1010 - 3 * z})
    (only,) = found.differences
    assert (only.a, only.b) == ("q", "p")
    assert (only.lower, only.upper) == pytest.approx((20 - z * 15**0.5, 20 + z * 15**0.5))
    assert only.clear
    assert found.ranks == {"p": Rank(2, 2, 2), "q": Rank(1, 1, 1)}


def test_covariance_of_few_clusters_by_hand():
    covariance = np.array([[4.0, -1], [-1, 9]])
    found = from_covariance(["p", "q"], np.array([990.0, 1010]), covariance, level=0.9, freedom=1)
    t = np.tan(np.pi * 0.45)  # one degree of freedom: Cauchy's distribution
    assert found.lower == pytest.approx({"p": 990 - 2 * t, "q": 1010 - 3 * t})
    (only,) = found.differences
    assert (only.lower, only.upper) == pytest.approx((20 - t * 15**0.5, 20 + t * 15**0.5))
    normal, many = (half_width(np.array([-1e-20, 4.0]), 0.9, freedom) for freedom in (None, 10_000))
    assert many == pytest.approx(normal, rel=1e-3)


def clustered_study(generator, clusters, systems=4, repeats=2):
    """Equal systems that each do better on some samples than on others, so that votes of one sample hang together."""
    first, second = np.triu_indices(systems, 1)
    a, b = np.tile(first, clusters * repeats), np.tile(second, clusters * repeats)
    sample = np.repeat(np.arange(clusters), len(first) * repeats)
    effect = generator.normal(0, 0.8, (clusters, systems))
    score = (generator.random(len(a)) < expit(effect[sample, a] - effect[sample, b])).astype(float)
    names = [f"m{place}" for place in range(systems)]
    rows = Comparisons.of([(names[i], names[j], s) for i, j, s in zip(a, b, score, strict=True)])
    return replace(rows, samples=tuple(map(str, sample)), annotators=("u",) * len(a))


def test_intervals_from_twelve_clusters_cover_what_they_promise():
    generator = np.random.default_rng(1)
    held = []
    for _ in range(200):
        found = bradley_terry(clustered_study(generator, 12), interval="sandwich", resamples=0)["overall"]
        assert (found.interval.unit, found.interval.units) == ("samples", 12)
        held += [one.lower <= 0 <= one.upper for one in found.differences]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)  # without the correction 0.92
    assert "Student's t from the sandwich covariance over 12 samples" in found.interval.words
    assert "times 12/11, 11 degrees of freedom" in found.interval.words
    assert "too narrow" not in found.interval.words
    few = bradley_terry(clustered_study(generator, 9), resamples=100)["overall"]
    assert "with only 9 samples it is likely too narrow" in few.interval.words


def test_without_interval():
    found = without_interval(["p", "q"], np.array([1000.0, 1100]))
    assert found.differences == (Difference("q", "p", 100.0, None, None, float(chances(np.array([100.0]))[0])),)
    assert found.ranks == {"p": Rank(2, 1, 2), "q": Rank(1, 1, 2)}
    assert not found.lower


def test_many_pairs_are_done_in_blocks(monkeypatch):
    draws = np.random.default_rng(0).normal(size=(40, 9)) + np.arange(9)
    names = [f"m{place}" for place in range(9)]
    whole = from_draws(names, draws.mean(axis=0), draws)
    monkeypatch.setattr("gen_eval.arena.intervals._BLOCK", 100)
    assert from_draws(names, draws.mean(axis=0), draws) == whole
    assert len(whole.differences) == 36


@pytest.mark.parametrize("level", [0, 1, 95])
def test_levels(level):
    with pytest.raises(ValueError, match="strictly between"):
        from_draws(["p"], np.zeros(1), np.zeros((2, 1)), level=level)
    with pytest.raises(ValueError, match="strictly between"):
        from_covariance(["p"], np.zeros(1), np.zeros((1, 1)), level=level)


def test_draws_of_another_shape():
    with pytest.raises(ValueError, match=r"\(0, 2\)"):
        from_draws(["p", "q"], np.zeros(2), np.zeros((0, 2)))
