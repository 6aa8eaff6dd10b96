"""Options of `gen-eval understand`, each written down once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli import options
from api.cli.taking import Options

Name = Annotated[str, typer.Argument(metavar="TASK", help="Name of the task; `gen-eval understand list` has them.")]
TaskData = Annotated[Path, typer.Option(help="The task's data: the published folder or file, or samples as .jsonl.")]
Protocol = Annotated[
    str, typer.Option(help="corrected or reference (or a .yaml): how replies are read and questions put.")
]
Dialect = Annotated[
    str | None,
    typer.Option(help="Which public code `reference` follows: paibench_u, reason_script, physical_ai_understanding."),
]

ASKED: Options = {
    "task": (Name, ...),
    "data": (TaskData, ...),
    "model": (Annotated[str, typer.Option(help="Model entry by name, or a .yaml.")], ...),
    "out": (options.Out, ...),
    "protocol": (Protocol, "corrected"),
    "dialect": (Dialect, None),
    "preset": (
        Annotated[
            str | None, typer.Option(help="What the model is shown: 16-uniform, 4fps, …; default: that of the form.")
        ],
        None,
    ),
    "frames": (
        Annotated[
            str | None, typer.Option(help="Numbers of frames to compare, comma-separated; 0 asks without the video.")
        ],
        None,
    ),
    "thinking": (
        Annotated[str | None, typer.Option(help="on, off, or on,off to compare: whether the model reasons first.")],
        None,
    ),
    "effort": (
        Annotated[str | None, typer.Option(help="How much it reasons, by the provider's names; several to compare.")],
        None,
    ),
    "decoding": (
        Annotated[str, typer.Option(help="form: as the form of asking has it; makers: as the model's entry states.")],
        "form",
    ),
    "temperature": (
        Annotated[float | None, typer.Option(help="Of decoding, in place of what --decoding says; 0 does not sample.")],
        None,
    ),
    "top_p": (Annotated[float | None, typer.Option(help="Of decoding, likewise.")], None),
    "seeds": (
        Annotated[
            str | None, typer.Option(help="Seeds of sampling, comma-separated; each question is asked once for each.")
        ],
        None,
    ),
    "rotations": (
        Annotated[
            int, typer.Option(min=0, help="So many questions are asked with their options in every other order too.")
        ],
        0,
    ),
    "second_stage": (
        Annotated[
            str | None, typer.Option(help="Text model that reads the replies which the reader cannot (a model entry).")
        ],
        None,
    ),
    "endpoint": (Annotated[str | None, typer.Option(help="Address of the model's server.")], None),
    "second_endpoint": (Annotated[str | None, typer.Option(help="Address of the server of --second-stage.")], None),
    "served_as": (Annotated[str | None, typer.Option(help="The model's name on its server.")], None),
    "label": (
        Annotated[str | None, typer.Option(help="Label of the model in tables; default: its entry's name.")],
        None,
    ),
    "media": (options.Media, None),
    "domains": (
        Annotated[
            str | None, typer.Option(help="Only questions of these groups (category, column, …), comma-separated.")
        ],
        None,
    ),
    "limit": (options.Limit, None),
    "device": (Annotated[str | None, typer.Option(help="Where a model in this process runs.")], None),
    "dtype": (Annotated[str | None, typer.Option(help="Number format of a model in this process.")], None),
    "shard": (
        Annotated[
            str | None, typer.Option(help="Only every N-th question, as i/N; join the runs with `gen-eval merge`.")
        ],
        None,
    ),
    "store": (options.Store, None),
    "update": (
        Annotated[
            bool, typer.Option("--update", help="Take over the answers of another run in --out that still hold.")
        ],
        False,
    ),
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="Say what would be asked; nobody is.")], False),
    "json": (options.Json, False),
}
"""What `understand run` takes: name -> its type with the help, its default (``...``: it must be given)."""
