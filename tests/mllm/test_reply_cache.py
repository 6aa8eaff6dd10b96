"""Replies that are not asked for twice: what is kept, under which key, and what a broken file does."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen_eval.mllm import ChatRequest, Message, Options, Reply, TokenChance, Usage
from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.mllm.cache import ReplyCache
from gen_eval.records import InputError

ROOT = Path(__file__).parents[2]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.fixture
def cache(tmp_path):
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache


# --- the file ------------------------------------------------------------------------------------------------------


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=texts,
    reasoning=st.none() | texts,
    chances=st.none() | st.lists(st.tuples(texts, st.floats(-100, 0), st.dictionaries(texts, st.floats(-100, 0)))),
    ignored=st.lists(texts),
)
def test_a_reply_comes_back_as_it_was(cache, text, reasoning, chances, ignored):
    logprobs = None if chances is None else tuple(TokenChance(*one) for one in chances)
    kept = Reply(
        text,
        "stop",
        Usage(1, None, 3),
        reasoning,
        logprobs,
        "m",
        "video",
        tuple(ignored),
        0.5,
        2,
        {"a": [1, {"b": None}]},
    )
    cache.put("key", kept)
    assert cache.get("key") == replace(kept, attempts=0)
    assert cache.get("other") is None
    assert len(cache) == 1


def test_a_file_that_is_no_cache_is_named_and_left_alone(tmp_path):
    for name, content in {"text": b"hello, this is a text file", "junk": bytes(range(256)) * 40}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name} is damaged or no reply cache .*another file"):
            ReplyCache(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content


def test_a_database_of_something_else_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "scores.sqlite") as other:
        other.execute("CREATE TABLE scores (value REAL)")
    other.close()
    with pytest.raises(InputError, match=r"scores\.sqlite is a database of something else"):
        ReplyCache(tmp_path / "scores.sqlite")
    with sqlite3.connect(tmp_path / "scores.sqlite") as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("scores",)]
    other.close()


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "replies.sqlite"
    with ReplyCache(path) as cache:
        for number in range(200):
            cache.put(str(number), Reply("x" * 500))
    content = path.read_bytes()
    path.write_bytes(content[:200] + b"\x00" * (len(content) - 200))
    with pytest.raises(InputError, match="Remove it"), ReplyCache(path) as cache:
        cache.get("7")


def test_a_line_that_cannot_be_read_counts_as_not_kept(cache):
    cache.put("key", Reply("yes"))
    for text in ("{", "[]", json.dumps({"text": "yes"}), json.dumps({"usage": 3, "logprobs": None, "ignored": []})):
        other = sqlite3.connect(cache.path)
        other.execute("UPDATE replies SET reply = ?", (text,))
        other.commit()
        other.close()
        assert cache.get("key") is None
    cache.put("key", Reply("no"))
    assert cache.get("key").text == "no"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be used"):
        ReplyCache(tmp_path / "folder")


def test_two_processes_and_several_threads_write_side_by_side(tmp_path):
    path = tmp_path / "replies.sqlite"
    code = (
        "import sys; from pathlib import Path\n"
        "from gen_eval.mllm.cache import ReplyCache; from gen_eval.mllm import Reply\n"
        "with ReplyCache(Path(sys.argv[1])) as cache:\n"
        "    for number in range(100): cache.put(f'{sys.argv[2]}-{number}', Reply(str(number)))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path), "b"], cwd=ROOT)
    with ReplyCache(path) as cache, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: cache.put(f"c-{number}", Reply(str(number))), range(100)))
        assert child.wait(timeout=60) == 0
        assert len(cache) == 200
        assert cache.get("b-99").text == "99"


# --- what is kept, under which key ---------------------------------------------------------------------------------


def test_the_same_request_is_not_asked_again(talk, served, say, good, ask_for, frames, cache):
    requests = [ask_for(frames()), ask_for(frames("images")), ask_for(top_p=0.5)]
    first, asker = talk(served(say(good())), *requests, cache=cache)
    assert (asker.tally.requests, asker.tally.cached) == (3, 0)
    assert len(cache) == 3
    assert [one.attempts for one in first] == [1, 1, 1]


class Twice:
    """One server that is asked by two askers, one after the other, with one cache."""

    def __init__(self, model, cache):
        self.model, self.cache = model, cache

    def __call__(self, server, first, second, entry=(None, None), change=lambda server: None):
        async def main():
            async with server:
                counts, replies = [], []
                for request, content in zip((first, second), entry, strict=True):
                    client = open_client(self.model(server.address, **(content or {})))
                    async with Asker(client, limits=Limits(attempts=1), cache=self.cache) as asker:
                        replies.append(await asker.ask(request))
                    counts.append(len(server.questions))
                    change(server)
                return counts[1] - counts[0], replies

        return asyncio.run(main())


@pytest.fixture
def twice(model, cache):
    return Twice(model, cache)


def test_a_second_run_asks_nothing(twice, served, say, good, ask_for, frames):
    request = ask_for(frames(), logprobs=2)
    body = good()
    body["choices"][0]["logprobs"] = {
        "content": [{"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "yes", "logprob": -0.1}]}]
    }
    more, (first, second) = twice(served(say(body), say(good("another"))), request, request)
    assert more == 0
    assert second == replace(first, attempts=0)
    assert second.cached
    assert second.logprobs == (TokenChance("yes", -0.1, {"yes": -0.1}),)


@pytest.mark.parametrize(
    "other",
    [{"temperature": 0.5}, {"max_tokens": 7}, {"seed": 1}, {"stop": ("x",)}, {"choices": ("a", "b")}, {"logprobs": 3}],
    ids=str,
)
def test_another_option_is_another_request(twice, served, say, good, ask_for, other):
    more, _ = twice(served(say(good())), ask_for(), ask_for(**other))
    assert more == 1


def test_other_frames_times_or_words_are_another_request(twice, served, say, good, ask_for, frames):
    shown = frames()
    for changed in (
        replace(shown, pictures=(*shown.pictures[:-1], shown.pictures[0])),
        replace(shown, times=(*shown.times[:-1], 9.0)),
        replace(shown, form="images"),
        replace(shown, stamps=True),
    ):
        more, _ = twice(served(say(good())), ask_for(shown), ask_for(changed))
        assert more == 1
    asked = ChatRequest((Message.of("system", "Be brief."), *ask_for(shown).messages), Options())
    assert twice(served(say(good())), ask_for(shown), asked)[0] == 1


@pytest.mark.parametrize("temperature", [1.0, None])
def test_what_is_drawn_is_asked_each_time(twice, served, say, good, ask_for, temperature):
    request = ask_for(temperature=temperature)
    assert twice(served(say(good())), request, request)[0] == 1


@pytest.mark.parametrize(
    "content",
    [
        {"revision": "abc"},
        {"parameters": {"body": {"user": "x"}}},
        {"family": "qwen"},
        {"thinking": {"mode": "switch", "template_key": "enable_thinking"}},
        {"endpoint": {"engine": "generic"}},
        {"id": "tinier", "endpoint": {"served_as": "tiny"}},
    ],
    ids=str,
)
def test_another_model_or_engine_is_asked(twice, served, say, good, ask_for, content):
    assert twice(served(say(good())), ask_for(), ask_for(), entry=(None, content))[0] == 1


def test_what_moves_nothing_does_not_count(twice, served, say, good, ask_for):
    content = {"title": "Other", "price": {"input": 1, "output": 1, "as_of": "2025-01-01"}}
    assert twice(served(say(good())), ask_for(), ask_for(), entry=(None, content))[0] == 0


def test_another_version_of_the_engine_is_asked(twice, served, say, good, ask_for):
    def upgrade(server):
        server.pages["/version"] = say({"version": "0.33.0"})

    assert twice(served(say(good())), ask_for(), ask_for(), change=upgrade)[0] == 1


def test_another_address_is_asked(talk, served, say, good, ask_for, cache):
    for _ in range(2):  # each server has a port of its own
        _, asker = talk(served(say(good())), ask_for(), cache=cache)
        assert asker.tally.requests == 1


@pytest.mark.parametrize(
    ("text", "finish"), [("ye", "length"), ("", "stop"), (None, "stop"), ("yes", None), ("yes", "tool_calls")]
)
def test_a_reply_that_is_not_whole_is_not_kept(twice, served, say, good, ask_for, text, finish):
    more, replies = twice(served(say(good(text, finish=finish)), say(good("yes"))), ask_for(), ask_for())
    assert more == 1
    assert replies[1].text == "yes"


def test_a_failure_is_not_kept(talk, served, say, good, ask_for, cache):
    talk(served(say({"error": "no"}, status=400)), ask_for(), cache=cache)
    assert len(cache) == 0


def test_a_temperature_that_the_model_does_not_take_makes_nothing_deterministic(twice, served, say, good, ask_for):
    content = {"parameters": {"without": ["temperature"]}}
    assert twice(served(say(good())), ask_for(), ask_for(), entry=(content, content))[0] == 1


def test_a_cache_that_breaks_does_not_cost_the_reply(talk, served, say, good, ask_for, cache, caplog):
    other = sqlite3.connect(cache.path)
    other.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    other.commit()
    other.close()
    found, _ = talk(served(say(good())), ask_for(), ask_for(seed=1), cache=cache)
    assert [one.text for one in found] == ["yes", "yes"]
    assert "no longer kept" in caplog.text
