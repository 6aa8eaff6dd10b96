import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from gen_eval.arena import Answer, Comparisons, VideoScores, Vote, compare_accuracy, joint_draws, vote_accuracy
from gen_eval.arena.cells import ordered_clusters
from gen_eval.arena.three_way import best_threshold, predict
from gen_eval.stats import bootstrap_mean


def vote(number, sample, a, b, answer, **more):
    answer = Answer(answer) if answer else None
    return Vote(str(number), sample, "u", a, b, quality=answer, plausibility=answer, **more)


def scores_of(table, metric="m", **more):
    """(system, sample) -> value of its only seed, or seeds with their values."""
    values = {key: value if isinstance(value, dict) else {"0": value} for key, value in table.items()}
    return VideoScores(metric, values, **more)


VALUES = {
    ("x", "s1"): 3.0, ("y", "s1"): 1.0, ("z", "s1"): 1.0,
    ("x", "s2"): 2.0, ("y", "s2"): 2.5, ("z", "s2"): 7.0,
}  # fmt: skip
VOTES = [
    vote(0, "s1", "x", "y", "a"),  # +2: right
    vote(1, "s1", "z", "x", "a"),  # -2: wrong
    vote(2, "s1", "y", "z", "b"),  # 0: half
    vote(3, "s2", "x", "y", "b"),  # -.5: right
    vote(4, "s2", "x", "z", "both_bad"),  # -5: tied vote
    vote(5, "s2", "y", "x", "both_good"),  # +.5: tied vote
]


def test_by_hand():
    found = vote_accuracy(VOTES, scores_of(VALUES), tie_threshold=1.0)
    assert (found.n, found.ties, found.N, found.equal, found.samples) == (4, 2, 6, 1, 2)
    assert found.accuracy == 2.5 / 4
    assert set(found.without.values()) == {0}
    three = found.three_way
    assert three.confusion == {
        "a": {"a": 1, "tie": 0, "b": 1},
        "tie": {"a": 0, "tie": 1, "b": 1},
        "b": {"a": 0, "tie": 2, "b": 0},
    }
    assert (three.n, three.accuracy, three.thresholds, three.folds) == (6, 2 / 6, (1.0,), 0)
    assert (three.majority_accuracy, three.chance) == (2 / 6, 1 / 3)
    assert [(pair.a, pair.b, pair.n, pair.ties, pair.accuracy) for pair in found.pairs] == [
        ("x", "y", 2, 1, 1.0),
        ("x", "z", 1, 1, 0.0),
        ("y", "z", 1, 0, 0.5),
    ]
    # the interval is that of the four votes, drawn by sample
    ends = bootstrap_mean([1.0, 0.0, 0.5, 1.0], clusters=["s1", "s1", "s1", "s2"])
    assert (found.lower, found.upper) == (ends.lower, ends.upper)
    json.dumps(found.to_json(), allow_nan=False)
    assert "62.5 %" in str(found)


def test_overall_takes_both_answers():
    mixed = replace(VOTES[0], plausibility=Answer.BOTH_BAD)  # 3/4 of the point to A
    split = replace(VOTES[0], id="9", plausibility=Answer.B)  # one half: a tie
    found = vote_accuracy([mixed, split], scores_of(VALUES))
    assert (found.n, found.ties, found.accuracy) == (1, 1, 1.0)
    assert vote_accuracy([mixed, split], scores_of(VALUES), "quality").n == 2
    assert vote_accuracy([mixed, split], scores_of(VALUES), "plausibility").accuracy == 0.0


def test_gaps_are_counted_by_reason():
    table = {("x", "s"): {"1": 1.0, "2": 9.0}, ("y", "s"): {"1": 2.0}, ("x", "t"): 1.0}
    votes = [
        vote(0, "s", "x", "y", "b", seed_a="1"),  # 1 against 2
        vote(1, "s", "x", "y", "a"),  # the mean, 5, against 2
        vote(2, "s", "x", "y", "a", seed_b="2"),  # y has no seed 2
        vote(3, "t", "x", "y", "a"),
        vote(4, "t", "y", "x", "a"),
        vote(5, "u", "x", "y", "a"),
        replace(vote(6, "s", "x", "y", "a"), quality=None),
    ]
    found = vote_accuracy(votes, scores_of(table))
    assert (found.n, found.accuracy, found.N) == (2, 1.0, 7)
    assert found.without == {"answer": 1, "scores_of_both": 1, "score_of_a": 1, "score_of_b": 1, "seed": 1}
    assert (found.lower, found.three_way) == (None, None)  # one sample only
    assert "seed 1" in str(found)


def test_nothing_to_compare():
    found = vote_accuracy(VOTES, scores_of({}))
    assert (found.n, found.accuracy, found.three_way, found.pairs) == (0, None, None, ())
    assert found.without["scores_of_both"] == 6
    assert "no accuracy" in str(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_bare_comparisons_with_samples():
    bare = replace(Comparisons.of([("x", "y", 1.0), ("x", "y", 0.25), ("y", "z", 0.5)]), samples=("s1", "s2", "s2"))
    found = vote_accuracy(bare, scores_of(VALUES))
    assert (found.n, found.accuracy, found.ties) == (2, 1.0, 1)
    assert vote_accuracy(bare, scores_of(VALUES), "quality").N == 3


def test_triples_name_no_samples():
    """However the samples of the scores are called, nothing says that a triple is about one of them."""
    values = {(name, str(place)): {"0": value} for name, value in (("x", 1.0), ("y", 0.0)) for place in range(3)}
    triples = [("x", "y", 1.0), ("y", "x", 1.0), ("x", "y", 1.0)]
    found = vote_accuracy(triples, scores_of(values))
    assert (found.n, found.N, found.without["scores_of_both"]) == (0, 3, 3)
    draws = joint_draws(triples, {"m": scores_of(values)}, resamples=5)
    assert (draws.samples, draws.samples_with_both) == (6, 0)
    assert Comparisons.of(triples).samples == (None, None, None)
    mixed = replace(Comparisons.of(triples), samples=("1", None, "1"))
    assert mixed.clusters("samples")[0].tolist() == [0, 1, 0]
    assert ordered_clusters(mixed, "samples")[0].tolist() == [1, 0, 1]
    assert (mixed.unit, Comparisons.of(triples).unit) == ("samples", "votes")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracker": "beauty"}, "tracker is 'beauty'"),
        ({"tie_threshold": -1.0}, "tie_threshold"),
        ({"tie_threshold": float("nan")}, "tie_threshold"),
        ({"level": 1.0}, "level"),
        ({"resamples": 0}, "resamples"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_outside_their_range(options, message):
    with pytest.raises(ValueError, match=message):
        vote_accuracy(VOTES, scores_of(VALUES), **options)


def test_a_score_that_is_not_finite():
    with pytest.raises(ValueError, match="m of sample 's1'"):
        vote_accuracy(VOTES, scores_of({**VALUES, ("x", "s1"): float("inf")}))


def test_threshold_is_found_where_there_is_one():
    draw = np.random.default_rng(0)
    table, votes = {}, []
    for place in range(60):
        sample = f"s{place:02d}"
        gap = draw.choice([0.3, 3.0]) * draw.uniform(0.5, 1.5) * draw.choice([-1, 1])
        table["x", sample], table["y", sample] = gap, 0.0
        votes.append(vote(place, sample, "x", "y", "both_good" if abs(gap) < 1 else "a" if gap > 0 else "b"))
    three = vote_accuracy(votes, scores_of(table)).three_way
    assert three.accuracy == three.lower == three.upper == 1.0
    assert three.folds == len(three.thresholds) == 10
    assert all(0.45 < one < 1.5 for one in (*three.thresholds, three.threshold))
    assert vote_accuracy(votes, scores_of(table)).three_way == three


def test_calibration_gains_nothing_from_noise():
    draw = np.random.default_rng(1)
    table = {(system, f"s{place}"): draw.normal() for system in "xy" for place in range(300)}
    answers = draw.choice(["a", "b", "both_bad"], size=300)
    votes = [vote(place, f"s{place}", "x", "y", answer) for place, answer in enumerate(answers)]
    found = vote_accuracy(votes, scores_of(table))
    # three standard errors of chance
    assert found.three_way.accuracy == pytest.approx(1 / 3, abs=0.08)
    assert found.accuracy == pytest.approx(0.5, abs=0.1)
    assert found.lower < 0.5 < found.upper


cases = st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 1.0]), st.integers(-4, 4).map(float)), min_size=1, max_size=12)


@given(cases)
def test_best_threshold_against_all(rows):
    answers, differences = (np.array(side) for side in zip(*rows, strict=True))
    found = best_threshold(answers, differences)
    met = {t / 2: np.count_nonzero(predict(differences, t / 2) == answers) for t in range(10)}
    assert np.count_nonzero(predict(differences, found) == answers) == max(met.values())
    smallest = min(t for t, count in met.items() if count == max(met.values()))
    assert np.array_equal(predict(differences, found), predict(differences, smallest))


ballots = st.lists(
    st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.permutations("xyz"), st.sampled_from(["a", "b", "both_good"])),
    min_size=1,
    max_size=10,
)
grid = st.lists(st.integers(-2, 2).map(float), min_size=9, max_size=9)


@settings(max_examples=40)
@given(ballots, grid)
def test_properties(rows, numbers):
    keys = [(system, sample) for system in "xyz" for sample in ("s1", "s2", "s3")]
    table = dict(zip(keys, numbers, strict=True))
    votes = [vote(place, sample, a, b, answer) for place, (sample, (a, b, _), answer) in enumerate(rows)]
    options = {"resamples": 50, "tie_threshold": 1.0}
    found = vote_accuracy(votes, scores_of(table), **options)
    negated = scores_of({key: -value for key, value in table.items()})
    other = vote_accuracy(votes, negated, **options)
    error = vote_accuracy(votes, replace(negated, higher_is_better=False), **options)
    swapped = vote_accuracy(
        [
            replace(one, model_a=one.model_b, model_b=one.model_a, quality=one.quality.swapped,
                    plausibility=one.plausibility.swapped)
            for one in reversed(votes)
        ],
        scores_of(table),
        **options,
    )  # fmt: skip
    if found.accuracy is not None:
        assert other.accuracy == pytest.approx(1 - found.accuracy)
        assert 0 <= found.accuracy <= 1
    assert error.accuracy == found.accuracy == swapped.accuracy
    assert (swapped.lower, swapped.upper, swapped.pairs) == (found.lower, found.upper, found.pairs)
    assert swapped.three_way.accuracy == found.three_way.accuracy
    assert sum(sum(row.values()) for row in found.three_way.confusion.values()) == found.n + found.ties
    assert sum(found.without.values()) + found.n + found.ties == found.N == len(votes)


# --- several metrics -----------------------------------------------------------------------------------------------


def many(seed, systems=6, samples=80):
    """Votes that follow the scores, a metric that says the same, and one with more noise."""
    draw = np.random.default_rng(seed)
    names = [f"m{place}" for place in range(systems)]
    good = {(name, f"s{place}"): draw.normal() for name in names for place in range(samples)}
    poor = {key: value + 2 * draw.normal() for key, value in good.items()}
    votes = []
    for place in range(4 * samples):
        a, b = draw.choice(names, 2, replace=False)
        sample = f"s{place % samples}"
        gap = good[a, sample] - good[b, sample] + 0.5 * draw.normal()
        votes.append(vote(place, sample, a, b, "a" if gap > 0 else "b"))
    return votes, scores_of(good, "good"), scores_of(poor, "poor")


def test_two_metrics():
    votes, good, poor = many(0)
    found = compare_accuracy(votes, [poor, good])
    assert found.best == "good"
    for one in (good, poor):
        alone = vote_accuracy(votes, one)
        together = found.metrics[one.metric]
        assert (together.accuracy, together.lower, together.upper) == (alone.accuracy, alone.lower, alone.upper)
    (difference,) = found.differences
    assert (difference.a, difference.b, difference.real) == ("good", "poor", True)
    assert difference.difference == pytest.approx(found.metrics["good"].accuracy - found.metrics["poor"].accuracy)
    assert difference.lower <= difference.difference <= difference.upper
    counts = difference.only_a, difference.only_a + difference.only_b
    assert difference.mcnemar_p == pytest.approx(scipy_stats.binomtest(*counts).pvalue)
    assert (counts[0] - difference.only_b) / found.n == pytest.approx(difference.difference)
    json.dumps(found.to_json(), allow_nan=False)
    assert "real" in str(found)


def test_common_votes_only():
    votes, good, poor = many(1)
    fewer = replace(poor, values={key: value for key, value in poor.values.items() if key[1] != "s0"})
    found = compare_accuracy(votes, [good, fewer])
    assert found.without["scores_of_both"] == 4
    assert found.n == found.N - 4
    same = compare_accuracy(votes, [good, replace(good, metric="again")])
    assert (same.differences[0].difference, same.differences[0].p_value, same.differences[0].real) == (0.0, 1.0, False)


def test_names_of_metrics():
    votes, good, _ = many(2, samples=5)
    found = compare_accuracy(votes, [replace(good, protocol="old"), replace(good, protocol="new")])
    assert sorted(found.metrics) == ["good (new)", "good (old)"]
    with pytest.raises(ValueError, match="twice"):
        compare_accuracy(votes, [good, good])
    with pytest.raises(ValueError, match="no metric"):
        compare_accuracy(votes, [])
    nothing = compare_accuracy(votes, [good, scores_of({}, "none")])
    assert (nothing.n, nothing.best, nothing.differences) == (0, None, ())


def test_equal_scores_count_half_in_the_comparison():
    found = compare_accuracy(VOTES[:3], [scores_of(VALUES, "m"), scores_of(dict.fromkeys(VALUES, 0.0), "flat")])
    assert {name: one.accuracy for name, one in found.metrics.items()} == {"m": 0.5, "flat": 0.5}
    assert (found.differences[0].only_a, found.differences[0].only_b) == (1, 1)
    assert found.metrics["m"].lower is None
