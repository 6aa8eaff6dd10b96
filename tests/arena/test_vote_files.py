"""Votes from files and Python values, through ``read_votes``, ``votes_from`` and ``compared``."""

import csv
import gzip
import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen_eval.arena import Answer, Comparisons, Vote, Votes, compared, read_votes, votes_from
from gen_eval.data.table_file import number_of
from gen_eval.records import InputError

GOOD = {"id": "v0", "sample": "s", "annotator": "u", "model_a": "x", "model_b": "y", "quality": "a"}
HEADER = "id,sample,annotator,model_a,model_b,quality,plausibility\n"
FORMATS = ("votes.csv", "votes.jsonl", "votes.jsonl.gz", "votes.json", "votes.parquet")


@pytest.fixture
def write(tmp_path):
    """Write records, as they are, into a file of the format that its name says."""

    def make(name, records):
        path = tmp_path / name
        columns = list(dict.fromkeys(key for record in records for key in record))
        lines = "".join(json.dumps(record) + "\n" for record in records)
        if name.endswith(".csv"):
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, columns, restval="")
                writer.writeheader()
                writer.writerows(records)
        elif name.endswith(".parquet"):
            pd.DataFrame(records, columns=columns).to_parquet(path)
        elif name.endswith(".gz"):
            path.write_bytes(gzip.compress(lines.encode()))
        else:
            path.write_text(lines if name.endswith(".jsonl") else json.dumps(records), encoding="utf-8")
        return path

    return make


@pytest.fixture
def save(tmp_path):
    """Write text or bytes into a file."""

    def make(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def test_votes_are_shown_in_a_line(write):
    votes = read_votes(write("votes.jsonl", [GOOD, {**GOOD, "id": "v1", "quality": "A"}]))
    assert repr(votes) == "1 votes on 1 samples by 1 named annotators about 2 systems, 1 rejected"
    assert repr(votes_from([("x", "y", 1.0)])) == "1 votes about 2 systems, 0 rejected"


def rejections(votes):
    return [(one.id, str(one.reason), one.where) for one in votes.rejected]


# --- what a vote is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_all_fields_in_every_format(write, name):
    record = {
        **GOOD, "plausibility": "both_bad", "time": "2025-03-01T12:00:00+01:00", "seed_a": "3", "seed_b": "7",
        "shown_left": "b", "seconds": "4.5", "note": "hurried",
    }  # fmt: skip
    (vote,) = read_votes(write(name, [record]))
    expected = Vote(
        "v0", "s", "u", "x", "y", Answer.A, Answer.BOTH_BAD, 1740826800.0, "3", "7", "b", 4.5, {"note": "hurried"}, True
    )
    assert vote == expected


@pytest.mark.parametrize("name", FORMATS)
def test_golden_votes_from_every_format_are_those_of_the_list(write, goldens, name):
    for case in json.loads((goldens / "elo" / "elo.json").read_text())["cases"]:
        records = case["votes"]
        found = read_votes(write(name, records))
        assert found == votes_from(records)
        assert [vote.id for vote in found] == [record["id"] for record in records]
        assert not found.rejected


@pytest.mark.parametrize(
    ("change", "reason", "said"),
    [
        ({"sample": None}, "missing_field", "sample"),
        ({"sample": ""}, "missing_field", "sample"),
        ({"model_a": "  "}, "missing_field", "model_a"),
        ({"model_b": None}, "missing_field", "model_b"),
        ({"quality": None}, "missing_field", "quality and plausibility"),
        ({"quality": ""}, "missing_field", "quality and plausibility"),
        ({"model_b": "x"}, "self_vote", "'x'"),
        ({"model_b": " x"}, "self_vote", "'x'"),  # blanks at the ends belong to no name
        ({"quality": "A"}, "unknown_label", "'A'; expected a, b, both_good, both_bad"),
        ({"quality": "tie"}, "unknown_label", "'tie'"),
        ({"plausibility": "left"}, "unknown_label", "plausibility is 'left'"),
        ({"quality": 1}, "unknown_label", "quality is 1"),
        ({"shown_left": "left"}, "unknown_label", "shown_left is 'left'; expected a, b"),
        ({"shown_left": []}, "unknown_label", "shown_left"),
        ({"id": 7}, "malformed_record", 'write "7"'),
        ({"model_a": 1.5}, "malformed_record", "model_a"),
        ({"annotator": ["u"]}, "malformed_record", "annotator"),
        ({"sample": "s\0"}, "malformed_record", "NUL"),
        ({"seed_a": 0.5}, "malformed_record", "seed"),
        ({"time": "yesterday"}, "malformed_record", "ISO 8601"),
        ({"time": "nan"}, "malformed_record", "ISO 8601"),
        ({"time": "1e999"}, "malformed_record", "ISO 8601"),
        ({"time": True}, "malformed_record", "ISO 8601"),
        ({"seconds": 0}, "malformed_record", "above 0"),
        ({"seconds": "-1"}, "malformed_record", "above 0"),
        ({"seconds": "fast"}, "malformed_record", "above 0"),
        ({"sample": "\ud800"}, "malformed_record", "surrogate"),
        ({"time": {"at": 10**400}}, "malformed_record", "ISO 8601"),
    ],
)
def test_a_record_that_is_no_vote_is_listed(change, reason, said):
    found = votes_from([{**GOOD, **change}, {**GOOD, "id": "v1"}])
    assert [vote.id for vote in found] == ["v1"]
    (rejected,) = found.rejected
    assert rejected.reason == reason
    assert said in rejected.message
    assert rejected.where == "vote 1"


@pytest.mark.parametrize(
    ("given_time", "seconds", "dated"),
    [
        ("1970-01-02", 86400.0, True),
        ("1970-01-01T00:00:10", 10.0, True),
        ("1970-01-01T00:00:10Z", 10.0, True),
        ("1970-01-01T01:00:10.5+01:00", 10.5, True),
        ("12.5", 12.5, False),
        (" -3 ", -3.0, False),
        ("1e3", 1000.0, False),
        (20240101, 20240101.0, False),
        ("20240101", 20240101.0, False),
        (None, None, False),
    ],
)
def test_times(given_time, seconds, dated):
    (vote,) = votes_from([{**GOOD, "time": given_time}])
    assert (vote.time, vote.dated) == (seconds, dated)


def test_dates_and_plain_seconds_have_no_common_order():
    def records(*times):
        return [{**GOOD, "id": str(place), "time": time} for place, time in enumerate(times)]

    assert compared(records("2025-01-01", 5.0))["quality"].mixed_clocks
    assert not compared(records("2025-01-01", None, "2025-01-01T05:00Z"))["quality"].mixed_clocks
    assert not compared(records("5", 7, None))["quality"].mixed_clocks


def test_a_seed_is_a_number_or_a_name():
    (vote,) = votes_from([{**GOOD, "seed_a": 3, "seed_b": 4.0}])  # a column with gaps holds 4.0
    assert (vote.seed_a, vote.seed_b) == ("3", "4")


# --- ids -----------------------------------------------------------------------------------------------------------


def test_a_repeated_id_is_rejected_but_a_rejected_vote_keeps_none(save):
    lines = [GOOD, GOOD, {**GOOD, "id": "v1", "quality": "?"}, {**GOOD, "id": "v1"}, {**GOOD, "id": " v1 "}]
    found = read_votes(save("votes.jsonl", "\n".join(map(json.dumps, lines))))
    assert [vote.id for vote in found] == ["v0", "v1"]
    assert rejections(found) == [
        ("v0", "duplicate_vote", "votes.jsonl:2"),
        ("v1", "unknown_label", "votes.jsonl:3"),
        ("v1", "duplicate_vote", "votes.jsonl:5"),
    ]


def test_a_vote_without_id_is_called_by_its_line_and_costs_no_other_its_id(save):
    body = "\n,s,u,x,y,a,\n3,s,u,x,y,b,\n,s,u,x,y,b,\nline 3,s,u,x,y,a,\n"
    found = read_votes(save("votes.csv", HEADER + body))
    assert [vote.id for vote in found] == ["line line 3", "3", "5", "line 3"]
    assert not found.rejected


def test_numbers_of_lines_in_json_lines_and_of_rows_in_parquet(save, write):
    record = {name: value for name, value in GOOD.items() if name != "id"}
    lines = ["", json.dumps(record), "", json.dumps(record)]
    assert [vote.id for vote in read_votes(save("votes.jsonl", "\n".join(lines)))] == ["2", "4"]
    assert [vote.id for vote in read_votes(write("votes.parquet", [record, record]))] == ["1", "2"]


# --- damaged files -------------------------------------------------------------------------------------------------


def test_damaged_lines_are_listed_in_their_order(save):
    lines = ["{", json.dumps({**GOOD, "model_b": "x"}), "[1]", json.dumps(GOOD), '{"a": NaN}', "é" * 5]
    found = read_votes(save("votes.jsonl", "\ufeff" + "\n".join(lines)))
    assert [vote.id for vote in found] == ["v0"]
    assert rejections(found) == [
        ("1", "line_not_json", "votes.jsonl:1"),
        ("v0", "self_vote", "votes.jsonl:2"),
        ("3", "malformed_record", "votes.jsonl:3"),
        ("5", "line_not_json", "votes.jsonl:5"),
        ("6", "line_not_json", "votes.jsonl:6"),
    ]


def test_odd_lines_of_csv(save):
    body = (
        'v0,s,"u\n2",x,"y ""q""",a,\n'  # a line break inside a cell: the record begins in line 2
        "v1,s,u,x\n"
        "v2,s,u,x,y,a,,,\n"
        ",,,,,,\n"
        "v3, s , u ,\tx, y ,b ,\n"
        "v4,s\0,u,x,y,a,\n"
    )
    found = read_votes(save("votes.csv", "\ufeff" + HEADER + body))
    assert [(vote.id, vote.annotator, vote.model_b) for vote in found] == [("v0", "u\n2", 'y "q"'), ("v3", "u", "y")]
    assert rejections(found) == [
        ("4", "malformed_record", "votes.csv:4"),
        ("5", "malformed_record", "votes.csv:5"),
        ("v4", "malformed_record", "votes.csv:8"),
    ]
    assert found.rejected[0].message == "the line has 4 cells; the header has 7"


def test_columns_may_stand_in_any_order_and_an_unnamed_one_is_left_out(save):
    found = read_votes(save("votes.csv", ",quality,model_b, model_a,sample\n0,b,y,x,s\n"))
    assert found.votes == (Vote("2", "s", None, "x", "y", Answer.B),)


@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_nothing_is_no_votes(save, name, content):
    assert read_votes(save(name, content)) == Votes(())


def test_only_rejected_lines_are_no_votes(save):
    found = read_votes(save("votes.jsonl", json.dumps({**GOOD, "model_b": "x"})))
    assert len(found) == 0
    assert len(found.rejected) == 1
    assert compared(found) == {}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("votes.csv", "id,sample,quality\n", "lacks the columns model_a, model_b; it has 'id', 'sample', 'quality'"),
        ("votes.csv", HEADER.replace(",", ";"), "semicolons"),
        ("votes.csv", HEADER.replace(",", "\t"), "tabulators"),
        ("votes.csv", HEADER.encode("utf-16"), "UTF-16"),
        ("votes.csv", HEADER.encode("utf-16-le"), "UTF-16"),
        ("votes.csv", HEADER.encode() + b"v0,caf\xe9,u,x,y,a,\n", "no UTF-8 text"),
        ("votes.csv", HEADER.replace("annotator", "id"), "several columns id"),
        ("votes.csv", HEADER + '"v0,s,u,x,y,a,\n', "near line 2"),
        ("votes.csv", HEADER + "v0," + "s" * 200_000 + ",u,x,y,a,\n", "field larger than"),
        ("votes.jsonl", b"\xff\xfe{\0", "cannot be read"),
        ("votes.jsonl.gz", b"no gzip", "cannot be read"),
        ("votes.json", '{"votes": []}', "must be a JSON list"),
        ("votes.json", "[", "cannot be read as JSON"),
        ("votes.parquet", b"PAR1 none", "cannot be read as Parquet"),
        ("votes.xlsx", b"", "expected a name that ends with .csv"),
    ],
)
def test_a_file_that_is_no_table_of_votes_ends_the_command(save, name, content, said):
    with pytest.raises(InputError, match=r"the votes .*votes\.") as raised:
        read_votes(save(name, content))
    assert said in str(raised.value)


@pytest.mark.parametrize("name", FORMATS)
def test_no_file(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        read_votes(tmp_path / name)


def test_parquet_needs_its_columns_and_keeps_types(tmp_path):
    frame = pd.DataFrame([{**GOOD, "time": pd.Timestamp("1970-01-01T00:00:10"), "seed_a": 3, "round": 2}, GOOD])
    frame.to_parquet(tmp_path / "v.parquet")
    found = read_votes(tmp_path / "v.parquet")
    (vote,) = found
    assert (vote.time, vote.dated, vote.seed_a, vote.extra) == (10.0, True, "3", {"round": 2.0})
    assert [one.reason for one in found.rejected] == ["duplicate_vote"]
    frame.drop(columns=["model_a"]).to_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match="lacks the column model_a"):
        read_votes(tmp_path / "v.parquet")


# --- Python values -------------------------------------------------------------------------------------------------


def test_every_form_of_votes_is_taken(write):
    votes = votes_from([GOOD, {**GOOD, "id": "v1", "quality": "both_good"}])
    assert votes_from(votes) is votes
    assert votes_from(votes.votes) == votes
    assert votes_from(replace(vote, quality=str(vote.quality)) for vote in votes) == votes
    path = write("votes.jsonl", [GOOD, {**GOOD, "id": "v1", "quality": "both_good"}])
    assert votes_from(str(path)) == votes_from(path) == votes
    assert votes_from(pd.read_json(path, lines=True)) == votes
    assert votes_from([]) == Votes(())


def test_votes_that_were_made_by_hand_are_checked_too():
    vote = Vote("v", "s", None, "x", "y", Answer.A)
    found = votes_from([vote, vote, replace(vote, id="w", model_b="x"), replace(vote, id="z", quality=None)])
    assert found.votes == (vote,)
    assert [str(one.reason) for one in found.rejected] == ["duplicate_vote", "self_vote", "missing_field"]


def test_triples_are_rated_as_overall():
    triples = [("x", "y", 1.0), ("y", "z", 0.25)]
    votes = votes_from(triples)
    assert len(votes) == 2
    assert votes.models == ("x", "y", "z")
    assert votes.digest == votes_from(Comparisons.of(triples)).digest != votes_from(triples[:1]).digest
    (only,) = compared(votes).items()
    assert only[0] == "overall"
    assert only[1].score.tolist() == [1.0, 0.25]
    with pytest.raises(ValueError, match="against itself"):
        votes_from([("x", "x", 1.0)])


@pytest.mark.parametrize("wrong", [5, {"model_a": ["x"]}, [("x", "y")], [GOOD, ("x", "y", 1.0)], [None]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(TypeError, match=r"expected Votes|votes are Votes"):
        votes_from(wrong)


def test_a_frame_without_a_column_is_refused():
    with pytest.raises(ValueError, match="lacks model_b; its columns are id"):
        votes_from(pd.DataFrame([GOOD]).drop(columns="model_b"))


def test_a_tracker_has_the_votes_that_answer_it():
    found = compared([GOOD, {**GOOD, "id": "v1", "quality": "both_bad", "plausibility": "b"}])
    assert {name: len(one) for name, one in found.items()} == {"quality": 2, "plausibility": 1, "overall": 1}
    assert found["overall"].score.tolist() == [0.25]
    assert found["overall"].tie.tolist() == [0.5]


# --- properties ----------------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).map(str.strip)
some = names.filter(bool)
answers = st.one_of(st.none(), st.sampled_from(tuple(Answer)))
finite = st.floats(-1e12, 1e12)


pairs_of_names = st.tuples(some, some).filter(lambda pair: pair[0] != pair[1])
pairs_of_answers = st.tuples(answers, answers).filter(any)


@st.composite
def some_vote(draw):
    (a, b), (quality, plausibility) = draw(pairs_of_names), draw(pairs_of_answers)
    annotator, seed_a, seed_b = draw(st.tuples(*[st.one_of(st.none(), some)] * 3))
    time, seconds = draw(st.one_of(st.none(), finite)), draw(st.one_of(st.none(), st.floats(0.001, 1e6)))
    left = draw(st.sampled_from([None, "a", "b"]))
    extra = draw(st.dictionaries(st.sampled_from(["note", "place"]), some, max_size=1))
    return Vote(
        draw(some), draw(some), annotator, a, b, quality, plausibility, time, seed_a, seed_b, left, seconds, extra
    )


def record_of(vote):
    fields = {name: getattr(vote, name) for name in vote.__slots__ if name not in ("extra", "dated")}
    return {name: value for name, value in {**fields, **vote.extra}.items() if value is not None}


slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@slow
@given(votes=st.lists(some_vote(), max_size=3, unique_by=lambda vote: vote.id).map(tuple))
def test_what_was_written_is_read_in_all_formats(write, votes):
    records = [record_of(vote) for vote in votes]
    expected = Votes(votes)
    assert votes_from(records) == expected
    for name in ("votes.csv", "votes.jsonl", "votes.json") + ("votes.parquet",) * bool(records):
        assert read_votes(write(name, records)) == expected


@settings(max_examples=40)
@given(some_vote())
def test_exchanging_the_sides_twice_changes_nothing(vote):
    other = vote.swapped
    assert other.swapped == vote
    for tracker in ("quality", "plausibility", "overall"):
        score, swapped = vote.score(tracker), other.score(tracker)
        assert (score is None) == (swapped is None)
        assert score is None or score + swapped == 1


def read_if_possible(path):
    try:
        return read_votes(path)
    except InputError:
        return Votes(())


@slow
@given(content=st.binary(max_size=200), name=st.sampled_from(FORMATS), lead=st.booleans())
def test_any_bytes_give_votes_or_an_input_error(save, content, name, lead):
    heads = {"votes.csv": HEADER, "votes.jsonl": json.dumps(GOOD) + "\n", "votes.json": "["}
    found = read_if_possible(save(name, heads.get(name, "").encode() * lead + content))
    assert len({vote.id for vote in found}) == len(found)


@slow
@given(place=st.integers(0, 2000), byte=st.integers(0, 255))
def test_a_damaged_parquet_file_gives_votes_or_an_input_error(write, place, byte):
    path = write("votes.parquet", [GOOD, {**GOOD, "id": "v1"}])
    content = bytearray(path.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(content)
    found = read_if_possible(path)
    assert len(found) + len(found.rejected) <= 2


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**15), 10**15)))
def test_a_number_is_read_as_it_is_written(value):
    assert number_of(repr(value)) == number_of(value) == float(value)


@pytest.mark.parametrize("text", ["", " ", "nan", "inf", "-Infinity", "1_000", "0x1", "١", "1,5", "1e999", "5%", "- 1"])
def test_what_spells_no_finite_number(text):
    assert number_of(text) is None


def test_whole_numbers_in_columns_are_the_names_that_csv_has(write, tmp_path):
    records = [
        {"id": 10 + place, "sample": place % 2, "annotator": annotator, "model_a": "x", "model_b": "y", "quality": "a"}
        for place, annotator in enumerate([3, 3, None])
    ]
    frame = pd.DataFrame(records)
    assert frame.annotator.dtype == float, "a gap makes floats of whole numbers"
    frame.to_parquet(tmp_path / "numbers.parquet")
    frame.astype({"annotator": "Int64"}).to_csv(tmp_path / "numbers.csv", index=False)
    texts = read_votes(tmp_path / "numbers.csv")
    assert [(vote.id, vote.sample, vote.annotator) for vote in texts] == [
        ("10", "0", "3"),
        ("11", "1", "3"),
        ("12", "0", None),
    ]
    assert read_votes(tmp_path / "numbers.parquet") == texts
    assert votes_from(frame) == texts
    # in JSON a number is no name
    assert len(read_votes(write("votes.jsonl", records))) == 0
