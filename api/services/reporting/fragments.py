"""Parts of a page as plain objects: sections of words, tables and figures, which one template draws.

All is text that the template escapes, but for the drawings, which :mod:`api.services.reporting.inline_svg` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    form: ClassVar[str] = "words"
    text: str
    kind: Literal["plain", "note", "warning"] = "plain"


@dataclass(frozen=True)
class Heading:
    """A heading within a section; ``level`` is that of HTML."""

    form: ClassVar[str] = "heading"
    text: str
    level: Literal[3, 4] = 3


@dataclass(frozen=True)
class Table:
    """Lines of texts; the first cell of a line is its heading.

    Attributes:
        caption: what the table says.
        heads: of the columns.
        lines: cells in words.
        folded: when not empty, the table is folded away behind these words.
        more: lines that are not shown.
    """

    form: ClassVar[str] = "table"
    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    folded: str = ""
    more: int = 0

    @classmethod
    def of(
        cls,
        caption: str,
        heads: Sequence[str],
        lines: Sequence[Sequence[str]],
        *,
        folded: str = "",
        most: int | None = None,
    ) -> Table:
        """A table of at most ``most`` lines."""
        shown = tuple(map(tuple, lines if most is None else lines[:most]))
        return cls(caption, tuple(heads), shown, folded, len(lines) - len(shown))


@dataclass(frozen=True)
class Picture:
    """A figure: SVG without names of its own that could meet those of another, without style and script.

    Attributes:
        says: what it shows, for those who see it and those who do not.
    """

    form: ClassVar[str] = "picture"
    says: str
    svg: str


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    form: ClassVar[str] = "facts"
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Folded:
    """Parts that are folded away behind a title."""

    form: ClassVar[str] = "group"
    title: str
    parts: tuple[Part, ...]


Part: TypeAlias = "Words | Heading | Table | Picture | Facts | Folded"


@dataclass(frozen=True)
class Section:
    """A section of a page; ``anchor`` is its name within the page."""

    anchor: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Fragment:
    """Sections ready to stand in a page, and the style that their drawings need."""

    sections: tuple[Section, ...]
    style: str = field(default="", repr=False)


@dataclass(frozen=True)
class People:
    """What people say of the systems of a report, made when a form asks for it.

    Attributes:
        fragment: sections for a page.
        document: plain JSON values.
    """

    fragment: Callable[[], Fragment]
    document: Callable[[], dict[str, Any]]


__all__ = ["Facts", "Folded", "Fragment", "Heading", "Part", "People", "Picture", "Section", "Table", "Words"]
