"""Questions with lettered options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gen_eval.data.records_file import Refused
from gen_eval.records import Rejection
from understanding.data.samples import TaskSample

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, kw_only=True)
class ChoiceSample(TaskSample):
    """One multiple-choice question about a video.

    Attributes:
        question: as published; ``None`` where only replies are scored.
        options: letter -> text; a letter whose text is ``None`` is no option. Empty where only replies are scored.
        answer: the right letter; ``None`` when the data withhold it.
        rotation: by how many places the options were rotated; letters here are those that the model was shown.
    """

    question: str | None = None
    options: Mapping[str, str | None] = field(default_factory=dict)
    answer: str | None = None
    rotation: int = 0

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that are options, in order."""
        return tuple(sorted(letter for letter, words in self.options.items() if words is not None))

    @property
    def no_truth(self) -> str:
        """Why it cannot be scored; empty when it has a right answer."""
        if self.answer is None:
            return "it has no right answer"
        if self.options and self.answer not in self.letters:
            return f"the answer {self.answer!r} is none of the options {', '.join(self.letters)}"
        return ""

    @property
    def prompt(self) -> Mapping[str, Any]:
        """Question and options."""
        return {"question": self.question, "options": dict(self.options)}

    @property
    def truth(self) -> str | None:
        """The right letter."""
        return self.answer

    def rotated(self, places: int) -> ChoiceSample:
        """The same question with the texts moved on by ``places`` letters, the right letter with them.

        Example:
            >>> one = ChoiceSample(id="a", options={"A": "red", "B": "blue", "C": None}, answer="A")
            >>> one.rotated(1).options, one.rotated(1).answer, one.rotated(1).original("B")
            ({'A': 'blue', 'B': 'red', 'C': None}, 'B', 'A')
        """
        letters = self.letters
        if not letters or places % len(letters) == 0:
            return self
        source = {letter: letters[(place + places) % len(letters)] for place, letter in enumerate(letters)}
        shown = {letter: self.options[source[letter]] if letter in source else None for letter in self.options}
        back = {there: here for here, there in source.items()}
        answer = None if self.answer is None else back.get(self.answer, self.answer)
        return replace(self, options=shown, answer=answer, rotation=(self.rotation + places) % len(letters))

    def original(self, letter: str) -> str:
        """The letter that the text under ``letter`` has in the data."""
        letters = self.letters
        if letter not in letters:
            return letter
        return letters[(letters.index(letter) + self.rotation) % len(letters)]


def options_of(record: Mapping[str, Any], field_name: str) -> dict[str, str | None]:
    """Letter -> text or ``None``; empty when the record has none.

    Raises:
        Refused: they are no mapping of letters to texts.
    """
    value = record.get(field_name)
    if value is None:
        return {}
    if isinstance(value, Mapping) and value and all(map(_is_option, value.items())):
        return {letter: value[letter] for letter in sorted(value)}
    raise Refused(
        Rejection.MALFORMED_RECORD,
        f"{field_name} must map letters (A, B, …) to texts, or to null where there is no option; got {value!r:.80}",
    )


def _is_option(pair: tuple[Any, Any]) -> bool:
    letter, words = pair
    known = isinstance(letter, str) and len(letter) == 1 and letter in LETTERS
    return known and (words is None or (isinstance(words, str) and "\0" not in words))
