"""What is asked of a model: a task, the data, and the conditions that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

MOST_FRAMES = 4096


@dataclass(frozen=True)
class Condition:
    """One way of asking; runs under several of them are paired.

    Attributes:
        frames: how many are shown; 0 shows nothing and speaks of no video; ``None`` leaves it to the preset.
        thinking: whether the model is to reason first; ``None`` leaves it to the model.
        effort: how much.
    """

    frames: int | None = None
    thinking: bool | None = None
    effort: str | None = None

    @property
    def words(self) -> str:
        """For people and labels; empty when nothing is changed.

        >>> Condition(8, True).words, Condition().words
        ('8 frames, thinking on', '')
        """
        parts = (
            None if self.frames is None else f"{self.frames} frame{'' if self.frames == 1 else 's'}",
            None if self.thinking is None else f"thinking {'on' if self.thinking else 'off'}",
            None if self.effort is None else f"effort {self.effort}",
        )
        return ", ".join(part for part in parts if part is not None)

    @property
    def folder(self) -> str:
        """Name of the folder of its run, where there are several."""
        return self.words.replace(", ", "_").replace(" ", "-")


@dataclass(frozen=True)
class TaskRequest:
    """A task for one model.

    Attributes:
        task: name.
        data: the benchmark's folder or file, or JSON lines.
        model: name of a model entry, or the path of a ``.yaml``.
        label: of the model in tables; the entry's name by default.
        media: folder that media paths are relative to.
        protocol: under which the headline is read; it also chooses the form of asking.
        dialect: which public code ``reference`` asks and reads as.
        preset: what is shown; the form's own by default.
        frames: numbers of frames that are compared; empty for the preset's own.
        thinking: likewise; empty leaves it to the model.
        efforts: likewise.
        seeds: of sampling; empty for a single run without a seed.
        decoding: ``form``, or ``makers``: as the model's entry states (and how its published row was asked).
        temperature: in place of either.
        top_p: likewise.
        rotations: questions that are also asked with their options in every other order.
        second_stage: text model that reads the replies which the reader could not.
        endpoint: address of the server, in place of the entry's own.
        second_endpoint: the same for the text model.
        served_as: the model's name on that server.
        domains: only samples of these groups (``cs_time``, a category, …); ``None`` for all.
        limit: only the first samples of them.
        device: where a model in this process runs.
        dtype: its number format; ``None`` for the checkpoint's own.
    """

    task: str
    data: Path
    model: str
    label: str | None = None
    media: Path | None = None
    protocol: str = "corrected"
    dialect: str | None = None
    preset: str | None = None
    frames: tuple[int, ...] = ()
    thinking: tuple[bool, ...] = ()
    efforts: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    rotations: int = 0
    second_stage: str | None = None
    endpoint: str | None = None
    second_endpoint: str | None = None
    served_as: str | None = None
    decoding: str = "form"
    temperature: float | None = None
    top_p: float | None = None
    domains: tuple[str, ...] | None = None
    limit: int | None = None
    device: str = "auto"
    dtype: str | None = None

    @property
    def members(self) -> tuple[str, ...]:
        """Labels of the seeds."""
        return tuple(map(str, self.seeds)) or ("0",)

    def conditions(self) -> list[Condition]:
        """Every way of asking, in the order in which they were named."""
        frames: Sequence[int | None] = self.frames or (None,)
        thinking: Sequence[bool | None] = self.thinking or (None,)
        efforts: Sequence[str | None] = self.efforts or (None,)
        return [Condition(*one) for one in product(frames, thinking, efforts)]

    def alone(self, condition: Condition) -> TaskRequest:
        """The request with that one way of asking."""
        return replace(
            self,
            frames=() if condition.frames is None else (condition.frames,),
            thinking=() if condition.thinking is None else (condition.thinking,),
            efforts=() if condition.effort is None else (condition.effort,),
        )
