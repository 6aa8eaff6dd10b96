"""Frame-weighted means, and totals with one interval for all their parts."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.stats import (
    Column,
    aggregates,
    bootstrap_mean,
    bootstrap_ratio,
    mean_with_coverage,
    paired_difference,
    paired_total,
    total_of,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "quality" / "metric_layer.json").read_text())["aggregate"]
FRAMES = (3, 8, 1)
"""Frames that the recorded values are means of: the clips have one frame more."""


def column(values, rule="sample_first", weights=None):
    return Column(values, rule, True, "ratio", weights=weights)


# --- frame-weighted means -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded():
    values = {name: {"0": value} for name, value in zip(GOLDEN["videos"], GOLDEN["per_video"], strict=True)}
    return values, {name: {"0": float(count)} for name, count in zip(GOLDEN["videos"], FRAMES, strict=True)}


def test_the_recorded_aggregates(recorded):
    values, weights = recorded
    weighted = mean_with_coverage(values, members="frame_weighted", weights=weights, resamples=0)
    for name in ("subject_one_process", "background_one_process", "background_several_processes"):
        assert weighted.value == pytest.approx(GOLDEN[name], abs=1e-6)
    pooled = mean_with_coverage(values, members="pooled", resamples=0)
    assert pooled.value == weighted.pooled == pytest.approx(GOLDEN["subject_several_processes"], abs=1e-6)
    assert "frames" in weighted.rule


def test_a_hand_computed_weighted_mean_with_gaps():
    values = {"a": {"0": 0.5, "1": 1.0}, "b": {"0": None}, "c": {"0": 0.0}}
    weights = {"a": {"0": 1, "1": 2}, "c": {"0": 2}}
    found = mean_with_coverage(values, members="frame_weighted", weights=weights, resamples=200)
    assert found.value == 2.5 / 5
    assert (found.n, found.N, found.members) == (2, 3, (3, 4))
    assert found.mean_missing_as_zero == found.value * 3 / 4  # a gap weighs as much as the others on average
    assert found.pooled == 0.5
    ends = bootstrap_ratio([2.5, 0.0], [3.0, 2.0], resamples=200)
    assert (found.lower, found.upper) == (ends.lower, ends.upper)


def test_what_weighs_nothing_is_refused():
    for weights in (None, {"a": {}}, {"a": {"0": 0}}, {"a": {"0": float("nan")}}):
        with pytest.raises(ValueError, match=r"weights\['a'\]\['0'\]"):
            mean_with_coverage({"a": {"0": 0.5}}, members="frame_weighted", weights=weights)
    with pytest.raises(ValueError, match=r"denominators\[1\] is 0"):
        bootstrap_ratio([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="2 numerators and 1"):
        bootstrap_ratio([1.0, 2.0], [1.0])


PAIRS = st.lists(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 200)), min_size=1, max_size=3), min_size=2, max_size=5
)


def weighted(pairs):
    values = {f"s{place}": {str(k): value for k, (value, _) in enumerate(own)} for place, own in enumerate(pairs)}
    weights = {f"s{place}": {str(k): weight for k, (_, weight) in enumerate(own)} for place, own in enumerate(pairs)}
    return values, weights


@settings(max_examples=25, deadline=None)
@given(PAIRS)
def test_properties_of_a_weighted_mean(pairs):
    values, weights = weighted(pairs)
    found = mean_with_coverage(values, members="frame_weighted", weights=weights)
    numbers = [value for own in pairs for value, _ in own]
    assert min(numbers) - 1e-15 <= found.lower <= found.upper <= max(numbers) + 1e-15
    assert min(numbers) <= found.value <= max(numbers)
    reverse = mean_with_coverage(dict(reversed(values.items())), members="frame_weighted", weights=weights)
    assert reverse == found
    assert aggregates([column(values, "frame_weighted", weights)]) == [found]


@settings(max_examples=20, deadline=None)
@given(PAIRS)
def test_equal_weights_are_the_pooled_mean(pairs):
    values, weights = weighted([[(value, 7) for value, _ in own] for own in pairs])
    even = mean_with_coverage(values, members="frame_weighted", weights=weights, resamples=200)
    pooled = mean_with_coverage(values, members="pooled", resamples=200)
    for name in ("value", "lower", "upper", "mean_missing_as_zero"):
        assert getattr(even, name) == pytest.approx(getattr(pooled, name), abs=1e-12)


# --- totals ---------------------------------------------------------------------------------------------------------


def spread(seed, samples=12):
    numbers = np.random.default_rng(seed).uniform(0, 1, samples)
    return {f"s{place:02d}": {"0": value} for place, value in enumerate(numbers.tolist())}


def test_a_total_of_numbers():
    total = total_of("t", ["a", "b"], {"a": 0.25, "b": 0.75, "other": 9.0})
    assert (total.value, total.n, total.N, total.missing, total.partial) == (0.5, 2, 2, (), None)
    assert (total.lower, total.interval) == (None, None)
    assert total.to_json()["parts"]["a"] == {"value": 0.25, "n": None, "N": None}


def test_a_part_without_a_value_leaves_no_total_and_is_named():
    total = total_of("t", ["a", "b", "c"], {"a": column(spread(1)), "b": None, "c": column(spread(2))})
    assert total.value is total.lower is None
    assert (total.n, total.N, total.missing) == (2, 3, ("b",))
    alone = total_of("t", ["a", "c"], {"a": column(spread(1)), "c": column(spread(2))})
    assert (total.partial.value, total.partial.lower, total.partial.upper) == (alone.value, alone.lower, alone.upper)
    assert total.partial.of == ("a", "c")
    assert "without b" in str(total)
    nothing = total_of("t", ["a"], {"a": column({"s": {"0": None}})})
    assert nothing.value is nothing.partial is None
    assert nothing.to_json()["parts"]["a"] == {"value": None, "n": 0, "N": 1}


def test_the_interval_draws_samples_once_for_all_parts():
    """Two parts that mirror each other: their mean never moves, though each of them does."""
    ups = spread(3)
    downs = {sample: {"0": 1 - own["0"]} for sample, own in ups.items()}
    total = total_of("t", ["a", "b"], {"a": column(ups), "b": column(downs)})
    assert total.lower == pytest.approx(0.5, abs=1e-12)
    assert total.upper == pytest.approx(0.5, abs=1e-12)
    alone = aggregates([column(ups)])[0]
    assert alone.upper - alone.lower > 0.1


def test_a_total_of_one_part_has_the_interval_of_that_part():
    for rule, weights in (
        ("sample_first", None),
        ("pooled", None),
        ("frame_weighted", {s: {"0": 2.0} for s in spread(4)}),
    ):
        own = column(spread(4), rule, weights)
        (alone,) = aggregates([own])
        total = total_of("t", ["a"], {"a": own})
        assert total.value == alone.value
        assert total.lower == pytest.approx(alone.lower, abs=1e-12)
        assert total.upper == pytest.approx(alone.upper, abs=1e-12)
        assert total.parts["a"].count == (12, 12)


def test_the_interval_is_the_literal_one():
    first, second = spread(5, 8), spread(6, 8)
    del second["s03"]
    second["s04"] = {"0": None}
    total = total_of("t", ["a", "b"], {"a": column(first), "b": column(second)}, resamples=500, seed=7)
    names = sorted(first)
    draws = np.random.default_rng(7).integers(0, 8, size=(500, 8))
    means = []
    for draw in draws:
        one = [first[names[k]]["0"] for k in draw]
        two = [value for k in draw if (value := second.get(names[k], {}).get("0")) is not None]
        means.append((np.mean(one) + np.mean(two)) / 2)
    np.testing.assert_allclose([total.lower, total.upper], np.percentile(means, [2.5, 97.5]), atol=1e-12)
    assert total.parts["b"].count == (6, 7)


def test_totals_of_totals():
    inner = total_of("quality", ["a", "b"], {"a": column(spread(1)), "b": column(spread(2))})
    outer = total_of("overall", ["domain", "quality"], {"domain": column(spread(3)), "quality": inner})
    assert outer.value == pytest.approx((outer.parts["domain"].value + inner.value) / 2, abs=1e-15)
    assert outer.lower < outer.value < outer.upper
    assert total_of("overall", ["domain", "quality"], {"domain": 0.5, "quality": inner}).interval is None


def test_one_sample_gives_no_interval():
    assert total_of("t", ["a"], {"a": column({"s": {"0": 0.5, "1": 0.7}})}).interval is None


@pytest.mark.parametrize("wanted", [[], ["a", "a"]])
def test_parts_must_be_named_once(wanted):
    with pytest.raises(ValueError, match="different names"):
        total_of("t", wanted, {})


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match=r"scores\['a'\]"):
        total_of("t", ["a"], {"a": float("nan")})


# --- paired totals --------------------------------------------------------------------------------------------------


def flat(seed):
    return {sample: own["0"] for sample, own in spread(seed).items()}


def test_the_paired_difference_of_one_part_is_that_of_the_part():
    found, alone = paired_total({"a": flat(1)}, {"a": flat(2)}), paired_difference(flat(1), flat(2))
    for name in ("difference", "lower", "upper", "p_value", "share_above_zero"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name), abs=1e-12)
    assert (found.n, found.only_a, found.only_b, found.neither) == (12, (), (), 0)


def test_the_paired_difference_of_several_parts():
    one, two = {"a": flat(1), "b": flat(2)}, {"a": flat(3), "b": flat(4)}
    one["b"]["s00"] = None
    del two["b"]["s01"]
    found = paired_total(one, two)
    apart = [paired_difference(one[part], two[part]).difference for part in "ab"]
    assert found.difference == pytest.approx(sum(apart) / 2, abs=1e-15)
    assert (found.n, found.only_a, found.only_b) == (12, ("s01",), ("s00",))
    assert paired_total(two, one).difference == pytest.approx(-found.difference, abs=1e-15)


def test_a_part_without_common_samples_leaves_no_difference():
    found = paired_total({"a": flat(1), "b": {"x": 0.5}}, {"a": flat(2), "b": {"y": 0.5}})
    assert found.difference is found.lower is None
    assert (found.only_a, found.only_b) == (("x",), ("y",))
    with pytest.raises(ValueError, match="same parts"):
        paired_total({"a": flat(1)}, {"b": flat(1)})
    assert paired_total({"a": {"s": 1.0}}, {"a": {"s": 0.5}}).interval is None


def test_an_interval_of_equal_denominators_is_that_of_the_mean():
    values = [0.1, 0.5, 0.9, 0.3]
    ratio, mean = bootstrap_ratio(values, [1.0] * 4), bootstrap_mean(values)
    assert (ratio.lower, ratio.upper) == pytest.approx((mean.lower, mean.upper), abs=1e-12)
