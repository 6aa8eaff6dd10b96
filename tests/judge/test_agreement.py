"""Agreement between judges, and soft scores."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.records import Answer, Reason
from judge.agreement import agreement, mean_kappa, pairs
from judge.questions import JudgeQuestion
from judge.soft import confidence, soft_right, yes_probability


def said(*words, sample="s"):
    names = {"y": "yes", "n": "no", "?": None}
    return {(sample, "0", f"q{place}"): names[word] for place, word in enumerate("".join(words))}


def test_kappa_by_hand():
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.7, by chance 0.5 x 0.6 + 0.5 x 0.4 = 0.5
    a, b = said("y" * 25, "n" * 25), said("y" * 20, "n" * 5, "y" * 10, "n" * 15)
    found = agreement(a, b)
    assert (found.n, found.samples, found.raw) == (50, 1, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert (found.yes_a, found.yes_b) == (0.5, 0.6)
    assert found.raw_interval is None  # one sample


def test_no_variance_has_no_kappa():
    found = agreement(said("yyy"), said("yyy"))
    assert (found.raw, found.kappa, found.reason) == (1.0, None, Reason.NO_VARIANCE)


def test_unread_replies_are_left_out_and_counted():
    found = agreement(said("y?ny"), said("yyn?"))
    assert (found.n, found.raw, found.unread_a, found.unread_b) == (2, 1.0, 1, 1)
    nothing = agreement(said("?"), said("y"))
    assert (nothing.n, nothing.raw, nothing.kappa, nothing.reason) == (0, None, None, None)
    with pytest.raises(ValueError, match="perhaps"):
        agreement({("s", "q"): "perhaps"}, said("y") | {("s", "q"): "yes"})


def test_pairs_by_domain_and_what_one_side_lacks():
    a = said("yn", sample="av_1") | said("yn", sample="robot_1") | said("y", sample="zoo_1")
    b = said("yn", sample="av_1") | said("ny", sample="robot_1") | said("yn", sample="zoo_1")
    found = pairs({"a": a, "b": b, "c": a}, resamples=200)
    assert [(one.a, one.b) for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    first = found[0]
    assert {name: one.kappa for name, one in first.by_domain.items()} == {"av": 1.0, "robot": -1.0}
    assert (first.overall.n, first.only_a, first.only_b) == (5, 0, 1)
    assert first.overall.raw_interval.lower <= 0.6 <= first.overall.raw_interval.upper
    assert mean_kappa(found) == pytest.approx(sum(one.overall.kappa for one in found) / 3)
    assert mean_kappa([]) is None
    assert first.to_json()["overall"]["raw_interval"]["upper"] == first.overall.raw_interval.upper


words = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("yn?"), st.sampled_from("yn?")), max_size=30)


@settings(max_examples=50)
@given(words)
def test_agreement_does_not_care_who_is_first(answers):
    names = {"y": "yes", "n": "no", "?": None}
    a = {(sample, str(place)): names[one] for place, (sample, one, _) in enumerate(answers)}
    b = {(sample, str(place)): names[one] for place, (sample, _, one) in enumerate(answers)}
    one, other = agreement(a, b, resamples=50), agreement(b, a, resamples=50)
    assert (one.raw, one.kappa, one.raw_interval) == (other.raw, other.kappa, other.raw_interval)
    if one.kappa is not None:
        assert -1 <= one.kappa <= one.raw
    itself = agreement(a, a, resamples=0)
    assert itself.raw in (None, 1.0)
    assert itself.kappa in (None, 1.0)


def test_yes_and_no_are_merged_over_their_spellings():
    half = math.log(0.5)
    assert yes_probability({"Yes": half, "No": half}) == 0.5
    assert yes_probability({"YES": half, " yes": math.log(0.25), "no.": math.log(0.25)}) == pytest.approx(0.75)
    assert yes_probability({"Yes": -9999.0, "No": 0.0}) == 0.0
    assert yes_probability({"▁Yes": half, "ĠNo": half, "Maybe": 0.0}) == 0.5


@pytest.mark.parametrize(
    "chances",
    [
        None,
        {},
        {"Yes": -0.1},
        {"No": -0.1, "Maybe": -3.0},
        {"Yes": -math.inf, "No": -math.inf},
        {"Yes": math.nan, "No": -1.0},
    ],
)
def test_absent_log_probabilities_give_no_guess(chances):
    assert yes_probability(chances) is None


@given(st.dictionaries(st.sampled_from(["Yes", "yes", "NO", "no", "It"]), st.floats(-30, 0)))
def test_probabilities_of_both_words_add_up(chances):
    found = yes_probability(chances)
    swapped = {"Yes": "No", "yes": "no", "NO": "YES", "no": "yes", "It": "It"}
    other = yes_probability({swapped[token]: chance for token, chance in chances.items()})
    if {token.casefold() for token in chances} >= {"yes", "no"}:
        assert found + other == pytest.approx(1)
    else:
        assert found is other is None


def test_soft_scores_of_answers():
    options = {"A": "Yes", "B": "No"}
    yes, no = JudgeQuestion("s", "q0", "?", options, "A"), JudgeQuestion("s", "q1", "?", options, "B")
    chances = {"Yes": math.log(0.8), "No": math.log(0.2)}
    answer = Answer("m", "s", "0", "q0", chances=chances)
    assert soft_right(yes, answer) == pytest.approx(0.8)
    assert soft_right(no, answer) == pytest.approx(0.2)
    assert soft_right(JudgeQuestion("s", "q", "?", {"A": "left"}, "A"), answer) is None


def test_confidence_by_hand():
    answers = [("a", 0.9, True), ("a", 0.95, True), ("b", 0.92, False), ("b", 0.1, False), ("c", None, True)]
    found = confidence(answers)
    assert (found.n, found.absent) == (4, 1)
    assert found.brier == pytest.approx((0.01 + 0.0025 + 0.92**2 + 0.01) / 4)
    # bins: [0.9, 1] has three of mean 0.92333 and share 2/3, [0.1, 0.2) one of 0.1 and share 0
    assert found.error == pytest.approx((3 * abs(2.77 / 3 - 2 / 3) + 0.1) / 4)
    assert [one.n for one in found.curve] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert found.brier_interval.lower <= found.brier <= found.brier_interval.upper
    assert confidence([("a", None, True)]).brier is None
    with pytest.raises(ValueError, match=r"1\.5"):
        confidence([("a", 1.5, True)])


def test_a_simulated_judge_is_calibrated(trials_of):
    """Its probabilities follow from its parameters: what it calls 0.9 is true nine times in ten."""
    trials = [one for one in trials_of(scenes=60, questions=10, logprobs=5, conditions=[""]) if one.said is not None]
    found = confidence([(one.scene, one.chance, one.truth == "yes") for one in trials])
    assert (found.n, found.absent) == (600, 0)
    assert found.error < 0.04
    assert found.brier == pytest.approx(0.9 * 0.1, abs=0.03)  # p (1 - p) of a calibrated 0.9
