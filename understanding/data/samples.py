"""Samples of tasks: what all of them have, and their form as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused, json_lines, required_text
from gen_eval.records import InputError, Rejection, digest_of
from understanding.data.media import Media


@dataclass(frozen=True, kw_only=True)
class TaskSample:
    """One case of a task; tasks add their own fields.

    Attributes:
        id: unique within the data.
        index: 0-based place in the data, which other harnesses name samples by; ``None`` when unknown.
        media: the video or picture that is asked about.
        groups: way of grouping (``category``, ``column``) -> the group that it belongs to.
        cluster: what it shares with samples that are not independent of it: its video.
        extra: fields that are carried along unread.
    """

    id: str
    index: int | None = None
    media: Media | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def no_truth(self) -> str:
        """Why it cannot be scored; empty when it has a right answer."""
        return ""

    @property
    def prompt(self) -> Mapping[str, Any]:
        """What of it a model is told (JSON values)."""
        return {}

    @property
    def truth(self) -> Any:
        """What it is scored against (JSON values)."""
        return None

    @cached_property
    def prompt_digest(self) -> str:
        """Digest of what a model is told."""
        return digest_of(self.prompt)


SampleT = TypeVar("SampleT", bound=TaskSample)


@dataclass(frozen=True)
class Samples(Generic[SampleT]):
    """The samples of one data set.

    Attributes:
        layout: how it was stored (``samples-file``, ``pai-u``).
        root: folder that its media lie under.
        samples: those that can be scored, sorted by id.
        no_truth: those without a right answer: they can be asked, not scored.
        rejected: what could not be used.
    """

    layout: str
    root: Path
    samples: tuple[SampleT, ...]
    no_truth: tuple[SampleT, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    @cached_property
    def by_id(self) -> dict[str, SampleT]:
        """All samples, those without truth included."""
        return {sample.id: sample for sample in (*self.samples, *self.no_truth)}

    @cached_property
    def by_index(self) -> dict[int, SampleT]:
        """All samples by their place in the data."""
        return {sample.index: sample for sample in self.by_id.values() if sample.index is not None}

    @cached_property
    def has_media(self) -> bool:
        """Whether any media file is here: then an absent one is missing, and not just somewhere else."""
        return any(sample.media is not None and sample.media.present for sample in self.by_id.values())

    def restricted(self, groups: tuple[str, ...] | None) -> Samples[SampleT]:
        """Only the samples that are in one of ``groups``, whatever the way of grouping; ``None`` for all.

        Raises:
            InputError: a group has no sample.
        """
        if groups is None:
            return self
        known = sorted({name for sample in self.samples for name in sample.groups.values()})
        if absent := [name for name in groups if name not in known]:
            raise InputError(f"no sample is in the group {', '.join(absent)}; there are {', '.join(known) or 'none'}")
        chosen = tuple(one for one in self.samples if not set(groups).isdisjoint(one.groups.values()))
        return replace(self, samples=chosen)

    def limited(self, limit: int | None) -> Samples[SampleT]:
        """The first ``limit`` samples.

        Raises:
            InputError: the limit is below one.
        """
        if limit is None:
            return self
        if limit < 1:
            raise InputError(f"--limit must be at least 1, not {limit}")
        return Samples(self.layout, self.root, self.samples[:limit], self.no_truth, self.rejected)


Make = Callable[[Any, int, Path], SampleT]
"""Turns a record, its place and the media folder into a sample; raises Refused."""


def load_samples_file(path: Path, make: Make[SampleT], *, task: str, media: Path | None = None) -> Samples[SampleT]:
    """The samples in JSON lines (``.jsonl``, ``.jsonl.gz``).

    Args:
        path: the file; media paths in it are relative to its folder and may not leave it.
        make: turns a record into a sample.
        task: name of the task; records that name another one are passed over.
        media: folder that media paths are relative to instead.

    Raises:
        InputError: the file cannot be read, or holds no sample that can be used.
    """
    rejected: list[Rejected] = []
    records = [(where, one) for where, one in json_lines(path, rejected) if one.get("task") in {None, task}]
    return collected("samples-file", path, records, make, media if media is not None else path.parent, rejected)


def collected(
    layout: str,
    path: Path,
    records: Iterable[tuple[str, Any]],
    make: Make[SampleT],
    root: Path,
    rejected: list[Rejected],
) -> Samples[SampleT]:
    """Samples made of ``records``; those that cannot be used are listed.

    Raises:
        InputError: none can be used.
    """
    found: dict[str, SampleT] = {}
    for place, (where, record) in enumerate(records):
        try:
            sample = make(record, place, root)
            if sample.id in found:
                raise Refused(Rejection.DUPLICATE_ID, f"id {sample.id!r} came before; the first is kept")
            if sample.no_truth:
                rejected.append(Rejected(where, Rejection.NO_TRUTH, f"{sample.id}: {sample.no_truth}"))
            found[sample.id] = sample
        except Refused as refusal:
            rejected.append(refusal.at(where))
    if not found:
        first = f": {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} holds no sample that can be used{first}")
    ordered = [found[name] for name in sorted(found)]
    scored = tuple(sample for sample in ordered if not sample.no_truth)
    return Samples(layout, root, scored, tuple(one for one in ordered if one.no_truth), tuple(rejected))


def id_of(record: Mapping[str, Any]) -> str:
    """The id of a record.

    Raises:
        Refused: it is missing, empty or no text.
    """
    return required_text(record, "id")
