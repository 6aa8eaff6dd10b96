"""Tables of what answers say beside their mean, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from api.services.answer_tables import asked_table

if TYPE_CHECKING:
    from rich.console import Console

    from api.services.results import RunResults


def print_answers(to: Console, results: RunResults) -> None:
    """All ways in which the answers of a run become a number, under the protocol that was asked for."""
    found = asked_table(results)
    if found is None:
        return
    table = Table(title=escape(found.caption), title_justify="left")
    for column in ("over", "value", "95 % interval", "n of N"):
        table.add_column(column, justify="left" if column == "over" else "right")
    for line in found.lines:
        table.add_row(escape(line.name), line.value, line.interval, line.coverage)
    to.print(table)
    for text in (*found.notes, *found.warnings):
        to.print(text, markup=False, soft_wrap=True)
