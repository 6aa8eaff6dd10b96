"""Where a checkpoint's file lies on this machine, and whether it is the file that it should be."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gen_eval.records import ItemError, Reason
from gen_eval.records.files import is_file
from gen_eval.settings import settings
from gen_eval.weights.catalogue import Checkpoint, Source, checkpoint
from gen_eval.weights.digests import file_digest, pin, pinned, weights_folder

CONVERTED = ".safetensors"
RECORD = ".json"


@dataclass(frozen=True)
class Located:
    """A file that serves as a checkpoint.

    Attributes:
        checkpoint: its entry in the catalogue.
        source: which of the entry's sources it is.
        path: the file.
        record: what the converter wrote down, when the file is a conversion of the published one.
    """

    checkpoint: Checkpoint
    source: Source
    path: Path
    record: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        """Name of the published file in the lock file and in messages; no path of the machine."""
        return f"{self.checkpoint.name}/{self.source.file}"

    @property
    def home(self) -> Path:
        """The checkpoint's folder, in which its files lie under the names of the catalogue."""
        return self.path.parents[self.source.file.count("/")]

    @property
    def companions(self) -> tuple[Located, ...]:
        """The further files of the source that are there, to be checked as this one."""
        return tuple(self._companion(file) for file in self.source.companions if is_file(self.home / file))

    @property
    def missing_companions(self) -> list[str]:
        """Names of the further files of the source that are not there."""
        return [file for file in self.source.companions if not is_file(self.home / file)]

    def _companion(self, file: str) -> Located:
        own: dict[str, Any] = {
            "file": file,
            "size": None,
            "sha256": None,
            "sha256_prefix": None,
            "companions": [],
            "needs": [],
        }
        return Located(self.checkpoint, self.source.model_copy(update=own), self.home / file)

    @property
    def sha256(self) -> str:
        """Digest of the file as it lies here (from memory when size and time are unchanged)."""
        return file_digest(self.path)

    @property
    def published_sha256(self) -> str:
        """Digest of the published file: that of a conversion's origin, else of the file itself."""
        return self.sha256 if self.record is None else str(self.record["source"]["sha256"])

    @property
    def needs(self) -> list[str]:
        """Checkpoints that are read together with this file; a converted archive has them in it."""
        whole = self.record is not None and self.source.container == "dreamsim_archive"
        return [] if whole else self.source.needs

    def expected(self) -> str | None:
        """The digest that the published file must have: published, else pinned; ``None`` when neither is known."""
        return self.source.sha256 or pinned(self.key) or self.source.sha256_prefix

    def problem(self) -> str | None:
        """What is wrong with the digest, with both digests; ``None`` when it is right or none is known."""
        if self.record is not None:
            here, noted = self.sha256, self.record["result"]["sha256"]
            if here != noted:
                return (
                    f"the converted file of {self.key} has SHA-256 {here}, its record says {noted}; "
                    f"{self._advice('convert it again')}"
                )
        actual = self.published_sha256
        if self.source.accepts(actual) is False:
            wanted = self.source.sha256 or f"{self.source.sha256_prefix}…"
            return (
                f"{self.key} has SHA-256 {actual}, published is {wanted}: a broken download or another file; "
                f"{self._advice('remove it and fetch it again')}"
            )
        held = None if self.source.sha256 else pinned(self.key)  # a published digest wins
        if held is not None and held != actual:
            return (
                f"{self.key} has SHA-256 {actual}, pinned is {held}: the file changed since it was first used; "
                f"{self._advice('bring the old file back')}, or accept this one with "
                f"`gen-eval weights verify {self.checkpoint.name} --pin`"
            )
        return None

    def _advice(self, what: str) -> str:
        return f"{what} (`gen-eval weights verify {self.checkpoint.name}` looks again)"

    def check(self) -> None:
        """Compare the digest with the published or pinned one; where none is published, a first use pins it.

        Raises:
            ItemError: it differs (``bad_weights``); the message holds both digests.
        """
        if (problem := self.problem()) is not None:
            raise ItemError(Reason.BAD_WEIGHTS, problem, {"checkpoint": self.checkpoint.name})
        if self.source.sha256 is None and pinned(self.key) is None:
            pin(self.key, self.published_sha256)


def roots() -> list[Path]:
    """Folders that checkpoints are looked for in: the weights folder, then the mirror."""
    mirror = settings().weights_mirror
    return [weights_folder(), *([mirror.expanduser()] if mirror else [])]


def target_of(name: str, file: str) -> Path:
    """Where a file of checkpoint ``name`` is put."""
    return weights_folder() / name / file


def locate(name: str) -> Located | None:
    """The file that serves as checkpoint ``name``: the first source, in order of preference, that is on this machine.

    A conversion of a published file (made by ``gen-eval weights convert``) is preferred to the file itself. The
    digest is not looked at.

    Raises:
        InputError: there is no such checkpoint.
    """
    entry = checkpoint(name)
    for source in entry.sources:
        for path in _candidates(name, source):
            if (record := _conversion_of(path)) is not None:
                return Located(entry, source, path.with_name(path.name + CONVERTED), record)
            if is_file(path):
                return Located(entry, source, path)
    return None


def with_needs(name: str) -> tuple[str, ...]:
    """``name`` and the checkpoints that are read together with it (of the file that is here, else of the first source).

    Raises:
        InputError: one of them is not in the catalogue.
    """
    found, sources = locate(name), checkpoint(name).sources
    needs = found.needs if found is not None else [other for source in sources[:1] for other in source.needs]
    return tuple(dict.fromkeys([name, *(one for other in needs for one in with_needs(other))]))


def _candidates(name: str, source: Source) -> list[Path]:
    paths = [root / name / source.file for root in roots()]
    if source.package is not None and (found := find_spec(source.package)) is not None:
        paths += [Path(folder) / source.file for folder in found.submodule_search_locations or ()]
    return paths


def _conversion_of(path: Path) -> dict[str, Any] | None:
    """The converter's record beside ``path``, when there is a whole one with its file."""
    converted = path.with_name(path.name + CONVERTED)
    note = converted.with_name(converted.name + RECORD)
    if not is_file(converted) or not is_file(note):
        return None
    try:
        record = json.loads(note.read_text(encoding="utf-8"))
        digests = record["source"]["sha256"], record["result"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if all(isinstance(one, str) for one in digests) else None


def digest(name: str) -> str | None:
    """SHA-256 that stands for checkpoint ``name`` in a score's identity; ``None`` when its files are not all here.

    It is the digest of the published file, also where a conversion of it is used: the tensors are the same. Where
    several checkpoints are read together (``needs``), it is the digest of their digests.
    """
    found = locate(name)
    if found is None:
        return None
    if not found.needs:
        return found.published_sha256
    parts = [found.published_sha256, *(digest(other) for other in found.needs)]
    if None in parts:
        return None
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
