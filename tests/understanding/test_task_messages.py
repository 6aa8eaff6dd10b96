"""What a model is told: order, form of the options, nothing of a video that is not shown, nothing of the key."""

import pytest

from gen_eval.mllm import ChatRequest, Frames, Image
from understanding import task
from understanding.messages.forms import form_names, load_form

QUESTION = {
    "id": "q",
    "question": "Which way does the robot go? Answer with the letter of the right option alone.",
    "options": {"B": "Right.", "A": "Left.", "C": None, "D": "On {letter}."},
    "answer": "B",
}
PUBLIC = ("reason_script", "paibench_u", "physical_ai_understanding")


def frames():
    picture = Image(b"picture", "image/png", 28, 28)
    return Frames((picture,), (0.0,), (0,), 8.0, 1)


def bound(form):
    return task("pai/u") if form == "corrected" else task("pai/u", "reference", form)


def turns(form, part, question=QUESTION, **more):
    return bound(form).build_messages(question, part, **more)


def text(messages, role="user"):
    return "".join(part.text for one in messages if one.role == role for part in one.parts if hasattr(part, "text"))


@pytest.mark.parametrize("form", ["corrected", *PUBLIC])
def test_options_are_sorted_null_ones_left_out_and_the_key_is_not_told(form):
    messages = turns(form, frames())
    body = text(messages)
    mark = ":" if form == "reason_script" else "."
    assert f"A{mark} Left.\nB{mark} Right.\nD{mark} On {{letter}}." in body
    assert f"C{mark}" not in body
    other = {**QUESTION, "answer": "A"}
    assert turns(form, frames(), other) == messages


@pytest.mark.parametrize(("form", "first"), [("corrected", True), ("reason_script", False), ("paibench_u", True)])
def test_where_the_video_stands(form, first):
    (user,) = [one for one in turns(form, frames()) if one.role == "user"]
    assert [isinstance(part, Frames) for part in user.parts] == [first, not first]


def test_each_public_form_as_the_protocol_describes_it():
    assert "<think>" in text(turns("reason_script", frames()), "system")
    assert "<answer>" in text(turns("reason_script", frames()), "system")
    assert not text(turns("paibench_u", frames()), "system")
    assert text(turns("paibench_u", frames())).endswith("Best option: (")
    own = text(turns("physical_ai_understanding", frames()))
    assert own.count("Answer with the letter of the right option alone.") == 1  # the question's own copy is gone
    assert "robot go?\n\nA. Left." in own


@pytest.mark.parametrize("form", ["corrected", *PUBLIC])
def test_without_a_video_nothing_speaks_of_one(form):
    messages = turns(form, None)
    assert all(hasattr(part, "text") for one in messages for part in one.parts)
    told = (text(messages) + text(messages, "system")).casefold()
    for word in ("video", "frame", "clip", "watch", "image"):
        assert word not in told


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("corrected", {"temperature": 0.0, "top_p": 1.0, "repetition_penalty": 1.0, "max_tokens": 1024}),
        (
            "reason_script",
            {"temperature": 0.6, "top_p": 0.95, "repetition_penalty": 1.05, "max_tokens": 16384},
        ),
        ("paibench_u", {"temperature": 0.0, "max_tokens": 32}),
        ("physical_ai_understanding", {"temperature": 0.0, "max_tokens": 2048}),
    ],
)
def test_decoding_is_stated_whole(form, expected):
    assert bound(form).decoding().asked == expected


def test_reasoning_has_room_and_is_said():
    found = task("pai/u").decoding(thinking=True, effort="low", seed=3)
    assert found.asked == {
        "temperature": 0.0, "top_p": 1.0, "repetition_penalty": 1.0, "max_tokens": 16384,
        "thinking": True, "effort": "low", "seed": 3,
    }  # fmt: skip
    assert task("pai/u").decoding(thinking=False).max_tokens == 1024
    assert task("pai/u").decoding(may_reason=True).max_tokens == 16384
    assert task("pai/u").decoding(may_reason=True, thinking=False).max_tokens == 1024
    # public code has one number, whether the model reasons or not
    assert task("pai/u", "reference").decoding(may_reason=True).max_tokens == 32


def test_forms_differ_and_their_digest_moves_with_the_words():
    digests = {load_form("pai_u", name).digest for name in form_names("pai_u")}
    assert len(digests) == len(form_names("pai_u"))
    form = load_form("pai_u", "corrected")
    assert form.model_copy(update={"after": "Say a letter."}).digest != form.digest
    assert form.model_copy(update={"options": {"temperature": 1.0}}).digest == form.digest  # decoding is apart


def test_a_rotated_question_shows_the_texts_moved_on():
    one = task("pai/u").sample(QUESTION).rotated(1)
    assert "A. Right.\nB. On {letter}.\nD. Left." in text(turns("corrected", frames(), one))


def test_only_frames_move_the_request_and_the_question_comes_last():
    first, second = ({**QUESTION, "question": words} for words in ("One?", "Two?"))
    requests = [ChatRequest(turns("corrected", frames(), one)) for one in (first, second)]
    assert requests[0].digest != requests[1].digest
    assert requests[0].messages[0] == requests[1].messages[0]
    assert requests[0].messages[1].parts[0] == requests[1].messages[1].parts[0]


def test_the_second_stage_sees_question_options_and_reply_and_may_say_none():
    bound_task = task("pai/u")
    sample = bound_task.sample(QUESTION)
    messages, options = bound_task.second_stage_request(sample, "it goes where the sign points")
    assert options.choices == ("A", "B", "D", "NONE")
    assert (options.temperature, options.thinking, options.max_tokens) == (0.0, False, 512)
    always = bound_task.second_stage_request(sample, "so", thinking=None, may_reason=True)[1]
    assert (always.thinking, always.max_tokens) == (None, 16384)
    told = text(messages)
    assert "it goes where the sign points" in told
    assert "B. Right." in told
    long = text(bound_task.second_stage_request(sample, "x" * 50_000 + " so B")[0])
    assert len(long) < 25_000
    assert "so B" in long


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("B", "B"),
        ("NONE", None),
        (" b. ", "B"),
        ("**(B)**", "B"),
        ("<think>A? No, it points right.</think>\n\nB", "B"),
        ("<think>It may be A or B", None),
        ("C", None),
        ("", None),
        (None, None),
    ],
)
def test_what_the_second_stage_may_say(said, read):
    bound_task = task("pai/u")
    assert bound_task.second_stage_reading(said, bound_task.sample(QUESTION)).value == read


def test_a_question_without_text_cannot_be_asked():
    with pytest.raises(ValueError, match="has no question"):
        turns("corrected", frames(), {"id": "q", "options": {"A": "x"}, "answer": "A"})
