"""Scores of single videos, and what they prefer: ``read_video_scores`` and ``votes_from_scores``."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen_eval.arena import VideoScores, read_video_scores, votes_from, votes_from_scores
from gen_eval.records import InputError

slow = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def row(model, sample, value, member="0", metric="m", protocol="corrected", **more):
    return {
        "model": model, "sample": sample, "member": member, "metric": metric, "protocol": protocol, "value": value,
        **more,
    }  # fmt: skip


ROWS = [
    row("x", "s", 0.5, "0", status="ok"),
    row("x", "s", 0.7, "1", status="ok"),
    row("y", "s", None, status="failed"),
    row("y", "t", 0.9, status="undefined"),  # only what is ok counts
    row("y", "t", 0.4, "1", status="ok"),
    row("x", "s", 3.0, metric="m", protocol="reference", status="ok"),
    row("x", "s", 2.0, metric="error", status="ok"),
]
EXPECTED = {
    ("error", "corrected"): {("x", "s"): {"0": 2.0}},
    ("m", "corrected"): {("x", "s"): {"0": 0.5, "1": 0.7}, ("y", "s"): {}, ("y", "t"): {"1": 0.4}},
    ("m", "reference"): {("x", "s"): {"0": 3.0}},
}


@pytest.fixture
def write(tmp_path):
    def make(name, rows):
        path = tmp_path / name
        if name.endswith(".csv"):
            pd.DataFrame(rows).to_csv(path, index=False)
        elif name.endswith(".parquet"):
            pd.DataFrame(rows).to_parquet(path)
        else:
            path.write_text("\n".join(map(json.dumps, rows)) if name.endswith(".jsonl") else json.dumps(rows))
        return path

    return make


def content_of(scores):
    return {(one.metric, one.protocol): {key: dict(members) for key, members in one.values.items()} for one in scores}


@pytest.mark.parametrize("name", ["v.csv", "v.jsonl", "v.json", "v.parquet"])
def test_tables_of_videos(write, name):
    found = read_video_scores(write(name, ROWS), higher_is_better={"error": False})
    assert content_of(found) == EXPECTED
    assert [one.higher_is_better for one in found] == [False, True, True]
    assert [one.higher_is_better for one in read_video_scores(write(name, ROWS), higher_is_better=False)] == [False] * 3


def test_documents_of_one_run_and_of_several(write):
    runs = [
        {"model": name, "condition": condition, "aggregate": {}, "rows": [one for one in ROWS if one["model"] == name]}
        for name, condition in (("x", None), ("y", "text"))
    ]
    named = {
        key: {(("y, text" if model == "y" else model), sample): members for (model, sample), members in values.items()}
        for key, values in EXPECTED.items()
    }
    assert content_of(read_video_scores(write("v.json", {"runs": runs, "tables": []}))) == named
    assert content_of(read_video_scores(write("v.json", {"runs": dict(enumerate(runs))}))) == named
    assert content_of(read_video_scores(write("v.json", runs[1]))) == {
        ("m", "corrected"): {("y, text", "s"): {}, ("y, text", "t"): {"1": 0.4}}
    }


def test_numbers_by_system_are_no_scores_of_videos(write, goldens):
    assert read_video_scores(goldens / "papers" / "pai_table8.csv") == []
    assert read_video_scores(write("v.json", {"trackers": {}})) == []
    assert read_video_scores(write("v.jsonl", [])) == []
    with pytest.raises(InputError, match="has no sample, and later rows have"):
        read_video_scores(write("v.jsonl", [{"model": "x", "score_a": 1}, ROWS[0]]))


def test_a_member_may_be_a_number_or_absent(write):
    rows = [row("x", "s", 1, 7), row("x", "t", "2", None), {"model": "x", "sample": "u", "metric": "m", "value": 3}]
    assert content_of(read_video_scores(write("v.jsonl", rows))) == {
        ("m", ""): {("x", "u"): {"0": 3.0}},
        ("m", "corrected"): {("x", "s"): {"7": 1.0}, ("x", "t"): {"0": 2.0}},
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": None}, "missing_field"),
        ({"metric": 3}, "malformed_record"),
        ({"value": "high"}, "malformed_record"),
        ({"value": True}, "malformed_record"),
        ({"value": "nan"}, "malformed_record"),
        ({"member": 0.5}, "malformed_record"),
        ({"sample": "\0"}, "malformed_record"),
    ],
)
def test_a_row_that_cannot_be_used_is_listed_or_ends_the_reading(write, change, reason):
    path = write("v.jsonl", [ROWS[0], {**ROWS[1], **change}])
    rejected = []
    assert content_of(read_video_scores(path, rejected=rejected)) == {("m", "corrected"): {("x", "s"): {"0": 0.5}}}
    assert [(one.where, str(one.reason)) for one in rejected] == [("v.jsonl:2", reason)]
    with pytest.raises(InputError, match=r"first v\.jsonl:2"):
        read_video_scores(path)


def test_a_video_has_one_score(write):
    with pytest.raises(InputError, match=r"two scores m corrected of 'x', sample 's', member '0'"):
        read_video_scores(write("v.jsonl", [ROWS[0], ROWS[0]]))


@slow
@given(content=st.binary(max_size=150), name=st.sampled_from(["v.csv", "v.jsonl", "v.json", "v.parquet"]))
def test_any_bytes_give_scores_or_an_input_error(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(b"model,sample,metric,value\nx,s,m,1\n" * name.endswith(".csv") + content)
    try:
        found = read_video_scores(path, rejected=[])
    except InputError:
        found = []
    assert all(key[0] and key[1] for one in found for key in one.values)


# --- preferences ---------------------------------------------------------------------------------------------------


def scores_of(table, **more):
    """Scores from {sample: {system: value or members}}."""
    return VideoScores(
        "m",
        {
            (system, sample): value if isinstance(value, dict) else {"0": value}
            for sample, systems in table.items()
            for system, value in systems.items()
        },
        **more,
    )


def triples_of(comparisons):
    names = comparisons.models
    return [
        (sample, names[a], names[b], score)
        for sample, a, b, score in zip(
            comparisons.samples, comparisons.a, comparisons.b, comparisons.score, strict=True
        )
    ]


def test_preferences_by_hand():
    scores = scores_of(
        {
            "s": {"x": {"0": 0.2, "1": 0.6}, "y": 0.4, "z": 0.1},  # the mean of x is 0.4
            "t": {"x": 0.3, "y": {}, "z": 0.35},
            "u": {"w": 0.9, "x": {}},
        }
    )
    found = votes_from_scores(scores)
    assert triples_of(found.comparisons) == [
        ("s", "x", "y", 0.5),
        ("s", "x", "z", 1.0),
        ("s", "y", "z", 1.0),
        ("t", "x", "z", 0.0),
    ]
    assert found.comparisons.tie.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert found.comparisons.unit == "samples"
    assert found.facts() == {
        "tie_threshold": 0.0, "samples": 2, "left_out_samples": ["u"],
        "without_value": {"w": 2, "x": 1, "y": 2, "z": 1}, "without_comparisons": ["w"],
    }  # fmt: skip
    assert votes_from_scores(scores, threshold=0.06).comparisons.score.tolist() == [0.5, 1.0, 1.0, 0.5]


def test_less_is_better_for_an_error():
    table = {"s": {"x": 0.4, "y": 0.1}}
    assert votes_from_scores(scores_of(table, higher_is_better=False)).comparisons.score.tolist() == [0.0]


def test_members_in_any_order_have_one_mean():
    members = {"0": 0.1, "1": 0.2, "2": 0.3}
    table = {"s": {"x": members, "y": dict(zip("012", reversed(members.values()), strict=True))}}
    assert votes_from_scores(scores_of(table)).comparisons.tie.tolist() == [1.0]


@pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf")])
def test_a_threshold_is_a_difference(threshold):
    with pytest.raises(ValueError, match="threshold is"):
        votes_from_scores(scores_of({}), threshold=threshold)


def test_no_scores_prefer_nothing():
    found = votes_from_scores(scores_of({}))
    assert len(found) == 0
    assert found.comparisons.models == ()
    assert len(votes_from(found.comparisons)) == 0


tables = st.dictionaries(
    st.sampled_from("stuv"),
    st.dictionaries(st.sampled_from("wxyz"), st.one_of(st.just({}), st.integers(0, 4).map(float))),
)


@given(tables, st.integers(0, 2))
def test_every_two_systems_with_a_value_are_compared_once(table, threshold):
    """Beside a plain loop over samples and pairs."""
    found = votes_from_scores(scores_of(table), threshold=threshold)
    expected = []
    for sample in sorted(table):
        known = {name: value for name, value in sorted(table[sample].items()) if value != {}}
        for (a, first), (b, second) in itertools.combinations(known.items(), 2):
            tie = abs(first - second) <= threshold
            expected.append((sample, a, b, 0.5 if tie else float(first > second)))
    assert triples_of(found.comparisons) == expected
    assert found.samples == len({sample for sample, *_ in expected})
    assert found.samples + len(found.left_out) == len({sample for sample, systems in table.items() if systems})
    opposite = votes_from_scores(scores_of(table, higher_is_better=False), threshold=threshold)
    assert np.array_equal(opposite.comparisons.score, 1 - found.comparisons.score)
