import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.records import Flag
from gen_eval.replies import prelude, read_choice, read_phrase, read_reference, read_yes_no

OPTIONS = {"A": "Turn left.", "B": "Turn right.", "C": "Go straight.", "D": None, "E": None}
SNIPPETS = (
    "A", "B", "c", "D", "E", "(a)", "[B]", "yes", "No", "not", "so", "the answer is", "option", "is wrong", "is right",
    "or", "and", ",", ".", ";", "\n", ":", "<think>", "</think>", "<answer>", "</answer>", "{", "}", "[", "]",
    '"answer"', '"', "'", "```", "\\boxed{", "turn left", "go straight", "答案是", "不", "是", "-", "—", "`",
    "\u0301", "true", "null", "1.5",
)  # fmt: skip
SAID = (
    "yes",
    "no",
    "Yes",
    "so",
    "the",
    "answer",
    "is",
    "not",
    "true",
    ".",
    ",",
    ";",
    ":",
    "/",
    "\n",
    "and",
    "or",
    "cup",
)
REPLIES = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(SNIPPETS), max_size=14).map(" ".join),
    st.lists(st.sampled_from(SNIPPETS), max_size=14).map("".join),
)
UNTAGGED = REPLIES.map(lambda text: text.replace("<", ""))
NOT_TEXT = st.one_of(st.none(), st.integers(), st.floats(), st.binary(max_size=5), st.lists(st.text(max_size=3)))
FAILURES = {
    Flag.EMPTY,
    Flag.NOT_TEXT,
    Flag.UNCLOSED_REASONING,
    Flag.BAD_JSON,
    Flag.AMBIGUOUS,
    Flag.NOT_AN_OPTION,
    Flag.NO_ANSWER,
}


@given(reply=st.one_of(REPLIES, NOT_TEXT))
def test_a_reply_is_read_or_has_a_named_failure(reply):
    for reading, values in (
        (read_choice(reply, OPTIONS), {"A", "B", "C"}),
        (read_choice(reply, {"A": "yes", "B": "no"}), {"A", "B"}),
        (read_yes_no(reply), {"yes", "no"}),
    ):
        assert reading.failure in FAILURES if reading.value is None else reading.value in values
        assert reading.rule
    assert (read_phrase(reply, "left").value is None) == (prelude(reply).value is None)


@given(
    reply=UNTAGGED, thoughts=UNTAGGED, tag=st.sampled_from(["think", "Thinking", "THOUGHT", "reasoning", "analysis"])
)
def test_reasoning_before_and_an_answer_tag_around_change_nothing(reply, thoughts, tag):
    for wrapped in (
        f"<{tag}>{thoughts}</{tag}>\n{reply}",
        f"{thoughts}</{tag}>{reply}",
        f"{thoughts}<answer>{reply}</answer>{thoughts}",
    ):
        for read in (read_yes_no, lambda text: read_choice(text, OPTIONS)):
            bare, found = read(reply), read(wrapped)
            assert (found.value, found.failure, found.rule) == (bare.value, bare.failure, bare.rule)


@given(reply=st.lists(st.sampled_from(SAID)).map(" ".join))
def test_case_and_blanks_do_not_change_a_yes_or_no(reply):
    expected = read_yes_no(reply)
    for other in (reply.upper(), reply.lower(), f"  {reply}\n", reply.replace(" ", "   ")):
        found = read_yes_no(other)
        assert (found.value, found.failure, found.rule) == (expected.value, expected.failure, expected.rule)


@pytest.mark.parametrize("letter", "ABC")
@pytest.mark.parametrize(
    "form",
    ["{}", "{}.", "({})", "[{}]", "**{}**", "{})", "option {}", "Answer: {}", "The answer is {}.",
     "The answer is ({}).", "Final answer: {}", "answer = {}", "So the correct option is {}", "$\\boxed{{{}}}$",
     '{{"answer": "{}"}}',
     "{}: it is", "It moves.\n\n{}", "Therefore, {} is correct", "I would choose {}"],
)  # fmt: skip
def test_a_clean_letter_is_read(form, letter):
    assert read_choice(form.format(letter), OPTIONS).value == letter
    lower = form.format(letter.lower())
    assert read_choice(f" {lower} \n", OPTIONS).value == letter


@given(reply=REPLIES, letter=st.sampled_from("DE"))
def test_a_letter_without_a_text_is_never_chosen(reply, letter):
    assert read_choice(f"{reply}. The answer is {letter}.", OPTIONS).value != letter
    assert read_choice(letter, OPTIONS).failure == Flag.NOT_AN_OPTION


@given(reply=st.one_of(REPLIES, NOT_TEXT), id=st.text(max_size=5))
def test_public_readings_are_read_or_fail_and_repeat(reply, id):
    for dialect in ("reason_script", "paibench_u", "paibench_u_unstripped", "physical_ai_understanding"):
        found = read_reference(dialect, reply, options=OPTIONS, question_id=id)
        assert found == read_reference(dialect, reply, options=OPTIONS, question_id=id)
        assert found.value is None or (len(found.value) == 1 and found.value.isupper())
        assert (Flag.RANDOM_DRAW in found.flags) <= dialect.startswith("paibench_u")
