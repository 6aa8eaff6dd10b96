"""`gen-eval score quality` and `gen-eval score control`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar

if TYPE_CHECKING:
    from api.services.request import ScoreRequest

app = typer.Typer(no_args_is_help=True, help="Score a folder of generated videos.", rich_markup_mode=None)

Model = Annotated[
    str | None,
    typer.Option(
        help="Label of the model; default: the name of the video folder, of the one above when that is videos."
    ),
]
Metrics = Annotated[str | None, typer.Option(help="Metrics, comma-separated; default: all of the track.")]
Protocol = Annotated[str, typer.Option(help="corrected, reference, or (control) reference-v2.")]
Preset = Annotated[
    str | None, typer.Option(help="What the metrics are shown: all-frames or 121-frames; default: the track's own.")
]
Seeds = Annotated[
    str | None,
    typer.Option(help="Seeds (captions) that every sample is expected to have, comma-separated; default: those found."),
]
Domains = Annotated[str | None, typer.Option(help="Only samples of these domains, comma-separated.")]
Signals = Annotated[Path | None, typer.Option(help="Folder with depth_npzs/ and masks/ of the generated clips.")]
Shard = Annotated[str | None, typer.Option(help="Only every N-th sample, as i/N; join the runs with `gen-eval merge`.")]
DryRun = Annotated[bool, typer.Option(help="Say what would be done, how long it may take and what would be skipped.")]
Update = Annotated[bool, typer.Option(help="Take over unchanged rows of another run in --out.")]
Layout = Annotated[str | None, typer.Option(help="Take --data as pai-g, pai-c, references or samples-file.")]
Chunk = Annotated[
    int | None, typer.Option(min=1, help="Frames of each video that are held, and given to a network, at a time.")
]
Device = Annotated[
    str | None, typer.Option(help="Where networks run: auto, cpu, cuda or cuda:N; default: GEN_EVAL_DEVICE, else auto.")
]
Dtype = Annotated[str, typer.Option(help="Number format of networks: float32, bfloat16 or float16.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile networks first (torch.compile).")]


Condition = Annotated[
    str | None,
    typer.Option(help="What the generator was given: blur, edge, depth, seg, or all of them with equal weights."),
]

_COMMON: dict[str, tuple[Any, Any]] = {
    "videos": (options.Videos, ...),
    "out": (options.Out, ...),
    "data": (options.Data, None),
    "samples": (options.Samples, None),
    "media": (options.Media, None),
    "layout": (Layout, None),
    "model": (Model, None),
    "metrics": (Metrics, None),
    "protocol": (Protocol, "corrected"),
    "preset": (Preset, None),
    "seeds": (Seeds, None),
    "domains": (Domains, None),
    "limit": (options.Limit, None),
    "workers": (options.Workers, 0),
    "chunk": (Chunk, None),
    "device": (Device, None),
    "dtype": (Dtype, "float32"),
    "compile": (Compile, False),
    "shard": (Shard, None),
    "store": (options.Store, None),
    "update": (Update, False),
    "dry_run": (DryRun, False),
    "json": (options.Json, False),
}
"""What the commands of all tracks take: name -> its type with the help, its default (``...``: it must be given)."""

_OF_CONTROL: dict[str, tuple[Any, Any]] = {"signals": (Signals, None), "condition": (Condition, None)}


def _taking(taken: dict[str, tuple[Any, Any]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command that is written with ``**given`` the options ``taken``, where the command line looks for them."""
    empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(name, kind, annotation=hint, default=empty if default is ... else default)
        for name, (hint, default) in taken.items()
    ]
    signature = inspect.Signature(parameters, return_annotation=int)

    def written(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def bound(*args: Any, **kwargs: Any) -> int:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return command(**given.arguments)

        bound.__signature__ = signature  # type: ignore[attr-defined]
        bound.__annotations__ = {name: hint for name, (hint, _) in taken.items()}
        return bound

    return written


@app.command()
@door
@_taking(_COMMON)
def quality(**given: Any) -> int:
    """PAI-Bench-G quality; no reference video is needed. `gen-eval weights fetch` brings the networks."""
    return _score("quality", given)


@app.command()
@door
@_taking(_COMMON | _OF_CONTROL)
def control(**given: Any) -> int:
    """PAI-Bench-C: control fidelity, visual quality, diversity.

    Each clip is held against the reference video of its sample. Depth maps and masks are read where they are given
    (--signals, --data) and made by networks where they are not.
    """
    return _score("control", given)


def _score(track: Literal["quality", "control"], given: dict[str, Any]) -> int:
    from api.services.request import condition_hint
    from api.services.results import RunResults
    from api.services.scoring import Execution, parse_shard, score

    request = _request(track, given)
    if hint := condition_hint(request):
        note(hint)
    execution = Execution(
        workers=given["workers"],
        shard=None if given["shard"] is None else parse_shard(given["shard"]),
        store=given["store"],
        update=given["update"],
    )
    if given["dry_run"]:
        return _dry_run(request, given["out"], execution, as_json=given["json"])
    with progress_bar() as move:
        worked = score(request, given["out"], execution, progress=move)
    results = RunResults.read(given["out"], store=given["store"])
    if execution.shard is None:
        _write_report(given["out"], results)
    if given["json"]:
        print_json(results.to_json())
    else:
        _print(results, given["out"])
        if execution.shard is not None:
            note(f"this is shard {given['shard']}; when all are done: gen-eval merge SHARD... --out RUN")
    if not worked.scored:
        note(f"nothing was left to do: all {worked.kept} samples were scored before")
    return results.exit_code


def _request(track: Literal["quality", "control"], given: dict[str, Any]) -> ScoreRequest:
    from api.services.request import ScoreRequest
    from gen_eval.records import InputError
    from gen_eval.settings import settings

    if given["data"] is not None and given["samples"] is not None:
        raise InputError("give --data or --samples, not both")
    if given["media"] is not None and given["data"] is None and given["samples"] is None:
        raise InputError("--media says what the paths of --samples are relative to; give --samples too")
    return ScoreRequest(
        track=track,
        videos=given["videos"],
        data=given["data"] or given["samples"],
        media=given["media"],
        layout="samples-file" if given["samples"] is not None else given["layout"],
        signals=given.get("signals"),
        model=given["model"],
        metrics=options.names(given["metrics"]),
        protocol=given["protocol"],
        preset=given["preset"],
        seeds=options.names(given["seeds"]),
        domains=options.names(given["domains"]),
        limit=given["limit"],
        chunk=given["chunk"] or settings().chunk,
        device=given["device"] or settings().device,
        dtype=given["dtype"],
        compile=given["compile"],
        condition=given.get("condition"),
    )


def _write_report(out: Path, results: Any) -> None:
    from api.services.reporting import write_report

    write_report([results], out / "report.html")


def _print(results: Any, out: Path) -> None:
    from api.cli.tables import print_problems, print_published, print_summary

    to = console()
    print_summary(to, results)
    print_published(to, [results])
    print_problems(to, results)
    if (out / "report.html").is_file():
        to.print(f"report: {out / 'report.html'}", markup=False, soft_wrap=True)


def _dry_run(request: ScoreRequest, out: Path, execution: Any, *, as_json: bool) -> int:
    from api.cli.tables import print_forecast
    from api.services.forecast import forecast

    expected = forecast(request, out, execution)
    if as_json:
        print_json(expected.to_json())
    else:
        print_forecast(console(), expected)
    return 0
