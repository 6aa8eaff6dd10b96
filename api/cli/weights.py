"""`gen-eval weights`: the networks' checkpoints."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar

app = typer.Typer(
    no_args_is_help=True, help="Checkpoints of the networks, their licences and digests.", rich_markup_mode=None
)

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAMES]…", help="Checkpoints, metrics or a track.")]
Scope = Annotated[str | None, typer.Option("--for", help="All of a track (quality, control) or a metric.")]


class Format(StrEnum):
    """What a checkpoint can be converted to."""

    SAFETENSORS = "safetensors"


@app.command("list")
@door
def list_weights(scope: Scope = None, json: options.Json = False) -> int:
    """All checkpoints and language models. With what they are for, size, licence, and whether they are here."""
    from api.services.models import list_models
    from api.services.weights import list_checkpoints
    from gen_eval.weights.digests import weights_folder

    entries, models = list_checkpoints(scope), [] if scope else list_models()
    if json:
        print_json({"weights": entries, "models": models})
        return 0
    _print_checkpoints(entries)
    to = console()
    to.print(f"weights folder: {weights_folder()} (GEN_EVAL_WEIGHTS)", soft_wrap=True, markup=False)
    if models:
        _print_models(models)
    return 0


def _print_checkpoints(entries: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table()
    for column in ("checkpoint", "track", "used by", "size", "licence", "commercial", "here", "digest"):
        table.add_column(column, justify="right" if column == "size" else "left")
    for entry in entries:
        table.add_row(
            entry["id"],
            entry["track"],
            ", ".join(entry["used_by"]),
            _megabytes(entry["size"]),
            entry["licence"],
            entry["commercial"],
            entry["where"] or "no",
            entry["digest"] or ("published" if entry["digest_published"] else "pinned on first use"),
        )
    console().print(table)


def _print_models(models: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table()
    for column in ("language model", "id", "size", "licence", "commercial"):
        table.add_column(column, overflow="fold")
    for model in models:
        table.add_row(*(model[key] or "unknown" for key in ("name", "id", "size", "licence", "commercial")))
    to = console()
    to.print(table)
    to.print("language models are fetched by what runs them; see docs/models.md", soft_wrap=True, markup=False)


@app.command()
@door
def fetch(
    names: Names = None,
    scope: Scope = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept terms that forbid or may forbid commercial use.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Download checkpoints, by default all of the quality track. Goes on where an earlier call stopped."""
    from api.services.weights import fetch as fetch_weights

    with progress_bar() as move:
        lines = fetch_weights(names or (), scope, accept_licence=accept_licence, progress=move, say=note)
    failed = [line for line in lines if line["status"] == "failed"]
    if json:
        print_json({"weights": lines, "failed": len(failed)})
        return 1 if failed else 0
    to = console()
    for line in lines:
        to.print(f"{line['id']}: {line['message'] or line['status']}", soft_wrap=True, markup=False)
    return 1 if failed else 0


@app.command()
@door
def verify(
    names: Names = None,
    scope: Scope = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Accept the digests that are here in place of pinned ones.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Read checkpoints and compare digests, names and shapes. Exit code 1 when something differs or is absent."""
    from api.services.weights import verify as verify_weights

    with progress_bar(quiet=json) as move:
        lines = verify_weights(names or (), scope, repin=pin, progress=move)
    wrong = [line for line in lines if line["status"] != "ok"]
    if json:
        print_json({"weights": lines, "wrong": len(wrong)})
    else:
        _print_verified(lines)
    return 1 if wrong else 0


def _print_verified(lines: list[dict[str, Any]]) -> None:
    to = console()
    for line in lines:
        if line["status"] == "absent":
            to.print(f"{line['id']}: absent; `gen-eval weights fetch {line['id']}`", soft_wrap=True, markup=False)
            continue
        facts = f"{line['status']}; digest {line['digest']}; names: {line['names']}"
        to.print(f"{line['id']}: {facts}\n  {line['file']} SHA-256 {line['sha256']}", soft_wrap=True, markup=False)
        for problem in line["problems"]:
            to.print(f"  {problem}", soft_wrap=True, markup=False)


@app.command()
@door
def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or a checkpoint whose file is here.")],
    to: Annotated[Format, typer.Option(help="Format to write.")] = Format.SAFETENSORS,
    out: Annotated[Path | None, typer.Option(help="File to write; default: beside FILE, where it is found.")] = None,
    key: Annotated[str | None, typer.Option(help="Entry that holds the tensors; default: as catalogued.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Convert although nobody knows the file's digest.")] = False,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds after which the converter is ended.")] = 900,
    memory: Annotated[
        int | None, typer.Option(min=1, help="Megabytes that the converter may use; default: by the file's size.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Write the tensors of a published file as safetensors. In a process of its own, without network."""
    from api.services.weights import convert as convert_weights

    made = convert_weights(
        file, out=out, key=key, trust=trust, seconds=timeout, memory=memory * 1_000_000 if memory else None
    )
    if json:
        print_json(made)
        return 0
    console().print(
        f"{made['tensors']} tensors in {made['path']}, SHA-256 {made['result']['sha256']}", soft_wrap=True, markup=False
    )
    return 0


def _megabytes(size: int | None) -> str:
    if size is None:
        return "unknown"
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
