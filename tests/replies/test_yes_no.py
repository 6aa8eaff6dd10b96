import json

import pytest

from gen_eval.records import Flag
from gen_eval.replies import read_phrase, read_yes_no

TABLE = [
    # reply, value, rule, why
    ("yes", "yes", "4", "lone word"),
    ("Yes.", "yes", "4", "full stop"),
    ("**No**", "no", "4", "emphasis"),
    ("'No'", "no", "4", "quotes"),
    ("(yes)", "yes", "4", "brackets"),
    ("Yes, there is nothing unusual", "yes", "4", "a no inside of a word"),
    ("No, her eyes are closed", "no", "4", "a yes inside of a word"),
    ("YES - a forklift hits the rack.", "yes", "4", "dash"),
    ("Yes—the cup", "yes", "4", "dash without blanks"),
    ("no because it stays", "no", "4", "a word ends the clause"),
    ("True", "yes", "4", "other yes word"),
    ("False.", "no", "4", "other no word"),
    ("yes and no", Flag.AMBIGUOUS, "1", "both"),
    ("No or yes?", Flag.AMBIGUOUS, "1", "either order"),
    ("Yes / No", Flag.AMBIGUOUS, "1", "the form of the prompt"),
    ("True or False", Flag.AMBIGUOUS, "1", "both, in other words"),
    ("yes, no", Flag.AMBIGUOUS, "1", "only both"),
    ("Yes, no car is visible", "yes", "4", "begins like both and is not"),
    ("Yes\nYes.", "yes", "2", "lone words that agree"),
    ("Yes\nNo\nYes", Flag.AMBIGUOUS, "2", "lone words that differ"),
    ("The answer is no.", "no", "3a", "cue"),
    ("Yes. On reflection, the answer is no.", "no", "3a", "the last cue wins"),
    ("Answer:\n\nyes", "yes", "3a", "line break after the cue"),
    ("The answer is correct: no", "no", "3a", "a yes word as filler"),
    ("So, is it open? I would say yes, clearly.", "yes", "3a", "cue and comma"),
    ("The answer is 'no'.", "no", "3a", "quoted"),
    ("So no car is visible, yes", "yes", "6", "a no that goes on is no answer"),
    ("There is no doubt about it. Yes.", "yes", "3b", "last sentence alone"),
    ("No car is visible", Flag.NO_ANSWER, "6", "a no that goes on"),
    ("No-one is there", Flag.NO_ANSWER, "6", "hyphen"),
    ("It is not the case; no, it isn't", "no", "6", "no in the middle"),
    ("There it is: yes", "yes", "6", "yes at the end"),
    ("It moves, yes, or no?", Flag.AMBIGUOUS, "6", "both in the middle"),
    ("I cannot tell", Flag.NO_ANSWER, "6", "refusal"),
    ("I cannot determine the correct answer.", Flag.NO_ANSWER, "6", "a yes word that is none"),
    ("Y", Flag.NO_ANSWER, "6", "an initial is no word"),
    ("是的", "yes", "5", "Chinese"),
    ("不是", "no", "5", "Chinese"),
    ("没有", "no", "5", "Chinese"),
    ("不确定", Flag.NO_ANSWER, "5", "Chinese"),
    ("对不起，我看不清", Flag.NO_ANSWER, "5", "an apology that begins like a yes"),
    ("Ｎｏ！", "no", "4", "full width"),
]


def found(reading):
    return reading.failure or reading.value


@pytest.mark.parametrize(("reply", "value", "rule", "why"), TABLE, ids=[row[3] + ": " + row[0][:20] for row in TABLE])
def test_table(reply, value, rule, why):
    reading = read_yes_no(reply)
    assert (found(reading), reading.rule) == (value, f"yes_no {rule}")


def test_goldens(goldens):
    cases = json.loads((goldens / "judge" / "parse_binary.json").read_text())["cases"]
    assert len(cases) == 66
    for case in cases:
        assert found(read_yes_no(case["raw"])) == (case["corrected"] or case["corrected_failure"]), case["raw"]


def test_goldens_of_events(goldens):
    items = json.loads((goldens / "vantage" / "event_verification.json").read_text())["items"]
    assert len(items) == 16
    for item in items:
        expected = item.get("corrected", item["reference"])
        assert found(read_yes_no(item["prediction"])) == (expected["parsed"] or expected["failure"]), item["prediction"]


def test_goldens_of_other_keys(goldens):
    cases = json.loads((goldens / "judge" / "parse_other_answers.json").read_text())["cases"]
    assert len(cases) == 6
    for case in cases:
        said = read_phrase(case["raw"], case["correct_text"])
        assert (said.value == case["correct_text"]) is case["corrected_is_correct"], case["raw"]


def test_phrases():
    assert read_phrase("It's LEFT, of course", "left of").value == "left of"
    assert read_phrase("to the right", "left").value == "to the right"
    assert read_phrase("{'answer': 'Left'}", "left").value == "left"
    assert read_phrase("it is 2.5 m", "25 m").value == "it is 2.5 m"
    assert read_phrase("向左转", "左转").value == "左转"
    assert read_phrase("", "left").failure == Flag.EMPTY
    assert read_phrase("dash - there", "-").value == "dash - there"
