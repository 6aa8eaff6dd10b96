"""Options that several commands take, each written down once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else there.")
]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="GEN_EVAL_STORE", help="Database URL of the rows (postgresql://…); default: in the run folder."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of the run; made when absent, continued when it holds the same run.")]
Videos = Annotated[
    Path, typer.Option(help="Folder of generated videos, named {id}__{seed}.mp4 or {id}_caption{k}.mp4.")
]
Data = Annotated[Path | None, typer.Option(help="Benchmark folder: PAI-Bench layout, or a folder of reference videos.")]
Samples = Annotated[Path | None, typer.Option(help="Samples as JSON lines, in place of --data.")]
Media = Annotated[Path | None, typer.Option(help="Folder that media paths of --samples are relative to.")]
Workers = Annotated[
    int, typer.Option(min=0, help="Processes; 0 takes one for each core, and a single one with networks.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N samples.")]
Endpoint = Annotated[
    str | None, typer.Option(help="Address of the server that answers (…/v1), in place of the entry's own.")
]
ServedAs = Annotated[str | None, typer.Option(help="The model's name on that server; default: asked of it.")]


def names(text: str | None) -> tuple[str, ...] | None:
    """A comma-separated list; ``None`` when it was not given."""
    if text is None:
        return None
    return tuple(part.strip() for part in text.split(",") if part.strip())
