"""One HTTP exchange with a server that is not trusted: bounded, without redirects, with its failures named."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gen_eval.mllm.client import ChatError
from gen_eval.mllm.encoding import as_json
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.failures import Place, failure_of
from gen_eval.records import InputError, MissingPart, Reason

if TYPE_CHECKING:
    import httpx

LARGEST_BODY = 16 * 2**20
"""Bytes of an answer that are read."""
_CONNECT = 15.0
_SILENCE = 600.0
"""Seconds without a byte; a shorter limit is the asker's."""
LONGEST_LOOK = 60.0
"""Seconds for an answer that no model has to think about, however slowly it drips."""
_SHORTEST_SECRET = 12
"""Characters; shorter keys are not looked for in answers."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Answered:
    """A whole answer with a status below 300.

    Attributes:
        headers: names in lower case.
        document: the body as JSON.
        seconds: from sending to the last byte.
    """

    headers: Mapping[str, str]
    document: Any
    seconds: float


class Wire:
    """Requests to the address of one model entry.

    Args:
        entry: whose ``endpoint`` is asked.
        default: address for an entry that names none.
        key_header: header that carries the key.
        key_form: how it is written there.
        headers: sent with each request.

    Raises:
        InputError: the address cannot be used.
    """

    def __init__(
        self,
        entry: ModelEntry,
        *,
        default: str | None = None,
        key_header: str = "Authorization",
        key_form: str = "Bearer {}",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.base = checked_address(entry.endpoint.base_url or default, entry.name)
        parts = urlsplit(self.base)
        self._origin = _origin(self.base)
        self._plain, self._loopback = parts.scheme == "http", parts.hostname in _LOOPBACK
        self._key_header, self._key_form = key_header, key_form
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        self._key_env = entry.endpoint.api_key_env
        self._host = parts.netloc
        self._clients: list[httpx.AsyncClient] = []
        self._idle: list[httpx.AsyncClient] = []
        self._closing: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def root(self) -> str:
        """The address without the version at its end."""
        return re.sub(r"/v\d+[a-z]*$", "", self.base)

    @property
    def place(self) -> Place:
        """Where requests go, for messages."""
        return Place(self._host, self._key_env, self._key())

    async def get(self, address: str) -> Answered:
        """The answer to a GET; ``address`` is a path below the base, or a whole one of the same server.

        It asks what a server is or has, which takes no time; no asker's limit stands around it, so it has its own.
        """
        try:
            async with asyncio.timeout(LONGEST_LOOK):
                return await self.send("GET", address)
        except TimeoutError:
            message = f"{self._host} did not answer within {LONGEST_LOOK:g} s"
            raise ChatError(Reason.ENDPOINT_ERROR, message, retry=True) from None

    async def post(self, address: str, body: Mapping[str, Any]) -> Answered:
        """The answer to a POST of ``body`` as JSON."""
        return await self.send("POST", address, content=as_json(body), headers={"Content-Type": "application/json"})

    async def send(
        self,
        method: str,
        address: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """One exchange.

        Raises:
            ChatError: no answer, no whole one, none that is JSON, or one that says that something failed.
            MissingPart: no key, or one that is refused.
            InputError: no such model or path; an address on another server.
        """
        url = address if "://" in address else f"{self.base}{address}"
        self._check_origin(url)
        started = asyncio.get_running_loop().time()
        sent = {**self._headers, **self._with_key(), **(headers or {})}
        client = self._free_client()
        try:
            async with client.stream(method, url, content=content, headers=sent) as answer:
                body = await self._whole(answer)
        except BaseException as error:
            self._drop(client)
            raise self._broken(error) from None
        self._idle.append(client)
        known = {name.lower(): value for name, value in answer.headers.items()}
        body = self._without_key(body)
        document = read_json(body)
        status = answer.status_code if answer.status_code >= 300 else _status_within(document)
        if status is not None:
            raise failure_of(status, known, document, body.decode("utf-8", "replace"), self.place)
        if document is None and body.strip():
            said = self.place.quote(body[:2000].decode("utf-8", "replace"))
            raise ChatError(Reason.ENDPOINT_ERROR, f"{self._host} answered with no JSON: {said}", retry=True)
        return Answered(known, document, asyncio.get_running_loop().time() - started)

    async def aclose(self) -> None:
        """Close the connections."""
        clients, self._clients, self._idle = self._clients, [], []
        if self._loop is asyncio.get_running_loop():
            for client in clients:
                await client.aclose()
            await asyncio.gather(*self._closing, return_exceptions=True)

    def _free_client(self) -> httpx.AsyncClient:
        """A client that nobody uses, of the running event loop: connections belong to one loop.

        Each has one connection. How many there are is the asker's; a client with many of them looks all of them over
        for each request, which at sixteen takes a quarter of all time spent here.
        """
        import httpx

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._clients, self._idle, self._closing, self._loop = [], [], set(), loop
        if not self._idle:
            made = httpx.AsyncClient(
                timeout=httpx.Timeout(_SILENCE, connect=_CONNECT),
                limits=httpx.Limits(max_connections=1),
                follow_redirects=False,
                trust_env=not self._loopback,  # proxies of the environment, but never to this machine
                verify=self._trusted,
            )
            self._clients.append(made)
            return made
        return self._idle.pop()

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """Certificates that are trusted; reading them takes long and plain connections need none."""
        import httpx

        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self._plain else httpx.create_ssl_context()

    def _drop(self, client: httpx.AsyncClient) -> None:
        """Close a client whose exchange broke off: its connection may count as in use for ever."""
        if client not in self._clients:  # closed meanwhile
            return
        self._clients.remove(client)
        closing = asyncio.ensure_future(client.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _broken(self, error: BaseException) -> BaseException:
        """What it means that an exchange ended with ``error``."""
        import httpx

        kind = type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return ChatError(Reason.ENDPOINT_ERROR, f"{self._host} did not answer in time ({kind})", retry=True)
        if isinstance(error, httpx.RequestError):
            said = self.place.quote(str(error)) or "no words"
            message = f"the exchange with {self._host} broke off ({kind}: {said})"
            return ChatError(Reason.ENDPOINT_ERROR, message, retry=True)
        return error

    async def _whole(self, answer: httpx.Response) -> bytes:
        """The body, as long as it is not too large."""
        read = bytearray()
        async for piece in answer.aiter_bytes():
            read += piece
            if len(read) > LARGEST_BODY:
                message = f"{self._host} answered with more than {LARGEST_BODY // 2**20} MB; the rest was not read"
                raise ChatError(Reason.ENDPOINT_ERROR, message)
        return bytes(read)

    def _without_key(self, body: bytes) -> bytes:
        """``body`` without the key: gateways repeat it, and answers are kept whole.

        A short one is no secret but the word that servers without keys are given (``EMPTY``), and may be meant.
        """
        key = (self._key() or "").encode()
        return body.replace(key, b"***") if len(key) >= _SHORTEST_SECRET else body

    def _check_origin(self, url: str) -> None:
        """Nothing is sent to another server than the entry's: requests carry the key."""
        if _origin(url) != self._origin:
            raise InputError(f"{self._host} refers to {url[:200]!r}, a server that the entry does not name; not asked")

    def _key(self) -> str | None:
        return (os.environ.get(self._key_env, "").strip() or None) if self._key_env else None

    def _with_key(self) -> dict[str, str]:
        """The header with the key.

        Raises:
            MissingPart: the entry wants a key and the environment has none that could be one.
        """
        if self._key_env is None:
            return {}
        key = self._key()
        if key is None:
            raise MissingPart(
                f"the environment variable {self._key_env} must hold the key for {self._host}; it is unset"
            )
        if not (key.isascii() and key.isprintable()):
            raise MissingPart(f"{self._key_env} holds characters that no key has; set it anew")
        return {self._key_header: self._key_form.format(key)}


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def checked_address(address: str | None, entry: str) -> str:
    """``address`` without a slash at its end.

    Raises:
        InputError: there is none, or it is no plain http(s) address.
    """
    if not address:
        raise InputError(f"the model entry {entry!r} names no address; give one with endpoint.base_url (or --endpoint)")
    try:
        parts = urlsplit(address)
        plain = address.isprintable() and address.isascii() and " " not in address
        usable = plain and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if "@" in address.partition("://")[2].partition("/")[0]:  # first: no message may repeat it
        raise InputError(f"the address of {entry!r} holds a name or password; keys come from endpoint.api_key_env")
    if "?" in address or "#" in address:
        raise InputError(f"the address of {entry!r} must end with its path, without ? or # and what follows them")
    if not usable:
        raise InputError(f"the address of {entry!r} must be http://HOST… or https://HOST…, not {address!r:.200}")
    return address.rstrip("/")


def read_json(body: bytes) -> Any:
    """``body`` as JSON; ``None`` if it is none.

    NaN and infinity become ``None``; bytes that are no UTF-8 and lone surrogates become U+FFFD: one broken character
    does not cost a reply, and what is kept can be written anywhere.

    >>> read_json(b'{"a": NaN}'), read_json(b"[[["), read_json(b"<html>")
    ({'a': None}, None, None)
    """
    try:
        text = body.decode("utf-8-sig", "replace")  # left to itself, the decoder lets half a character through
        document = json.loads(text, parse_constant=lambda _name: None, parse_float=_finite)
        return _without_surrogates(document) if b"\\u" in body else document
    except (ValueError, RecursionError):
        return None


def _status_within(document: Any) -> int | None:
    """The status that an error within a good answer stands for: gateways pass on what they met."""
    error = document.get("error") if isinstance(document, dict) else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _without_surrogates(value: Any) -> Any:
    """No store and no file takes half a character."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
    return value
