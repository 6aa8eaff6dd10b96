"""Numbers, times and spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.records import Flag
from gen_eval.replies import read_span
from gen_eval.replies.numbers import read_number
from gen_eval.replies.times import read_time, read_times

SECONDS = st.floats(0, 5000).map(lambda value: round(value, 2))


@pytest.mark.parametrize(
    ("value", "kind", "number"),
    [
        (3, "plain", 3),
        ("-1.5", "plain", -1.5),
        (" .5 ", "plain", 0.5),
        ("1e2", "plain", 100),
        ("3,25", "plain", 3.25),
        ("\u22122", "plain", -2),
        ("about 5 s", "seconds", 5),
        ("approx. 5 seconds", "seconds", 5),
        ("12px", "pixels", 12),
        ("frame 3", "frame", 3),
        ("3s", "frame", 3),
        ("frame 3", "seconds", None),
        ("12px", "seconds", None),
        ("5 s", "plain", None),
        ("50%", "plain", None),
        ("1,234.5", "plain", None),
        ("1,2,3", "plain", None),
        ("five", "plain", None),
        ("", "plain", None),
        (True, "plain", None),
        (None, "plain", None),
        (float("nan"), "plain", None),
        (float("-inf"), "plain", None),
        ("1e999", "plain", None),
        (10**400, "plain", None),
        ([1], "plain", None),
        ("1" * 1000, "plain", None),
    ],
)
def test_numbers(value, kind, number):
    assert read_number(value, kind) == number


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (41.5, 41.5),
        ("8.0s", 8),
        ("1:05.5", 65.5),
        ("00:01:20.00", 80),
        ("00:15,50", 15.5),
        ("-00:05", -5),
        ("-1:00:00.25", -3600.25),
        ("<00:12>", 12),
        ("1:2:3:4", None),
        ("n/a", None),
        (None, None),
        (False, None),
    ],
)
def test_times(value, seconds):
    assert read_time(value) == seconds


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        ("00:00-00:06", (0, 6)),
        ("5 s \u2013 12 s", (5, 12)),
        ("1.5 to 3", (1.5, 3)),
        ("4", (4, None)),
        ("soon", (None, None)),
    ],
)
def test_a_field_may_hold_a_range(value, ends):
    assert read_times(value) == ends


@pytest.mark.parametrize(
    ("reply", "span", "rule"),
    [
        ("[2.0, 6.5]", (2, 6.5), "whole text"),
        ('{"start": 41.0, "end": 57.5}', (41, 57.5), "whole text"),
        ('{"begin": "0:05", "to": "0:09"}', (5, 9), "whole text"),
        ('{"Start-Time": "5s", "End Time": 9}', (5, 9), "whole text"),
        ('{"start": "00:00-00:06", "end": ""}', (0, 6), "whole text"),
        ('{"events": [{"start": "02:12", "end": "02:28"}]}', (132, 148), "whole text"),
        ('{"span": [3, 4]}', (3, 4), "whole text"),
        ("Query 3: it is visible at [2.0, 6.0].", (2, 6), "value in the text"),
        ("[00:03, 7]", (3, 7), "whole text"),
        ("```json\n[2.5, 6.5]\n```", (2.5, 6.5), "fenced block"),
        ("<think>[8, 9]</think> [2, 3]", (2, 3), "whole text"),
        ("[2.5s, 6.5s]", (2.5, 6.5), "prose: bracketed pair"),
        ("At 0:30 I see <20.5> <26.0>", (20.5, 26), "prose: bracketed pair"),
        ("It starts at 00:05 and ends at 00:12.", (5, 12), "prose: clock times"),
        ("14.0 - 19.0 seconds", (14, 19), "prose: range"),
        ("From 8 seconds to 21 seconds", (8, 21), "prose: range"),
        ("2-6", (2, 6), "prose: range"),
        ("4\u201310", (4, 10), "prose: range"),
        ("in camera 2 it runs between 5.5 and 7", (5.5, 7), "prose: range"),
        ("Starting time: 15.5 seconds. Ending time: 18.0 seconds.", (15.5, 18), "prose: two numbers"),
        ('{"start": "00:09.00", "end": "00:13.00', (9, 13), "prose: clock times"),
    ],
)
def test_spans(reply, span, rule):
    read = read_span(reply)
    assert (read.value, read.rule) == (span, rule)


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (None, Flag.EMPTY),
        ("", Flag.EMPTY),
        ("<answer> </answer>", Flag.EMPTY),
        (5, Flag.NOT_TEXT),
        ("<think>[1, 2]", Flag.UNCLOSED_REASONING),
        ("I cannot tell.", Flag.NO_ANSWER),
        ("None", Flag.NO_ANSWER),
        ("7.0", Flag.NO_ANSWER),
        ("[]", Flag.NO_ANSWER),
        ("{start}", Flag.BAD_JSON),
        ('["A worker lifts a box"]', Flag.NO_USABLE_EVENT),
        ('{"start": 5, "confidence": 0.9}', Flag.NO_USABLE_EVENT),
        ('{"start": null, "end": 9}', Flag.NO_USABLE_EVENT),
        ("[NaN, 3]", Flag.NO_USABLE_EVENT),
    ],
)
def test_what_is_no_span_has_a_name(reply, failure):
    assert read_span(reply).failure is failure


def test_the_first_of_several_spans_is_taken_and_bad_ones_are_counted():
    read = read_span('[{"start": "soon", "end": 3}, {"start": 1, "end": 5}, {"start": 50, "end": 55}]')
    assert read.value == (1, 5)
    assert read.flags == (Flag.SEVERAL_SPANS,)
    assert read.detail == {"dropped": {"unreadable": 1}}
    assert Flag.SEVERAL_SPANS in read_span("4-9, 12-14").flags
    assert Flag.SEVERAL_SPANS in read_span("[00:08, 00:20]\n[00:30, 00:34]").flags


def test_a_span_that_is_cut_off_is_flagged():
    read = read_span('[{"start": 1, "end": 5}, {"start": 8, "e')
    assert (read.value, read.flags) == ((1, 5), (Flag.CUT_OFF,))
    assert read_span('{"start": 5.0, "end": 12').value == (5, 12)


def test_ends_in_the_wrong_order_and_outside_the_clip():
    assert read_span("[6, 3]").value == (3, 6)
    assert read_span("[6, 3]", reversed_ends="keep").value == (6, 3)
    clamped = read_span("[-1, 70]", duration=50)
    assert (clamped.value, clamped.flags) == ((0, 50), (Flag.CLIPPED,))
    kept = read_span("[-1, 70]", duration=50, outside="keep")
    assert (kept.value, kept.flags) == ((0, 70), (Flag.CLIPPED,))
    assert read_span("[-1, 70]").value == (-1, 70)


@given(SECONDS, SECONDS, st.sampled_from(["[{}, {}]", "from {} to {}", "{} - {} s", '{{"start": {}, "end": "{}"}}']))
def test_a_span_is_read_back_in_any_form(first, second, form):
    read = read_span(form.format(first, second), reversed_ends="keep")
    assert read.value == (first, second)


@given(SECONDS, SECONDS, st.floats(0.1, 5000))
def test_a_clamped_span_lies_in_the_clip_in_order(first, second, duration):
    start, end = read_span(f"[{first}, {second}]", duration=duration).value
    assert 0 <= start <= end <= duration


@given(st.text(alphabet="0123456789:.,-<>[](){}\"' stofrandbewn\n", max_size=60))
def test_any_reply_gives_a_span_or_a_named_failure(reply):
    read = read_span(reply, duration=10)
    assert read.failure is not None or 0 <= read.value[0] <= read.value[1] <= 10


@pytest.mark.parametrize(
    "piece", ["[", "{", "[1,", '["', "1-", "1 - ", "1:2 ", "<1> ", "from 1 to ", "```", "[[],", " "]
)
def test_hostile_text_is_read_in_one_pass(piece):
    assert read_span(piece * 20_000).rule
