"""Replies that need not be asked for again: one SQLite file, shared by runs and by processes.

What is kept is decided by :class:`gen_eval.mllm.asking.Asker`: replies that would come out the same again, under a key
made of everything that moves them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from gen_eval.mllm.chat import Reply, TokenChance, Usage
from gen_eval.records import InputError
from gen_eval.settings import settings

_APPLICATION = 0x67656E76
"""Marks the file as ours, so that another program's database is not written into."""
_FORMAT = 1
_PATIENCE = 30.0
"""Seconds to wait for another process that writes."""


def cache_of_settings() -> AbstractContextManager[ReplyCache | None]:
    """The cache that the environment names (``GEN_EVAL_CHAT_CACHE``), or none, to be used in a ``with`` statement.

    Raises:
        InputError: the file cannot be used.
    """
    path = settings().chat_cache
    return nullcontext() if path is None else ReplyCache(path)


class ReplyCache:
    """A file of replies by key; safe to use from several threads and processes at once.

    Args:
        path: the file; made, with its folders, when it is not there.

    Raises:
        InputError: the file is damaged, is something else, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder of the reply cache {self.path} cannot be made: {error}") from None
        try:
            with self._used() as connection:
                self._prepare(connection)
        except InputError:
            self.close()
            raise

    def get(self, key: str) -> Reply | None:
        """The reply kept under ``key``, with ``attempts`` 0; ``None`` when there is none that can be read.

        Raises:
            InputError: the file cannot be read.
        """
        with self._used() as connection:
            row = connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else _reply_of(row[0])

    def put(self, key: str, reply: Reply) -> None:
        """Keep ``reply`` under ``key``, in place of what was there.

        Raises:
            InputError: the file cannot be written.
        """
        chances = None if reply.logprobs is None else [vars(one) for one in reply.logprobs]
        values = {**vars(reply), "usage": vars(reply.usage), "logprobs": chances, "raw": dict(reply.raw)}
        text = json.dumps(values, ensure_ascii=True, allow_nan=False)
        with self._used() as connection:
            connection.execute("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, text))

    def __len__(self) -> int:
        with self._used() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; using the cache again opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._connection is None:
                    self._connection = sqlite3.connect(
                        self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
                    )
                yield self._connection
        except sqlite3.OperationalError as error:
            raise InputError(
                f"the reply cache {self.path} cannot be used: {error}. Give a file in a folder that can be written"
            ) from None
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"the reply cache {self.path} is damaged or no reply cache ({error}). Remove it, or name another file"
            ) from None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table in a new file; refuse a file of something else."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            owner, version = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in _MARKS)
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if tables and (owner, version) != (_APPLICATION, _FORMAT):
                raise InputError(
                    f"{self.path} is a database of something else or of another version (marks {owner:#x}, {version}); "
                    "name another file for the reply cache"
                )
            connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
            for name, value in zip(_MARKS, (_APPLICATION, _FORMAT), strict=True):
                connection.execute(f"PRAGMA {name} = {value}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer side by side
        connection.execute("PRAGMA synchronous = NORMAL")  # a lost last reply is only asked for again


_MARKS = ("application_id", "user_version")


def _reply_of(text: str) -> Reply | None:
    """The reply written as ``text``; ``None`` for a line that cannot be read, which counts as not kept."""
    try:
        values: dict[str, Any] = json.loads(text)
        chances = values["logprobs"]
        return Reply(
            **{
                **values,
                "usage": Usage(**values["usage"]),
                "logprobs": None if chances is None else tuple(TokenChance(**one) for one in chances),
                "ignored": tuple(values["ignored"]),
                "attempts": 0,
            }
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
