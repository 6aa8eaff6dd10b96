"""Decoder processes: started once, lent to one stream at a time, killed when they hang, gone when this process is.

A decoder is native code that reads untrusted files; it can spin for ever or crash, and nothing inside a process can
stop that. So it runs in a child: ``[python, path of a script]`` (never :mod:`multiprocessing`, which would import the
user's program again), with one socket for messages and anonymous shared memory for frames. The child watches its parent
and ends by itself, also when this process is killed with SIGKILL.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gen_eval.media import _child
from gen_eval.records import ItemError, MissingPart, Reason

_START_SECONDS = 60.0
_STARTS = 3
_CLOSE_SECONDS = 2.0
_IDLE = 8
_MOST_KEPT = 96 * 2**20


def shared_memory(size: int) -> tuple[int, NDArray[np.uint8]]:
    """``size`` bytes that a child can map too: a descriptor (to be closed by the caller) and the bytes as an array.

    The memory has no name in any file system; it is freed when the last array on it is gone.
    """
    descriptor = _anonymous_file()
    try:
        os.ftruncate(descriptor, size)
        if hasattr(fcntl, "F_ADD_SEALS"):
            with contextlib.suppress(OSError):  # sealed, a child cannot shrink it under our feet
                fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return descriptor, np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
    except BaseException:
        os.close(descriptor)
        raise


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gen-eval-frames", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class DecoderProcess:
    """One child process with its socket. Used by one stream, in one thread, at a time.

    Attributes:
        process: the child.
        memory: frame memory that the child maps, ``None`` before there is one. It outlives a clip: touching fresh
            memory costs about as much as decoding an easy clip into it.
    """

    def __init__(self) -> None:
        """Start the child and wait until it is ready.

        Raises:
            MissingPart: it does not start (PyAV missing, no interpreter).
        """
        self.memory: NDArray[np.uint8] | None = None
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", str(Path(_child.__file__)), str(theirs.fileno()), str(os.getpid())]
            self.process = subprocess.Popen(
                [*command, _package_path("av")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # an interrupt from the terminal is for the parent to handle
            )
        self._channel = _child.Channel(ours)
        try:
            self._await(lambda message: "ready" in message, _START_SECONDS)
        except (EOFError, TimeoutError, ItemError) as error:
            ended = self.kill()
            raise MissingPart(
                f"the decoder process does not start ({str(error) or ended}); check `{sys.executable} -c 'import av'`"
            ) from error

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self.process.poll() is None

    def ask(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        """Send a request; its answer is fetched by :meth:`answer`. A child that is dead or hangs shows there."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._channel.send(message, [] if descriptor is None else [descriptor], _CLOSE_SECONDS)

    def answer(self, name: str, timeout: float) -> dict[str, Any]:
        """The answer to the last request.

        Args:
            name: what is being decoded, for messages.
            timeout: seconds to wait since now or since the last frame that was decoded meanwhile.

        Raises:
            ItemError: what the child reports; ``decode_timeout`` or ``undecodable`` (crash) with the child killed.
        """
        try:
            return self._await(lambda message: "alive" not in message, timeout)
        except TimeoutError as error:
            self.kill()
            raise ItemError(
                Reason.DECODE_TIMEOUT,
                f"{name}: the decoder gave no frame for {timeout:g} s and was killed; check the file, or allow more "
                "time (GEN_EVAL_DECODE_TIMEOUT)",
                {"timeout": timeout},
            ) from error
        except EOFError as error:
            ended = self.kill(grace=1.0)
            raise ItemError(
                Reason.UNDECODABLE, f"{name}: the decoder crashed ({ended}) on this file", {"decoder_ended": ended}
            ) from error

    def free_memory(self) -> NDArray[np.uint8] | None:
        """The memory of an earlier clip, if no array of frames lies on it any more; otherwise it is left to those."""
        if self.memory is not None and sys.getrefcount(self.memory) > 2:  # 2: the attribute and the argument
            self.memory = None
        return self.memory

    def rest(self) -> bool:
        """Make the child close its file; whether it did so in time and can be used again."""
        if self.memory is not None and self.memory.size > _MOST_KEPT:
            self.memory = None
        self.ask({"do": "close", "keep": self.memory is not None})
        try:
            self._await(lambda message: "closed" in message, _CLOSE_SECONDS, faults=False)
        except (EOFError, TimeoutError):
            return False
        return True

    def kill(self, grace: float = 0.0) -> str:
        """End the child and say how it ended: the signal's name, or the exit status. Can be called again.

        Args:
            grace: seconds in which a child that is ending by itself may do so, to learn its own reason.
        """
        self._channel.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.process.kill()
        try:
            code = self.process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:  # stuck inside the kernel; it dies as soon as it leaves it
            return "it does not react"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    def forget(self) -> None:
        """After a fork, in the new process: this child belongs to the other one."""
        self._channel.socket.close()
        self.process.returncode = 0

    def _await(
        self, wanted: Callable[[dict[str, Any]], bool], timeout: float, *, faults: bool = True
    ) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while True:
            message, _ = self._channel.receive(deadline)
            if faults and "fault" in message:
                raise ItemError(Reason(message["fault"]), message["message"], message["detail"])
            if wanted(message):
                return message
            if "alive" in message:
                deadline = time.monotonic() + timeout


def _package_path(name: str) -> str:
    spec = importlib.util.find_spec(name)
    return "" if spec is None or spec.origin is None else str(Path(spec.origin).parent.parent)


class DecoderPool:
    """Decoder processes that are lent to streams and used again; safe to use from several threads.

    Args:
        idle: how many resting processes are kept; more are ended when they come back.
    """

    def __init__(self, idle: int = _IDLE) -> None:
        self._keep = idle
        self._lock = threading.Lock()
        self._resting: list[DecoderProcess] = []
        self._lent: set[DecoderProcess] = set()
        _pools.add(self)

    def take(self) -> DecoderProcess:
        """A running process, to be given back by :meth:`give`."""
        with self._lock:
            resting = self._resting.pop() if self._resting else None
        while resting is not None and not resting.alive:
            resting.kill()
            with self._lock:
                resting = self._resting.pop() if self._resting else None
        process = resting or self._started()
        with self._lock:
            self._lent.add(process)
        return process

    def _started(self) -> DecoderProcess:
        """A new process; one that is killed while it starts (memory ran out, say) is no reason to end a run."""
        for _ in range(_STARTS - 1):
            with contextlib.suppress(MissingPart):
                return DecoderProcess()
        return DecoderProcess()

    def give(self, process: DecoderProcess) -> None:
        """Take ``process`` back; one that does not stop its work at once is killed."""
        usable = process.alive and process.rest()
        with self._lock:
            lent = process in self._lent
            self._lent.discard(process)
            keep = usable and lent and len(self._resting) < self._keep
            if keep:
                self._resting.append(process)
        if not keep and lent:
            process.kill()

    def close(self) -> None:
        """End all processes, those of open streams too."""
        with self._lock:
            processes = [*self._resting, *self._lent]
            self._resting, self._lent = [], set()
        for process in processes:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def forget(self) -> None:
        """After a fork, in the new process: these children belong to the other one."""
        for process in [*self._resting, *self._lent]:
            process.forget()
        self._lock = threading.Lock()
        self._resting, self._lent = [], set()


_pools: weakref.WeakSet[DecoderPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.forget()


os.register_at_fork(after_in_child=_after_fork)

DEFAULT_POOL = DecoderPool()
"""The pool that streams use when they are not given one; starts nothing until it is used."""

atexit.register(DEFAULT_POOL.close)
