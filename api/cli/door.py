"""What all commands share: expected problems become a message and an exit code; progress and tables are printed."""

from __future__ import annotations

import functools
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from gen_eval.records.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, GenEvalError

if TYPE_CHECKING:
    from rich.console import Console

Arguments = ParamSpec("Arguments")


def door(command: Callable[Arguments, int | None]) -> Callable[Arguments, None]:
    """Turn expected problems of ``command`` into one line on standard error and their exit code."""

    @functools.wraps(command)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            code = command(*args, **kwargs) or 0
        except GenEvalError as error:
            note(f"error: {error}")
            code = error.exit_code
        except BrokenPipeError:
            raise  # the reader has seen enough: the program ends in silence
        except OSError as error:  # a folder that cannot be written, a full disk: nothing that a traceback explains
            where = "" if error.filename is None else f"{error.filename}: "
            note(f"error: {where}{error.strerror or error}; check the path, its rights and the free space")
            code = EXIT_BAD_INPUT
        except MemoryError as error:
            note(
                f"error: there is not enough memory ({error}); ask for fewer resamples or orders, or give less at once"
            )
            code = EXIT_BAD_INPUT
        except KeyboardInterrupt:
            note("interrupted: what was finished is kept; the same command goes on from there")
            code = EXIT_INTERRUPTED
        raise typer.Exit(code)

    return guarded


def note(message: str) -> None:
    """One line for people, on standard error."""
    typer.echo(printable(message), err=True)


def printable(text: str) -> str:
    r"""``text`` without what commands a terminal: names come from files, and an escape sequence is no name.

    Control characters but line feed and tabulator go, and marks that turn the direction of writing.

    >>> printable("a\x1b[31mb")
    'a[31mb'
    """
    return text if text.isprintable() else "".join(one for one in text if not _commands(one))


def _commands(sign: str) -> bool:
    return (unicodedata.category(sign) == "Cc" and sign not in "\n\t") or sign in _TURNING


_TURNING = frozenset(map(chr, (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def print_json(document: Any) -> None:
    """``document`` as the only thing on standard output."""
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False, indent=1)
    sys.stdout.write("\n")


def console() -> Console:
    """Standard output for tables; what is printed is :func:`printable`."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    # piped output keeps whole lines: a table cut to 80 columns is of no use to grep
    width = None if sys.stdout.isatty() else 160
    return Plain(highlight=False, width=width)


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar with the time left, on standard error; yields the function that moves it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if quiet:
        yield lambda label, done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True), transient=False)
    tasks: dict[str, Any] = {}

    def move(label: str, done: int, total: int) -> None:
        if not total:
            return
        bars.start()  # not before there is something to show: an empty display leaves an empty line
        if label not in tasks:
            tasks[label] = bars.add_task(label, total=total)
        bars.update(tasks[label], completed=done, total=total)

    try:
        yield move
    finally:
        if tasks:
            bars.stop()
