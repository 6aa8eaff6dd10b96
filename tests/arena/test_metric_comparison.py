import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.arena import SystemColumn, compare_metrics, correlate
from gen_eval.arena.dependent_correlations import williams_test
from gen_eval.stats import holm, pearson


def column(name, values, **more):
    return SystemColumn(name, {f"m{place}": value for place, value in enumerate(values)}, **more)


@pytest.fixture(scope="module")
def table8(request):
    path = request.path.parents[1] / "goldens" / "papers" / "pai_table8.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        name: SystemColumn(name, {row["model"]: float(row[name]) for row in rows})
        for name in rows[0]
        if name != "model"
    }


def test_published_table(table8):
    scores = {name: one for name, one in table8.items() if name.startswith("score")}
    found = compare_metrics(table8["elo_overall"], scores)
    assert list(found.agreements) == ["score_overall", "score_domain", "score_quality"]
    assert found.best == found.best_without_real == "score_overall"
    best = found.agreements["score_overall"]
    assert best.pearson == pytest.approx(0.918109857981968, abs=1e-12)
    assert best.without_real.pearson == pytest.approx(0.9429305780498533, abs=1e-12)
    # the interval of one metric is the one that the correlation alone has
    alone = correlate({"r": table8["elo_overall"]}, {"s": SystemColumn("elo_overall", scores["score_overall"].values)})
    assert (best.lower, best.upper) == pytest.approx(alone["elo_overall"].bootstrap_95, abs=1e-12)
    assert [(one.a, one.b) for one in found.to_best] == [
        ("score_overall", "score_domain"),
        ("score_overall", "score_quality"),
    ]
    assert len(found.differences) == 3
    assert not any(one.real for one in found.differences)  # nine systems do not tell these apart
    assert "n = 9" in str(found)


def test_williams_of_published_example():
    # Steiger (1980): verbal ability with masculinity .5 and femininity .4, these two .1, 103 people
    test = williams_test(0.5, 0.4, 0.1, 103)
    matrix = np.array([[1, 0.5, 0.4], [0.5, 1, 0.1], [0.4, 0.1, 1]])
    below = 2 * 102 / 100 * np.linalg.det(matrix) + 0.45**2 * 0.9**3
    assert test.t == pytest.approx(0.1 * math.sqrt(102 * 1.1 / below))
    assert (round(test.t, 2), test.df) == (0.89, 100)
    assert test.p_value == pytest.approx(0.375, abs=0.001)


def test_williams_holds_its_level():
    draw = np.random.default_rng(5)
    root = np.linalg.cholesky([[1, 0.5, 0.5], [0.5, 1, 0.3], [0.5, 0.3, 1]])
    small = 0
    for _ in range(1500):
        r = np.corrcoef(root @ draw.normal(size=(3, 12)))
        small += williams_test(r[0, 1], r[0, 2], r[1, 2], 12).p_value < 0.05
    assert small / 1500 == pytest.approx(0.05, abs=0.02)


def test_williams_without_freedom():
    assert williams_test(0.5, 0.4, 0.1, 3) is None
    assert williams_test(0.5, 0.5, 1.0, 9) == (0.0, 6, 1.0)
    assert williams_test(1.0, -1.0, -1.0, 9) is None
    with pytest.raises(ValueError, match=r"r23 is 1\.5"):
        williams_test(0.1, 0.2, 1.5, 9)


@given(st.floats(-0.99, 0.99), st.floats(-0.99, 0.99), st.floats(-0.99, 0.99), st.integers(4, 60))
def test_williams_turns_with_its_arguments(a, b, between, n):
    one, other = williams_test(a, b, between, n), williams_test(b, a, between, n)
    if one is not None:
        assert one.t == pytest.approx(-other.t)
        assert one.p_value == pytest.approx(other.p_value)
        assert 0 <= one.p_value <= 1
        assert one.t * (a - b) >= 0


def test_a_real_difference_is_told():
    draw = np.random.default_rng(0)
    rating = draw.normal(size=40)
    scores = {
        "good": column("good", rating + 0.1 * draw.normal(size=40)),
        "noise": column("noise", draw.normal(size=40)),
    }
    found = compare_metrics(column("overall", rating), scores)
    (difference,) = found.to_best
    assert (difference.a, difference.real, difference.share_above) == ("good", True, 1.0)
    assert difference.p_value == difference.p_holm == pytest.approx(2 / 10_001)
    assert difference.williams_p_holm == difference.williams_p < 1e-6
    assert difference.lower > 0.3
    assert difference.words.endswith("the difference is real")


def test_one_metric_twice_is_no_difference():
    rating, score = column("overall", [1, 2, 3, 4, 7]), column("x", [1, 3, 2, 5, 4])
    same = column("y", [10 - 2 * value for value in score.values.values()], higher_is_better=False)
    found = compare_metrics(rating, {"x": score, "y": same}, resamples=500)
    (difference,) = found.differences
    assert (difference.difference, difference.lower, difference.upper) == pytest.approx((0, 0, 0), abs=1e-12)
    assert (difference.p_value, difference.williams_p, difference.real) == (1.0, 1.0, False)
    assert found.agreements["y"].pearson == pytest.approx(found.agreements["x"].pearson)
    assert found.agreements["x"].pearson > 0
    assert found.agreements["y"].to_json()["higher_is_better"] is False
    assert "not to be told from chance" in difference.words


def test_every_two_metrics_are_corrected_for():
    draw = np.random.default_rng(1)
    rating = draw.normal(size=15)
    scores = {f"x{size}": column(f"x{size}", rating + size * draw.normal(size=15)) for size in (0.2, 0.8, 2.0)}
    found = compare_metrics(column("overall", rating), scores, resamples=2000)
    assert [one.p_holm for one in found.differences] == holm([one.p_value for one in found.differences])
    assert [one.williams_p_holm for one in found.differences] == holm([one.williams_p for one in found.differences])
    for one in found.differences:
        assert one.difference == pytest.approx(
            found.agreements[one.a].pearson - found.agreements[one.b].pearson, abs=1e-12
        )
        assert one.real == (max(one.p_holm, one.williams_p_holm) <= 0.05)


def test_over_the_systems_that_all_have():
    rating = column("overall", [1, 2, 3, 4, None, 6])
    scores = {"x": column("x", [2, 1, 4, 3, 5, None]), "y": column("y", [2, None, 4, 5, 5, 6])}
    found = compare_metrics(rating, scores, resamples=200)
    assert sorted(found.systems) == ["m0", "m2", "m3"]
    assert found.left_out == {"m1": ("y",), "m4": (), "m5": ("x",)}
    assert found.agreements["x"].pearson == pytest.approx(pearson([1, 3, 4], [2, 4, 3]).value)


def test_no_value():
    found = compare_metrics(
        column("overall", [1, 2, 3]), {"flat": column("flat", [1, 1, 1]), "x": column("x", [1, 2, 4])}, resamples=200
    )
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["metrics"]["flat"]["reason"] == "no_variance"
    assert (document["best"], document["differences"]) == ("x", [])
    assert "flat: no value (no_variance)" in str(found)
    few = compare_metrics(column("overall", [1, 2]), {"x": column("x", [1, 2])}, resamples=200)
    assert (few.best, str(few.agreements["x"].reason)) == (None, "too_few_systems")
    none = compare_metrics(column("overall", [1]), {"x": SystemColumn("x", {"other": 1})}, resamples=200)
    assert none.n == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"by": "r"}, "by is 'r'"), ({"level": 0}, "level"), ({"resamples": 0}, "resamples"), ({"seed": -1}, "seed")],
)
def test_arguments_outside_their_range(options, message):
    with pytest.raises(ValueError, match=message):
        compare_metrics(column("overall", [1, 2, 3]), {"x": column("x", [1, 2, 3])}, **options)


def test_no_metric():
    with pytest.raises(ValueError, match="no metric"):
        compare_metrics(column("overall", [1, 2, 3]), {})


@pytest.mark.parametrize("by", ["spearman", "kendall_tau_b"])
def test_by_ranks(by):
    rating = column("overall", [1, 2, 3, 4, 50])
    scores = {"ranks": column("ranks", [1, 2, 3, 4, 5]), "line": column("line", [2, 1, 3, 4, 50])}
    found = compare_metrics(rating, scores, by=by, resamples=300)
    assert found.best == "ranks"
    assert compare_metrics(rating, scores, resamples=300).best == "line"
    assert found.differences[0].williams_t is None
    assert "Williams" not in found.rule


entry = st.integers(-4, 4).map(float)


@settings(max_examples=25)
@given(st.lists(st.tuples(entry, entry, entry), min_size=4, max_size=7), st.sampled_from([0.5, 4.0]))
def test_order_and_scale_of_metrics_change_nothing(rows, scale):
    rating, x, y = (list(one) for one in zip(*rows, strict=True))
    scores = {"x": column("x", x), "y": column("y", y)}
    turned = {"y": column("y", [-scale * value for value in y], higher_is_better=False), "x": scores["x"]}
    one, other = (compare_metrics(column("overall", rating), own, resamples=50) for own in (scores, turned))
    assert one.best == other.best
    for name, metric in one.agreements.items():
        assert other.agreements[name].n == metric.n
        assert (metric.pearson is None) == (other.agreements[name].pearson is None)
        if metric.pearson is not None:
            assert other.agreements[name].pearson == pytest.approx(metric.pearson, abs=1e-12)
            assert metric.lower is None or metric.lower <= metric.pearson <= metric.upper
    for left, right in zip(one.differences, other.differences, strict=True):
        assert left.difference == pytest.approx(right.difference, abs=1e-12)


def test_few_systems_have_no_verdict():
    names = [f"m{place}" for place in range(4)]
    rating = SystemColumn("overall", dict(zip(names, [1.0, 2.0, 3.0, 4.0], strict=True)))
    scores = {
        "near": SystemColumn("near", dict(zip(names, [1.0, 2.0, 3.0, 4.1], strict=True))),
        "far": SystemColumn("far", dict(zip(names, [4.0, 1.0, 2.0, 1.5], strict=True))),
    }
    found = compare_metrics(rating, scores, resamples=50)
    (difference,) = found.differences
    assert (found.best, difference.real, difference.p_value, difference.lower) == ("near", False, None, None)
    assert "no verdict" in difference.words
    assert found.agreements["near"].lower is None
