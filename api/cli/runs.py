"""`gen-eval report`, `gen-eval compare` and `gen-eval merge`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS

if TYPE_CHECKING:
    from api.services.comparison import Comparison
    from api.services.merging import Merged

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")]
Report = Annotated[Path, typer.Option(help="File to write; its ending chooses .html, .csv, .tex, .json or .parquet.")]
TableOnly = Annotated[
    bool, typer.Option("--table", help="Only the table as the benchmark prints it (.csv, .json or .tex).")
]
Votes = Annotated[Path | None, typer.Option(help="Votes of people on these systems; .html and .json show them beside.")]
Ratings = Annotated[Path | None, typer.Option(help="Ratings by people, when there are no votes (docs/files.md).")]
Baseline = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="The baseline first, then the runs to compare with it.")
]
OneProtocol = Annotated[str | None, typer.Option(help="Compare under this protocol only; default: under all.")]
FailIf = Annotated[
    Literal["worse"] | None,
    typer.Option(help="End with exit code 1 when a metric or total is clearly worse than in the first run."),
]
Whole = Annotated[Path, typer.Option(help="Folder of the merged run; continued when it holds the same run.")]


@door
def report(
    runs: Runs,
    out: Report,
    table: TableOnly = False,
    votes: Votes = None,
    ratings: Ratings = None,
    store: options.Store = None,
) -> int:
    """Write a report of one run, or of several side by side.

    The numbers are printed too, as their benchmark prints them. With votes or ratings it says how far they agree with
    people.
    """
    from api.cli.tables import print_published
    from api.services.destinations import check_destinations
    from api.services.reporting import SUFFIXES, write_report
    from api.services.results import RunResults

    check_destinations(out, None, (votes, ratings), endings=SUFFIXES)
    results = [RunResults.read(path, store=store) for path in runs]
    people, code = None, EXIT_DONE
    if votes is not None or ratings is not None:
        from api.cli.tables_of_arena import print_people
        from api.services.arena import people_of

        people, found = people_of(tuple(runs), votes=votes, ratings=ratings, store=store)
        code = found.exit_code
    write_report(results, out, table=table, people=people)
    print_published(console(), results)
    if people is not None:
        print_people(console(), found)
    note(f"report: {out}")
    return code


@door
def compare(
    runs: Baseline,
    protocol: OneProtocol = None,
    fail_if: FailIf = None,
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """What differs between runs, and by how much. The difference of each run from the first is paired by sample."""
    from api.services.comparison import compare as compare_runs
    from api.services.results import RunResults

    found = compare_runs(*(RunResults.read(path, store=store) for path in runs), protocol=protocol)
    if json:
        print_json(found.to_json())
    else:
        from api.cli.tables import print_comparison

        for other in found.others:
            print_comparison(console(), found, other)
    return EXIT_DONE if fail_if is None else _gate(found)


def _gate(found: Comparison) -> int:
    if found.worse:
        worse = ["{} ({})".format(*one.cells()) for other in found.others for one in other.lines if one.worse]
        note(f"worse than {found.label}: {', '.join(dict.fromkeys(worse))}")
        return EXIT_FAILED_ITEMS
    if not found.decidable:
        note("the gate cannot be decided: a run has no comparable metric with a value for a common sample")
        return EXIT_FAILED_ITEMS
    return EXIT_DONE


@door
def merge(runs: Runs, out: Whole, store: options.Store = None, json: options.Json = False) -> int:
    """Join the shards of one run. Writes one run folder with its report; exit code 1 when something is missing."""
    from api.services.merging import merge as merge_runs
    from api.services.reporting import write_report
    from api.services.results import RunResults

    merged = merge_runs(runs, out, store=store)
    write_report([RunResults.read(out, store=store)], out / "report.html")
    if json:
        print_json(merged.to_json())
    else:
        _print_merged(merged, out)
    return EXIT_DONE if merged.complete else EXIT_FAILED_ITEMS


def _print_merged(merged: Merged, out: Path) -> None:
    from api.services import wording

    to = console()
    rows = wording.counted(merged.rows, "row")
    to.print(
        f"run {merged.run[:12]}: {rows}, {merged.written:,} of them new; report: {out / 'report.html'}", markup=False
    )
    if merged.missing_shards:
        to.print(f"missing shards: {', '.join(merged.missing_shards)}")
    if merged.missing:
        samples = list(dict.fromkeys(key[1] for key in merged.missing))
        text = f"missing: {wording.counted(len(merged.missing), 'row')} of {wording.counted(len(samples), 'sample')}"
        to.print(f"{text}: {wording.listed(samples, 10)}", markup=False, soft_wrap=True)
    if merged.missing_files:
        text = wording.listed(list(merged.missing_files), 5)
        to.print(f"files that rows point to and no shard holds: {text}", markup=False, soft_wrap=True)
