"""Holding a reply to one of several texts, token by token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ChoiceTokens:
    """Which token may come next so that the reply becomes one of the choices, as the tokenizer writes them.

    Args:
        choices: tokens of each choice, at least one each.
        ends: tokens that end a reply.

    Raises:
        ValueError: there is no choice, or an empty one.
    """

    def __init__(self, choices: Iterable[Sequence[int]], ends: Sequence[int]) -> None:
        self._next: dict[tuple[int, ...], set[int]] = {}
        self._ends = list(ends)
        for tokens in choices:
            if not tokens:
                raise ValueError("a choice must be a text of at least one token")
            for length, token in enumerate(tokens):
                self._next.setdefault(tuple(tokens[:length]), set()).add(token)
            self._next.setdefault(tuple(tokens), set()).update(ends)
        if not self._next:
            raise ValueError("there must be at least one choice")

    def allowed(self, written: Sequence[int]) -> list[int]:
        """The tokens that may follow ``written``; only the end after anything else than the start of a choice.

        >>> ChoiceTokens([[5], [5, 6], [7, 8]], ends=[0]).allowed([5])
        [0, 6]
        """
        return sorted(self._next.get(tuple(written), self._ends))
