"""`gen-eval data`: benchmarks and what a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar

app = typer.Typer(no_args_is_help=True, help="Benchmarks, and what a data folder holds.", rich_markup_mode=None)

Folder = Annotated[Path, typer.Argument(metavar="DATA", help="Benchmark folder or sample file.")]
Layout = Annotated[
    str | None, typer.Option(help="Take it as pai-g, pai-c, references or samples-file; default: found out.")
]


@app.command("list")
@door
def list_benchmarks(json: options.Json = False) -> int:
    """Known benchmarks, their sources and their terms."""
    from api.services.catalogue import benchmark_catalogue

    catalogue = benchmark_catalogue()
    if json:
        print_json({"benchmarks": catalogue})
        return 0
    to = console()
    for entry in catalogue:
        to.print(f"[bold]{entry['name']}[/bold]: {entry['title']}")
        to.print(f"  {entry['samples']} samples; {entry['source']}; terms: {entry['licence']}")
        to.print(f"  layout: {entry['layout']}")
    return 0


@app.command()
@door
def describe(data: Folder, layout: Layout = None, json: options.Json = False) -> int:
    """What DATA holds. Samples, domains, references, control signals, and lines that cannot be used."""
    from api.services.inspection import describe as inspect_data

    return _print_description(inspect_data(data, layout=layout), json)


@app.command()
@door
def verify(data: Folder, layout: Layout = None, json: options.Json = False) -> int:
    """Open every file of DATA. Lists what is absent or cannot be read; exit code 1 when something is."""
    from api.services.inspection import verify as verify_data

    with progress_bar() as move:
        found = verify_data(data, layout=layout, progress=move)
    if not json and not found["problems"]:
        note("every file could be opened")
    return _print_description(found, json)


@app.command()
@door
def make(
    out: Annotated[Path, typer.Option(help="Folder to write; continued when it holds a part of the same benchmark.")],
    per_kind: Annotated[int, typer.Option(min=1, help="Scenes of each kind.")] = 2,
    kinds: Annotated[str | None, typer.Option(help="Kinds of scene, comma-separated; default: all.")] = None,
    height: Annotated[int, typer.Option(min=16, help="Height of the frames in pixels.")] = 256,
    width: Annotated[int, typer.Option(min=16, help="Width of the frames in pixels.")] = 448,
    fps: Annotated[float, typer.Option(min=1, help="Frames a second.")] = 24.0,
    frames: Annotated[int, typer.Option(min=1, help="Frames of every scene.")] = 49,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it.")] = 0,
) -> int:
    """Write a benchmark of built-in scenes. With exact control signals and questions with known answers."""
    from api.services.scene_data import make_benchmark
    from api.services.wording import counted

    with progress_bar() as move:
        made = make_benchmark(
            out,
            kinds=options.names(kinds),
            per_kind=per_kind,
            size=(height, width),
            fps=fps,
            frames=frames,
            seed=seed,
            progress=move,
        )
    console().print(f"{counted(made, 'scene')} in {out}", markup=False)
    return 0


def _print_description(found: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(found)
    else:
        from api.services.wording import counted

        to = console()
        to.print(f"{found['data']}: layout {found['layout']}, {counted(found['samples'], 'sample')}", markup=False)
        for name, count in found["has"].items():
            to.print(f"  {name}: {count} of {found['samples']}")
        for domain, count in found["domains"].items():
            to.print(f"  domain {domain}: {count}")
        for problem in found["problems"]:
            to.print(f"  {problem['where']}: {problem['reason']}: {problem['message']}", soft_wrap=True, markup=False)
    return 1 if found["problems"] else 0
