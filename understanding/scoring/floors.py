"""What an answerer reaches that understands nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gen_eval.stats import exact_mean
from understanding.data.choices import ChoiceSample


@dataclass(frozen=True)
class Floors:
    """Two floors of accuracy, 0..1; ``None`` where the data do not say enough.

    Attributes:
        random_guess: mean over questions of one over the number of options.
        letter: the most frequent right letter, the first of several in the alphabet.
        most_frequent_letter: share of questions that it is right for.
        letters: right letter -> how often.
    """

    random_guess: float | None
    letter: str | None
    most_frequent_letter: float | None
    letters: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "random_guess": self.random_guess,
            "most_frequent_letter": self.most_frequent_letter,
            "letter": self.letter,
            "letters": self.letters,
        }


def floors(samples: Iterable[ChoiceSample]) -> Floors:
    """The floors of a set of questions.

    Random guess is the mean over questions of 1 / (number of options that are not null), as published (37.0 % for
    PAI-Bench-U); it needs the options of every question.
    """
    questions = list(samples)
    chances = [1 / len(one.letters) for one in questions if one.letters]
    keys = Counter(one.original(one.answer) for one in questions if one.answer is not None)
    most = min(keys.items(), key=lambda entry: (-entry[1], entry[0])) if keys else None
    return Floors(
        exact_mean(chances) if chances and len(chances) == len(questions) else None,
        None if most is None else most[0],
        None if most is None else most[1] / len(questions),
        dict(sorted(keys.items())),
    )
