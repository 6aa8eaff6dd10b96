"""A reply may be a megabyte that was made to be slow. What is asked is that reading ends, and with what."""

import pytest

from gen_eval.records import Flag
from gen_eval.replies import prelude, read_choice, read_phrase, read_reference, read_yes_no

OPTIONS = {"A": "Turn left", "B": "Turn right", "C": None}
MEGABYTE = 1_000_000

WHOLE = {
    "<think>": (Flag.UNCLOSED_REASONING, "prelude 3"),
    "</think>": (Flag.EMPTY, "prelude 8"),
    "<analysis></thought>": (Flag.EMPTY, "prelude 8"),
    "<answer>": (Flag.EMPTY, "prelude 8"),
    "(": (Flag.EMPTY, "prelude 8"),
    "[": (Flag.EMPTY, "prelude 8"),
    "{": (Flag.BAD_JSON, "prelude 5"),
    '{"answer":"': (Flag.EMPTY, "prelude 8"),
    "```{": (Flag.EMPTY, "prelude 8"),
    "\\boxed{": (Flag.EMPTY, "prelude 8"),
    "\u0300\u0316": (Flag.EMPTY, "prelude 8"),
}


@pytest.mark.parametrize("unit", WHOLE)
def test_a_megabyte_of_one_thing(unit):
    reading = prelude(unit * (MEGABYTE // len(unit)))
    assert (reading.failure, reading.rule) == WHOLE[unit]


@pytest.mark.parametrize(
    ("unit", "said", "chosen"),
    [
        ("so ", "yes_no 6", "choice 10"),
        ("not A ", "yes_no 6", "choice 10"),
        ("A and ", "yes_no 6", "choice 7"),
        ("(A", "yes_no 6", "choice 7"),
        ("so correct ", "yes_no 3a", "choice 10"),
        ("yes ", "yes_no 6", "choice 10"),
        (" ' - ", "yes_no 6", "choice 10"),
        ("turn left ", "yes_no 6", "choice 9"),
        ("<|<think>x</think>", "yes_no 6", "choice 10"),
    ],
)
def test_long_prose(unit, said, chosen):
    reply = "Cup " + unit * (100_000 // len(unit))
    assert read_yes_no(reply).rule == said
    assert read_choice(reply, OPTIONS).rule == chosen
    assert read_phrase(reply, "turn left").rule == "phrase"


@pytest.mark.parametrize("dialect", ["reason_script", "paibench_u", "physical_ai_understanding", "substring"])
def test_public_readings_end(dialect):
    for unit in ("<think>", "<think></think>", "<answer>", "The answer is "):
        reading = read_reference(dialect, unit * (MEGABYTE // len(unit)), options=OPTIONS, key="yes", question_id="q")
        assert len(str(reading.detail.get("extracted", ""))) <= 200
