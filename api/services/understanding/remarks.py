"""What a run of a task found out beside its accuracy, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from api.services import wording


def further_remarks(further: Mapping[str, Any]) -> Iterator[str]:
    """What was spent, the second stage, the rotated options, options without effect: where there is something to say.

    Args:
        further: as :class:`api.services.understanding.documents.ModelScores` carries it.

    Example:
        >>> list(further_remarks({"ignored_options": {"seed": 2}}))
        ['without effect with this model: seed (2 replies)']
    """
    if (spent := further.get("asked_by")) is not None:
        yield _spent("asked", spent)
    if (stage := further.get("second_stage")) is not None:
        alone = wording.number(stage["accuracy_without"], "ratio")
        shown = wording.counted(stage["asked"], "unreadable reply", "unreadable replies")
        yield f"second stage: shown {shown}, read {stage['read']}; accuracy without it {alone}"
        yield from _reader(stage)
    if (rotation := further.get("rotation")) is not None:
        yield from _rotation(rotation)
    if ignored := further.get("ignored_options"):
        yield wording.ignored_line(ignored)


def further_warnings(further: Mapping[str, Any]) -> Iterator[str]:
    """What forbids to trust a number."""
    stage = further.get("second_stage") or {}
    check = stage.get("check") or {}
    if check.get("answered"):
        yield (
            f"the second stage {stage['model']} answers questions itself: shown {check['asked']} replies that choose "
            f"nothing, it named an option for {check['answered']} in place of NONE. What it read is not to be trusted"
        )


def floor_remark(floors: Mapping[str, Any]) -> Iterator[str]:
    """What an answerer reaches that understands nothing, as far as the data say it."""
    guess, letter = floors.get("random_guess"), floors.get("most_frequent_letter")
    said = [] if guess is None else [f"random guess {100 * guess:.1f} %"]
    said += [] if letter is None else [f"always {floors['letter']} {100 * letter:.1f} %"]
    if said:
        yield ", ".join(said)


def _spent(what: str, found: Mapping[str, Any]) -> str:
    usage, cost = found["usage"], found["cost"]
    parts = [f"{what}: {wording.counted(found['answers'], 'answer')}"]
    tokens = [usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)]
    if any(tokens):
        parts.append(f"{tokens[0]:,} tokens in and {tokens[1]:,} out")
    if cost is not None:
        parts.append(f"cost {cost:.4g} by its price list")
    return ", ".join(parts)


def _reader(stage: Mapping[str, Any]) -> Iterator[str]:
    """How the reader of the second stage was checked, and what it took."""
    check = stage.get("check")
    if check and check["asked"]:
        rest = ", ".join(f"{check[name]} {name}" for name in ("answered", "unclear", "failed") if check[name])
        ending = f" ({rest})" if rest else ""
        shown = wording.counted(check["asked"], "reply", "replies")
        yield f"second stage checked with {shown} that choose nothing: NONE for {check['none']}{ending}"
    if "usage" in stage:
        yield _spent("second stage", stage)
    if ignored := stage.get("ignored_options"):
        yield f"second stage, {wording.ignored_line(ignored)}"


def _rotation(found: Mapping[str, Any]) -> Iterator[str]:
    shares = ", ".join(
        f"{places} {'–' if one['accuracy'] is None else format(one['accuracy'], '.1%').replace('%', ' %')}"
        for places, one in found["rotations"].items()
    )
    same = found["same_answer"]
    asked = wording.counted(found["questions"], "question")
    yield f"options moved on by so many places, accuracy over {asked}: {shares}"
    steady = f"{same['same']:g} of {same['n']}"
    yield f"the same option under every order: {steady} questions that were read under all of them"
    letters = ", ".join(
        f"{letter} {100 * one['chosen']:.0f} % ({100 * one['right']:.0f} %)" for letter, one in found["letters"].items()
    )
    if letters:
        yield f"letters chosen (right): {letters}"
