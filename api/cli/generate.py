"""`gen-eval generate`: videos from a generator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli import options
from api.cli.door import console, door, print_json, progress_bar


@door
def generate(
    generator: Annotated[str, typer.Option(help="Name of a generator, such as scenes.")],
    data: Annotated[Path, typer.Option(help="Benchmark folder to generate for.")],
    out: Annotated[Path, typer.Option(help="Folder to write videos/ in; finished videos are kept.")],
    seeds: Annotated[str, typer.Option(help="Seeds, comma-separated.")] = "0",
    flaw: Annotated[str | None, typer.Option(help="scenes only: break one law, such as teleport or flicker.")] = None,
    strength: Annotated[float, typer.Option(min=0, max=1, help="scenes only: how strongly, above 0 to 1.")] = 1.0,
    limit: options.Limit = None,
    json: options.Json = False,
) -> int:
    """Generate a video for every sample and seed."""
    from api.services.generation import generate_videos
    from gen_eval.records import InputError

    chosen = options.names(seeds)
    if not chosen or not all(seed.isdigit() for seed in chosen):
        raise InputError(f"--seeds must be whole numbers such as 0,1,2, not {seeds!r}")
    with progress_bar() as move:
        made = generate_videos(
            generator,
            data,
            out,
            seeds=tuple(int(seed) for seed in chosen),
            flaw=flaw,
            strength=strength,
            limit=limit,
            progress=move,
        )
    if json:
        print_json(made)
    else:
        console().print(f"{made['written']} videos written, {made['kept']} kept, in {out / 'videos'}")
    return 0
