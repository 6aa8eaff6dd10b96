"""The documents cannot fall behind the code."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from gen_eval.records import Flag, Reason, Rejection
from gen_eval.registry import names
from gen_eval.settings import Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_generated_pages_are_fresh():
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_every_metric_stands_in_the_readme_and_under_protocols():
    for name in names("gen_eval.metrics"):
        assert f"`{name}`" in text("README.md")
        assert f"## {name}" in text("docs/protocols.md")


def test_every_reason_and_flag_is_explained():
    page = text("docs/reasons.md")
    for one in (*Reason, *Flag, *Rejection):
        line = next(line for line in page.splitlines() if line.startswith(f"| `{one}` |"))
        assert line.rstrip("| ").rsplit("|", 1)[1].strip(), f"{one} has no explanation"


def test_every_setting_is_explained():
    page = text("docs/cli.md")
    for name, field in Settings.model_fields.items():
        assert f"`GEN_EVAL_{name.upper()}`" in page
        assert field.description


def test_every_command_is_documented():
    import typer

    from api.cli import app

    def walk(command, path=()):
        for name, child in getattr(command, "commands", {}).items():
            yield (*path, name)
            yield from walk(child, (*path, name))

    documented = runpy.run_path(str(DOCS / "generate.py"))["COMMANDS"]
    hidden = {("controls",)}  # a group with one command
    assert {*walk(typer.main.get_command(app))} - hidden == {*documented} - {()}


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_between_pages_lead_somewhere(page):
    import re

    for target in re.findall(r"\]\((?!http)([^)#]+)", text(f"docs/{page}") + text("README.md")):
        assert (ROOT / target).exists() or (DOCS / target).exists(), target


def test_the_page_of_commands_is_what_a_user_types_and_nothing_is_cut_off():
    page = text("docs/cli.md")
    assert "python -m" not in page
    for block in page.split("Commands:\n")[1:]:
        for line in block.split("```")[0].splitlines():
            assert not line.endswith("..."), line
    for line in page.splitlines():
        if line.startswith("  --"):
            assert len(line.split(">", 1)[-1].split("[default")[0].strip()) > 3, f"no help: {line}"
