"""Davidson's ties: the maximum, when there is one, and what is said when there is none."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from gen_eval.arena import Comparisons, bradley_terry
from gen_eval.arena.cells import cells_of
from gen_eval.arena.davidson import NO_TIES, DavidsonTies
from gen_eval.records import Reason

POINTS = 400 / math.log(10)


def davidson(votes, **more):
    return bradley_terry(votes, **{"ties": "davidson", "interval": "sandwich", "resamples": 0, **more})["overall"]


def random_votes(count, systems, seed, ties=0.3):
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.6, systems)
    votes = []
    for _ in range(count):
        a, b = rng.choice(systems, 2, replace=False)
        share = float(rng.random() < 1 / (1 + math.exp(strength[b] - strength[a])))
        votes.append((f"m{a}", f"m{b}", 0.5 if rng.random() < ties else share))
    return votes


def log_likelihood(votes, theta, log_nu):
    """By the definition, of triples; shares of a quarter are half a tie."""
    total = 0.0
    for a, b, share in votes:
        weights = [share - (tie := 1 - abs(2 * share - 1)) / 2, tie, 1 - share - tie / 2]
        exponents = np.array([theta[a], log_nu + (theta[a] + theta[b]) / 2, theta[b]])
        total += np.dot(weights, exponents) - np.logaddexp.reduce(exponents)
    return total


def best_by_search(votes):
    models = sorted({name for a, b, _ in votes for name in (a, b)})

    def loss(x):
        return -log_likelihood(votes, dict(zip(models, x[:-1], strict=True)), x[-1]) + x[:-1].mean() ** 2

    found = minimize(loss, np.zeros(len(models) + 1), method="BFGS", options={"gtol": 1e-9})
    return dict(zip(models, 1000 + POINTS * (found.x[:-1] - found.x[:-1].mean()), strict=True)), math.exp(found.x[-1])


# --- the maximum ---------------------------------------------------------------------------------------------------


def test_golden(goldens):
    """The golden stops a little before the maximum (a gradient of 7e-7 votes), 2e-5 points away."""
    document = json.loads((goldens / "elo" / "bradley_terry.json").read_text())
    votes = next(one["votes"] for one in document["cases"] if one["name"] == "ties_as_half_quality")
    expected, found = document["davidson"], davidson([tuple(one) for one in votes])
    assert [found.ratings[name] for name in expected["models"]] == pytest.approx(expected["ratings"], abs=5e-5)
    assert found.tie_parameter.value == pytest.approx(expected["tie_parameter_nu"], abs=1e-6)
    assert found.log_likelihood == pytest.approx(expected["log_likelihood"], abs=1e-7)


def test_two_systems_by_hand():
    """As many unknowns as free shares: the fit is exact, d = log(w / l) and nu = t / sqrt(w l)."""
    wins, losses, ties = 12, 3, 5
    votes = [("x", "y", 1.0)] * wins + [("y", "x", 1.0)] * losses + [("y", "x", 0.5)] * ties
    found = davidson(votes)
    d, nu = math.log(wins / losses), ties / math.sqrt(wins * losses)
    assert found.ratings == pytest.approx({"x": 1000 + POINTS * d / 2, "y": 1000 - POINTS * d / 2}, abs=1e-8)
    assert found.tie_parameter.value == pytest.approx(nu, rel=1e-12)
    assert found.log_likelihood == pytest.approx(sum(n * math.log(n / 20) for n in (wins, losses, ties)), abs=1e-10)
    half = 1.959963984540054 * POINTS / 2 * math.sqrt(1 / wins + 1 / losses)
    assert found.upper["x"] - found.ratings["x"] == pytest.approx(half, abs=1e-8)
    factor = math.exp(1.959963984540054 * math.sqrt(1 / ties + 1 / (4 * wins) + 1 / (4 * losses)))
    assert (found.tie_parameter.lower, found.tie_parameter.upper) == pytest.approx((nu / factor, nu * factor))


@pytest.mark.parametrize("seed", range(3))
def test_a_general_optimiser_finds_the_same(seed):
    votes = random_votes(80, 5, seed)
    votes += [(a, b, abs(share - 0.25)) for a, b, share in votes[:20]]  # quarters
    found = davidson(votes)
    ratings, nu = best_by_search(votes)
    assert found.ratings == pytest.approx(ratings, abs=1e-3)
    assert found.tie_parameter.value == pytest.approx(nu, rel=1e-5)
    theta = {name: (value - 1000) / POINTS for name, value in found.ratings.items()}
    assert found.log_likelihood == pytest.approx(log_likelihood(votes, theta, math.log(nu)), abs=1e-8)


def test_two_quarters_are_a_win_and_a_tie():
    rest = [("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 1.0), ("z", "y", 0.5)]
    quarters = davidson([("x", "y", 0.75)] * 2 + rest)
    whole = davidson([("x", "y", 1.0), ("x", "y", 0.5), *rest])
    assert quarters.ratings == pytest.approx(whole.ratings, abs=1e-8)
    assert quarters.tie_parameter.value == pytest.approx(whole.tie_parameter.value, rel=1e-10)
    assert quarters.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_neither_order_nor_sides_nor_names_matter(seed):
    votes = random_votes(60, 4, seed)
    found = davidson(votes, ridge=0.01)
    other = dict(zip(("m0", "m1", "m2", "m3"), "dacb", strict=True))
    changed = davidson([(other[b], other[a], 1 - share) for a, b, share in votes[::-1]], ridge=0.01)
    assert changed.ratings == pytest.approx({other[name]: one for name, one in found.ratings.items()}, abs=1e-7)
    assert changed.tie_parameter.value == pytest.approx(found.tie_parameter.value, rel=1e-9)
    assert math.fsum(found.ratings.values()) == pytest.approx(4000)


def test_ratings_spread_wider_than_with_halves():
    votes = random_votes(300, 5, 8, ties=0.5)
    halves = bradley_terry(votes, interval="sandwich", resamples=0)["overall"]
    assert np.ptp(list(davidson(votes).ratings.values())) > 1.2 * np.ptp(list(halves.ratings.values()))


def test_a_ridge_is_taken_off():
    votes, ridge = random_votes(40, 3, 4), 2.0
    found = davidson(votes, ridge=ridge)
    x = np.array([*((value - 1000) / POINTS for value in found.ratings.values()), math.log(found.tie_parameter.value)])

    def gain(step):
        y = x + step
        return log_likelihood(votes, dict(zip(found.ratings, y[:-1], strict=True)), y[-1]) - ridge / 2 * np.sum(y**2)

    for step in 1e-3 * np.eye(4):
        assert gain(step) < gain(0 * step)
        assert gain(-step) < gain(0 * step)


# --- whether there is one ------------------------------------------------------------------------------------------


def test_without_ties_it_is_bradley_terry_and_nu_is_0():
    votes = random_votes(60, 4, 1, ties=0.0)
    found, halves = davidson(votes), bradley_terry(votes, interval="sandwich", resamples=0)["overall"]
    assert found.ratings == pytest.approx(halves.ratings, abs=1e-7)
    assert found.lower == pytest.approx(halves.lower, abs=1e-6)
    assert found.log_likelihood == pytest.approx(halves.log_likelihood, abs=1e-9)
    assert found.tie_parameter.value == 0
    assert "nu is 0" in found.interval.words


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ([("x", "y", 0.5), ("y", "z", 0.5)], "every vote is a tie"),
        # strongly connected, with wins and a tie, yet P(y wins) = 0 fits best: nu and the gap grow together
        ([("x", "y", 1.0), ("x", "y", 0.5)], "no circle of systems holds more wins than ties"),
        ([("x", "y", 1.0), ("y", "z", 1.0), ("z", "w", 0.5), ("w", "x", 0.5)], "no circle"),
    ],
)
def test_what_grows_for_ever_is_refused(votes, words):
    found = davidson(votes)
    assert (found.reason, set(found.ratings.values())) == (Reason.ONE_SIDED, {None})
    assert words in found.message
    helped = davidson(votes, ridge=0.1)
    assert all(value is not None for value in helped.ratings.values())
    assert "by the ridge alone" in helped.message


def test_two_wins_and_one_tie_in_a_circle_are_enough():
    votes = [("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 0.5)]
    found = davidson(votes)
    ratings, nu = best_by_search(votes)
    assert found.ratings == pytest.approx(ratings, abs=1e-3)
    assert found.tie_parameter.value == pytest.approx(nu, rel=1e-4)


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        ([("x", "y", 1.0), ("x", "y", 0.5), ("z", "w", 0.5)], Reason.NOT_CONNECTED),
        ([("x", "y", 1.0), ("y", "z", 1.0), ("z", "y", 0.5)], Reason.ONE_SIDED),
    ],
)
def test_the_refusals_of_bradley_terry_stand(votes, reason):
    assert davidson(votes).reason == reason
    assert davidson(votes).groups == bradley_terry(votes, resamples=1)["overall"].groups


def grows(data):
    """By the definition: some direction in which no outcome that was seen falls behind, and one gets ahead."""
    systems, rows = len(data.models), []
    for a, b, score in zip(data.a, data.b, data.score, strict=True):
        win, loss, tie = np.zeros((3, systems + 1))
        win[a], win[b], loss[a], loss[b], tie[-1] = 0.5, -0.5, -0.5, 0.5, 1.0
        seen = {1.0: win, 0.0: loss, 0.5: tie}[float(score)]
        rows += [seen - other for other in (win, loss, tie)]
    ahead = np.array(rows)
    found = linprog(-ahead.sum(axis=0), A_ub=-ahead, b_ub=np.zeros(len(ahead)), bounds=(-1, 1))
    return -found.fun > 1e-9


def test_told_exactly_on_many_small_data_sets():
    rng, seen = np.random.default_rng(0), []
    for _ in range(250):
        systems, count = int(rng.integers(2, 5)), int(rng.integers(2, 9))
        pairs = [rng.choice(systems, 2, replace=False) for _ in range(count)]
        shares = [float(share) for share in rng.choice([0.0, 0.5, 1.0], count)]
        data = Comparisons.of([(f"m{a}", f"m{b}", share) for (a, b), share in zip(pairs, shares, strict=True)])
        if not data.tie.any():
            continue
        cells = cells_of(data)
        model = DavidsonTies(cells)
        finite = not grows(data)
        assert (model.diagnose() is None) == finite
        x, kept = model.maxima(cells.counts[None])
        assert bool(kept[0]) == finite
        assert np.abs(cells.counts @ model.scores(x[0]).toarray()).max() < 1e-7 or not finite
        seen.append(finite)
    assert 20 < sum(seen) < len(seen) - 20


# --- resamples -----------------------------------------------------------------------------------------------------


def test_many_weightings_at_once_are_each_by_itself():
    cells = cells_of(Comparisons.of(random_votes(40, 4, 3)))
    model = DavidsonTies(cells)
    counts = np.random.default_rng(0).poisson(0.7, (60, len(cells))).astype(float)
    counts[0] = np.where(cells.tie > 0, 0, cells.counts)  # no ties
    counts[1] = np.where(cells.tie > 0, cells.counts, 0)  # nothing else
    together, kept = model.maxima(counts, model.maxima(cells.counts[None])[0][0])
    assert kept[0]
    assert together[0, -1] == NO_TIES
    assert not kept[1]
    assert 10 < kept.sum() < 60
    for row, flag, own in zip(together, kept, counts, strict=True):
        alone, same = model.maxima(own[None])
        assert same[0] == flag
        assert alone[0] == pytest.approx(row, abs=1e-8)
        assert not flag or np.abs(own @ model.scores(row).toarray()).max() < 1e-7
    assert np.all(together[~kept] == 0)


def test_bootstrap_intervals_of_ratings_and_of_nu():
    votes = random_votes(200, 3, 6, ties=0.05)
    found = davidson(votes, interval="bootstrap", resamples=400)
    assert (found.interval.method, found.interval.resamples + found.interval.undefined) == ("bootstrap", 400)
    assert 0 <= found.tie_parameter.lower < found.tie_parameter.value < found.tie_parameter.upper
    for name, value in found.ratings.items():
        assert found.lower[name] < value < found.upper[name]
    sandwich = found.other_intervals["sandwich"]
    for name in found.ratings:
        assert found.upper[name] - found.lower[name] == pytest.approx(sandwich[1][name] - sandwich[0][name], rel=0.25)


def test_resamples_without_a_tie_have_nu_0():
    votes = [("x", "y", 1.0), ("y", "x", 1.0)] * 20 + [("x", "y", 0.5)]
    found = davidson(votes, interval="bootstrap", resamples=200)
    assert found.tie_parameter.lower == 0
    assert found.tie_parameter.value == pytest.approx(1 / 20)


# --- arguments -----------------------------------------------------------------------------------------------------


def test_side_term_and_pair_weights_are_not_fitted_with_ties():
    for wrong in ({"side": True}, {"pair_floor": 50}):
        with pytest.raises(ValueError, match="without side term and pair weights"):
            davidson([("x", "y", 1.0)], **wrong)


def test_a_share_of_ties_that_the_score_has_no_room_for():
    data = Comparisons.of([("x", "y", 1.0), ("y", "x", 1.0)])
    with pytest.raises(ValueError, match="tie share"):
        DavidsonTies(cells_of(Comparisons(**{**vars(data), "tie": np.array([1.0, 0.0])})))
