"""Asking, alike for all backends: concurrency, pace, retries, the cache, and what it came to.

A backend makes one attempt; everything around it is here. What a failure is worth (``retry``) and how long the server
asks to wait is said by the backend's :class:`~gen_eval.mllm.client.ChatError`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from aiolimiter import AsyncLimiter
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from gen_eval.mllm.cache import ReplyCache
from gen_eval.mllm.chat import ChatRequest, Reply, Usage
from gen_eval.mllm.client import ChatClient, ChatError, Identity
from gen_eval.mllm.entry import ModelEntry
from gen_eval.records import GenEvalError, InputError, Reason, digest_of
from gen_eval.registry import load
from gen_eval.settings import settings

_LOG = logging.getLogger(__name__)
_KEY_FORMAT = 1
"""Changes when this project writes requests differently, so that replies to the former ones are not taken."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """How hard a backend is asked. None of it moves a reply.

    Attributes:
        concurrency: most requests under way at once; a request that waits for its next attempt keeps its place, so
            that a server in trouble is not asked by all the others meanwhile.
        requests_per_minute: most attempts started in a minute, evenly spaced; ``None`` for any.
        attempts: most requests for one reply, the first included.
        timeout: seconds for one attempt; ``None`` for any time.
        first_wait: seconds; before attempt n + 1 a random time up to ``first_wait * 2**(n - 1)`` passes.
        longest_wait: seconds; caps that time, and what a server asks to wait (``Retry-After``).
    """

    concurrency: int = 16
    requests_per_minute: float | None = None
    attempts: int = 4
    timeout: float | None = 180.0
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through.

        Raises:
            InputError: a number is out of its range; the message names it.
        """
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("requests_per_minute", "timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be above 0, or none for no limit, not {value}")
        for name in ("first_wait", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be 0 or more seconds, not {getattr(self, name)}")

    @classmethod
    def of_settings(cls) -> Limits:
        """What the environment says (``GEN_EVAL_CHAT_…``)."""
        chosen = settings()
        return cls(
            concurrency=chosen.chat_concurrency,
            requests_per_minute=chosen.chat_requests_per_minute,
            attempts=chosen.chat_attempts,
            timeout=chosen.chat_timeout,
        )


@dataclass(frozen=True)
class Tally:
    """What asking came to.

    Attributes:
        requests: attempts made.
        retries: attempts that were not the first of their request.
        cached: replies that were taken from the cache, or shared with an equal request under way.
        failed: requests that gave no reply in the end.
        usage: tokens of all replies that were asked for.
        cost: of them, in ``currency``; ``None`` when no price is known.
        currency: of the model entry's price.
        unpriced: replies that the cost leaves out, because the backend did not say their tokens.
    """

    requests: int = 0
    retries: int = 0
    cached: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    currency: str | None = None
    unpriced: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it stands in a log or a report."""
        return asdict(self)


@dataclass
class _Flight:
    """An equal request under way, and how many wait for it."""

    task: asyncio.Task[Reply]
    waiting: int = 0


@dataclass
class _Gates:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    places: asyncio.Semaphore
    pace: AsyncLimiter | None
    identity: asyncio.Lock
    flights: dict[str, _Flight] = field(default_factory=dict)
    resume_at: float = 0.0


class Asker:
    """Asks one backend within limits.

    Args:
        client: the backend; ``async with Asker(...)`` closes it in the end.
        limits: how hard it is asked.
        cache: where replies that would come out the same again are kept; the caller closes it.
        sleep: waits between attempts; another one for tests.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        limits: Limits | None = None,
        cache: ReplyCache | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.client, self.limits = client, limits or Limits()
        self._cache, self._sleep = cache, sleep
        self._identity: Identity | None = None
        self._fixed: dict[str, Any] = {}
        self._open_gates: _Gates | None = None
        price = client.entry.price
        self._tally = Tally(cost=None if price is None else 0.0, currency=None if price is None else price.currency)

    @property
    def entry(self) -> ModelEntry:
        """The entry of the model that is asked."""
        return self.client.entry

    @property
    def tally(self) -> Tally:
        """What asking came to so far."""
        return self._tally

    async def identity(self) -> Identity:
        """What answers; asked once.

        Raises:
            MissingPart: the server cannot be reached, or a package, a key or the model's files are absent.
            InputError: the server does not have the model.
        """
        async with self._gates.identity:
            if self._identity is None:
                self._identity = await self.client.identity()
                self._fixed = _fixed_part(self.client, self._identity)
        return self._identity

    async def key(self, request: ChatRequest) -> str:
        """Digest of everything that moves the reply to ``request``: itself, what answers, and where."""
        await self.identity()
        return digest_of({**self._fixed, "request": request.digest})

    async def ask(self, request: ChatRequest, *, fresh: bool = False) -> Reply:
        """The reply to ``request``.

        A request with temperature 0 is looked up in the cache first, and equal ones under way are asked once.

        Args:
            request: what is asked.
            fresh: ask anew in any case, and leave the cache alone (to see whether replies repeat).

        Raises:
            ChatError: no reply; ``attempts`` says how many requests were made.
            MissingPart: the server refuses the key, or there is none.
            InputError: the server does not have the model, or the request cannot be put to this backend.
        """
        await self.identity()
        takes_temperature = "temperature" in self.client.capabilities.honours
        if fresh or not (request.options.deterministic and takes_temperature):
            return await self._within_limits(request)
        return await self._once(await self.key(request), request)

    async def aclose(self) -> None:
        """Close the backend."""
        await self.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def _gates(self) -> _Gates:
        """Places and pace of the running event loop; another loop gets its own."""
        loop = asyncio.get_running_loop()
        if self._open_gates is None or self._open_gates.loop is not loop:
            minute = self.limits.requests_per_minute
            # One at a time, evenly spaced: a bucket of a minute's requests would let twice as many through at first.
            pace = None if minute is None else AsyncLimiter(1, 60.0 / minute)
            self._open_gates = _Gates(loop, asyncio.Semaphore(self.limits.concurrency), pace, asyncio.Lock())
        return self._open_gates

    # --- equal requests ---------------------------------------------------------------------------------------------

    async def _once(self, key: str, request: ChatRequest) -> Reply:
        """From an equal request under way, the cache, or the backend."""
        flights = self._gates.flights
        flight = flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = flights[key] = _Flight(asyncio.create_task(self._kept(key, request)))
        flight.waiting += 1
        try:
            reply = await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                flights.pop(key, None)
                flight.task.cancel()  # nobody waits any more; of no effect when it is done
        if not joined:
            return reply
        self._count(cached=1)
        return replace(reply, attempts=0)

    async def _kept(self, key: str, request: ChatRequest) -> Reply:
        """From the cache or the backend; a reply worth keeping goes into the cache."""
        cache = self._cache
        if cache is None:
            return await self._within_limits(request)
        found = cache.get(key)
        if found is not None:
            self._count(cached=1)
            return found
        reply = await self._within_limits(request)
        if _worth_keeping(reply):
            self._keep(cache, key, reply)
        return reply

    def _keep(self, cache: ReplyCache, key: str, reply: Reply) -> None:
        try:
            cache.put(key, reply)
        except InputError as error:  # the reply is there; losing the cache must not lose it
            _LOG.warning("replies are no longer kept: %s", error)
            self._cache = None

    # --- attempts ---------------------------------------------------------------------------------------------------

    async def _within_limits(self, request: ChatRequest) -> Reply:
        """Ask the backend until there is a reply, a failure that stays, or no attempt left."""
        made = 0
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.limits.attempts),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, ChatError) and error.retry),
            sleep=self._sleep,
            reraise=True,
        )
        async with self._gates.places:
            try:
                async for attempt in retrying:
                    with attempt:
                        made += 1
                        reply = await self._attempt(request, first=made == 1)
            except GenEvalError as error:
                self._count(failed=1)
                if isinstance(error, ChatError):
                    error.attempts = made
                raise
        self._count_reply(reply)
        return replace(reply, attempts=made)

    async def _attempt(self, request: ChatRequest, *, first: bool) -> Reply:
        gates = self._gates
        pause = gates.resume_at - gates.loop.time()
        if pause > 0:  # the server asked another request to wait
            await self._sleep(pause)
        if gates.pace is not None:
            await gates.pace.acquire()
        self._count(requests=1, retries=0 if first else 1)
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await self.client.reply(request)
        except TimeoutError:
            message = f"no reply within {self.limits.timeout:g} s; a longer GEN_EVAL_CHAT_TIMEOUT may help"
            raise ChatError(Reason.ENDPOINT_ERROR, message, {"timeout": self.limits.timeout}, retry=True) from None

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the server asks for, or exponential with full jitter."""
        limits = self.limits
        spread = min(limits.first_wait * 2.0 ** (state.attempt_number - 1), limits.longest_wait)
        jitter = random.uniform(0.0, spread)  # noqa: S311 - spreads load, moves no score
        error = None if state.outcome is None else state.outcome.exception()
        asked = error.retry_after if isinstance(error, ChatError) else None
        if asked is None:
            return jitter
        pause = min(max(asked, 0.0), limits.longest_wait)
        gates = self._gates
        gates.resume_at = max(gates.resume_at, gates.loop.time() + pause)
        return min(pause + jitter / 2, limits.longest_wait)

    # --- counting ---------------------------------------------------------------------------------------------------

    def _count(self, **more: int) -> None:
        now = self._tally
        self._tally = replace(now, **{name: getattr(now, name) + value for name, value in more.items()})

    def _count_reply(self, reply: Reply) -> None:
        now, cost = self._tally, cost_of(self.entry, reply.usage)
        names = Usage.__dataclass_fields__
        usage = Usage(**{name: _sum(getattr(now.usage, name), getattr(reply.usage, name)) for name in names})
        if now.cost is None:
            self._tally = replace(now, usage=usage)
        elif cost is None:
            self._tally = replace(now, usage=usage, unpriced=now.unpriced + 1)
        else:
            self._tally = replace(now, usage=usage, cost=now.cost + cost)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


def _worth_keeping(reply: Reply) -> bool:
    """Whether it is whole and would come out the same again; one that the model cut, refused or left empty is not."""
    return reply.finish_reason == "stop" and bool(reply.text) and "temperature" not in reply.ignored


def _fixed_part(client: ChatClient, identity: Identity) -> dict[str, Any]:
    """What moves all replies of a backend alike."""
    able, where = client.capabilities, client.entry.endpoint
    return {
        "format": _KEY_FORMAT,
        "identity": identity.to_json(),
        "entry": client.entry.to_json(),
        "endpoint": [where.base_url, where.served_as, where.engine],
        "capabilities": [sorted(able.honours), able.video_form, able.video_file, able.most_pictures],
    }


def open_client(entry: ModelEntry, *, device: str = "auto", dtype: str | None = None) -> ChatClient:
    """The backend of ``entry``, ready to be asked.

    Args:
        entry: the model.
        device: for backends that hold the model themselves: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: their number format; ``None`` takes the checkpoint's own.

    Raises:
        InputError: there is no such backend, or the entry does not suit it.
        MissingPart: a package that it needs is not installed.
    """
    found = load("gen_eval.chat", entry.backend)
    if not (isinstance(found, type) and issubclass(found, ChatClient)):
        raise InputError(f"the backend {entry.backend!r} of {entry.name} is {found!r}, no subclass of ChatClient")
    return found.open(entry, device=device, dtype=dtype)


def cost_of(entry: ModelEntry, usage: Usage) -> float | None:
    """What one exchange costs by the entry's price, in its currency; ``None`` when price or tokens are not known.

    Prompt tokens from a provider's cache count in full, so a bill may be lower.

    >>> from gen_eval.mllm.entry import entry_of
    >>> entry = entry_of("m", {"id": "m", "price": {"input": 2.0, "output": 8.0, "as_of": "2025-01-01"}})
    >>> cost_of(entry, Usage(prompt_tokens=1000, completion_tokens=500))
    0.006
    """
    price = entry.price
    if price is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return (usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1e6
