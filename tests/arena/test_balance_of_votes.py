"""How votes are spread, through ``gen_eval.arena.balance`` and ``pair_counts``."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.arena import Answer, Vote, balance, pair_counts
from gen_eval.arena.balance import Evenness

ROWS = [
    ("s", "p", "x", "y", "a", "a", "a"),
    ("s", "q", "y", "x", "a", "both_good", "b"),
    ("t", "p", "x", "y", "both_good", None, None),
    ("t", "q", "y", "x", "both_bad", "b", "b"),
    ("t", None, "x", "z", "b", "both_bad", None),
]
some_votes = st.lists(
    st.tuples(
        st.sampled_from("st"),
        st.sampled_from([None, "p", "q"]),
        st.sampled_from([("x", "y"), ("z", "y"), ("x", "z")]),
        st.one_of(st.none(), st.sampled_from(tuple(Answer))),
        st.one_of(st.none(), st.sampled_from(tuple(Answer))),
    ).filter(lambda row: row[3] or row[4]),
    max_size=12,
)


def votes_of(rows):
    return [
        Vote(f"v{place}", sample, who, a, b, quality and Answer(quality), other and Answer(other), shown_left=left)
        for place, (sample, who, a, b, quality, other, left) in enumerate(rows)
    ]


def test_pairs_by_hand():
    xy, xz, yz = pair_counts(votes_of(ROWS))
    assert (xy.a, xy.b, xy.votes, xy.samples) == ("x", "y", 4, 2)
    quality, plausibility = xy.answers["quality"], xy.answers["plausibility"]
    assert (quality.a, quality.b, quality.both_good, quality.both_bad, quality.n) == (1, 1, 1, 1, 4)
    assert (quality.ties, quality.good_of_ties) == (2, 0.5)
    # x won once itself and once as B; the third vote does not answer
    assert (plausibility.a, plausibility.b, plausibility.both_good, plausibility.n) == (2, 0, 1, 3)
    assert (plausibility.good_of_ties, xz.answers["quality"].good_of_ties) == (1.0, None)
    assert xy.share("quality") == 0.5
    # overall: 1, (0 + 1/2) / 2, (1/2 + 1) / 2
    assert (xy.share("overall"), xy.counted["overall"]) == (pytest.approx(2 / 3), 3)
    assert (xz.votes, xz.share("overall")) == (1, 0.25)
    assert (yz.a, yz.b, yz.votes, yz.share("quality"), yz.answers["quality"].n) == ("y", "z", 0, None, 0)
    json.dumps([one.to_json() for one in (xy, xz, yz)], allow_nan=False)


def test_balance_by_hand():
    found = balance(votes_of(ROWS))
    assert (found.votes, found.samples, found.annotators, found.unnamed) == (5, 2, {"p": 2, "q": 2}, 1)
    assert found.models == {"x": 5, "y": 4, "z": 1}
    assert found.of_models.to_json() == {
        "n": 3,
        "without": 0,
        "least": 1,
        "most": 5,
        "mean": pytest.approx(10 / 3),
        "effective": pytest.approx(100 / 42),
        "ratio": 5.0,
        "evenness": pytest.approx(100 / 126),
    }
    assert (found.of_pairs.without, found.of_pairs.least, found.of_pairs.ratio) == (1, 0, None)
    assert found.of_pairs.effective == pytest.approx(25 / 17)
    assert (found.of_samples.least, found.of_samples.most, found.of_samples.mean) == (2, 3, 2.5)
    assert {name: (one.count, one.n) for name, one in found.as_a.items()} == {"x": (3, 5), "y": (2, 4), "z": (0, 1)}
    assert {name: (one.count, one.n) for name, one in found.answers_a.items()} == {
        "quality": (2, 3),
        "plausibility": (1, 2),
    }
    # sides were told three times; quality: left, right, tie; plausibility: left, tie, left
    assert {name: (one.count, one.n) for name, one in found.answers_left.items()} == {
        "quality": (1, 2),
        "plausibility": (2, 2),
    }
    json.dumps(found.to_json(), allow_nan=False)
    assert "5 votes, 2 samples, 2 annotators" in str(found)
    assert "66.7 % [20.8, 93.9] (n = 3)" in str(found)


def test_nothing_and_comparisons_without_questions():
    nothing = balance([])
    assert (nothing.votes, nothing.pairs, nothing.of_models, nothing.of_samples) == (0, (), None, None)
    assert nothing.answers_a["quality"].value is None
    bare = balance([("x", "y", 1.0), ("y", "x", 0.5), ("y", "z", 0.0)])
    xy, xz, yz = bare.pairs
    assert (xy.votes, xy.points["overall"], xy.share("overall"), xy.share("quality")) == (2, 1.5, 0.75, None)
    assert (xz.votes, yz.share("overall"), yz.answers["quality"].n) == (0, 0.0, 0)
    assert {name: one.count for name, one in bare.as_a.items()} == {"x": 1, "y": 2, "z": 0}


@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_evenness(counts):
    found = Evenness.of(counts)
    if not any(counts):
        assert found is None
        return
    assert 1 - 1e-12 <= found.effective <= len(counts) + 1e-12
    assert (found.evenness == pytest.approx(1)) == (len(set(counts)) == 1)
    assert Evenness.of(counts[::-1]).effective == found.effective
    assert Evenness.of([3 * count for count in counts]).effective == pytest.approx(found.effective)


@given(rows=some_votes, random=st.randoms())
@settings(max_examples=40)
def test_properties(rows, random):
    def turned(row):
        sample, who, pair, quality, plausibility = row
        return sample, who, pair[::-1], quality and quality.swapped, plausibility and plausibility.swapped

    def counted(rows):
        return pair_counts([Vote(str(i), s, who, *pair, *rest) for i, (s, who, pair, *rest) in enumerate(rows)])

    found = counted(rows)
    assert sum(one.votes for one in found) == len(rows)
    assert counted([turned(row) if random.random() < 0.5 else row for row in rows]) == found
    assert counted(random.sample(rows, len(rows))) == found
    for one in found:
        for question, counts in one.answers.items():
            assert one.counted[question] == counts.n
            assert one.points[question] == counts.a + counts.ties / 2
