"""The people and their votes on a page: agreement, annotators, how votes are spread, who beat whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.services import wording
from api.services.arena import words
from api.services.reporting.fragments import Heading, Part, Section, Table, Words
from api.services.reporting.inline_svg import Drawings
from gen_eval.arena import Agreement, Balance, PairCount, plots
from gen_eval.arena.shares import Share
from gen_eval.arena.votes import QUESTIONS, TRACKERS

_MOST = 500
_ALPHAS = {
    "nominal": "alpha, four answers",
    "ties_merged": "alpha, ties as one",
    "interval": "alpha, 1 / ½ / 0",
}


def agreement_section(agreements: Sequence[Agreement]) -> Section:
    """How far people agree, with each other and with themselves."""
    parts: list[Part] = [_agreements(agreements)]
    for one in agreements:
        if one.reason is not None:
            parts.append(Words(f"{one.question}: {one.message} ({words.why(one.reason)}).", "warning"))
    for one in agreements:
        parts += _annotators(one)
    return Section("agreement", "Agreement between people", tuple(parts))


def _agreements(agreements: Sequence[Agreement]) -> Table:
    heads = (
        "question",
        "answers",
        "shared items",
        "raw agreement",
        "interval",
        *(f"{title}{what}" for title in _ALPHAS.values() for what in ("", ", interval")),
        "mean kappa",
        "asked again: same answer",
        "with sides swapped",
    )
    lines = []
    for one in agreements:
        raw = one.raw.interval
        alphas = [one.alphas.get(name) for name in _ALPHAS]
        shown = [
            cell
            for alpha in alphas
            for cell in (
                words.NO_VALUE
                if alpha is None
                else words.coefficient(alpha.value)
                if alpha.value is not None
                else str(alpha.reason),
                words.NO_VALUE
                if alpha is None or alpha.interval is None
                else words.ends(alpha.interval.lower, alpha.interval.upper, 2),
            )
        ]
        kappa = words.coefficient(one.mean_kappa)
        lines.append(
            (
                one.question,
                f"{one.votes:,}",
                f"{one.shared:,} of {one.items:,}",
                words.percent(one.raw.value) + (f" of {one.raw.n:,} pairs" if one.raw.n else ""),
                words.NO_VALUE if raw is None else words.percent_ends(raw.lower, raw.upper),
                *shown,
                f"{kappa} ({wording.counted(one.kappas, 'pair')})" if one.kappas else kappa,
                share(one.consistency.everything),
                share(one.consistency.swapped),
            )
        )
    return Table.of("Agreement on items that several people judged; 0 is what chance gives, 1 is perfect", heads, lines)


def _annotators(agreement: Agreement) -> Iterator[Part]:
    if agreement.annotators:
        yield Heading(f"Annotators, {agreement.question}")
        if warned := [one.name for one in agreement.annotators if one.warnings]:
            yield Words(f"To look at: {wording.listed(warned, 20)}; nobody is left out by that.", "warning")
        heads = (
            "annotator",
            "answers",
            "shared items",
            "agrees with the rest",
            "kappa",
            "ties",
            "both good",
            "both bad",
            "A among untied",
            "left among untied",
            "median seconds",
            "asked again: same",
            "remarks",
        )
        lines = [
            (
                one.name,
                f"{one.votes:,}",
                f"{one.shared:,}",
                share(one.agreement),
                words.coefficient(one.kappa) if one.reason is None else str(one.reason),
                *(share(part) for part in (one.ties, one.both_good, one.both_bad, one.a, one.left)),
                words.NO_VALUE if one.median_seconds is None else f"{one.median_seconds:.1f} (n = {one.timed:,})",
                share(one.consistency.everything),
                ", ".join(one.warnings) or "none",
            )
            for one in agreement.annotators
        ]
        yield Table.of(f"Annotators, {agreement.question}", heads, lines, most=_MOST)
    if agreement.pairs:
        kappas = [
            (
                f"{one.a}, {one.b}",
                f"{one.shared:,}",
                words.percent(one.agreement),
                words.coefficient(one.kappa) if one.reason is None else str(one.reason),
            )
            for one in agreement.pairs
        ]
        caption = f"Cohen's kappa of every two annotators, {agreement.question}"
        yield Table.of(
            caption, ("annotators", "shared items", "agreement", "kappa"), kappas, folded=caption, most=_MOST
        )


def balance_section(balance: Balance | None, pair_counts: Sequence[PairCount], drawings: Drawings) -> Section:
    """How votes are spread; who beat whom, and how good both were."""
    parts: list[Part] = []
    if balance is not None:
        parts += _balance(balance)
    counts = tuple(pair_counts) or (() if balance is None else balance.pairs)
    for tracker in TRACKERS:
        if any(one.counted[tracker] for one in counts):
            alt = f"Share of the points of every system against every other, {tracker}. The table holds the numbers."
            parts.append(drawings.add(plots.win_matrix(counts, tracker), alt))
    if counts:
        parts.append(_pairs(counts))
    return Section("balance", "The votes", tuple(parts))


def _balance(balance: Balance) -> Iterator[Part]:
    people = f"{len(balance.annotators):,} named annotators"
    yield Words(f"{balance.votes:,} votes on {balance.samples:,} samples by {people}, {balance.unnamed:,} unnamed.")
    spread = (("systems", balance.of_models), ("pairs", balance.of_pairs), ("samples", balance.of_samples))
    lines = [
        (
            name,
            str(one.n),
            str(one.without),
            str(one.least),
            str(one.most),
            f"{one.mean:.1f}",
            f"{one.effective:.1f}",
            words.percent(one.evenness),
        )
        for name, one in spread
        if one is not None
    ]
    heads = ("votes by", "n", "without a vote", "fewest", "most", "mean", "as many as, evenly", "evenness")
    if lines:
        yield Table.of("How evenly votes are spread", heads, lines)
    sides = [
        (question, share(balance.answers_a[question]), share(balance.answers_left[question]))
        for question in QUESTIONS
        if question in balance.answers_a
    ]
    if sides:
        yield Table.of(
            "Position: shares among answers that are no ties; one half, if sides were drawn at random",
            ("question", "A is better", "the left one is better"),
            sides,
        )
    models = [(name, f"{count:,}", share(balance.as_a[name])) for name, count in balance.models.items()]
    yield Table.of("Votes by system", ("system", "votes", "stood as A"), models, folded="votes by system")


def _pairs(counts: Sequence[PairCount]) -> Table:
    heads = ["systems", "votes", "samples"]
    for question in QUESTIONS:
        heads += [
            f"{question}: {what}" for what in ("first better", "second better", "both good", "both bad", "good of ties")
        ]
    lines = []
    for one in counts:
        cells = [f"{one.a}, {one.b}", f"{one.votes:,}", f"{one.samples:,}"]
        for question in QUESTIONS:
            found = one.answers[question]
            cells += map(str, (found.a, found.b, found.both_good, found.both_bad))
            cells.append(words.percent(found.good_of_ties))
        lines.append(cells)
    without = sum(not one.votes for one in counts)
    caption = (
        "Answers by pair. Good of ties: the share of both good among the ties tells absolute quality, which no rating "
        f"does. {wording.counted(without, 'pair')} without a vote"
    )
    return Table.of(caption, heads, lines, folded=f"answers by pair of systems ({len(lines):,})", most=_MOST)


def share(one: Share) -> str:
    """A share with its counts.

    >>> share(Share.of(1, 4))
    '25.0 % (1 of 4)'
    """
    return words.NO_VALUE if one.value is None else f"{words.percent(one.value)} ({one.count:,} of {one.n:,})"


__all__ = ["agreement_section", "balance_section", "share"]
