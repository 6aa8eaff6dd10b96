"""Groups on the processes of this machine.

With one worker the work runs in this process. With several, each worker is a process that is handed one group at a
time; one that dies takes only its group with it, which is tried again in a new process. Results come back in the order
in which they are finished; who stores them sorts by key.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from gen_eval.records import Reason

Item = TypeVar("Item")
Result = TypeVar("Result")

_PARENT_CHECK_SECONDS = 1.0


@dataclass(frozen=True)
class Done(Generic[Item, Result]):
    """An item that was worked on.

    Attributes:
        item: the item.
        result: what the work returned.
        seconds: how long it took.
        attempt: which try it was, from 1.
    """

    item: Item
    result: Result
    seconds: float
    attempt: int


@dataclass(frozen=True)
class Lost(Generic[Item]):
    """An item whose process died in every attempt.

    Attributes:
        item: the item.
        reason: ``out_of_memory`` when the system killed the process, else ``internal_error``.
        message: how the process ended.
    """

    item: Item
    reason: Reason
    message: str


def run_groups(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    *,
    workers: int,
    threads: int = 1,
    attempts: int = 2,
    again: Callable[[Result], bool] = lambda result: False,
) -> Generator[Done[Item, Result] | Lost[Item], None, None]:
    """Apply ``work`` to every item.

    Args:
        items: what to work on.
        work: a picklable function; it turns expected problems into results and does not raise.
        workers: processes; 1 works in this one.
        threads: threads that a process may use for arithmetic.
        attempts: tries of an item whose process died, or whose result asks for another try.
        again: whether a result asks for another try; the last one is returned as it is.

    Yields:
        Each item once, in the order of finishing. Closing the iterator ends all workers.
    """
    queue: deque[tuple[Item, int]] = deque((item, 1) for item in items)
    if workers <= 1 or len(queue) <= 1:
        yield from _here(queue, work, threads, attempts, again)
    else:
        yield from _Pool(queue, work, min(workers, len(queue)), threads, attempts, again).run()


def _here(
    queue: deque[tuple[Item, int]],
    work: Callable[[Item], Result],
    threads: int,
    attempts: int,
    again: Callable[[Result], bool],
) -> Iterator[Done[Item, Result]]:
    limit_threads(threads)
    while queue:
        item, attempt = queue.popleft()
        started = time.monotonic()
        result = work(item)
        if attempt < attempts and again(result):
            queue.append((item, attempt + 1))
            continue
        yield Done(item, result, time.monotonic() - started, attempt)


_THREADS: list[int] = []


def limit_threads(threads: int) -> None:
    """Let arithmetic use ``threads`` threads in this process: OpenCV now, and networks when they are loaded."""
    import cv2

    cv2.setNumThreads(threads)
    _THREADS[:] = [threads]


def threads() -> int | None:
    """How many threads this process may use for arithmetic; ``None`` when nobody said."""
    return _THREADS[0] if _THREADS else None


class _Worker:
    """A process and the item that it is working on."""

    def __init__(self, work: Callable[[Any], Any], threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work, threads), daemon=False)
        self.process.start()
        theirs.close()
        self.job: tuple[Any, int] | None = None

    def stop(self) -> None:
        self.pipe.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.process.close()


class _Pool(Generic[Item, Result]):
    def __init__(
        self,
        queue: deque[tuple[Item, int]],
        work: Callable[[Item], Result],
        workers: int,
        threads: int,
        attempts: int,
        again: Callable[[Result], bool],
    ) -> None:
        self._queue, self._work, self._count = queue, work, workers
        self._threads, self._attempts, self._again = threads, attempts, again
        self._workers: list[_Worker] = []

    def run(self) -> Iterator[Done[Item, Result] | Lost[Item]]:
        try:
            while self._queue or any(worker.job for worker in self._workers):
                self._hand_out()
                busy = [worker for worker in self._workers if worker.job]
                ready = wait([worker.pipe for worker in busy])
                for worker in [one for one in busy if one.pipe in ready]:
                    if (ended := self._collect(worker)) is not None:
                        yield ended
        finally:
            for worker in self._workers:
                worker.stop()

    def _hand_out(self) -> None:
        for worker in self._workers:
            if self._queue and worker.job is None:
                self._give(worker)
        while self._queue and len(self._workers) < self._count:
            worker = _Worker(self._work, self._threads)
            self._workers.append(worker)
            self._give(worker)

    def _give(self, worker: _Worker) -> None:
        worker.job = self._queue.popleft()
        try:
            worker.pipe.send(worker.job[0])
        except OSError:
            return  # it has died: the pipe reads as ended and the item is tried again

    def _collect(self, worker: _Worker) -> Done[Item, Result] | Lost[Item] | None:
        assert worker.job is not None
        item, attempt = worker.job
        try:
            result, seconds = worker.pipe.recv()
        except (EOFError, OSError):
            return self._died(worker, item, attempt)
        worker.job = None
        if isinstance(result, BaseException):
            raise result
        if attempt < self._attempts and self._again(result):
            self._queue.append((item, attempt + 1))
            return None
        return Done(item, result, seconds, attempt)

    def _died(self, worker: _Worker, item: Item, attempt: int) -> Lost[Item] | None:
        worker.process.join()
        code = worker.process.exitcode or 0
        self._workers.remove(worker)
        worker.stop()
        if attempt < self._attempts:
            self._queue.append((item, attempt + 1))
            return None
        killed = code == -signal.SIGKILL
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        hint = "; the system kills processes when memory runs out: use fewer --workers" if killed else ""
        reason = Reason.OUT_OF_MEMORY if killed else Reason.INTERNAL_ERROR
        return Lost(item, reason, f"the process that scored it ended with {how} in {attempt} attempts{hint}")


def _serve(pipe: Connection, work: Callable[[Any], Any], threads: int) -> None:
    """Main function of a worker process: an item in, a result out, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    _end_with_parent()
    limit_threads(threads)
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            return
        started = time.monotonic()
        try:
            result = work(item)
        except BaseException as error:
            result = error
        try:
            pipe.send((result, time.monotonic() - started))
        except OSError:
            return


def _end_with_parent() -> None:
    """Leave when the parent is gone, however it ended: it cannot tell us."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
