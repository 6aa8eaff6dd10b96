"""Whether answers follow the content of an option or its letter: the same question with its options rotated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from understanding.data.choices import ChoiceSample
from understanding.scoring.outcome import SampleScore


def rotation_report(scores: Iterable[SampleScore]) -> dict[str, Any]:
    """Accuracy under each rotation, how steady the chosen content is, and how often each letter is chosen and right.

    Args:
        scores: of rotated samples (rotation 0 included); ``parsed`` is the letter as it was shown.

    Returns:
        ``rotations`` {places: {correct, n, accuracy}}; ``same_answer``: questions whose chosen option is the same under
        every rotation, of those answered under all (``n``); ``letters`` {letter: {chosen, right}}: shares over all
        rotations, where a letter that is chosen far more often than it is right shows a preference of position.
    """
    found = list(scores)
    questions: dict[str, dict[int, SampleScore]] = defaultdict(dict)
    for score in found:
        assert isinstance(score.sample, ChoiceSample)
        questions[score.sample.id][score.sample.rotation] = score
    places = sorted({place for own in questions.values() for place in own})
    rotations = {str(place): _accuracy([own[place] for own in questions.values() if place in own]) for place in places}
    steady = [_steady(own.values()) for own in questions.values()]
    answered = [one for one in steady if one is not None]
    return {
        "questions": len(questions),
        "rotations": rotations,
        "same_answer": {"n": len(answered), "same": sum(answered)},
        "letters": _letters(found),
    }


def _accuracy(scores: list[SampleScore]) -> dict[str, Any]:
    values = [score.value for score in scores if score.value is not None]
    correct = int(sum(values))
    return {"correct": correct, "n": len(values), "accuracy": correct / len(values) if values else None}


def _steady(scores: Iterable[SampleScore]) -> bool | None:
    """Whether one option was chosen throughout; ``None`` when there is a single rotation or one was not read."""
    chosen = [_content(score) for score in scores]
    if len(chosen) < 2 or None in chosen:
        return None
    return len(set(chosen)) == 1


def _content(score: SampleScore) -> str | None:
    """The chosen option by its letter in the data."""
    assert isinstance(score.sample, ChoiceSample)
    return None if not isinstance(score.parsed, str) else score.sample.original(score.parsed)


def _letters(scores: list[SampleScore]) -> dict[str, Any]:
    read = [score for score in scores if isinstance(score.parsed, str)]
    chosen = Counter(str(score.parsed) for score in read)
    right = Counter(str(score.sample.truth) for score in read)
    total = len(read)
    return {
        letter: {"chosen": chosen[letter] / total, "right": right[letter] / total}
        for letter in sorted({*chosen, *right})
    }
