"""Sequential Elo: the published formula, what the order does, chains, and intervals over resamples."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.arena import Comparisons, EloRule, elo, elo_orders, elo_path, votes_from
from gen_eval.arena.elo_chains import elo_resamples

TRACKERS = ("quality", "plausibility", "overall")
CASES = ("six_votes", "five_models", "five_models_reversed", "five_models_sides_swapped", "all_ties",
         "one_model_wins_all")  # fmt: skip


@pytest.fixture
def golden(goldens):
    cases = json.loads((goldens / "elo" / "elo.json").read_text())["cases"]
    return {case["name"]: case for case in cases}


def quick(votes, **more):
    return elo(votes, **{"permutations": 0, "resamples": 0, **more})


def vote(number, a, b, answer="a", **more):
    return {"id": str(number), "sample": f"s{number}", "annotator": "u", "model_a": a, "model_b": b,
            "quality": answer, "plausibility": answer, **more}  # fmt: skip


def swap_of(triples):
    return [(b, a, 1 - share) for a, b, share in triples]


names = st.sampled_from("pqrstu")
triples = st.lists(
    st.tuples(names, names, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])).filter(lambda one: one[0] != one[1]),
    min_size=1,
    max_size=25,
)


# --- goldens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_golden_ratings(golden, name):
    case = golden[name]
    found = quick(case["votes"])
    assert set(found.trackers) == set(case["ratings"]) == set(TRACKERS)
    for tracker, expected in case["ratings"].items():
        assert found[tracker].ratings == pytest.approx(expected, abs=1e-9)
        assert found[tracker].n == len(case["votes"])
    assert found.ratings == found["overall"].ratings


def test_every_golden_case_is_asked_for(golden):
    assert set(golden) == set(CASES)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_golden_ratings_after_each_vote(golden, tracker):
    case = golden["six_votes"]
    path = elo_path(votes_from(case["votes"]).comparisons(tracker))
    assert path == pytest.approx(np.array(case["after_each_vote"][tracker]), abs=1e-9)


def test_spread_over_orders_is_that_of_the_golden(golden):
    case = golden["five_models"]
    expected = case["over_permutations_overall"]
    found = elo(case["votes"], order="mean", permutations=2000, seed=5, resamples=0)["overall"]
    spread = [found.order_spread[name] for name in expected["models"]]
    errors = np.array(expected["std"]) * math.sqrt(2 / 2000)
    assert np.all(np.abs([one.mean for one in spread] - np.array(expected["mean"])) < 4 * errors)
    assert [one.sd for one in spread] == pytest.approx(expected["std"], rel=0.1)
    assert [one.lowest for one in spread] == pytest.approx(expected["min"], abs=25)
    assert [one.highest for one in spread] == pytest.approx(expected["max"], abs=25)
    assert expected["orders_of_rank"] - 4 <= found.rankings <= expected["orders_of_rank"] + 4
    assert [found.ratings[name] for name in expected["models"]] == [one.mean for one in spread]


# --- by hand -------------------------------------------------------------------------------------------------------


def test_two_votes_by_hand():
    """The first moves 32 * 1/2; for the second x is 32 points up and is expected to get 1 / (1 + 10^(-32/400))."""
    expected = 32 / (1 + 10 ** (-32 / 400))
    found = quick([("x", "y", 1.0), ("y", "x", 1.0)])
    assert found.ratings == pytest.approx({"x": 1016 - expected, "y": 984 + expected}, abs=1e-10)
    assert quick([("x", "y", 1.0), ("x", "y", 0.0)]).ratings == found.ratings


def test_every_number_of_the_formula_counts():
    found = quick([("x", "y", 1.0), ("x", "y", 1.0)], initial=1500, k=10, base=math.e, scale=7)
    second = 10 * (1 - 1 / (1 + math.exp(-10 / 7)))
    assert found.ratings == pytest.approx({"x": 1505 + second, "y": 1495 - second}, abs=1e-10)
    wanted = {"initial": 1500.0, "k": 10.0, "base": math.e, "scale": 7.0, "order": "given"}
    assert {name: found.options[name] for name in wanted} == wanted


def test_order_by_time_sorts_and_keeps_equal_times_as_they_stand():
    late, early = vote(1, "x", "y", time=20), vote(2, "y", "x", time=10)
    assert quick([late, early], order="time").ratings == quick([early, late]).ratings
    assert quick([late, early]).ratings != quick([early, late]).ratings
    both = [vote(1, "x", "y", time=3), vote(2, "y", "x", time=3)]
    assert quick(both, order="time").ratings == quick(both).ratings


def test_votes_without_time_are_counted_and_refused():
    votes = [vote(1, "x", "y", time=1), vote(2, "x", "y"), vote(3, "x", "y")]
    with pytest.raises(ValueError, match="2 of 3 votes have no time"):
        quick(votes, order="time")


def test_dates_beside_plain_seconds_are_refused():
    votes = [vote(1, "x", "y", time=1), vote(2, "x", "y", time="2024-05-01T10:00:00Z")]
    with pytest.raises(ValueError, match="no common order"):
        quick(votes, order="time")


def test_a_system_is_rated_where_it_has_a_vote():
    votes = [vote(1, "x", "y"), {**vote(2, "x", "z"), "quality": None}]
    found = quick(votes)
    assert set(found["quality"].ratings) == {"x", "y"}
    assert found["quality"].without_votes == ("z",)
    assert set(found["plausibility"].ratings) == {"x", "y", "z"}
    assert set(found["overall"].ratings) == {"x", "y"}
    assert found["plausibility"].votes_of == {"x": 2, "y": 1, "z": 1}


def test_mean_is_that_of_both_orders():
    votes = [("x", "y", 1.0), ("y", "z", 1.0)]
    ends = [quick(order).ratings for order in (votes, votes[::-1])]
    found = elo(votes, order="mean", permutations=60, resamples=0)["overall"]
    share = (found.ratings["z"] - ends[1]["z"]) / (ends[0]["z"] - ends[1]["z"])
    assert 0.25 < share < 0.75
    assert found.ratings == pytest.approx(
        {name: share * ends[0][name] + (1 - share) * ends[1][name] for name in "xyz"}, abs=1e-9
    )
    assert found.order_spread["z"].lowest == pytest.approx(min(one["z"] for one in ends), abs=1e-9)
    assert found.order_spread["z"].highest == pytest.approx(max(one["z"] for one in ends), abs=1e-9)
    assert found.order_spread["z"].sd == pytest.approx(
        math.sqrt(share * (1 - share)) * abs(ends[0]["z"] - ends[1]["z"]), abs=1e-9
    )


def test_the_spread_over_orders_stands_beside_one_order_and_can_be_left_out():
    votes = [("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 1.0)]
    given_, mean = (elo(votes, order=order, permutations=50, resamples=0)["overall"] for order in ("given", "mean"))
    assert given_.order_spread == mean.order_spread
    assert given_.rankings == mean.rankings == 3  # the last winner, the one before, the first
    assert quick(votes)["overall"].order_spread == {}
    assert quick(votes)["overall"].rankings is None


# --- properties ----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(triples, st.sampled_from(["given", "mean"]))
def test_the_sum_stays_and_neither_sides_nor_names_matter(votes, order):
    found = elo(votes, order=order, permutations=3, resamples=0)["overall"]
    assert math.fsum(found.ratings.values()) == pytest.approx(1000 * len(found.ratings), rel=1e-12)
    swapped = elo(swap_of(votes), order=order, permutations=3, resamples=0)["overall"]
    assert swapped.ratings == found.ratings  # bit for bit
    assert swapped.order_spread == found.order_spread
    other = dict(zip("pqrstu", "zbyaxc", strict=True))
    renamed = elo([(other[a], other[b], s) for a, b, s in votes], order=order, permutations=3, resamples=0)["overall"]
    assert renamed.ratings == {other[name]: value for name, value in found.ratings.items()}


@settings(max_examples=20, deadline=None)
@given(triples.map(lambda votes: [(a, b, 0.5) for a, b, _ in votes]), st.sampled_from(["given", "mean"]))
def test_ties_leave_every_rating_where_it_was(votes, order):
    found = elo(votes, order=order, permutations=4, resamples=5, initial=1234.5)["overall"]
    assert set(found.ratings.values()) == {1234.5}
    assert found.rankings == 1
    assert {one.sd for one in found.order_spread.values()} == {0.0}


@settings(max_examples=20, deadline=None)
@given(triples, st.sampled_from(["given", "mean"]), st.sampled_from([0.05, 0.95]))
def test_intervals_hold_their_estimates(votes, order, level):
    found = elo(votes, order=order, permutations=3, resamples=20, level=level)["overall"]
    if len(votes) == 1:
        assert (found.interval.method, found.lower) == ("none", {})
        return
    for name, value in found.ratings.items():
        assert found.lower[name] <= value <= found.upper[name]
    for one in found.differences:
        assert one.difference == found.ratings[one.a] - found.ratings[one.b]
        assert one.lower <= one.difference <= one.upper


# --- chains --------------------------------------------------------------------------------------------------------


def random_comparisons(count, models=9, seed=0, annotators=(None,)):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, models, count)
    b = (a + rng.integers(1, models, count)) % models
    score = rng.choice([0, 0.25, 0.5, 0.75, 1], count)
    return Comparisons(
        tuple(f"m{place}" for place in range(models)), a, b, score, 1 - np.abs(2 * score - 1),
        np.ones(count, dtype=np.int64), tuple(f"s{place // 3}" for place in range(count)),
        tuple(annotators[int(place**1.5) % len(annotators)] for place in range(count)), (None,) * count,
    )  # fmt: skip


def taken(comparisons, places):
    """The last rating of each system by the plain path over the votes at ``places``."""
    order = [(int(comparisons.a[one]), int(comparisons.b[one]), float(comparisons.score[one])) for one in places]
    now = [1000.0] * len(comparisons.models)
    for a, b, score in order:
        expected = 1 / (1 + 10 ** ((now[b] - now[a]) / 400))
        now[a] += 32 * (score - expected)
        now[b] -= 32 * (score - expected)
    return now


def stream(seed, purpose, chain):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, chain)))


def test_each_chain_is_the_plain_formula_over_its_own_permutation():
    data = random_comparisons(300)
    found = elo_orders(data, 4, seed=3)
    for chain in range(4):
        assert found[chain] == pytest.approx(taken(data, stream(3, 0, chain).permutation(300)), abs=1e-9)


@pytest.mark.parametrize("unit", ["votes", "samples", "annotators"])
def test_what_is_drawn_keeps_its_order_and_twice_comes_in_a_row(unit):
    data = random_comparisons(90, annotators=("u", "v", "w", "x"))
    labels = {"votes": range(90), "samples": data.samples, "annotators": data.annotators}[unit]
    distinct = list(dict.fromkeys(labels))
    found = elo_resamples(data, 5, shuffled=False, unit=unit, seed=2)
    for chain in range(5):
        drawn = [distinct[one] for one in stream(2, 1, chain).integers(0, len(distinct), len(distinct))]
        places = [place for place, label in enumerate(labels) for _ in range(drawn.count(label))]
        assert found[chain] == pytest.approx(taken(data, places), abs=1e-9)


def test_shuffled_resamples_are_of_the_drawn_units():
    """Of two samples of three votes each a resample holds one twice or both; all votes of a sample are alike here."""
    votes = [("x", "y", 1.0)] * 3 + [("x", "y", 0.0)] * 3
    data = Comparisons.of(votes)
    data = Comparisons(**{**vars(data), "samples": ("s",) * 3 + ("t",) * 3})
    wins = {round(float(one), 6) for one in elo_resamples(data, 60, shuffled=True, unit="samples")[:, 0]}
    won, lost = (taken(data, [place] * 6)[0] for place in (0, 5))
    assert {round(won, 6), round(lost, 6)} < wins
    assert len(wins) > 4  # both samples: their votes in many orders


@pytest.mark.parametrize("unit", ["votes", "samples", "annotators"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_blocks_change_no_bit(unit, shuffled):
    data = random_comparisons(101, annotators=("u", "v", "v", "v", "w"))
    whole = elo_resamples(data, 23, shuffled=shuffled, unit=unit)
    for memory in (1, 101 * 2 * 5, 101 * 2 * 22):
        assert np.array_equal(elo_resamples(data, 23, shuffled=shuffled, unit=unit, memory=memory), whole)


def test_blocks_of_orders_change_no_bit_and_fewer_orders_are_the_first_ones():
    data = random_comparisons(77)
    whole = elo_orders(data, 31)
    assert np.array_equal(elo_orders(data, 31, memory=1), whole)
    assert np.array_equal(elo_orders(data, 31, memory=77 * 2 * 10), whole)
    assert np.array_equal(elo_orders(data, 7), whole[:7])
    assert not np.array_equal(elo_orders(data, 7, seed=1), whole[:7])


def test_many_systems_and_many_scores_fit_into_a_code():
    rng = np.random.default_rng(1)
    votes = [(f"m{a}", f"m{a + 1 + b}", float(s)) for a, b, s in zip(
        rng.integers(0, 300, 400), rng.integers(0, 300, 400), rng.random(400), strict=True)]  # fmt: skip
    data = Comparisons.of(votes)
    found = elo_orders(data, 2)
    assert found[1] == pytest.approx(taken(data, stream(0, 0, 1).permutation(400)), abs=1e-9)


# --- what is told --------------------------------------------------------------------------------------------------


def test_the_rule_of_an_interval_says_what_it_covers(golden):
    votes = golden["five_models"]["votes"]
    one = elo(votes, permutations=0, resamples=50)["overall"].interval
    assert (one.method, one.unit, one.units, one.resamples, one.undefined) == ("bootstrap", "samples", 12, 50, 0)
    assert "the choice of votes, not their order" in one.words
    mean = elo(votes, order="mean", permutations=9, resamples=50, clusters="annotators", level=0.01)["overall"].interval
    assert (mean.unit, mean.level) == ("annotators", 0.01)
    assert "the choice of votes and their order" in mean.words
    assert "moved to hold the estimate" in mean.words  # nothing so narrow holds all of them by itself


def test_wide_enough_resampling_tells_strong_from_weak():
    votes = [("good", "bad", 1.0)] * 30 + [("bad", "good", 1.0)] * 3
    found = elo(votes, permutations=0, resamples=100)["overall"]
    assert found.differences[0].clear
    assert (found.ranks["good"].worst, found.ranks["bad"].best) == (1, 2)
    assert found.draws.shape == (100, 2)


def test_equal_input_gives_equal_results(golden):
    votes = golden["six_votes"]["votes"]
    first, second = (elo(votes, permutations=5, resamples=5, seed=4) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert json.loads(json.dumps(first.to_json()))["options"]["votes_digest"] == votes_from(votes).digest
    assert elo(votes, permutations=5, resamples=5, seed=5).to_json() != first.to_json()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 0}, "k is 0; it must be above 0"),
        ({"k": math.nan}, "k is nan"),
        ({"initial": math.inf}, "initial is inf"),
        ({"base": 1}, "base is 1"),
        ({"scale": -400}, "scale is -400"),
        ({"order": "random"}, "order is 'random'; expected one of given, time, mean"),
        ({"permutations": -1}, "permutations is -1"),
        ({"permutations": 0, "order": "mean"}, "permutations is 0; expected at least 1"),
        ({"resamples": -1}, "resamples is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"level": 95}, "level is 95"),
        ({"clusters": "people"}, "clusters is 'people'"),
        ({"clusters": "annotators", "resamples": 2}, "annotator"),
    ],
)
def test_bad_arguments_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        quick([("x", "y", 1.0)], **wrong)


def test_a_number_is_needed():
    with pytest.raises(TypeError, match="k is '32'"):
        EloRule(k="32")


def test_no_votes_are_no_ratings():
    with pytest.raises(ValueError, match="no votes to rate"):
        elo([])
