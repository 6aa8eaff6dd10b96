"""`gen-eval metrics`: what can be measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from api.cli import options
from api.cli.door import console, door, print_json, progress_bar

app = typer.Typer(
    no_args_is_help=True, help="What can be measured, and what each metric must see.", rich_markup_mode=None
)


_LOOKS_AT = {"single": "the clip", "pair": "clip and reference", "set": "all clips of a sample", "answers": "models"}
_ALSO = {"uses_condition_image": "condition image", "uses_prompt": "prompt"}


@app.command("list")
@door
def list_metrics(json: options.Json = False) -> int:
    """All metrics with unit, range, inputs, networks, protocols."""
    from api.services.catalogue import metric_catalogue
    from api.services.wording import NO_VALUE

    catalogue = metric_catalogue()
    if json:
        print_json({"metrics": catalogue})
        return 0
    from rich.table import Table

    table = Table()
    table.add_column("metric", no_wrap=True)
    for column in ("track", "unit", "better", "range", "looks at", "networks", "protocols", "source"):
        table.add_column(column)
    for entry in catalogue:
        table.add_row(
            entry["name"],
            entry["track"],
            entry["unit"],
            _direction(entry),
            _range(*entry["bounds"]),
            _looks_at(entry),
            ", ".join(entry["networks"]) or NO_VALUE,
            ", ".join(entry["protocols"]),
            entry["source"],
        )
    to = console()
    to.print(table)
    for entry in catalogue:
        if entry["caveat"]:
            to.print(f"{entry['name']} ranks nothing alone: {entry['caveat']}", soft_wrap=True, markup=False)
    return 0


def _direction(entry: Mapping[str, Any]) -> str:
    if entry["caveat"]:
        return "not ranked"
    return "higher" if entry["higher_is_better"] else "lower"


def _range(low: float | None, high: float | None) -> str:
    return f"{'-∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"


def _looks_at(entry: Mapping[str, Any]) -> str:
    also = [f", {what}" for use, what in _ALSO.items() if entry[use]]
    return f"{entry['signal']} of {_LOOKS_AT[entry['inputs']]}{''.join(also)}"


@app.command()
@door
def audit(json: options.Json = False) -> int:
    """Break built-in scenes and check what each metric sees. Exit code 1 when one does not see what it must."""
    from api.services.audit import audit_metrics, not_audited

    with progress_bar() as move:
        lines = audit_metrics(progress=move)
    wrong = [line for line in lines if not line["as_expected"]]
    left_out = not_audited(lines)
    if json:
        print_json({"audit": lines, "wrong": len(wrong), "not_audited": left_out})
        return 1 if wrong else 0
    from rich.table import Table

    table = Table()
    for column in ("scene", "flaw", "metric", "clean", "broken", "expected", "seen"):
        table.add_column(column)
    for line in lines:
        mark = line["seen"] if line["as_expected"] else f"{line['seen']} (!)"
        table.add_row(
            line["kind"],
            line["flaw"],
            line["metric"],
            f"{line['clean']:.4f}",
            f"{line['broken']:.4f}",
            line["expected"],
            mark,
        )
    console().print(table)
    console().print(f"{len(lines) - len(wrong)} of {len(lines)} as expected")
    for name, why in left_out.items():
        console().print(f"not audited: {name}: {why}", soft_wrap=True, markup=False)
    return 1 if wrong else 0
