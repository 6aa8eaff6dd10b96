"""The command `gen-eval` and its tree of sub-commands."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import typer

import gen_eval
from api.cli import (
    arena,
    benchmarks,
    controls,
    generate,
    imports,
    judge,
    metrics,
    runs,
    score,
    system,
    understand,
    weights,
)

app = typer.Typer(
    name="gen-eval",
    help="Scores for generated video that can be defended: PAI-Bench quality and control, with intervals and coverage.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(score.app, name="score")
app.add_typer(controls.app, name="controls")
app.add_typer(benchmarks.app, name="data")
app.add_typer(metrics.app, name="metrics")
app.add_typer(weights.app, name="weights")
app.add_typer(understand.app, name="understand")
app.add_typer(judge.app, name="judge")
app.add_typer(arena.app, name="arena")
app.command("generate")(generate.generate)
app.command("import")(imports.import_results)
app.command("report")(runs.report)
app.command("compare")(runs.compare)
app.command("merge")(runs.merge)
app.command("demo")(system.demo)
app.command("doctor")(system.doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gen-eval {gen_eval.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; what batch systems send to stop a job is treated like Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app(prog_name="gen-eval")
    except BrokenPipeError:  # `gen-eval … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
