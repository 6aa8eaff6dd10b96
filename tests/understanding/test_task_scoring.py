"""Counts, intervals, floors, comparisons: by hand, and properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from gen_eval.records import Flag, Reason, Status
from understanding import task
from understanding.scoring.comparing import compare, exact_p, mcnemar
from understanding.scoring.intervals import over_clusters
from understanding.scoring.rotation import rotation_report

FOUR = {"A": "one", "B": "two", "C": "three", "D": "four"}


def sample(name, answer="A", options=FOUR, **more):
    return task("pai/u").sample({"id": name, "question": "Which?", "options": options, "answer": answer, **more})


def scores(answers, **more):
    """`answers`: sample -> what was read, or a reason."""
    bound = task("pai/u")
    found = []
    for name, said in answers.items():
        one = sample(name, **more)
        found.append(bound.gap(one, said) if isinstance(said, Reason) else bound.score(said, one))
    return found


def test_a_case_by_hand():
    found = task("pai/u").aggregate(
        scores({"a": "A", "b": "B", "c": None, "d": Reason.MISSING_REPLY, "e": Reason.MISSING_MEDIA}), resamples=0
    )
    assert (found.whole.correct, found.n, found.N) == (1, 4, 5)  # an absent reply is wrong, an absent clip is no answer
    assert found.metrics == {"accuracy": 0.25}
    assert found.unparsed == {"no_answer": 1}
    assert found.coverage["without"] == {"missing_media": 1, "missing_reply": 1}
    assert found.whole.missing == {"missing_media": 1, "missing_reply": 1}
    assert found.floors["random_guess"] == 0.25
    assert found.floors["letter"] == "A"


@pytest.mark.parametrize(
    ("reason", "value", "status"),
    [
        (Reason.MISSING_REPLY, 0.0, Status.FAILED),
        (Reason.CONTENT_FILTER, 0.0, Status.REFUSED),
        (Reason.ENDPOINT_ERROR, None, Status.FAILED),
        (Reason.CONTEXT_OVERFLOW, None, Status.FAILED),
        (Reason.MISSING_MEDIA, None, Status.FAILED),
        (Reason.UNDECODABLE, None, Status.FAILED),
    ],
)
def test_what_a_gap_is_worth(reason, value, status):
    found = task("pai/u").gap(sample("a"), reason)
    assert (found.value, found.status, found.reason) == (value, status, reason)


def test_a_question_without_a_right_answer_is_not_scored():
    with pytest.raises(ValueError, match="no right answer"):
        task("pai/u").score("A", sample("a", answer=None))
    with pytest.raises(ValueError, match="none of the options"):
        task("pai/u").score("A", sample("a", answer="D", options={"A": "one", "D": None}))


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_exact_p_is_that_of_the_binomial_test(one, other):
    p = exact_p(one, other)
    assert p == exact_p(other, one)
    expected = 1.0 if one + other == 0 else binomtest(one, one + other).pvalue
    assert p == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_mcnemar_by_hand():
    first = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0, "e": 1.0, "f": None}
    second = {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0, "e": 0.0, "g": 1.0}
    found = mcnemar(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 2, 1, 1)
    assert found.p_value == 1.0  # 2 against 1: 2 * (1 + 3) / 8
    assert mcnemar({"a": 0.5}, {"a": 1.0}) is None


def test_a_comparison_is_paired_and_changes_sign_with_the_order():
    first = {str(place): float(place % 2) for place in range(20)}
    second = {name: 1.0 if name in {"0", "2", "4"} else value for name, value in first.items()}
    clusters = {name: int(name) // 2 for name in first}
    there, back = compare(first, second, clusters), compare(second, first, clusters)
    assert there.difference.difference == pytest.approx(0.15)
    assert back.difference.difference == -there.difference.difference
    assert (there.test.only_second, there.test.only_first) == (3, 0)
    assert there.difference.lower > 0 - 1e-12
    assert "clusters" in there.difference.interval.method


def test_questions_of_one_video_count_together_in_the_interval():
    values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    alone = over_clusters(values, list(range(8)))
    shared = over_clusters(values, [0, 0, 0, 0, 1, 1, 1, 1])
    assert shared.upper - shared.lower > alone.upper - alone.lower
    assert over_clusters(values, ["one"] * 8) is None


def test_several_seeds_mean_and_spread():
    bound = task("pai/u")
    said = {"0": "AAB", "1": "AAA", "2": "ABB"}
    found = [
        bound.score(letter, sample(f"q{place}"), member=seed)
        for seed, letters in said.items()
        for place, letter in enumerate(letters)
    ]
    one = bound.aggregate(found, resamples=0)
    assert one.metrics["accuracy"] == pytest.approx((1 + 2 / 3 + 1 / 3) / 3)
    assert one.seeds["accuracy"] == pytest.approx({"0": 2 / 3, "1": 1.0, "2": 1 / 3})
    assert one.seeds["std"] == pytest.approx(1 / 3)
    assert one.whole.wilson is None  # its questions were asked several times


@given(st.permutations("ABCDEF"))
def test_the_order_of_scores_changes_nothing(order):
    answers = {name: "A" if name < "D" else None for name in order}
    one = task("pai/u").aggregate(scores(answers), resamples=20).to_json()
    two = task("pai/u").aggregate(scores(dict(sorted(answers.items()))), resamples=20).to_json()
    one.pop("reference"), two.pop("reference")  # their lines follow the order of the data
    assert one == two


@given(st.integers(0, 9), st.sampled_from("ABCD"))
def test_a_rotation_moves_the_right_letter_along(places, answer):
    one = sample("a", answer)
    turned = one.rotated(places)
    assert turned.options[turned.answer] == one.options[one.answer]
    assert sorted(turned.options.values()) == sorted(one.options.values())
    assert {turned.original(letter) for letter in "ABCD"} == set("ABCD")
    assert all(turned.options[letter] == one.options[turned.original(letter)] for letter in "ABCD")
    assert task("pai/u").score(turned.answer, turned).value == 1.0


def test_rotation_tells_content_from_position():
    bound = task("pai/u")
    names = ["a", "b"]
    looks = [bound.score(one.answer, one) for name in names for one in map(sample(name, "C").rotated, range(4))]
    first = [bound.score("A", one) for name in names for one in map(sample(name, "C").rotated, range(4))]
    found, biased = rotation_report(looks), rotation_report(first)
    assert found["same_answer"] == {"n": 2, "same": 2}
    assert biased["same_answer"] == {"n": 2, "same": 0}
    assert biased["letters"]["A"] == {"chosen": 1.0, "right": 0.25}
    assert {one["accuracy"] for one in found["rotations"].values()} == {1.0}
    assert math.fsum(one["correct"] for one in biased["rotations"].values()) == 2


def test_seeds_of_a_rotated_question_are_averaged_first():
    bound = task("pai/u")
    orders = [sample("a", "C").rotated(places) for places in range(4)]
    looks = [bound.score(one.answer, one, member="0") for one in orders]
    first = [bound.score("A", one, member="1") for one in orders]
    found = rotation_report([*looks, *first])
    assert (found["questions"], found["seeds"]) == (1, 2)
    # seed 0 is right in every order, seed 1 only where the right text stands under A (moved on by two)
    assert [one["correct"] for one in found["rotations"].values()] == [0.5, 0.5, 1, 0.5]
    assert {one["n"] for one in found["rotations"].values()} == {1}
    assert found["same_answer"] == {"n": 1, "same": 0.5}
    assert found["letters"]["A"] == {"chosen": (1 + 3 * 0.5) / 4, "right": 0.25}
    assert found == rotation_report([*first, *looks])
    unread = rotation_report([*looks[:3], bound.score(None, orders[3], member="0")])
    assert unread["same_answer"] == {"n": 0, "same": 0}


def test_a_drawn_letter_is_reported_beside_as_wrong():
    from dataclasses import replace

    from gen_eval.replies import Reading

    bound = task("pai/u", protocol="reference")
    drawn = bound.score(Reading("A", rule="drawn", flags=(Flag.RANDOM_DRAW,)), sample("a"))
    read = replace(bound.score("A", sample("b")))
    found = bound.aggregate([drawn, read], resamples=0)
    assert found.metrics == {"accuracy": 1.0, "accuracy_draws_wrong": 0.5}
    assert found.flags == {"random_draw": 1}
    assert found.dialect == "paibench_u"
