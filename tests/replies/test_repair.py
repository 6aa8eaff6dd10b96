"""JSON as models write it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.replies.repair import DEEPEST, CutError, parse, read_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=6), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'start': '00:05', 'seen': True, 'label': None}", {"start": "00:05", "seen": True, "label": None}),
        ("{'said': 'it\\'s \"here\"'}", {"said": 'it\'s "here"'}),
        ("((1, 2), (3, 4),)", [[1, 2], [3, 4]]),
        ("(7)", 7),
        ("{1: [1, 2]}", {"1": [1, 2]}),
        ("[.5, +1.5, 2.]", [0.5, 1.5, 2.0]),
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ("[00:05, 1:02:03.5]", ["00:05", "1:02:03.5"]),
        ('{"start": -0:05, "end": 00:08}', {"start": "-0:05", "end": "00:08"}),
        ('{"bbox": [[1, 2, 3, 4], "label": "car"}', {"bbox": [1, 2, 3, 4], "label": "car"}),
        ("[[1, 2, 3, 4]", [1, 2, 3, 4]),
        ("[[1, 2, 3, 4], [5, 6, 7, 8]", [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ('{"answer": "B"', {"answer": "B"}),
        ('{"answer": ["B"', {"answer": ["B"]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": 1,', {"a": 1}),
        ('{"text": "line\nbreak"}', {"text": "line\nbreak"}),
    ],
)
def test_repairs(text, value):
    assert parse(text) == value


def test_what_is_no_number_comes_back_as_such():
    assert math.isnan(parse("[NaN]")[0])
    assert parse("[Infinity, -Infinity]") == [math.inf, -math.inf]
    assert parse("[1e999]") == [math.inf]
    assert parse("[" + "9" * 5000 + "]") == [math.inf]


def test_half_of_a_surrogate_pair_is_replaced():
    value = parse('{"label": "\\ud800 car", "whole": "\\ud83d\\ude00"}')
    assert value["whole"] == "\N{GRINNING FACE}"
    assert value["label"].encode().decode() == "\N{REPLACEMENT CHARACTER} car"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "car",
        "{a: 1}",
        "[1 2]",
        "[1,,2]",
        '{"a" "b"}',
        "[1] and more",
        "__import__('os')",
        "{1, 2}",
        '{"a":',
        '{"a": "b',
        "[",
        "]",
        '{"a": 1]',
        "[" * 100_000,
        '{"a":' * 50_000,
        "-" * 100_000,
    ],
)
def test_what_cannot_be_repaired_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"expected|more after|inside one another|ends before"):
        parse(text)


def test_depth_is_bounded():
    assert parse("[" * DEEPEST + "'x'" + "]" * DEEPEST)
    with pytest.raises(ValueError, match="inside one another"):
        parse("[" * (DEEPEST + 1) + "'x'" + "]" * (DEEPEST + 1))


def test_a_value_is_read_from_its_place_and_what_follows_is_left():
    assert read_value('see {"a": [1]} and [2]', 4) == ({"a": [1]}, 14)


def test_a_cut_says_what_was_complete():
    with pytest.raises(CutError) as caught:
        read_value('[{"a": 1}, {"b": [2, 34', 0)
    assert caught.value.open == [[{"a": 1}], {}, [2]]
    assert caught.value.closed == [{"a": 1}, {"b": [2, 34]}]
    assert caught.value.bare
    with pytest.raises(CutError) as caught:
        read_value('[{"a": 1}, {"b": "unfin', 0)
    assert (caught.value.open, caught.value.closed) == ([[{"a": 1}], {}], None)


@given(VALUES)
def test_json_is_read_as_it_is(value):
    assert parse(json.dumps(value)) == value


@given(CONTAINERS)
def test_python_literals_are_read_as_json_would_be(value):
    assert parse(repr(value)) == value


@given(CONTAINERS, st.data())
def test_a_text_that_ends_early_gives_a_value_of_its_kind_or_a_value_error(value, data):
    text = json.dumps(value)
    try:
        found = parse(text[: data.draw(st.integers(0, len(text) - 1))])
    except ValueError:
        return
    assert type(found) is type(value)


@given(st.text(alphabet="[]{}(),:'\"\\ 0129.-eTtrue\n", max_size=60))
def test_any_text_is_a_value_or_a_value_error(text):
    try:
        value = parse(text)
    except ValueError:
        return
    assert value is None or isinstance(value, dict | list | str | int | float)
