"""Ratings on a page: each tracker with its table, arenas of metrics beside the human one, what was not taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from api.services import wording
from api.services.arena import words
from api.services.reporting.fragments import Facts, Heading, Part, Section, Table, Words
from api.services.reporting.inline_svg import Drawings
from gen_eval.arena import ArenaRatings, Rank, RejectedVote, TrackerRatings, plots

SINGLE_ORDER = (
    "A single pass of Elo depends on the order of the votes, in which nothing is measured: it is a display, not an "
    "estimate. The mean over random orders, or Bradley-Terry, does not depend on it."
)
_PEOPLE = "people: "
_SIDE_BY_SIDE = 4
_REJECTED = 200
_DIFFERENCES = 2000


def ratings_section(ratings: ArenaRatings, drawings: Drawings, real: Sequence[str]) -> Section:
    """All trackers: the figure of all of them, then each with its table."""
    named = ratings.method if ratings.order is None else f"{ratings.method}, order of the votes: {ratings.order}"
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
        *_pictures({name: one for name, one in columns.items() if name not in aside}, drawings, real),
    ]
    for name, tracker in columns.items():
        if not name.startswith(_PEOPLE):
            parts += _about(tracker, f"{name}: ")
            if tracker.reason is None:
                parts.append(_table(tracker, f"Ratings by {name}", folded=f"ratings by {name}"))
    return Section("automatic", "Automatic arenas", tuple(parts))


def rejected_section(rejected: Sequence[RejectedVote]) -> Section:
    """Records that are no votes."""
    lines = [(one.id, str(one.reason), one.message, one.where) for one in rejected]
    counts: dict[str, int] = {}
    for one in rejected:
        counts[str(one.reason)] = counts.get(str(one.reason), 0) + 1
    listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    table = Table.of("Records that do not count", ("id", "reason", "what was wrong", "where"), lines, most=_REJECTED)
    return Section("rejected", "Rejected votes", (Words(f"{len(rejected):,} records are no votes: {listed}."), table))


def options_section(named: Mapping[str, ArenaRatings], sources: Sequence[tuple[str, str]]) -> Section:
    """Everything that moves a number, and where the data came from."""
    parts: list[Part] = []
    if sources:
        parts += [Heading("Sources"), Facts(tuple(sources))]
    for name, arena in named.items():
        order = [] if arena.order is None else [("order of the votes", arena.order)]
        options = [(option, words.plain(value)) for option, value in sorted(arena.options.items())]
        parts += [Heading(f"Parameters: {name}"), Facts((("method", arena.method), *order, *options))]
    return Section("parameters", "Sources and parameters", tuple(parts))


def _pictures(trackers: Mapping[str, TrackerRatings], drawings: Drawings, real: Sequence[str]) -> Iterator[Part]:
    """All trackers, a few in a figure; one alone gets the figure with numbers."""
    entries = list(trackers.items())
    for start in range(0, len(entries), _SIDE_BY_SIDE):
        several = entries[start : start + _SIDE_BY_SIDE]
        if len(several) == 1:
            name, tracker = several[0]
            figure = plots.rating_intervals(tracker, real=real, title=name)
        else:
            figure = plots.several_rating_intervals(dict(several), real=real)
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


def _about(tracker: TrackerRatings, start: str = "") -> Iterator[Words]:
    votes = wording.counted(tracker.n, "vote")
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
        yield Words(f"Without a vote that counts here: {wording.listed(tracker.without_votes, 20)}.", "note")


def _table(tracker: TrackerRatings, caption: str, *, folded: str = "") -> Table:
    level = "interval" if tracker.interval is None else f"{100 * tracker.interval.level:g} % interval"
    others = list(tracker.other_intervals)
    heads = ["system", "rating", level, "rank", "possible ranks", "votes", *(f"interval, {name}" for name in others)]
    lines = []
    for name in words.best_first(tracker):
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
    names = list(dict.fromkeys(name for tracker in columns.values() for name in words.best_first(tracker)))
    lines = [(name, *(_with_rank(tracker, name) for tracker in columns.values())) for name in names]
    heads = ("system", *(f"{name} (n = {one.n:,})" for name, one in columns.items()))
    return Table.of("Ratings side by side, with ranks; n is the number of comparisons", heads, lines)


def _with_rank(tracker: TrackerRatings, name: str) -> str:
    if tracker.reason is not None:
        return str(tracker.reason)
    rank = tracker.ranks.get(name)
    return words.points(tracker.ratings.get(name)) + ("" if rank is None else f" ({rank.rank})")


__all__ = ["SINGLE_ORDER", "automatic_section", "options_section", "ratings_section", "rejected_section"]
