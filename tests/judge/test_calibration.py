"""Estimates about judges, against simulated ones whose parameters are known."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.records import Reason
from judge.calibration import OTHER_ORDER, SHUFFLED, WITHOUT_VIDEO, Looking, Trial, calibrate
from judge.estimates import NOTHING, Estimate, mean_difference, share
from judge.looking import looking

SENSITIVITY, SPECIFICITY, BIAS, UNREADABLE, ORDER, NOISE = 0.88, 0.76, 0.6, 0.06, 0.12, 0.4
PARAMETERS = {
    "sensitivity": SENSITIVITY,
    "specificity": SPECIFICITY,
    "yes_bias": BIAS,
    "unreadable": UNREADABLE,
    "order_effect": ORDER,
    "noise": NOISE,
}


def truths():
    """What each estimate should be near, from the parameters by hand; half of the keys are yes."""
    read = 1 - UNREADABLE
    accuracy = read * (SENSITIVITY + SPECIFICITY) / 2
    said = [(chance * read, (1 - chance) * read, UNREADABLE) for chance in (SENSITIVITY, 1 - SPECIFICITY)]
    equal = sum(sum(share**2 for share in one) for one in said) / 2
    return {
        "accuracy": accuracy,
        "sensitivity": SENSITIVITY,
        "specificity": SPECIFICITY,
        "yes_rate": (SENSITIVITY + 1 - SPECIFICITY) / 2,
        "yes_bias": (SENSITIVITY + 1 - SPECIFICITY) / 2 - 0.5,
        "unreadable": UNREADABLE,
        "order_effect": ORDER,
        "order_flips": ORDER,
        "yes_rate_without_video": BIAS,
        "accuracy_without_video": read / 2,
        "gain_over_no_video": accuracy - read / 2,
        "accuracy_shuffled": read / 2,
        "gain_over_shuffled": accuracy - read / 2,
        "repeatability": 1 - NOISE + NOISE * equal,
    }


def test_intervals_cover_the_parameters_of_simulated_judges(trials_of):
    """Each interval is to hold in 95 of 100; over 24 judges and 13 estimates few more may miss."""
    expected, judges = truths(), 24
    misses = dict.fromkeys(expected, 0)
    for seed in range(judges):
        found = calibrate(trials_of(scenes=12, questions=5, seed=seed, **PARAMETERS)).estimates
        for name, truth in expected.items():
            misses[name] += not found[name].lower <= truth <= found[name].upper
    # 95 %: 1.2 misses expected of 24; 6 or more have a chance of 1e-3
    assert max(misses.values()) <= 5, misses
    assert 0.01 <= sum(misses.values()) / (judges * len(expected)) <= 0.07, misses


def test_estimates_near_the_parameters_with_many_scenes(trials_of):
    found = calibrate(trials_of(scenes=100, questions=8, **PARAMETERS))
    for name, truth in truths().items():
        assert found.estimates[name].value == pytest.approx(truth, abs=0.05), name
    assert found.looking is Looking.LOOKS
    assert found.twins.value is None  # nothing was broken here


@pytest.mark.parametrize(
    ("parameters", "scenes", "looking"),
    [
        ({}, 12, Looking.LOOKS),
        ({"looks": False, "yes_bias": 0.6}, 12, Looking.DOES_NOT_LOOK),
        ({"looks": False, "yes_bias": 0.6}, 2, Looking.NOT_CLEAR),
        ({"sensitivity": 0.5, "specificity": 0.5}, 12, Looking.NOT_CLEAR),  # a coin: its gain is 0 give or take 0.15
        ({"sensitivity": 0.5, "specificity": 0.5}, 90, Looking.DOES_NOT_LOOK),
        ({"sensitivity": 0.6, "specificity": 0.6}, 6, Looking.NOT_CLEAR),  # looks, and is weak
        ({"sensitivity": 1.0, "specificity": 1.0, "yes_bias": 1.0}, 12, Looking.LOOKS),
    ],
)
def test_a_judge_that_does_not_look_is_named(trials_of, parameters, scenes, looking):
    assert calibrate(trials_of(scenes=scenes, questions=8, **parameters)).looking is looking


def estimate(lower, upper):
    return Estimate(0.05, lower, upper, 9, 9)


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([], Looking.NOT_ASKED),
        ([(0.01, 0.3)], Looking.LOOKS),
        ([(0.0, 0.3)], Looking.NOT_CLEAR),
        ([(-0.1, 0.1)], Looking.NOT_CLEAR),
        ([(-0.1, 0.099)], Looking.DOES_NOT_LOOK),
        ([(0.01, 0.099)], Looking.DOES_NOT_LOOK),  # surely above 0, and too little
        ([(0.2, 0.3), (-0.1, 0.3)], Looking.NOT_CLEAR),
        ([(0.2, 0.3), (-0.1, 0.05)], Looking.DOES_NOT_LOOK),
        ([(None, None)], Looking.NOT_CLEAR),
    ],
)
def test_the_rule_about_looking(ends, verdict):
    assert looking([NOTHING, *(estimate(*pair) for pair in ends)]) is verdict


def test_without_the_reference_points_nothing_is_said_of_looking(trials_of):
    main = [one for one in trials_of(scenes=4) if one.condition == ""]
    found = calibrate(main)
    assert found.looking is Looking.NOT_ASKED
    assert found.gain_over_no_video.value is None
    assert found.gain_over_no_video.n == 0


def trial(said, truth="yes", scene="a", uid="q", **more):
    return Trial(scene, more.pop("clip", scene), uid, truth, said=said, **more)


def test_unreadable_replies_are_wrong_and_in_no_sensitivity():
    found = calibrate([trial("yes"), trial(None, uid="r"), trial("no", "no", "b"), trial("yes", "no", "b", "r")])
    assert (found.accuracy.value, found.accuracy.n) == (0.5, 4)
    assert (found.sensitivity.value, found.sensitivity.n) == (1.0, 1)
    assert (found.specificity.value, found.specificity.n) == (0.5, 2)
    assert found.unreadable.value == 0.25
    assert found.yes_rate.value == pytest.approx(2 / 3)
    assert found.yes_bias.value == pytest.approx(1 / 3)


def test_failed_calls_are_counted_and_are_in_nothing_else():
    broken = trial(None, uid="r", failed=Reason.ENDPOINT_ERROR)
    found = calibrate([trial("yes"), broken])
    assert found.failed == {"endpoint_error": 1}
    assert (found.accuracy.n, found.unreadable.value, found.spent.answers) == (1, 0.0, 1)


def test_twins_count_when_both_are_right():
    true = [trial("no", "no", "a", "jumps"), trial("no", "no", "b", "jumps")]
    broken = [
        trial("yes", "yes", "a", "jumps", clip="a@x", flaw="teleport", turned=True),
        trial("no", "yes", "b", "jumps", clip="b@x", flaw="teleport", turned=True),
        trial("yes", "yes", "b", "present", clip="b@x", flaw="teleport"),
    ]
    found = calibrate(true + broken)
    assert (found.twins.value, found.twins.n) == (0.5, 2)
    assert found.by_flaw["teleport"].value == pytest.approx(2 / 3)
    assert found.by_flaw["none"].value == 1.0


def test_tokens_and_cost_are_summed_and_untold_ones_counted():
    found = calibrate([trial("yes", tokens=(100, 1), cost=0.5), trial("no", uid="r", tokens=(50, None))]).spent
    assert (found.prompt_tokens, found.completion_tokens, found.cost, found.untold) == (150, 1, 0.5, 1)


def test_order_of_trials_does_not_matter(trials_of):
    trials = trials_of(scenes=5, **PARAMETERS)
    assert calibrate(reversed(trials)) == calibrate(trials)


def test_changed_questions_count_in_pairs_only():
    main, alone = trial("yes"), trial("no", uid="other", condition=WITHOUT_VIDEO)
    paired = replace(main, condition=WITHOUT_VIDEO, said="no")
    found = calibrate([main, alone, paired, replace(main, condition=SHUFFLED, said="yes")])
    assert (found.gain_over_no_video.value, found.gain_over_no_video.n) == (1.0, 1)
    assert (found.gain_over_shuffled.value, found.gain_over_shuffled.n) == (0.0, 1)
    assert found.accuracy_without_video.n == 2
    assert calibrate([replace(main, condition=OTHER_ORDER)]).order_effect.value is None


def test_share_by_hand():
    # 3 of 4 in two scenes; design effect 4/3; t with one degree of freedom is 12.7062
    n = 4 / (4 / 3) * (1.959964 / 12.706205) ** 2
    weight = 1.959964**2 / n
    half = 1.959964 * math.sqrt(0.75 * 0.25 / n + weight / (4 * n)) / (1 + weight)
    found = share([("a", True), ("a", True), ("b", False), ("b", True)])
    assert found.value == 0.75
    assert found.upper == pytest.approx((0.75 + weight / 2) / (1 + weight) + half, rel=1e-5)


def test_difference_of_equal_values_keeps_some_width():
    found = mean_difference([("a", 0.0), ("b", 0.0), ("c", 0.0)])
    assert found.value == 0.0
    assert found.upper == -found.lower
    assert 0.5 < found.upper < 1.0


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=40))
def test_shares_lie_within_their_interval(answers):
    found, turned = share(answers), share([(scene, not value) for scene, value in answers])
    assert found.n == len(answers)
    if found.lower is None:
        assert found.scenes == 1
        return
    assert 0 <= found.lower <= found.value <= found.upper <= 1
    assert found.lower < found.upper
    assert turned.lower == pytest.approx(1 - found.upper)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([-1.0, 0.0, 1.0])), min_size=1, max_size=40))
def test_differences_turn_with_their_sign(pairs):
    found, turned = mean_difference(pairs), mean_difference([(scene, -value) for scene, value in pairs])
    assert turned.value == pytest.approx(-found.value)
    if found.lower is not None:
        assert -1 <= found.lower <= found.value <= found.upper <= 1
        assert turned.lower == pytest.approx(-found.upper)
