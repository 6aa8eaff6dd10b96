"""Depth maps and segmentation of the clips of a group: the files that were given, else files that networks make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from gen_eval.features.arrays import out_of_memory
from gen_eval.features.clips import of_reference, problem_of
from gen_eval.features.feature import ClipSignal
from gen_eval.features.plan import Measurement
from gen_eval.features.rendition import Rendition, Renditions
from gen_eval.networks.loading import ensure
from gen_eval.records import Flag, Generation, ItemError, Reason, Sample
from gen_eval.records.files import is_file

FILES = {"depth": "depth_npzs/<name>.npz", "masks": "masks/<name>.masks.json"}
"""Signal -> where its file is looked for."""

CLIP_SIGNALS = tuple(FILES)
"""What metrics measure that do not look at frames."""


@dataclass(frozen=True)
class SignalFile:
    """A file with the signal of one clip.

    Attributes:
        path: the file.
        computed: whether it was made here; the rest is empty when it was given.
        flags: what was unusual about the clip.
        fps: rate of the clip.
        facts: what the row says of how it was made.
    """

    path: Path
    computed: bool = False
    flags: tuple[Flag, ...] = ()
    fps: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class ClipSignals:
    """The signal files of one group; each is made once, when it is first asked for."""

    def __init__(self, renditions: Renditions) -> None:
        self._renditions = renditions
        self._sample = renditions.group.sample
        self._made: dict[tuple[Path, Rendition, ClipSignal], SignalFile | ItemError] = {}
        self._number = count()

    def member(self, member: Generation, measurement: Measurement) -> SignalFile:
        """The file of a generated clip.

        Raises:
            ItemError: there is none and it cannot be made.
        """
        if member.path is None:
            raise problem_of(member)
        given = given_file(member, measurement.metric.signal)
        if given is not None:
            return SignalFile(given)
        signal = measurement.metric.clip_signal(measurement.measure)
        if signal is None:
            name, kind = measurement.metric.name, measurement.metric.signal
            said = (
                f"{name} needs the {kind} of the generated clip: give it as {FILES[kind]} beside the videos (--signals)"
            )
            raise ItemError(Reason.MISSING_WEIGHTS, said)
        return self._computed(member.path, signal, Rendition.of(measurement.measure))

    def reference(self, measurement: Measurement) -> SignalFile:
        """The file of the reference clip; it is never written into the data.

        Raises:
            ItemError: ``missing_ground_truth``, there is neither a file nor a way to make it; or what went wrong.
        """
        metric, sample = measurement.metric, self._sample
        given = given_file(sample, metric.signal)
        if given is not None:
            return SignalFile(given)
        if (named := getattr(sample, metric.signal)) is not None:
            said = f"{metric.name} needs the {metric.signal} of the reference clip, and {named.name} is not there"
            raise ItemError(Reason.MISSING_GROUND_TRUTH, said)
        signal = metric.clip_signal(measurement.measure)
        if signal is None or sample.reference is None or not is_file(sample.reference):
            said = (
                f"{metric.name} needs the {metric.signal} of the reference clip; the data has neither it nor the video"
            )
            raise ItemError(Reason.MISSING_GROUND_TRUTH, said)
        try:
            return self._computed(sample.reference, signal, Rendition.of(measurement.measure))
        except ItemError as error:
            raise _without_signal(error, metric.name, metric.signal) from None

    def forget(self, member: Generation) -> None:
        """Delete what was made of a generated clip: depth maps of two minutes of video fill gigabytes."""
        for key in [key for key in self._made if key[0] == member.path and key[0] != self._sample.reference]:
            made = self._made.pop(key)
            if isinstance(made, SignalFile):
                made.path.unlink(missing_ok=True)

    def _computed(self, path: Path, signal: ClipSignal, rendition: Rendition) -> SignalFile:
        key = (path, self._renditions.effective(path, rendition), signal)
        if key not in self._made:
            try:
                self._made[key] = self._compute(*key)
            except ItemError as error:
                self._made[key] = error
            except MemoryError:
                self._made[key] = out_of_memory()
        found = self._made[key]
        if isinstance(found, ItemError):
            raise found
        return found

    def _compute(self, path: Path, rendition: Rendition, signal: ClipSignal) -> SignalFile:
        for name in signal.networks:
            ensure(name)
        target = self._renditions.scratch / f"{signal.name}-{next(self._number)}{signal.suffix}"
        with self._renditions.show(path, rendition) as shown:
            facts = dict(signal(shown.clip, target))
            video = shown.stream.detail()
            return SignalFile(target, True, shown.flags, shown.clip.info.fps, {**facts, "video": video})


def given_file(owner: Generation | Sample, signal: str) -> Path | None:
    """The file of a clip's ``signal`` that was given beside it, if it is there."""
    path: Path | None = getattr(owner, signal)
    return path if path is not None and is_file(path) else None


def _without_signal(error: ItemError, metric: str, signal: str) -> ItemError:
    """The error as it reads in a row of a generated clip."""
    if error.reason is Reason.MISSING_WEIGHTS:
        said = f"{metric} needs the {signal} of the reference clip; the data has none, and to make it: {error.message}"
        return ItemError(Reason.MISSING_GROUND_TRUTH, said, error.detail)
    return of_reference(error)
