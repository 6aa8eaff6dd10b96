"""Figures of ratings against scores: the labelled scatter, what each system carries, metrics side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gen_eval.arena.correlations import PairCorrelation, Point
from gen_eval.arena.drawing import (
    BLUE,
    FAINT,
    GRID,
    INK,
    SOFT,
    VERMILION,
    beside,
    drawing,
    label,
    new_figure,
    rows,
    settled,
    titled,
)
from gen_eval.arena.label_placement import Boxes, place_labels
from gen_eval.arena.metric_comparison_results import MetricAgreement, MetricComparison
from gen_eval.arena.names import called, level_name
from gen_eval.arena.systems import SystemColumn
from gen_eval.stats.summaries import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHORT = 26


def scatter(pair: PairCorrelation, *, rating: SystemColumn | None = None, score: SystemColumn | None = None) -> Figure:
    """Rating against score, a labelled point a system, with the line of least squares, r and n.

    Args:
        pair: from :func:`gen_eval.arena.correlate`.
        rating: the column of ratings, whose intervals become upright bars.
        score: the column of scores, whose intervals become level bars.
    """
    points = pair.points
    side = min(13.0, 6.6 + 0.09 * max(0, len(points) - 12))
    with drawing():
        figure, axes = new_figure(side + 0.8, side - 1.2)
        titled(axes, f"{label(pair.rating)} rating against {label(pair.score)} score", *_figures_of(pair))
        axes.set(ylabel=f"rating: {label(pair.rating)}, points")
        _score_axis(axes, pair.score, "" if score is None else score.unit)
        axes.grid(linewidth=0.6)
        axes.margins(0.1)
        _bars(axes, points, rating, score)
        _dots(axes, points)
        if pair.pearson is not None:
            _line(axes, points)
        settled(figure)
        if points:
            _name_points(axes, pair, rating, score)
        return figure


def leave_one_out(pair: PairCorrelation) -> Figure:
    """Pearson's r without each system, beside r of all and its interval."""
    without = pair.leave_one_out_pearson
    order = sorted(without, key=lambda name: (without[name] is None, without[name] or 0.0, name))
    with drawing():
        figure, axes = new_figure(7.2, 1.8 + 0.27 * max(len(order), 3))
        titled(axes, f"{label(pair.name)}: Pearson's r with one system left out", *_figures_of(pair))
        rows(axes, order)
        if pair.pearson is not None:
            axes.axvline(pair.pearson, color=INK, linewidth=1.1, linestyle=(0, (4, 3)))
        if pair.pearson_fisher is not None:
            axes.axvspan(*pair.pearson_fisher, color=GRID, alpha=0.55, linewidth=0)
        for place, name in enumerate(order):
            _left_out_row(axes, place, without[name], most=name == pair.most_influential)
        named = "; square: moves r most" if pair.most_influential is not None else ""
        axes.set_xlabel(f"r (dashed: all systems; grey: {level_name(pair.level)} % Fisher interval{named})")
        return settled(figure)


def metrics_side_by_side(comparison: MetricComparison) -> Figure:
    """How far each metric agrees with one rating, with its interval, the best first; hollow: without real videos."""
    shown = list(comparison.agreements.values())
    with drawing():
        figure, axes = new_figure(7.2, 1.9 + 0.3 * max(len(shown), 3))
        title = f"{label(comparison.rating)} rating: agreement of {len(shown)} metrics"
        drawn = any(one.lower is not None for one in shown)
        ends = f"{level_name(comparison.level)} % intervals" if drawn else "too few for intervals"
        titled(axes, title, f"{called(comparison.by)} over n = {comparison.n} systems, {ends}; errors are turned")
        rows(axes, [one.name for one in shown])
        axes.axvline(0, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
        for place, one in enumerate(shown):
            _metric_row(axes, place, one, comparison)
        hollow = "; hollow: without real videos" if comparison.real else ""
        axes.set_xlabel(f"{called(comparison.by)}, larger agrees better with people{hollow}")
        return settled(figure)


def _score_axis(axes: Axes, name: str, unit: str) -> None:
    """The name of the score with its unit; ratios in percent, as the tables of reports have them."""
    from matplotlib.ticker import PercentFormatter

    if unit == "ratio":
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
    shown = {"ratio": ", %", "unknown": "", "": ""}.get(unit, f", {label(unit)}")
    axes.set_xlabel(f"score: {label(name)}{shown}")


def _metric_row(axes: Axes, place: int, one: MetricAgreement, comparison: MetricComparison) -> None:
    value, without = one.value(comparison.by), getattr(one.without_real, comparison.by, None)
    if one.lower is not None and one.upper is not None:
        axes.plot([one.lower, one.upper], [place, place], color=BLUE, linewidth=2.2, solid_capstyle="round")
    if value is not None:
        axes.plot(value, place, marker="o", color=BLUE, markersize=6.5)
    if without is not None:
        axes.plot(without, place, marker="D", markeredgecolor=VERMILION, markerfacecolor="white", markersize=5.5)
    beside(axes, place, f"no value: {one.reason}" if value is None else f"{value:.3f}")


def _left_out_row(axes: Axes, place: int, value: float | None, *, most: bool) -> None:
    colour = VERMILION if most else BLUE
    if value is not None:
        axes.plot(value, place, marker="s" if most else "o", color=colour, markersize=6.5, linestyle="none")
    beside(axes, place, "no value" if value is None else f"{value:.3f}")


def _figures_of(pair: PairCorrelation) -> list[str]:
    if pair.pearson is None or pair.spearman is None or pair.kendall_tau_b is None:
        return [f"no correlation: {pair.reason}, n = {pair.n}"]
    ends = pair.pearson_fisher
    fisher = "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]"
    ranks = f"Spearman {pair.spearman:.3f}, {called('kendall_tau_b')} {pair.kendall_tau_b:.3f}"
    return [f"n = {pair.n}, r = {pair.pearson:.3f}{fisher}, {ranks}"]


def _dots(axes: Axes, points: Sequence[Point]) -> None:
    for real, marker, colour in ((False, "o", BLUE), (True, "D", VERMILION)):
        own = [point for point in points if point.real is real]
        if own:
            axes.plot(
                [point.score for point in own],
                [point.rating for point in own],
                linestyle="none",
                marker=marker,
                color=colour,
                markersize=6.5,
                label="real videos" if real else "systems",
            )
    if any(point.real for point in points):
        axes.legend(loc="lower right")


def _line(axes: Axes, points: Sequence[Point]) -> None:
    """The line of least squares, over the scores that there are."""
    axes.plot(*_least_squares(points).T, color=FAINT, linewidth=1.4, zorder=1)


def _least_squares(points: Sequence[Point]) -> Floats:
    """``(2, 2)`` both ends of the line, score and rating."""
    x = np.array([point.score for point in points])
    y = np.array([point.rating for point in points])
    across = x - x.mean()
    slope = float((across * (y - y.mean())).sum() / (across * across).sum())
    ends = np.array([x.min(), x.max()])
    line: Floats = np.stack([ends, y.mean() + slope * (ends - x.mean())], axis=1)
    return line


def _bars(axes: Axes, points: Sequence[Point], rating: SystemColumn | None, score: SystemColumn | None) -> None:
    for point in points:
        for column, upright in ((rating, True), (score, False)):
            ends = _ends(column, point.model)
            if ends is not None:
                along = [point.score] * 2 if upright else [point.rating] * 2
                axes.plot(*((along, ends) if upright else (ends, along)), color=SOFT, linewidth=1, alpha=0.7, zorder=1)


def _ends(column: SystemColumn | None, model: str) -> list[float] | None:
    if column is None or model not in column.lower or model not in column.upper:
        return None
    return [column.lower[model], column.upper[model]]


def _name_points(axes: Axes, pair: PairCorrelation, rating: SystemColumn | None, score: SystemColumn | None) -> None:
    """Names beside the points, with a thin line where they had to go further off."""
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # what follows moves no point
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6}
    texts = [axes.text(0, 0, label(one.model, _SHORT), fontsize=8.5, zorder=1.6, bbox=ground) for one in pair.points]
    boxes = [text.get_window_extent() for text in texts]
    sizes = np.array([(box.width, box.height) for box in boxes])
    at = axes.transData.transform([(point.score, point.rating) for point in pair.points])
    frame = axes.get_window_extent()
    room = (frame.x0 + 3, frame.y0 + 3, frame.x1 - 3, frame.y1 - 3)
    places = place_labels(at, sizes, room, _obstacles(axes, pair, rating, score))
    back = axes.transData.inverted()
    for text, place, size, pixel in zip(texts, places, sizes, at, strict=True):
        x, y = back.transform((place.x, place.y))
        text.set(x=float(x), y=float(y), verticalalignment="bottom")
        if place.led:
            nearest = np.clip(pixel, (place.x, place.y), (place.x + size[0], place.y + size[1]))
            axes.plot(*back.transform([pixel, nearest]).T, color=SOFT, linewidth=0.7, zorder=1.7)


def _obstacles(axes: Axes, pair: PairCorrelation, rating: SystemColumn | None, score: SystemColumn | None) -> Boxes:
    """Rectangles of the bars, of the line in short pieces and of the legend, in pixels."""
    found: list[Any] = []
    for point in pair.points:
        upright, level = _ends(rating, point.model), _ends(score, point.model)
        found += [] if upright is None else [[(point.score, end) for end in upright]]
        found += [] if level is None else [[(end, point.rating) for end in level]]
    if pair.pearson is not None:
        ends = _least_squares(pair.points)
        line = np.linspace(ends[0], ends[1], 61)
        found += list(np.stack([line[:-1], line[1:]], axis=1))
    bars = [np.sort(axes.transData.transform(ends), axis=0).ravel() + np.array([-1, -1, 1, 1]) for ends in found]
    legend = axes.get_legend()
    bars += [] if legend is None else [np.array(legend.get_window_extent().extents)]
    return np.array(bars, dtype=np.float64).reshape(-1, 4)


__all__ = ["leave_one_out", "metrics_side_by_side", "scatter"]
