"""Answering together what waits at the same time, and holding a reply to one of several texts."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.mllm.batching import Batcher, apart
from gen_eval.mllm.chat import ChatRequest, Message, Options, Reply
from gen_eval.mllm.choosing import ChoiceTokens
from gen_eval.mllm.client import ChatError
from gen_eval.records import Reason


def question(text, **options):
    return ChatRequest((Message.of("user", text),), Options(**options))


def text_of(request):
    return request.messages[0].parts[0].text


class Worker:
    """Answers with the question's text, and remembers its batches; the gate holds it back."""

    def __init__(self):
        self.batches, self.gate = [], threading.Event()
        self.gate.set()

    def __call__(self, requests):
        self.gate.wait(30)
        self.batches.append([text_of(one) for one in requests])
        return [ValueError(text_of(one)) if text_of(one) == "bad" else Reply(text_of(one)) for one in requests]


@pytest.fixture
def batcher():
    made = []

    def make(worker, most=4):
        made.append(Batcher(worker, lambda request: request.options.max_tokens, most))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_what_waits_goes_together_as_far_as_it_is_alike(batcher):
    worker = Worker()
    asked = batcher(worker)

    async def run():
        requests = [question(str(number), max_tokens=1 + number % 2) for number in range(10)]
        return await asyncio.gather(*map(asked.reply, requests))

    assert [one.text for one in asyncio.run(run())] == list("0123456789")
    assert worker.batches == [list("0246"), list("1357"), list("8"), list("9")]


def test_an_error_belongs_to_its_question(batcher):
    async def run():
        asked = batcher(Worker())
        return await asyncio.gather(*(asked.reply(question(one)) for one in ("a", "bad", "b")), return_exceptions=True)

    first, error, last = asyncio.run(run())
    assert (first.text, str(error), last.text) == ("a", "bad", "b")


def test_what_nobody_waits_for_is_left_out(batcher):
    worker = Worker()
    asked = batcher(worker, most=1)
    worker.gate.clear()

    async def run():
        kept, dropped, last = (asyncio.create_task(asked.reply(question(one))) for one in ("kept", "dropped", "last"))
        await asyncio.sleep(0.01)
        dropped.cancel()
        worker.gate.set()
        return await asyncio.gather(kept, last)

    assert [one.text for one in asyncio.run(run())] == ["kept", "last"]
    assert worker.batches == [["kept"], ["last"]]


def test_one_batcher_serves_one_loop_after_another(batcher):
    asked = batcher(Worker())
    for text in ("a", "b"):
        assert asyncio.run(asked.reply(question(text))).text == text


@given(bad=st.sets(st.integers(0, 19)))
def test_halving_costs_only_those_that_fail(bad):
    def answer(requests):
        if any(int(text_of(one)) in bad for one in requests):
            raise MemoryError
        return [Reply(text_of(one)) for one in requests]

    sizes = []
    found = apart(answer, [question(str(number)) for number in range(20)], too_many=sizes.append)
    assert [number for number, one in enumerate(found) if isinstance(one, ChatError)] == sorted(bad)
    assert all(one.reason is Reason.OUT_OF_MEMORY for one in found if isinstance(one, ChatError))
    assert all(one.text == str(number) for number, one in enumerate(found) if isinstance(one, Reply))
    assert bool(sizes) == bool(bad)


def test_words_of_a_full_context_are_known():
    def answer(requests):
        raise ValueError("The decoder prompt (length 90) is longer than the maximum model length of 64.")

    (error,) = apart(answer, [question("a")])
    assert error.reason is Reason.CONTEXT_OVERFLOW


@given(
    choices=st.sets(st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6),
    picks=st.lists(st.integers(0, 50), min_size=8, max_size=8),
)
def test_every_way_through_the_tokens_is_a_choice(choices, picks):
    tree, written = ChoiceTokens(choices, ends=[0, 1]), []
    for pick in picks:
        allowed = tree.allowed(written)
        token = allowed[pick % len(allowed)]
        if token in (0, 1):
            break
        written.append(token)
    assert tuple(written) in choices
    assert tree.allowed([9, 9]) == [0, 1]


@pytest.mark.parametrize("choices", [[], [[]]])
def test_choices_must_be_texts(choices):
    with pytest.raises(ValueError, match="choice"):
        ChoiceTokens(choices, ends=[0])
