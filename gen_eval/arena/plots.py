"""Figures of the human study: ratings with intervals, who beat whom, what the order of votes does.

Every function returns a ``matplotlib.figure.Figure`` and touches nothing else. Systems that are real videos are
diamonds; figures grow with the number of systems.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gen_eval.arena.balance import PairCount
from gen_eval.arena.correlation_plots import leave_one_out, metrics_side_by_side, scatter
from gen_eval.arena.drawing import (
    BLUE,
    GRID,
    INK,
    SOFT,
    VERMILION,
    beside,
    drawing,
    empty_figure,
    encoded,
    label,
    new_figure,
    rows,
    save,
    settled,
    titled,
)
from gen_eval.arena.names import level_name
from gen_eval.arena.ratings import ArenaRatings, TrackerRatings, best_first
from gen_eval.arena.systems import REAL
from gen_eval.stats import exact_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_Shares = Mapping[tuple[str, str], tuple[float, int]]

_LINE = 0.27
_LEGIBLE = 5.8
"""Inches of a win matrix that its title needs, however few the systems."""

_NUMBERED = 30
"""Most systems of a win matrix whose cells hold numbers; above, colours alone are read."""


def rating_intervals(
    tracker: TrackerRatings, *, real: Collection[str] = REAL, title: str | None = None, counted: str = "votes"
) -> Figure:
    """Ratings of one tracker with their intervals, best first; without ratings the reason in words.

    Args:
        tracker: what is drawn.
        real: systems that are real videos.
        title: what the tracker is called; its own name by default.
        counted: what it was made from; the ``comparisons`` of a metric are no votes.
    """
    order = tracker.best_first
    height = 2.2 if tracker.reason is not None else 1.5 + _LINE * max(len(order), 3)
    with drawing():
        figure, axes = new_figure(7.2, height)
        titled(axes, f"{label(title or tracker.tracker)}: ratings of {len(order)} systems", *_about(tracker, counted))
        if tracker.reason is not None:
            _refused(axes, tracker)
            return settled(figure)
        rows(axes, order)
        _rating_rows(axes, tracker, order, real)
        for place, name in enumerate(order):
            beside(axes, place, _numbers(tracker, name))
        axes.set_xlabel(_points_label(tracker, order, real))
        return settled(figure)


def several_rating_intervals(
    ratings: ArenaRatings | Mapping[str, TrackerRatings],
    *,
    real: Collection[str] = REAL,
    counted: Mapping[str, str] | None = None,
) -> Figure:
    """Trackers side by side; systems in the order of the first that has ratings.

    Args:
        ratings: of several trackers (overall comes first), or trackers of any arenas by the name to show.
        real: systems that are real videos.
        counted: by the name to show, what a tracker was made from; ``votes`` when not given.

    Raises:
        ValueError: there is no tracker.
    """
    trackers = dict(ratings.trackers if isinstance(ratings, ArenaRatings) else ratings)
    if not trackers:
        raise ValueError("there is no tracker to draw; give ratings of at least one")
    if isinstance(ratings, ArenaRatings):
        trackers = dict(sorted(trackers.items(), key=lambda item: item[0] != "overall"))
    order = _common_order(list(trackers.values()))
    with drawing():
        width, height = 2.6 + 2.9 * len(trackers), 1.6 + _LINE * max(len(order), 3)
        figure = empty_figure(width, height)
        panels = figure.subplots(1, len(trackers), squeeze=False)[0]
        named = next((place for place, one in enumerate(trackers.values()) if one.reason is None), 0)
        for place, (axes, (name, tracker)) in enumerate(zip(panels, trackers.items(), strict=True)):
            titled(axes, label(name, 26), f"{tracker.n:,} {(counted or {}).get(name, 'votes')}")
            if tracker.reason is not None:
                _refused(axes, tracker, width=34)
                continue
            rows(axes, order, named=place == named)
            _rating_rows(axes, tracker, order, real)
            axes.set_xlabel(_points_label(tracker, order, real))
        return settled(figure)


def _common_order(trackers: Sequence[TrackerRatings]) -> list[str]:
    """Every system: as the first tracker with ratings has them, then those of the others."""
    ranked = sorted(trackers, key=lambda one: one.reason is not None)
    return list(dict.fromkeys(name for one in ranked for name in one.best_first))


def order_spread(
    tracker: TrackerRatings, *, real: Collection[str] = REAL, title: str | None = None, counted: str = "votes"
) -> Figure:
    """What the order of the votes does to sequential Elo: mean, standard deviation and range over random orders.

    Args:
        tracker: what is drawn.
        real: systems that are real videos.
        title: what the tracker is called; its own name by default.
        counted: what it was made from, as for :func:`rating_intervals`.

    Raises:
        ValueError: the ratings carry no spread.
    """
    if not tracker.order_spread:
        raise ValueError(f"the ratings of {tracker.tracker!r} carry no spread over orders; it is made by elo()")
    order = best_first({name: one.mean for name, one in tracker.order_spread.items()})
    rankings = "" if tracker.rankings is None else f"{tracker.rankings} different rankings over random orders"
    with drawing():
        figure, axes = new_figure(7.2, 1.7 + _LINE * max(len(order), 3))
        titled(axes, f"{label(title or tracker.tracker)}: sequential Elo over orders of the same {counted}", rankings)
        rows(axes, order)
        for place, name in enumerate(order):
            one, colour = tracker.order_spread[name], _colour(name, real)
            axes.plot([one.lowest, one.highest], [place, place], color=colour, linewidth=1)
            axes.plot([one.mean - one.sd, one.mean + one.sd], [place, place], color=colour, linewidth=5, alpha=0.45)
            axes.plot(one.mean, place, marker=_marker(name, real), color=colour, markersize=6)
            given = tracker.ratings.get(name)
            if given is not None:
                axes.plot(given, place, marker="|", color=INK, markersize=13, markeredgewidth=1.6)
        axes.set_xlabel("points; dot: mean, thick: ± 1 sd, thin: whole range, stroke: the rating given")
        return settled(figure)


def win_matrix(
    pair_counts: Iterable[PairCount], question: str = "overall", *, order: Sequence[str] | None = None
) -> Figure:
    """Share of the points that the row got against the column, in percent, and from how many votes.

    Args:
        pair_counts: from :func:`gen_eval.arena.pair_counts`.
        question: ``quality``, ``plausibility`` or ``overall``.
        order: systems from top to bottom; by mean share of the points when not given.
    """
    from matplotlib.colors import LinearSegmentedColormap

    counts = tuple(pair_counts)
    shares = _shares(counts, question)
    names = list(order) if order is not None else _by_mean_share(counts, shares)
    numbered = len(names) <= _NUMBERED
    with drawing():
        side = (0.52 if numbered else 0.3) * max(len(names), 3)
        figure, axes = new_figure(max(side + 2.6, _LEGIBLE), side + 2.6)
        axes.set_anchor("W")
        colours = LinearSegmentedColormap.from_list("points", ["#f08a3c", "#f9cba4", "#ffffff", "#b5d6ef", "#5aa5da"])
        _cells(axes, names, shares, colours, numbered=numbered)
        votes = sum(one.counted[question] for one in counts)
        small = f"{votes:,} votes" + ("; in a cell % of the points and number of votes" if numbered else "")
        colours_say = "blue: the row is ahead, orange: behind, dark grey: no votes"
        titled(axes, f"{label(question)}: row against column", small, colours_say)
        return settled(figure)


def _cells(axes: Axes, names: Sequence[str], shares: _Shares, colours: Colormap, *, numbered: bool) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    squares: list[Rectangle] = []
    fills: list[Any] = []
    for row, upper in enumerate(names):
        for column, lower in enumerate(names):
            squares.append(Rectangle((column - 0.5, row - 0.5), 1, 1))
            if (upper, lower) not in shares:
                fills.append("#f3f4f6" if row == column else "#b9bcc4")
            else:
                share, votes = shares[upper, lower]
                fills.append(colours(share))
                if numbered:
                    cell = axes.text(column, row, f"{100 * share:.0f}\n{votes}", ha="center", va="center", fontsize=8)
                    cell.set(linespacing=1.15, in_layout=False)
    axes.add_collection(PatchCollection(squares, facecolor=fills, edgecolor=GRID, linewidth=0.7))
    last = max(len(names), 1) - 0.5
    axes.set(xlim=(-0.5, last), ylim=(last, -0.5), aspect="equal")
    axes.set_xticks(
        range(len(names)), [label(name, 24) for name in names], rotation=45, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(names)), [label(name, 24) for name in names])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _shares(counts: Iterable[PairCount], question: str) -> _Shares:
    """(row, column) -> the row's share of the points and the votes."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for one in counts:
        share = one.share(question)
        if share is not None:
            found[one.a, one.b] = (share, one.counted[question])
            found[one.b, one.a] = (1 - share, one.counted[question])
    return found


def _by_mean_share(counts: Iterable[PairCount], shares: _Shares) -> list[str]:
    names = sorted({name for one in counts for name in (one.a, one.b)})
    own = {name: [share for (row, _), (share, _) in shares.items() if row == name] for name in names}
    return sorted(names, key=lambda name: (-sum(own[name]) / len(own[name]) if own[name] else 1.0, name))


def _rating_rows(axes: Axes, tracker: TrackerRatings, order: Sequence[str], real: Collection[str]) -> None:
    axes.axvline(_mean(tracker), color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, name in enumerate(order):
        value, low, high = tracker.ratings.get(name), tracker.lower.get(name), tracker.upper.get(name)
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=_colour(name, real), linewidth=2.2, solid_capstyle="round")
        if value is not None:
            axes.plot(value, place, marker=_marker(name, real), color=_colour(name, real), markersize=6.5)


def _numbers(tracker: TrackerRatings, name: str) -> str:
    value, low, high = tracker.ratings.get(name), tracker.lower.get(name), tracker.upper.get(name)
    if value is None:
        return "–"
    return f"{value:.0f}" if low is None or high is None else f"{value:.0f} [{low:.0f}, {high:.0f}]"


def _about(tracker: TrackerRatings, counted: str) -> list[str]:
    """Votes and how the intervals were made, in lines that fit."""
    rule, votes = tracker.interval, f"{tracker.n:,} {counted}"
    if rule is None or rule.method == "none" or tracker.reason is not None:
        return [votes]
    how = f"{level_name(rule.level)} % {rule.method} intervals"
    if rule.resamples:
        how += f", {rule.resamples:,} resamples"
    return [f"{votes}; {how} over {rule.units:,} {rule.unit}"]


def _refused(axes: Axes, tracker: TrackerRatings, width: int = 80) -> None:
    """Why there are no ratings, instead of them."""
    lines = textwrap.wrap(label(tracker.message, 500), width)[:6]
    axes.text(0.02, 0.95, "\n".join([f"no ratings: {tracker.reason}", *lines]), va="top", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _mean(tracker: TrackerRatings) -> float:
    """Mean of the ratings, which both methods keep where they start."""
    return exact_mean([value for value in tracker.ratings.values() if value is not None])


def _points_label(tracker: TrackerRatings, names: Iterable[str], real: Collection[str]) -> str:
    mean = f"points (dashed: mean, {_mean(tracker):.0f})"
    return mean + ("; ◆ real videos" if any(name in real for name in names) else "")


def _marker(name: str, real: Collection[str]) -> str:
    return "D" if name in real else "o"


def _colour(name: str, real: Collection[str]) -> str:
    return VERMILION if name in real else BLUE


__all__ = [
    "encoded",
    "leave_one_out",
    "metrics_side_by_side",
    "order_spread",
    "rating_intervals",
    "save",
    "scatter",
    "several_rating_intervals",
    "win_matrix",
]
