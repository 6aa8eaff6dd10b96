import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.stats import bootstrap_mean, paired_difference

scores = st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.none() | st.integers(-50, 50).map(float))


def test_by_hand():
    a = {"x": 0.75, "y": 0.5, "z": 0.25, "only": 1.0, "gap": None, "lost": 1.0}
    b = {"x": 0.5, "y": 0.25, "z": 0.25, "other": 1.0, "gap": None, "lost": None}
    found = paired_difference(a, b)
    assert found.difference == pytest.approx(0.5 / 3)
    assert found.n == 3
    assert (found.only_a, found.only_b, found.neither) == (("lost", "only"), ("other",), 1)
    expected = bootstrap_mean([0.25, 0.25, 0.0])
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    # The mean is above 0 unless z came three times, and never below.
    assert found.share_above_zero == pytest.approx(26 / 27, abs=0.01)
    assert found.p_value == pytest.approx(2 / 27, abs=0.02)


def test_a_difference_of_one_sign_has_the_least_p():
    a = {str(place): 1.0 + place for place in range(6)}
    found = paired_difference(a, dict.fromkeys(a, 0.5), resamples=999)
    assert found.share_above_zero == 1.0
    assert found.p_value == 2 / 1000
    assert found.lower > 0


def test_equal_systems_do_not_differ():
    a = {"x": 0.3, "y": 0.6}
    found = paired_difference(a, a)
    assert (found.difference, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert (found.share_above_zero, found.p_value) == (0.0, 1.0)


def test_pairing_sees_what_two_intervals_cannot():
    generator = np.random.default_rng(1)
    hardness = generator.normal(size=300)
    a = {f"s{place:03}": value + 0.05 for place, value in enumerate(hardness)}
    b = {f"s{place:03}": value + generator.normal(scale=0.1) for place, value in enumerate(hardness)}
    found = paired_difference(a, b)
    assert found.lower > 0
    assert bootstrap_mean(list(b.values())).upper > bootstrap_mean(list(a.values())).lower


def test_p_agrees_with_the_t_test_on_a_regular_sample():
    generator = np.random.default_rng(2)
    differences = generator.normal(0.12, 1.0, size=400)
    keys = [f"s{place:03}" for place in range(400)]
    found = paired_difference(dict(zip(keys, differences, strict=True)), dict.fromkeys(keys, 0.0))
    assert found.p_value == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, abs=0.015)


def test_clusters_are_drawn_whole():
    generator = np.random.default_rng(3)
    scene = np.repeat(generator.normal(0.2, 0.5, size=20), 10)
    keys = [f"s{place:03}" for place in range(200)]
    a = dict(zip(keys, scene + generator.normal(scale=0.1, size=200), strict=True))
    b = dict.fromkeys(keys, 0.0)
    clusters = {key: place // 10 for place, key in enumerate(keys)}
    alone, together = paired_difference(a, b), paired_difference(a, b, clusters=clusters)
    assert together.difference == alone.difference
    assert together.interval.half_width > 2 * alone.interval.half_width
    assert "clusters" in together.interval.method
    expected = bootstrap_mean(list(a.values()), clusters=list(clusters.values()))
    assert (together.lower, together.upper) == (expected.lower, expected.upper)


def test_clusters_of_one_change_no_bit():
    a = {str(place): float(place % 7) for place in range(30)}
    b = {str(place): float(place % 5) for place in range(30)}
    alone = paired_difference(a, b)
    own = paired_difference(a, b, clusters={key: key for key in a})
    assert (own.lower, own.upper, own.p_value) == (alone.lower, alone.upper, alone.p_value)


@given(scores, scores, st.randoms())
@settings(max_examples=40)
def test_order_and_exchange(a, b, random):
    found = paired_difference(a, b, resamples=40)
    shuffled = {key: a[key] for key in random.sample(sorted(a), len(a))}
    assert paired_difference(shuffled, b, resamples=40) == found
    turned = paired_difference(b, a, resamples=40)
    assert (turned.only_a, turned.only_b, turned.n) == (found.only_b, found.only_a, found.n)
    assert found.n + len(found.only_a) + len(found.only_b) + found.neither == len(a.keys() | b.keys())
    if found.difference is not None:
        assert turned.difference == -found.difference
    if found.lower is not None:
        assert (turned.lower, turned.upper) == pytest.approx((-found.upper, -found.lower), abs=1e-12)
        assert turned.p_value == found.p_value


def test_without_common_samples_there_is_no_difference():
    found = paired_difference({"a": 1.0, "b": None}, {"b": 1.0})
    assert found.difference is found.lower is found.p_value is None
    assert (found.n, found.only_a, found.only_b) == (0, ("a",), ("b",))
    assert "no sample" in str(found)


def test_one_unit_gives_no_interval():
    found = paired_difference({"a": 1.0}, {"a": 0.5})
    assert (found.difference, found.lower, found.p_value) == (0.5, None, None)
    same = dict.fromkeys("ab", "scene")
    found = paired_difference({"a": 1.0, "b": 2.0}, {"a": 0.5, "b": 0.5}, clusters=same)
    assert (found.difference, found.lower) == (1.0, None)
    assert str(found) == "+1 (n = 2)"


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"b\['y'\] is nan"):
        paired_difference({"y": 1.0}, {"y": math.nan})
    with pytest.raises(ValueError, match="a - b at 'y' is inf"):
        paired_difference({"y": 1e308}, {"y": -1e308})
    with pytest.raises(ValueError, match="no cluster, the first is 'y'"):
        paired_difference({"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 1.0}, clusters={"x": 1})
