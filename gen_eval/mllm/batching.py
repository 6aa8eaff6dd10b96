"""Requests that wait at the same time are answered together, in one thread beside the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from gen_eval.mllm.chat import ChatRequest, Reply
from gen_eval.mllm.client import ChatError
from gen_eval.mllm.failures import LONGEST_QUOTE, tells_overflow
from gen_eval.records import GenEvalError, Reason

_LOG = logging.getLogger(__name__)

Answered = Reply | BaseException
Value = TypeVar("Value")


@dataclass(frozen=True)
class _Waiting:
    request: ChatRequest
    future: asyncio.Future[Reply]


class Batcher:
    """One worker thread that takes what waits, as far as it may go into one batch.

    Args:
        answer: requests -> a reply or an error for each; runs in the thread.
        alike: what requests of one batch have in common.
        most: largest batch.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[ChatRequest]], Sequence[Answered]],
        alike: Callable[[ChatRequest], Hashable],
        most: int,
    ) -> None:
        self._answer, self._alike, self.most = answer, alike, most
        self._waiting: list[_Waiting] = []
        self._pump: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], Value]) -> Value:
        """The result of ``work``, done in the thread after what is under way."""
        return await asyncio.get_running_loop().run_in_executor(self._executor(), work)

    async def reply(self, request: ChatRequest) -> Reply:
        """The reply to ``request``; raises what the answer is when it is an error."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # an earlier loop took its requests with it
            self._loop, self._waiting, self._pump = loop, [], None
        waiting = _Waiting(request, loop.create_future())
        self._waiting.append(waiting)
        if self._pump is None or self._pump.done():
            self._pump = loop.create_task(self._work())
        return await waiting.future

    def close(self) -> None:
        """Let the thread go once it has finished its batch."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        return self._thread

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0)  # requests that are made in the same breath come together
            batch = self._take()
            if not batch:
                return
            requests = [one.request for one in batch]
            try:
                answers = await self.run(lambda requests=requests: self._answer(requests))  # type: ignore[misc]
            except Exception as error:
                answers = [error] * len(batch)
            for one, answer in zip(batch, answers, strict=True):
                if one.future.done():  # nobody waits for it any more
                    continue
                if isinstance(answer, BaseException):
                    one.future.set_exception(answer)
                else:
                    one.future.set_result(answer)

    def _take(self) -> list[_Waiting]:
        """The first that waits, and all that may go with it; out of the queue."""
        self._waiting = [one for one in self._waiting if not one.future.done()]
        if not self._waiting:
            return []
        kind = self._alike(self._waiting[0].request)
        batch = [one for one in self._waiting if self._alike(one.request) == kind][: self.most]
        self._waiting = [one for one in self._waiting if all(one is not taken for taken in batch)]
        return batch


def apart(
    answer: Callable[[Sequence[ChatRequest]], Sequence[Answered]],
    requests: Sequence[ChatRequest],
    *,
    too_many: Callable[[int], None] | None = None,
) -> list[Answered]:
    """Replies or errors; where a batch fails its halves are tried, so that one question costs itself only.

    Args:
        answer: gives replies to a batch, or raises.
        requests: the batch.
        too_many: is told the size that is tried next when memory ran out.
    """
    try:
        return list(answer(requests))
    except Exception as error:
        if len(requests) == 1:
            return [_failure(error)]
        half = len(requests) // 2
        if too_many is not None and isinstance(error, MemoryError):
            too_many(half)
    return [one for part in (requests[:half], requests[half:]) for one in apart(answer, part, too_many=too_many)]


def _failure(error: Exception) -> GenEvalError:
    if isinstance(error, GenEvalError):
        return error
    if isinstance(error, MemoryError):
        return ChatError(
            Reason.OUT_OF_MEMORY, "the device has no room even for one question; show fewer or smaller frames"
        )
    first = (str(error).splitlines() or [""])[0][:LONGEST_QUOTE]
    if tells_overflow(str(error)):
        return ChatError(Reason.CONTEXT_OVERFLOW, f"the question does not fit the model's context: {first}")
    _LOG.warning("a question could not be answered", exc_info=error)
    said = f"the model did not take the question ({type(error).__name__}: {first})"
    return ChatError(Reason.ENDPOINT_ERROR, said, {"error": type(error).__name__})
