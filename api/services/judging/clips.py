"""The clips that a judge is calibrated on: scenes, and each with one thing broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gen_eval.scenes import KINDS, Recipe, questions
from gen_eval.scenes import Question as SceneQuestion
from judge.questions import JudgeQuestion

FLAWS = ("teleport", "vanish", "freeze", "reversed", "wrong_gravity", "flicker", "jitter", "colour_shift")
"""Flaws that change the answer of a question and can be seen in a few frames a second."""

SIZE = (256, 448)
FPS = 16.0
FRAMES = 65  # four seconds: eight frames at two a second, odd and even ones


@dataclass(frozen=True)
class Clip:
    """A clip of known truth.

    Attributes:
        name: id of the scene, with ``@`` and the flaw for a broken twin.
        recipe: of the scene.
        flaw: what is broken; ``None`` for the true clip.
        questions: those answered by yes or no, with the answers that hold for this clip.
        turned: uids whose answer is another one in the true clip.
    """

    name: str
    recipe: Recipe
    flaw: str | None
    questions: tuple[JudgeQuestion, ...]
    turned: frozenset[str] = frozenset()

    @property
    def scene(self) -> str:
        """Id of the scene; a scene and its twins share it."""
        return self.recipe.id

    def write(self, path: Path) -> None:
        """Render the clip to ``path``."""
        from gen_eval.media import write_clip

        clip = self.recipe.render(flaw=self.flaw)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_clip(path, clip.frames, clip.fps)


def clips_of(
    scenes: int, *, seed: int = 0, size: tuple[int, int] = SIZE, fps: float = FPS, frames: int = FRAMES
) -> list[Clip]:
    """``scenes`` scenes, kinds in turn, each followed by its twin with one flaw, flaws in turn.

    Args:
        scenes: 1 or more.
        seed: of the first scene of each kind.
        size: height and width in pixels.
        fps: frames a second.
        frames: of each clip.
    """
    found: list[Clip] = []
    for number in range(scenes):
        kind = KINDS[number % len(KINDS)]
        recipe = Recipe(kind, seed + number // len(KINDS), size, fps, frames)
        true = Clip(recipe.id, recipe, None, tuple(_questions(recipe, None)))
        # kinds and flaws are equally many: a round of kinds later each kind meets the next flaw
        first = number + number // len(KINDS)
        twin = next(_twins(true, [FLAWS[(first + step) % len(FLAWS)] for step in range(len(FLAWS))]), None)
        found += [true] if twin is None else [true, twin]
    return found


def _twins(true: Clip, flaws: Sequence[str]) -> Iterator[Clip]:
    """The twins of ``true`` in which some answer is another one."""
    before = {one.uid: one for one in true.questions}
    for flaw in flaws:
        own = tuple(_questions(true.recipe, flaw))
        turned = frozenset(
            one.uid
            for one in own
            if one.uid in before and one.question == before[one.uid].question and one.answer != before[one.uid].answer
        )
        if turned:
            yield Clip(f"{true.name}@{flaw}", true.recipe, flaw, own, turned)


def _questions(recipe: Recipe, flaw: str | None) -> Iterator[JudgeQuestion]:
    name = recipe.id if flaw is None else f"{recipe.id}@{flaw}"
    asked = questions(recipe.kind, seed=recipe.seed, size=recipe.size, fps=recipe.fps, frames=recipe.frames, flaw=flaw)
    for one in asked:
        if one.is_yes_no:
            yield _asked(name, one)


def _asked(name: str, question: SceneQuestion) -> JudgeQuestion:
    return JudgeQuestion(name, question.uid, question.question, question.options, question.answer, question.category)


__all__ = ["FLAWS", "FPS", "FRAMES", "SIZE", "Clip", "clips_of"]
