"""Wilson's interval: by hand, against scipy, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from gen_eval.stats import wilson


@pytest.mark.parametrize(
    ("correct", "n", "lower", "upper"),
    # z = 1.959964; 0 of 10: upper z²/(10 + z²); 5 of 10: 1/2 -/+ z sqrt(10/4 + z²/4) / (10 + z²)
    [(0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (5, 10, 0.236593, 0.763407)],
)
def test_wilson_by_hand(correct, n, lower, upper):
    assert wilson(correct / n, n) == pytest.approx((lower, upper), abs=2e-6)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_holds_the_share_is_symmetric_and_agrees_with_scipy(pair, level):
    correct, n = pair
    found, mirrored = wilson(correct / n, n, level=level), wilson((n - correct) / n, n, level=level)
    assert 0 <= found[0] <= correct / n <= found[1] <= 1
    assert found[0] == pytest.approx(1 - mirrored[1], abs=1e-12)
    other = binomtest(correct, n).proportion_ci(level, method="wilson")
    assert found == pytest.approx((other.low, other.high), abs=1e-9)


@given(st.floats(0, 1), st.floats(0.1, 1e4))
def test_wilson_takes_an_effective_number_and_narrows_with_it(share, n):
    found, more = wilson(share, n), wilson(share, 2 * n)
    assert 0 <= found[0] <= share <= found[1] <= 1
    assert more[1] - more[0] < found[1] - found[0]


@pytest.mark.parametrize(
    "wrong", [(1.5, 3, 0.95), (-0.1, 3, 0.95), (0.5, 0, 0.95), (0.5, 3, 1.0), (float("nan"), 3, 0.9)]
)
def test_what_is_no_share_is_refused(wrong):
    with pytest.raises(ValueError, match=r"is no share|strictly between"):
        wilson(wrong[0], wrong[1], level=wrong[2])
