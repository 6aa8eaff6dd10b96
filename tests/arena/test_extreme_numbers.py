"""Numbers at the ends of their range, and many systems: values, or a plain refusal, and bounded memory."""

import json
import math

import numpy as np
import pytest

from gen_eval.arena import SystemColumn, VideoScores, bradley_terry, correlate, elo, votes_from_scores
from gen_eval.arena.drawing import LARGEST_AREA, LONGEST_SIDE, empty_figure, new_figure

TRIPLES = [("x", "y", 1.0), ("y", "z", 1.0), ("z", "x", 1.0), ("x", "z", 0.5)]


def columns(values):
    return {"overall": SystemColumn("overall", {f"s{place}": value for place, value in enumerate(values)})}


def test_correlation_of_the_largest_floats_is_that_of_their_signs():
    signs = [1, -1, -1, 1, 1, -1, 1]
    scores = columns([3.0, 1.0, 2.0, 5.0, 4.0, 0.0, 6.0])
    large, small = (correlate(columns([size * one for one in signs]), scores, resamples=50) for size in (2.0**1023, 1))
    for name in ("pearson", "spearman", "kendall_tau_b", "permutation", "bootstrap"):
        assert getattr(large["overall"], name) == getattr(small["overall"], name)


def test_a_whole_number_that_no_float_holds_is_refused():
    with pytest.raises(ValueError, match=r"pair_floor is beyond 1\.8e308"):
        bradley_terry(TRIPLES, pair_floor=10**400, resamples=1)


@pytest.mark.parametrize(("width", "height"), [(7.2, 4.0), (7.2, 272.0), (7.2, 1e5), (303.0, 303.0), (1e5, 3.0)])
def test_a_figure_stays_within_what_a_picture_can_hold(width, height):
    found = empty_figure(width, height).get_size_inches()
    assert max(found) <= LONGEST_SIDE
    assert np.prod(found) <= LARGEST_AREA * (1 + 1e-9)
    if max(width, height) <= LONGEST_SIDE and width * height <= LARGEST_AREA:
        assert tuple(found) == (width, height)


def test_sizes_of_texts_come_from_one_renderer():
    figure, axes = new_figure(4, 3)
    texts = [axes.text(0, 0, name) for name in "abc"]
    assert all(math.isfinite(text.get_window_extent().width) for text in texts)
    assert figure.canvas.get_renderer() is figure.canvas.get_renderer()


@pytest.mark.parametrize(
    "given", [{"k": 1e300}, {"k": 1e308}, {"initial": 1e300}, {"scale": 1e308}, {"scale": 1e-300}, {"base": 1e300}]
)
def test_elo_refuses_numbers_that_leave_the_floats(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} is .*e.*; expected at "):
        elo(TRIPLES, **given)


@pytest.mark.parametrize("given", [{"initial": -1e300}, {"scale": 1e308}, {"scale": 1e-300}, {"base": 1e300}])
def test_bradley_terry_refuses_numbers_that_leave_the_floats(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} is .*e.*; expected at "):
        bradley_terry(TRIPLES, **given)


def test_ratings_at_the_ends_of_the_range_are_finite():
    for method in (elo, bradley_terry):
        for scale in (1e9, 1e-9):
            found = method(TRIPLES * 3, initial=1e9, scale=scale, base=1e9, resamples=20).to_json()
            json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("given", [{"resamples": 10**13}, {"permutations": 10**13}])
def test_more_draws_than_memory_holds_are_refused(given):
    with pytest.raises(ValueError, match="at most 1,000,000 are drawn"):
        elo(TRIPLES, **given)


def test_more_resamples_than_memory_holds_are_refused():
    with pytest.raises(ValueError, match="at most 1,000,000 are drawn"):
        bradley_terry(TRIPLES, resamples=10**13)
    with pytest.raises(ValueError, match="at most 1,000,000 are drawn"):
        correlate(columns(range(5)), columns(range(5)), resamples=10**13)


@pytest.mark.parametrize("options", [{}, {"side": True}, {"ties": "davidson"}])
def test_resamples_without_any_maximum_are_counted(options):
    votes = [(a, b, share) for a, b in ("xy", "yz", "zx") for share in (1.0, 0.0)]
    votes += [(b, a, share) for a, b, share in votes[:4]]
    single = [bradley_terry(votes, resamples=1, seed=seed, **options)["overall"] for seed in range(20)]
    undefined = [one.interval.undefined for one in single]
    assert 0 < sum(undefined) < 20  # of each kind
    for one in single:
        assert one.reason is None
        assert (not one.lower or one.lower["x"] is None) == (one.interval.undefined == 1)


def test_preferences_from_the_largest_scores():
    scores = VideoScores("m", {("x", "s"): {"0": 1.7e308, "1": 1.7e308}, ("y", "s"): {"0": -1.7e308}})
    assert scores.of("x", "s") == 1.7e308
    assert votes_from_scores(scores).comparisons.score.tolist() == [1.0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_preference_from_a_score_that_is_no_number(value):
    scores = VideoScores("m", {("x", "s"): {"0": value}, ("y", "s"): {"0": 1.0}})
    with pytest.raises(ValueError, match=r"m of 'x', sample 's', is .*; a finite number is needed"):
        votes_from_scores(scores)


@pytest.mark.parametrize(
    "votes",
    [
        [("w", "x", 0.5), ("x", "z", 0.0), ("z", "x", 0.75)],
        [("y", "w", 0.25), ("w", "x", 0.75), ("y", "w", 1.0), ("z", "y", 0.5)],
    ],
)
def test_last_digits_are_no_clear_difference(votes):
    # one vote links the equal systems: nothing is left over, the sandwich has no width
    found = bradley_terry(votes, resamples=0, interval="sandwich")["overall"]
    equal = [one for one in found.differences if abs(one.difference) < 1e-9]
    assert [one.difference for one in equal] == [0.0]
    assert not equal[0].clear
    for one in found.ranks.values():
        assert one.best <= one.rank <= one.worst
