r"""The numbers of a human study as CSV for spreadsheets and as LaTeX for papers.

CSV holds unrounded numbers; a text that a spreadsheet would take for a formula gets an apostrophe
(:func:`api.services.reporting.rows.neutral`). LaTeX needs ``booktabs``; everything that comes from outside is escaped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from api.services.reporting.latex import escaped
from api.services.reporting.rows import neutral
from gen_eval.arena import ArenaRatings, Correlations, PairCorrelation, TrackerRatings
from gen_eval.arena.names import called, level_name

_RATING_COLUMNS = (
    "arena",
    "method",
    "tracker",
    "model",
    "rating",
    "lower",
    "upper",
    "rank",
    "best_rank",
    "worst_rank",
    "votes",
    "n",
    "reason",
)
_PAIR_COLUMNS = (
    "pair",
    "rating",
    "score",
    "n",
    "reason",
    "pearson",
    "pearson_p",
    "permutation_p",
    "fisher_lower",
    "fisher_upper",
    "bootstrap_lower",
    "bootstrap_upper",
    "level",
    "spearman",
    "kendall_tau_b",
    "most_influential",
    "pearson_without_it",
    "without_real_n",
    "without_real_pearson",
    "without_real_spearman",
    "without_real_kendall_tau_b",
)


def ratings_csv(arenas: Mapping[str, ArenaRatings]) -> bytes:
    """A line a tracker and system; systems without a rating have the reason.

    Args:
        arenas: ``""`` -> ratings by people, metric -> ratings by its comparisons.
    """
    return _csv(_RATING_COLUMNS, (line for name, arena in arenas.items() for line in _rating_lines(name, arena)))


def ratings_latex(arenas: Mapping[str, ArenaRatings]) -> bytes:
    """A table a tracker; see :func:`ratings_csv`."""
    return _latex(
        _rating_latex(name, arena.method, tracker)
        for name, arena in arenas.items()
        for tracker in arena.trackers.values()
    )


def correlations_csv(correlations: Correlations) -> bytes:
    """A line a pair of rating and score."""
    return _csv(_PAIR_COLUMNS, (_pair_line(name, pair) for name, pair in correlations.pairs.items()))


def correlations_latex(correlations: Correlations) -> bytes:
    """One table, a line a pair."""
    return _latex([_pairs_latex(correlations)])


def _csv(columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        writer.writerow([_csv_cell(cell) for cell in line])
    return text.getvalue().encode(errors="replace")


def _csv_cell(cell: Any) -> str:
    if cell is None:
        return ""
    return repr(cell) if isinstance(cell, int | float) else neutral(str(cell))


def _rating_lines(arena_name: str, arena: ArenaRatings) -> Iterator[tuple[Any, ...]]:
    for tracker in arena.trackers.values():
        for model in tracker.best_first:
            rank = tracker.ranks.get(model)
            places = (None, None, None) if rank is None else (rank.rank, rank.best, rank.worst)
            yield (
                arena_name or "people",
                arena.method,
                tracker.tracker,
                model,
                tracker.ratings[model],
                tracker.lower.get(model),
                tracker.upper.get(model),
                *places,
                tracker.votes_of.get(model),
                tracker.n,
                None if tracker.reason is None else str(tracker.reason),
            )


def _pair_line(name: str, pair: PairCorrelation) -> tuple[Any, ...]:
    without, most = pair.without_real, pair.most_influential
    left = (None,) * 4 if without is None else (without.n, without.pearson, without.spearman, without.kendall_tau_b)
    return (
        name,
        pair.rating,
        pair.score,
        pair.n,
        None if pair.reason is None else str(pair.reason),
        pair.pearson,
        pair.pearson_p,
        pair.permutation.pearson,
        *(pair.pearson_fisher or (None, None)),
        *(pair.bootstrap.get("pearson") or (None, None)),
        pair.level,
        pair.spearman,
        pair.kendall_tau_b,
        most,
        None if most is None else pair.leave_one_out_pearson[most],
        *left,
    )


def _latex(tables: Iterable[Iterable[str]]) -> bytes:
    lines = ["% needs \\usepackage{booktabs} and \\usepackage{textcomp}"]
    for table in tables:
        lines += ["", *table]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def _tabular(caption: str, columns: str, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"  \centering"
    yield rf"  \caption{{{caption}}}"
    yield rf"  \begin{{tabular}}{{{columns}}}"
    yield r"    \toprule"
    yield f"    {' & '.join(heads)} \\\\"
    yield r"    \midrule"
    for line in lines:
        yield f"    {' & '.join(line)} \\\\"
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"\end{table}"


def _rating_latex(arena: str, method: str, tracker: TrackerRatings) -> Iterator[str]:
    rule = tracker.interval
    made = "" if rule is None else f" Intervals: {escaped(rule.words or rule.method)}"
    refused = "" if tracker.reason is None else f" No ratings: {escaped(str(tracker.reason))}."
    counted = "comparisons" if arena else "votes"
    made_by = ", ".join(map(escaped, (arena or "people", tracker.tracker, called(method))))
    caption = f"Ratings ({made_by}), $n = {tracker.n}$ {counted}."
    lines = []
    for model in tracker.best_first:
        value, rank = tracker.ratings[model], tracker.ranks.get(model)
        lower, upper = tracker.lower.get(model), tracker.upper.get(model)
        lines.append(
            (
                escaped(model),
                "n/a" if value is None else f"${value:.1f}$",
                "" if lower is None or upper is None else f"$[{lower:.1f}, {upper:.1f}]$",
                "" if rank is None else f"{rank.rank} ({rank.best}--{rank.worst})",
                str(tracker.votes_of.get(model, "")),
            )
        )
    return _tabular(caption + refused + made, "lrrrr", ("system", "rating", "interval", "rank", counted), lines)


def _pairs_latex(correlations: Correlations) -> Iterator[str]:
    pairs = correlations.pairs
    levels = ", ".join(sorted({level_name(pair.level) for pair in pairs.values()}))
    caption = rf"Correlation of ratings with scores over systems; Fisher intervals of {levels}\,\%."
    heads = (
        "pair",
        "$n$",
        "Pearson",
        "interval",
        "Spearman",
        r"$\tau_b$",
        "Pearson without real videos",
        "least to most, one left out",
    )
    return _tabular(caption, "lrrrrrrr", heads, [_pair_latex(name, pair) for name, pair in pairs.items()])


def _pair_latex(name: str, pair: PairCorrelation) -> tuple[str, ...]:
    left = [value for value in pair.leave_one_out_pearson.values() if value is not None]
    fisher = pair.pearson_fisher
    return (
        escaped(name),
        str(pair.n),
        _figure(pair.pearson) if pair.reason is None else escaped(str(pair.reason)),
        "" if fisher is None else f"$[{fisher[0]:.2f}, {fisher[1]:.2f}]$",
        _figure(pair.spearman),
        _figure(pair.kendall_tau_b),
        _figure(None if pair.without_real is None else pair.without_real.pearson),
        f"${min(left):.3f}$ to ${max(left):.3f}$" if left and pair.reason is None else "",
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"${value:.3f}$"


__all__ = ["correlations_csv", "correlations_latex", "ratings_csv", "ratings_latex"]
