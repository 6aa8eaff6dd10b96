"""`gen-eval demo` and `gen-eval doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json, progress_bar

if TYPE_CHECKING:
    from rich.console import Console


@door
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that the demonstration makes.")] = Path(
        "gen-eval-demo"
    ),
    workers: options.Workers = 0,
    json: options.Json = False,
) -> int:
    """Render, score, judge, compare and report built-in scenes.

    Three models made by the simulator, a simulated judge and simulated voters; needs no download.
    """
    from api.cli.tables import print_comparison, print_leaderboard, print_problems
    from api.cli.tables_of_arena import print_people
    from api.services.demonstration import demonstrate

    with progress_bar() as move:
        made = demonstrate(out, workers=workers, progress=move, say=note)
    if json:
        runs = {f"{run.model}-{run.manifest['track']}": run.to_json() for run in made.runs}
        print_json(
            {
                "runs": runs,
                "comparison": made.comparison.to_json(),
                "people": made.people.to_json(),
                "votes": str(made.votes),
                "report": str(made.report),
            }
        )
        return 0
    to = console()
    print_leaderboard(to, made.runs)
    for other in made.comparison.others:
        print_comparison(to, made.comparison, other)
    to.print("\nOne video of the model jumpy was deleted and one cut short on purpose; this is what becomes of them:")
    print_problems(to, next(run for run in made.runs if run.model == "jumpy"))
    to.print(f"\nVotes in {made.votes} are drawn, nobody looked; this is what becomes of votes:", soft_wrap=True)
    print_people(to, made.people)
    to.print(f"\nreport: {made.report}")
    return 0


@door
def doctor(json: options.Json = False) -> int:
    """What this installation can do. Shows versions, extras, cores, weights, and tries decoder, store, plug-ins."""
    from api.services.diagnosis import diagnose

    found = diagnose()
    if json:
        print_json(found)
        return 0 if found["healthy"] else 1
    to = console()
    for name, value in found["versions"].items():
        to.print(f"{name} {value}")
    to.print(f"cores: {found['cores']}, workers: {found['workers']}")
    for extra, state in found["extras"].items():
        to.print(f"extra {extra}: {state}", markup=False)
    _print_networks(to, found["networks"])
    for check in found["checks"]:
        to.print(
            f"{'ok' if check['ok'] else 'FAILED'}: {check['name']}: {check['message']}", soft_wrap=True, markup=False
        )
    return 0 if found["healthy"] else 1


def _print_networks(to: Console, networks: Mapping[str, Any]) -> None:
    to.print(f"networks run on: {networks['device']}")
    to.print(f"weights folder: {networks['weights_folder']}", soft_wrap=True, markup=False)
    for track, found in networks["tracks"].items():
        here, absent = found["here"], found["absent"]
        to.print(f"weights of the {track} track: {len(here)} of {len(here) + len(absent)} here", markup=False)
        if absent:
            command = f"gen-eval weights fetch {' '.join(absent)}"
            to.print(f"weights that are not here: `{command}`", soft_wrap=True, markup=False)
