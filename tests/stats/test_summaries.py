import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.stats import exact_mean, percentile

numbers = st.floats(-1e6, 1e6)


def test_percentile_by_hand():
    # Four values stand at positions 0..3; 50 % is position 1.5, 90 % is position 2.7.
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([1.0, 2.0, 3.0, 4.0], 90) == pytest.approx(3.7)
    assert percentile([1.0, 2.0, 3.0, 4.0], 0) == 1.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 100) == 4.0
    assert percentile([7.0], 31) == 7.0


@given(st.lists(numbers, min_size=1, max_size=20), st.floats(0, 100))
def test_percentile_is_the_textbook_formula(values, q):
    ordered = sorted(values)
    position = (len(values) - 1) * q / 100
    below = math.floor(position)
    above = min(below + 1, len(values) - 1)
    expected = ordered[below] + (position - below) * (ordered[above] - ordered[below])
    assert percentile(values, q) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("q", [-0.1, 100.1, math.nan])
def test_percentile_outside_0_to_100_is_refused(q):
    with pytest.raises(ValueError, match=r"0\.\.100"):
        percentile([1.0, 2.0], q)


def test_percentile_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 50)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_position_of_a_bad_value_is_named(bad):
    with pytest.raises(ValueError, match=r"values\[2\] is (nan|inf|-inf|None)"):
        percentile([0.1, 0.2, bad, 0.3], 50)


def test_text_is_no_number():
    with pytest.raises(TypeError, match="numbers are needed"):
        percentile(["0.5", "0.6"], 50)
    with pytest.raises(TypeError, match=r"values\[1\]"):
        percentile(np.array([0.5, "0.6"], dtype=object), 50)


def test_matrix_is_no_column():
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        percentile([[1.0, 2.0]], 50)


def test_exact_mean_by_hand():
    assert exact_mean([1, 2, 6]) == 3.0
    assert exact_mean([1e16, 1.0, -1e16]) == 1 / 3  # a running sum gives 0


@given(st.lists(numbers, min_size=1, max_size=30), st.randoms())
def test_exact_mean_has_the_same_bits_in_any_order(values, random):
    shuffled = random.sample(values, len(values))
    assert exact_mean(shuffled) == exact_mean(values)
    assert min(values) <= exact_mean(values) <= max(values)


@given(numbers, st.integers(1, 300))
def test_exact_mean_of_equal_numbers_is_that_number(value, times):
    assert exact_mean([value] * times) == value


def test_exact_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="does not exist"):
        exact_mean([])


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, gen_eval.stats; print([m for m in ('pandas', 'scipy', 'cv2', 'torch') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
