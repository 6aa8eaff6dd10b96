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
    out: Annotated[Path, typer.Option(help="Folder to write the layout of PAI-Bench-C in (canny/, depth_npzs/, …).")],
    signals: Annotated[
        str, typer.Option(help="Of blur, edge, depth and seg, comma-separated; the last two need networks.")
    ] = "blur,edge",
    data: Annotated[
        Path | None,
        typer.Option(help="Benchmark of the videos: captions for seg, sizes of the reference clips."),
    ] = None,
    protocol: Annotated[str, typer.Option(help="Whose filter and thresholds are used.")] = "corrected",
    preset: Annotated[str, typer.Option(help="How many frames: 121-frames or all-frames.")] = "121-frames",
    device: Annotated[
        str | None,
        typer.Option(help="Where networks run: auto, cpu, cuda or cuda:N; default: GEN_EVAL_DEVICE, else auto."),
    ] = None,
    dtype: Annotated[str, typer.Option(help="Number format of networks: float32, bfloat16 or float16.")] = "float32",
    json: options.Json = False,
) -> int:
    """Write the control signals of every video. Finished files are kept.

    The folder then serves as --signals of `score control`, or, when it is the benchmark's own, as its --data. Captions
    for seg are read from --data, or from captions/ID.json beside the folder of videos.
    """
    from api.services.extraction import extract_signals, to_json
    from api.services.wording import counted
    from gen_eval.settings import settings

    with progress_bar() as move:
        done = extract_signals(
            videos,
            out,
            signals=options.names(signals) or (),
            data=data,
            protocol=protocol,
            preset=preset,
            device=device or settings().device,
            dtype=dtype,
            progress=move,
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
        (one.status, f"{one.video} {one.signal}" if one.status == "failed" else one.signal, one.message)
        for one in done
        if one.message
    )
