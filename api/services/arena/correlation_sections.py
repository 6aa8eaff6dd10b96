"""Scores against people on a page: correlations over systems, metrics side by side, accuracy vote by vote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from api.services import wording
from api.services.arena import words
from api.services.reporting.fragments import Heading, Part, Section, Table, Words
from api.services.reporting.inline_svg import Drawings
from gen_eval.arena import (
    Correlations,
    MetricComparison,
    PairCorrelation,
    SystemColumn,
    plots,
)
from gen_eval.arena.coefficients import COEFFICIENTS
from gen_eval.arena.joint_results import INTERVAL_RULE, JointCorrelation
from gen_eval.arena.names import called, level_name
from gen_eval.arena.systems import column_of

_MOST = 500

CORRELATION_HEADS = (
    "pair",
    "n",
    "Pearson",
    "Fisher interval",
    "p",
    "permutation p",
    "systems resampled",
    "Spearman",
    "Kendall tau-b",
)
_WITHOUT_HEADS = ("pair", "real videos", "n without them", "Pearson", "Spearman", "Kendall tau-b")


Columns: TypeAlias = tuple[Mapping[str, SystemColumn], Mapping[str, SystemColumn]]
"""Ratings and scores by name, for their intervals."""


def correlations_section(
    correlations: Correlations,
    columns: Columns | None,
    joint: Mapping[str, JointCorrelation],
    notes: Sequence[str],
    drawings: Drawings,
) -> Section:
    """The table of all pairs; then each with its scatter and what every system carries."""
    pairs = correlations.pairs
    parts: list[Part] = list(correlation_tables(pairs))
    if any(pair.n < 15 for pair in pairs.values()):
        parts.append(
            Words(
                "One point a system: with so few systems every interval is wide, and one system can carry r. "
                "Look at the ranks and at r without each system before r itself.",
                "note",
            )
        )
    for side, names in correlations.unpaired.items():
        if names:
            parts.append(Words(f"{side.capitalize()} without a partner: {wording.listed(names, 20)}.", "note"))
    parts += [Words(f"{note}.", "note") for note in notes]
    if joint:
        parts += joint_table(joint)
    for name, pair in pairs.items():
        parts += _pair(name, pair, columns, drawings)
    return Section("correlations", "Ratings against scores", tuple(parts))


def correlation_tables(pairs: Mapping[str, PairCorrelation]) -> Iterator[Table]:
    """One line a pair; then, where some systems are real videos, the same without them."""
    levels = {level_name(pair.level) for pair in pairs.values()}
    caption = f"Correlation over systems, intervals of {', '.join(sorted(levels))} %"
    yield Table.of(caption, CORRELATION_HEADS, [_correlation_line(name, pair) for name, pair in pairs.items()])
    without = [_without_line(name, pair) for name, pair in pairs.items() if pair.without_real is not None]
    if without:
        yield Table.of("Correlation without the real videos", _WITHOUT_HEADS, without)


def _correlation_line(name: str, pair: PairCorrelation) -> tuple[str, ...]:
    return (
        name,
        str(pair.n),
        words.coefficient(pair.pearson) if pair.reason is None else str(pair.reason),
        words.both(pair.pearson_fisher),
        words.chance(pair.pearson_p),
        words.chance(pair.permutation.pearson),
        words.both(pair.bootstrap.get("pearson")),
        words.coefficient(pair.spearman),
        words.coefficient(pair.kendall_tau_b),
    )


def _without_line(name: str, pair: PairCorrelation) -> tuple[str, ...]:
    without = pair.without_real
    assert without is not None
    return (
        name,
        wording.listed(pair.real),
        str(without.n),
        words.coefficient(without.pearson) if without.reason is None else str(without.reason),
        words.coefficient(without.spearman),
        words.coefficient(without.kendall_tau_b),
    )


def _pair(name: str, pair: PairCorrelation, columns: Columns | None, drawings: Drawings) -> Iterator[Part]:
    yield Heading(f"{name}: {pair.rating} against {pair.score}")
    yield from pair_remarks(pair)
    if not pair.points:
        return
    yield scatter(pair, columns, drawings)
    if pair.reason is not None:
        return
    alt = f"r of {name} with each of the {pair.n} systems left out, beside r of all. The table holds the same numbers."
    yield drawings.add(plots.leave_one_out(pair), alt)
    yield _leave_one_out(pair)


def scatter(pair: PairCorrelation, columns: Columns | None, drawings: Drawings) -> Part:
    """The labelled scatter of a pair, with intervals where they are known."""
    rating, score = (None, None) if columns is None else (column_of(side, pair.name) for side in columns)
    value = "no value" if pair.pearson is None else f"r {pair.pearson:.3f}"
    alt = f"Scatter of the {pair.rating} rating against the {pair.score} score of {pair.n} systems, {value}."
    return drawings.add(plots.scatter(pair, rating=rating, score=score), alt)


def pair_remarks(pair: PairCorrelation, start: str = "") -> Iterator[Words]:
    """What r alone hides, in sentences."""
    if pair.reason is not None:
        yield Words(f"{start}No correlation, n = {pair.n}. {words.why(pair.reason)}.", "warning")
    elif pair.most_influential is not None:
        most = pair.most_influential
        without = words.coefficient(pair.leave_one_out_pearson[most])
        r = words.coefficient(pair.pearson)
        yield Words(f"{start}No system moves r more than {most}: without it r is {without} instead of {r}.")
    if pair.oriented == -1:
        yield Words(f"{start}{pair.sign_note}.", "warning")
    real = f"Real videos among the systems: {wording.listed(pair.real)}." if pair.real else "No real videos among them."
    yield Words(f"{start}{real} Permutation p: {pair.permutation.rule}.", "note")
    gaps = (
        ("only in the ratings", pair.only_in_ratings),
        ("only in the scores", pair.only_in_scores),
        ("named by both, without a number in one", pair.left_out),
    )
    left = "; ".join(f"{where}: {wording.listed(names, 20)}" for where, names in gaps if names)
    if left:
        yield Words(f"{start}Systems that do not count: {left}.", "note")
    if pair.bootstrap_undefined:
        yield Words(
            f"{start}{pair.bootstrap_undefined:,} of {pair.resamples:,} resamples had no coefficient; left out.", "note"
        )


def _leave_one_out(pair: PairCorrelation) -> Table:
    order = sorted(pair.leave_one_out_pearson.items(), key=lambda item: (item[1] is None, item[1] or 0.0, item[0]))
    lines = [
        (
            name,
            words.coefficient(value),
            words.coefficient(pair.leave_one_out["spearman"][name]),
            words.coefficient(pair.leave_one_out["kendall_tau_b"][name]),
        )
        for name, value in order
    ]
    caption = f"Coefficients with one system left out, n = {max(0, pair.n - 1)}"
    return Table.of(caption, ("without", "Pearson", "Spearman", "Kendall tau-b"), lines, folded=caption)


def metrics_section(comparisons: Sequence[MetricComparison], drawings: Drawings) -> Section:
    """Metrics side by side against one rating, and which differences are real."""
    parts: list[Part] = []
    for one in comparisons:
        parts += _metrics(one, drawings)
    return Section("metrics", "Which metric agrees best with people", tuple(parts))


def _metrics(comparison: MetricComparison, drawings: Drawings) -> Iterator[Part]:
    yield Heading(f"{comparison.rating}: {comparison.what_is_drawn}")
    best = comparison.best
    if best is None:
        yield Words(f"No metric has a value, n = {comparison.n}.", "warning")
    else:
        bare = comparison.best_without_real
        without = "" if bare is None else f"; without real videos it is {bare}"
        settled, others = sum(one.real for one in comparison.to_best), len(comparison.to_best)
        verdict = f", beyond chance larger than {settled} of {wording.counted(others, 'other')}" if others else ""
        found = f"{best} has the largest coefficient ({called(comparison.by)}) over n = {comparison.n} systems"
        yield Words(f"{found}{verdict}{without}.")
    figure = plots.metrics_side_by_side(comparison)
    alt = f"Agreement of every metric with the {comparison.rating} rating, with intervals. The table holds the numbers."
    yield drawings.add(figure, alt)
    yield _agreements(comparison)
    yield Words(f"Intervals: {comparison.drawn}. A difference is {comparison.rule}.", "note")
    if comparison.left_out:
        gaps = [f"{name} ({', '.join(lacking) or 'no rating'})" for name, lacking in comparison.left_out.items()]
        yield Words(f"Systems that do not count, with what lacks: {wording.listed(gaps, 20)}.", "note")
    for one in comparison.to_best:
        yield Words(f"{one.words}.")
    if comparison.differences:
        yield _metric_differences(comparison)


def _agreements(comparison: MetricComparison) -> Table:
    percent = level_name(comparison.level)
    interval = f"{percent} % interval ({called(comparison.by)})"
    heads = ("metric", "n", "Pearson", "Spearman", "Kendall tau-b", interval, "without real videos")
    lines = [
        (
            name if one.higher_is_better else f"{name} (an error, turned)",
            str(one.n),
            words.coefficient(one.pearson) if one.reason is None else str(one.reason),
            words.coefficient(one.spearman),
            words.coefficient(one.kendall_tau_b),
            words.ends(one.lower, one.upper, 2),
            words.coefficient(None if one.without_real is None else getattr(one.without_real, comparison.by)),
        )
        for name, one in comparison.agreements.items()
    ]
    return Table.of(f"Agreement with the {comparison.rating} rating, best first", heads, lines)


def _metric_differences(comparison: MetricComparison) -> Table:
    lines = [
        (
            f"{one.a} over {one.b}",
            words.coefficient(one.difference),
            words.ends(one.lower, one.upper, 3),
            words.chance(one.p_value),
            words.chance(one.p_holm),
            words.chance(one.williams_p),
            words.chance(one.williams_p_holm),
            "yes" if one.real else "no",
        )
        for one in comparison.differences
    ]
    heads = ("metrics", "difference", "interval", "p", "p (Holm)", "Williams' p", "Williams' p (Holm)", "real")
    caption = "Differences of every two metrics"
    return Table.of(caption, heads, lines, folded=caption.lower(), most=_MOST)


def joint_table(joint: Mapping[str, JointCorrelation]) -> Iterator[Part]:
    """Correlations with what votes and samples leave open, systems held."""
    percents = sorted({level_name(one.level) for one in joint.values()})
    heads = (
        "pair",
        "n",
        "votes",
        "samples (both)",
        *map(called, COEFFICIENTS),
        "left out",
    )
    lines = []
    for name, one in joint.items():
        cells = [_with_ends(getattr(one, coefficient), one.intervals.get(coefficient)) for coefficient in COEFFICIENTS]
        if one.reason is not None:
            cells[0] = str(one.reason)
        without = ", ".join(f"{called(cause)} {count:,}" for cause, count in one.undefined.items() if count)
        samples = f"{one.samples:,} ({one.samples_with_both:,})"
        lines.append((name, str(one.n), f"{one.n_votes:,}", samples, *cells, without or "none"))
    held = "Votes and samples drawn together, systems held"
    caption = f"{held}; intervals of {', '.join(percents)} %; left out: resamples without a value"
    yield Table.of(caption, heads, lines)
    drawn = list(dict.fromkeys(one.words for one in joint.values()))
    yield Words(f"{'; '.join(drawn)}. Intervals: {INTERVAL_RULE}.", "note")
    for name, one in joint.items():
        if one.noise_corrected is not None:
            yield Words(f"{name}: {one.noise_corrected}.", "note")
        if one.message:
            yield Words(f"{name}: {one.message}", "warning")
        if one.without_scores:
            yield Words(f"{name}: no scores of {wording.listed(one.without_scores, 20)}.", "note")


def _with_ends(value: float | None, ends: tuple[float, float] | None) -> str:
    found = words.coefficient(value)
    return found if ends is None else f"{found} [{words.both(ends)}]"


__all__ = [
    "CORRELATION_HEADS",
    "correlation_tables",
    "correlations_section",
    "joint_table",
    "metrics_section",
    "pair_remarks",
    "scatter",
]
