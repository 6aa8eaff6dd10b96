"""The letter of the option that a reply chooses. The numbers of the rules are those of docs/replies.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from gen_eval.records.reasons import Flag
from gen_eval.replies.cues import announced, pieces
from gen_eval.replies.letters import Letter, Letters
from gen_eval.replies.plain_text import clean, holds_phrase, last_of, sentences, tidy, trimmed, words
from gen_eval.replies.prelude import prelude
from gen_eval.replies.reading import Reading
from gen_eval.replies.words import LETTER_CUES, NO_ANSWER
from gen_eval.replies.yes_no import yes_or_no

_WHOLE = re.compile(
    r"[(\[{'# ]{0,4}(?:(?:option|choice) ?:? ?)?[(\[{【「' ]{0,4}([a-z])[)\]}】」' ]{0,4}\W{0,9}", re.IGNORECASE
)
_LONGEST_WHOLE = 32
_QUOTED = re.compile(r"(?<!\w)'([A-Za-z])'(?!\w)")
_TWO_WORDS = re.compile(r"\w[^\w']+\w")
_BULLETS = re.compile(r"\A(?:[•·>'] ?|[-–—#]{1,6} )*+")
_LINE = re.compile(
    r"(?i:(?:option|choice) ?:? ?)?[(\[{【]? ?(?:"
    r"(?!e\.g|i\.e|[A-Za-z]\.[A-Z]\.)(?P<marked>[A-Za-z]) ?[)\]}】.:]"
    r"|(?P<capital>[A-HJ-Z])(?: ?[–—―]| - ?|-(?![A-Za-z])|(?=\n)| (?=because|since)| ?(?P<comma>[,;])))"
)
_OTHER_FOLLOWS = re.compile(r" ?(?:(?:or|and)(?!\w)|[/,&])", re.IGNORECASE)
_ANSWER_IS = re.compile(r"(?<!\w)(?:answer|option|choice) ?(?:is(?!\w)|[:=])|答案", re.IGNORECASE)
_PIECES = pieces(LETTER_CUES)


def read_choice(reply: object, options: Mapping[str, str | None]) -> Reading[str]:
    """The letter of the option that ``reply`` chooses.

    Args:
        reply: what the model said; anything but text is a named failure.
        options: capital letter -> text. A letter whose text is ``None`` is no option; one with an empty text is,
            and only its letter can be found.

    Returns:
        One of the options' letters, or a failure: those of :func:`~gen_eval.replies.prelude.prelude`, ``ambiguous``,
        ``not_an_option``, ``no_answer``.

    Raises:
        ValueError: a key of ``options`` is no capital letter, or there is no option.

    >>> print(read_choice("I think A is wrong, so D", {"A": "cat", "B": "dog", "D": "bus"}))
    'D' by choice 4a
    """
    texts = {letter: text for letter, text in options.items() if text is not None}
    if strange := [key for key in options if not re.fullmatch("[A-Z]", key)]:
        raise ValueError(f"options must be named by single capital letters A to Z, not {strange!r}")
    if not texts:
        raise ValueError("there is no option to choose from: every text is null")
    found = prelude(reply)
    if found.value is None:
        return found
    return replace(_Choice(found.value, texts).read(), detail=found.detail)


class _Choice:
    """One plain text and its options; each rule gives a reading or leaves it to the next."""

    def __init__(self, text: str, options: dict[str, str]) -> None:
        self.text = _BULLETS.sub("", _QUOTED.sub(r"\1", tidy(text)))
        self.options = options
        self.met_other = False  # rule 4 or 5 met a letter that is no option

    @cached_property
    def letters(self) -> Letters:
        return Letters(self.text)

    @cached_property
    def phrases(self) -> dict[str, list[str]]:
        """Words of each option's text."""
        return {letter: words(text) for letter, text in self.options.items()}

    def read(self) -> Reading[str]:
        rules: tuple[Callable[[], Reading[str] | None], ...] = (
            self._whole_letter,
            self._whole_text,
            self._whole_nothing,
            self._final_cue,
            self._start,
            self._bracketed,
            self._capitals,
            self._yes_or_no,
            self._texts,
        )
        for rule in rules:
            if (found := rule()) is not None:
                return found
        return _failed(Flag.NOT_AN_OPTION if self.met_other else Flag.NO_ANSWER, "10")

    # --- 1 to 3: the whole text

    def _whole_letter(self) -> Reading[str] | None:
        match = _WHOLE.fullmatch(self.text) if len(self.text) <= _LONGEST_WHOLE else None
        if match is None:
            return None
        letter = match[1].upper()
        return _read(letter, "1") if letter in self.options else _failed(Flag.NOT_AN_OPTION, "1")

    def _whole_text(self) -> Reading[str] | None:
        said = self.text.casefold()
        exact = [letter for letter, text in self.options.items() if tidy(clean(text)).casefold() == said]
        plain = words(self.text)
        equal = exact or [letter for letter, phrase in self.phrases.items() if phrase and phrase == plain]
        return _read(equal[0], "2") if len(equal) == 1 else None

    def _whole_nothing(self) -> Reading[str] | None:
        return _failed(Flag.NO_ANSWER, "3") if trimmed(self.text).casefold() in NO_ANSWER else None

    # --- 4: final cues

    def _final_cue(self) -> Reading[str] | None:
        winner: tuple[Letter, str] | None = None
        for letter, rule in self._cued():
            if letter.letter not in self.options:
                self.met_other = True
            elif winner is None or letter.start > winner[0].start:
                winner = (letter, rule)
        if winner is None:
            return None
        other = self.letters.next_offered(winner[0].end)
        if other is not None and other.letter != winner[0].letter and self._stands(other):
            return _failed(Flag.AMBIGUOUS, winner[1])
        return _read(winner[0].letter, winner[1])

    def _cued(self) -> Iterator[tuple[Letter, str]]:
        """Letters that are announced (a), said to be right (b), or a last sentence of their own (c)."""
        for letter in announced(self.text, _PIECES, self.letters.by_start):
            if not self.letters.rejected(letter.start, letter.end):
                yield letter, "4a"
        for letter in self.letters.all:
            if self.letters.said_right(letter) and not self.letters.rejected(letter.start, letter.end):
                yield letter, "4b"
        said = sentences(self.text)
        last = trimmed(said[-1]) if said else ""
        if re.fullmatch("[A-Za-z]", last) and any(map(_TWO_WORDS.search, said[:-1])):
            end = len(self.text)
            yield Letter(end, end, last.upper(), "alone"), "4c"

    def _stands(self, letter: Letter) -> bool:
        """Whether it names an option and is not rejected."""
        return letter.letter in self.options and not self.letters.rejected(letter.start, letter.end)

    # --- 5: how it starts

    def _start(self) -> Reading[str] | None:
        first = self._line_letter(0)
        if first is None:
            return None
        if first not in self.options:
            self.met_other = True
            return None
        at = self.text.find("\n") + 1
        while at > 0:
            other = self._line_letter(at)
            if other in self.options and other != first:
                return _failed(Flag.AMBIGUOUS, "5")
            at = self.text.find("\n", at) + 1
        return _read(first, "5")

    def _line_letter(self, at: int) -> str | None:
        """The letter with which the line at this place starts, as a choice that stands alone."""
        match = _LINE.match(self.text, at)
        if match is None or _OTHER_FOLLOWS.match(self.text, match.end()):
            return None
        name = "marked" if match["marked"] else "capital"
        if match["comma"] and self.letters.next_offered(match.end(name)):
            return None
        end = match.end() if match["marked"] else match.end(name)
        return None if self.letters.rejected(match.start(name), end) else match[name].upper()

    # --- 6 and 7: letters anywhere

    def _bracketed(self) -> Reading[str] | None:
        return self._distinct("bracketed", "6")

    def _capitals(self) -> Reading[str] | None:
        return self._distinct("capital", "7")

    def _distinct(self, kind: str, rule: str) -> Reading[str] | None:
        found: set[str] = set()
        for letter in self.letters.all:
            if letter.kind == kind and letter.letter not in found and self._stands(letter):
                found.add(letter.letter)
                if len(found) > 1:
                    return _failed(Flag.AMBIGUOUS, rule)
        return _read(found.pop(), rule) if found else None

    # --- 8 and 9: the options' texts

    def _yes_or_no(self) -> Reading[str] | None:
        said = {" ".join(phrase): letter for letter, phrase in self.phrases.items()}
        if len(self.phrases) != 2 or set(said) != {"yes", "no"}:
            return None
        found = yes_or_no(self.text)
        return replace(found, value=said.get(found.value or ""), rule=f"choice 8, {found.rule}")

    def _texts(self) -> Reading[str] | None:
        last = last_of(_ANSWER_IS.finditer(self.text))
        found = self._contained(self.text[last.end() :]) if last else []
        if len(found) != 1:
            found = self._contained(self.text)
        if not found:
            return None
        return _read(found[0], "9") if len(found) == 1 else _failed(Flag.AMBIGUOUS, "9")

    def _contained(self, text: str) -> list[str]:
        """Letters of the options whose texts occur, without those that are inside a longer one that occurs."""
        said = words(text)
        found = {letter: phrase for letter, phrase in self.phrases.items() if holds_phrase(said, phrase)}
        return [
            letter
            for letter, phrase in found.items()
            if not any(len(other) > len(phrase) and holds_phrase(other, phrase) for other in found.values())
        ]


def _read(letter: str, rule: str) -> Reading[str]:
    return Reading(letter, None, f"choice {rule}")


def _failed(failure: Flag, rule: str) -> Reading[str]:
    return Reading(None, failure, f"choice {rule}")
