"""Whether answers follow the content of an option or its letter: the same question with its options rotated."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gen_eval.stats import exact_mean
from understanding.data.choices import ChoiceSample
from understanding.scoring.outcome import SampleScore


@dataclass(frozen=True)
class TurnedAnswer:
    """The answer to a question with its options moved on.

    Attributes:
        question: id of the sample.
        member: seed.
        places: by how many places the options were moved; 0 for the order of the data.
        of: number of options, which is the number of orders.
        said: letter that was chosen, as it was shown; ``None`` when none could be read.
        option: the same option by its letter in the data.
        truth: right letter, as it was shown.
        value: what the answer is worth.
    """

    question: str
    member: str
    places: int
    of: int
    said: str | None
    option: str | None
    truth: str | None
    value: float | None

    @classmethod
    def of_score(cls, score: SampleScore) -> TurnedAnswer:
        """The answer behind ``score``, whose sample is rotated or not."""
        sample = score.sample
        assert isinstance(sample, ChoiceSample)
        said = score.parsed if isinstance(score.parsed, str) else None
        option = None if said is None else sample.original(said)
        places, letters = sample.rotation, len(sample.letters)
        return cls(sample.id, score.member, places, letters, said, option, sample.truth, score.value)


def rotation_report(answers: Iterable[TurnedAnswer | SampleScore]) -> dict[str, Any]:
    """Accuracy under each rotation, how steady the chosen content is, and how often each letter is chosen and right.

    Several seeds of a question are averaged first, so that each question counts once.

    Args:
        answers: to rotated questions (rotation 0 included), or their scores.

    Returns:
        ``rotations`` {places: {correct, n, accuracy}}; ``same_answer``: questions whose chosen option is the same under
        every rotation, of those that were read under all (``n``), with several seeds the sum of their shares;
        ``letters`` {letter: {chosen, right}}: shares over all questions and rotations that were read, where a letter
        that is chosen far more often than it is right shows a preference of position.
    """
    found = [TurnedAnswer.of_score(one) if isinstance(one, SampleScore) else one for one in answers]
    return {
        "questions": len({one.question for one in found}),
        "seeds": len({one.member for one in found}),
        "rotations": {
            str(places): _accuracy([one for one in found if one.places == places])
            for places in sorted({one.places for one in found})
        },
        "same_answer": _steady(found),
        "letters": _letters(found),
    }


def _accuracy(answers: Sequence[TurnedAnswer]) -> dict[str, Any]:
    """Of one order: the mean over questions of the mean over seeds."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in answers:
        if one.value is not None:
            values[one.question].append(one.value)
    means = [exact_mean(own) for own in values.values()]
    correct = _whole(math.fsum(means))
    return {"correct": correct, "n": len(means), "accuracy": correct / len(means) if means else None}


def _steady(answers: Sequence[TurnedAnswer]) -> dict[str, Any]:
    """Questions with one and the same option throughout; those that were not read under every order are left out."""
    runs: dict[tuple[str, str], list[TurnedAnswer]] = defaultdict(list)
    for one in answers:
        runs[one.question, one.member].append(one)
    same: dict[str, list[float]] = defaultdict(list)
    for (question, _), own in runs.items():
        options = {one.option for one in own}
        if len({one.places for one in own}) == own[0].of > 1 and None not in options:
            same[question].append(float(len(options) == 1))
    return {"n": len(same), "same": _whole(math.fsum(exact_mean(own) for own in same.values()))}


def _letters(answers: Sequence[TurnedAnswer]) -> dict[str, Any]:
    """Shares of each letter; the seeds of one question and order share a single vote."""
    read = [one for one in answers if one.said is not None]
    votes = Counter((one.question, one.places) for one in read)
    chosen: dict[str, list[float]] = defaultdict(list)
    right: dict[str, list[float]] = defaultdict(list)
    for one in read:
        weight = 1 / votes[one.question, one.places]
        chosen[str(one.said)].append(weight)
        right[str(one.truth)].append(weight)
    return {
        letter: {name: math.fsum(one[letter]) / len(votes) for name, one in (("chosen", chosen), ("right", right))}
        for letter in sorted({*chosen, *right})
    }


def _whole(value: float) -> float | int:
    """A whole number as such, for counts."""
    return int(value) if value.is_integer() else value
