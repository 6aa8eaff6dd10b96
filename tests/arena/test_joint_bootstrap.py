import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_expit

from gen_eval.arena import (
    Comparisons,
    SystemColumn,
    VideoScores,
    compare_metrics,
    correlation_of,
    joint_correlation,
    joint_draws,
)
from gen_eval.arena.noise import noise_corrected
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.stats import resampled_counts


def study(seed=0, systems=5, samples=30, votes=400, noise=1.0):
    """Votes and scores that follow one truth, a line of strengths."""
    draw = np.random.default_rng(seed)
    names = [f"m{place}" for place in range(systems)]
    truth = np.linspace(-1, 1, systems)
    values = {
        (name, f"s{sample}"): {"0": truth[place] + noise * draw.normal()}
        for place, name in enumerate(names)
        for sample in range(samples)
    }
    rows, where = [], []
    for _ in range(votes):
        a, b = draw.choice(systems, 2, replace=False)
        rows.append((names[a], names[b], float(draw.random() < 1 / (1 + math.exp(truth[b] - truth[a])))))
        where.append(f"s{draw.integers(samples)}")
    return replace(Comparisons.of(rows), samples=tuple(where)), VideoScores("m", values)


def test_each_resample_in_plain_python():
    votes, scores = study(systems=3, samples=6, votes=60)
    values = {key: value for key, value in scores.values.items() if key not in {("m0", "s1"), ("m2", "s4")}}
    draws = joint_draws(votes, {"m": replace(scores, values=values)}, resamples=6, seed=4)
    (counts,) = (block.copy() for block in resampled_counts(6, resamples=6, seed=4))
    names = [f"s{place}" for place in range(6)]
    assert draws.samples == draws.samples_with_both == 6
    for place, row in enumerate(counts):
        taken = dict(zip(names, row, strict=True))

        def loss(theta, taken=taken):
            gaps = theta[votes.a] - theta[votes.b]
            own = votes.score * log_expit(gaps) + (1 - votes.score) * log_expit(-gaps)
            return -sum(taken[sample] * one for sample, one in zip(votes.samples, own, strict=True)) + theta.sum() ** 2

        theta = minimize(loss, np.zeros(3), tol=1e-12).x
        assert draws.ratings[place] == pytest.approx(1000 + 400 / math.log(10) * (theta - theta.mean()), abs=0.01)
        for system, model in enumerate(draws.models):
            own = [(taken[sample], value["0"]) for (name, sample), value in values.items() if name == model]
            mean = sum(count * value for count, value in own) / sum(count for count, _ in own)
            assert draws.scores["m"][place, system] == pytest.approx(mean)


def test_a_metric_that_is_the_truth():
    votes, scores = study(votes=3000, samples=60, noise=0.1)
    found = joint_correlation(votes, scores, resamples=500)
    assert found.pearson > 0.98
    assert found.intervals["pearson"][0] > 0.95
    assert found.spearman == 1.0
    assert found.undefined == {"not_identified": 0, "without_scores": 0, "no_variance": 0}
    assert (found.n, found.n_votes, found.samples) == (5, 3000, 60)
    negated = replace(
        scores,
        values={key: {seed: -one for seed, one in value.items()} for key, value in scores.values.items()},
        higher_is_better=False,
    )
    error = joint_correlation(votes, negated, resamples=500)
    assert error.pearson == pytest.approx(-found.pearson)
    assert error.intervals["pearson"] == pytest.approx([-end for end in reversed(found.intervals["pearson"])], abs=2e-3)
    assert error.higher_is_better is False


def test_json_and_text():
    votes, scores = study()
    found = joint_correlation(votes, scores, resamples=200, level=0.9)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["pearson_90"] == list(found.intervals["pearson"])
    assert document["pearson_90"][0] <= document["pearson"] <= document["pearson_90"][1]
    assert document["noise_corrected"]["lower"] <= document["noise_corrected"]["value"]
    assert document["noise_corrected"]["value"] >= document["pearson"]
    assert document["interval_rule"].startswith("percentiles")
    assert "n = 5 systems, 400 votes" in str(found)


def test_equal_bits():
    votes, scores = study()
    order = np.random.default_rng(0).permutation(len(votes))
    shuffled = replace(
        votes,
        a=votes.b[order],
        b=votes.a[order],
        score=1 - votes.score[order],
        tie=votes.tie[order],
        left=-votes.left[order],
        samples=tuple(votes.samples[place] for place in order),
    )
    one = joint_draws(votes, {"m": scores}, resamples=40)
    for other in (
        joint_draws(votes, {"m": scores}, resamples=40, block=70),
        joint_draws(shuffled, {"other": scores, "m": scores}, resamples=40),
    ):
        assert np.array_equal(one.ratings, other.ratings)
        assert np.array_equal(one.scores["m"], other.scores["m"])


def test_seeds_and_parts_are_averaged():
    votes, scores = study(samples=4, votes=80)
    seeds = replace(
        scores, values={key: {"0": value["0"] - 1, "1": value["0"] + 1} for key, value in scores.values.items()}
    )
    double = replace(scores, values={key: {"0": 2 * value["0"] + 3} for key, value in scores.values.items()})
    draws = joint_draws(votes, {"m": scores, "seeds": seeds, "total": [scores, double]}, resamples=20)
    assert draws.scores["seeds"] == pytest.approx(draws.scores["m"])
    assert draws.scores["total"] == pytest.approx((3 * draws.scores["m"] + 3) / 2)
    assert list(draws.columns["total"].values.values()) == pytest.approx(
        [(3 * value + 3) / 2 for value in draws.columns["m"].values.values()]
    )
    found = joint_correlation(votes, [scores, replace(double, metric="d")], resamples=20)
    assert found.metric == "mean of m, d"


def test_resamples_without_a_value_are_counted():
    # y beats x in one sample only, so a resample without it has no maximum; z has one score only
    votes = replace(
        Comparisons.of([("x", "y", 1.0), ("y", "x", 1.0), ("y", "z", 1.0), ("z", "y", 1.0)]),
        samples=("s1", "s2", "s1", "s1"),
    )
    values = {(name, "s1"): {"0": float(place)} for place, name in enumerate("xyz")}
    values |= {("x", "s3"): {"0": 5.0}, ("y", "s3"): {"0": 1.0}}
    found = joint_correlation(votes, VideoScores("m", values), resamples=3000)
    assert (found.samples, found.samples_with_both) == (3, 1)
    # samples s1, s2, s3: ratings need s1 and s2, and then z has its score
    share = 1 - 2 * (2 / 3) ** 3 + (1 / 3) ** 3
    assert found.undefined["not_identified"] / 3000 == pytest.approx(1 - share, abs=0.03)
    assert found.undefined["without_scores"] == 0
    loose = joint_correlation(votes, VideoScores("m", values), resamples=3000, ridge=0.1)
    assert loose.undefined["not_identified"] == 0
    assert loose.undefined["without_scores"] / 3000 == pytest.approx((2 / 3) ** 3, abs=0.03)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("m0", "m1", 0.5), ("m2", "m3", 0.5)], "not_connected"),
        ([("m0", "m1", 1.0), ("m1", "m2", 0.5), ("m2", "m3", 0.5)], "one_sided"),
        ([("m0", "m1", 0.5)], "too_few_systems"),
        ([("m0", "m1", 0.5), ("m1", "m2", 0.5)], "no_variance"),
    ],
)
def test_reasons(rows, reason):
    _, scores = study()
    found = joint_correlation(rows, scores, resamples=30)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["reason"] == reason
    assert document["pearson"] is document["pearson_95"] is document["noise_corrected"] is None
    assert reason in str(found)


def test_systems_without_scores_are_named():
    votes, scores = study()
    fewer = replace(scores, values={key: value for key, value in scores.values.items() if key[0] != "m3"})
    found = joint_correlation(votes, fewer, resamples=50)
    assert (found.n, found.without_scores) == (4, ("m3",))
    none = joint_correlation(votes, VideoScores("m", {}), resamples=50)
    assert (none.n, str(none.reason)) == (0, "too_few_systems")


def test_metrics_on_the_same_draws():
    votes, scores = study(votes=2000, samples=100, noise=0.2)
    draw = np.random.default_rng(9)
    odd = draw.permutation(5)
    poor = VideoScores(
        "poor", {key: {"0": odd[int(key[0][1])] + draw.normal()} for key in scores.values}, higher_is_better=False
    )
    draws = joint_draws(votes, {"m": scores, "poor": poor}, resamples=400)
    found = compare_metrics(draws.rating, draws.columns, draws=draws)
    assert found.best == "m"
    assert found.agreements["poor"].pearson == pytest.approx(-correlation_of(draws, "poor").pearson)
    assert found.differences[0].real
    assert found.differences[0].resamples == 400
    assert "samples drawn with their votes" in found.drawn
    with pytest.raises(ValueError, match="draws lack other"):
        compare_metrics(draws.rating, {"other": draws.columns["m"]}, draws=draws)
    with pytest.raises(ValueError, match="draws lack new"):
        compare_metrics(SystemColumn("overall", {"new": 1.0}), {"m": SystemColumn("m", {"new": 1.0})}, draws=draws)


def test_what_is_refused():
    votes, scores = study(votes=50)
    with pytest.raises(ValueError, match="no vote counts for quality"):
        joint_correlation(votes, scores, "quality")
    with pytest.raises(ValueError, match="tracker"):
        joint_correlation(votes, scores, "beauty")
    with pytest.raises(ValueError, match="no score"):
        joint_draws(votes, {})
    with pytest.raises(ValueError, match="no parts"):
        joint_draws(votes, {"m": []})
    with pytest.raises(ValueError, match="mixes"):
        joint_draws(votes, {"m": [scores, replace(scores, higher_is_better=False)]})
    with pytest.raises(ValueError, match="level"):
        joint_correlation(votes, scores, level=2.0)
    with pytest.raises(ValueError, match="resamples"):
        joint_correlation(votes, scores, resamples=0)
    with pytest.raises(ValueError, match="m of 'm0', sample 's0'"):
        joint_correlation(votes, replace(scores, values={("m0", "s0"): {"0": math.nan}}))


def test_coverage_with_the_noise_taken_off():
    # noise pulls r down in the value and again in every resample; taken off, the truth is held
    line = np.linspace(-1, 1, 9)
    means = line + 0.2 * np.array([1, -2, 1, 0, 0, 0, -1, 2, -1])
    truth = np.corrcoef(line, means)[0, 1]
    held, values, plain = 0, [], []
    for seed in range(60):
        draw = np.random.default_rng(1000 + seed)
        votes, scores = study(seed=seed, systems=9, votes=500, samples=60)
        noisy = {key: {"0": means[int(key[0][1])] + 2 * draw.normal()} for key in scores.values}
        found = joint_correlation(votes, replace(scores, values=noisy), resamples=250)
        corrected = found.noise_corrected
        held += corrected.lower <= truth <= corrected.upper
        values.append(corrected.value)
        plain.append(found.pearson)
    assert held / 60 >= 0.9
    assert np.mean(values) == pytest.approx(truth, abs=0.03)
    assert np.mean(plain) < truth - 0.05


def test_noise_by_hand():
    # x -1 0 1 with the resamples x and 3 x: mean square 2 * 5, so noise 8 of 2, and nothing is left
    x = np.array([-1.0, 0.0, 1.0])
    found = noise_corrected(x, x, np.array([x, 3 * x]), np.array([x, x]), 0.95)
    assert (found.value, found.lower) == (None, None)
    assert (found.reliability_ratings, found.reliability_scores) == pytest.approx((-3, 1))
    assert "no more spread" in str(found)
    # x 1.25 x in place of 3 x: mean of squares 2 * 1.28125, noise .5625 of 2 in x, of the product .25 of 2
    found = noise_corrected(x, x, np.array([x, 1.25 * x]), np.array([x, x]), 0.95)
    assert found.reliability_ratings == pytest.approx(1 - 0.28125)
    assert found.value == pytest.approx(min(1, (2 - 0.25) / math.sqrt((2 - 0.5625) * 2)))
    same = noise_corrected(x, np.array([1.0, 0, 2]), np.array([x]), np.array([[1.0, 0, 2]]), 0.95)
    assert (same.value, same.lower, same.upper) == pytest.approx((0.5, 0.5, 0.5))


numbers = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=30)


@given(numbers, st.integers(-25, 25).map(float), st.sampled_from([0.5, 0.95]))
def test_ends_hold_the_estimate(values, estimate, level):
    ends = percentile_ends(np.array(values), estimate, level)
    lower, upper = np.percentile(values, [50 * (1 - level), 50 * (1 + level)])
    assert (ends.lower, ends.upper) == (min(lower, estimate), max(upper, estimate))
    assert ends.widened == (not lower - 1e-12 <= estimate <= upper + 1e-12)


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 5.0]))
def test_noise_taken_off_does_not_see_units(seed, scale):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(2, 5))
    drawn_x, drawn_y = x + 0.3 * draw.normal(size=(20, 5)), y + 0.3 * draw.normal(size=(20, 5))
    one = noise_corrected(x, y, drawn_x, drawn_y, 0.9)
    other = noise_corrected(scale * x + 3, y, scale * drawn_x + 3, drawn_y, 0.9)
    turned = noise_corrected(y, x, drawn_y, drawn_x, 0.9)
    assert other.value == pytest.approx(one.value, abs=1e-8)
    assert turned.value == pytest.approx(one.value, abs=1e-8)
    if one.value is not None:
        assert -1 <= one.lower <= one.value <= one.upper <= 1
