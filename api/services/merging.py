"""Shards of one run become one run.

Everything is copied before the rows that point to it, rows are written by key, and what is there already is left alone:
a merge that was killed is finished by the same call, and a merge that is done is not done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from api.services.reporting.assets import is_digest
from api.services.results import Key, RunResults, open_run
from gen_eval.records import Answer, InputError, Score, canonical_json
from gen_eval.records.files import write_atomic
from gen_eval.records.run import RunFolder, differing

_BATCH = 2000


@dataclass(frozen=True)
class Merged:
    """What a merge left.

    Attributes:
        run: id of the run.
        rows: rows that the merged run holds.
        written: rows that this call added or replaced.
        missing: keys of rows that no shard holds.
        missing_shards: shards, as ``i/N``, whose rows are missing and that were not given; empty when the given runs
            were not shards of one split.
        missing_files: curves and pictures that rows point to and no shard holds.
    """

    run: str
    rows: int
    written: int
    missing: tuple[Key, ...]
    missing_shards: tuple[str, ...]
    missing_files: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the merged run is what one machine would have made."""
        return not self.missing and not self.missing_files

    def to_json(self) -> dict[str, Any]:
        """The document that ``gen-eval merge --json`` prints."""
        names = ("model", "sample", "member", "metric", "protocol")
        return {
            "run": self.run,
            "rows": self.rows,
            "written": self.written,
            "complete": self.complete,
            "missing": [dict(zip(names, key, strict=True)) for key in self.missing],
            "missing_shards": list(self.missing_shards),
            "missing_files": list(self.missing_files),
        }


def merge(paths: Sequence[Path], out: Path, *, store: str | None = None) -> Merged:
    """Join the shards in ``paths`` into the run folder ``out``.

    Args:
        paths: run folders with the same manifest; in any order, overlapping or not.
        out: made when absent, continued when it holds the same run; not one of ``paths``.
        store: database URL for the merged rows, and for those of shards that are not in their folders.

    Raises:
        InputError: runs that differ, rows that contradict each other, a damaged file, or an ``out`` that cannot take
            the run; the message names what is wrong.
    """
    if not paths:
        raise InputError("there is nothing to merge; name the run folders of the shards")
    if out.resolve() in {path.resolve() for path in paths}:
        raise InputError(f"{out} is one of the runs to merge; give another --out")
    shards = [_Shard.read(path, store) for path in paths]
    _check_same(shards)
    rows = _joined(shards)
    with RunFolder.create(out, shards[0].manifest, store=store) as run, run.locked():
        if run.shard is not None:
            raise InputError(f"{out} holds shard {run.shard[0]}/{run.shard[1]} itself; give another --out")
        missing_files = tuple(_copy_files(rows.values(), shards, out))
        run.write_answers(_answers(shards))
        written = _write(run, rows)
        run.log("merge", shards=len(shards), written=written)
        results = RunResults(run.id, run.manifest, run.rows(), path=out, store=store)
    missing = tuple(results.absent)
    return Merged(
        results.run, len(results.rows), written, missing, tuple(_missing_shards(shards, missing)), missing_files
    )


@dataclass(frozen=True)
class _Shard:
    """One of the runs, read."""

    path: Path
    run: str
    manifest: dict[str, Any]
    place: tuple[int, int] | None
    rows: tuple[Score, ...]
    answers: tuple[Answer, ...]

    @classmethod
    def read(cls, path: Path, store: str | None) -> _Shard:
        """The run in ``path``."""
        with open_run(path, store) as run:
            return cls(path, run.id, run.manifest, run.shard, tuple(run.rows()), tuple(run.answers()))


def _check_same(shards: Sequence[_Shard]) -> None:
    first = shards[0]
    for other in shards[1:]:
        if other.run != first.run:
            found = "; ".join(differing(first.manifest, other.manifest)[:6])
            raise InputError(
                f"{other.path} (run {other.run[:12]}) is not a shard of the same run as {first.path} "
                f"({first.run[:12]}); what differs: {found}. Score every shard with the same arguments and versions"
            )


def _joined(shards: Sequence[_Shard]) -> dict[Key, Score]:
    """Key -> row.

    Raises:
        InputError: two shards hold different rows of one key.
    """
    rows: dict[Key, Score] = {}
    origin: dict[Key, Path] = {}
    for shard in shards:
        for row in shard.rows:
            before = rows.get(row.key)
            if before is None or before == row:
                rows[row.key] = row
            elif _transient(before) or _transient(row):
                rows[row.key] = _better(before, row)
            else:
                what = ", ".join(
                    field.name for field in fields(Score) if getattr(before, field.name) != getattr(row, field.name)
                )
                raise InputError(
                    f"{origin[row.key]} and {shard.path} both hold the row {' / '.join(row.key)} and differ in {what}; "
                    "equal runs give equal rows, so one of them was changed or made by another build: score it again"
                )
            origin.setdefault(row.key, shard.path)
    return {key: rows[key] for key in sorted(rows)}


def _answers(shards: Sequence[_Shard]) -> Iterator[Answer]:
    """Each question's answer; one that lasts where any shard has such a one."""
    found = [answer for shard in shards for answer in shard.answers]
    for _, alike in groupby(sorted(found, key=lambda one: (one.key, not one.settled)), key=lambda one: one.key):
        yield next(alike)


def _transient(row: Score) -> bool:
    return row.reason is not None and row.reason.transient


def _better(one: Score, other: Score) -> Score:
    """The row to keep where an attempt may have ended otherwise: a settled one, whatever the order of the shards."""
    return min(one, other, key=lambda row: (_transient(row), canonical_json(row.to_json())))


def _files(row: Score) -> Iterator[str]:
    """Names of the files that a row points to, below the run folder.

    Raises:
        InputError: a name that is no digest.
    """
    names = [("curves", row.curve, "parquet")] if row.curve is not None else []
    names += [("frames", name, "jpg") for _, name in sorted(row.frames.items())]
    for folder, name, suffix in names:
        if not is_digest(name):
            raise InputError(f"the row {' / '.join(row.key)} points to {folder}/{name!r}, which is no digest")
        yield f"{folder}/{name}.{suffix}"


def _copy_files(rows: Iterable[Score], shards: Sequence[_Shard], out: Path) -> Iterator[str]:
    """Copy what the rows point to; yields the names of what no shard holds."""
    for name in dict.fromkeys(name for row in rows for name in _files(row)):
        if not (out / name).is_file() and not any(_copied(shard.path / name, out / name) for shard in shards):
            yield name


def _copied(source: Path, target: Path) -> bool:
    """Whether ``source`` was there to copy.

    Raises:
        InputError: its content is not what its name says.
    """
    try:
        content = source.read_bytes()
    except OSError:
        return False
    if hashlib.sha256(content).hexdigest() != target.stem:
        raise InputError(
            f"{source} is damaged: its content does not have the digest that it is named by; copy it again"
        )
    write_atomic(target, content)
    return True


def _write(run: RunFolder, rows: dict[Key, Score]) -> int:
    """Write what ``run`` does not hold already.

    Raises:
        InputError: it holds a row that contradicts a shard.
    """
    there = {row.key: row for row in run.rows()}
    new = []
    for key, row in rows.items():
        before = there.get(key)
        if before is None:
            new.append(row)
        elif before != row:
            if not (_transient(before) or _transient(row)):
                raise InputError(f"{run.path} already holds another row {' / '.join(key)}; give another --out")
            if (kept := _better(before, row)) != before:
                new.append(kept)
    for start in range(0, len(new), _BATCH):
        run.write(new[start : start + _BATCH])
    return len(new)


def _missing_shards(shards: Sequence[_Shard], missing: Sequence[Key]) -> Iterator[str]:
    splits = {None if shard.place is None else shard.place[1] for shard in shards}
    if len(splits) != 1 or (parts := splits.pop()) is None:
        return
    part_of = {sample["id"]: place % parts + 1 for place, sample in enumerate(shards[0].manifest["samples"])}
    given = {shard.place[0] for shard in shards if shard.place is not None}
    for part in sorted({part_of[key[1]] for key in missing} - given):
        yield f"{part}/{parts}"
