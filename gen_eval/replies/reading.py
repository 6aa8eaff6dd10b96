"""What a reader of replies returns: a value, or one named failure, with the rule that fired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gen_eval.records.reasons import Flag

Value = TypeVar("Value")


@dataclass(frozen=True)
class Reading(Generic[Value]):
    """One reply, read.

    Attributes:
        value: what was read; ``None`` exactly when there is a failure.
        failure: why nothing could be read, by name.
        rule: which rule of which reader decided, for people and for rows (``"choice 4a"``).
        flags: what was unusual about a reply that could be read, or about one that could not.
        detail: counts and pieces that explain the reading (JSON values only), such as ``dropped``.
    """

    value: Value | None
    failure: Flag | None = None
    rule: str = ""
    flags: tuple[Flag, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a reading that contradicts itself.

        Raises:
            ValueError: a value and a failure, or neither.
        """
        if (self.value is None) == (self.failure is None):
            raise ValueError(f"a reading has a value or a failure, not {self.value!r} and {self.failure!r}")

    @property
    def unparsed(self) -> tuple[Flag, ...]:
        """The flags of a row for this reading: ``unparsed`` and the failure's name, or nothing, and then its own."""
        failed = () if self.failure is None else (Flag.UNPARSED, self.failure)
        return (*failed, *self.flags)

    def __str__(self) -> str:
        found = repr(self.value) if self.failure is None else f"nothing ({self.failure})"
        flags = f" [{', '.join(self.flags)}]" if self.flags else ""
        return f"{found} by {self.rule}{flags}"
