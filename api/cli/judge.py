"""`gen-eval judge`: one question, what a judge is worth, how far judges agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS

if TYPE_CHECKING:
    from api.services.judging import Calibrated

app = typer.Typer(no_args_is_help=True, help="Judges: ask one, calibrate one, compare several.", rich_markup_mode=None)

_Judge = Annotated[str, typer.Option(help="Name of a judge or a model, or a .yaml file.")]
_Prompt = Annotated[str | None, typer.Option(help="Prompt of the judge, or a .yaml; default: its own.")]
_Preset = Annotated[str | None, typer.Option(help="What the judge is shown; default: its own.")]
_Device = Annotated[str | None, typer.Option(help="Where a judge in this process runs; default: GEN_EVAL_DEVICE.")]
_Dtype = Annotated[str | None, typer.Option(help="Number format of a judge in this process.")]


@app.callback()
def _judge() -> None:
    pass


@app.command()
@door
def ask(
    question: Annotated[str, typer.Option(help="A question that is answered by yes or no.")],
    judge: _Judge,
    video: Annotated[Path | None, typer.Argument(help="The clip; without one the question is asked alone.")] = None,
    endpoint: options.Endpoint = None,
    served_as: options.ServedAs = None,
    prompt: _Prompt = None,
    preset: _Preset = None,
    logprobs: Annotated[
        int | None, typer.Option(min=1, max=20, help="Ask for so many alternatives of each token.")
    ] = None,
    device: _Device = None,
    dtype: _Dtype = None,
    json: options.Json = False,
) -> int:
    """Ask one question about one video.

    Shows the reply, what it says by which rule, tokens, cost, and what was shown.
    """
    from api.services.judging import ask_one
    from gen_eval.settings import settings

    found = ask_one(
        video,
        question,
        judge=judge,
        endpoint=endpoint,
        served_as=served_as,
        prompt=prompt,
        preset=preset,
        logprobs=logprobs,
        device=device or settings().device,
        dtype=dtype,
    )
    if json:
        print_json(found)
    else:
        _print_asked(found)
    if found["judge"]["simulated"]:
        note("this judge is simulated: it did not look, and knows nothing of this video")
    return EXIT_DONE if found["reading"]["failure"] is None else EXIT_FAILED_ITEMS


def _print_asked(found: dict[str, Any]) -> None:
    to, reading, shown = console(), found["reading"], found["shown"]
    said = reading["value"] if reading["failure"] is None else f"nothing that can be read ({reading['failure']})"
    usage = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found["usage"].items())
    cost = "not known" if found["cost"] is None else f"{found['cost']:.6g} {found['currency']}"
    chance = "" if found["yes_probability"] is None else f"{found['yes_probability']:.4f}"
    size = f"{shown.get('width')}x{shown.get('height')}"
    frames = f"{shown.get('frames')} frames of {size}, {shown.get('form')}, preset {shown.get('preset')}"
    lines = {
        "judge": f"{found['judge']['title']} ({found['judge']['identity']['model']})",
        "prompt": found["prompt"]["name"],
        "shown": frames if "frames" in shown else (shown.get("form") or "nothing"),
        "unusual": ", ".join(found["flags"]),
        "reply": found["reply"],
        "says": f"{said}, by rule {reading['rule']}",
        "chance of yes": chance,
        "without effect": ", ".join(shown.get("ignored") or ()),
        "tokens": usage or "not told",
        "cost": cost,
        "took": f"{found['seconds']:.2f} s, {found['attempts']} request(s)",
    }
    for name, text in lines.items():
        if text:
            to.print(f"{name + ':':15} {text}", markup=False, soft_wrap=True)


@app.command()
@door
def calibrate(
    judge: _Judge,
    out: options.Out,
    scenes: Annotated[int, typer.Option(min=2, help="Scenes; each is shown as it should be and broken.")] = 16,
    repeats: Annotated[int, typer.Option(min=0, help="How often each question is asked again.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first scene of each kind.")] = 0,
    endpoint: options.Endpoint = None,
    served_as: options.ServedAs = None,
    prompt: _Prompt = None,
    preset: _Preset = None,
    device: _Device = None,
    dtype: _Dtype = None,
    json: options.Json = False,
) -> int:
    """Ask a judge about scenes whose truth is known.

    It is asked with the right video, without one, with another scene's, with the two words in the other order, and
    again. The same command goes on where it was stopped.
    """
    from api.services.judging import CalibrationRequest, calibrate_judge
    from api.services.wording import tally_line
    from gen_eval.settings import settings

    request = CalibrationRequest(
        judge=judge,
        endpoint=endpoint,
        served_as=served_as,
        prompt=prompt,
        preset=preset,
        scenes=scenes,
        repeats=repeats,
        seed=seed,
        device=device or settings().device,
        dtype=dtype,
    )
    with progress_bar() as move:
        found = calibrate_judge(request, out, progress=move)
    if json:
        print_json(found.to_json())
    else:
        _print_calibration(found, out)
    note(tally_line(found.tally) if found.tally.requests else "nothing was left to ask")
    return EXIT_FAILED_ITEMS if found.calibration.failed else EXIT_DONE


def _print_calibration(found: Calibrated, out: Path) -> None:
    from rich.table import Table

    table = Table(title=f"{found.judge.title}: {found.clips} clips, preset {found.preset.name}", title_justify="left")
    table.add_column("estimate")
    for column in ("value", "95 % interval", "n", "scenes"):
        table.add_column(column, justify="right")
    named = {f"accuracy, flaw {name}": one for name, one in found.calibration.by_flaw.items()}
    for name, one in {**found.calibration.estimates, **named}.items():
        ends = "-" if one.lower is None else f"{one.lower:.3f} to {one.upper:.3f}"
        value = "-" if one.value is None else f"{one.value:.3f}"
        table.add_row(name.replace("_", " "), value, ends, str(one.n), str(one.scenes))
    to = console()
    to.print(table)
    to.print(found.sentence, markup=False, soft_wrap=True)
    sure = found.confidence
    if sure.brier is not None:
        error = f"expected calibration error {sure.error:.3f}, Brier score {sure.brier:.3f}"
        to.print(f"log-probabilities: {error} ({sure.n} answers, {sure.absent} without)", markup=False)
    if found.calibration.failed:
        failed = ", ".join(f"{count} {reason}" for reason, count in found.calibration.failed.items())
        to.print(f"without a reply: {failed}; the same command asks them again", markup=False, soft_wrap=True)
    spent = found.calibration.spent
    if spent.prompt_tokens is not None or spent.completion_tokens is not None:
        tokens = f"{spent.prompt_tokens or 0:,} tokens in and {spent.completion_tokens or 0:,} out"
        cost = "" if spent.cost is None else f", cost {spent.cost:.4g} {found.currency}"
        to.print(f"in all: {spent.answers} answers, {tokens}{cost}", markup=False)
    to.print(f"estimates: {out / 'calibration.json'}", markup=False, soft_wrap=True)


@app.command()
@door
def agree(
    runs: Annotated[list[Path], typer.Argument(help="Runs of `score domain` on the same videos, one a judge.")],
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """How far judges agree.

    Share of equal answers and Cohen's kappa of every two, overall and by domain.
    """
    from api.services.judging import agree as compared

    found = compared(runs, store=store)
    if json:
        print_json(found)
        return EXIT_DONE
    from rich.table import Table
    from rich.text import Text

    table = Table(title="answers of judges, two by two", title_justify="left")
    for column in ("judges", "domain"):
        table.add_column(column)
    for column in ("agreement", "95 % interval", "kappa", "95 % interval", "n", "samples", "unread"):
        table.add_column(column, justify="right")
    for pair in found["pairs"]:
        for domain, one in {"all": pair["overall"], **pair["by_domain"]}.items():
            table.add_row(*map(Text, [f"{pair['a']}, {pair['b']}", domain, *_agreement_cells(one)]))
        table.add_section()
    console().print(table)
    for judge, count in found["left_out"].items():
        if count:
            note(f"{judge}: {count} answers to questions whose key is neither yes nor no are left out")
    return EXIT_DONE


def _agreement_cells(one: dict[str, Any]) -> list[str]:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    def ends(interval: dict[str, float] | None) -> str:
        return "-" if interval is None else f"{interval['lower']:.3f} to {interval['upper']:.3f}"

    kappa = number(one["kappa"]) if one["reason"] is None else f"- ({one['reason']})"
    counts = [str(one["n"]), str(one["samples"]), f"{one['unread_a']}, {one['unread_b']}"]
    return [number(one["raw"]), ends(one["raw_interval"]), kappa, ends(one["kappa_interval"]), *counts]
