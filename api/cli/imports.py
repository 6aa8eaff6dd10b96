"""`gen-eval import`: scores that another program wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json
from gen_eval.records.errors import EXIT_FAILED_ITEMS

if TYPE_CHECKING:
    from api.services.results import RunResults

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Result files of VBench or PAI-Bench."),
]


@door
def import_results(
    files: Files,
    out: options.Out,
    model: Annotated[str | None, typer.Option(help="Label of the model; default: the name of the first file.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Benchmark that the videos were made for: its ids decide, and what is missing is counted."),
    ] = None,
    layout: Annotated[str | None, typer.Option(help="Take --data as pai-g, pai-c, references or samples-file.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Only these dimensions, comma-separated.")] = None,
    condition: Annotated[
        str | None, typer.Option(help="What the generator was given (PAI-Bench-C): blur, edge, depth, seg or all.")
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="reference; reference-v2 when the newer code of PAI-Bench-C wrote the files.")
    ] = "reference",
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """Turn result files of VBench or PAI-Bench into a run. Report and compare then work with old results.

    Quality: {name}_eval_results.json. Control: metrics.json and diversity_metrics.json of PAI-Bench-C.

    The run says that it was imported and under which protocol (reference). Values are brought to one scale; the file's
    own totals are kept and checked against its records, and exit code 1 says that one does not follow from them.
    """
    from api.services.importing import import_results as imported
    from api.services.reporting import write_report

    results = imported(
        files,
        out,
        model=model,
        data=data,
        layout=layout,
        metrics=options.names(metrics),
        condition=condition,
        protocol=protocol,
        store=store,
    )
    write_report([results], out / "report.html")
    if json:
        print_json(results.to_json())
    else:
        _print(results, out)
    checks = results.manifest["imported"]["checks"]
    differing = [name for name, check in checks.items() if not check["agrees"]]
    for name in differing:
        note(f"total of {name}: {checks[name]['note']}")
    return results.exit_code or (EXIT_FAILED_ITEMS if differing else 0)


def _print(results: RunResults, out: Path) -> None:
    from api.cli.tables import print_problems, print_published, print_summary

    to = console()
    print_summary(to, results)
    print_published(to, [results])
    print_problems(to, results)
    if left_out := results.manifest["imported"]["left_out"]:
        to.print(f"dimensions that are no metrics here, left out: {', '.join(left_out)}", soft_wrap=True, markup=False)
    to.print(f"report: {out / 'report.html'}", markup=False, soft_wrap=True)
