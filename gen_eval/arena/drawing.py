"""What all figures share: style, names as labels, bytes that are equal whenever the numbers are.

Matplotlib is imported inside functions and used by its ``Figure`` alone: there is no window, no global figure, and
no setting of the user that moves a plot. Names come from strangers: they are never read as formulas, a character
that a font lacks is drawn as its substitute without a warning, and long names are shortened in the middle.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from gen_eval.records import InputError
from gen_eval.records.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1c2024"
SOFT = "#60646c"
FAINT = "#a9adb6"
GRID = "#d9dbe0"
BLUE = "#0072b2"
VERMILION = "#d55e00"
"""Blue and vermilion (Okabe and Ito) are told apart by every kind of colour vision, and in print by lightness."""

LONGEST = 34
"""Most characters of a name in a figure."""

LONGEST_SIDE, LARGEST_AREA = 300.0, 2400.0
"""Most inches and square inches of a figure: at 160 dots an inch a picture then has fewer than 65,536 dots on a side,
and takes less than 250 MB."""

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT,
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "grid.color": GRID,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "text.color": INK,
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.color": SOFT,
    "ytick.labelcolor": INK,
}

_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

SUFFIXES = tuple(_METADATA)


_ONE_AT_A_TIME = RLock()
"""A style is a setting of the whole process: two threads that draw at once would draw in each other's."""


@contextmanager
def drawing(salt: str = "gen-eval") -> Iterator[None]:
    """Our style instead of the user's; a missing glyph is no warning, for names are what they are.

    Args:
        salt: of the identifiers within an SVG.
    """
    from matplotlib import style

    with _ONE_AT_A_TIME, style.context(["default", {**_STYLE, "svg.hashsalt": salt}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support", category=UserWarning)
        yield


def label(name: str, longest: int = LONGEST) -> str:
    r"""A name as one line of at most ``longest`` characters.

    Control characters become spaces, marks that turn the direction of writing and halves of surrogates go.

    >>> label("a\nb"), label("x" * 50, longest=7)
    ('a b', 'xxxx…xx')
    """
    kinds = ((one, unicodedata.category(one)) for one in name)
    text = "".join(" " if kind in {"Cc", "Zl", "Zp"} else one for one, kind in kinds if kind not in {"Cf", "Cs", "Cn"})
    text = re.sub(r" {2,}", " ", text).strip() or "(no name)"
    if len(text) <= longest:
        return text
    end = (longest - 1) // 3
    return f"{text[: longest - 1 - end]}…{text[-end:]}"


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of ``width`` x ``height`` inches with one pair of axes; see :func:`empty_figure`."""
    figure = empty_figure(width, height)
    return figure, figure.add_subplot()


def empty_figure(width: float, height: float) -> Figure:
    """A figure of ``width`` x ``height`` inches; smaller where :data:`LONGEST_SIDE` and :data:`LARGEST_AREA` say so."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = min(width, LONGEST_SIDE), min(height, LONGEST_SIDE)
    shrunk = min(1.0, math.sqrt(LARGEST_AREA / (width * height)))
    figure = Figure(figsize=(width * shrunk, height * shrunk))
    FigureCanvasAgg(figure)  # keeps one renderer: without it each size of a text that is asked for makes a new one
    return figure


def beside(axes: Axes, place: int, text: str) -> None:
    """Words at the right end of a line of :func:`rows`."""
    axes.annotate(
        text,
        (1, place),
        xytext=(8, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        annotation_clip=False,
    )


def titled(axes: Axes, title: str, *lines: str) -> None:
    """A title with softer lines beneath it, above the axes."""
    kept = [line for line in lines if line]
    axes.set_title(title, pad=10 + 13 * len(kept), fontweight="bold")
    for place, line in enumerate(reversed(kept)):
        axes.annotate(
            line,
            (0, 1),
            xytext=(0, 7 + 13 * place),
            xycoords="axes fraction",
            textcoords="offset points",
            color=SOFT,
            fontsize=9,
            in_layout=False,  # a long line must not narrow the axes; its height is in the pad of the title
        )


def rows(axes: Axes, names: Sequence[str], *, named: bool = True) -> None:
    """A line for each name, the first on top."""
    axes.set_yticks(range(len(names)), [label(name) for name in names] if named else [""] * len(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", linewidth=0.6)
    axes.spines["left"].set_visible(False)


def settled(figure: Figure) -> Figure:
    """``figure`` with its layout done once and for all, so that whoever draws it, and how often, gets the same."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    ConstrainedLayoutEngine().execute(figure)
    return figure


def encoded(figure: Figure, suffix: str, *, salt: str = "gen-eval") -> bytes:
    """The bytes of ``figure``: no date, no program, no chance in them.

    Args:
        figure: one of :mod:`gen_eval.arena.plots`.
        suffix: ``.svg``, ``.png`` or ``.pdf``.
        salt: of the identifiers within an SVG; figures of one page need different ones.

    Raises:
        InputError: another ending.
    """
    metadata = _METADATA.get(suffix.lower())
    if metadata is None:
        raise InputError(
            f"a figure cannot be written as {suffix or 'a name without ending'!r}; use {', '.join(SUFFIXES)}"
        )
    buffer = io.BytesIO()
    with drawing(salt):
        figure.savefig(buffer, format=suffix.lower()[1:], metadata=metadata, facecolor="white")
    return buffer.getvalue()


def save(figure: Figure, path: Path | str) -> None:
    """Write ``figure`` to ``path``, whole or not at all; its ending chooses the form (``.svg``, ``.png``, ``.pdf``).

    Raises:
        InputError: another ending, or the file cannot be written.
    """
    target = Path(path)
    content = encoded(figure, target.suffix)
    try:
        write_atomic(target, content)
    except OSError as error:
        raise InputError(f"the figure {target} cannot be written: {error}; give another path") from error


__all__ = [
    "LONGEST",
    "SUFFIXES",
    "beside",
    "drawing",
    "empty_figure",
    "encoded",
    "label",
    "new_figure",
    "rows",
    "save",
    "settled",
    "titled",
]
