"""Next pairs and power, through ``gen_eval.arena.next_pairs`` and ``power``."""

import dataclasses
import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from gen_eval.arena import Comparisons, bradley_terry, next_pairs, power
from gen_eval.arena.information import information_of
from gen_eval.arena.scale import POINTS
from gen_eval.records import Reason

Z = NormalDist().inv_cdf(0.975)
BOTH = Z + NormalDist().inv_cdf(0.8)


def study(generator, theta, pairs, ties=0.0):
    """Comparisons from known strengths; ``ties`` is the share of ties between equal systems."""
    models = tuple(sorted(theta))
    a, b = np.array([[models.index(name) for name in pair] for pair in pairs]).T
    strength = np.array([theta[name] for name in models])
    chance = 1 / (1 + np.exp(strength[b] - strength[a]))
    tie = ties * 4 * chance * (1 - chance)
    drawn = generator.random(len(a))
    score = np.where(drawn < tie, 0.5, (drawn < tie / 2 + chance).astype(float))
    return Comparisons(
        models=models,
        a=a,
        b=b,
        score=score,
        tie=1.0 * (score == 0.5),
        left=np.ones_like(a),
        samples=tuple(map(str, range(len(a)))),
        annotators=(None,) * len(a),
        times=(None,) * len(a),
    )


def all_pairs(names, times):
    return [(a, b) for a in names for b in names if a < b for _ in range(times)]


def two(wins, losses, ties=0):
    return [("x", "y", 1.0)] * wins + [("x", "y", 0.0)] * losses + [("x", "y", 0.5)] * ties


def test_two_systems_by_hand():
    # p = 3/5, d = ln 1.5. H = n p q, G = n p q without ties: variance 1 / (n p q) = 1 / (50 * .24).
    (pair,) = power(two(30, 20)).pairs
    d, variance, weight = math.log(1.5), 1 / 12, 0.24
    assert (pair.a, pair.b, pair.votes, pair.separated) == ("x", "y", 50, False)
    assert pair.difference == pytest.approx(POINTS * d)
    assert pair.se == pytest.approx(POINTS * math.sqrt(variance))
    assert pair.detectable == pytest.approx(BOTH * pair.se)
    assert (pair.lower, pair.upper) == (
        pytest.approx(pair.difference - Z * pair.se),
        pytest.approx(pair.difference + Z * pair.se),
    )
    # each vote adds w^2 / Var = w = .24 to the precision; with one pair direct and spread are the same
    needed = math.ceil((BOTH / d) ** 2 / weight - 50)
    assert (pair.direct, pair.spread) == (needed, needed) == (149, 149)
    # ties leave less noise: s is 1, .5, 0 with mean .6, variance (24 * .16 + 12 * .01 + 14 * .36) / 50 = .18
    (tied,) = power(two(24, 14, 12)).pairs
    assert tied.difference == pytest.approx(pair.difference)
    assert tied.se == pytest.approx(POINTS * math.sqrt(0.18 / 50) / weight)
    assert tied.direct == math.ceil((BOTH / d) ** 2 * 0.18 / weight**2 - 50)
    assert tied.direct < pair.direct


def test_separated_and_equal():
    (far,) = power(two(80, 20)).pairs
    assert (far.separated, far.direct, far.spread) == (True, 0, 0)
    assert "separated already" in far.message
    (equal,) = power(two(20, 20)).pairs
    assert (equal.separated, equal.direct, equal.spread) == (False, None, None)
    assert "no number of votes" in equal.message
    assert equal.detectable > 0
    (tied,) = power(two(0, 0, 9)).pairs
    assert (tied.se, tied.separated, tied.direct) == (0.0, False, None)


def test_standard_error_is_that_of_the_ratings():
    generator = np.random.default_rng(5)
    theta = {"w": 0.5, "x": 0.1, "y": 0.0, "z": -0.4}
    pairs = all_pairs(theta, 20)
    answers = {1.0: "a", 0.5: "both_good", 0.0: "b"}
    votes = [
        {"sample": f"s{place % 9}", "annotator": f"p{place % 2}", "model_a": a, "model_b": b, "quality": answers[score]}
        for place, ((a, b), score) in enumerate(zip(pairs, study(generator, theta, pairs, 0.3).score, strict=True))
    ]
    for unit in ("votes", "samples"):
        ratings = bradley_terry(votes, interval="sandwich", resamples=0, clusters=unit)["quality"]
        found = power(votes, "quality", clusters=unit)
        for one in found.pairs:
            (same,) = (other for other in ratings.differences if {other.a, other.b} == {one.a, one.b})
            assert (one.a, one.difference) == (same.a, pytest.approx(same.difference, abs=1e-6))
            assert (one.lower, one.upper) == (pytest.approx(same.lower, abs=1e-6), pytest.approx(same.upper, abs=1e-6))
            assert one.separated == same.clear
        assert [one.a for one in found.pairs] == sorted(ratings.ratings, key=lambda name: -ratings.ratings[name])[:-1]
    assert (found.unit, found.units, found.n) == ("samples", 9, 120)
    (last,) = found.pairs[-1:]
    assert last.detectable == pytest.approx((student.ppf(0.975, 8) + student.ppf(0.8, 8)) * last.se)
    (widest, *_) = next_pairs(votes, "quality", clusters="samples").pairs
    assert widest.width == pytest.approx(max(one.upper - one.lower for one in ratings.differences), abs=1e-6)
    (asked,) = power(votes, "quality", "z", "w").pairs
    assert (asked.a, asked.b) == ("w", "z")
    json.dumps(found.to_json(), allow_nan=False)
    assert "takes the estimated difference as the true one" in str(found)


def test_covariance_after_votes_is_that_of_the_larger_study():
    # Adding votes that fall as expected, with dispersion 1: strengths stay, and the covariance is the sandwich's.
    rows = [("x", "y", 0.5), ("y", "z", 0.5), ("x", "z", 0.5)]
    whole = [(a, b, score) for a, b, _ in rows for score in (0.0, 1.0) for _ in range(7)]
    more = [("x", "y", score) for score in (0.0, 1.0) for _ in range(5)]
    before, after = (information_of(Comparisons.of(votes)) for votes in (whole, whole + more))
    expected = before.with_votes(0, 1, 10)
    assert expected.covariance == pytest.approx(after.covariance, abs=1e-12)
    assert expected.bread == pytest.approx(after.bread, abs=1e-12)
    assert expected.n == after.n
    step = before
    for _ in range(10):
        step = step.with_votes(0, 1)
    assert step.covariance == pytest.approx(expected.covariance, abs=1e-12)


def test_fewer_units_than_systems_call_no_difference_exact():
    # two samples, three systems: the sandwich has rank 1, with which w and y would differ by 0 with certainty
    rows = [("w", "x", 1.0), ("x", "w", 1.0), ("x", "y", 1.0), ("y", "x", 1.0)] * 2
    data = dataclasses.replace(Comparisons.of(rows), samples=("s", "t") * 4, annotators=("u",) * 8)
    known = information_of(data, "samples")
    assert (known.units, len(known.models)) == (2, 3)
    # by hand: p = 1/2, so H of w, y against x is diag(1, 1); all residuals are 1/2, so the dispersion is 1
    assert known.noise == pytest.approx(max(1.0, known.clustering))
    assert known.variances() == pytest.approx(known.noise * np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    (first, *_, last) = next_pairs(data, count=6, clusters="samples").pairs
    assert first.width_after < first.width
    assert last.width_after < first.width_after


def test_a_study_of_the_suggested_size_has_the_stated_power():
    generator, ties = np.random.default_rng(4), 0.4
    truth = {"x": 0.5, "y": 0.0, "z": -0.3}
    first = study(generator, truth, all_pairs(truth, 30), ties)
    found = power(first, a="x", b="y").pairs[0]
    assert not found.separated
    assert 50 < found.direct < 400
    known = information_of(first)
    theta = dict(zip(known.models, known.theta.tolist(), strict=True))
    noise = 1 - known.dispersion  # the share of ties that makes a vote as noisy as those of the first study
    direct = all_pairs(truth, 30) + [(found.a, found.b)] * found.direct
    spread = all_pairs(truth, 30 + round(found.spread / 3))
    for pairs in (direct, spread):
        drawn = [power(study(generator, theta, pairs, noise), a="x", b="y").pairs[0] for _ in range(120)]
        share = np.mean([one.separated and one.a == found.a for one in drawn])
        assert share == pytest.approx(0.8, abs=0.1)


def test_no_ratings():
    apart = power([*two(1, 1), ("v", "w", 1.0)])
    assert (apart.reason, apart.pairs, apart.n) == (Reason.NOT_CONNECTED, (), 3)
    assert power(two(5, 0)).reason is Reason.ONE_SIDED
    votes = [{"sample": "s", "model_a": "x", "model_b": "y", "quality": "a"}]
    assert power(votes).reason is Reason.NOT_CONNECTED
    json.dumps(power(votes).to_json(), allow_nan=False)
    assert "not_connected" in str(power(votes))
    more = [*votes, {"sample": "s", "model_a": "x", "model_b": "z", "plausibility": "a"}]
    assert "'z'" in power(more, "quality", "x", "z").message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": "x"}, "one system alone, 'x'; give a and b both, or neither"),
        ({"b": "x"}, "one system alone, 'x'; give a and b both, or neither"),
        ({"a": "x", "b": "x"}, "a and b are both 'x'; expected two systems"),
        ({"a": "x", "b": "q"}, "no vote names the system 'q'"),
        ({"power": 80}, "80; it lies in 0.5"),
        ({"level": 95}, "95; it lies strictly"),
        ({"tracker": "beauty"}, "'beauty'; expected one of"),
    ],
)
def test_refusals_of_power(arguments, message):
    with pytest.raises(ValueError, match=message):
        power(two(3, 2), **arguments)


def test_next_is_the_widest_and_not_always_the_same():
    votes = two(12, 8) + [("y", "z", float(place % 2)) for place in range(12)]
    votes += [("x", "z", 1.0), ("x", "z", 0.0), ("z", "w", 1.0), ("w", "z", 1.0), ("w", "z", 1.0), ("z", "w", 1.0)]
    found = next_pairs(votes, count=12, each=1)
    ratings = bradley_terry(votes, interval="sandwich", resamples=0)["overall"]
    widths = {tuple(sorted((one.a, one.b))): one.upper - one.lower for one in ratings.differences}
    first = found.pairs[0]
    assert widths[first.a, first.b] == max(widths.values())
    assert all(one.width == pytest.approx(widths[one.a, one.b], abs=1e-6) for one in found.pairs)
    assert first.width_after < first.width
    assert first.votes == 0
    assert first.samples == ()  # comparisons without samples
    assert len({(one.a, one.b) for one in found.pairs}) > 2
    assert (found.reason, found.groups, found.each) == (None, (), 1)
    # a plan is kept to: the first suggestions of a longer list are the shorter list
    assert next_pairs(votes, count=5, each=1).pairs == found.pairs[:5]
    many = next_pairs(votes * 20, count=3)
    assert many.each == round(0.1 * len(votes) * 20 / 6)
    json.dumps(found.to_json(), allow_nan=False)


def test_next_for_the_ranking():
    votes = two(12, 8) * 3 + [("y", "z", float(place % 10 < 9)) for place in range(90)] + [("x", "z", 0.0)] * 2
    found = next_pairs(votes, count=4, goal="ranking", each=1)
    assert {(one.a, one.b) for one in found.pairs} == {("x", "y")}
    assert "neighbours" in found.pairs[0].why
    decided = two(40, 10) * 3 + [("y", "z", float(place % 5 < 4)) for place in range(150)]
    assert "widest" in next_pairs(decided, goal="ranking").pairs[0].why


def test_next_samples_have_fewest_votes():
    rows = [
        ("s", "x", "y", "a"),
        ("s", "y", "x", "a"),
        ("t", "x", "y", "a"),
        ("u", "y", "z", "a"),
        ("u", "z", "y", "a"),
    ]
    rows += [("u", "x", "z", "b"), ("s", "x", "z", "a")]
    votes = [{"sample": s, "model_a": a, "model_b": b, "quality": answer} for s, a, b, answer in rows]
    found = next_pairs(votes, "quality", 30, each=1)
    of_pair = [one for one in found.pairs if (one.a, one.b) == ("x", "y")]
    # x and y were both shown for s, t and u: u has no vote about them, t one, s two
    assert [one.samples[0] for one in of_pair[:3]] == ["u", "t", "u"]
    assert of_pair[0].samples == ("u", "t", "s")
    assert {one.votes for one in of_pair} == {3}
    both = next_pairs(votes, "quality", 30, each=2)
    later = [one.samples[:2] for one in both.pairs if (one.a, one.b) == ("x", "y")]
    assert set(later[0]) == {"u", "t"}
    assert later[1][0] == "u"  # asked once by then, t and s twice


def test_samples_named_by_numbers_are_samples():
    rows = enumerate([("x", "y", "a"), ("y", "x", "a"), ("x", "y", "b")])
    votes = [{"sample": str(place), "model_a": a, "model_b": b, "quality": answer} for place, (a, b, answer) in rows]
    assert set(next_pairs(votes, "quality").pairs[0].samples) == {"0", "1", "2"}
    assert next_pairs(two(2, 1)).pairs[0].samples == ()


def test_next_links_groups():
    apart = next_pairs([*two(2, 1), ("v", "w", 1.0), ("w", "v", 1.0)], count=5)
    assert (apart.reason, apart.groups) == (Reason.NOT_CONNECTED, (("v", "w"), ("x", "y")))
    asked = [(one.a, one.b) for one in apart.pairs]
    assert set(asked[:4]) == {("v", "x"), ("v", "y"), ("w", "x"), ("w", "y")}
    assert all(one.width is one.width_after is None and "links" in one.why for one in apart.pairs)
    best = next_pairs([*two(1, 0), ("y", "z", 1.0), ("z", "y", 1.0)], count=2)
    assert (best.reason, best.groups) == (Reason.ONE_SIDED, (("x",), ("y", "z")))
    assert {(one.a, one.b) for one in best.pairs} == {("x", "y"), ("x", "z")}
    assert best.pairs[0].b == "z"  # not asked yet
    assert "never lost" in best.pairs[0].why
    votes = [
        {"sample": "s", "model_a": "x", "model_b": "y", "quality": "both_good"},
        {"sample": "s", "model_a": "x", "model_b": "z", "plausibility": "a"},
    ]
    new = next_pairs(votes, "quality", 2)
    assert (new.reason, new.groups) == (Reason.NOT_CONNECTED, (("x", "y"), ("z",)))
    assert {one.b for one in new.pairs} == {"z"}
    assert len(next_pairs(votes, "overall", 3).pairs) == 3
    json.dumps(apart.to_json(), allow_nan=False)
    assert "not_connected" in str(apart)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count is 0"),
        ({"goal": "fame"}, "'fame'; expected one of widest, ranking"),
        ({"each": 0}, "each is 0"),
        ({"level": 1}, "level is 1"),
    ],
)
def test_refusals_of_next(arguments, message):
    with pytest.raises(ValueError, match=message):
        next_pairs(two(2, 1), **arguments)
    with pytest.raises(ValueError, match="name 0 systems"):
        next_pairs([])


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([("x", "y"), ("y", "z"), ("x", "z"), ("w", "z")]), st.sampled_from([0.0, 0.5, 1.0])),
        min_size=1,
        max_size=25,
    ),
    random=st.randoms(),
)
@settings(max_examples=25)
def test_properties(rows, random):
    votes = [(a, b, score) for (a, b), score in rows]
    turned = [(b, a, 1 - score) if random.random() < 0.5 else (a, b, score) for a, b, score in votes]
    turned = random.sample(turned, len(turned))
    found, other = next_pairs(votes, count=6), next_pairs(turned, count=6)
    assert [(one.a, one.b, one.votes) for one in found.pairs] == [(one.a, one.b, one.votes) for one in other.pairs]
    assert len(found.pairs) == 6
    missing, again = power(votes), power(turned)
    assert (missing.reason, found.reason) == (again.reason, missing.reason)
    for one, same in zip(missing.pairs, again.pairs, strict=True):
        assert one.difference >= 0
        assert one.lower <= one.difference <= one.upper
        assert one.se == pytest.approx(same.se, abs=1e-6)
        if one.direct is not None and one.difference > 1:
            assert not one.separated or one.direct == one.spread == 0
            assert abs(one.spread - same.spread) <= 1 + 1e-6 * one.spread
