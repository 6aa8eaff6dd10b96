import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.stats import bootstrap_mean, mean_with_coverage

scores = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.dictionaries(st.sampled_from("012345"), st.none() | st.floats(-100, 100), max_size=6),
    min_size=1,
    max_size=12,
)


def test_one_sample_has_five_seeds_nine_have_one():
    """The sample with many seeds weighs like any other under sample_first, five times as much under pooled."""
    samples = {f"s{place}": {"0": 0.0} for place in range(9)} | {"s9": {str(seed): 1.0 for seed in range(5)}}
    first = mean_with_coverage(samples)
    pooled = mean_with_coverage(samples, members="pooled")
    assert (first.value, pooled.value) == (0.1, 5 / 14)
    assert first.pooled == pooled.pooled == 5 / 14
    assert (first.n, first.N, first.members) == (10, 10, (14, 14))
    assert first.uneven_members == (1, 5)
    assert first.rule != pooled.rule


def test_gaps_are_left_out_counted_and_set_to_zero_beside():
    samples = {"a": {"0": 0.5, "1": 0.7}, "b": {"0": 0.8, "1": None}, "c": {"0": None, "1": None}, "d": {}}
    first = mean_with_coverage(samples)
    assert first.value == pytest.approx((0.6 + 0.8) / 2, abs=1e-15)
    assert (first.n, first.N, first.members) == (2, 4, (3, 7))
    assert first.mean_missing_as_zero == pytest.approx((0.6 + 0.8) / 4, abs=1e-15)
    assert first.uneven_members == (1, 2)
    pooled = mean_with_coverage(samples, members="pooled")
    assert pooled.value == pytest.approx(2.0 / 3, abs=1e-15)
    assert pooled.mean_missing_as_zero == pytest.approx(2.0 / 7, abs=1e-15)
    assert (pooled.n, pooled.N, pooled.members) == (2, 4, (3, 7))


def test_smaller_is_better_has_no_mean_with_zeros():
    found = mean_with_coverage({"a": [1.0], "b": [None]}, higher_is_better=False)
    assert (found.value, found.mean_missing_as_zero) == (1.0, None)


@pytest.mark.parametrize("samples", [{}, {"a": {}}, {"a": {"0": None}, "b": [None, None]}])
@pytest.mark.parametrize("members", ["sample_first", "pooled"])
def test_without_any_value_there_is_no_number(samples, members):
    found = mean_with_coverage(samples, members=members)
    assert found.value is found.lower is found.upper is found.mean_missing_as_zero is found.pooled is None
    assert (found.n, found.N) == (0, len(samples))
    assert found.members.n == 0
    assert "no value" in str(found)


def test_one_sample_has_a_mean_and_no_interval():
    found = mean_with_coverage({"a": [0.25, 0.75], "b": [None]})
    assert (found.value, found.lower, found.upper, found.interval) == (0.5, None, None, None)


def test_interval_is_that_of_the_sample_values_in_key_order():
    samples = {"c": [0.9], "a": [0.1, 0.3], "b": [0.6], "d": [None]}
    found = mean_with_coverage(samples, resamples=500, seed=3, level=0.9)
    expected = bootstrap_mean([0.2, 0.6, 0.9], resamples=500, seed=3, level=0.9)
    assert found.interval == expected
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    assert found.lower < found.value < found.upper


def test_pooled_interval_draws_whole_samples():
    samples = {"b": [1.0], "a": [0.0, 0.0, 0.0]}
    found = mean_with_coverage(samples, members="pooled", level=0.4)
    assert (found.value, found.lower, found.upper) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize("members", ["sample_first", "pooled"])
@given(samples=scores, random=st.randoms())
@settings(max_examples=40)
def test_same_bits_in_any_order(members, samples, random):
    def shuffled(mapping):
        return {key: mapping[key] for key in random.sample(sorted(mapping), len(mapping))}

    other = shuffled({key: shuffled(own) for key, own in samples.items()})
    found = mean_with_coverage(samples, members=members, resamples=30)
    assert mean_with_coverage(other, members=members, resamples=30) == found


@given(samples=scores)
@settings(max_examples=40)
def test_counts_and_bounds(samples):
    found = mean_with_coverage(samples, resamples=0)
    values = [value for own in samples.values() for value in own.values() if value is not None]
    assert found.n == sum(any(value is not None for value in own.values()) for own in samples.values())
    assert (found.N, found.members.n) == (len(samples), len(values))
    assert found.interval is None
    if values:
        assert min(values) <= found.value <= max(values)
        assert found.pooled == pytest.approx(math.fsum(values) / len(values))
        assert found.mean_missing_as_zero == pytest.approx(found.value * found.n / found.N, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(1, 4))
@settings(max_examples=30)
def test_rules_agree_when_all_samples_have_equally_many_members(values, seeds):
    samples = {str(place): [value] * seeds for place, value in enumerate(values)}
    found = mean_with_coverage(samples, resamples=0)
    assert found.uneven_members is None
    assert mean_with_coverage(samples, members="pooled", resamples=0).value == pytest.approx(found.value, abs=1e-15)


def test_json_has_the_fields_of_the_interchange():
    found = mean_with_coverage({"a": [1.0, 0.0], "b": [0.5]}, unit="percent").to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["value"] == 0.5
    assert found["members"] == {"n": 3, "N": 3}
    assert found["uneven_members"] == {"min": 1, "max": 2}
    assert found["interval"]["level"] == 0.95
    assert found["interval"]["resamples"] == 10_000
    assert {"lower", "upper", "n", "N", "mean_missing_as_zero", "rule", "unit"} <= found.keys()
    assert mean_with_coverage({"a": [None]}).to_json()["interval"] is None


def test_booleans_are_zero_and_one():
    assert mean_with_coverage({"a": [True], "b": [False]}).value == 0.5


def test_bad_values_are_named():
    with pytest.raises(ValueError, match=r"samples\['b'\]\['1'\] is nan"):
        mean_with_coverage({"a": {"0": 1.0}, "b": {"0": 1.0, "1": math.nan}})
    with pytest.raises(ValueError, match=r"samples\['a'\]\[1\] is inf"):
        mean_with_coverage({"a": [1.0, math.inf]})
    with pytest.raises(TypeError, match=r"samples\['a'\]\[0\] is '0.5'"):
        mean_with_coverage({"a": ["0.5"]})
    with pytest.raises(ValueError, match="sample_first, pooled"):
        mean_with_coverage({"a": [1.0]}, members="median")


def test_order_of_members_does_not_show_where_addition_cancels():
    orders = [[1e16, 1.0, -1e16], [1e16, -1e16, 1.0]]
    one, other = (mean_with_coverage({"a": own, "b": [2.0]}, members="pooled") for own in orders)
    assert one == other
