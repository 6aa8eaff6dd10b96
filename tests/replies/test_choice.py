import json

import pytest

from gen_eval.records import Flag
from gen_eval.replies import read_choice

ANIMALS = {"A": "cat", "B": "dog", "C": "car", "D": "bus"}
TURNS = {"A": "Turn left.", "B": "Turn right.", "C": "Go straight.", "D": None}
BINARY = {"A": "Yes", "B": "No", "C": None, "D": None}
COLOURS = {"A": "A blue car", "B": "A red car", "C": "A bus", "D": "None of the above"}

TABLE = [
    # reply, options, value, rule, why
    ("The answer is dog.", ANIMALS, "B", "9", "a word that begins with a letter"),
    ("The answer is a red bus parked near the gate", ANIMALS, "D", "9", "an article after the cue"),
    ("answer is clearly D, not because of the colour", ANIMALS, "D", "4a", "filler"),
    ("Answer: **D**", ANIMALS, "D", "4a", "emphasis"),
    ("ANSWER: $D$", ANIMALS, "D", "4a", "mathematics"),
    ("(d)", ANIMALS, "D", "1", "lower case in brackets"),
    ("<answer> D. </answer>", ANIMALS, "D", "1", "tag"),
    ("The answer is B. Note that A is a distractor.", ANIMALS, "B", "4a", "a rejected letter later"),
    ("It is not B, the answer is D", ANIMALS, "D", "4a", "a rejected letter before"),
    ("I think A is wrong, so D", ANIMALS, "D", "4a", "so"),
    ("None of the above", ANIMALS, Flag.NO_ANSWER, "10", "not one of the options"),
    ("None of the above", COLOURS, "D", "2", "one of the options"),
    ("I don't know", ANIMALS, Flag.NO_ANSWER, "10", "refusal"),
    ("A, B", ANIMALS, Flag.AMBIGUOUS, "7", "two"),
    ("It is neither A nor B nor C. I would say D, as seen in a mirror", ANIMALS, "D", "4a", "say"),
    ("Not A. B", ANIMALS, "B", "4c", "last sentence alone"),
    ("A is wrong, B is wrong, so C", ANIMALS, "C", "4a", "weighing"),
    ("The answer is A or B", ANIMALS, Flag.AMBIGUOUS, "4a", "cue and two"),
    ("The answer is A, B is wrong", ANIMALS, "A", "4a", "the other one is rejected"),
    ("answer: c, d", ANIMALS, Flag.AMBIGUOUS, "4a", "lower case and two"),
    ("A car is waiting, so it will turn right.", TURNS, "B", "9", "article"),
    ("Both A and C are possible.", ANIMALS, Flag.AMBIGUOUS, "7", "both"),
    ("A. no\nB. no\nC. no\nD. yes", ANIMALS, Flag.AMBIGUOUS, "5", "a line each"),
    ("A. no\nB. no\nC. no\nD. yes\nSo D.", ANIMALS, "D", "4a", "a line each, and a cue"),
    ("option b", ANIMALS, "B", "1", "word and letter"),
    ("E", ANIMALS, Flag.NOT_AN_OPTION, "1", "no such letter"),
    ("d", TURNS, Flag.NOT_AN_OPTION, "1", "a letter without a text"),
    ("The answer is E.", ANIMALS, Flag.NOT_AN_OPTION, "10", "cue and no such letter"),
    ("E) something", ANIMALS, Flag.NOT_AN_OPTION, "10", "start and no such letter"),
    ("The answer is E, I mean bus", ANIMALS, "D", "9", "no such letter, but a text"),
    ("n/a", ANIMALS, Flag.NO_ANSWER, "3", "nothing"),
    ("IDK.", ANIMALS, Flag.NO_ANSWER, "3", "nothing"),
    ("B is the most likely", ANIMALS, "B", "4b", "said to be right"),
    ("I see it: c is the best answer", ANIMALS, "C", "4b", "lower case, said to be right"),
    ("option is b", ANIMALS, "B", "4a", "option is"),
    ("This option must be (C)", ANIMALS, "C", "4a", "option must be"),
    ("I go with C", ANIMALS, "C", "4a", "go with"),
    ("正确答案是B", ANIMALS, "B", "4a", "Chinese"),
    ("答案：C", ANIMALS, "C", "4a", "Chinese"),
    ("the answer is 'b'.", ANIMALS, "B", "4a", "quotes"),
    ("b) both workers", ANIMALS, "B", "5", "start, lower case"),
    ("C - a car", ANIMALS, "C", "5", "start, dash"),
    ("D because a worker waves", ANIMALS, "D", "5", "start, because"),
    ("B, it turns", ANIMALS, "B", "5", "start, comma"),
    ("- (B) dog", ANIMALS, "B", "5", "bullet"),
    ("(A) or (B)", ANIMALS, Flag.AMBIGUOUS, "6", "two in brackets"),
    ("(A) is wrong because the lane ends", ANIMALS, Flag.NO_ANSWER, "10", "start, but rejected"),
    ("I see that (A) fits", ANIMALS, "A", "6", "brackets in the middle"),
    ("I see that A fits, B does not", ANIMALS, Flag.NO_ANSWER, "10", "an article before a verb"),
    ("Clearly B fits; A does not", ANIMALS, "B", "7", "capital in the middle"),
    ("It cannot be A. It isn't B either. D fits", ANIMALS, "D", "7", "rejected ones"),
    ("C can be ruled out. Perhaps D?", ANIMALS, "D", "7", "ruled out"),
    ("A and B are wrong.", ANIMALS, Flag.NO_ANSWER, "10", "two rejected together"),
    ("A, B and C are clearly wrong. Hmm, D?", ANIMALS, "D", "7", "a list rejected together"),
    ("It is not A or B.", ANIMALS, Flag.NO_ANSWER, "10", "two rejected by one not"),
    ("It's a 3D scene", ANIMALS, Flag.NO_ANSWER, "10", "digit before the letter"),
    ("B-roll footage", ANIMALS, Flag.NO_ANSWER, "10", "hyphen after the letter"),
    ("I am sure", ANIMALS, Flag.NO_ANSWER, "10", "the pronoun"),
    ("DO NOT KNOW", ANIMALS, Flag.NO_ANSWER, "10", "letters inside of words"),
    ("e.g. a dog", ANIMALS, "B", "9", "an abbreviation at the start"),
    ("A red car", COLOURS, "B", "2", "a text that begins with a letter"),
    ("no", BINARY, "B", "2", "text of the option"),
    ("No, it is not completed.", BINARY, "B", "8, yes_no 4", "yes or no"),
    ("No cup is there", BINARY, Flag.NO_ANSWER, "8, yes_no 6", "yes or no, neither"),
    ("True", BINARY, "A", "8, yes_no 4", "yes in another word"),
    ("Next it will pick up the cup", {"A": "pick up", "B": "Pick up the cup"}, "B", "9", "the longer text"),
    ("cat or dog", ANIMALS, Flag.AMBIGUOUS, "9", "two texts"),
    ("Not a cat. The answer is dog", ANIMALS, "B", "9", "the text after the cue"),
    ("-5", {"A": "5", "B": "-5"}, "B", "2", "a sign is no punctuation"),
    ("它会左转", {"A": "左转", "B": "右转"}, "A", "9", "Chinese words are not separated"),
    ("C. [401, 794]", dict.fromkeys("ABCD", ""), "C", "5", "options without texts"),
    ("[291, 809]", dict.fromkeys("ABCD", ""), Flag.NO_ANSWER, "10", "coordinates"),
]


def found(reading):
    return reading.failure or reading.value


@pytest.mark.parametrize(
    ("reply", "options", "value", "rule", "why"), TABLE, ids=[row[4] + ": " + row[0][:20] for row in TABLE]
)
def test_table(reply, options, value, rule, why):
    reading = read_choice(reply, options)
    assert (found(reading), reading.rule) == (value, f"choice {rule}")


def test_goldens(goldens):
    cases = json.loads((goldens / "understanding_pai" / "parse_choice.json").read_text())["cases"]
    assert len(cases) == 81
    for case in cases:
        reading = read_choice(case["raw"], case["options"])
        assert found(reading) == (case["corrected"] or case["corrected_failure"]), case["raw"]


@pytest.mark.parametrize(("file", "count"), [("vqa", 20), ("pointing", 14)])
def test_goldens_without_texts(goldens, file, count):
    items = json.loads((goldens / "vantage" / f"{file}.json").read_text())["items"]
    assert len(items) == count
    for item in items:
        expected = item.get("corrected", item["reference"])
        reading = read_choice(item["prediction"], dict.fromkeys("ABCD", ""))
        assert found(reading) == (expected["parsed"] or expected["failure"]), item["prediction"]


def test_options_are_checked():
    with pytest.raises(ValueError, match="single capital letters"):
        read_choice("a", {"a": "x"})
    with pytest.raises(ValueError, match="no option"):
        read_choice("A", {"A": None})
