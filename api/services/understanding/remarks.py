"""What a run of a task found out beside its accuracy, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from api.services import wording


def further_remarks(further: Mapping[str, Any]) -> Iterator[str]:
    """The second stage, the rotated options and the options without effect, where there is something to say of them.

    Args:
        further: as :class:`api.services.understanding.documents.ModelScores` carries it.

    Example:
        >>> list(further_remarks({"ignored_options": {"seed": 2}}))
        ['without effect with this model: seed (2 replies)']
    """
    if (stage := further.get("second_stage")) is not None:
        alone = wording.number(stage["accuracy_without"], "ratio")
        shown = wording.counted(stage["asked"], "unreadable reply", "unreadable replies")
        yield f"second stage: shown {shown}, read {stage['read']}; accuracy without it {alone}"
    if (rotation := further.get("rotation")) is not None:
        yield from _rotation(rotation)
    if ignored := further.get("ignored_options"):
        yield wording.ignored_line(ignored)


def _rotation(found: Mapping[str, Any]) -> Iterator[str]:
    shares = ", ".join(
        f"{places} {'–' if one['accuracy'] is None else format(one['accuracy'], '.1%').replace('%', ' %')}"
        for places, one in found["rotations"].items()
    )
    same = found["same_answer"]
    asked = wording.counted(found["questions"], "question")
    yield f"options moved on by so many places, accuracy over {asked}: {shares}"
    yield f"the same option under every order: {same['same']} of {same['n']} questions that were read under all of them"
    letters = ", ".join(
        f"{letter} {100 * one['chosen']:.0f} % ({100 * one['right']:.0f} %)" for letter, one in found["letters"].items()
    )
    if letters:
        yield f"letters chosen (right): {letters}"
