"""Problems that are expected: they print their message without a traceback and carry the exit code they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gen_eval.records.reasons import Reason

EXIT_DONE = 0
EXIT_FAILED_ITEMS = 1
EXIT_BAD_INPUT = 2
EXIT_PART_ABSENT = 3
EXIT_INTERRUPTED = 130


class GenEvalError(Exception):
    """A problem with a known cause; its text names the value, what was expected and what to do next."""

    exit_code = EXIT_FAILED_ITEMS


class InputError(GenEvalError):
    """Bad arguments or input that ends the command (exit code 2)."""

    exit_code = EXIT_BAD_INPUT


class MissingPart(GenEvalError):  # noqa: N818 - the part is what is named
    """Nothing could be done because a needed part is absent (exit code 3)."""

    exit_code = EXIT_PART_ABSENT


class ItemError(GenEvalError):
    """One item cannot be scored; it becomes a row and the run goes on.

    Attributes:
        reason: the name that the row will carry.
        detail: numbers and names for the row (JSON values only).
    """

    def __init__(self, reason: Reason, message: str, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.detail: dict[str, Any] = dict(detail or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way between processes."""
        return (type(self), (self.reason, self.message, self.detail))
