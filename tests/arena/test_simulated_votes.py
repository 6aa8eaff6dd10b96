"""Votes that are drawn from the model that rates them."""

import math

import pytest

from gen_eval.arena import bradley_terry, simulated_votes

STRENGTHS = {"quality": {"x": 1.0, "y": 0.0, "z": -1.0}}


def test_the_fit_finds_what_was_drawn():
    votes = simulated_votes(STRENGTHS, [f"s{place}" for place in range(400)], votes_per_sample=10, tie_parameter=0.8)
    found = bradley_terry(votes, ties="davidson", clusters="votes", resamples=0, interval="sandwich")["quality"]
    for name, strength in STRENGTHS["quality"].items():
        assert found.ratings[name] == pytest.approx(1000 + strength * 400 / math.log(10), abs=15)
    assert found.tie_parameter.value == pytest.approx(0.8, abs=0.06)
    assert sum(vote.shown_left == "a" for vote in votes) / len(votes) == pytest.approx(0.5, abs=0.03)


def test_equal_seeds_draw_equal_votes():
    assert simulated_votes(STRENGTHS, ["s"], seed=1) == simulated_votes(STRENGTHS, ["s"], seed=1)
    assert simulated_votes(STRENGTHS, ["s"], seed=1) != simulated_votes(STRENGTHS, ["s"], seed=2)
    assert {vote.annotator for vote in simulated_votes(STRENGTHS, ["s"], annotators=1)} == {"simulated 1"}


def test_huge_differences_do_not_overflow():
    votes = simulated_votes({"quality": {"x": 1e6, "y": 0.0}}, ["s"], tie_parameter=3.0)
    assert {vote.model_a if vote.quality == "a" else vote.model_b for vote in votes} == {"x"}


@pytest.mark.parametrize(
    ("strengths", "options", "said"),
    [
        ({}, {}, "strengths"),
        ({"beauty": {"x": 0.0, "y": 0.0}}, {}, "beauty"),
        ({"quality": {"x": 0.0}}, {}, "two systems"),
        ({"quality": {"x": 0.0, "y": 0.0}, "plausibility": {"x": 0.0, "z": 0.0}}, {}, "same two systems"),
        (STRENGTHS, {"tie_parameter": -1.0}, "tie parameter"),
        (STRENGTHS, {"votes_per_sample": 0}, "0 votes a sample"),
    ],
)
def test_bad_arguments(strengths, options, said):
    with pytest.raises(ValueError, match=said):
        simulated_votes(strengths, ["s"], **options)
