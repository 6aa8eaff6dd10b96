"""A run as a folder: manifest, rows, per-frame curves, pictures and a log.

======================  ==========================================================================================
``manifest.json``       what was asked; written first, atomically; its digest is the run's id
``scores.sqlite``       the rows, a group's rows in one transaction, and the raw replies of models, each in one of its
                        own (or in the database given by URL)
``curves/*.parquet``    per-frame values, named by their digest; written before the rows that point to them
``frames/*.jpg``        thumbnails and worst frames, named by their digest; likewise
``shard.json``          only in a run of one shard: which one of how many
``run.log.jsonl``       times, hardware, latencies: everything volatile; no report reads it
======================  ==========================================================================================

After a kill at any moment the rows present are complete and everything that they point to exists.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gen_eval.records.answer import Answer
from gen_eval.records.errors import InputError
from gen_eval.records.files import remove_leftovers, write_atomic, write_content_addressed
from gen_eval.records.model import Score, canonical_json, digest_of
from gen_eval.records.store import Store

MANIFEST_FORMAT = 1


class RunFolder:
    """An existing run; :meth:`create` makes one. Use as a context manager."""

    def __init__(self, path: Path, *, store: str | None = None) -> None:
        """Open the run in ``path``.

        Args:
            path: the folder.
            store: database URL when the rows are not in the folder.

        Raises:
            InputError: there is no run, its manifest is damaged, or its rows are in no store that was named.
        """
        self.path = path
        try:
            self.manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path} is no run: it has no manifest.json; {_instead(path)}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path / 'manifest.json'} cannot be read: {error}") from error
        if not isinstance(self.manifest, dict) or self.manifest.get("format") != MANIFEST_FORMAT:
            raise InputError(f"{path / 'manifest.json'} is not a manifest of format {MANIFEST_FORMAT}")
        self.id = digest_of(self.manifest)
        if store is None and not (path / "scores.sqlite").is_file():
            raise InputError(f"{path} holds no scores.sqlite; if its rows are in a database, name it with --store URL")
        self.store = Store(store) if store is not None else Store.at(path / "scores.sqlite")

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Any], *, store: str | None = None) -> Self:
        """Make the folder for ``manifest``, or open it when it holds the same run.

        Raises:
            InputError: the folder holds another run; the message names what differs.
        """
        asked = json.loads(canonical_json(dict(manifest)))
        if (path / "manifest.json").is_file():
            return cls._reopen(path, asked, store)
        try:
            path.mkdir(parents=True, exist_ok=True)
            for folder in ("curves", "frames"):
                (path / folder).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"the run folder {path} cannot be made: {error}; give another --out") from error
        with Store(store) if store is not None else Store.at(path / "scores.sqlite") as rows:
            rows.add_run(digest_of(asked), canonical_json(asked))
        try:
            write_atomic(path / "manifest.json", _pretty(asked))
        except OSError as error:
            raise InputError(f"the run folder {path} cannot be written: {error.strerror or error}") from error
        return cls(path, store=store)

    @classmethod
    def _reopen(cls, path: Path, asked: dict[str, Any], store: str | None) -> Self:
        run = cls(path, store=store)
        if run.manifest == asked:
            run.store.add_run(run.id, canonical_json(asked))  # a new --store may not know it yet
            return run
        run.close()
        differences = "; ".join(differing(run.manifest, asked)[:6])
        raise InputError(
            f"{path} holds another run ({run.id[:12]}); what differs: {differences}. Give another --out, or --update "
            "to take over the rows whose inputs did not change"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    @property
    def curves(self) -> Path:
        """Folder of the per-frame values."""
        return self.path / "curves"

    @property
    def frames(self) -> Path:
        """Folder of the pictures."""
        return self.path / "frames"

    @property
    def shard(self) -> tuple[int, int] | None:
        """(i, N) when this folder holds one shard of the run, 1-based; ``None`` when it holds the whole."""
        path = self.path / "shard.json"
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return int(content["index"]), int(content["of"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} cannot be read ({type(error).__name__}: {error}); it should say which shard the folder holds, "
                'as {"index": 1, "of": 8}'
            ) from error

    def mark_shard(self, shard: tuple[int, int] | None) -> None:
        """Record which shard this folder holds.

        Raises:
            InputError: it already holds another one.
        """
        if self.shard == shard:
            return
        # rows in a database of several folders say nothing of this one
        own = (self.path / "scores.sqlite").is_file() or self.shard is not None
        if own and self.store.count(self.id):
            raise InputError(
                f"{self.path} holds {_spoken(self.shard)} and cannot take {_spoken(shard)}; use another --out"
            )
        with self._writable():
            if shard is None:
                (self.path / "shard.json").unlink()
            else:
                write_atomic(self.path / "shard.json", _pretty({"index": shard[0], "of": shard[1]}))

    def rows(self) -> Iterator[Score]:
        """All rows, in key order."""
        return self.store.rows(self.id)

    def settled(self) -> set[tuple[str, str, str, str, str]]:
        """Keys of the rows that another attempt with the same input would not change."""
        return {key for key, reason in self.store.keys(self.id) if reason is None or not reason.transient}

    def write(self, rows: Iterable[Score]) -> None:
        """Write rows in one transaction; writing a row twice is writing it once."""
        self.store.write(self.id, rows)

    def answers(self, *, sample: str | None = None) -> Iterator[Answer]:
        """All answers, or those of one sample, in key order."""
        return self.store.answers(self.id, sample=sample)

    def write_answers(self, answers: Iterable[Answer]) -> None:
        """Write answers in one transaction; writing one twice is writing it once."""
        self.store.write_answers(self.id, answers)

    @classmethod
    def turn(cls, path: Path, manifest: Mapping[str, Any], *, store: str | None = None) -> None:
        """Turn the run in ``path``, where there is one, into that of ``manifest``: without rows, with its answers.

        An answer serves the new run exactly where it was asked the same, so nothing else is to be decided.

        Raises:
            InputError: the folder holds a damaged run, or another process is writing to it.
        """
        if (path / "manifest.json").is_file():
            with cls(path, store=store) as old, old.locked():
                old.become(manifest, ())

    def become(self, manifest: Mapping[str, Any], rows: Iterable[Score]) -> str:
        """Turn this folder into the run of ``manifest``, starting with ``rows``.

        The new run is in the store before the manifest changes and the old one is removed after that.

        Returns:
            The id of the run that was here before.
        """
        before = self.id
        asked = json.loads(canonical_json(dict(manifest)))
        if (after := digest_of(asked)) == before:
            return before
        kept, replies = list(rows), list(self.answers())
        self.store.add_run(after, canonical_json(asked))
        self.store.write(after, kept)
        self.store.write_answers(after, replies)  # which of them still serve is told by what they were asked
        with self._writable():
            write_atomic(self.path / "manifest.json", _pretty(asked))
        self.store.remove_run(before)
        self.manifest, self.id = asked, after
        return before

    def log(self, event: str, **fields: Any) -> None:
        """Append one line to the log (volatile things only; never read by a report)."""
        line = json.dumps({"time": time.time(), "event": event, **fields}, default=str)
        with self._writable(), (self.path / "run.log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def add_curves(self, content: bytes) -> str:
        """Keep a file of per-frame values and return its digest."""
        with self._writable():
            return write_content_addressed(self.curves, content, ".parquet")

    def add_picture(self, content: bytes) -> str:
        """Keep a JPEG and return its digest."""
        with self._writable():
            return write_content_addressed(self.frames, content, ".jpg")

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Say in a line why the folder takes nothing: the disk is full, read-only, or the folder is gone.

        A folder that was deleted under a run is not made anew: its rows are gone with it.
        """
        try:
            if not self.path.is_dir():
                raise FileNotFoundError(errno.ENOENT, "the folder is gone")
            yield
        except OSError as error:
            raise InputError(
                f"the run folder {self.path} cannot be written: {error.strerror or error}. Make room or access and run "
                "the same command again; what was finished is kept"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writing process; the lock falls with the process, however it ends.

        What a killed process left half written is removed: nobody else can be writing it.

        Raises:
            InputError: another process is writing to this folder, or it is gone.
        """
        with self._writable():
            handle = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"another process is writing to {self.path}; wait for it or give another --out"
                ) from None
            with self._writable():
                for folder in (self.curves, self.frames):
                    remove_leftovers(folder)
            yield
        finally:
            os.close(handle)


def _pretty(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _spoken(shard: tuple[int, int] | None) -> str:
    return "the whole run" if shard is None else f"shard {shard[0]}/{shard[1]}"


def differing(first: Any, second: Any, at: str = "") -> list[str]:
    """Where two manifests differ, a line each: dotted name, old value, new value."""
    if isinstance(first, dict) and isinstance(second, dict):
        lines: list[str] = []
        for key in sorted({*first, *second}):
            lines += differing(first.get(key), second.get(key), f"{at}.{key}" if at else key)
        return lines
    if isinstance(first, list) and isinstance(second, list) and _keyed(first) and _keyed(second):
        return differing({entry["id"]: entry for entry in first}, {entry["id"]: entry for entry in second}, at)
    return [] if first == second else [f"{at}: {_short(first)} -> {_short(second)}"]


def _keyed(entries: list[Any]) -> bool:
    return all(isinstance(entry, dict) and "id" in entry for entry in entries)


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _instead(path: Path) -> str:
    """What to give in place of a folder that is no run: the runs right below it, where there are any."""
    below = sorted(one.parent.name for one in path.glob("*/manifest.json"))[:5]
    if below:
        return f"it holds runs, name one of them: {', '.join(str(path / name) for name in below)}"
    return "give the folder that --out named"
