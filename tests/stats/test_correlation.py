import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.records import ItemError, Reason
from gen_eval.stats import kendall_tau_b, pearson, spearman

ALL = pytest.mark.parametrize("correlate", [pearson, spearman, kendall_tau_b])
entry = st.integers(-6, 6).map(float)
pairs = st.lists(st.tuples(entry, entry), min_size=3, max_size=12)


@pytest.mark.parametrize("x", ["overall", "domain", "quality"])
def test_golden_of_nine_systems(correlation_golden, nine_systems, x):
    golden = correlation_golden[x]
    rating, score = nine_systems[f"elo_{x}"], nine_systems[f"score_{x}"]
    r = pearson(rating, score)
    assert r.n == golden["n"]
    assert r.value == pytest.approx(golden["pearson"], abs=1e-12)
    assert r.p_value == pytest.approx(golden["pearson_p"], rel=1e-9)
    assert [r.lower, r.upper] == pytest.approx(golden["pearson_fisher_95"], abs=1e-12)
    assert spearman(rating, score).value == pytest.approx(golden["spearman"], abs=1e-12)
    assert kendall_tau_b(rating, score).value == pytest.approx(golden["kendall_tau_b"], abs=1e-12)
    for place, name in enumerate(nine_systems["model"]):
        gap = [*rating[:place], None, *rating[place + 1 :]]
        found = pearson(gap, score)
        assert (found.n, found.left_out) == (8, 1)
        assert found.value == pytest.approx(golden["leave_one_out_pearson"][name], abs=1e-12)
    real = nine_systems["model"].index("Source Videos")
    gap = [*score[:real], None, *score[real + 1 :]]
    for correlate, name in ((pearson, "pearson"), (spearman, "spearman"), (kendall_tau_b, "kendall_tau_b")):
        assert correlate(rating, gap).value == pytest.approx(golden["without_source_videos"][name], abs=1e-12)


def test_by_hand():
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    assert pearson(x, y).value == pytest.approx(0.8)  # 4 / sqrt(5 * 5)
    assert spearman(x, y).value == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert kendall_tau_b(x, y).value == pytest.approx(4 / 6)  # 5 alike, 1 opposite
    # With four orders out of 24 at most one inversion (1 + 3), both sides: p = 8 / 24.
    assert kendall_tau_b(x, y).p_value == pytest.approx(8 / 24)


def test_ties_by_hand():
    # x 1 1 2, y 1 2 3: two pairs alike, one tied in x: 2 / sqrt(2 * 3).
    assert kendall_tau_b([1, 1, 2], [1, 2, 3]).value == pytest.approx(2 / math.sqrt(6))
    # Ranks 1.5 1.5 3 against 1 2 3: sum of products 1.5, squares 1.5 and 2.
    assert spearman([1, 1, 2], [1, 2, 3]).value == pytest.approx(1.5 / math.sqrt(3))


@pytest.mark.parametrize("n", range(3, 7))
def test_exact_p_of_tau_against_all_orders(n):
    x = list(range(n))

    def tau(order):
        return sum(np.sign(order[j] - order[i]) for i, j in itertools.combinations(range(n), 2))

    everything = [tau(order) for order in itertools.permutations(x)]
    for order in itertools.islice(itertools.permutations(x), 0, None, 5):
        expected = np.mean([abs(other) >= abs(tau(order)) for other in everything])
        assert kendall_tau_b(x, order).p_value == pytest.approx(expected)


@pytest.mark.parametrize("n", [4, 9, 33, 34, 150])
@pytest.mark.parametrize("ties", [False, True])
def test_agrees_with_scipy(n, ties):
    generator = np.random.default_rng(n)
    x = generator.normal(size=n)
    y = 0.5 * x + generator.normal(size=n)
    if ties:
        x, y = np.rint(x), np.rint(2 * y)
    r, theirs = pearson(x, y, level=0.9), scipy_stats.pearsonr(x, y)
    assert (r.value, r.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    interval = theirs.confidence_interval(0.9)
    assert (r.lower, r.upper) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert r.level == 0.9
    rho, theirs = spearman(x, y), scipy_stats.spearmanr(x, y)
    assert (rho.value, rho.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    exact = not ties and n <= 33
    tau, theirs = kendall_tau_b(x, y), scipy_stats.kendalltau(x, y, method="exact" if exact else "asymptotic")
    assert (tau.value, tau.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    assert tau.p_rule.startswith("exact" if exact else "normal")


@ALL
@given(data=pairs, random=st.randoms())
@settings(max_examples=40)
def test_properties(correlate, data, random):
    x, y = (list(column) for column in zip(*data, strict=True))
    found = correlate(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.reason is Reason.NO_VARIANCE
        assert found.value is found.p_value is None
        return
    assert -1 <= found.value <= 1
    assert 0 <= found.p_value <= 1
    assert correlate(y, x).value == pytest.approx(found.value, abs=1e-12)
    assert correlate([-value for value in x], y).value == pytest.approx(-found.value, abs=1e-12)
    assert correlate([4 * value + 3 for value in x], y).value == pytest.approx(found.value, abs=1e-9)
    shuffled = random.sample(data, len(data))
    assert correlate(*zip(*shuffled, strict=True)).value == pytest.approx(found.value, abs=1e-12)
    assert correlate(x, x).value == pytest.approx(1.0, abs=1e-12)
    if correlate is not pearson:
        assert correlate([value**3 for value in x], y).value == pytest.approx(found.value, abs=1e-12)


@ALL
def test_fewer_than_three_pairs(correlate):
    found = correlate([1.0, 2.0, None, 4.0], [1.0, 2.0, 3.0, None])
    assert (found.value, found.reason, found.n, found.left_out) == (None, Reason.TOO_FEW_SYSTEMS, 2, 2)
    with pytest.raises(ItemError, match="too_few_systems") as caught:
        float(found)
    assert caught.value.reason is Reason.TOO_FEW_SYSTEMS
    assert "too_few_systems" in str(found)


@ALL
def test_three_pairs_are_enough(correlate):
    found = correlate([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert float(found) == found.value
    assert "n = 3" in str(found)


@ALL
def test_constant_column(correlate):
    assert correlate([0.1, 0.1, 0.1, 0.1], [1.0, 2.0, 3.0, 4.0]).reason is Reason.NO_VARIANCE
    assert correlate([0.1, 0.1, 0.1, 7.0], [1.0, 2.0, 3.0, None]).reason is Reason.NO_VARIANCE


def test_fisher_at_its_ends():
    assert pearson([1, 2, 3], [1, 3, 2]).lower == -1.0
    assert pearson([1, 2, 3], [1, 3, 2]).upper == 1.0
    perfect = pearson([1, 2, 3, 4], [2, 4, 6, 8])
    assert (perfect.value, perfect.lower, perfect.upper, perfect.p_value) == (1.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_extreme_scales(scale):
    x, y = np.array([1.0, 2.0, 4.0, 3.0]), [1.0, 5.0, 2.0, 3.0]
    assert pearson(scale * x, y).value == pytest.approx(pearson(x, y).value, rel=1e-12)


def test_tiny_differences_beside_a_large_offset():
    assert pearson([1e9, 1e9 + 1, 1e9 + 2], [1, 2, 4]).value == pytest.approx(pearson([0, 1, 2], [1, 2, 4]).value)


@ALL
def test_bad_input_is_named(correlate):
    with pytest.raises(ValueError, match="x has 3 entries and y 2"):
        correlate([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y\[1\] is inf"):
        correlate([1.0, 2.0, 3.0], [1.0, math.inf, 3.0])
    with pytest.raises(TypeError, match=r"x\[0\] is 'a'"):
        correlate(["a", 2.0, 3.0], [1.0, 2.0, 3.0])


def test_level_outside_its_range():
    with pytest.raises(ValueError, match="level is 95"):
        pearson([1, 2, 3], [1, 2, 3], level=95)
