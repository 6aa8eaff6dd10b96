"""Tables of the arena commands in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from api.cli.door import note
from api.services.arena.words import called

if TYPE_CHECKING:
    from rich.console import Console

    from api.services.arena import (
        AgreementOfVotes,
        ArenaRatings,
        Correlated,
        Correlations,
        PairCorrelation,
        Planned,
        Rated,
        TrackerRatings,
    )
    from gen_eval.records.reasons import Rejection

_LISTED = 10


def print_ratings(to: Console, found: Rated) -> None:
    """A table a tracker, of people and of each metric; what was rejected goes to standard error."""
    arenas = {**({} if found.ratings is None else {"": found.ratings}), **found.automatic}
    for metric, arena in arenas.items():
        for name in arena.trackers:
            _print_tracker(to, arena, name, metric)
    if found.ratings is not None and not found.ratings.trackers:
        to.print("no ratings: none of the lines is a vote")
    if found.votes is not None:
        _rejected((one.id, one.reason, one.message) for one in found.votes.rejected)


def _print_tracker(to: Console, arena: ArenaRatings, name: str, metric: str) -> None:
    """One tracker of people, or of the comparisons of ``metric``."""
    tracker = arena.trackers[name]
    votes = "comparisons" if metric else "votes"
    order = "" if arena.order is None else f", order {arena.order}"
    under = f", protocol {arena.options['protocol']}" if "protocol" in arena.options else ""
    title = f"{f'by {metric}' if metric else name}: {called(arena.method)}{order}{under}, "
    title += f"{tracker.n:,} of {arena.n_votes:,} {votes}"
    if tracker.reason is not None:
        to.print(f"{title}: no ratings ({tracker.reason}). {tracker.message}", markup=False, soft_wrap=True)
        return
    table = Table(title=Text(title), title_justify="left")
    table.add_column("system")
    for column in ("points", "interval", "rank", "ranks possible", votes):
        table.add_column(column, justify="right")
    for model in tracker.best_first:
        value, rank = tracker.ratings[model], tracker.ranks.get(model)
        places = ("", "") if rank is None else (str(rank.rank), _range(rank.best, rank.worst))
        ends = _ends(tracker.lower.get(model), tracker.upper.get(model), 1)
        count = f"{tracker.votes_of.get(model, 0):,}"
        table.add_row(*map(Text, (model, _number(value, 1), ends, *places, count)))
    to.print(table)
    for line in _remarks(tracker):
        _about(to, line)


def _remarks(tracker: TrackerRatings) -> Iterator[str]:
    yield tracker.interval.words if tracker.interval is not None else "no intervals"
    if tracker.side is not None:
        ends = _bracketed(tracker.side.lower, tracker.side.upper, 1)
        yield f"standing on the left (or first) is worth {tracker.side.value:.1f} points{ends}"
    if tracker.tie_parameter is not None:
        ends = _bracketed(tracker.tie_parameter.lower, tracker.tie_parameter.upper, 3)
        yield f"tie parameter nu {tracker.tie_parameter.value:.3f}{ends}"
    if tracker.order_spread:
        spreads = [(one.sd, one.highest - one.lowest) for one in tracker.order_spread.values()]
        (least, _), (most, _), widest = min(spreads), max(spreads), max(width for _, width in spreads)
        yield (
            f"over random orders of the same votes a rating has a standard deviation of {least:.1f} to {most:.1f} "
            f"points and a range of up to {widest:.1f}; {tracker.rankings} different rankings occur"
        )
    if tracker.message:
        yield tracker.message
    if tracker.without_votes:
        yield f"without a vote here: {', '.join(tracker.without_votes)}"


def print_people(to: Console, found: Correlated) -> None:
    """Ratings of the overall tracker, and the correlation of scores with ratings."""
    if found.ratings is not None and "overall" in found.ratings.trackers:
        _print_tracker(to, found.ratings, "overall", "")
    if found.correlations.pairs:
        _print_pairs(to, found.correlations)
    _note_rejected(found)


def print_correlations(to: Console, found: Correlated) -> None:
    """Ratings against scores, metrics side by side, and single votes."""
    if found.correlations.pairs:
        _print_pairs(to, found.correlations)
    for side, names in found.correlations.unpaired.items():
        if names:
            _about(to, f"{side} without a partner: {', '.join(names)}")
    for one in (*found.joint.values(), *found.comparisons.values(), *found.comparisons_joint.values()):
        to.print(Text(str(one)), soft_wrap=True)
    _print_by_vote(to, found)
    _about(to, f"scores under the protocol {found.scores_protocol}, where they have one")
    for line in found.notes:
        note(f"note: {line}")
    _note_rejected(found)


def _note_rejected(found: Correlated) -> None:
    """Lines of votes, ratings and scores that could not be used."""
    if found.votes is not None:
        _rejected((one.id, one.reason, one.message) for one in found.votes.rejected)
    _rejected((one.where, one.reason, one.message) for one in found.rejected)


def _print_pairs(to: Console, found: Correlations) -> None:
    table = Table(title="ratings against scores, over systems", title_justify="left")
    table.add_column("pair")
    for column in ("n", "Pearson", "95 % Fisher", "Spearman", "Kendall tau-b", "permutation p"):
        table.add_column(column, justify="right")
    table.add_column("without real videos")
    table.add_column("each system left out")
    for name, pair in found.pairs.items():
        if pair.reason is not None:
            table.add_row(Text(name), _of(pair.n, pair.named), Text(f"- ({pair.reason})"), *[""] * 6)
        else:
            table.add_row(*map(Text, _pair_cells(name, pair)))
    to.print(table)


def _pair_cells(name: str, pair: PairCorrelation) -> list[str]:
    lower, upper = pair.pearson_fisher or (None, None)
    apart = pair.without_real
    real = "none is here" if apart is None else f"{_number(apart.pearson, 3)}, rho {_number(apart.spearman, 3)}"
    others = [value for value in pair.leave_one_out["pearson"].values() if value is not None]
    least = f"{min(others):.3f} to {max(others):.3f}, most by {pair.most_influential}" if others else ""
    numbers = [_number(one, 3) for one in (pair.spearman, pair.kendall_tau_b)]
    p_value = "-" if pair.permutation.pearson is None else f"{pair.permutation.pearson:.2g}"
    return [
        name,
        _of(pair.n, pair.named),
        _number(pair.pearson, 3),
        _ends(lower, upper, 3),
        *numbers,
        p_value,
        real,
        least,
    ]


def _print_by_vote(to: Console, found: Correlated) -> None:
    if not found.by_vote:
        return
    table = Table(title="does the metric prefer the video that people prefer", title_justify="left")
    for column in ("question", "metric"):
        table.add_column(column)
    for column in ("accuracy", "95 % interval", "votes", "ties", "with ties as a class"):
        table.add_column(column, justify="right")
    for tracker, one in found.by_vote.items():
        for metric, accuracy in one.accuracies.items():
            ends = _ends(accuracy.lower, accuracy.upper, 3)
            three = accuracy.three_way.accuracy if accuracy.three_way is not None else None
            cells = [tracker, metric, _number(accuracy.accuracy, 3), ends, _of(accuracy.n, accuracy.N)]
            cells.append(str(accuracy.ties))
            table.add_row(*map(Text, [*cells, _number(three, 3)]))
        table.add_section()
    to.print(table)
    for one in found.by_vote.values():
        if one.comparison is not None:
            to.print(Text(str(one.comparison)))


def print_agreement(to: Console, found: AgreementOfVotes) -> None:
    """Figures between people, a table of annotators, and the balance of the votes."""
    for one in found.questions.values():
        to.print(Text(str(one)))
        if not one.annotators:
            continue
        table = Table(title=Text(f"{one.question}: annotators"), title_justify="left")
        table.add_column("annotator")
        for column in ("votes", "agrees with others", "of", "ties", "A of untied", "same again", "median s"):
            table.add_column(column, justify="right")
        table.add_column("look at")
        for who in one.annotators:
            cells = [
                who.name,
                str(who.votes),
                _number(who.agreement.value, 3),
                str(who.agreement.n),
                _number(who.ties.value, 3),
                _number(who.a.value, 3),
                _number(who.consistency.everything.value, 3),
                _number(who.median_seconds, 1),
                ", ".join(map(called, who.warnings)),
            ]
            table.add_row(*map(Text, cells))
        to.print(table)
    to.print(Text(str(found.balance)))
    _rejected((one.id, one.reason, one.message) for one in found.votes.rejected)


def print_suggestions(to: Console, found: Planned) -> None:
    """The pairs to ask next."""
    to.print(Text(str(found.found)))
    _rejected((one.id, one.reason, one.message) for one in found.votes.rejected)


def print_power(to: Console, found: Planned) -> None:
    """How many votes are missing."""
    to.print(Text(str(found.found)))
    _rejected((one.id, one.reason, one.message) for one in found.votes.rejected)


def _rejected(lines: Iterable[tuple[str, Rejection, str]]) -> None:
    found = list(lines)
    for name, reason, message in found[:_LISTED]:
        note(f"not taken: {name}: {reason}: {message}")
    if len(found) > _LISTED:
        note(f"not taken: {len(found) - _LISTED} more; --json lists all")


def _about(to: Console, text: str) -> None:
    to.print(Text(f"  {text}"), soft_wrap=True)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _of(n: int, whole: int) -> str:
    return f"{n:,} of {whole:,}"


def _ends(lower: float | None, upper: float | None, digits: int) -> str:
    return "" if lower is None or upper is None else f"{lower:.{digits}f} to {upper:.{digits}f}"


def _bracketed(lower: float | None, upper: float | None, digits: int) -> str:
    return "" if lower is None or upper is None else f" [{lower:.{digits}f}, {upper:.{digits}f}]"


def _range(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best} to {worst}"


__all__ = [
    "print_agreement",
    "print_correlations",
    "print_people",
    "print_power",
    "print_ratings",
    "print_suggestions",
]
