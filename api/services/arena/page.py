"""The page of a human study: one self-contained HTML file, and its part within the report of a run.

Nothing is asked of the network; the content security policy forbids all but the page's own style, whose digest it
names. Names are escaped wherever they stand, in figures too. Equal results give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from api.services.arena.accuracy_sections import accuracy_section
from api.services.arena.correlating import ByVote
from api.services.arena.correlation_sections import (
    Columns,
    correlations_section,
    metrics_section,
)
from api.services.arena.people_sections import agreement_section, balance_section
from api.services.arena.rating_sections import (
    SCALE,
    automatic_section,
    options_section,
    ratings_section,
    rejected_section,
)
from api.services.reporting.fragments import Folded, Fragment, Heading, Part, Section, Words
from api.services.reporting.inline_svg import Drawings
from api.services.reporting.page import asset, content_hash, environment
from gen_eval.arena import (
    Agreement,
    ArenaRatings,
    Balance,
    Correlations,
    MetricComparison,
    RejectedVote,
)
from gen_eval.arena.joint_results import JointCorrelation
from gen_eval.arena.systems import REAL
from gen_eval.data.benchmark import Rejected

_SHOWN = ("ratings", "correlations", "rejected")
"""Sections that a report shows unfolded."""


@dataclass(frozen=True)
class Study:
    """What a page says; a section appears when what it is about is given.

    Attributes:
        ratings: by people.
        automatic: metric -> ratings by its comparisons, shown beside those of people.
        correlations: of ratings with scores.
        columns: ratings and scores by name, for the intervals in the scatter.
        joint: by x, correlations with the uncertainty of votes and samples.
        metric_comparisons: metrics side by side, one for each rating.
        accuracies: metrics against single votes, one for each question.
        agreements: between people, one for each question.
        balance: how votes are spread.
        rejected: records that are no votes, where ``ratings`` do not hold them.
        rejected_lines: lines of ratings and scores that could not be used.
        notes: what could not be compared, and why.
        sources: what the numbers were made from, name and value.
        real: systems that are real videos.
    """

    ratings: ArenaRatings | None = None
    automatic: Mapping[str, ArenaRatings] = field(default_factory=dict)
    correlations: Correlations | None = None
    columns: Columns | None = None
    joint: Mapping[str, JointCorrelation] = field(default_factory=dict)
    metric_comparisons: Sequence[MetricComparison] = ()
    accuracies: Sequence[ByVote] = ()
    agreements: Sequence[Agreement] = ()
    balance: Balance | None = None
    rejected: Sequence[RejectedVote] = ()
    rejected_lines: Sequence[Rejected] = ()
    notes: Sequence[str] = ()
    sources: Sequence[tuple[str, str]] = ()
    real: Sequence[str] = REAL


def arena_page(title: str, study: Study) -> bytes:
    """The page of ``study``."""
    drawings = Drawings()
    return _rendered(title, list(_sections(study, drawings)), drawings)


def human_section(study: Study) -> Fragment:
    """The same for the report of runs: one section, in which all but ratings and correlations is folded away."""
    drawings = Drawings()
    parts: list[Part] = [Words(SCALE, "note")]
    for section in _sections(study, drawings):
        inner = tuple(replace(part, level=4) if isinstance(part, Heading) else part for part in section.parts)
        shown = section.anchor in _SHOWN
        parts += [Heading(section.title), *inner] if shown else [Folded(section.title, inner)]
    return Fragment((Section("people", "People", tuple(parts)),), _style(drawings))


def _sections(study: Study, drawings: Drawings) -> Iterator[Section]:
    if study.ratings is not None:
        yield ratings_section(study.ratings, drawings, study.real)
    if study.automatic:
        yield automatic_section(study.automatic, study.ratings, drawings, study.real)
    if study.correlations is not None:
        yield correlations_section(study.correlations, study.columns, study.joint, study.notes, drawings)
    if study.metric_comparisons:
        yield metrics_section(study.metric_comparisons, drawings)
    if study.accuracies:
        yield accuracy_section(study.accuracies)
    if study.agreements:
        yield agreement_section(study.agreements)
    if study.balance is not None:
        yield balance_section(study.balance, drawings)
    yield from _facts(study)


def _facts(study: Study) -> Iterator[Section]:
    """What was not taken, and everything that moves a number."""
    rejected = tuple(study.rejected) or (() if study.ratings is None else study.ratings.rejected)
    if rejected or study.rejected_lines:
        yield rejected_section(rejected, study.rejected_lines)
    if study.ratings is not None or study.automatic or study.sources:
        yield options_section(study.ratings, study.automatic, study.sources)


def _rendered(title: str, sections: Sequence[Section], drawings: Drawings) -> bytes:
    style = asset("style.css") + "\n" + _style(drawings)
    context = {
        "title": title,
        "scale": SCALE,
        "sections": sections,
        "style": style,
        "policy": f"default-src 'none'; style-src {content_hash(style)}",
    }
    return environment().get_template("arena.html.j2").render(context).encode(errors="replace")


def _style(drawings: Drawings) -> str:
    return f"{asset('fragments.css')}\n{drawings.style}"


__all__ = ["Study", "arena_page", "human_section"]
