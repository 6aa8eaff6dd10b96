"""Prompts, judge entries and requests."""

import pytest

from gen_eval.mllm import Options, Text
from gen_eval.records import InputError
from judge.entry import judge_names, load_judge
from judge.prompting import OTHER_ORDER, WITHOUT_VIDEO, load_prompt, prompt_names
from judge.questions import JudgeQuestion

QUESTION = JudgeQuestion("a", "q0", "Is the {cup} red?", {"A": "Yes", "B": "No"}, "A")


@pytest.mark.parametrize("name", ["yes-no", "no-yes", "reasoning", "without-video"])
def test_media_come_first_and_the_question_last(name, part):
    prompt = load_prompt(name)
    system, user = prompt.messages(part if prompt.shows else None, QUESTION.question)
    assert (system.role, user.role) == ("system", "user")
    assert "{cup}" in user.parts[-1].text
    assert user.parts[:-1] == ((part,) if prompt.shows else ())
    start, question, close = user.parts[-1].text.split("\n\n")
    assert question == "Question: Is the {cup} red?"
    assert "YES" in close
    assert "NO" in close
    # what does not differ between questions is the same to the last byte
    assert prompt.messages(part if prompt.shows else None, "Other?")[0] == system
    assert start == prompt.lead


def test_the_prompts_and_what_they_promise():
    assert prompt_names() == ["no-yes", "reasoning", "without-video", "yes-no"]
    without = load_prompt(WITHOUT_VIDEO)
    assert not any(word in without.text("?").casefold() for word in ("video", "frame", "clip"))
    assert "YES or NO" in load_prompt("yes-no").close
    assert "NO or YES" in load_prompt("no-yes").close
    assert [load_prompt(one).first for one in OTHER_ORDER] == ["yes", "no"]
    schema = load_prompt("reasoning").reply_schema
    assert schema["required"] == ["reasoning", "answer"]
    assert schema["additionalProperties"] is False
    assert len({load_prompt(one).digest for one in prompt_names()}) == 4


def test_a_clip_goes_with_a_prompt_that_speaks_of_one(part):
    with pytest.raises(ValueError, match="without-video"):
        load_prompt(WITHOUT_VIDEO).messages(part, "?")
    with pytest.raises(ValueError, match="no clip"):
        load_prompt("yes-no").messages(None, "?")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "mapping"),
        ("{", "YAML"),
        ("version: 1", "system"),
        ("{version: 1, title: t, system: s, question: no place, first: 'yes'}", "exactly once"),
        ("{version: 1, title: t, system: s, question: '{question}', first: 'yes', more: 1}", "more"),
    ],
)
def test_prompt_files_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_prompt(str(path))


def test_own_prompt_file(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("{version: 2, title: t, system: s, question: 'Q {question}', first: 'no', media: none}")
    prompt = load_prompt(str(path))
    assert prompt.text("x {question}") == "Q x {question}"
    assert prompt.to_json() == {"name": "own", "version": 2, "digest": prompt.digest}
    with pytest.raises(InputError, match="yes-no"):
        load_prompt("unknown")


def test_the_digest_is_of_what_is_sent(tmp_path):
    texts = {
        "a": "{version: 1, title: t, system: s, question: '{question}', first: 'no'}",
        "b": "{version: 1, title: other, system: s, question: '{question}', first: 'no'}",
        "c": "{version: 1, title: t, system: S, question: '{question}', first: 'no'}",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    digests = {name: load_prompt(str(tmp_path / f"{name}.yaml")).digest for name in texts}
    assert digests["a"] == digests["b"] != digests["c"]


def test_requests_name_clip_and_question_and_hide_the_key(part):
    judge = load_judge("simulated")
    request = judge.request(QUESTION, part)
    assert request.about == {"video": "a", "question": "a/q0", "attempt": "0"}
    assert judge.request(QUESTION, part, video="b", attempt=2).about["video"] == "b"
    without = judge.request(QUESTION, None)
    assert without.about["video"] == ""
    assert len(without.parts) == 2
    assert request.digest == judge.request(QUESTION, part, attempt=1).digest != without.digest
    other = JudgeQuestion("a", "q0", QUESTION.question, QUESTION.options, "B")
    assert judge.request(other, part).digest == request.digest
    reasoned = judge.with_prompt("reasoning").request(QUESTION, part)
    assert reasoned.options.schema["properties"]["answer"]["enum"] == ["YES", "NO"]
    assert isinstance(request.parts[-1], Text)


@pytest.mark.parametrize("name", ["simulated", "simulated-blind"])
def test_simulated_judges_say_so(name):
    judge = load_judge(name)
    assert judge.simulated
    assert "simulated" in judge.title
    assert judge.to_json()["model"]["backend"] == "simulated"


def test_a_simulated_judge_cannot_hide(tmp_path):
    path = tmp_path / "brilliant.yaml"
    path.write_text("{title: A brilliant judge, model: {id: x, backend: simulated}}")
    assert load_judge(str(path)).title == "A brilliant judge (simulated)"
    path.write_text("{title: A brilliant model, id: x, backend: simulated}")
    assert load_judge(str(path)).title == "A brilliant model (simulated)"


def test_a_judge_that_names_a_model_and_one_that_is_a_model(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m32.yaml").write_text("{title: M, id: org/m, sees: {patch_factor: 32}}")
    (tmp_path / "models" / "m28.yaml").write_text("{title: M, id: org/m, sees: {patch_factor: 28}}")
    monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path))
    own = tmp_path / "own.yaml"
    own.write_text(
        "{model: m32, prompt: no-yes, context: 100, options: {max_tokens: 5, logprobs: 3, choices: ['Yes', 'No']}}"
    )
    judge = load_judge(str(own), endpoint="http://h/v1", served_as="s")
    assert (judge.model.endpoint.base_url, judge.model.endpoint.served_as) == ("http://h/v1", "s")
    expected = Options(top_k=0, repetition_penalty=1.0, max_tokens=5, logprobs=3, choices=("Yes", "No"))
    assert (judge.preset, judge.context, judge.options) == ("2fps-qwen-0.0.14", 100, expected)
    plain = load_judge("m28")
    assert (plain.preset, plain.prompt.name, plain.options) == (
        "2fps-qwen-0.0.8",
        "yes-no",
        Options(top_k=0, repetition_penalty=1.0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{model: no-such-model}", "no-such-model"),
        ("{model: [1]}", "model"),
        ("{model: {id: x, backend: simulated}, prompt: nothing}", "nothing"),
        ("{model: {id: x, backend: simulated}, options: {warmth: 1}}", "warmth"),
        ("{model: {id: x, backend: simulated}, options: {max_tokens: many}}", "max_tokens"),
        ("{model: {id: x, backend: simulated}, context: 0}", "context"),
        ("{model: {id: x, backend: simulated}, more: 1}", "more"),
    ],
)
def test_judge_files_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_judge(str(path))


def test_unknown_judges_are_answered_with_the_known_ones():
    assert {"pai-g", "pai-g-code", "simulated", "simulated-blind"} <= set(judge_names())
    with pytest.raises(InputError, match="simulated-blind"):
        load_judge("nobody")
