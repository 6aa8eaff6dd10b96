"""Reading records that anybody may have written."""

import gzip
import json

import pytest

from gen_eval.data import records_file
from gen_eval.data.records_file import Refused, json_document, json_lines, record_of, reply_of, required_text
from gen_eval.records import InputError, Rejection


def reasons(action):
    with pytest.raises(Refused) as caught:
        action()
    return caught.value.reason


def test_lines_end_at_a_line_feed_alone(tmp_path):
    text = "a\u2028b\u2029c\u0085d"
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps({'t': text}, ensure_ascii=False)}\r\n\n{{\n[1]\n" + '{"t": "\\ud800"}\n{"t": NaN}')
    damaged = []
    assert list(json_lines(path, damaged)) == [("x.jsonl:1", {"t": text})]
    assert [(one.where, one.reason) for one in damaged] == [
        ("x.jsonl:3", Rejection.LINE_NOT_JSON),
        ("x.jsonl:4", Rejection.MALFORMED_RECORD),
        ("x.jsonl:5", Rejection.MALFORMED_RECORD),
        ("x.jsonl:6", Rejection.LINE_NOT_JSON),
    ]


def test_lines_come_one_at_a_time(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\n' * 9)[:-6])
    found = json_lines(path, [], called="the table")
    assert next(found) == ("x.jsonl.gz:1", {"n": 1})
    with pytest.raises(InputError, match=r"the table .*x\.jsonl\.gz cannot be read"):
        list(found)


@pytest.mark.parametrize(("line", "whole"), [(20, 1000), (1000, 99)])
def test_a_compressed_file_may_not_unpack_to_anything(tmp_path, monkeypatch, line, whole):
    monkeypatch.setattr(records_file, "LONGEST_LINE", line)
    monkeypatch.setattr(records_file, "MOST_BYTES", whole)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\n{"n": 2}\n' + b" " * 100))
    found = json_lines(path, [])
    assert [record["n"] for _, record in (next(found), next(found))] == [1, 2]
    with pytest.raises(InputError, match="line 3 goes on"):
        next(found)


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"\xff", b"Infinity"])
def test_documents_that_are_none(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as JSON"):
        json_document(tmp_path / "x.json")


def test_fields():
    assert required_text({"id": "a"}, "id") == "a"
    assert reasons(lambda: required_text({}, "id")) == Rejection.MISSING_FIELD
    for value in (7, "", "  ", "a\0", ["a"]):
        assert reasons(lambda value=value: required_text({"id": value}, "id")) == Rejection.MALFORMED_RECORD
    assert reasons(lambda: record_of("[" * 100_000)) == Rejection.LINE_NOT_JSON


@pytest.mark.parametrize("name", records_file.REPLY_FIELDS)
def test_a_reply_under_any_of_its_names(name):
    assert reply_of({name: "x"}) == "x"
    assert reply_of({name: None}) is None
    assert reply_of({"reply": {"a": [1, 2]}, name: {"a": [1, 2]}}) == {"a": [1, 2]}


def test_replies_that_are_none_or_two():
    assert reply_of({"error": "timeout"}) is None
    assert reasons(lambda: reply_of({"id": "a"})) == Rejection.MISSING_FIELD
    assert reasons(lambda: reply_of({"id": "a", "error": False})) == Rejection.MISSING_FIELD
    for pair in ({"reply": "a", "pred": "b"}, {"reply": 1, "pred": True}, {"reply": [1], "pred": [1.0]}):
        assert reasons(lambda pair=pair: reply_of(pair)) == Rejection.CONFLICTING_FIELDS
