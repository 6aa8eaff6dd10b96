"""`gen-eval controls`: control signals of videos."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS, EXIT_PART_ABSENT

if TYPE_CHECKING:
    from api.services.extraction import Extracted

app = typer.Typer(no_args_is_help=True, help="Control signals of videos.", rich_markup_mode=None)


@app.callback()
def _controls() -> None:
    pass


@app.command()
@door
def extract(
    videos: Annotated[Path, typer.Option(help="Folder of videos.")],
    out: Annotated[Path, typer.Option(help="Folder to write canny/, blur/ and edges/ in.")],
    signals: Annotated[
        str, typer.Option(help="Of blur and edge, comma-separated; depth and seg need networks and are skipped.")
    ] = "blur,edge",
    protocol: Annotated[str, typer.Option(help="Whose filter and thresholds are used.")] = "corrected",
    preset: Annotated[str, typer.Option(help="How many frames: 121-frames or all-frames.")] = "121-frames",
    json: options.Json = False,
) -> int:
    """Write the control signals of every video. Finished files are kept."""
    from api.services.extraction import extract_signals, to_json
    from api.services.wording import counted

    with progress_bar() as move:
        done = extract_signals(
            videos, out, signals=options.names(signals) or (), protocol=protocol, preset=preset, progress=move
        )
    counts = Counter(one.status for one in done)
    if json:
        print_json({"signals": to_json(done), "counts": dict(sorted(counts.items()))})
    else:
        text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        console().print(
            f"signals of {counted(len({one.video for one in done}), 'video')} in {out}: {text}", markup=False
        )
    for (status, what, message), count in _messages(done).items():
        note(f"{status}: {what}{f' ({count} videos)' if count > 1 else ''}: {message}")
    if counts["failed"]:
        return EXIT_FAILED_ITEMS
    return EXIT_PART_ABSENT if counts["skipped"] == len(done) else EXIT_DONE


def _messages(done: list[Extracted]) -> Counter[tuple[str, str, str]]:
    """What is to be said: each failed file by name, a signal that is skipped for all of them once."""
    return Counter(
        (one.status, one.signal if one.status == "skipped" else f"{one.video} {one.signal}", one.message)
        for one in done
        if one.message
    )
