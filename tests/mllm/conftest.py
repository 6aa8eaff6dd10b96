"""A server on this machine that answers by a script and remembers what it was asked, and things to ask about."""

import asyncio
import contextlib
import io
import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image as Pillow

from gen_eval.mllm import ChatRequest, Frames, Image, Message, Options
from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.mllm.entry import entry_of

QUICK = {"first_wait": 0.001, "longest_wait": 0.002}


@dataclass
class Asked:
    """One request as it reached the server."""

    method: str
    path: str
    headers: dict
    content: bytes

    @property
    def body(self):
        return json.loads(self.content)


@dataclass
class Say:
    """One answer of the server.

    `cut` sends that many bytes of the body and closes; `reset` drops the connection before any; `wait` holds the body
    back so many seconds.
    """

    body: object = None
    status: int = 200
    headers: dict = field(default_factory=dict)
    cut: int | None = None
    reset: bool = False
    wait: float = 0.0

    @property
    def content(self):
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def completion(text="yes", finish="stop", **message):
    """A good body of the chat completions interface."""
    return {
        "id": "1",
        "object": "chat.completion",
        "model": "tiny",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
    }


class Server:
    """Answers questions by `script`, in order, and the last one for ever; other paths by `pages`.

    A page is an answer, or makes one of the server.
    """

    def __init__(self, *script, pages=None):
        self.script, self.asked, self.left = list(script), [], list(script)
        self.pages = {
            "/v1/models": Say({"data": [{"id": "tiny", "owned_by": "vllm", "max_model_len": 4096}]}),
            "/version": Say({"version": "0.32.0"}),
            **(pages or {}),
        }
        self.at_once = self.most_at_once = 0

    @property
    def questions(self):
        return [one for one in self.asked if one.method == "POST"]

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self):
        self._tasks = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append(Asked(method, path, headers, content))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._say(self._answer_to(method, path), writer)
        finally:
            self.at_once -= 1

    def _answer_to(self, method, path):
        if path in self.pages:
            page = self.pages[path]
            return page(self) if callable(page) else page
        if method != "POST":
            return Say({"error": {"message": "no such path"}}, status=404)
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    async def _say(self, say, writer):
        if say.reset:
            writer.transport.abort()
            return False
        content, headers = say.content, {"content-type": "application/json", **say.headers}
        lines = [f"HTTP/1.1 {say.status} X", f"content-length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        if say.wait:
            await writer.drain()
            await asyncio.sleep(say.wait)
        writer.write(content if say.cut is None else content[: say.cut])
        await writer.drain()
        return say.cut is None


@pytest.fixture
def say():
    return Say


@pytest.fixture
def served():
    return Server


@pytest.fixture
def good():
    return completion


@pytest.fixture
def picture():
    """An encoded picture of one colour."""

    def make(seed=0, kind="jpeg", height=4, width=6):
        pixels = np.full((height, width, 3), seed * 40 % 256, np.uint8)
        file = io.BytesIO()
        Pillow.fromarray(pixels).save(file, kind)
        return Image(file.getvalue(), f"image/{kind}", height, width)

    return make


@pytest.fixture
def frames(picture):
    """Four frames of a clip at 8 a second, of which every fourth is shown."""

    def make(form="video", stamps=False, count=4):
        pictures = tuple(picture(seed) for seed in range(count))
        indices = tuple(4 * k for k in range(count))
        return Frames(pictures, tuple(k / 8 for k in indices), indices, 8.0, 4 * count, form=form, stamps=stamps)

    return make


@pytest.fixture
def ask_for():
    """A request of a question, with more parts before it."""

    def make(*parts, **options):
        return ChatRequest((Message.of("user", *parts, "Is it red?"),), Options(**options))

    return make


@pytest.fixture
def model():
    """A model entry for a server."""

    def make(address=None, **content):
        return entry_of("tiny", {"id": "tiny", **content}, endpoint=address)

    return make


@pytest.fixture
def talk(model):
    """Ask a scripted server; what came of each request, in order, the server, and the asker."""

    def run(server, *requests, cache=None, entry=None, in_turn=False, limits=None, sleep=asyncio.sleep):
        async def main():
            async with server:
                client = open_client(model(server.address, **(entry or {})))
                async with Asker(client, limits=limits or Limits(**QUICK), cache=cache, sleep=sleep) as asker:
                    if in_turn:
                        found = [await settle(asker.ask(one)) for one in requests]
                    else:
                        found = await asyncio.gather(*(settle(asker.ask(one)) for one in requests))
                    return found, asker

        found, asker = asyncio.run(main())
        return found[0] if len(requests) == 1 else found, asker

    async def settle(question):
        try:
            return await question
        except Exception as error:
            return error

    return run
