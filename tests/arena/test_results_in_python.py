"""How results read in Python: the names of the JSON, and items by tracker, system and pair."""

import pytest

from gen_eval.arena import SystemColumn, bradley_terry, correlate, elo
from gen_eval.arena.ratings import ArenaRatings
from gen_eval.records import Reason, Status

ANSWERS = [("x", "y", "a", "a"), ("y", "x", "a", "both_bad"), ("x", "y", "b", "a"), ("y", "x", "both_good", "a")]
VOTES = [
    {"sample": "s", "annotator": f"u{place}", "model_a": a, "model_b": b, "quality": quality, "plausibility": other}
    for place, (a, b, quality, other) in enumerate(ANSWERS)
]


@pytest.mark.parametrize("method", [elo, bradley_terry])
def test_trackers_and_systems_are_items(method):
    found = method(VOTES, resamples=20)
    assert list(found) == ["quality", "plausibility", "overall"]
    assert "quality" in found
    assert len(found) == 3
    for name, tracker in found.items():
        assert found[name] is tracker is found.trackers[name]
        assert dict(tracker) == tracker.ratings == found.to_json()["trackers"][name]["ratings"]
        assert tracker["x"] == tracker.ratings["x"]
    assert found.ratings == found["overall"].ratings
    assert (found.lower, found.upper, found.n) == (found["overall"].lower, found["overall"].upper, 4)
    assert (found.reason, found.status, found.message) == (None, Status.OK, "")
    assert found.differences == found["overall"].differences
    assert found.ranks["x"].best == 1


def test_bare_comparisons_are_rated_as_overall():
    found = bradley_terry([["x", "y", 1.0], ["y", "x", 0.5], ["y", "x", 1.0]], resamples=20)
    assert list(found) == ["overall"]
    assert found.ratings == found["overall"].ratings


def test_what_is_refused_says_so_on_the_result():
    found = bradley_terry([("x", "y", 1.0)], resamples=20)
    assert (found.reason, found.status) == (Reason.ONE_SIDED, Status.UNDEFINED)
    assert found.ratings == {"x": None, "y": None}
    assert "x" in found.message


def test_without_a_vote_there_is_no_main_tracker():
    with pytest.raises(ValueError, match="no ratings"):
        _ = ArenaRatings("elo", "given", 0, {}).ratings


def test_pairs_are_items():
    names = ["a", "b", "c"]
    column = SystemColumn("quality", dict(zip(names, [1.0, 2.0, 3.0], strict=True)))
    found = correlate({"quality": column}, {"quality": column})
    assert list(found) == ["quality"]
    assert found["quality"].pearson == 1.0
    assert dict(found) == found.pairs
