"""Asking a server that takes a fixed time: 64 questions, 16 at once, beside the time that this must take at least.

    python -m bench.asking [--delay 0.5] [--frames 8] [--rounds 3]

The server is a process of its own and counts what it is asked; a second run with the cache must ask nothing. Bare
sockets, in alternation, show what the machine itself takes. The best round counts: other work on it only adds.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from bench.measure import RESULTS, machine
from gen_eval.mllm import ChatRequest, Frames, Image, Message, Options
from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.mllm.cache import ReplyCache
from gen_eval.mllm.entry import entry_of

QUESTIONS, AT_ONCE = 64, 16
_LIMIT = 1.15
_SIZE = (360, 640)


@contextmanager
def served(delay: float) -> Iterator[str]:
    """The address of such a server in a process of its own."""
    command = [sys.executable, "-m", "bench.slow_server", str(delay)]
    home = Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()


def questions(count: int, frames: int) -> list[ChatRequest]:
    """Different questions about one clip, its frames first."""
    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(frames):
        coarse = rng.integers(0, 256, (_SIZE[0] // 8, _SIZE[1] // 8, 3), dtype=np.uint8)
        file = io.BytesIO()
        Pillow.fromarray(coarse.repeat(8, axis=0).repeat(8, axis=1)).save(file, "JPEG", quality=95)
        pictures.append(Image(file.getvalue(), "image/jpeg", *_SIZE))
    places = range(frames)
    clip = Frames(tuple(pictures), tuple(place / 2 for place in places), tuple(places), 2.0, frames)
    return [ChatRequest((Message.of("user", clip, f"Is number {n} there?"),), Options()) for n in range(count)]


async def ask_all(address: str, requests: Sequence[ChatRequest], cache: Path) -> tuple[float, int]:
    """Seconds for all of ``requests``, the server's own questions aside, and how many the server had."""
    entry = entry_of("bench", {"id": "bench"}, endpoint=address)
    client = open_client(entry)
    with ReplyCache(cache) as kept:
        async with Asker(client, limits=Limits(concurrency=AT_ONCE, attempts=1), cache=kept) as asker:
            await asker.identity()
            before = await _asked(address)
            started = time.perf_counter()
            await asyncio.gather(*map(asker.ask, requests))
            seconds = time.perf_counter() - started
    return seconds, await _asked(address) - before


async def ask_plainly(address: str, requests: Sequence[ChatRequest]) -> float:
    """Seconds for as many questions of the same size over bare sockets, written beforehand: what the machine allows."""
    size = sum(len(picture.base64) for part in requests[0].parts[:1] for picture in getattr(part, "pictures", ()))
    port = int(address.rpartition(":")[2].removesuffix("/v1"))
    content = b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size
    left = iter(range(len(requests)))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            writer.write(content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await reader.readexactly(int(head.partition("content-length: ")[2]))
        writer.close()
        await writer.wait_closed()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return time.perf_counter() - started


async def _asked(address: str) -> int:
    import httpx

    async with httpx.AsyncClient(trust_env=False) as client:
        return int((await client.get(f"{address}/asked")).json()["asked"])


def measure(delay: float, count: int, frames: int, rounds: int) -> dict[str, Any]:
    """Ratio to the ideal time, of each round and of the best, and requests of a second run with the cache."""
    requests = questions(count, frames)
    ideal = math.ceil(count / AT_ONCE) * delay
    ratios, plain, first, second = [], [], [], []
    with served(delay) as address, tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            cache = Path(folder) / f"{number}.sqlite"
            seconds, asked = asyncio.run(ask_all(address, requests, cache))
            ratios.append(seconds / ideal)
            plain.append(asyncio.run(ask_plainly(address, requests)) / ideal)
            first.append(asked)
            second.append(asyncio.run(ask_all(address, requests, cache))[1])
    return {
        "ideal": ideal,
        "ratio": min(ratios),
        "ratios": ratios,
        "plain": min(plain),
        "asked": first,
        "asked_again": second,
    }


def limits(found: dict[str, Any]) -> list[tuple[str, float, float]]:
    """What was measured, beside the most that it may be."""
    return [
        (f"of the ideal time ({found['ideal']:g} s), {AT_ONCE} questions at once", found["ratio"], _LIMIT),
        ("requests of a second run with the cache", sum(found["asked_again"]), 0),
    ]


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print what was found and write ``bench/results/asking.json``; whether every target was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds that the server takes (default 0.5)")
    parser.add_argument("--frames", type=int, default=8, help="pictures of each question (default 8)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    options = parser.parse_args(arguments)
    found = measure(options.delay, QUESTIONS, options.frames, options.rounds)
    checked = limits(found)
    print(f"{found['plain']:.2f} of the ideal time by bare sockets, for comparison")
    for what, value, most in checked:
        print(f"{value:.2f} {what} (at most {most:g}: {'ok' if value <= most else 'MISSED'})")
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), **found, "met": all(value <= most for _, value, most in checked)}
    (RESULTS / "asking.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return bool(document["met"])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
