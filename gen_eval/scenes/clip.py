"""What the simulator hands out: a clip, what is known about it, and questions with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

YES_NO: Mapping[str, str] = {"A": "Yes", "B": "No"}


@dataclass(frozen=True)
class Question:
    """A question about a clip whose answer follows from the simulation.

    Attributes:
        uid: name of the question; a scene and its broken twin share it, so that answers can be paired.
        question: the text that is asked.
        options: letter -> answer text; yes/no questions have ``{"A": "Yes", "B": "No"}``.
        answer: the right letter.
        category: topic, group before the colon (Space, Time, Physics).
    """

    uid: str
    question: str
    options: Mapping[str, str]
    answer: str
    category: str

    def __post_init__(self) -> None:
        """Refuse a question whose answer is no option.

        Raises:
            ValueError: ``answer`` is not a key of ``options``.
        """
        if self.answer not in self.options:
            raise ValueError(f"question {self.uid}: answer {self.answer!r} is none of {', '.join(self.options)}")

    @property
    def answer_text(self) -> str:
        """The text of the right option."""
        return self.options[self.answer]

    @property
    def is_yes_no(self) -> bool:
        """Whether the options are Yes and No."""
        return dict(self.options) == dict(YES_NO)


@dataclass(frozen=True)
class Track:
    """The path of one body as it is shown.

    Attributes:
        phrase: the body in words ("a red ball"); ``None`` for a fixture that is no object of its own.
        centre: (T, 2) position in scene units, x to the right, y up, floor at 0.
        spin: (T,) turn of the body in radians, counter-clockwise.
        present: (T,) bool, whether the body exists in the frame (it may still be hidden or out of view).
    """

    phrase: str | None
    centre: NDArray[np.float64]
    spin: NDArray[np.float64]
    present: NDArray[np.bool_]


@dataclass(frozen=True)
class SceneClip:
    """A rendered scene with everything that is known about it.

    Attributes:
        kind: kind of scene.
        seed: what its parameters were drawn from.
        domain: the PAI-Bench-G domain it is filed under.
        flaw: what was broken, ``None`` for the clean scene.
        strength: of the flaw, 0..1.
        frames: (T, H, W, 3) uint8 RGB.
        depth: (T, H, W) float32 relative inverse depth, > 0, larger is nearer.
        masks: (phrase, (T, H, W) bool) per object in detection order: pixels of which more than half show it.
        edges: (T, H, W) bool: pixels of a mask that touch, by a side, a pixel outside of it.
        fps: frames a second.
        times: (T,) seconds of presentation.
        prompt: the scene in one sentence.
        captions: five other wordings of the prompt.
        questions: with known answers for this clip, flaw included.
        tracks: path of every body, objects first in the order of ``masks``.
        parameters: what was drawn (scene units and seconds).
    """

    kind: str
    seed: int
    domain: str
    flaw: str | None
    strength: float
    frames: NDArray[np.uint8]
    depth: NDArray[np.float32]
    masks: list[tuple[str, NDArray[np.bool_]]]
    edges: NDArray[np.bool_]
    fps: float
    times: NDArray[np.float64]
    prompt: str
    captions: tuple[str, ...]
    questions: tuple[Question, ...]
    tracks: tuple[Track, ...]
    parameters: Mapping[str, float]

    def __repr__(self) -> str:
        count, height, width = self.frames.shape[:3]
        broken = "" if self.flaw is None else f", flaw {self.flaw} at {self.strength:g}"
        return f"SceneClip({self.kind}, seed {self.seed}, {count} frames {width}x{height} at {self.fps:g} fps{broken})"

    def question(self, uid: str) -> Question:
        """The question ``uid``.

        Raises:
            KeyError: this clip has none of that name.
        """
        found: dict[str, Any] = {question.uid: question for question in self.questions}
        if uid not in found:
            raise KeyError(f"{self.kind} has no question {uid!r}; it has {', '.join(found)}")
        answer: Question = found[uid]
        return answer
