"""The child process that decodes: a script that is started by path, and the messages it exchanges with its parent.

It is not imported as part of gen_eval in the child, and does not import it: a start costs the interpreter and PyAV, and
nothing of the program that started it runs a second time.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gen_eval.media import _decoder

_WATCH_SECONDS = 0.5
_HEADER = struct.Struct("!I")
_LONGEST_WAIT = 1e6  # seconds; a socket takes no infinite timeout


class Channel:
    """JSON messages with descriptors over a Unix socket; both ends use it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = (), timeout: float | None = None) -> None:
        """Send one message; the descriptors travel with its first byte.

        Raises:
            ConnectionError: the other end is gone.
            TimeoutError: it did not take the message within ``timeout`` seconds.
        """
        self.socket.settimeout(timeout)
        body = json.dumps(message).encode()
        packet = _HEADER.pack(len(body)) + body
        if descriptors:
            sent = socket.send_fds(self.socket, [packet], list(descriptors))
            packet = packet[sent:]
        self.socket.sendall(packet)

    def receive(self, deadline: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """The next message and its descriptors.

        Raises:
            EOFError: the other end is gone.
            TimeoutError: ``deadline`` (monotonic clock) passed.
        """
        header, descriptors = self._exactly(_HEADER.size, deadline)
        body, _ = self._exactly(_HEADER.unpack(header)[0], deadline)
        return json.loads(body), descriptors

    def waiting(self) -> bool:
        """Whether something arrived (or the other end is gone)."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def _exactly(self, count: int, deadline: float | None) -> tuple[bytes, list[int]]:
        parts, descriptors = bytearray(), []
        while len(parts) < count:
            left = None if deadline is None else min(max(deadline - time.monotonic(), 1e-3), _LONGEST_WAIT)
            self.socket.settimeout(left)
            try:
                data, received, _, _ = socket.recv_fds(self.socket, count - len(parts), 1)
            except ConnectionError as error:
                raise EOFError from error
            if not data:
                raise EOFError
            parts += data
            descriptors += received
        return bytes(parts), descriptors


class _Server:
    """The child's side: answers ``open``, ``fill`` and ``close`` until the other end is gone."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._decoder: _decoder.Decoder | None = None
        self._memory: memoryview | None = None
        self._interval = 1.0
        self._spoke = 0.0

    def run(self) -> None:
        self._channel.send({"ready": True})
        while True:
            try:
                message, descriptors = self._channel.receive()
            except EOFError:
                return
            try:
                reply = self._answer(message, descriptors)
            except _decoder.Fault as fault:
                reply = {"fault": fault.reason, "message": fault.message, "detail": fault.detail}
            except Exception as error:  # whatever it is, the parent must hear of it
                text = f"the decoder failed unexpectedly ({type(error).__name__}: {error})"
                reply = {"fault": "internal_error", "message": text, "detail": {}}
            if reply is not None:
                self._channel.send(reply)

    def _answer(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        if descriptors:
            self._map(descriptors[0])
        if message["do"] == "open":
            self._interval = min(1.0, message["timeout"] / 4)
            self._decoder = _decoder.Decoder(message["path"], message["max_pixels"])
            return {"info": self._decoder.info}
        if message["do"] == "fill":
            assert self._decoder is not None
            if "wanted" in message:
                self._decoder.select(message["wanted"], message["limit"])
            memory = None if self._memory is None else self._memory[message["offset"] :]
            return self._decoder.fill(memory, message["count"], self._go_on)
        if self._decoder is not None:
            self._decoder.close()
        self._decoder = None
        self._memory = self._memory if message["keep"] else None
        return {"closed": True}

    def _map(self, descriptor: int) -> None:
        self._memory = memoryview(mmap.mmap(descriptor, os.fstat(descriptor).st_size))
        os.close(descriptor)

    def _go_on(self) -> bool:
        """After each frame: tell the parent that work goes on, stop when it has something to say."""
        now = time.monotonic()
        if now - self._spoke >= self._interval:
            self._spoke = now
            self._channel.send({"alive": True})
        return not self._channel.waiting()


def _watch(parent: int) -> None:
    """End this process when its parent is gone, whatever the main thread does in native code."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def main(descriptor: int, parent: int, package_path: str) -> None:
    """Serve the parent process over the socket ``descriptor``."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    channel = Channel(socket.socket(fileno=descriptor))
    sys.path.append(package_path)  # where the parent finds PyAV, in case it is not found by itself
    try:
        import av  # noqa: F401 - the slow import, done before the clock of the first file starts
    except ImportError as error:
        channel.send({"fault": "internal_error", "message": f"PyAV cannot be imported ({error})", "detail": {}})
        return
    _Server(channel).run()


def _sibling(name: str) -> Any:
    """The module of that name beside this file, without the package around it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    _decoder = _sibling("_decoder")
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
