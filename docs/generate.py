"""Write the pages that follow from the code: ``python docs/generate.py`` (``--check`` fails when they are stale).

``docs/reasons.md`` from the enumerations, ``docs/cli.md`` from the commands' own help and the settings.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest import mock

from gen_eval.records import reasons
from gen_eval.settings import Settings

HERE = Path(__file__).parent
COMMANDS = (
    (),
    ("score",),
    ("score", "quality"),
    ("score", "control"),
    ("score", "domain"),
    ("controls", "extract"),
    ("generate",),
    ("import",),
    ("report",),
    ("compare",),
    ("merge",),
    ("data",),
    ("data", "list"),
    ("data", "describe"),
    ("data", "verify"),
    ("data", "make"),
    ("metrics",),
    ("metrics", "list"),
    ("metrics", "audit"),
    ("weights",),
    ("weights", "list"),
    ("weights", "fetch"),
    ("weights", "verify"),
    ("weights", "convert"),
    ("judge",),
    ("judge", "ask"),
    ("judge", "calibrate"),
    ("judge", "agree"),
    ("arena",),
    ("arena", "rate"),
    ("arena", "correlate"),
    ("arena", "agree"),
    ("arena", "next"),
    ("arena", "power"),
    ("understand",),
    ("understand", "list"),
    ("understand", "run"),
    ("understand", "score"),
    ("understand", "parse"),
    ("understand", "compare"),
    ("demo",),
    ("doctor",),
)


def reasons_page() -> str:
    """Every status, reason and flag, with the comment groups of the source as headings."""
    lines = ["# Statuses, reasons, flags", "", "Made from `gen_eval/records/reasons.py` by `docs/generate.py`.", ""]
    lines += [inspect.cleandoc(reasons.Status.__doc__ or ""), "", "## Reasons", ""]
    lines += ["| reason | status | tried again on resume | when |", "| --- | --- | --- | --- |"]
    notes = _notes()
    for reason in reasons.Reason:
        again = "yes" if reason.transient else "no"
        lines.append(f"| `{reason}` | {reason.status} | {again} | {notes[reason.name]} |")
    lines += ["", "## Flags", "", "| flag | what was unusual |", "| --- | --- |"]
    lines += [f"| `{flag}` | {notes[flag.name]} |" for flag in reasons.Flag]
    lines += [
        "",
        "## Rejections",
        "",
        "Things that are listed and have no row.",
        "",
        "| rejection | when |",
        "| --- | --- |",
    ]
    lines += [f"| `{one}` | {notes[one.name]} |" for one in reasons.Rejection]
    return "\n".join(lines) + "\n"


def _notes() -> dict[str, str]:
    """Member name -> the comment at the end of its line."""
    source = inspect.getsource(reasons).splitlines()
    tree = ast.parse("\n".join(source))
    members = [node for kind in tree.body if isinstance(kind, ast.ClassDef) for node in kind.body]
    found: dict[str, str] = {}
    for node in members:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _, _, note = source[node.lineno - 1].partition("  # ")
            found[node.targets[0].id] = note
    return found


def cli_page() -> str:
    """The help of every command, and all settings."""
    lines = ["# Commands and settings", "", "Made from the program's own help by `docs/generate.py`.", ""]
    for command in COMMANDS:
        lines += [f"## gen-eval {' '.join(command)}".rstrip(), "", "```", _help(command), "```", ""]
    lines += [
        "## Settings",
        "",
        "From the environment; none of them moves a score, but for the chunk size (recorded).",
        "",
    ]
    lines += ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else field.default
        lines.append(f"| `GEN_EVAL_{name.upper()}` | {default} | {field.description} |")
    searched = "`protocols/`, `presets/`, `benchmarks/`, `weights/`"
    lines.append(f"| `GEN_EVAL_CONFIGS` | | folder whose {searched} are searched first |")
    return "\n".join(lines) + "\n"


def _help(command: tuple[str, ...]) -> str:
    from api.cli import app

    printed = io.StringIO()
    narrow = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    with mock.patch.dict(os.environ, narrow), redirect_stdout(printed), suppress(SystemExit):
        app([*command, "--help"], prog_name="gen-eval")
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


PAGES = {"reasons.md": reasons_page, "cli.md": cli_page}


def main() -> None:
    """Write the pages, or compare them."""
    stale = []
    for name, page in PAGES.items():
        content = page()
        if "--check" in sys.argv:
            path = HERE / name
            stale += [] if path.is_file() and path.read_text(encoding="utf-8") == content else [name]
        else:
            (HERE / name).write_text(content, encoding="utf-8")
    if stale:
        sys.exit(f"stale: {', '.join(stale)}; run `python docs/generate.py`")


if __name__ == "__main__":
    main()
