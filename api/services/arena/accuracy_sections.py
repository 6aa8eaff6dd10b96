"""Metrics against single votes on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.services.arena import words
from api.services.arena.correlating import ByVote
from api.services.reporting.fragments import Heading, Part, Section, Table, Words
from gen_eval.arena.accuracy_comparison import AccuracyComparison
from gen_eval.arena.names import called
from gen_eval.arena.vote_accuracy import VoteAccuracy

_MOST = 500


def accuracy_section(by_vote: Sequence[ByVote]) -> Section:
    """Metrics against single votes, one question after the other."""
    accuracies = [one for question in by_vote for one in question.accuracies.values()]
    parts: list[Part] = [
        Words(
            "Does the metric's difference of the two shown videos have the sign of the vote? Accuracy is over votes "
            "without ties (guessing: 50 %); with ties as a third answer the constant guess is the thing to beat."
        ),
        _accuracies(accuracies),
    ]
    if any(one.three_way is not None for one in accuracies):
        parts.append(_with_ties(accuracies))
    with_pairs = [one for one in accuracies if one.pairs]
    for one in with_pairs:
        lines = [
            (f"{pair.a}, {pair.b}", str(pair.n), str(pair.ties), words.percent(pair.accuracy)) for pair in one.pairs
        ]
        caption = f"{one.metric}, {one.tracker}: accuracy by pair of systems"
        heads = ("systems", "votes without ties", "ties", "accuracy")
        parts.append(Table.of(caption, heads, lines, folded=caption, most=_MOST))
    for question in by_vote:
        if question.comparison is not None:
            parts += _comparison(question.comparison)
    return Section("votes", "Accuracy vote by vote", tuple(parts))


def _comparison(found: AccuracyComparison) -> Iterator[Part]:
    yield Heading(f"{found.tracker}: metrics on the votes that all of them can answer")
    if found.best is None:
        yield Words(f"No vote without a tie has scores of all metrics ({found.N:,} votes).", "warning")
        return
    lines = [
        (name, words.percent(one.accuracy), words.percent_ends(one.lower, one.upper), f"{found.n:,} of {found.N:,}")
        for name, one in found.metrics.items()
    ]
    yield Table.of(f"Accuracy on common votes, {found.tracker}", ("metric", "accuracy", "interval", "votes"), lines)
    differences = [
        (
            f"{one.a} over {one.b}",
            words.percent(one.difference),
            words.percent_ends(one.lower, one.upper),
            words.chance(one.p_value),
            words.chance(one.p_holm),
            f"{one.only_a:,} / {one.only_b:,}",
            words.chance(one.mcnemar_p),
            "yes" if one.real else "no",
        )
        for one in found.differences
    ]
    heads = ("metrics", "difference", "interval", "p", "p (Holm)", "only one meets", "McNemar's p", "real")
    yield Table.of(f"Differences in accuracy, {found.tracker}", heads, differences, most=_MOST)


def _accuracies(accuracies: Sequence[VoteAccuracy]) -> Table:
    heads = (
        "metric",
        "question",
        "accuracy",
        "interval",
        "votes without ties",
        "tied",
        "of all",
        "samples",
        "left out",
    )
    lines = []
    for one in accuracies:
        gaps = ", ".join(f"{called(name)} {count:,}" for name, count in one.without.items() if count)
        lines.append(
            (
                _metric(one),
                one.tracker,
                words.percent(one.accuracy),
                words.percent_ends(one.lower, one.upper),
                f"{one.n:,}",
                f"{one.ties:,}",
                f"{one.N:,}",
                f"{one.samples:,}",
                gaps or "none",
            )
        )
    return Table.of("Accuracy of metrics against single votes", heads, lines)


def _with_ties(accuracies: Sequence[VoteAccuracy]) -> Table:
    heads = ("metric", "question", "accuracy", "votes", "constant guess", "a tie up to", "how that was found")
    lines = [
        (
            _metric(one),
            one.tracker,
            words.percent(three.accuracy),
            f"{three.n:,}",
            f"{words.percent(three.majority_accuracy)} ({called(three.majority)})",
            f"{three.threshold:.4g}",
            three.rule,
        )
        for one in accuracies
        if (three := one.three_way) is not None
    ]
    return Table.of("Accuracy with ties as a third answer", heads, lines)


def _metric(one: VoteAccuracy) -> str:
    return f"{one.metric} ({one.protocol})" if one.protocol else one.metric


__all__ = ["accuracy_section"]
