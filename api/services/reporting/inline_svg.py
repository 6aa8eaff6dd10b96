"""Figures within a page: SVG that needs no style of its own, so that the page's content security policy stays strict.

Matplotlib writes styles as attributes, which that policy forbids; here every distinct style becomes a class of one
style sheet. Identifiers get the number of their figure in front, so that two figures of a page never meet. Only the
elements and attributes that drawings are made of pass, whatever a figure holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from api.services.reporting.fragments import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ELEMENTS = {"g", "path", "text", "tspan", "use", "defs", "clipPath", "rect", "circle", "line"}
_ATTRIBUTES = {"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "transform", "xml:space"}
_STYLE = re.compile(r"[\w\s:;#.,'()%+-]*")
_REFERENCE = re.compile(r"(?:#|url\(#)([\w.:-]+)\)?")
_PIXELS_PER_POINT = 96 / 72

_BASE = (
    ".plot *{stroke-linejoin:round;stroke-linecap:butt}"
    ".plot path,.plot line,.plot rect,.plot circle{vector-effect:none;fill:inherit}"
)


class Drawings:
    """The figures of one page."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._count = 0

    def add(self, figure: Figure, says: str) -> Picture:
        """A figure of :mod:`gen_eval.arena.plots` as part of the page.

        Args:
            figure: what is drawn.
            says: what it shows, for those who see it and those who do not.
        """
        from gen_eval.arena.drawing import encoded

        self._count += 1
        key = f"f{self._count}"
        # matplotlib's own output; names in it are escaped text, and it declares no entity
        root = ElementTree.fromstring(encoded(figure, ".svg", salt=key))  # noqa: S314
        return Picture(says, "".join(self._root(root, key, says)))

    @property
    def style(self) -> str:
        """The style sheet of all figures so far."""
        if not self._count:
            return ""
        return _BASE + "".join(f".plot .{name}{{{style}}}" for style, name in self._classes.items())

    def _root(self, root: ElementTree.Element, key: str, says: str) -> Iterator[str]:
        box = root.get("viewBox", "0 0 1 1")
        width, height = (f"{float(side) * _PIXELS_PER_POINT:.0f}" for side in box.split()[2:])
        used = {found[1] for one in root.iter() for value in one.attrib.values() if (found := _REFERENCE.match(value))}
        yield f'<svg class="plot" viewBox="{escape(box)}" width="{width}" height="{height}" role="img"'
        yield f' aria-labelledby="{key}-title"><title id="{key}-title">{escape(says)}</title>'
        for child in root:
            yield from self._element(child, key, used)
        yield "</svg>"

    def _element(self, element: ElementTree.Element, key: str, used: set[str]) -> Iterator[str]:
        name = _local(element.tag)
        if name not in _ELEMENTS:
            return
        attributes = "".join(self._attributes(element, key, used))
        text = escape(element.text or "") if name in {"text", "tspan"} else ""
        inner = text + "".join(part for child in element for part in self._element(child, key, used))
        if name in {"g", "defs"} and not inner:
            return
        if name == "g" and not attributes:
            yield inner
        else:
            yield f"<{name}{attributes}>{inner}</{name}>" if inner else f"<{name}{attributes}/>"

    def _attributes(self, element: ElementTree.Element, key: str, used: set[str]) -> Iterator[str]:
        for qualified, value in element.attrib.items():
            name = _local(qualified)
            if name == "style" and _STYLE.fullmatch(value):
                style = re.sub(r"\s*([:;])\s*", r"\1", value.strip())
                yield f' class="{self._classes.setdefault(style, f"m{len(self._classes)}")}"'
            elif name == "id" and value in used:
                yield f' id="{key}-{escape(value)}"'
            elif name in {"href", "clip-path"} and (found := _REFERENCE.fullmatch(value)):
                reference = f"#{key}-{escape(found[1])}"
                yield f' href="{reference}"' if name == "href" else f' clip-path="url({reference})"'
            elif name in _ATTRIBUTES:
                yield f' {name}="{escape(" ".join(value.split()))}"'


def _local(name: str) -> str:
    return name.rpartition("}")[2]


__all__ = ["Drawings"]
