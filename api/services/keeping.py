"""Writing answers as they come without holding up the questions: what arrives during a commit goes into the next one.

An answer counts as kept when it is committed. One that waits is committed before the writer is closed, also when the
work was cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from gen_eval.records import Answer, Score
from gen_eval.records.run import RunFolder


class Keeper:
    """Writes to one run, in a thread of its own. Use as an async context manager."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keeper")
        self._waiting: list[tuple[Answer, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None

    async def keep(self, answer: Answer) -> Answer:
        """Commit ``answer``, together with others that come meanwhile.

        Raises:
            InputError: the store cannot be written.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, done))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._commit())
        await done
        return answer

    async def write(self, rows: Iterable[Score]) -> None:
        """Commit the rows of a group.

        Raises:
            InputError: the store cannot be written.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._run.write, list(rows))

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            answers = [answer for answer, _ in batch]
            try:
                await loop.run_in_executor(self._thread, self._run.write_answers, answers)
            except Exception as error:
                _settle(batch, error)
            else:
                _settle(batch)

    async def __aenter__(self) -> Keeper:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what waits, after what is under way."""
        self._thread.shutdown(wait=True)
        left, self._waiting = self._waiting, []
        if left:
            self._run.write_answers([answer for answer, _ in left])
            _settle(left)


def _settle(batch: Sequence[tuple[Answer, asyncio.Future[None]]], error: Exception | None = None) -> None:
    for _, done in batch:
        if done.done():  # its question was cancelled meanwhile
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


__all__ = ["Keeper"]
