import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.stats import bootstrap_columns, bootstrap_mean

columns = st.lists(st.floats(-1000, 1000).map(lambda x: round(x, 3)), min_size=1, max_size=30)
BOTH = pytest.mark.parametrize("units", [40, 300])


def ends(interval):
    return interval.lower, interval.upper


def test_golden_mean(bootstrap_golden):
    case = bootstrap_golden["small"][0]
    interval = bootstrap_mean(case["values"], resamples=case["resamples"], seed=case["seed"])
    assert interval.lower == pytest.approx(case["low"], abs=1e-9)
    assert interval.upper == pytest.approx(case["high"], abs=1e-9)
    assert interval.half_width == pytest.approx(case["half_width"], abs=1e-9)


def test_two_values_by_hand():
    """Means of two draws from 0 and 1 are 0, 1/2, 1 with chances 1/4, 1/2, 1/4: the middle 40 % is all 1/2."""
    assert ends(bootstrap_mean([0.0, 1.0], level=0.4)) == (0.5, 0.5)
    assert ends(bootstrap_mean([0.0, 1.0], level=0.6)) == (0.0, 1.0)


def test_three_values_against_all_27_resamples():
    """With enough resamples each of the 27 is drawn about equally often, so away from a step the percentiles agree."""
    values = [0.0, 1.0, 5.0]
    means = sorted(sum(draw) / 3 for draw in itertools.product(values, repeat=3))
    interval = bootstrap_mean(values, level=0.9, resamples=50_000)
    # Steps of the exact law lie at k / 27; 5 % and 95 % are 1.35 and 25.65 of them.
    assert interval.lower == pytest.approx(means[1])
    assert interval.upper == pytest.approx(means[25])


@pytest.mark.parametrize("units", [20, 400])
def test_agrees_with_scipy_within_monte_carlo_error(units):
    values = np.random.default_rng(3).gamma(2, size=units)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(8)
    ).confidence_interval
    ours = bootstrap_mean(values, resamples=20_000)
    # Standard error of a 2.5 % quantile of a normal law with 20,000 draws: 0.019 standard deviations, twice for both.
    error = 5 * np.sqrt(2) * 0.019 * values.std() / np.sqrt(units)
    assert ours.lower == pytest.approx(theirs.low, abs=error)
    assert ours.upper == pytest.approx(theirs.high, abs=error)


@pytest.mark.parametrize(("units", "draw"), [(30, "normal"), (40, "exponential"), (300, "exponential")])
def test_covers_the_true_mean_about_as_often_as_it_says(units, draw):
    generator = np.random.default_rng(11)
    truth = {"normal": 0.0, "exponential": 1.0}[draw]
    runs = 300
    hits = 0
    for run in range(runs):
        interval = bootstrap_mean(getattr(generator, draw)(size=units), resamples=400, seed=run)
        hits += interval.lower <= truth <= interval.upper
    # A percentile interval of a small skewed sample is known to cover a little less than its level.
    assert 0.87 <= hits / runs <= 0.985


@given(columns)
@settings(max_examples=30)
def test_ends_stay_within_the_values_and_in_order(values):
    interval = bootstrap_mean(values, resamples=50)
    assert min(values) <= interval.lower <= interval.upper <= max(values)


@given(st.floats(-1e6, 1e6), st.integers(1, 20))
@settings(max_examples=30)
def test_equal_values_have_an_interval_without_width(value, times):
    assert ends(bootstrap_mean([value] * times, resamples=20)) == (value, value)


@given(columns, st.integers(-1000, 1000), st.sampled_from([0.25, 0.5, 2.0, 8.0]))
@settings(max_examples=30)
def test_shift_and_scale_carry_over(values, shift, scale):
    lower, upper = ends(bootstrap_mean(values, resamples=60))
    moved = ends(bootstrap_mean([scale * value + shift for value in values], resamples=60))
    assert moved == pytest.approx((scale * lower + shift, scale * upper + shift), abs=1e-9)
    turned = ends(bootstrap_mean([-value for value in values], resamples=60))
    assert turned == pytest.approx((-upper, -lower), abs=1e-9)


@BOTH
def test_clusters_of_one_change_no_bit(units):
    values = np.random.default_rng(4).normal(size=units)
    labels = [f"c{units - place}" for place in range(units)]
    assert ends(bootstrap_mean(values, clusters=labels)) == ends(bootstrap_mean(values))


@BOTH
@pytest.mark.parametrize("block", [1, 5000])
def test_block_size_changes_no_bit(units, block):
    values = np.random.default_rng(4).normal(size=units)
    labels = [place // 2 for place in range(units)]
    for clusters in (None, labels):
        kept = bootstrap_mean(values, resamples=301, clusters=clusters)
        assert bootstrap_mean(values, resamples=301, clusters=clusters, block=block) == kept


def test_clusters_by_hand():
    """Clusters (0, 0, 0) and (1): drawing both gives 1/4, one twice gives 0 or 1."""
    values, labels = [0.0, 1.0, 0.0, 0.0], ["a", "b", "a", "a"]
    assert ends(bootstrap_mean(values, clusters=labels, level=0.4)) == (0.25, 0.25)
    assert ends(bootstrap_mean(values, clusters=labels, level=0.6)) == (0.0, 1.0)
    assert "clusters" in bootstrap_mean(values, clusters=labels).method


@pytest.mark.parametrize("clusters", [20, 300])
def test_clusters_against_a_plain_loop(clusters):
    generator = np.random.default_rng(9)
    labels = np.sort(generator.integers(0, clusters, size=4 * clusters))
    values = generator.normal(size=clusters)[labels] + generator.normal(scale=0.3, size=len(labels))
    groups = [values[labels == label] for label in np.unique(labels)]
    plain = []
    for _ in range(4000):
        drawn = generator.integers(0, len(groups), size=len(groups))
        plain.append(np.concatenate([groups[place] for place in drawn]).mean())
    ours = bootstrap_mean(values, clusters=labels.tolist())
    spread = np.std(plain)
    assert ours.lower == pytest.approx(np.percentile(plain, 2.5), abs=0.25 * spread)
    assert ours.upper == pytest.approx(np.percentile(plain, 97.5), abs=0.25 * spread)
    assert ours.half_width > 1.5 * bootstrap_mean(values).half_width  # dependence makes the mean less sure


def test_whole_clusters_of_equal_values_are_like_one_value_each():
    values = np.random.default_rng(4).normal(size=15)
    repeated = np.repeat(values, 4)
    labels = np.repeat(np.arange(15), 4).tolist()
    assert ends(bootstrap_mean(repeated, clusters=labels)) == pytest.approx(ends(bootstrap_mean(values)), abs=1e-12)


@BOTH
def test_a_column_without_gaps_has_the_interval_of_a_single_column(units):
    matrix = np.random.default_rng(4).normal(size=(units, 3))
    rows = matrix.tolist()
    rows[3][1] = None
    for found in (bootstrap_columns(matrix), bootstrap_columns(rows)):
        assert found[0] == bootstrap_mean(matrix[:, 0])
        assert found[2] == bootstrap_mean(matrix[:, 2])
    labels = [place // 3 for place in range(units)]
    assert bootstrap_columns(rows, clusters=labels)[2] == bootstrap_mean(matrix[:, 2], clusters=labels)


def test_gaps_by_hand():
    """Rows (0), (1), (gap): the mean goes over the filled rows drawn; without one, after three gaps, there is none."""
    (interval,) = bootstrap_columns([[0.0], [1.0], [None]], resamples=20_000, level=0.98)
    assert ends(interval) == (0.0, 1.0)
    assert interval.undefined == pytest.approx(20_000 / 27, rel=0.15)
    assert interval.resamples + interval.undefined == 20_000
    drawn = np.random.default_rng(0).integers(0, 3, size=(20_000, 3))
    assert interval.undefined == (drawn == 2).all(axis=1).sum()


@BOTH
def test_gaps_against_the_ratio_of_sums(units):
    generator = np.random.default_rng(1)
    matrix = generator.normal(size=(units, 2))
    present = generator.random((units, 2)) < 0.7
    hidden = np.where(present, matrix, np.nan)
    found = bootstrap_columns(hidden, present=present, resamples=500, seed=5)
    as_rows = [
        [value if there else None for value, there in zip(*row, strict=True)]
        for row in zip(matrix, present, strict=True)
    ]
    assert bootstrap_columns(as_rows, resamples=500, seed=5) == found
    # A gap drawn by both is the same resample: the first column must not change when the second one is dropped.
    assert bootstrap_columns(hidden[:, :1], present=present[:, :1], resamples=500, seed=5)[0] == found[0]
    if units <= 256:
        drawn = np.random.default_rng(5).integers(0, units, size=(500, units))
        plain = np.nanmean(hidden[drawn], axis=1)
        for column, interval in enumerate(found):
            assert ends(interval) == pytest.approx(np.percentile(plain[:, column], [2.5, 97.5]), abs=1e-12)


def test_gaps_and_clusters():
    rows = [[1.0], [None], [3.0], [None], [None], [8.0]]
    (interval,) = bootstrap_columns(rows, clusters=["a", "a", "b", "b", "c", "c"], resamples=2000)
    assert interval == bootstrap_columns([[1.0], [3.0], [8.0]], clusters=["a", "b", "c"], resamples=2000)[0]


def test_a_column_of_gaps_has_no_interval():
    found = bootstrap_columns([[1.0, None], [2.0, None]])
    assert found[1] is None
    assert found[0] is not None


def test_one_filled_row_among_many_may_be_missed_by_all():
    rows = [[None]] * 200
    rows[0] = [1.0]
    assert bootstrap_columns(rows, resamples=1, seed=1) == (None,)


def test_prints_ends_and_level():
    assert str(bootstrap_mean([0.5, 0.5])).startswith("[0.5, 0.5] (95 %, percentile bootstrap")


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.1])
def test_level_outside_its_range(level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        bootstrap_mean([1.0, 2.0], level=level)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"values\[1\] is inf"):
        bootstrap_mean([1.0, np.inf])
    with pytest.raises(ValueError, match=r"values\[0\] is None"):
        bootstrap_mean([None, 1.0])
    with pytest.raises(ValueError, match="nothing to resample"):
        bootstrap_mean([])
    with pytest.raises(ValueError, match="2 cluster labels for 3 values"):
        bootstrap_mean([1.0, 2.0, 3.0], clusters=["a", "b"])
    with pytest.raises(ValueError, match=r"matrix\[1, 1\] is nan"):
        bootstrap_columns([[1.0, 2.0], [3.0, float("nan")]])
    with pytest.raises(ValueError, match="present is"):
        bootstrap_columns(np.ones((3, 2)), present=np.ones((2, 3), dtype=bool))
    with pytest.raises(ValueError, match="present is"):
        bootstrap_columns(np.ones((3, 2)), present=np.ones((3, 2)))
