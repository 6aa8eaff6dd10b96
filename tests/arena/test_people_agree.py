"""Agreement between people and with themselves, through ``gen_eval.arena.agreement``."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.arena import Answer, Vote, agreement
from gen_eval.records import Reason

ANSWERS = tuple(Answer)
votes_of_people = st.lists(
    st.builds(
        lambda sample, who, pair, answer, turned, left, seconds: (sample, who, pair, answer, turned, left, seconds),
        st.sampled_from("stu"),
        st.sampled_from([None, "p", "q", "r"]),
        st.sampled_from([("x", "y"), ("x", "z")]),
        st.sampled_from(ANSWERS),
        st.booleans(),
        st.sampled_from("ab"),
        st.sampled_from([None, 1.0, 20.0]),
    ),
    max_size=14,
).map(
    lambda rows: [
        Vote(f"v{place}", sample, who, *(pair[::-1] if turned else pair), answer, shown_left=left, seconds=seconds)
        for place, (sample, who, pair, answer, turned, left, seconds) in enumerate(rows)
    ]
)


def vote(place, who, answer, sample="s", pair="xy", **more):
    return Vote(f"v{place}", sample, who, *pair, quality=Answer(answer), **more)


def swapped(one):
    """The same vote with A and B exchanged on paper, the videos staying where they stood."""
    return replace(
        one,
        model_a=one.model_b,
        model_b=one.model_a,
        seed_a=one.seed_b,
        seed_b=one.seed_a,
        quality=one.quality and one.quality.swapped,
        plausibility=one.plausibility and one.plausibility.swapped,
        shown_left={"a": "b", "b": "a"}.get(one.shown_left),
    )


@pytest.fixture
def golden(goldens):
    return json.loads((goldens / "elo" / "agreement.json").read_text())


def test_golden(golden):
    votes = [
        {"sample": item, "annotator": who, "model_a": "x", "model_b": "y", "quality": answer}
        for who, item, answer in golden["votes"]
    ]
    found = agreement(votes, "quality", resamples=200)
    assert found.alphas["nominal"].value == pytest.approx(golden["alpha_nominal_four_labels"], abs=1e-9)
    assert found.alphas["ties_merged"].value == pytest.approx(golden["alpha_nominal_ties_merged"], abs=1e-9)
    assert found.alphas["interval"].value == pytest.approx(golden["alpha_interval_win_half_loss"], abs=1e-9)
    for pair, expected in zip(found.pairs, golden["pairwise"], strict=True):
        assert [pair.a, pair.b, pair.shared] == [*expected["pair"], expected["shared"]]
        assert pair.agreement == pytest.approx(expected["agreement"], abs=1e-9)
        assert pair.kappa == pytest.approx(expected["kappa"], abs=1e-9)
    kappas = [pair["kappa"] for pair in golden["pairwise"]]
    assert (found.mean_kappa, found.kappas) == (pytest.approx(sum(kappas) / 6), 6)
    assert (found.items, found.shared, found.reason) == (30, 28, None)
    # every pair of answers weighs the same: 90 of them, 54 equal
    equal = sum(round(pair["agreement"] * pair["shared"]) for pair in golden["pairwise"])
    assert (found.raw.equal, found.raw.n) == (equal, sum(pair["shared"] for pair in golden["pairwise"]))
    for one in (found.raw.interval, *(alpha.interval for alpha in found.alphas.values())):
        assert one.lower < one.upper
    assert agreement(votes, "plausibility").votes == 0
    json.dumps(found.to_json(), allow_nan=False)
    assert "alpha, four answers: 0.433" in str(found)


def test_by_hand():
    votes = [
        vote(0, "p", "a"),
        vote(1, "q", "b", pair="yx"),  # the same answer from the other side
        vote(2, "r", "both_good"),
        vote(3, "p", "b", sample="t"),
        vote(4, "q", "both_bad", sample="t"),
        vote(5, None, "b", sample="t"),
    ]
    found = agreement(votes, "quality", resamples=0)
    assert (found.votes, found.unnamed, found.items, found.shared) == (6, 1, 2, 2)
    assert (found.raw.equal, found.raw.n, found.raw.interval) == (1, 4, None)
    assert [(one.a, one.b, one.shared, one.agreement) for one in found.pairs] == [
        ("p", "q", 2, 0.5),
        ("p", "r", 1, 0.0),
        ("q", "r", 1, 0.0),
    ]
    # p says a, b; q says a, both_bad: chance 1/4, (1/2 - 1/4) / (3/4); r never agrees, and chance never does either
    assert [one.kappa for one in found.pairs] == [pytest.approx(1 / 3), 0.0, 0.0]
    # items (a, a, good), (b, bad): apart 4 / 2 and 2; five labels 2, 1, 1, 1: 1 - 4 * 4 / (25 - 7)
    assert found.alphas["nominal"].value == pytest.approx(1 - 16 / 18)
    # on 1, 1, .5 and 0, .5: (4 * 1/4) / 2 and 2 * 1/4; mean .6: sum of squares 2.5 - 1.8, all pairs 2 * 5 * .7
    assert found.alphas["interval"].value == pytest.approx(1 - 4 * 1.0 / 7.0)
    p, q, r = found.annotators
    assert (p.agreement.count, p.agreement.n, q.agreement.count, r.agreement.count, r.agreement.n) == (1, 3, 1, 0, 2)
    assert (q.ties.value, q.both_bad.value, q.both_good.value) == (0.5, 0.5, 0.0)
    assert (q.a.count, q.a.n, p.a.count, p.a.n) == (0, 1, 1, 2)
    assert 0 < p.a.lower < 0.5 < p.a.upper < 1


def test_generations_are_items_of_their_own():
    first = vote(0, "p", "a", seed_a="0", seed_b="1")
    assert agreement([first, vote(1, "q", "b", pair="yx", seed_a="1", seed_b="0")], "quality").raw.equal == 1
    other = agreement([first, vote(1, "q", "a", seed_a="0", seed_b="2")], "quality")
    assert (other.items, other.shared, other.reason) == (2, 0, Reason.NOT_CONNECTED)
    assert agreement([first, vote(1, "q", "a")], "quality").shared == 0


def test_a_repeated_vote_is_no_second_person():
    votes = [
        vote(0, "p", "a"),
        vote(1, "p", "b", pair="yx"),  # sides swapped, the same winner
        vote(2, "p", "b"),
        vote(3, "p", "a", pair="yx", shown_left="b"),  # x on the left again: the winner is y
        vote(4, "q", "both_bad"),
    ]
    found = agreement(votes, "quality")
    assert (found.raw.equal, found.raw.n, found.shared) == (0, 1, 1)
    assert (found.consistency.everything.count, found.consistency.everything.n) == (1, 3)
    assert (found.consistency.swapped.count, found.consistency.swapped.n) == (1, 1)
    assert (found.consistency.same_side.count, found.consistency.same_side.n) == (0, 2)
    p, q = found.annotators
    assert (p.votes, p.consistency, q.consistency.everything.value) == (4, found.consistency, None)
    alone = agreement(votes[:4], "quality")
    assert (alone.raw.value, alone.reason, alone.mean_kappa) == (None, Reason.NOT_CONNECTED, None)
    assert "only 'p' answered" in alone.message
    assert alone.consistency == found.consistency


def test_nobody_is_named_or_shares_an_item():
    unnamed = agreement([vote(0, None, "a"), vote(1, None, "a")], "quality")
    assert (unnamed.reason, unnamed.unnamed, unnamed.annotators) == (Reason.NOT_CONNECTED, 2, ())
    assert "no answer names an annotator" in unnamed.message
    assert {one.reason for one in unnamed.alphas.values()} == {Reason.NOT_CONNECTED}
    apart = agreement([vote(0, "p", "a"), vote(1, "q", "a", sample="t")], "quality")
    assert "no two of the 2 annotators" in apart.message
    assert [one.reason for one in apart.annotators] == [Reason.NOT_CONNECTED] * 2
    assert apart.raw.to_json()["value"] is None
    bare = agreement([("x", "y", 1.0)], "quality")
    assert (bare.votes, bare.reason) == (0, Reason.NOT_CONNECTED)
    with pytest.raises(ValueError, match="'overall'; expected one of quality"):
        agreement([], "overall")


def test_all_answers_equal():
    found = agreement([vote(0, "p", "a"), vote(1, "q", "a")], "quality")
    assert (found.raw.value, found.reason) == (1.0, None)
    assert {one.reason for one in found.alphas.values()} == {Reason.NO_VARIANCE}
    assert (found.pairs[0].kappa, found.pairs[0].reason) == (None, Reason.NO_VARIANCE)


def test_warnings():
    answers = ["a", "b"] * 6
    votes = []
    for place, answer in enumerate(answers):
        own = {
            "p": (answer, 20.0),
            "q": (answer, 30.0),
            "r": (answer, 40.0),
            "contrary": ("a" if answer == "b" else "b", 24.0),
            "lefty": ("a", 5.0),
        }
        votes += [
            vote(f"{place}{who}", who, said, sample=str(place), seconds=seconds) for who, (said, seconds) in own.items()
        ]
    found = {one.name: one for one in agreement(votes, "quality", resamples=0).annotators}
    assert found["p"].warnings == found["q"].warnings == found["r"].warnings == ()
    assert found["contrary"].warnings == ("below_chance",)
    # the rest are half a, half b: what is always a agrees by chance. 5 s is below a third of 27 s.
    assert found["lefty"].warnings == ("always_same", "below_chance", "fast")
    assert (found["lefty"].a.value, found["lefty"].median_seconds, found["lefty"].timed) == (1.0, 5.0, 12)
    few = agreement([one for one in votes if int(one.sample) < 9], "quality", resamples=0)
    assert [one.warnings for one in few.annotators] == [()] * 5


@given(votes=votes_of_people, random=st.randoms())
@settings(max_examples=40)
def test_properties(votes, random):
    found = agreement(votes, "quality", resamples=50).to_json()
    # exchanging A and B on paper moves the shares of A and nothing else
    turned = [swapped(one) if random.random() < 0.5 else one for one in votes]
    other = agreement(turned, "quality", resamples=50).to_json()
    for one in (found, other):
        for person in one["annotators"]:
            del person["a"]
    assert other == found
    # names of people and systems carry nothing
    names = {None: None, "p": "r", "q": "p", "r": "q"}
    renamed = agreement([replace(one, annotator=names[one.annotator]) for one in votes], "quality", resamples=50)
    assert renamed.raw.to_json() == found["raw"]
    assert {name: one.to_json() for name, one in renamed.alphas.items()} == found["alphas"]
    # so does their order where nobody is asked twice
    firsts = list(
        {(one.annotator, one.sample, one.model_a, one.model_b): one for one in votes if one.annotator}.values()
    )
    firsts = [one for one in firsts if one.model_a < one.model_b]
    straight = agreement(firsts, "quality", resamples=50)
    assert agreement(random.sample(firsts, len(firsts)), "quality", resamples=50) == straight
    # one person's answers given by everybody are agreement
    copies = [
        replace(one, annotator=who, id=f"{one.id}{who}") for one in firsts for who in "mn" if one.annotator == "p"
    ]
    if copies:
        assert agreement(copies, "quality", resamples=0).raw.value == 1.0
