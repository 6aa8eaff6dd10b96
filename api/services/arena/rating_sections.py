"""Ratings on a page: each tracker with its table, arenas of metrics beside the human one, what was not taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from api.services import wording
from api.services.arena import words
from api.services.reporting.fragments import Facts, Heading, Part, Section, Table, Words
from api.services.reporting.inline_svg import Drawings
from gen_eval.arena import ArenaRatings, Rank, RejectedVote, TrackerRatings, plots
from gen_eval.arena.names import called, level_name
from gen_eval.data.benchmark import Rejected

SCALE = (
    "Comparisons of two videos of one sample became ratings on the scale of Elo (mean 1000, 400 points: ten to one). "
    "n stands beside every number, and where a number could not be had, the reason stands in its place."
)
SINGLE_ORDER = (
    "A single pass of Elo depends on the order of the votes, in which nothing is measured: it is a display, not an "
    "estimate. The mean over random orders, or Bradley-Terry, does not depend on it."
)
_PEOPLE = "people: "
_SIDE_BY_SIDE = 4
_REJECTED = 200
_UNFOLDED = 20
"""Most rejected records that are shown unfolded."""

_DIFFERENCES = 2000


def ratings_section(ratings: ArenaRatings, drawings: Drawings, real: Sequence[str]) -> Section:
    """All trackers: the figure of all of them, then each with its table."""
    method = called(ratings.method)
    named = method if ratings.order is None else f"{method}, order of the votes: {ratings.order}"
    parts: list[Part] = [Words(f"{wording.counted(ratings.n_votes, 'vote')}, method {named}.")]
    if ratings.method == "elo" and ratings.order != "mean":
        parts.append(Words(SINGLE_ORDER, "warning"))
    parts += _pictures(ratings.trackers, drawings, real)
    for tracker in ratings.trackers.values():
        parts += _tracker(tracker, drawings, real)
    return Section("ratings", "Ratings", tuple(parts))


def automatic_section(
    automatic: Mapping[str, ArenaRatings], human: ArenaRatings | None, drawings: Drawings, real: Sequence[str]
) -> Section:
    """Arenas in which a metric votes, beside the one in which people do."""
    people = {} if human is None else human.trackers
    columns = {f"{_PEOPLE}{name}": tracker for name, tracker in people.items()}
    for metric, arena in automatic.items():
        for name, tracker in arena.trackers.items():
            columns[metric if name in {metric, "overall"} else f"{metric}: {name}"] = tracker
    # the others of people's trackers are drawn among the ratings
    aside = {f"{_PEOPLE}{name}" for name in people if name != "overall"} if "overall" in people else set()
    parts: list[Part] = [
        Words(
            "Here a metric votes: of two videos of one sample the one with the better score wins. The ratings are made "
            "as those of people are, so they stand on one scale; how wide they spread also says how often a metric "
            "contradicts itself from sample to sample."
        ),
        _beside_each_other(columns),
        *_pictures({name: one for name, one in columns.items() if name not in aside}, drawings, real, automatic=True),
    ]
    for name, tracker in columns.items():
        if not name.startswith(_PEOPLE):
            parts += _about(tracker, f"{name}: ", counted="comparison")
            if tracker.reason is None:
                table = _table(tracker, f"Ratings by {name}", folded=f"ratings by {name}", counted="comparisons")
                parts.append(table)
    return Section("automatic", "Automatic arenas", tuple(parts))


def rejected_section(votes: Sequence[RejectedVote], lines: Sequence[Rejected] = ()) -> Section:
    """Records that are no votes, and lines of ratings and scores that could not be used."""
    parts: list[Part] = []
    if votes:
        counts = _by_reason(str(one.reason) for one in votes)
        cells = [(one.id, str(one.reason), one.message, one.where) for one in votes]
        found = "1 record is no vote" if len(votes) == 1 else f"{len(votes):,} records are no votes"
        parts.append(Words(f"{found}: {counts}.", "warning"))
        parts.append(_rejected("Records that do not count", ("id", "reason", "what was wrong", "where"), cells))
    if lines:
        counts = _by_reason(str(one.reason) for one in lines)
        found = f"{wording.counted(len(lines), 'line')} of ratings and scores could not be used: {counts}."
        others = [(one.where, str(one.reason), one.message) for one in lines]
        parts.append(Words(found, "warning"))
        parts.append(_rejected("Lines that do not count", ("where", "reason", "what was wrong"), others))
    return Section("rejected", "Rejected records", tuple(parts))


def _by_reason(reasons: Iterable[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(Counter(reasons).items()))


def _rejected(caption: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    folded = caption.lower() if len(lines) > _UNFOLDED else ""
    return Table.of(caption, heads, lines, folded=folded, most=_REJECTED)


def options_section(
    people: ArenaRatings | None, automatic: Mapping[str, ArenaRatings], sources: Sequence[tuple[str, str]]
) -> Section:
    """Everything that moves a number, and where the data came from; options that are empty are left out."""
    parts: list[Part] = []
    if sources:
        parts += [Heading("Sources"), Facts(tuple(sources))]
    if people is not None:
        parts += [Heading("Parameters: votes of people"), _options(people, "votes")]
    for name, arena in automatic.items():
        parts += [Heading(f"Parameters: {name}"), _options(arena, "comparisons")]
    return Section("parameters", "Sources and parameters", tuple(parts))


_OPTIONS = {
    "k": "k",
    "order": "order of the {}",
    "protocol_digest": "digest of the protocol",
    "scores_protocol": "protocol of the scores",
    "side": "term for the left side",
    "votes_digest": "digest of the {}",
    "without_votes": "systems without {}",
    "without_value": "samples without a value, by system",
    "without_comparisons": "systems without comparisons",
}


def _options(arena: ArenaRatings, counted: str) -> Facts:
    options = {**({} if arena.order is None else {"order": arena.order}), **arena.options}
    lines = [
        (_OPTIONS.get(name, name.replace("_", " ")).format(counted), words.plain(value))
        for name, value in options.items()
        if value is not None and value not in ("", [], (), {})
    ]
    return Facts((("method", called(arena.method)), *sorted(lines)))


def _pictures(
    trackers: Mapping[str, TrackerRatings], drawings: Drawings, real: Sequence[str], *, automatic: bool = False
) -> Iterator[Part]:
    """All trackers, a few in a figure; one alone gets the figure with numbers."""
    entries = list(trackers.items())
    for start in range(0, len(entries), _SIDE_BY_SIDE):
        several = entries[start : start + _SIDE_BY_SIDE]
        counted = {name: "comparisons" for name, _ in several if automatic and not name.startswith(_PEOPLE)}
        if len(several) == 1:
            name, tracker = several[0]
            figure = plots.rating_intervals(tracker, real=real, title=name, counted=counted.get(name, "votes"))
        else:
            figure = plots.several_rating_intervals(dict(several), real=real, counted=counted)
        names = ", ".join(name for name, _ in several)
        alt = f"Dots with bars: rating and interval of every system, {names}. The tables hold the same numbers."
        yield drawings.add(figure, alt)


def _tracker(tracker: TrackerRatings, drawings: Drawings, real: Sequence[str]) -> Iterator[Part]:
    yield Heading(tracker.tracker)
    yield from _about(tracker)
    if tracker.reason is not None:
        groups = [(str(place), ", ".join(group)) for place, group in enumerate(tracker.groups, start=1)]
        if groups:
            yield Table.of("Systems that cannot be compared with each other", ("group", "systems"), groups)
        return
    yield _table(tracker, f"Ratings, {tracker.tracker}, best first")
    yield from _terms(tracker)
    if tracker.order_spread:
        yield _spread(tracker)
        alt = f"Mean, standard deviation and range of each rating over random orders of the votes, {tracker.tracker}."
        yield drawings.add(plots.order_spread(tracker, real=real), alt)
    if tracker.differences:
        yield _differences(tracker)


def _about(tracker: TrackerRatings, start: str = "", counted: str = "vote") -> Iterator[Words]:
    votes = wording.counted(tracker.n, counted)
    if tracker.reason is not None:
        text = f"{start}no ratings from {votes}. {words.why(tracker.reason)}. {tracker.message}"
        yield Words(text.rstrip(), "warning")
        return
    rule = tracker.interval
    made = "without intervals" if rule is None else rule.words or f"{rule.method} intervals"
    likelihood = "" if tracker.log_likelihood is None else f" Log-likelihood {tracker.log_likelihood:.2f}."
    yield Words(f"{start}{votes}; {made.rstrip('.')}.{likelihood}")
    if tracker.message:
        yield Words(tracker.message, "warning")
    if tracker.without_votes:
        yield Words(f"Without a {counted} that counts here: {wording.listed(tracker.without_votes, 20)}.", "note")


def _table(tracker: TrackerRatings, caption: str, *, folded: str = "", counted: str = "votes") -> Table:
    level = "interval" if tracker.interval is None else f"{level_name(tracker.interval.level)} % interval"
    others = list(tracker.other_intervals)
    heads = ["system", "rating", level, "rank", "possible ranks", counted, *(f"interval, {name}" for name in others)]
    lines = []
    for name in tracker.best_first:
        rank = tracker.ranks.get(name)
        lower, upper = tracker.lower.get(name), tracker.upper.get(name)
        lines.append(
            (
                name,
                words.points(tracker.ratings[name]),
                words.ends(lower, upper),
                words.NO_VALUE if rank is None else str(rank.rank),
                words.NO_VALUE if rank is None else _places(rank),
                f"{tracker.votes_of[name]:,}" if name in tracker.votes_of else words.NO_VALUE,
                *(words.ends(low.get(name), high.get(name)) for low, high in tracker.other_intervals.values()),
            )
        )
    return Table.of(caption, heads, lines, folded=folded)


def _places(rank: Rank) -> str:
    return str(rank.best) if rank.best == rank.worst else f"{rank.best} to {rank.worst}"


def _terms(tracker: TrackerRatings) -> Iterator[Part]:
    side, ties = tracker.side, tracker.tie_parameter
    if side is not None:
        found = f"{words.signed_points(side.value)} points ({words.ends(side.lower, side.upper)})"
        yield Words(f"Standing on the left is worth {found}; 0 is no position bias.")
    if ties is not None:
        found = f"{ties.value:.3f} ({words.ends(ties.lower, ties.upper, 3)})"
        tied = ties.value / (2 + ties.value)
        yield Words(f"Davidson's tie parameter is {found}: of two equal systems, people call {100 * tied:.0f} % a tie.")


def _spread(tracker: TrackerRatings) -> Table:
    spread = tracker.order_spread
    lines = [
        (name, *map(words.points, (one.mean, one.sd, one.lowest, one.highest)), words.points(one.highest - one.lowest))
        for name, one in sorted(spread.items(), key=lambda item: (-item[1].mean, item[0]))
    ]
    rankings = "" if tracker.rankings is None else f"; {tracker.rankings} different rankings"
    caption = f"Ratings over random orders of the same votes{rankings}"
    return Table.of(caption, ("system", "mean", "standard deviation", "lowest", "highest", "range"), lines)


def _differences(tracker: TrackerRatings) -> Table:
    lines = [
        (
            f"{one.a} over {one.b}",
            words.signed_points(one.difference),
            words.ends(one.lower, one.upper),
            words.percent(one.chance),
            "yes" if one.clear else "no",
        )
        for one in tracker.differences
    ]
    clear = sum(one.clear for one in tracker.differences)
    caption = f"Differences, {tracker.tracker}: each with its own interval, so two overlapping bars decide nothing"
    return Table.of(
        caption,
        ("systems", "difference", "interval", "preferred", "clear"),
        lines,
        folded=f"differences of every two systems ({clear} of {len(lines)} clear)",
        most=_DIFFERENCES,
    )


def _beside_each_other(columns: Mapping[str, TrackerRatings]) -> Table:
    names = list(dict.fromkeys(name for tracker in columns.values() for name in tracker.best_first))
    lines = [(name, *(_with_rank(tracker, name) for tracker in columns.values())) for name in names]
    heads = ("system", *(f"{name} (n = {one.n:,})" for name, one in columns.items()))
    return Table.of("Ratings side by side, with ranks; n is the number of comparisons", heads, lines)


def _with_rank(tracker: TrackerRatings, name: str) -> str:
    if tracker.reason is not None:
        return str(tracker.reason)
    rank = tracker.ranks.get(name)
    return words.points(tracker.ratings.get(name)) + ("" if rank is None else f" ({rank.rank})")


__all__ = ["SINGLE_ORDER", "automatic_section", "options_section", "ratings_section", "rejected_section"]
