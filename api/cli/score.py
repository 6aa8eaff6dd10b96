"""`gen-eval score quality` and `gen-eval score control`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar
from api.cli.taking import taking

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

_JUDGED = ("out", "samples", "media", "layout", "model", "protocol", "seeds", "domains", "limit", "device", "shard")
_OF_DOMAIN: dict[str, tuple[Any, Any]] = {
    "videos": (Annotated[Path | None, typer.Option(help="Folder of generated videos, named {id}__{seed}.mp4.")], None),
    "data": (options.Data, None),
    "questions": (
        Annotated[Path | None, typer.Option(help="Questions (folder vqa/ or JSON lines), when not in --data.")],
        None,
    ),
    "judge": (Annotated[str | None, typer.Option(help="Name of a judge or a model, or a .yaml file.")], None),
    "endpoint": (options.Endpoint, None),
    "served_as": (options.ServedAs, None),
    "predictions": (
        Annotated[Path | None, typer.Option(help="Replies of a judge that exist already; nobody is asked.")],
        None,
    ),
    "prompt": (Annotated[str | None, typer.Option(help="Prompt of the judge, or a .yaml; default: its own.")], None),
    "preset": (Annotated[str | None, typer.Option(help="What the judge is shown; default: its own.")], None),
    "without_video": (
        Annotated[bool, typer.Option("--without-video", help="Ask every question without a video too.")],
        False,
    ),
    "shuffled": (
        Annotated[bool, typer.Option("--shuffled", help="Ask every question about another sample's video too.")],
        False,
    ),
    "logprobs": (
        Annotated[int | None, typer.Option(min=1, max=20, help="Ask for log-probabilities: a soft score beside.")],
        None,
    ),
    "dtype": (Annotated[str | None, typer.Option(help="Number format of a judge in this process.")], None),
    "store": (options.Store, None),
    "update": (Update, False),
    "dry_run": (DryRun, False),
    "json": (options.Json, False),
}

_OF_CONTROL: dict[str, tuple[Any, Any]] = {"signals": (Signals, None), "condition": (Condition, None)}


@app.command()
@door
@taking(_COMMON)
def quality(**given: Any) -> int:
    """PAI-Bench-G quality; no reference video is needed. `gen-eval weights fetch` brings the networks."""
    return _score("quality", given)


@app.command()
@door
@taking(_COMMON | _OF_CONTROL)
def control(**given: Any) -> int:
    """PAI-Bench-C: control fidelity, visual quality, diversity.

    Each clip is held against the reference video of its sample. Depth maps and masks are read where they are given
    (--signals, --data) and made by networks where they are not.
    """
    return _score("control", given)


@app.command()
@door
@taking({name: _COMMON[name] for name in _JUDGED} | _OF_DOMAIN)
def domain(**given: Any) -> int:
    """PAI-Bench-G domain score, by a judge that answers questions.

    It answers yes or no to questions about each video. --judge asks one (nothing is asked twice), --predictions scores
    replies that exist.
    """
    from api.services.domain import Judging, score_domain, score_replies
    from api.services.results import RunResults
    from api.services.scoring import parse_shard
    from api.services.wording import tally_line

    request = _domain_request(given)
    how = Judging(
        shard=None if given["shard"] is None else parse_shard(given["shard"]),
        store=given["store"],
        update=given["update"],
    )
    if given["dry_run"]:
        return _domain_dry_run(request, as_json=given["json"])
    with progress_bar() as move:
        work = score_replies if request.predictions is not None else score_domain
        worked = work(request, given["out"], how, progress=move)
    results = RunResults.read(given["out"], store=given["store"])
    if how.shard is None:
        _write_report(given["out"], results)
    if given["json"]:
        print_json(results.to_json())
    else:
        _print_domain(results, given["out"])
        if how.shard is not None:
            note(f"this is shard {given['shard']}; when all are done: gen-eval merge SHARD... --out RUN")
    if not worked.asked:
        note(f"nothing was left to do: all {worked.kept} samples were judged before")
    elif worked.tally is not None:
        note(tally_line(worked.tally))
    return results.exit_code


def _domain_request(given: dict[str, Any]) -> Any:
    from api.services.domain import DomainRequest
    from gen_eval.records import InputError
    from gen_eval.settings import settings

    if (given["data"] is None) == (given["samples"] is None):
        raise InputError("give --data or --samples (a benchmark, or judge questions as JSON lines), one of them")
    beside = {"without_video": given["without_video"], "shuffled": given["shuffled"]}
    return DomainRequest(
        videos=given["videos"],
        data=given["data"] or given["samples"],
        questions=given["questions"],
        media=given["media"],
        layout=given["layout"],
        model=given["model"],
        judge=given["judge"],
        endpoint=given["endpoint"],
        served_as=given["served_as"],
        predictions=given["predictions"],
        prompt=given["prompt"],
        preset=given["preset"],
        protocol=given["protocol"],
        conditions=tuple(name for name, asked in beside.items() if asked),
        logprobs=given["logprobs"],
        seeds=options.names(given["seeds"]),
        domains=options.names(given["domains"]),
        limit=given["limit"],
        device=given["device"] or settings().device,
        dtype=given["dtype"],
    )


def _print_domain(results: Any, out: Path) -> None:
    from api.cli.tables_of_answers import print_answers

    _print(results, out)
    print_answers(console(), results)


def _domain_dry_run(request: Any, *, as_json: bool) -> int:
    from api.services.domain.forecast import forecast

    expected = forecast(request)
    if as_json:
        print_json(expected)
    else:
        for name, value in expected.items():
            console().print(f"{name.replace('_', ' ')}: {value}", markup=False, soft_wrap=True)
    return 0


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
