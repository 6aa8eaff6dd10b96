"""The page of a human study: one self-contained HTML file, and its part within the report of a run.

Nothing is asked of the network; the content security policy forbids all but the page's own style, whose digest it
names. Names are escaped wherever they stand, in figures too. Equal results give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from api.services.arena.accuracy_sections import accuracy_section
from api.services.arena.correlating import ByVote
from api.services.arena.correlation_sections import (
    Columns,
    correlation_table,
    correlations_section,
    metrics_section,
    pair_remarks,
    scatter,
)
from api.services.arena.people_sections import agreement_section, balance_section
from api.services.arena.rating_sections import (
    automatic_section,
    options_section,
    ratings_section,
    rejected_section,
)
from api.services.reporting.fragments import Fragment, Heading, Part, Section
from api.services.reporting.inline_svg import Drawings
from api.services.reporting.page import asset, content_hash, environment
from gen_eval.arena import (
    Agreement,
    ArenaRatings,
    Balance,
    Correlations,
    MetricComparison,
    PairCount,
    RejectedVote,
)
from gen_eval.arena.joint_results import JointCorrelation
from gen_eval.arena.plots import REAL


def arena_page(
    title: str,
    *,
    ratings: ArenaRatings | None = None,
    automatic: Mapping[str, ArenaRatings] | None = None,
    correlations: Correlations | None = None,
    columns: Columns | None = None,
    joint: Mapping[str, JointCorrelation] | None = None,
    metric_comparisons: Sequence[MetricComparison] = (),
    accuracies: Sequence[ByVote] = (),
    agreements: Sequence[Agreement] = (),
    balance: Balance | None = None,
    pair_counts: Sequence[PairCount] = (),
    rejected: Sequence[RejectedVote] = (),
    notes: Sequence[str] = (),
    sources: Sequence[tuple[str, str]] = (),
    real: Sequence[str] = REAL,
) -> bytes:
    """The page; a section appears when what it is about is given.

    Args:
        title: of the page.
        ratings: by people.
        automatic: metric -> ratings by its comparisons, shown beside those of people.
        correlations: of ratings with scores.
        columns: ratings and scores by name, for the intervals in the scatter.
        joint: by x, correlations with the uncertainty of votes and samples.
        metric_comparisons: metrics side by side, one for each rating.
        accuracies: metrics against single votes, one for each question.
        agreements: between people, one for each question.
        balance: how votes are spread.
        pair_counts: answers by pair, where ``balance`` is not given.
        rejected: records that are no votes, where ``ratings`` do not hold them.
        notes: what could not be compared, and why.
        sources: what the numbers were made from, name and value.
        real: systems that are real videos.
    """
    drawings = Drawings()
    arenas = dict(automatic or {})
    sections: list[Section] = []
    if ratings is not None:
        sections.append(ratings_section(ratings, drawings, real))
    if arenas:
        sections.append(automatic_section(arenas, ratings, drawings, real))
    if correlations is not None:
        sections.append(correlations_section(correlations, columns, joint or {}, notes, drawings))
    if metric_comparisons:
        sections.append(metrics_section(metric_comparisons, drawings))
    if accuracies:
        sections.append(accuracy_section(accuracies))
    if agreements:
        sections.append(agreement_section(agreements))
    if balance is not None or pair_counts:
        sections.append(balance_section(balance, pair_counts, drawings))
    sections += _facts(ratings, arenas, rejected, sources)
    return _rendered(title, sections, drawings)


def _facts(
    ratings: ArenaRatings | None,
    arenas: Mapping[str, ArenaRatings],
    rejected: Sequence[RejectedVote],
    sources: Sequence[tuple[str, str]],
) -> Iterator[Section]:
    """What was not taken, and everything that moves a number."""
    listed = tuple(rejected) or (() if ratings is None else ratings.rejected)
    if listed:
        yield rejected_section(listed)
    named = {} if ratings is None else {"votes of people": ratings}
    if named or arenas or sources:
        yield options_section({**named, **arenas}, sources)


def human_section(
    *,
    ratings: ArenaRatings | None = None,
    correlations: Correlations | None = None,
    columns: Columns | None = None,
    sources: Sequence[tuple[str, str]] = (),
    real: Sequence[str] = REAL,
) -> Fragment:
    """What people say, for the report of a run: ratings with intervals, and how far the scores agree with them.

    Args:
        ratings: by people.
        correlations: of ratings with scores.
        columns: ratings and scores by name, for the intervals in the scatter.
        sources: what they were made from, name and value.
        real: systems that are real videos.
    """
    drawings = Drawings()
    parts: list[Part] = []
    if ratings is not None:
        parts += ratings_section(ratings, drawings, real).parts
    if correlations is not None:
        parts += [Heading("Ratings against scores"), correlation_table(correlations.pairs)]
        for name, pair in correlations.pairs.items():
            parts += pair_remarks(pair, f"{name}: ")
            if pair.points:
                parts.append(scatter(pair, columns, drawings))
    if ratings is not None or sources:
        named = {} if ratings is None else {"votes of people": ratings}
        parts += options_section(named, sources).parts
    return Fragment((Section("people", "People", tuple(parts)),), _style(drawings))


def _rendered(title: str, sections: Sequence[Section], drawings: Drawings) -> bytes:
    style = asset("style.css") + "\n" + _style(drawings)
    context = {
        "title": title,
        "sections": sections,
        "style": style,
        "policy": f"default-src 'none'; style-src {content_hash(style)}",
    }
    return environment().get_template("arena.html.j2").render(context).encode(errors="replace")


def _style(drawings: Drawings) -> str:
    return f"{asset('fragments.css')}\n{drawings.style}"


__all__ = ["arena_page", "human_section"]
