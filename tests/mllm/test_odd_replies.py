"""Answers of servers with values of the wrong kind in the right places: read without them, or a failure with a name."""

import pytest

from gen_eval.mllm import ChatError
from gen_eval.mllm.asking import Limits, cost_of
from gen_eval.mllm.entry import entry_of
from gen_eval.records import MissingPart, Reason

HUGE = 10**400


@pytest.mark.parametrize("half", [b"\xed\xa0\x80", b"\\ud800", b"\xff"])
def test_a_broken_character_does_not_cost_the_reply(talk, served, say, ask_for, half):
    body = b'{"choices": [{"finish_reason": "stop", "message": {"content": "yes ' + half + b'"}}]}'
    reply, _ = talk(served(say(body)), ask_for())
    assert reply.text.rstrip("\ufffd") == "yes "
    assert reply.text.encode()  # can be written anywhere
    assert reply.attempts == 1


@pytest.mark.parametrize("finish", [{"a": 1}, ["stop"], 5, None])
def test_an_ending_that_is_no_text_is_unknown(talk, served, say, good, ask_for, finish):
    reply, _ = talk(served(say(good(finish=finish))), ask_for())
    assert (reply.text, reply.finish_reason) == ("yes", "unknown")


@pytest.mark.parametrize(
    ("backend", "body"),
    [
        ("gemini", {"candidates": [{"finishReason": {"a": 1}, "content": {"parts": [{"text": "yes"}]}}]}),
        ("anthropic", {"stop_reason": ["end_turn"], "content": [{"type": "text", "text": "yes"}]}),
        ("openai-responses", {"status": {"a": 1}, "output": [{"type": "message"}]}),
    ],
)
def test_other_interfaces_name_it_as_a_failure_of_theirs(talk, served, say, ask_for, backend, body, monkeypatch):
    monkeypatch.setenv("ODD_KEY", "k" * 20)
    entry = {"backend": backend}
    server = served(say(body), pages={"/v1/models/tiny": say({"id": "tiny", "name": "models/tiny"})})
    failed, _ = talk(server, ask_for(), entry=entry, limits=Limits(attempts=2, first_wait=0))
    assert isinstance(failed, ChatError)
    assert (failed.reason, failed.attempts) == (Reason.ENDPOINT_ERROR, 2)


def test_numbers_that_no_float_holds_are_none(talk, served, say, good, ask_for):
    body = {**good(), "usage": {"prompt_tokens": HUGE, "completion_tokens": -1}}
    body["choices"][0]["logprobs"] = {
        "content": [{"token": "yes", "logprob": -0.5, "top_logprobs": [{"token": "no", "logprob": -HUGE}]}]
    }
    price = {"input": 1.0, "output": 1.0, "as_of": "2025-01-01"}
    reply, asker = talk(served(say(body)), ask_for(logprobs=2), entry={"price": price})
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (None, None)
    assert [(one.token, one.logprob, one.top) for one in reply.logprobs] == [("yes", -0.5, {})]
    assert cost_of(entry_of("m", {"id": "m", "price": price}), reply.usage) is None
    assert asker.tally.unpriced == 1


@pytest.mark.parametrize(
    "words",
    [
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens).",
        "`inputs` must have less than 4096 tokens. Given: 9000",
        "max_tokens must be at least 1, got -904.",
    ],
)
def test_further_wordings_of_a_context_that_is_too_short(talk, served, say, ask_for, words):
    server = served(say({"error": {"message": words}}, status=400))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.attempts, len(server.questions)) == (Reason.CONTEXT_OVERFLOW, 1, 1)


def test_a_server_that_never_ends_its_list_of_models_is_given_up(talk, served, say, good, ask_for, monkeypatch):
    monkeypatch.setattr("gen_eval.mllm.wire.LONGEST_LOOK", 0.1)
    server = served(say(good()), pages={"/v1/models": say({"data": []}, wait=30.0)})
    failed, _ = talk(server, ask_for())
    assert isinstance(failed, MissingPart)
    assert "within 0.1 s" in str(failed)
    assert not server.questions


def test_a_server_that_repeats_the_key_is_not_quoted_with_it(talk, served, say, good, ask_for, monkeypatch):
    key = "sk-0123456789abcdef"
    monkeypatch.setenv("ODD_KEY", key)
    server = served(say({**good(f"yes {key}"), "model": key}))
    reply, _ = talk(server, ask_for(), entry={"endpoint": {"api_key_env": "ODD_KEY"}})
    assert (reply.text, reply.model) == ("yes ***", "***")
    assert key not in str(reply)
    assert server.questions[0].headers["authorization"] == f"Bearer {key}"
    monkeypatch.setenv("ODD_KEY", "EMPTY")
    reply, _ = talk(served(say(good("EMPTY"))), ask_for(), entry={"endpoint": {"api_key_env": "ODD_KEY"}})
    assert reply.text == "EMPTY"
