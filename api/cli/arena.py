"""`gen-eval arena`: votes become ratings, and scores are measured against people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

from api.cli import options
from api.cli.door import console, door, note, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from api.services.arena import Outputs

app = typer.Typer(
    no_args_is_help=True, help="Human study: votes, ratings, agreement, correlation.", rich_markup_mode=None
)

_Votes = Annotated[Path, typer.Option(help="Votes: .csv, .jsonl(.gz) or .parquet (docs/files.md).")]
_MaybeVotes = Annotated[Path | None, typer.Option(help="Votes: .csv, .jsonl(.gz) or .parquet (docs/files.md).")]
_Protocol = Annotated[str, typer.Option(help="reference, corrected, or a .yaml.")]
_ScoresProtocol = Annotated[
    str | None, typer.Option(help="Protocol of the scores; default: the same, corrected with one's own .yaml.")
]
_Method = Annotated[
    Literal["bradley-terry", "elo"] | None, typer.Option(help="Default: bradley-terry; elo under reference.")
]
_Order = Annotated[
    Literal["given", "time", "mean"] | None,
    typer.Option(help="Order of the votes for elo; mean: over random orders (default), given under reference."),
]
_K = Annotated[float | None, typer.Option(help="Points at stake in a vote, for elo; default 32.")]
_Permutations = Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Random orders for elo; default 100.")]
_Ties = Annotated[
    Literal["half", "davidson"] | None,
    typer.Option(help="A tie is half a win (default), or has a probability of its own (Davidson)."),
]
_Ridge = Annotated[
    float | None,
    typer.Option(min=0.0, help="Weight of the squared strengths, for votes whose maximum is not finite; default 0."),
]
_Side = Annotated[bool, typer.Option("--side", help="Fit what standing on the left (or first) is worth, too.")]
_PairFloor = Annotated[
    int | None, typer.Option(min=1, help="Weigh each vote by 1 / max(votes of its pair, N); default: equal weights.")
]
_Interval = Annotated[
    Literal["bootstrap", "sandwich"] | None,
    typer.Option(metavar="<name>", help="bootstrap or sandwich intervals (bradley-terry gives both; these first)."),
]
_Clusters = Annotated[
    Literal["votes", "samples", "annotators"] | None,
    typer.Option(
        metavar="<unit>",
        help="Independent are votes, samples or annotators; default: votes if each judged a sample once, else samples.",
    ),
]
_Resamples = Annotated[
    int | None, typer.Option(min=0, max=1_000_000, help="Of each bootstrap; default 10,000 (elo 1,000), 0 for none.")
]
_Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn.")]
_Real = Annotated[
    list[str] | None, typer.Option(help="A system that is real videos (may be repeated); default: Source Videos.")
]
_Metrics = Annotated[str | None, typer.Option(help="Only these metrics, separated by commas.")]
_LowerIsBetter = Annotated[
    list[str] | None,
    typer.Option(help="A metric of the scores that is an error (may be repeated); those built in are known."),
]
_Report = Annotated[Path | None, typer.Option(help="Write .html, .json, .csv or .tex.")]
_Plots = Annotated[Path | None, typer.Option(help="Folder for the plots.")]
_PlotFormat = Annotated[Literal["svg", "png"], typer.Option(help="Form of the plots.")]
_Tracker = Annotated[
    Literal["quality", "plausibility", "overall"],
    typer.Option(metavar="<name>", help="Ratings of quality, plausibility or overall."),
]


@app.callback()
def _arena() -> None:
    pass


@app.command()
@door
def rate(
    votes: _MaybeVotes = None,
    protocol: _Protocol = "corrected",
    scores_protocol: _ScoresProtocol = None,
    method: _Method = None,
    order: _Order = None,
    k: _K = None,
    permutations: _Permutations = None,
    ties: _Ties = None,
    ridge: _Ridge = None,
    side: _Side = False,
    pair_floor: _PairFloor = None,
    interval: _Interval = None,
    clusters: _Clusters = None,
    resamples: _Resamples = None,
    seed: _Seed = 0,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="Run folder or file with scores of videos: an automatic arena a metric (may be repeated)."),
    ] = None,
    metrics: _Metrics = None,
    tie_threshold: Annotated[
        float | None, typer.Option(min=0.0, help="Scores of two videos that differ by no more are a tie; default 0.")
    ] = None,
    lower_is_better: _LowerIsBetter = None,
    real: _Real = None,
    out: _Report = None,
    plots: _Plots = None,
    plot_format: _PlotFormat = "svg",
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """Ratings of systems from votes, or from scores of their videos.

    Each question has ratings of its own, and so has overall. Lines that are no votes are listed; exit code 1 then.
    """
    from api.cli.tables_of_arena import print_ratings
    from api.services import arena

    arena.check_destinations(out, plots, (votes, *(scores or ())), endings=arena.REPORTS)
    rules = arena.RatingRules(
        protocol=protocol,
        scores_protocol=scores_protocol,
        method=method,
        order=order,
        k=k,
        permutations=permutations,
        ties=ties,
        ridge=ridge,
        side=side or None,
        pair_floor=pair_floor,
        interval=interval,
        clusters=clusters,
        resamples=resamples,
        seed=seed,
    )
    request = arena.RateRequest(
        votes=votes,
        rules=rules,
        scores=tuple(scores or ()),
        metrics=options.names(metrics),
        tie_threshold=tie_threshold,
        real=tuple(real or arena.REAL),
        store=store,
        lower_is_better=tuple(lower_is_better or ()),
    )
    found = arena.rate(request)
    _write(partial(arena.rating_outputs, found), out, plots, plot_format)
    return _end(found, json, print_ratings)


@app.command()
@door
def correlate(
    scores: Annotated[list[Path], typer.Option(help="File of scores, or run folder (may be repeated).")],
    ratings: Annotated[
        Path | None, typer.Option(help="Ratings: .csv, .jsonl, .parquet, or what `rate --json` prints.")
    ] = None,
    votes: _MaybeVotes = None,
    column: Annotated[str | None, typer.Option(help="Which ratings, when a file has several (elo, bt, …).")] = None,
    protocol: _Protocol = "corrected",
    scores_protocol: _ScoresProtocol = None,
    method: _Method = None,
    order: _Order = None,
    ridge: _Ridge = None,
    clusters: _Clusters = None,
    metrics: _Metrics = None,
    tie_threshold: Annotated[
        float | None,
        typer.Option(min=0.0, help="Scores that differ by no more are a tie; default: found by cross-validation."),
    ] = None,
    lower_is_better: _LowerIsBetter = None,
    real: _Real = None,
    resamples: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Of each bootstrap; default 10,000.")
    ] = None,
    seed: _Seed = 0,
    out: _Report = None,
    plots: _Plots = None,
    plot_format: _PlotFormat = "svg",
    store: options.Store = None,
    json: options.Json = False,
) -> int:
    """How far scores agree with people.

    Over systems: ratings against scores of the same name, and all metrics side by side. With --votes also over votes:
    whether a metric prefers the video that people prefer.
    """
    from api.cli.tables_of_arena import print_correlations
    from api.services import arena

    arena.check_destinations(out, plots, (votes, ratings, *scores), endings=arena.REPORTS)
    rules = arena.RatingRules(
        protocol=protocol,
        scores_protocol=scores_protocol,
        method=method,
        order=order,
        ridge=ridge,
        clusters=clusters,
        seed=seed,
        resamples=resamples,
    )
    request = arena.CorrelateRequest(
        scores=tuple(scores),
        ratings=ratings,
        votes=votes,
        rules=rules,
        column=column,
        real=tuple(real or arena.REAL),
        metrics=options.names(metrics),
        tie_threshold=tie_threshold,
        resamples=10_000 if resamples is None else resamples,
        seed=seed,
        store=store,
        lower_is_better=tuple(lower_is_better or ()),
    )
    found = arena.correlate_scores(request)
    _write(partial(arena.correlation_outputs, found), out, plots, plot_format)
    return _end(found, json, print_correlations)


@app.command()
@door
def agree(
    votes: _Votes,
    resamples: Annotated[int, typer.Option(min=0, max=1_000_000, help="Of each bootstrap; 0 for none.")] = 10_000,
    seed: _Seed = 0,
    out: _Report = None,
    plots: _Plots = None,
    plot_format: _PlotFormat = "svg",
    json: options.Json = False,
) -> int:
    """How far annotators agree, and how votes are spread.

    Agreement between people and with themselves, what each annotator does, votes by system and pair.
    """
    from api.cli.tables_of_arena import print_agreement
    from api.services import arena

    arena.check_destinations(out, plots, (votes,), endings=arena.AGREEMENT_REPORTS)
    found = arena.agreement_of_votes(votes, resamples=resamples, seed=seed)
    _write(partial(arena.agreement_outputs, found), out, plots, plot_format)
    return _end(found, json, print_agreement)


@app.command("next")
@door
def next_votes(
    votes: _Votes,
    tracker: _Tracker = "overall",
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many pairs.")] = 10,
    goal: Annotated[
        Literal["widest", "ranking"],
        typer.Option(help="Where the difference is least known, or neighbours whose order is open."),
    ] = "widest",
    each: Annotated[
        int | None, typer.Option(min=1, help="Votes that a line stands for; default: a tenth of what a pair has.")
    ] = None,
    clusters: _Clusters = None,
    json: options.Json = False,
) -> int:
    """Which pairs to ask next, and on which samples."""
    from api.cli.tables_of_arena import print_suggestions
    from api.services import arena

    found = arena.next_votes(votes, tracker, count=count, goal=goal, each=each, clusters=clusters)
    return _end(found, json, print_suggestions)


@app.command()
@door
def power(
    votes: _Votes,
    tracker: _Tracker = "overall",
    a: Annotated[str | None, typer.Option(help="One system; default: all neighbours in the ranking.")] = None,
    b: Annotated[str | None, typer.Option(help="The other system.")] = None,
    power: Annotated[float, typer.Option(min=0.5, max=0.999, help="Chance that the votes shall separate them.")] = 0.8,
    level: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the interval that shall leave out 0.")] = 0.95,
    clusters: _Clusters = None,
    json: options.Json = False,
) -> int:
    """How many more votes separate two systems."""
    from api.cli.tables_of_arena import print_power
    from api.services import arena

    found = arena.votes_needed(votes, tracker, a, b, power=power, level=level, clusters=clusters)
    return _end(found, json, print_power)


def _write(made: Callable[[], Outputs], out: Path | None, plots: Path | None, plot_format: str) -> None:
    """Write the report and the plots that were asked for; nothing is made for them when none is."""
    from api.services import arena

    if out is None and plots is None:
        return
    outputs = made()
    if out is not None:
        arena.write_output(outputs, out)
        note(f"report: {out}")
    if plots is not None:
        written = arena.write_plots(outputs, plots, plot_format)
        note(f"plots: {', '.join(map(str, written)) or 'none, there is nothing to draw'}")


class _Found(Protocol):
    @property
    def exit_code(self) -> int: ...

    def to_json(self) -> dict[str, Any]: ...


_Any = TypeVar("_Any", bound=_Found)


def _end(found: _Any, json: bool, show: Callable[[Console, _Any], None]) -> int:
    """Print what was found, as JSON or as tables, and give its exit code."""
    if json:
        print_json(found.to_json())
    else:
        show(console(), found)
    return found.exit_code


__all__ = ["app"]
