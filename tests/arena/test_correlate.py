import csv
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.arena import SystemColumn, correlate
from gen_eval.arena.coefficients import COEFFICIENTS, counted_coefficients, drawn_counts, row_coefficients
from gen_eval.arena.permutation import permutation_test

OTHER = {
    "pearson": lambda x, y: scipy_stats.pearsonr(x, y)[0],
    "spearman": lambda x, y: scipy_stats.spearmanr(x, y)[0],
    "kendall_tau_b": lambda x, y: scipy_stats.kendalltau(x, y)[0],
}
number = st.integers(-5, 5).map(float)
tables = st.lists(st.tuples(number, number), min_size=3, max_size=7).filter(
    lambda rows: len({x for x, _ in rows}) > 1 and len({y for _, y in rows}) > 1
)


def column(name, values, **more):
    if not isinstance(values, dict):
        values = {f"m{place}": value for place, value in enumerate(values)}
    return SystemColumn(name, values, **more)


def one_pair(x, y, **options):
    return correlate({"q": column("quality", x)}, {"q": column("quality", y)}, **options)["quality"]


@pytest.fixture(scope="module")
def table8(request):
    path = request.path.parents[1] / "goldens" / "papers" / "pai_table8.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))

    def columns(prefix):
        return {
            x: column(x, {row["model"]: float(row[f"{prefix}_{x}"]) for row in rows})
            for x in ("overall", "domain", "quality")
        }

    return columns("elo"), columns("score")


@pytest.fixture(scope="module")
def found(table8):
    return correlate(*table8)


@pytest.fixture(scope="module")
def golden(request):
    path = request.path.parents[1] / "goldens" / "elo" / "correlation.json"
    return json.loads(path.read_text())["correlations"]


@pytest.mark.parametrize("x", ["overall", "domain", "quality"])
def test_golden(found, golden, x):
    ours, wanted = json.loads(json.dumps(found.to_json(), allow_nan=False))["pairs"][x], dict(golden[x])
    bootstrap = wanted.pop("bootstrap_95")
    assert ours["bootstrap_95"] == pytest.approx(bootstrap, abs=0.06)
    without = wanted.pop("without_source_videos")
    assert {name: ours["without_source_videos"][name] for name in without} == pytest.approx(without, abs=1e-12)
    assert list(ours["leave_one_out_pearson"]) == list(wanted["leave_one_out_pearson"])
    for name, value in wanted.items():
        assert ours[name] == pytest.approx(value, rel=1e-9), name


def test_table_of_the_protocol(found):
    def rounded(*values):
        return [round(value, 3) for value in values]

    def row(x):
        pair = found[x]
        without = pair.without_source_videos
        return [
            *rounded(pair.pearson, pair.spearman, pair.kendall_tau_b, without.pearson, without.spearman),
            *rounded(pair.leave_one_out_pearson["DynamicCrafter"]),
            *[round(end, 2) for end in pair.pearson_fisher_95],
        ]

    assert row("overall") == [0.918, 0.950, 0.833, 0.943, 0.929, 0.887, 0.65, 0.98]
    assert row("domain") == [0.857, 0.917, 0.778, 0.890, 0.881, 0.837, 0.45, 0.97]
    assert row("quality") == [0.883, 0.593, 0.493, 0.900, 0.515, 0.585, 0.53, 0.98]


def test_as_a_table_of_a_notebook(found):
    table = found.to_pandas().set_index("pair")
    columns = ["n", "pearson", "spearman", "kendall_tau_b", "pearson_without_real", "spearman_without_real"]
    assert table.loc["quality", columns].astype(float).round(3).tolist() == [9, 0.883, 0.593, 0.493, 0.9, 0.515]
    assert table.loc["overall", ["lower", "upper"]].astype(float).round(2).tolist() == [0.65, 0.98]
    assert repr(found) == str(found)


def test_what_the_table_hides(found):
    assert found["overall"].most_influential == found["quality"].most_influential == "DynamicCrafter"
    assert found["quality"].real == ("Source Videos",)
    points = found["domain"].to_json()["points"]
    assert points[0] == {"model": "Source Videos", "rating": 1278.1, "score": 89.8, "real": True}
    assert [point["real"] for point in points] == [True] + 8 * [False]
    text = str(found)
    for shown in ("0.918", "n = 9", "[0.651, 0.983]", "Spearman 0.950", "without DynamicCrafter", "0.943, 0.929"):
        assert shown in text


def test_permutation_by_counting_every_order():
    x, y = [1.0, 2.0, 3.0, 7.0], [2.0, 1.0, 1.0, 9.0]
    pair = one_pair(x, y)
    for name, other in OTHER.items():
        given_value = abs(other(x, y))
        as_far = sum(abs(other(x, order)) >= given_value - 1e-9 for order in itertools.permutations(y))
        assert pair.permutation.to_json()[name] == as_far / 24
    assert pair.permutation.rule == "exact: all 24 orders of the 4 systems"


def test_permutation_of_many_systems():
    draw = np.random.default_rng(3)
    x = draw.normal(size=12)
    y = 0.5 * x + draw.normal(size=12)
    test = permutation_test(x, y, seed=1)
    assert (test.orders, test.exact) == (100_000, False)
    assert "random orders, seed 1" in test.rule
    # without ties Kendall's exact test counts the same orders, and Student's t is close for Pearson
    assert test.kendall_tau_b == pytest.approx(scipy_stats.kendalltau(x, y).pvalue, abs=0.006)
    assert test.pearson == pytest.approx(scipy_stats.pearsonr(x, y).pvalue, abs=0.02)
    assert permutation_test(x, y, seed=1) == test
    assert permutation_test(x, x, seed=1).pearson == 1 / 100_001
    assert permutation_test(np.arange(120.0), np.arange(120.0)).orders == 250_000_000 // 120**2


def test_leave_one_out_by_hand():
    # without the last one y goes down where x goes up
    pair = one_pair([1.0, 2.0, 3.0, 10.0], [3.0, 2.0, 1.0, 10.0])
    assert pair.leave_one_out["pearson"]["m3"] == pytest.approx(-1)
    assert pair.leave_one_out["spearman"]["m3"] == pytest.approx(-1)
    assert pair.leave_one_out["kendall_tau_b"]["m3"] == pytest.approx(-1)
    assert pair.most_influential == "m3"


def test_plausibility_and_domain_are_one():
    found = correlate(
        {"p": column("plausibility", [1, 2, 3]), "q": column("quality", [1, 2, 3])},
        {"d": column("domain", [1, 2, 4]), "motion": column("motion", [1, 2, 3])},
    )
    assert list(found.pairs) == ["domain"]
    assert (found["domain"].rating, found["domain"].score) == ("plausibility", "domain")
    assert found.to_json()["unpaired"] == {"ratings": ["quality"], "scores": ["motion"]}
    with pytest.raises(ValueError, match=r"'plausibility' and 'domain'.*keep one"):
        correlate({"p": column("plausibility", [1, 2, 3]), "d": column("domain", [1, 2, 3])}, {})


def test_names_and_gaps():
    pair = one_pair(
        {"a": 1, "b": 2, "c": 3, "d": 4, "e": None, "only": 7}, {"e": 1, "d": 9, "c": 2, "b": None, "a": 1, "new": 3}
    )
    assert [point.model for point in pair.points] == ["a", "c", "d"]
    assert (pair.n, pair.left_out) == (3, ("b", "e"))
    assert (pair.only_in_ratings, pair.only_in_scores) == (("only",), ("new",))
    assert pair.without_source_videos is None
    assert pair.to_json()["real"] == []


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 2.0], [3.0, 4.0], "too_few_systems"),
        ([], [], "too_few_systems"),
        ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0], "no_variance"),
    ],
)
def test_reasons(x, y, reason):
    pair = one_pair(x, y, real=["m0"])
    document = json.loads(json.dumps(pair.to_json(), allow_nan=False))
    assert (document["n"], document["reason"]) == (len(x), reason)
    for name in ("pearson", "pearson_p", "pearson_fisher_95", "spearman", "kendall_tau_b", "bootstrap_95"):
        assert document[name] is None
    assert set(document["permutation_p"].values()) == {None}
    assert set(document["leave_one_out_pearson"].values()) <= {None}
    assert document["most_influential"] is None
    assert reason in str(pair)


def test_errors_keep_their_sign():
    rating, error = column("quality", [1, 2, 3, 4]), column("quality", [4, 3, 2, 1], higher_is_better=False)
    pair = correlate({"q": rating}, {"q": error})["quality"]
    assert pair.pearson == pytest.approx(-1)
    assert pair.oriented == -1
    document = pair.to_json()
    assert document["score_higher_is_better"] is False
    assert "negative is agreement" in document["sign"]


def test_names_of_intervals_carry_the_level():
    wide, narrow = (one_pair([1, 2, 3, 5, 4], [2, 1, 3, 4, 5], level=level, resamples=500) for level in (0.95, 0.5))
    document = narrow.to_json()
    assert "bootstrap_50" in document
    assert "bootstrap_95" not in document
    assert narrow.bootstrap_95 is None
    assert wide.pearson_fisher_95[0] < document["pearson_fisher_50"][0]
    assert wide.bootstrap_95[0] < document["bootstrap_50"][0]
    assert document["level"] == 0.5


def test_resamples_without_a_value_are_counted():
    pair = one_pair([1, 1, 1, 1, 2], [1, 2, 3, 4, 5], resamples=2000)
    # the fifth is drawn neither never nor always: (4/5)^5 + (1/5)^5
    assert pair.bootstrap_undefined / 2000 == pytest.approx((4 / 5) ** 5 + (1 / 5) ** 5, abs=0.03)


def test_fewer_than_five_systems_are_not_drawn_from():
    pair = one_pair([1, 2, 3, 4], [1, 3, 2, 4], resamples=50)
    assert set(pair.bootstrap.values()) == {None}
    assert pair.to_json()["bootstrap_95"] is None
    assert "fewer than 5" in pair.to_json()["bootstrap_rule"]
    assert pair.pearson_fisher is not None


def test_interval_holds_its_estimate():
    # so narrow an interval rarely holds so odd a value by itself
    pair = one_pair([0, 1, 2, 3, 4], [0, 4, 1, 2, 3], resamples=999, level=0.02)
    for name in COEFFICIENTS:
        lower, upper = pair.bootstrap[name]
        assert lower <= getattr(pair, name) <= upper
    assert pair.bootstrap_widened


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0.0}, {"resamples": 0}, {"seed": -1}])
def test_arguments_outside_their_range(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        one_pair([1, 2, 3], [1, 2, 3], **options)


def test_a_number_that_is_not_finite():
    with pytest.raises(ValueError, match="quality of 'm1'"):
        one_pair([1, math.inf, 3], [1, 2, 3])


@settings(max_examples=30)
@given(tables, st.integers(-3, 3), st.sampled_from([0.25, 2.0, 8.0]))
def test_shift_scale_order_and_names_change_nothing(rows, shift, scale):
    x, y = [x for x, _ in rows], [y for _, y in rows]
    pair = one_pair(x, y, resamples=50)
    renamed = {f"system {-place}": value for place, value in reversed(list(enumerate(x)))}
    moved = {f"system {-place}": scale * value + shift for place, value in enumerate(y)}
    other = one_pair(renamed, moved, resamples=50)
    for name in COEFFICIENTS:
        assert getattr(other, name) == pytest.approx(getattr(pair, name), abs=1e-12)
        assert -1 <= getattr(pair, name) <= 1
        assert (other.bootstrap[name] is None) == (pair.bootstrap[name] is None) == (len(x) < 5)
        if pair.bootstrap[name] is not None:
            assert other.bootstrap[name] == pytest.approx(pair.bootstrap[name], abs=1e-12)
            assert pair.bootstrap[name][0] <= getattr(pair, name) <= pair.bootstrap[name][1]
    assert other.permutation == pair.permutation
    assert other.bootstrap_undefined == pair.bootstrap_undefined


@settings(max_examples=30)
@given(tables)
def test_symmetry_and_sign(rows):
    x, y = [x for x, _ in rows], [y for _, y in rows]
    pair, turned, negated = (one_pair(a, b, resamples=20) for a, b in ((x, y), (y, x), (x, [-value for value in y])))
    for name in COEFFICIENTS:
        assert getattr(turned, name) == pytest.approx(getattr(pair, name), abs=1e-12)
        assert getattr(negated, name) == pytest.approx(-getattr(pair, name), abs=1e-12)
    assert turned.permutation == pair.permutation == negated.permutation


@settings(max_examples=40)
@given(tables, st.integers(0, 1000))
def test_batches_are_the_coefficients_of_other_packages(rows, seed):
    x, y = (np.array(side) for side in zip(*rows, strict=True))
    counts = drawn_counts(len(x), 5, seed)
    drawn = [np.repeat(np.arange(len(x)), row.astype(int)) for row in counts]
    by_counts = counted_coefficients(x, y, counts)
    by_rows = row_coefficients(x[np.array(drawn)], y[np.array(drawn)])
    for place, own in enumerate(drawn):
        constant = len(set(x[own])) == 1 or len(set(y[own])) == 1
        assert by_counts.defined[place] == by_rows.defined[place] == (not constant)
        for name, other in OTHER.items():
            if not constant:
                assert by_counts.of(name)[place] == pytest.approx(other(x[own], y[own]), abs=1e-12)
                assert by_rows.of(name)[place] == pytest.approx(other(x[own], y[own]), abs=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_numbers(size):
    x, y = [1.0, 2.0, 4.0, 3.0], [2.0, 1.0, 3.0, 5.0]
    plain, far = one_pair(x, y, resamples=50), one_pair([size * value for value in x], y, resamples=50)
    assert far.pearson == pytest.approx(plain.pearson)
    assert far.bootstrap["pearson"] == pytest.approx(plain.bootstrap["pearson"])
    rows = row_coefficients(size * np.array([x]), np.array([y]))
    assert rows.pearson[0] == pytest.approx(plain.pearson)


def test_named_real_videos(table8):
    ratings, scores = table8
    pair = correlate(ratings, scores, real=["Veo3", "Source Videos", "nobody"], resamples=20)["overall"]
    assert pair.real == ("Source Videos", "Veo3")
    assert pair.without_real.n == 7
    assert replace(pair, without_real=None).to_json()["without_source_videos"] is None
