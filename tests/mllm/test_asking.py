"""Concurrency, pace, retries and sharing, on a clock that jumps: no test waits."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval import settings as environment
from gen_eval.mllm import Capabilities, ChatClient, ChatError, ChatRequest, Identity, Message, Options, Reply, Usage
from gen_eval.mllm.asking import Asker, Limits, Tally, cost_of, open_client
from gen_eval.mllm.entry import entry_of
from gen_eval.records import InputError, MissingPart, Reason

ENTRY = entry_of("fake", {"id": "fake"})


class Jumping(asyncio.SelectorEventLoop):
    """An event loop whose clock goes to the next timer when there is nothing else to do."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when) + 1e-6  # a real clock never stands still
        super()._run_once()


def jumping(coroutine):
    """The result of `coroutine` and the seconds that went by on its clock."""
    loop = Jumping()
    try:
        return loop.run_until_complete(coroutine), loop.now
    finally:
        loop.close()


class Fake(ChatClient):
    """Takes a second for each request; `script` says for each question how its attempts end."""

    def __init__(self, script=None, entry=ENTRY, honours=("temperature",), seconds=1.0):
        super().__init__(entry)
        self.script, self.honours, self.seconds = script or {}, honours, seconds
        self.times, self.at_once, self.most_at_once, self.identities, self.stopped = [], 0, 0, 0, 0

    @property
    def capabilities(self):
        return Capabilities(frozenset(self.honours))

    async def identity(self):
        self.identities += 1
        await asyncio.sleep(0.1)
        return Identity("fake", None, "fake")

    async def reply(self, request):
        self.times.append(asyncio.get_running_loop().time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.at_once -= 1
        left = self.script.get(request.messages[0].parts[0].text, [])
        ending = left.pop(0) if left else None
        if ending is not None:
            raise ending
        return Reply(f"to {request.messages[0].parts[0].text}", usage=Usage(100, 10))


def about(seconds):
    return pytest.approx(seconds, abs=1e-3)


def question(text, **options):
    return ChatRequest((Message.of("user", text),), Options(**options))


def trouble(retry=True, **more):
    return ChatError(Reason.ENDPOINT_ERROR, "trouble", retry=retry, **more)


async def all_of(asker, requests):
    return await asyncio.gather(*map(asker.ask, requests), return_exceptions=True)


# --- bounds --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(count=st.integers(1, 40), concurrency=st.integers(1, 12))
def test_never_more_at_once_than_allowed_and_no_place_is_left_empty(count, concurrency):
    client = Fake()
    asker = Asker(client, limits=Limits(concurrency=concurrency))
    _, seconds = jumping(all_of(asker, [question(str(number)) for number in range(count)]))
    assert client.most_at_once == min(count, concurrency)
    assert seconds == about(0.1 + -(-count // concurrency))


@settings(max_examples=40)
@given(
    endings=st.lists(st.lists(st.sampled_from(["again", "stays"]), max_size=6), min_size=1, max_size=8),
    attempts=st.integers(1, 5),
)
def test_requests_stay_within_attempts_and_are_counted(endings, attempts):
    script = {str(n): [trouble(retry=one == "again") for one in ends] for n, ends in enumerate(endings)}
    client = Fake(script)
    asker = Asker(client, limits=Limits(attempts=attempts, concurrency=3))
    found, _ = jumping(all_of(asker, [question(str(n)) for n in range(len(endings))]))
    for ends, one in zip(endings, found, strict=True):
        made = min(next((k for k, end in enumerate(ends) if end == "stays"), len(ends)) + 1, attempts)
        assert one.attempts == made
        assert isinstance(one, Reply) == (made > len(ends))
    tally = asker.tally
    assert tally.requests == len(client.times) == sum(one.attempts for one in found)
    assert tally.retries == tally.requests - len(endings)
    assert tally.failed == sum(isinstance(one, ChatError) for one in found)


def test_requests_are_spaced_to_the_pace():
    client = Fake(seconds=0.0)
    asker = Asker(client, limits=Limits(requests_per_minute=30, concurrency=64))
    jumping(all_of(asker, [question(str(number)) for number in range(40)]))
    assert [after - before for before, after in zip(client.times, client.times[1:], strict=False)] == about([2.0] * 39)


def test_retries_count_towards_the_pace():
    client = Fake({"a": [trouble(), trouble()]}, seconds=0.0)
    jumping(Asker(client, limits=Limits(requests_per_minute=6, first_wait=0.0)).ask(question("a")))
    assert client.times == about([0.1, 10.1, 20.1])


def test_waits_grow_with_jitter_and_a_cap(monkeypatch):
    drawn = []
    monkeypatch.setattr("gen_eval.mllm.asking.random.uniform", lambda low, high: drawn.append((low, high)) or high)
    client = Fake({"a": [trouble() for _ in range(9)]}, seconds=0.0)
    asker = Asker(client, limits=Limits(attempts=6, first_wait=2.0, longest_wait=10.0))
    reply, _ = jumping(all_of(asker, [question("a")]))
    assert reply[0].attempts == 6
    assert drawn[:5] == [(0.0, 2.0), (0.0, 4.0), (0.0, 8.0), (0.0, 10.0), (0.0, 10.0)]
    assert client.times == about([0.1, 2.1, 6.1, 14.1, 24.1, 34.1])


def test_one_that_waits_keeps_its_place_and_what_the_server_asks_for_holds_for_all():
    client = Fake({"a": [trouble(retry_after=50.0)]}, seconds=1.0)
    asker = Asker(client, limits=Limits(concurrency=2, first_wait=0.0))
    jumping(all_of(asker, [question(one) for one in "abc"]))
    assert client.times == about([0.1, 0.1, 51.1, 51.1])  # a, b; then a again, c no earlier


def test_a_pause_that_is_too_long_is_capped():
    client = Fake({"a": [trouble(retry_after=1e9)]}, seconds=0.0)
    jumping(Asker(client, limits=Limits(longest_wait=30.0, first_wait=0.0)).ask(question("a")))
    assert client.times == about([0.1, 30.1])


def test_each_attempt_has_its_own_time():
    client = Fake(seconds=50.0)
    asker = Asker(client, limits=Limits(timeout=5.0, attempts=3, first_wait=0.0))
    (failed,), seconds = jumping(all_of(asker, [question("a")]))
    assert (failed.reason, failed.attempts) == (Reason.ENDPOINT_ERROR, 3)
    assert seconds == about(15.1)
    assert (client.stopped, client.at_once) == (3, 0)


def test_no_limit_of_time():
    reply, seconds = jumping(Asker(Fake(seconds=1e6), limits=Limits(timeout=None)).ask(question("a")))
    assert reply.text == "to a"
    assert seconds > 1e6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", 0),
        ("attempts", 0),
        ("requests_per_minute", 0),
        ("timeout", -1),
        ("first_wait", -1),
        ("longest_wait", float("nan")),
    ],
)
def test_limits_that_let_nothing_through_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        Limits(**{name: value})


# --- cancelling ----------------------------------------------------------------------------------------------------


def test_cancelling_stops_the_request_and_frees_its_place():
    client = Fake(seconds=10.0)
    asker = Asker(client, limits=Limits(concurrency=1))

    async def main():
        first = asyncio.create_task(asker.ask(question("a")))
        await asyncio.sleep(1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await asker.ask(question("b"))

    reply, seconds = jumping(main())
    assert (reply.text, client.stopped, client.at_once) == ("to b", 1, 0)
    assert seconds == about(11.0)
    assert asker.tally.failed == 0


def test_one_of_two_that_share_a_request_may_go():
    client = Fake(seconds=10.0)
    asker = Asker(client)

    async def main():
        first, second = (asyncio.create_task(asker.ask(question("a"))) for _ in range(2))
        await asyncio.sleep(1)
        first.cancel()
        return await second

    reply, _ = jumping(main())
    assert (reply.text, len(client.times), client.stopped) == ("to a", 1, 0)


def test_the_last_one_stops_it_and_a_new_one_asks_anew():
    client = Fake(seconds=10.0)
    asker = Asker(client)

    async def main():
        both = [asyncio.create_task(asker.ask(question("a"))) for _ in range(2)]
        await asyncio.sleep(1)
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        return await asker.ask(question("a"))

    reply, _ = jumping(main())
    assert (reply.text, reply.attempts, len(client.times), client.stopped) == ("to a", 1, 2, 1)


# --- sharing -------------------------------------------------------------------------------------------------------


def test_equal_requests_under_way_are_asked_once():
    client = Fake()
    asker = Asker(client)
    found, _ = jumping(all_of(asker, [question("a"), question("a"), question("b"), question("a")]))
    assert [one.attempts for one in found] == [1, 0, 1, 0]
    assert [one.cached for one in found] == [False, True, False, True]
    assert len(client.times) == 2
    assert (asker.tally.requests, asker.tally.cached) == (2, 2)


def test_equal_requests_share_a_failure():
    client = Fake({"a": [trouble(retry=False)]})
    asker = Asker(client)
    found, _ = jumping(all_of(asker, [question("a"), question("a")]))
    assert all(isinstance(one, ChatError) for one in found)
    assert (asker.tally.requests, asker.tally.failed) == (1, 1)


@pytest.mark.parametrize(
    ("options", "honours"),
    [({"temperature": 1.0}, ("temperature",)), ({"temperature": None}, ("temperature",)), ({}, ())],
)
def test_replies_that_may_differ_are_asked_each(options, honours):
    client = Fake(honours=honours)
    jumping(all_of(Asker(client), [question("a", **options)] * 3))
    assert len(client.times) == 3


def test_fresh_asks_in_any_case():
    client, requests = Fake(), [question("a")] * 3

    async def main(asker):
        return await asyncio.gather(*(asker.ask(one, fresh=True) for one in requests))

    jumping(main(Asker(client)))
    assert len(client.times) == 3


def test_who_answers_is_asked_once():
    client = Fake()
    jumping(all_of(Asker(client), [question(str(number)) for number in range(5)]))
    assert client.identities == 1


def test_what_cannot_be_asked_at_all_is_no_reply():
    client = Fake({"a": [MissingPart("no key")]})
    asker = Asker(client)
    found, _ = jumping(all_of(asker, [question("a")]))
    assert isinstance(found[0], MissingPart)
    assert (asker.tally.requests, asker.tally.failed) == (1, 1)


def test_an_asker_outlives_an_event_loop():
    client = Fake()
    asker = Asker(client, limits=Limits(concurrency=1, requests_per_minute=600))
    for name in "ab":
        found, _ = jumping(all_of(asker, [question(f"{name}{number}") for number in range(3)]))
        assert [one.text for one in found] == [f"to {name}{number}" for number in range(3)]
    assert asker.tally.requests == 6


# --- counting ------------------------------------------------------------------------------------------------------


def test_tokens_and_cost_are_summed():
    entry = entry_of(
        "m", {"id": "m", "price": {"input": 2.0, "output": 10.0, "currency": "EUR", "as_of": "2025-01-01"}}
    )
    asker = Asker(Fake({"b": [trouble(retry=False)]}, entry=entry))
    jumping(all_of(asker, [question(one) for one in "abca"]))
    assert asker.tally == Tally(
        requests=3,
        cached=1,
        failed=1,
        usage=Usage(200, 20),
        cost=about(2 * (100 * 2 + 10 * 10) / 1e6),
        currency="EUR",
    )
    assert asker.tally.to_json()["usage"]["prompt_tokens"] == 200


def test_no_price_is_no_cost_of_zero():
    asker = Asker(Fake())
    jumping(all_of(asker, [question("a")]))
    assert (asker.tally.cost, asker.tally.currency, asker.tally.unpriced) == (None, None, 0)


def test_replies_without_tokens_are_named_beside_the_cost():
    entry = entry_of("m", {"id": "m", "price": {"input": 2.0, "output": 10.0, "as_of": "2025-01-01"}})

    class Silent(Fake):
        async def reply(self, request):
            return replace(await super().reply(request), usage=Usage(prompt_tokens=5))

    asker = Asker(Silent(entry=entry))
    jumping(all_of(asker, [question("a")]))
    assert (asker.tally.cost, asker.tally.unpriced) == (0.0, 1)
    assert cost_of(entry, Usage(5, None)) is None


# --- opening -------------------------------------------------------------------------------------------------------


def test_a_backend_is_found_by_its_name():
    from gen_eval.mllm.http import Client

    entry = entry_of("m", {"id": "m", "backend": "http"}, endpoint="http://127.0.0.1:1/v1")
    assert isinstance(open_client(entry, device="cpu", dtype="float32"), Client)
    with pytest.raises(InputError, match="chat"):
        open_client(entry_of("m", {"id": "m", "backend": "htp"}))


def test_limits_come_from_the_environment(monkeypatch):
    for name, value in {"CONCURRENCY": "3", "ATTEMPTS": "2", "REQUESTS_PER_MINUTE": "90", "TIMEOUT": "7.5"}.items():
        monkeypatch.setenv(f"GEN_EVAL_CHAT_{name}", value)
    environment.settings.cache_clear()
    assert Limits.of_settings() == Limits(concurrency=3, requests_per_minute=90.0, attempts=2, timeout=7.5)
    environment.settings.cache_clear()
