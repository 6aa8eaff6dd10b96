"""The people and their votes on a page: agreement, annotators, how votes are spread, who beat whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.services import wording
from api.services.arena import words
from api.services.reporting.fragments import Heading, Part, Section, Table, Words
from api.services.reporting.inline_svg import Drawings
from gen_eval.arena import Agreement, Balance, PairCount, plots
from gen_eval.arena.annotators import WARNINGS, AnnotatorPair, AnnotatorReport
from gen_eval.arena.names import called
from gen_eval.arena.shares import Share
from gen_eval.arena.votes import QUESTIONS, TRACKERS
from gen_eval.stats import Interval

_MOST = 500


def agreement_section(agreements: Sequence[Agreement]) -> Section:
    """How far people agree, with each other and with themselves."""
    parts: list[Part] = [_agreements(agreements)]
    for one in agreements:
        if one.reason is not None:
            parts.append(Words(f"{one.question}: {one.message} ({one.reason}).", "warning"))
    for one in agreements:
        parts += _annotators(one)
    return Section("agreement", "Agreement between people", tuple(parts))


def _agreements(agreements: Sequence[Agreement]) -> Table:
    measures = [dict(_measures(one)) for one in agreements]
    names = list(dict.fromkeys(name for one in measures for name in one))
    lines = [(name, *(one.get(name, words.NO_VALUE) for one in measures)) for name in names]
    caption = "Agreement on items that several people judged; of kappa and alpha 0 is what chance gives, 1 is perfect"
    return Table.of(caption, ("measure", *(one.question for one in agreements)), lines)


def _measures(agreement: Agreement) -> Iterator[tuple[str, str]]:
    yield "answers", f"{agreement.votes:,}"
    yield "items that several judged", f"{agreement.shared:,} of {agreement.items:,}"
    raw = agreement.raw
    pairs = f" of {raw.n:,} pairs of answers" if raw.n else ""
    yield "raw agreement", f"{words.percent(raw.value)}{pairs}{_within(raw.interval, 100)}"
    for name, alpha in agreement.alphas.items():
        value = str(alpha.reason) if alpha.value is None else words.coefficient(alpha.value)
        yield f"Krippendorff's alpha, {called(name)}", f"{value}{_within(alpha.interval)}"
    if agreement.kappas:
        pairs = wording.counted(agreement.kappas, "pair")
        yield "mean of Cohen's kappas", f"{words.coefficient(agreement.mean_kappa)} ({pairs} of annotators)"
    consistency = agreement.consistency
    yield "asked again: same answer", share(consistency.everything)
    yield "asked again, sides exchanged: same answer", share(consistency.swapped)


def _within(interval: Interval | None, scale: float = 1) -> str:
    if interval is None:
        return ""
    return f" [{words.ends(interval.lower, interval.upper, 1 if scale > 1 else 2, scale=scale)}]"


def _annotators(agreement: Agreement) -> Iterator[Part]:
    if agreement.annotators:
        yield Heading(f"Annotators, {agreement.question}")
        for warning, rule in WARNINGS.items():
            if warned := [one.name for one in agreement.annotators if warning in one.warnings]:
                names = wording.listed(warned, 20)
                yield Words(f"To look at ({called(warning)}: {rule}): {names}. Nobody is left out by that.", "warning")
        lines = [_annotator_line(one) for one in agreement.annotators]
        yield Table.of(f"Annotators, {agreement.question}", _ANNOTATOR_HEADS, lines, most=_MOST)
    if agreement.pairs:
        yield _kappas(agreement)


_ANNOTATOR_HEADS = (
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


def _annotator_line(one: AnnotatorReport) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.votes:,}",
        f"{one.shared:,}",
        share(one.agreement),
        _kappa(one),
        *(words.percent(part.value) for part in (one.ties, one.both_good, one.both_bad)),
        share(one.a),
        share(one.left),
        words.NO_VALUE if one.median_seconds is None else f"{one.median_seconds:.1f} (n = {one.timed:,})",
        share(one.consistency.everything),
        ", ".join(map(called, one.warnings)) or "none",
    )


def _kappas(agreement: Agreement) -> Table:
    lines = [
        (f"{one.a}, {one.b}", f"{one.shared:,}", words.percent(one.agreement), _kappa(one)) for one in agreement.pairs
    ]
    caption = f"Cohen's kappa of every two annotators, {agreement.question}"
    heads = ("annotators", "shared items", "agreement", "kappa")
    return Table.of(caption, heads, lines, folded=caption, most=_MOST)


def _kappa(one: AnnotatorReport | AnnotatorPair) -> str:
    return words.coefficient(one.kappa) if one.reason is None else str(one.reason)


def balance_section(balance: Balance, drawings: Drawings) -> Section:
    """How votes are spread; who beat whom, and how good both were."""
    parts: list[Part] = [*_balance(balance)]
    counts = balance.pairs
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
