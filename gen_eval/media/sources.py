"""The two ways from the decoder to a reader: a child process with shared memory, or this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gen_eval.media import _decoder
from gen_eval.media.process import DecoderPool, DecoderProcess, shared_memory
from gen_eval.records import ItemError, Reason

Filled = tuple[NDArray[np.uint8], dict[str, Any]]
"""Frames (k, H, W, 3) as stored, and the decoder's report (``stamps``, ``kept``, ``end``)."""

_MOST_BYTES = 256 * 2**20


class Source(Protocol):
    """An open clip that is asked for frames and later gives them.

    Frames stay valid until the second ``collect`` after the one that gave them: there are two places to decode into.
    """

    info: dict[str, Any]

    def select(self, wanted: Sequence[int] | None, limit: int | None) -> None:
        """Before the first request: keep only these frames (ascending), decode at most ``limit``."""

    def request(self, count: int) -> None:
        """Begin with the next frames, up to ``count``; one request is open at a time."""

    def collect(self) -> Filled:
        """What the open request gave; fewer frames than asked for when they would take too much memory, or at the end.

        Raises:
            ItemError: the clip cannot be decoded further.
        """

    def close(self) -> None:
        """Give everything back; frames given earlier stay readable."""


class _Slots:
    """Two places for ``count`` frames each, used in turn."""

    def __init__(self, frame_shape: tuple[int, int, int]) -> None:
        self.frame_shape = frame_shape
        self.frame_bytes = int(np.prod(frame_shape))
        self.capacity = 0
        self._turn = 0
        self._memory = np.empty(0, np.uint8)

    def fit(self, count: int) -> int:
        """How many of ``count`` frames are decoded at a time."""
        return max(1, min(count, _MOST_BYTES // self.frame_bytes))

    def use(self, memory: NDArray[np.uint8]) -> None:
        self._memory, self.capacity, self._turn = memory, memory.size // (2 * self.frame_bytes), 0

    def release(self) -> None:
        """Hold no memory any more; arrays that were given out keep theirs."""
        self._memory, self.capacity = np.empty(0, np.uint8), 0

    def next_offset(self) -> int:
        self._turn = 1 - self._turn
        return self._turn * self.capacity * self.frame_bytes

    def frames(self, count: int) -> NDArray[np.uint8]:
        start = self._turn * self.capacity * self.frame_bytes
        return self._memory[start : start + count * self.frame_bytes].reshape(count, *self.frame_shape)


def _slots(info: dict[str, Any]) -> _Slots:
    width, height = info["size"]
    return _Slots((height, width, 3))


class IsolatedSource:
    """A clip that a child process decodes: the next frames while the last ones are worked on."""

    def __init__(self, path: str, name: str, *, timeout: float, max_pixels: int, pool: DecoderPool) -> None:
        """Open ``path`` in a process of ``pool``.

        Raises:
            ItemError: it cannot be opened or its first frame not be decoded.
        """
        self._name, self._timeout, self._pool = name, timeout, pool
        self._slots = _Slots((1, 1, 3))
        self._selection: dict[str, Any] = {}
        self._process: DecoderProcess | None = pool.take()
        try:
            self._process.ask({"do": "open", "path": path, "max_pixels": max_pixels, "timeout": timeout})
            self.info: dict[str, Any] = self._process.answer(name, timeout)["info"]
        except BaseException:
            self.close()
            raise
        self._slots = _slots(self.info)
        memory = self._process.free_memory()
        if memory is not None:
            self._slots.use(memory)

    def select(self, wanted: Sequence[int] | None, limit: int | None) -> None:
        """See :class:`Source`."""
        self._selection = {"wanted": None if wanted is None else [int(index) for index in wanted], "limit": limit}

    def request(self, count: int) -> None:
        """See :class:`Source`."""
        assert self._process is not None
        count = self._slots.fit(count)
        message = {"do": "fill", "count": count, **self._selection}
        self._selection = {}
        if count <= self._slots.capacity:
            self._process.ask({**message, "offset": self._slots.next_offset()})
            return
        descriptor, memory = shared_memory(2 * count * self._slots.frame_bytes)
        with _closing(descriptor):
            self._slots.use(memory)
            self._process.memory = memory
            self._process.ask({**message, "offset": self._slots.next_offset()}, descriptor)

    def collect(self) -> Filled:
        """See :class:`Source`."""
        assert self._process is not None
        report = self._process.answer(self._name, self._timeout)
        return self._slots.frames(report["kept"]), report

    def close(self) -> None:
        """See :class:`Source`."""
        process, self._process = self._process, None
        if process is not None:
            self._slots.release()
            self._pool.give(process)


class LocalSource:
    """A clip that this process decodes, without a guard against hanging or crashing."""

    def __init__(self, path: str, *, max_pixels: int) -> None:
        """Open ``path``.

        Raises:
            ItemError: it cannot be opened or its first frame not be decoded.
        """
        with _as_item_error():
            self._decoder = _decoder.Decoder(path, max_pixels)
        self.info = self._decoder.info
        self._slots = _slots(self.info)
        self._count = 0

    def select(self, wanted: Sequence[int] | None, limit: int | None) -> None:
        """See :class:`Source`."""
        self._decoder.select(wanted, limit)

    def request(self, count: int) -> None:
        """See :class:`Source`."""
        self._count = self._slots.fit(count)

    def collect(self) -> Filled:
        """See :class:`Source`."""
        if self._count > self._slots.capacity:
            self._slots.use(np.empty(2 * self._count * self._slots.frame_bytes, np.uint8))
        self._slots.next_offset()
        place = self._slots.frames(self._count)
        with _as_item_error():
            report = self._decoder.fill(place.reshape(-1).data, self._count)
        assert report is not None
        return place[: report["kept"]], report

    def close(self) -> None:
        """See :class:`Source`."""
        self._decoder.close()


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _as_item_error() -> Iterator[None]:
    try:
        yield
    except _decoder.Fault as fault:
        raise ItemError(Reason(fault.reason), fault.message, fault.detail) from fault
