"""Every way in which a server fails has its stated treatment; requests are counted on the server's side."""

import asyncio
import contextlib
from email.utils import formatdate

import pytest

from gen_eval.mllm import ChatError
from gen_eval.mllm.asking import Limits
from gen_eval.records import InputError, MissingPart, Reason

OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages)",
    "You passed 9000 input tokens and requested 10 output tokens. However, the model's context length is only 8192",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
    "the request exceeds the available context size, try increasing it",
]


def error(message, **more):
    return {"error": {"message": message, **more}}


# --- failures that may pass ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"status": 500, "body": b"Internal Server Error"},
        {"status": 502, "body": b"<html>bad gateway</html>"},
        {"status": 503, "body": {"error": "starting"}},
        {"status": 529, "body": {"error": {"message": "overloaded"}}},
        {"status": 429, "body": {"error": {"message": "slow down"}}},
        {"status": 408, "body": {"error": {"message": "timed out"}}},
        {"reset": True},
        {"body": {"choices": [1, 2, 3]}, "cut": 5},
        {"body": {"choices": []}},
        {"body": {"choices": [{"finish_reason": "stop"}]}},
        {"body": {"choices": [{"finish_reason": "stop", "message": "hello"}]}},
        {"body": {"choices": "none"}},
        {"body": ["not", "a", "mapping"]},
        {"body": b"<html>hello</html>"},
        {"body": b""},
        {"body": b"[" * 100_000},
        {"body": b"\xff\xfe\x00"},
        {"body": {"error": {"message": "upstream went away", "code": 502}}},
        {"body": {"choices": [{"finish_reason": "error", "message": {"content": ""}}]}},
    ],
    ids=lambda bad: str(bad)[:40],
)
def test_what_may_pass_is_asked_again(talk, served, say, good, ask_for, bad):
    server = served(say(**bad), say(**bad), say(good()))
    reply, asker = talk(server, ask_for())
    assert (reply.text, reply.attempts, len(server.questions)) == ("yes", 3, 3)
    assert (asker.tally.requests, asker.tally.retries, asker.tally.failed) == (3, 2, 0)


@pytest.mark.parametrize(
    "bad", [{"status": 500, "body": b"no"}, {"reset": True}, {"body": {"choices": []}}], ids=lambda bad: str(bad)[:30]
)
def test_attempts_are_bounded_and_counted(talk, served, say, ask_for, bad):
    server = served(say(**bad))
    failed, asker = talk(server, ask_for(), limits=Limits(attempts=3, first_wait=0))
    assert isinstance(failed, ChatError)
    assert (failed.reason, failed.attempts, failed.retry) == (Reason.ENDPOINT_ERROR, 3, True)
    assert len(server.questions) == 3
    assert (asker.tally.requests, asker.tally.retries, asker.tally.failed) == (3, 2, 1)


def test_a_slow_body_is_given_up(talk, served, say, good, ask_for):
    server = served(say(good(), wait=30.0), say(good()))
    reply, _ = talk(server, ask_for(), limits=Limits(timeout=0.2, first_wait=0))
    assert (reply.text, reply.attempts) == ("yes", 2)
    server = served(say(good(), wait=30.0))
    failed, _ = talk(server, ask_for(), limits=Limits(timeout=0.05, attempts=2, first_wait=0))
    assert (failed.reason, failed.attempts) == (Reason.ENDPOINT_ERROR, 2)
    assert "0.05 s" in str(failed)


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after": formatdate(1_000_020, usegmt=True), "date": formatdate(1_000_000, usegmt=True)}, 20),
        ({"retry-after": "86400"}, 60),  # capped
        ({"retry-after": formatdate(1_000, usegmt=True)}, 0),  # long past
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "-5"}, 0),
    ],
)
def test_retry_after_is_heeded_within_a_limit(talk, served, say, good, ask_for, headers, least):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    server = served(say(error("slow down"), status=429, headers=headers), say(good()))
    reply, _ = talk(server, ask_for(), limits=Limits(first_wait=1.0, longest_wait=60.0), sleep=sleep)
    assert reply.attempts == 2
    assert least <= waits[0] <= min(least + 1.0, 60.0)


def test_others_wait_too_when_the_server_asks_for_time(talk, served, say, good, ask_for):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    server = served(say(error("slow down"), status=429, headers={"retry-after": "50"}), say(good()))
    talk(server, ask_for(), ask_for(seed=1), limits=Limits(concurrency=1, first_wait=0), sleep=sleep)
    assert len(waits) == 3  # before the second attempt, as said and as left; before the other question
    assert all(40 < one <= 50 for one in waits)


def test_an_exchange_that_is_cancelled_at_any_moment_does_not_block_the_next(served, say, good, ask_for, model):
    from gen_eval.mllm.http import Client

    async def main():
        server = served(say(good(), wait=0.002))
        async with server, Client(model(server.address)) as client:
            await client.identity()
            for moment in range(40):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(moment / 4000):
                        await client.reply(ask_for("x" * 200_000))
                if moment % 8 == 7:
                    async with asyncio.timeout(20):
                        assert (await client.reply(ask_for())).text == "yes"

    asyncio.run(main())


# --- failures that stay --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "words"), [(400, words) for words in OVERFLOWS] + [(500, OVERFLOWS[2])])
def test_a_question_beyond_the_context_is_asked_once(talk, served, say, ask_for, status, words):
    server = served(say(error(words), status=status))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.attempts, len(server.questions)) == (Reason.CONTEXT_OVERFLOW, 1, 1)
    assert words[:40] in str(failed)


def test_the_code_alone_tells_an_overflow(talk, served, say, ask_for):
    server = served(say(error("too much", code="context_length_exceeded"), status=400))
    failed, _ = talk(server, ask_for())
    assert failed.reason is Reason.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    "bad",
    [
        {"status": 400, "body": error("filtered", code="content_filter")},
        {"status": 400, "body": {"error": {"code": "data_inspection_failed", "message": "inappropriate content"}}},
        {"body": {"choices": [{"finish_reason": "content_filter", "message": {"content": "I"}}]}},
        {"body": {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "I cannot."}}]}},
    ],
    ids=lambda bad: str(bad)[:60],
)
def test_a_refusal_is_no_failure_of_the_server(talk, served, say, ask_for, bad):
    server = served(say(**bad))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.attempts, len(server.questions)) == (Reason.CONTENT_FILTER, 1, 1)


@pytest.mark.parametrize(("status", "words"), [(422, "Unexpected fields"), (400, "top_k must be"), (413, "too large")])
def test_other_complaints_are_quoted_and_not_repeated(talk, served, say, ask_for, status, words):
    server = served(say({"detail": f"{words} " + "x" * 5000}, status=status))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.retry, len(server.questions)) == (Reason.ENDPOINT_ERROR, False, 1)
    assert words in str(failed)
    assert len(str(failed)) < 600


def test_words_of_the_server_stay_on_one_line(talk, served, say, ask_for):
    server = served(say(error("one\r\ntwo\x1b[31m\x00three"), status=400))
    failed, _ = talk(server, ask_for())
    assert str(failed).endswith("answered 400: one two [31m three")


def test_a_redirect_is_not_followed(talk, served, say, ask_for):
    elsewhere = "http://example.invalid/v1/chat/completions"
    server = served(say(b"", status=307, headers={"location": elsewhere}))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.retry, len(server.questions)) == (Reason.ENDPOINT_ERROR, False, 1)
    assert elsewhere in str(failed)


def test_an_endless_body_is_not_read_to_the_end(talk, served, say, ask_for, monkeypatch):
    monkeypatch.setattr("gen_eval.mllm.wire.LARGEST_BODY", 2**20)
    server = served(say(b" " * (4 * 2**20)))
    failed, _ = talk(server, ask_for())
    assert (failed.reason, failed.retry, len(server.questions)) == (Reason.ENDPOINT_ERROR, False, 1)
    assert "1 MB" in str(failed)


# --- what ends a run -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_the_run_and_is_never_shown(talk, served, say, ask_for, monkeypatch, status):
    monkeypatch.setenv("TINY_KEY", "sk-secret-1234")
    server = served(say(error("bad key sk-secret-1234"), status=status))
    failed, _ = talk(server, ask_for(), entry={"endpoint": {"api_key_env": "TINY_KEY"}})
    assert isinstance(failed, MissingPart)
    assert "TINY_KEY" in str(failed)
    assert "sk-secret" not in str(failed)
    assert len(server.questions) == 1
    assert {one.headers["authorization"] for one in server.asked} == {"Bearer sk-secret-1234"}


@pytest.mark.parametrize(("value", "words"), [(None, "unset"), ("  ", "unset"), ("a\u0142b", "characters")])
def test_a_key_that_is_none_is_named_before_anything_is_sent(
    talk, served, say, good, ask_for, monkeypatch, value, words
):
    monkeypatch.delenv("TINY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TINY_KEY", value)
    server = served(say(good()))
    failed, _ = talk(server, ask_for(), entry={"endpoint": {"api_key_env": "TINY_KEY"}})
    assert isinstance(failed, MissingPart)
    assert "TINY_KEY" in str(failed)
    assert words in str(failed)
    assert server.asked == []


def test_no_key_is_sent_that_the_entry_does_not_name(talk, served, say, good, ask_for, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234")
    server = served(say(good()))
    talk(server, ask_for())
    assert not any("authorization" in one.headers for one in server.asked)


@pytest.mark.parametrize(
    "bad",
    [
        {"status": 404, "body": {"error": {"message": "The model `tiny` does not exist."}}},
        {"status": 400, "body": {"detail": "Server is pinned to 'other'; requested 'tiny'."}},
    ],
)
def test_a_model_that_went_away_ends_the_run(talk, served, say, ask_for, bad):
    server = served(say(**bad))
    failed, _ = talk(server, ask_for())
    assert isinstance(failed, InputError)
    assert "'tiny'; the server has tiny" in str(failed)
    assert len(server.questions) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"status": 429, "body": error("quota", code="insufficient_quota")},
        {"status": 402, "body": error("pay first")},
        {"status": 400, "body": error("Your credit balance is too low to access the API")},
    ],
)
def test_an_empty_account_ends_the_run(talk, served, say, ask_for, bad):
    server = served(say(**bad))
    failed, _ = talk(server, ask_for())
    assert isinstance(failed, MissingPart)
    assert "nothing left" in str(failed)
    assert len(server.questions) == 1


def test_a_server_that_is_not_there_is_named(model):
    from gen_eval.mllm.http import Client

    async def main():
        async with Client(model("http://127.0.0.1:9/v1")) as client:
            await client.identity()

    with pytest.raises(MissingPart, match=r"127\.0\.0\.1:9 .*Start it"):
        asyncio.run(main())


def test_a_server_that_dies_costs_what_it_was_asked(served, say, good, ask_for, model):
    from gen_eval.mllm.asking import Asker
    from gen_eval.mllm.http import Client

    async def main():
        server = served(say(good()))
        async with server, Asker(Client(model(server.address)), limits=Limits(attempts=2, first_wait=0)) as asker:
            await asker.identity()
            await server.__aexit__()
            with pytest.raises(ChatError) as failed:
                await asker.ask(ask_for())
        return failed.value

    failed = asyncio.run(main())
    assert (failed.reason, failed.attempts) == (Reason.ENDPOINT_ERROR, 2)


# --- replies that are odd ------------------------------------------------------------------------------------------


def test_a_poisoned_question_does_not_stop_the_others(talk, served, say, good, ask_for):
    server = served(say(good()), say(error("bad"), status=400), say(good()))
    found, asker = talk(server, *(ask_for(seed=seed) for seed in range(5)), limits=Limits(concurrency=1))
    assert [getattr(one, "text", None) for one in found] == ["yes", None, "yes", "yes", "yes"]
    assert (asker.tally.requests, asker.tally.failed) == (5, 1)


def test_a_reply_that_was_cut_is_kept_and_marked(talk, served, say, good, ask_for):
    reply, _ = talk(served(say(good("ye", finish="length"))), ask_for())
    assert (reply.text, reply.finish_reason, reply.attempts) == ("ye", "length", 1)


@pytest.mark.parametrize("content", [None, "", []])
def test_a_reply_that_says_nothing_is_empty(talk, served, say, good, ask_for, content):
    reply, _ = talk(served(say(good(content, finish="length", reasoning_content="let me see"))), ask_for())
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("", "length", "let me see")


def test_content_in_pieces_is_joined(talk, served, say, good, ask_for):
    reply, _ = talk(served(say(good([{"type": "text", "text": "y"}, {"type": "text", "text": "es"}, 7]))), ask_for())
    assert reply.text == "yes"


def test_half_characters_and_numbers_that_are_none_can_be_written_down(talk, served, say, ask_for):
    body = (
        b'{"choices": [{"finish_reason": "stop", "message": {"content": "a\\ud800b"}}], "x": [NaN, -Infinity, 1e999]}'
    )
    reply, _ = talk(served(say(body)), ask_for())
    assert reply.text == "a\ufffdb"
    assert reply.raw["x"] == [None, None, None]


def test_usage_that_is_none_is_not_counted(talk, served, say, good, ask_for):
    body = {**good(), "usage": {"prompt_tokens": -3, "completion_tokens": "many"}}
    reply, _ = talk(served(say(body)), ask_for())
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (None, None)


def test_a_server_that_takes_no_frames_as_a_video_ends_the_run_and_says_what_to_do(talk, served, say, ask_for):
    words = "Per-request mm_processor_kwargs are disabled by default. Start the server with --trust-request-mm-kwargs"
    server = served(say(error(words), status=400))
    failed, _ = talk(server, ask_for())
    assert isinstance(failed, MissingPart)
    assert "start it with --trust-request-mm-kwargs" in str(failed)
    assert len(server.questions) == 1
