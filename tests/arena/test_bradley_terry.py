"""Bradley-Terry: goldens, choix, cases by hand, plain dense formulas, and what must hold of any votes."""

import json
import math
from dataclasses import replace
from statistics import NormalDist

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import t as student

from gen_eval.arena import Comparisons, Votes, bradley_terry, elo
from gen_eval.arena.bradley_terry import HalfTies
from gen_eval.arena.cells import cells_of, ordered_clusters
from gen_eval.arena.estimation import covariance
from gen_eval.records import Reason

PER_LOGIT = 400 / math.log(10)
QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def rate(votes, **options):
    """Without a bootstrap, unless one is asked for."""
    given_ = {"resamples": 0, "interval": "sandwich"} | options
    return bradley_terry(votes, **given_)["overall"]


@st.composite
def connected(draw, most=5):
    """Votes on random pairs, and a circle in which everyone gets a share from the next."""
    systems = draw(st.integers(2, most))
    names = [f"m{place}" for place in range(systems)]
    circle = [(one, names[(place + 1) % systems], draw(QUARTERS.filter(bool))) for place, one in enumerate(names)]
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names), QUARTERS).filter(lambda vote: vote[0] != vote[1])
    return circle + draw(st.lists(pairs, max_size=25))


def with_sides(votes, seed):
    """Comparisons in random places, so often that a side term is told."""
    found = Comparisons.of([*votes, *votes[:2], *votes[:2]])
    left = np.random.default_rng(seed).choice([-1, 1], len(found))
    left[-4:] = [1, 1, -1, -1]
    return replace(found, score=np.clip(found.score, 0.25, 0.75), left=left)


@pytest.fixture
def golden(goldens):
    return json.loads((goldens / "elo" / "bradley_terry.json").read_text())


def case(golden, name):
    return next(one for one in golden["cases"] + golden["refused"] if one["name"] == name)


# --- goldens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["no_ties_quality", "ties_as_half_quality", "overall_quarters"])
def test_golden(golden, name):
    wanted = case(golden, name)
    models = wanted["models"]
    found = bradley_terry([tuple(vote) for vote in wanted["votes"]], resamples=4000)["overall"]
    assert [found.ratings[one] for one in models] == pytest.approx(wanted["ratings"], abs=1e-5)
    assert found.log_likelihood == pytest.approx(wanted["log_likelihood"], abs=1e-9)
    sandwich = [[ends[one] for one in models] for ends in found.other_intervals["sandwich"]]
    assert np.array(sandwich) == pytest.approx(np.array(wanted["sandwich_95"]), abs=1e-5)
    drawn = np.array([[ends[one] for one in models] for ends in (found.lower, found.upper)])
    published = np.array(wanted["bootstrap_95_percentile"])
    assert (np.abs(drawn - published) <= 0.15 * np.ptp(published, axis=0)).all()
    assert (found.n, found.interval.resamples, found.interval.undefined) == (len(wanted["votes"]), 4000, 0)


def test_quarters_of_the_golden_come_from_two_answers_a_vote(golden):
    wanted = case(golden, "overall_quarters")
    answers = {
        0.0: [("b", "b")],
        0.25: [("b", "both_good"), ("both_bad", "b")],
        0.5: [("a", "b"), ("both_good", "both_bad"), ("b", "a")],
        0.75: [("a", "both_bad"), ("both_good", "a")],
        1.0: [("a", "a")],
    }
    votes = [
        {"sample": f"s{place}", "annotator": "u", "model_a": a, "model_b": b, "quality": quality, "plausibility": other}
        for place, (a, b, share) in enumerate(wanted["votes"])
        for quality, other in [answers[share][place % len(answers[share])]]
    ]
    votes.append({"sample": "half", "annotator": "u", "model_a": "z", "model_b": votes[0]["model_b"], "quality": "a"})
    found = bradley_terry(votes, resamples=0, interval="sandwich")
    overall = found["overall"]
    assert (found.n_votes, overall.n, overall.without_votes) == (len(votes), len(wanted["votes"]), ("z",))
    assert [overall.ratings[one] for one in wanted["models"]] == pytest.approx(wanted["ratings"], abs=1e-5)
    assert overall.log_likelihood == pytest.approx(wanted["log_likelihood"], abs=1e-9)
    ends = [[own[one] for one in wanted["models"]] for own in (overall.lower, overall.upper)]
    assert np.array(ends) == pytest.approx(np.array(wanted["sandwich_95"]), abs=1e-5)


def test_golden_refused(golden):
    wanted = case(golden, "one_model_never_loses")
    votes = [tuple(vote) for vote in wanted["votes"]]
    found = rate(votes)
    assert (found.reason, found.groups) == (Reason.ONE_SIDED, (("x",), ("y", "z")))
    assert set(found.ratings.values()) == {None}
    assert not found.lower
    assert "x never loses" in found.message
    json.dumps(found.to_json(), allow_nan=False)
    for alpha, strengths in wanted["choix_log_strength"].items():
        finite = rate(votes, ridge=float(alpha))
        ours = [(finite.ratings[one] - 1000) / PER_LOGIT for one in wanted["models"]]
        assert ours == pytest.approx(strengths, abs=1e-5)
        assert finite.reason is None
        assert "one_sided" in finite.message
        assert f"ridge {float(alpha):g}" in finite.interval.words


def test_golden_islands(golden):
    votes = [tuple(vote) for vote in case(golden, "two_islands")["votes"]]
    found = rate(votes)
    assert (found.reason, found.groups) == (Reason.NOT_CONNECTED, (("w", "z"), ("x", "y")))
    assert sum(rate(votes, ridge=0.1).ratings.values()) == pytest.approx(4000, abs=1e-6)


# --- by hand -------------------------------------------------------------------------------------------------------


def test_two_systems_with_ties_by_hand():
    votes = [("x", "y", 1.0)] * 5 + [("y", "x", 1.0)] * 2 + [("x", "y", 0.5)] * 3
    found = rate(votes)
    gap = 400 * math.log10(6.5 / 3.5)
    assert found.ratings == pytest.approx({"x": 1000 + gap / 2, "y": 1000 - gap / 2}, abs=1e-9)
    p = 0.65
    scores = [1.0] * 5 + [0.0] * 2 + [0.5] * 3
    variance = sum((share - p) ** 2 for share in scores) / (10 * p * (1 - p)) ** 2
    half = 1.959963984540054 * math.sqrt(variance) * PER_LOGIT
    (only,) = found.differences
    assert (only.a, only.b, only.chance) == ("x", "y", pytest.approx(p))
    assert (only.lower, only.upper) == pytest.approx((gap - half, gap + half), abs=1e-8)
    assert found.upper["x"] - found.lower["x"] == pytest.approx(half, abs=1e-8)
    assert not only.clear
    assert [(one.rank, one.best, one.worst) for one in found.ranks.values()] == [(1, 1, 2), (2, 1, 2)]
    assert found.log_likelihood == pytest.approx(6.5 * math.log(p) + 3.5 * math.log(1 - p))
    assert found.votes_of == {"x": 10, "y": 10}


def test_side_term_by_hand():
    """x wins 6 of 8 on the left and 2 of 4 on the right: logits t + b and t - b of the difference t."""
    rows = [("a", "a")] * 6 + [("a", "b")] * 2 + [("b", "a")] * 2 + [("b", "b")] * 2
    records = [
        {
            "sample": str(n),
            "model_a": "x",
            "model_b": "y",
            "quality": answer,
            "plausibility": answer,
            "shown_left": left,
        }
        for n, (left, answer) in enumerate(rows)
    ]
    found = rate(records, side=True)
    t, b = math.log(3) / 2, math.log(3) / 2
    assert found.ratings["x"] - found.ratings["y"] == pytest.approx(t * PER_LOGIT, abs=1e-8)
    assert found.side.value == pytest.approx(b * PER_LOGIT, abs=1e-8)
    half = 1.959963984540054 * PER_LOGIT * math.sqrt((1 / 1.5 + 1 / 1.0) / 4)
    assert (found.side.lower, found.side.upper) == pytest.approx((b * PER_LOGIT - half, b * PER_LOGIT + half))
    assert rate(records).side is None
    drawn = rate(records, side=True, interval="bootstrap", resamples=500)
    assert drawn.side.lower < found.side.value < drawn.side.upper


def test_all_ties_leave_exactly_1000():
    found = bradley_terry([("x", "y", 0.5), ("y", "z", 0.5), ("z", "w", 0.5)] * 30, resamples=200)["overall"]
    assert set(found.ratings.values()) == {1000.0}
    assert {one.rank for one in found.ranks.values()} == {1}
    assert all(one.lower == one.upper == 0.0 for one in found.differences)


def test_scale():
    votes = [("x", "y", 1.0)] * 3 + [("y", "x", 1.0)]
    found = rate(votes, initial=0, base=math.e, scale=1)
    assert found.ratings["x"] == pytest.approx(math.log(3) / 2)
    assert found.differences[0].chance == pytest.approx(0.75)


def test_pairs_by_their_number():
    """Pairs below the floor keep equal weights; above it ten times the votes say no more than the floor."""
    few = [("x", "y", 1.0)] * 3 + [("y", "x", 1.0), ("y", "z", 1.0), ("z", "y", 1.0), ("z", "x", 0.5)]
    assert rate(few, pair_floor=50).ratings == rate(few).ratings
    once = few + few
    uneven = once + [("x", "y", 1.0)] * 54 + [("y", "x", 1.0)] * 18
    assert rate(uneven, pair_floor=8).ratings == pytest.approx(rate(once).ratings, abs=1e-8)
    assert rate(uneven).ratings["x"] > rate(once).ratings["x"] + 1


# --- references ----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(connected())
def test_agrees_with_choix(votes):
    found = rate(votes)
    place = {name: index for index, name in enumerate(found.ratings)}
    data = []
    for a, b, share in votes:
        data += [(place[a], place[b])] * int(4 * share) + [(place[b], place[a])] * int(4 * (1 - share))
    strengths = choix.ilsr_pairwise(len(place), data, max_iter=5000, tol=1e-11)
    assert list(found.ratings.values()) == pytest.approx(1000 + PER_LOGIT * (strengths - strengths.mean()), abs=1e-5)


def dense(comparisons, side):
    """``(n, M + side)`` design matrix."""
    x = np.zeros((len(comparisons), len(comparisons.models) + side))
    rows = np.arange(len(comparisons))
    x[rows, comparisons.a], x[rows, comparisons.b] = 1, -1
    if side:
        x[:, -1] = comparisons.left
    return x


@settings(max_examples=15)
@given(connected(), st.integers(0, 9), st.sampled_from([0.0, 0.3]), st.sampled_from([None, 2]))
def test_agrees_with_a_general_optimiser(votes, seed, ridge, floor):
    comparisons = with_sides(votes, seed)
    found = rate(comparisons, side=True, ridge=ridge, pair_floor=floor)
    x, s = dense(comparisons, True), comparisons.score
    pair = [tuple(sorted(ends)) for ends in zip(comparisons.a.tolist(), comparisons.b.tolist(), strict=True)]
    weights = np.array([1 / max(pair.count(one), floor or len(pair)) for one in pair])
    weights /= weights.mean()

    def loss(t):
        z = x @ t
        return (weights * (np.logaddexp(0, z) - s * z)).sum() + ridge / 2 * (t**2).sum()

    def slope(t):
        return x.T @ (weights * (1 / (1 + np.exp(-x @ t)) - s)) + ridge * t

    best = minimize(loss, np.zeros(x.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    ours = np.array(list(found.ratings.values()))
    assert ours == pytest.approx(1000 + PER_LOGIT * (best[:-1] - best[:-1].mean()), abs=1e-3)
    assert found.side.value == pytest.approx(PER_LOGIT * best[-1], abs=1e-3)


@settings(max_examples=15)
@given(connected(), st.integers(0, 9), st.booleans(), st.sampled_from(["votes", "samples"]), st.sampled_from([0, 0.2]))
def test_sandwich_is_the_dense_formula(votes, seed, side, unit, ridge):
    comparisons = with_sides(votes, seed)
    comparisons = replace(comparisons, samples=tuple(str(place % 3) for place in range(len(comparisons))))
    model = HalfTies(cells_of(comparisons), ridge=ridge, side=side)
    best = model.maxima(model.cells.counts[None])[0][0]
    x = dense(comparisons, side)
    p = 1 / (1 + np.exp(-x @ best))
    curvature = x.T @ (x * (p * (1 - p))[:, None]) + ridge * np.eye(x.shape[1])
    bread = np.linalg.pinv(curvature, hermitian=True)
    systems = len(comparisons.models)
    bread[:systems] -= bread[:systems].mean(axis=0)
    scores = x * (comparisons.score - p)[:, None]
    clusters, units = ordered_clusters(comparisons, unit)
    summed = np.zeros((units, x.shape[1]))
    np.add.at(summed, clusters, scores)
    expected = bread @ summed.T @ summed @ bread.T * (1 if unit == "votes" else units / (units - 1))
    assert covariance(comparisons, model, best, unit) == pytest.approx(
        expected, abs=1e-8 * max(1, np.abs(expected).max())
    )


def test_bootstrap_is_a_loop_of_fits():
    votes = [("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 1.0), ("x", "y", 0.5)] * 8 + [("x", "z", 0.25)] * 5
    found = bradley_terry(votes, resamples=60, seed=3)["overall"]
    ordered = sorted((a, b, s) if a < b else (b, a, 1 - s) for a, b, s in votes)
    drawn = np.random.default_rng(3).integers(0, len(votes), size=(60, len(votes)))
    fits = [list(rate([ordered[place] for place in row]).ratings.values()) for row in drawn]
    assert found.draws == pytest.approx(np.array(fits), abs=1e-6)
    lower, upper = np.percentile(fits, [2.5, 97.5], axis=0)
    assert list(found.lower.values()) == pytest.approx(np.minimum(lower, list(found.ratings.values())), abs=1e-6)
    assert list(found.upper.values()) == pytest.approx(np.maximum(upper, list(found.ratings.values())), abs=1e-6)
    for one in found.differences:
        columns = [list(found.ratings).index(name) for name in (one.a, one.b)]
        gaps = found.draws[:, columns[0]] - found.draws[:, columns[1]]
        assert (one.lower, one.upper) == pytest.approx(np.percentile(gaps, [2.5, 97.5]), abs=1e-6)


# --- what must hold ------------------------------------------------------------------------------------------------


def people(votes, *, annotators=3, samples=4):
    """The votes with a sample, an annotator and a side each."""
    answer = {1.0: "a", 0.0: "b", 0.5: "both_good", 0.25: "b", 0.75: "a"}
    return [
        {
            "id": str(place),
            "sample": f"s{place % samples}",
            "annotator": f"p{place % annotators}",
            "model_a": a,
            "model_b": b,
            "quality": answer[share],
            "plausibility": "both_bad" if share in {0.25, 0.75} else answer[share],
            "shown_left": "ab"[place % 2],
        }
        for place, (a, b, share) in enumerate(votes)
    ]


@settings(max_examples=10)
@given(connected(), st.randoms(use_true_random=False), st.sampled_from(["votes", "samples", "annotators"]))
def test_order_moves_no_bit(votes, random, unit):
    records = people(votes)
    shuffled = random.sample(records, len(records))
    options = {"resamples": 30, "side": True, "ridge": 0.1, "clusters": unit}
    first, second = (bradley_terry(one, **options) for one in (records, shuffled))
    for tracker in first.trackers:
        assert first[tracker].to_json() == second[tracker].to_json()
        assert first[tracker].draws.tobytes() == second[tracker].draws.tobytes()


@settings(max_examples=10)
@given(connected())
def test_swapped_sides_move_no_bit(votes):
    records = people(votes)
    turn = {"a": "b", "b": "a"}
    swapped = [
        one
        | {"model_a": one["model_b"], "model_b": one["model_a"]}
        | {name: turn.get(one[name], one[name]) for name in ("quality", "plausibility", "shown_left")}
        for one in records
    ]
    first, second = (bradley_terry(one, resamples=30, side=True, ridge=0.1) for one in (records, swapped))
    assert first.to_json()["trackers"] == second.to_json()["trackers"]


@settings(max_examples=15)
@given(connected(), st.randoms(use_true_random=False))
def test_names_do_not_matter(votes, random):
    names = sorted({name for vote in votes for name in vote[:2]})
    other = dict(zip(names, random.sample([f"={n}<b>$" for n in range(len(names))], len(names)), strict=True))
    first, second = rate(votes), rate([(other[a], other[b], share) for a, b, share in votes])
    for name in names:
        assert second.ratings[other[name]] == pytest.approx(first.ratings[name], abs=1e-7)
        assert second.lower[other[name]] == pytest.approx(first.lower[name], abs=1e-4)


@settings(max_examples=15)
@given(connected(), st.integers(0, 100))
def test_intervals_hold_their_estimates_and_the_mean_is_kept(votes, seed):
    found = bradley_terry(votes, resamples=40, seed=seed, ridge=0.01)["overall"]
    assert sum(found.ratings.values()) / len(found.ratings) == pytest.approx(1000, abs=1e-9)
    lower, upper = found.other_intervals["sandwich"]
    for name, value in found.ratings.items():
        assert found.lower[name] <= value <= found.upper[name]
        assert lower[name] <= value <= upper[name]
        rank = found.ranks[name]
        assert 1 <= rank.best <= rank.rank <= rank.worst <= len(found.ratings)
    assert all(one.lower <= one.difference <= one.upper for one in found.differences)
    assert all(one.difference >= -1e-8 and one.chance >= 0.5 - 1e-9 for one in found.differences)
    assert len(found.differences) == len(found.ratings) * (len(found.ratings) - 1) // 2


@settings(max_examples=20)
@given(connected())
def test_a_win_lowers_nobody_who_won(votes):
    before, after = rate(votes), rate([*votes, ("m0", "m1", 1.0)])
    assert after.ratings["m0"] >= before.ratings["m0"] - 1e-7
    assert after.ratings["m1"] <= before.ratings["m1"] + 1e-7


VOTE = st.tuples(st.sampled_from("wxyz"), st.sampled_from("wxyz"), QUARTERS).filter(lambda vote: vote[0] != vote[1])


@settings(max_examples=25)
@given(st.lists(VOTE, min_size=1, max_size=8))
def test_refused_or_finite(votes):
    found = rate(votes)
    assert (found.reason is None) == all(value is not None for value in found.ratings.values())
    assert (found.reason is None) == (found.message == "")
    finite = rate(votes, ridge=0.05)
    assert finite.reason is None
    assert all(math.isfinite(value) for value in finite.ratings.values())
    assert (finite.message == "") == (found.reason is None)


# --- units, undefined resamples, trackers --------------------------------------------------------------------------


def test_votes_repeated_within_a_sample_say_nothing_new():
    once = [("x", "y", 1.0)] * 6 + [("y", "x", 1.0)] * 3 + [("y", "z", 1.0)] * 4 + [("z", "x", 1.0)] * 2
    single = Comparisons.of(once)
    tripled = replace(Comparisons.of(once * 3), samples=tuple("abcdefghijklmno") * 3)
    assert tripled.unit == "samples"
    alone, together, wrong = rate(single), rate(tripled), rate(tripled, clusters="votes")
    width = alone.upper["x"] - alone.lower["x"]
    few = math.sqrt(15 / 14) * student.ppf(0.975, 14) / NormalDist().inv_cdf(0.975)  # 15 clusters are few
    assert together.upper["x"] - together.lower["x"] == pytest.approx(width * few, rel=1e-9)
    assert wrong.upper["x"] - wrong.lower["x"] == pytest.approx(width / math.sqrt(3), rel=1e-9)
    assert (together.interval.unit, together.interval.units, together.n) == ("samples", 15, 45)
    drawn = rate(tripled, interval="bootstrap", resamples=2000)
    assert "15 samples" in drawn.interval.words
    narrow = rate(tripled, interval="bootstrap", resamples=2000, clusters="votes")
    assert narrow.upper["x"] - narrow.lower["x"] < 0.75 * (drawn.upper["x"] - drawn.lower["x"])


def test_resamples_without_ratings_are_counted_and_left_out():
    found = bradley_terry([("x", "y", 1.0)] * 3 + [("y", "x", 1.0)], resamples=4000)["overall"]
    missed = 0.75**4 + 0.25**4
    assert found.interval.undefined / 4000 == pytest.approx(missed, abs=0.03)
    assert found.interval.resamples + found.interval.undefined == 4000
    assert len(found.draws) == found.interval.resamples
    assert f"{found.interval.undefined:,} without finite ratings" in found.interval.words


def test_mostly_undefined_resamples_make_no_interval():
    found = bradley_terry([("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 1.0)], resamples=300)["overall"]
    assert found.interval.method == "none"
    assert "more than half" in found.interval.words
    assert not found.lower
    assert set(found.other_intervals) == {"sandwich"}
    assert all(one.lower is None and not one.clear for one in found.differences)
    assert {(one.best, one.worst) for one in found.ranks.values()} == {(1, 3)}


def test_one_unit_makes_no_interval():
    records = [one | {"sample": "only"} for one in people([("x", "y", 1.0), ("y", "x", 1.0), ("x", "y", 0.5)])]
    found = bradley_terry(records, clusters="samples")["overall"]
    assert (found.interval.method, found.interval.units) == ("none", 1)
    assert not found.lower
    assert not found.other_intervals
    assert found.ratings["x"] is not None


def test_trackers_are_separate_and_absent_ones_are_named():
    records = [
        {"sample": "s", "annotator": "p", "model_a": "x", "model_b": "y", "quality": "a"},
        {"sample": "t", "annotator": "p", "model_a": "x", "model_b": "y", "quality": "b"},
        {"sample": "u", "annotator": "p", "model_a": "y", "model_b": "z", "quality": "a", "plausibility": "a"},
        {"sample": "u", "annotator": "p", "model_a": "y", "model_b": "y", "quality": "a"},
    ]
    found = bradley_terry(records, resamples=10)
    assert {name: one.n for name, one in found.trackers.items()} == {"quality": 3, "plausibility": 1, "overall": 1}
    assert {name: one.reason for name, one in found.trackers.items()} == dict.fromkeys(found.trackers, Reason.ONE_SIDED)
    assert found["overall"].without_votes == ("x",)
    assert len(found.rejected) == 1
    only = bradley_terry(records[:2], resamples=10)
    assert list(only.trackers) == ["quality"]
    assert only.options["without_votes"] == ["plausibility", "overall"]
    assert only.ratings == {"x": 1000.0, "y": 1000.0}
    assert only.options["votes_digest"] == bradley_terry(records[:2], resamples=20).options["votes_digest"]


def test_equal_input_gives_equal_output_and_the_seed_moves_the_draws():
    votes = [("x", "y", 1.0), ("y", "x", 1.0), ("y", "z", 0.5)] * 200
    first, second, other = (bradley_terry(votes, resamples=50, seed=seed) for seed in (1, 1, 2))
    assert first.to_json() == second.to_json()
    assert first["overall"].draws.tobytes() != other["overall"].draws.tobytes()
    assert first.ratings == other.ratings


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"ridge": -1.0}, ValueError, "ridge is -1.0; expected 0, or 1e-06 and more"),
        ({"ridge": 1e-9}, ValueError, "ridge"),
        ({"ridge": math.nan}, ValueError, "ridge"),
        ({"level": 95}, ValueError, "level is 95"),
        ({"interval": "wald"}, ValueError, "bootstrap, sandwich"),
        ({"clusters": "pairs"}, ValueError, "votes, samples, annotators"),
        ({"clusters": "annotators"}, ValueError, "annotator"),
        ({"resamples": 0}, ValueError, "resamples is 0"),
        ({"resamples": 1.5}, TypeError, "whole number"),
        ({"seed": -1}, ValueError, "seed"),
        ({"base": 1.0}, ValueError, "base"),
        ({"scale": 0.0}, ValueError, "scale"),
        ({"ties": "none"}, ValueError, "half, davidson"),
        ({"pair_floor": 0}, ValueError, "pair_floor"),
        ({"pair_floor": 2.5}, TypeError, "whole number of votes"),
        ({"ties": "davidson", "side": True}, ValueError, "tie parameter"),
    ],
)
def test_bad_arguments(options, kind, words):
    with pytest.raises(kind, match=words):
        bradley_terry([("x", "y", 1.0), ("y", "x", 1.0)], **options)


def test_no_votes():
    with pytest.raises(ValueError, match="at least one"):
        bradley_terry(Votes(()))


def test_intervals_from_few_units_say_so():
    votes = [("x", "y", 1.0), ("y", "x", 1.0), ("x", "y", 0.5)]
    few = bradley_terry(votes * 6, resamples=50)["overall"]
    assert "with only 18 votes" in few.interval.words
    assert "with only 18 votes" in elo(votes * 6, resamples=50)["overall"].interval.words
    assert "only" not in bradley_terry(votes * 14, resamples=50)["overall"].interval.words
