"""A server of the chat completions interface that answers every question after a fixed time: ``SECONDS``.

It imports nothing but the standard library, so that it is there at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


async def serve(delay: float) -> None:
    """Answer every question after ``delay`` seconds; prints the port, and ends with its standard input."""
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(length or 0))
                body: dict[str, Any] = {"data": [{"id": "bench", "owned_by": "vllm"}], "asked": asked}
                if head.startswith("post"):
                    asked += 1
                    await asyncio.sleep(delay)
                    body = {"choices": [{"finish_reason": "stop", "message": {"content": "yes"}}]}
                content = json.dumps(body).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(content), content))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
