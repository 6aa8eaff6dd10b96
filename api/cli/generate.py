"""`gen-eval generate`: videos from a generator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS


@door
def generate(
    generator: Annotated[
        str, typer.Option(help="Name of a generator: scenes, or source for the benchmark's own real videos.")
    ],
    data: Annotated[Path, typer.Option(help="Benchmark folder to generate for.")],
    out: Annotated[Path, typer.Option(help="Folder to write videos/ in; finished videos are kept.")],
    seeds: Annotated[str, typer.Option(help="Seeds, comma-separated.")] = "0",
    captions: Annotated[
        bool, typer.Option(help="One video for every caption of a sample, in place of every seed.")
    ] = False,
    flaw: Annotated[str | None, typer.Option(help="scenes only: break one law, such as teleport or flicker.")] = None,
    strength: Annotated[float | None, typer.Option(help="scenes only: how strongly, above 0 to 1.")] = None,
    limit: options.Limit = None,
    json: options.Json = False,
) -> int:
    """Generate a video for every sample and seed."""
    from api.services.generation import generate_videos
    from api.services.wording import counted
    from gen_eval.records import InputError

    chosen = options.names(seeds)
    if not chosen or not all(seed.isdecimal() for seed in chosen):
        raise InputError(f"--seeds must be whole numbers such as 0,1,2, not {seeds!r}")
    if strength is not None and flaw is None:
        raise InputError("--strength says how strongly --flaw breaks the scene; give --flaw too")
    given: dict[str, Any] = {"flaw": flaw, "strength": strength}
    with progress_bar() as move:
        made = generate_videos(
            generator,
            data,
            out,
            seeds=tuple(int(seed) for seed in chosen),
            captions=captions,
            limit=limit,
            options={name: value for name, value in given.items() if value is not None},
            progress=move,
        )
    failed = [one for one in made if one.video is None]
    if json:
        records = [{**vars(one), "reason": None if one.reason is None else str(one.reason)} for one in made]
        print_json({"generator": generator, "clips": records, "failed": len(failed)})
    else:
        console().print(f"{counted(len(made) - len(failed), 'video')} in {out / 'videos'}", markup=False)
    for one in failed:
        note(f"{one.reason}: {one.sample}, {one.member}: {one.message}")
    return EXIT_FAILED_ITEMS if failed else EXIT_DONE
