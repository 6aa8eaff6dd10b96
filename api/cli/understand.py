"""`gen-eval understand`: tasks for vision-language models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar
from api.cli.taking import taking
from api.cli.understand_options import ASKED, Dialect, Name, Protocol, TaskData

if TYPE_CHECKING:
    from api.services.understanding.documents import ModelScores
    from api.services.understanding.request import TaskRequest

app = typer.Typer(
    no_args_is_help=True,
    help="Ask models the questions of a task; score replies.",
    rich_markup_mode=None,
)

MaybeOut = Annotated[Path | None, typer.Option(help="Folder of a run that answers and rows are kept in.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]


@app.command("list")
@door
def tasks(json: options.Json = False) -> int:
    """The tasks, their protocols and forms of asking."""
    from api.services.understanding.inspecting import task_catalogue

    found = task_catalogue()
    if json:
        print_json({"tasks": found})
        return 0
    to = console()
    for one in found:
        to.print(f"{one['name']}: {one['title']}", markup=False)
        to.print(f"  metrics {', '.join(one['metrics'])}; protocols {', '.join(one['protocols'])}", markup=False)
        if one["dialects"]:
            to.print(f"  dialects of reference: {', '.join(one['dialects'])}", markup=False)
        for name, form in one["forms"].items():
            to.print(f"  {name} asks as {form['name']}, shows {form['preset']}", markup=False)
    return 0


@app.command()
@door
def score(
    task: Name,
    data: TaskData,
    predictions: Annotated[
        Path,
        typer.Option(help="Replies: .jsonl, a sample log of lmms-eval, or a table of VLMEvalKit (.csv, .tsv)."),
    ],
    out: MaybeOut = None,
    protocol: Protocol = "corrected",
    dialect: Dialect = None,
    media: options.Media = None,
    model: Annotated[str | None, typer.Option(help="Label of the model, in place of what the file says.")] = None,
    limit: options.Limit = None,
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """Score replies that exist already. Nobody is asked; both readings of every reply are kept."""
    from api.services.understanding.predicting import score_predictions

    found = score_predictions(
        task,
        data,
        predictions,
        out,
        protocol=protocol,
        dialect=dialect,
        media=media,
        model=model,
        limit=limit,
        store=store,
    )
    if out is not None:
        _write_reports(found.models, store)
    if json:
        print_json(found.to_json())
    else:
        for one in found.models:
            _print_model(one, "")
    return found.exit_code


@app.command()
@door
def parse(
    task: Name,
    reply: Annotated[str, typer.Option(help="The reply itself, or a file that holds it.")],
    sample: Annotated[
        Path | None, typer.Option(help="File with the question (.json, .jsonl); default: options A to D without texts.")
    ] = None,
    sample_id: Annotated[str | None, typer.Option("--id", help="Which line of --sample; default: the first.")] = None,
    json: options.Json = False,
) -> int:
    """Which rule reads what in a reply.

    By the shared reader, and by every dialect of public code.
    """
    from api.services.understanding.inspecting import parse_reply, reply_text

    found = parse_reply(task, reply_text(reply), sample, sample_id=sample_id)
    if json:
        print_json(found)
        return 0
    for one in found["readings"]:
        who = one["protocol"] if one["dialect"] is None else f"{one['protocol']}, {one['dialect']}"
        value = one["value"] if one["failure"] is None else f"nothing ({one['failure']})"
        flags = f" [{', '.join(one['flags'])}]" if one["flags"] else ""
        console().print(f"{who}: {value}, by {one['rule']}{flags}", markup=False, soft_wrap=True)
    return 0


_AS_GIVEN = (
    *("task", "data", "model", "label", "media", "protocol", "dialect", "preset", "rotations", "second_stage"),
    *("endpoint", "second_endpoint", "served_as", "limit", "dtype", "decoding", "temperature", "top_p"),
)


@app.command()
@door
@taking(ASKED)
def run(**given: Any) -> int:
    """Ask a model. Resumable: what was answered is kept and not asked again.

    Several numbers of frames, thinking on,off or several efforts are runs of their own in folders below --out, compared
    on the questions that both have.
    """
    from api.services.scoring import parse_shard
    from api.services.understanding.running import Working, run_task
    from api.services.wording import tally_line

    request, store = _request(given), given["store"]
    if given["dry_run"]:
        return _dry_run(request, as_json=given["json"])
    part = None if given["shard"] is None else parse_shard(given["shard"])
    how = Working(store=store, shard=part, update=given["update"])
    with progress_bar() as move:
        found = run_task(request, given["out"], how, progress=move)
    if part is not None:
        note(f"this is shard {given['shard']}; when all are done: gen-eval merge SHARD... --out RUN")
    _write_reports([one.scores for one in found.runs], store)
    if given["json"]:
        print_json(found.to_json())
    else:
        for one in found.runs:
            _print_model(one.scores, one.condition.words)
        for first, second, compared in found.comparisons():
            console().print(f"{second.words} against {first.words}: {_difference(compared)}", markup=False)
    _warn([one.scores for one in found.runs])
    note(tally_line(found.runs[-1].tally))
    return found.exit_code


def _request(given: dict[str, Any]) -> TaskRequest:
    from api.services.understanding.request import TaskRequest
    from gen_eval.settings import settings

    return TaskRequest(
        **{name: given[name] for name in _AS_GIVEN},
        frames=_numbers("frames", given["frames"]),
        thinking=_switches(given["thinking"]),
        efforts=options.names(given["effort"]) or (),
        seeds=_numbers("seeds", given["seeds"]),
        domains=options.names(given["domains"]),
        device=given["device"] or settings().device,
    )


def _warn(models: Sequence[ModelScores]) -> None:
    """Say on standard error what forbids to trust a number."""
    from api.services.understanding.remarks import further_warnings

    for text in dict.fromkeys(text for one in models for text in further_warnings(one.further)):
        note(text)


def _dry_run(request: TaskRequest, *, as_json: bool) -> int:
    from api.services.understanding.forecasting import forecast

    expected = forecast(request)
    if as_json:
        print_json(expected)
        return 0
    for name, value in expected.items():
        console().print(f"{name.replace('_', ' ')}: {value}", markup=False, soft_wrap=True)
    return 0


@app.command()
@door
def compare(
    first: Run,
    second: Run,
    protocol: Annotated[str | None, typer.Option(help="Compare under this protocol only; default: under all.")] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """A second run against a first, question by question.

    McNemar's exact test, and the paired difference with an interval over videos.
    """
    from api.services.results import RunResults
    from api.services.understanding.comparing import compare_runs

    runs = [RunResults.read(path, store=store) for path in (first, second)]
    found = compare_runs(*runs, protocol=protocol)
    if json:
        head = {name: {"model": run.model, "run": run.run} for name, run in zip(("first", "second"), runs, strict=True)}
        print_json({**head, "comparisons": [one.to_json() for one in found]})
        return 0
    for one in found:
        told = f"not compared, {one.why}" if one.found is None else _difference(one.found)
        console().print(f"{one.metric} ({one.protocol}): {told}", markup=False, soft_wrap=True)
    return 0


def _difference(found: Any) -> str:
    from api.services import wording

    one = found.difference
    ends = wording.span(one.lower, one.upper, "ratio")
    told = "no interval: too few videos" if ends == wording.NO_VALUE else f"95 % interval {ends}"
    text = f"{wording.difference(one.difference, 'ratio')} ({told}), n = {one.n}"
    if found.test is None:
        return text
    return f"{text}; right alone {found.test.only_second} and {found.test.only_first}, p = {found.test.p_value:.3g}"


def _numbers(name: str, given: str | None) -> tuple[int, ...]:
    from gen_eval.records import InputError

    try:
        return tuple(int(one) for one in options.names(given) or ())
    except ValueError:
        raise InputError(f"--{name} must be whole numbers separated by commas, not {given!r}") from None


def _switches(given: str | None) -> tuple[bool, ...]:
    from gen_eval.records import InputError

    words = options.names(given) or ()
    if unknown := [word for word in words if word not in {"on", "off"}]:
        raise InputError(f"--thinking must be on, off or on,off; not {unknown[0]!r}")
    return tuple(word == "on" for word in words)


def _write_reports(models: Sequence[ModelScores], store: str | None) -> None:
    """A report in the folder of each run."""
    from api.services.reporting import write_report
    from api.services.results import RunResults

    for one in models:
        if one.run is not None:
            write_report([RunResults.read(one.run, store=store)], one.run / "report.html")


def _print_model(scores: ModelScores, condition: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from api.services.understanding.remarks import floor_remark, further_remarks

    whole = scores.aggregate()
    given = f", {condition}" if condition else ""
    table = Table(title=Text(f"{scores.scorer.model}{given}: {whole}"), title_justify="left")
    for column in ("grouping", "group"):
        table.add_column(column)
    for column in ("accuracy", "right", "n of N", "unparsed", "95 % (Wilson)", "95 % (videos)"):
        table.add_column(column, justify="right")
    entries = [("all", "", whole.whole)]
    entries += [(way, name, one) for way, groups in whole.groups.items() for name, one in groups.items()]
    for way, name, one in entries:
        share = "–" if one.percent is None else f"{one.percent:.1f}"
        ends = [_ends(one.wilson), _ends(one.bootstrap)]
        table.add_row(
            *map(Text, (way, name, share, f"{one.correct:g}", f"{one.n} of {one.N}", str(one.unparsed), *ends))
        )
    to = console()
    to.print(table)
    for line in (*floor_remark(whole.floors), *_remarks(whole), *further_remarks(scores.further)):
        to.print(line, markup=False, soft_wrap=True)


def _ends(one: Any) -> str:
    return "–" if one is None else f"{100 * one.lower:.1f} … {100 * one.upper:.1f}"


def _remarks(whole: Any) -> list[str]:
    """What stands below the table."""
    lines = []
    if whole.unparsed:
        lines.append("unreadable: " + ", ".join(f"{name} {count}" for name, count in whole.unparsed.items()))
    if whole.coverage["without"]:
        lines.append("no reply: " + ", ".join(f"{name} {count}" for name, count in whole.coverage["without"].items()))
    for name in ("rejected", "unknown_sample", "no_truth"):
        if found := whole.coverage.get(name):
            lines.append(f"{name.replace('_', ' ')}: {len(found)}, first {found[0]['where']}: {found[0]['message']}")
    if whole.seeds is not None and whole.seeds["mean"] is not None:
        mean, spread = whole.seeds["mean"], whole.seeds["std"]
        lines.append(f"over seeds: mean {100 * mean:.1f} %, standard deviation {100 * spread:.1f} points")
    return lines
