"""Totals are data of a benchmark."""

import pytest

from gen_eval.protocols import TotalRule, totals_of
from gen_eval.protocols.totals import ordered
from gen_eval.records import InputError


def test_a_metric_leads_to_the_totals_that_it_enters_and_to_what_those_need():
    assert list(totals_of(["imaging_quality"])) == ["quality", "overall"]
    assert list(totals_of(["domain_score"])) == ["quality", "overall"]
    assert totals_of(["blur_ssim", "temporal_flickering", "dynamic_degree"]) == {}


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"mean_of": []},
        {"mean_of": "a"},
        {"mean_of": ["a", "a"]},
        {"mean_of": [1]},
        {"mean_of": ["a"], "weights": [1]},
        {"mean_of": ["a"], "shown_with": "some"},
    ],
)
def test_malformed_totals_are_refused_by_name(content):
    with pytest.raises(InputError, match="the total 'score' must be"):
        TotalRule.from_json("score", content)


def test_a_rule_survives_its_own_record():
    rule = TotalRule("score", "Score", ("a", "b"), "all")
    assert TotalRule.from_json("score", rule.to_json()) == rule


def test_totals_stand_after_those_that_they_are_made_of():
    rules = {"outer": TotalRule("outer", "", ("inner", "x")), "inner": TotalRule("inner", "", ("y",))}
    assert list(ordered(rules)) == ["inner", "outer"]
    with pytest.raises(InputError, match="circle"):
        ordered({"a": TotalRule("a", "", ("b",)), "b": TotalRule("b", "", ("a",))})
