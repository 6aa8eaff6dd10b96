"""The shape of every task: samples, messages, reading, scoring, aggregation, bound to a protocol and a preset.

Tasks are found through the entry points ``gen_eval.tasks``; an entry is a subclass of :class:`Task`. :func:`task` binds
one. Nothing here asks a model: that is the service's part.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic

from gen_eval.mllm import Frames, Message, Options, VideoFile
from gen_eval.protocols import Protocol, load_protocol
from gen_eval.records import Flag, InputError, Reason
from gen_eval.registry import load, names
from gen_eval.replies import Reading
from understanding.data.samples import Samples, SampleT, TaskSample
from understanding.scoring.aggregate import TaskAggregate
from understanding.scoring.outcome import COUNTED_AS_WRONG, SampleScore

REPLIES = "replies"
"""The reading rule of the shared reader; every other one is a dialect of public code."""


class Task(ABC, Generic[SampleT]):
    """A task bound to a protocol, and where that reads as public code does, to its dialect.

    Attributes:
        name: fixed public name.
        title: for people.
        metric: main metric; its protocols say how replies are read.
        metrics: all metrics, the main one first.
        dialects: readings of public code; empty where there is one only, which the protocol names.
        prompts: file of its prompt forms.
        table: published table that model entries may name a row of; empty for none.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    metric: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    dialects: ClassVar[tuple[str, ...]] = ()
    prompts: ClassVar[str]
    table: ClassVar[str] = ""
    value_for_nothing: ClassVar[float] = 0.0  # what an empty answer is worth

    def __init__(self, protocol: Protocol, *, dialect: str | None = None, preset: str | None = None) -> None:
        self.protocol, self.dialect, self.preset = protocol, dialect, preset

    @classmethod
    def bound(cls, protocol: str, dialect: str | None, preset: str | None) -> Task[SampleT]:
        """The task under ``protocol`` (a name, or the path of a file).

        Raises:
            InputError: the protocol or the dialect is not known.
        """
        found = load_protocol(cls.metric, protocol)
        if dialect is not None and dialect not in cls.dialects:
            known = ", ".join(cls.dialects) or "none"
            raise InputError(f"{cls.name} has no dialect {dialect!r}; there are {known}")
        if found.decide.get("reading") == REPLIES:
            return cls(found, preset=preset)
        own = dialect or str(found.decide["reading"])
        return cls(replace(found, decide={**found.decide, "reading": own}), dialect=own, preset=preset)

    @property
    def reading(self) -> str:
        """How replies are read: ``replies``, or the name of a dialect."""
        return str(self.protocol.decide["reading"])

    # --- data -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def samples(self, path: str | os.PathLike[str], *, media: Path | None = None) -> Samples[SampleT]:
        """The samples in ``path``, in the benchmark's own layout or as JSON lines.

        Raises:
            InputError: there are none that can be used.
        """

    @abstractmethod
    def sample(self, record: Mapping[str, Any]) -> SampleT:
        """One sample from its fields (docs/understanding.md), without a file.

        Raises:
            InputError: a field has another form.
        """

    def of(self, sample: SampleT | Mapping[str, Any]) -> SampleT:
        """``sample`` itself, or the one that a mapping of its fields describes."""
        return sample if isinstance(sample, TaskSample) else self.sample(sample)

    # --- asking ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def build_messages(
        self, sample: SampleT | Mapping[str, Any], part: Frames | VideoFile | None, *, family: str = "generic"
    ) -> tuple[Message, ...]:
        """The turns that put ``sample`` to a model.

        Args:
            sample: what is asked.
            part: what is shown; ``None`` asks without.
            family: of the model, from its entry.
        """

    @abstractmethod
    def decoding(
        self,
        *,
        thinking: bool | None = None,
        effort: str | None = None,
        seed: int | None = None,
        may_reason: bool = False,
    ) -> Options:
        """How replies are decoded under this form of asking.

        Args:
            thinking: whether the model is to reason first; ``None`` leaves it to the model.
            effort: how much.
            seed: of sampling.
            may_reason: whether the model may reason first when nothing is said about it; it then gets the room.
        """

    @property
    @abstractmethod
    def form(self) -> Mapping[str, str]:
        """Name and digest of the form of asking, and the preset that goes with it, for manifests."""

    # --- scoring --------------------------------------------------------------------------------------------------

    @abstractmethod
    def parse(self, reply: Any, sample: SampleT | Mapping[str, Any]) -> Reading[Any]:
        """What ``reply`` says, by the protocol's reading."""

    @abstractmethod
    def score(self, parsed: Any, sample: SampleT | Mapping[str, Any], *, member: str = "0") -> SampleScore:
        """What an answer is worth.

        Args:
            parsed: what :meth:`parse` returned, or a value; ``None`` for nothing that could be read.
            sample: what was asked.
            member: seed.
        """

    @abstractmethod
    def aggregate(self, scores: Iterable[SampleScore], *, resamples: int = 10_000) -> TaskAggregate:
        """The numbers of the task over ``scores``; samples without a score are not known here and not in N."""

    def gap(
        self, sample: SampleT, reason: Reason, message: str = "", *, member: str = "0", **detail: Any
    ) -> SampleScore:
        """The score of a sample without a reply: counted as an empty answer, or left out, as ``reason`` has it."""
        counted = reason in COUNTED_AS_WRONG
        explained = {**({"message": message} if message else {}), **detail}
        value = self.value_for_nothing if counted else None
        return SampleScore(sample, value, reason.status, reason, detail=explained, member=member)

    def __repr__(self) -> str:
        named = f", dialect={self.dialect!r}" if self.dialect else ""
        return f"understanding.task({self.name!r}, protocol={self.protocol.name!r}{named})"


def reading_of(parsed: Any) -> Reading[Any]:
    """``parsed`` as a reading: itself, a value, or nothing."""
    if isinstance(parsed, Reading):
        return parsed
    return Reading(None, Flag.NO_ANSWER, "given") if parsed is None else Reading(parsed, rule="given")


def ordered(scores: Iterable[SampleScore]) -> list[SampleScore]:
    """Scores in the order of the data; those whose place is not known stay in the order in which they come, last."""

    def place(score: SampleScore) -> tuple[bool, int]:
        index = score.sample.index
        return (index is None, index or 0)

    return sorted(scores, key=place)


def task(name: str, protocol: str = "corrected", dialect: str | None = None, preset: str | None = None) -> Task[Any]:
    """The task ``name``, bound.

    Args:
        name: such as ``pai/u``.
        protocol: ``corrected``, ``reference``, or the path of a file.
        dialect: which public code ``reference`` reads as; the protocol's own by default.
        preset: what a model is shown; the form's own by default.

    Raises:
        InputError: there is no such task, protocol or dialect.

    Example:
        >>> question = {"id": "a", "options": {"A": "left", "B": "right"}, "answer": "B"}
        >>> print(task("pai/u").score("B", question).value)
        1.0
    """
    found = load("gen_eval.tasks", name)
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise InputError(f"the entry {name!r} among the tasks is no task but {found!r:.80}")
    return found.bound(protocol, dialect, preset)


def task_class(name: str) -> type[Task[Any]]:
    """The class of the task ``name``, unbound.

    Raises:
        InputError: there is none.
    """
    found: type[Task[Any]] = type(task(name))
    return found


def task_names() -> list[str]:
    """All tasks, sorted."""
    return names("gen_eval.tasks")
