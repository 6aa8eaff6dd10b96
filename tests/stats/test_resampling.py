import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.stats import percentile, resampled_sums

# Both ways of drawing: by index up to 256 units, by table above.
BOTH = pytest.mark.parametrize("units", [40, 300])


def half_width(values):
    return (percentile(values, 97.5) - percentile(values, 2.5)) / 2


def recipe(units, resamples, seed):
    """Which unit is drawn where, by the published index recipe."""
    return np.random.default_rng(seed).integers(0, units, size=(resamples, units))


@pytest.mark.parametrize("units", [1, 2, 7, 100, 255, 256])
def test_up_to_256_units_the_draws_are_those_of_the_recipe(units):
    drawn = recipe(units, 50, 4)
    counts = resampled_sums(np.eye(units), resamples=50, seed=4)
    assert np.array_equal(counts, [np.bincount(row, minlength=units) for row in drawn])


def test_golden_statistics_of_sums(bootstrap_golden):
    """Mean, macro F1, micro F1 and mean of group means, each from resampled sums alone."""
    mean, macro, micro, groups = bootstrap_golden["small"]

    def check(case, columns, statistic):
        sums = resampled_sums(np.array(columns, dtype=float).T, resamples=case["resamples"], seed=case["seed"])
        values = statistic(*sums.T)
        assert percentile(values, 2.5) == pytest.approx(case["low"], abs=1e-9)
        assert percentile(values, 97.5) == pytest.approx(case["high"], abs=1e-9)
        assert half_width(values) == pytest.approx(case["half_width"], abs=1e-9)

    n = len(mean["values"])
    check(mean, [mean["values"]], lambda total: total / n)
    true, said = np.array(macro["gt"]), np.array(macro["pred"])
    columns = [true * said, (1 - true) * said, true * (1 - said), (1 - true) * (1 - said)]

    def macro_f1(tp, fp, fn, tn):
        yes = np.divide(2 * tp, 2 * tp + fp + fn, out=np.zeros_like(tp), where=2 * tp + fp + fn > 0)
        no = np.divide(2 * tn, 2 * tn + fp + fn, out=np.zeros_like(tn), where=2 * tn + fp + fn > 0)
        labels = (tp + fp + fn > 0).astype(int) + (tn + fp + fn > 0)
        return (yes + no) / labels

    check(macro, columns, macro_f1)
    check(micro, [micro[name] for name in ("tp", "fp", "fn")], lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn))
    means = [np.mean(group) for group in groups["groups"]]
    check(groups, [means], lambda total: total / len(means))


def test_published_half_widths_of_1195_questions(bootstrap_golden):
    """Above 256 units: the half width of an accuracy is that of a binomial share."""
    for row in bootstrap_golden["vqa_published"]:
        right = np.zeros((row["n"], 1))
        right[: row["correct"]] = 1
        shares = resampled_sums(right)[:, 0] / row["n"]
        assert 100 * half_width(shares) == pytest.approx(row["binomial_half_width"], abs=0.15)


@BOTH
@pytest.mark.parametrize("block", [1, 700, 5000, 1 << 20])
def test_block_size_does_not_show(units, block):
    columns = np.random.default_rng(1).random((units, 3)) - 0.3
    whole = resampled_sums(columns, resamples=101, seed=7)
    assert np.array_equal(resampled_sums(columns, resamples=101, seed=7, block=block), whole)


@BOTH
def test_a_column_does_not_depend_on_its_neighbours(units):
    columns = np.random.default_rng(2).normal(size=(units, 9))
    together = resampled_sums(columns, resamples=60)
    for place in range(9):
        assert np.array_equal(resampled_sums(columns[:, [place]], resamples=60)[:, 0], together[:, place])


@BOTH
def test_more_resamples_begin_with_the_same_ones(units):
    columns = np.random.default_rng(2).normal(size=(units, 1))
    assert np.array_equal(resampled_sums(columns, resamples=400)[:150], resampled_sums(columns, resamples=150))


@BOTH
def test_seeds_differ(units):
    columns = np.arange(units, dtype=float)[:, None]
    assert not np.array_equal(resampled_sums(columns, seed=0), resampled_sums(columns, seed=1))


@pytest.mark.parametrize("units", [257, 300, 1003])
def test_table_draws_are_multinomial(units):
    """Counts of single units, of pairs of units, and the row totals, against the multinomial law."""
    resamples = 4000
    counts = resampled_sums(np.eye(units), resamples=resamples, seed=3)
    assert (counts.sum(axis=1) == units).all()
    assert (counts == np.rint(counts)).all()
    assert counts.min() == 0
    seen = np.bincount(np.minimum(counts.ravel().astype(int), 8), minlength=9)
    expected = scipy_stats.binom.pmf(np.arange(9), units, 1 / units) * counts.size
    expected[8] = scipy_stats.binom.sf(7, units, 1 / units) * counts.size
    # Counts of one row are weakly dependent, which makes this chi-square slightly smaller than its nominal law.
    assert ((seen - expected) ** 2 / expected).sum() < scipy_stats.chi2.ppf(0.9999, 8)
    # Every unit has mean 1: the spread of the units' means is that of independent resamples, no unit is favoured.
    means = counts.mean(axis=0)
    per_unit = (means - 1) * np.sqrt(resamples / (1 - 1 / units))
    assert np.abs(per_unit).max() < 4.8
    assert (per_unit**2).sum() == pytest.approx(units, rel=6 * np.sqrt(2 / units))
    # Neighbours share a table entry, halves of a row do not; all pairs must have covariance -1/n.
    for left, right in ((counts[:, 0::2], counts[:, 1::2]), (counts[:, : units // 2], counts[:, -(units // 2) :])):
        width = min(left.shape[1], right.shape[1])
        products = (left[:, :width] - 1) * (right[:, :width] - 1)
        error = products.std() / np.sqrt(products.size)
        assert products.mean() == pytest.approx(-1 / units, abs=4.5 * error)


@pytest.mark.parametrize("units", [100, 400, 5000])
def test_moments_of_the_resampled_mean(units):
    """Mean, variance and skewness of the bootstrap law are known: m, s^2 / n, skewness / sqrt(n)."""
    values = np.random.default_rng(5).exponential(size=units) ** 2
    means = resampled_sums(values[:, None], resamples=20_000, seed=1)[:, 0] / units
    error = values.std() / np.sqrt(units)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * error / np.sqrt(20_000))
    assert means.std() == pytest.approx(error, rel=4 / np.sqrt(2 * 20_000))
    skewness = scipy_stats.skew(values) / np.sqrt(units)
    assert scipy_stats.skew(means) == pytest.approx(skewness, abs=6 * np.sqrt(6 / 20_000))


@BOTH
@given(exponent=st.integers(-200, 200))
@settings(max_examples=10)
def test_powers_of_two_scale_exactly(units, exponent):
    columns = np.random.default_rng(6).normal(size=(units, 1))
    scaled = resampled_sums(np.ldexp(columns, exponent), resamples=20)
    assert np.array_equal(scaled, np.ldexp(resampled_sums(columns, resamples=20), exponent))


@BOTH
def test_sums_are_exact_for_numbers_with_few_digits(units):
    quarters = np.random.default_rng(6).integers(-400, 400, size=(units, 1)) / 4
    counts = resampled_sums(np.eye(units), resamples=30)
    assert np.array_equal(resampled_sums(quarters, resamples=30), counts @ quarters)


def test_zero_columns_and_no_columns():
    assert np.array_equal(resampled_sums(np.zeros((300, 2)), resamples=5), np.zeros((5, 2)))
    assert resampled_sums(np.zeros((4, 0)), resamples=5).shape == (5, 0)


def test_tiny_and_huge_numbers():
    assert (resampled_sums(np.full((3, 1), 5e-324), resamples=5) == 1.5e-323).all()
    assert (resampled_sums(np.full((4, 1), 2.0**1019), resamples=5) == 2.0**1021).all()
    with pytest.raises(ValueError, match="overflow"):
        resampled_sums(np.full((40, 1), 1e308))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"columns\[1, 0\] is nan"):
        resampled_sums([[0.0], [np.nan]])
    with pytest.raises(ValueError, match="shape"):
        resampled_sums([0.0, 1.0])
    with pytest.raises(ValueError, match="nothing to resample"):
        resampled_sums(np.zeros((0, 1)))
    with pytest.raises(ValueError, match="resamples is 0"):
        resampled_sums([[1.0]], resamples=0)
    with pytest.raises(ValueError, match="seed is -1"):
        resampled_sums([[1.0]], seed=-1)
