"""`gen-eval report`, `compare` and `merge`: what is done with finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli import options
from api.cli.door import console, door, print_json

Runs = Annotated[list[Path], typer.Argument(help="Folders of runs.")]


@door
def report(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="File to write: .html, .csv, .tex, .json or .parquet.")],
    store: options.Store = None,
) -> int:
    """Write a report of one or several runs."""
    from api.services.reporting import write_report
    from api.services.results import RunResults

    write_report([RunResults.read(run, store=store) for run in runs], out)
    console().print(str(out))
    return 0


@door
def compare(
    runs: Runs,
    fail_if: Annotated[str | None, typer.Option(help="worse: exit code 1 when the first run is worse.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Only this protocol.")] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """Compare the first run with the others, sample by sample; what differs in what was asked comes first."""
    from api.services.comparison import compare as compare_runs
    from api.services.results import RunResults
    from gen_eval.records import InputError

    if fail_if not in {None, "worse"}:
        raise InputError(f"--fail-if must be worse, not {fail_if!r}")
    if len(runs) < 2:
        raise InputError("compare takes two runs or more")
    results = [RunResults.read(run, store=store) for run in runs]
    found = compare_runs(results[0], *results[1:], protocol=protocol)
    if json:
        print_json(found.to_json())
    else:
        console().print(str(found), soft_wrap=True, markup=False)
    return 1 if fail_if == "worse" and found.worse else 0


@door
def merge(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="Folder of the whole run.")],
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """Join the shards of one run."""
    raise NotImplementedError
