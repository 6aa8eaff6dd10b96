"""`arena correlate`: how far scores agree with people, by system and by vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api.services.arena.rating import REAL, RatingRules, rated, votes_in
from api.services.arena.sources import system_scores, video_scores
from gen_eval.arena import (
    TRACKERS,
    ArenaRatings,
    Correlations,
    MetricComparison,
    TrackerRatings,
    compare_metrics,
    correlate,
    read_ratings,
)
from gen_eval.arena.accuracy_comparison import AccuracyComparison, compare_accuracy
from gen_eval.arena.joint import correlation_of, joint_draws
from gen_eval.arena.joint_results import JointCorrelation
from gen_eval.arena.systems import SAME, SystemColumn, VideoScores
from gen_eval.arena.video_means import Metric
from gen_eval.arena.vote_accuracy import VoteAccuracy, vote_accuracy
from gen_eval.arena.votes import Votes
from gen_eval.data.benchmark import Rejected
from gen_eval.protocols import total_rules
from gen_eval.records import InputError
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS
from gen_eval.stats.correlation import LEAST_PAIRS


@dataclass(frozen=True)
class CorrelateRequest:
    """What to correlate.

    Attributes:
        scores: files and run folders.
        ratings: file of ratings; ``None`` with votes.
        votes: file of votes, rated by ``rules``; per-vote figures and joint intervals need it.
        rules: how votes become ratings.
        column: which of several ratings of one tracker.
        real: systems that are real videos.
        metrics: only these of the scores, for the comparison and the per-vote figures.
        tie_threshold: two videos whose scores differ by no more are equal; ``None`` finds one by cross-validation.
        resamples: of every bootstrap.
        seed: of all that is drawn.
        store: database URL when the rows of runs are not in their folders.
    """

    scores: tuple[Path, ...]
    ratings: Path | None = None
    votes: Path | None = None
    rules: RatingRules = field(default_factory=RatingRules)
    column: str | None = None
    real: tuple[str, ...] = REAL
    metrics: tuple[str, ...] | None = None
    tie_threshold: float | None = None
    resamples: int = 10_000
    seed: int = 0
    store: str | None = None


@dataclass(frozen=True)
class ByVote:
    """How often metrics agree with single votes.

    Attributes:
        tracker: the question.
        accuracies: by metric.
        comparison: of several metrics on the votes that all of them can answer; ``None`` with one.
    """

    tracker: str
    accuracies: Mapping[str, VoteAccuracy]
    comparison: AccuracyComparison | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "accuracy": {name: one.to_json() for name, one in self.accuracies.items()},
            "comparison": None if self.comparison is None else self.comparison.to_json(),
        }


@dataclass(frozen=True)
class Correlated:
    """How far scores agree with people.

    Attributes:
        correlations: ratings against scores of the same name, over systems.
        comparisons: by rating, all metrics side by side.
        joint: by x, the correlation with the uncertainty of votes and of scores together.
        by_vote: by tracker.
        ratings: made from votes; ``None`` when they came from a file.
        votes: the votes; ``None`` without any.
        rejected: lines of ratings and scores that could not be used.
        notes: what could not be compared, and why.
        sources: what was read.
        rating_columns: the ratings, by name.
        score_columns: the scores by system, by name.
        real: systems that are real videos.
    """

    correlations: Correlations
    comparisons: Mapping[str, MetricComparison]
    joint: Mapping[str, JointCorrelation]
    by_vote: Mapping[str, ByVote]
    ratings: ArenaRatings | None
    votes: Votes | None
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    rating_columns: Mapping[str, SystemColumn]
    score_columns: Mapping[str, SystemColumn]
    real: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 when a line of a file could not be used."""
        bad_votes = self.votes is not None and self.votes.rejected
        return EXIT_FAILED_ITEMS if self.rejected or bad_votes else EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena correlate --json``."""
        return {
            **self.correlations.to_json(),
            "comparisons": {name: one.to_json() for name, one in self.comparisons.items()},
            "joint": {name: one.to_json() for name, one in self.joint.items()},
            "by_vote": {name: one.to_json() for name, one in self.by_vote.items()},
            "ratings": None if self.ratings is None else self.ratings.to_json(),
            "rejected": [
                {"where": one.where, "reason": str(one.reason), "message": one.message} for one in self.rejected
            ],
            "notes": list(self.notes),
            "sources": dict(self.sources),
        }


def correlate_scores(request: CorrelateRequest) -> Correlated:
    """Correlate ratings with scores, and where votes are given, votes with scores of videos.

    Raises:
        InputError: neither ratings nor votes, a file that cannot be read or contradicts itself, or a metric that was
            asked for and is not there.
    """
    votes = None if request.votes is None else votes_in(request.votes)
    made = None if votes is None else rated(votes, request.rules)
    columns, rejected = _ratings(request, made)
    scores, more = system_scores(request.scores, _protocol(request), store=request.store)
    notes: list[str] = []
    try:
        found = correlate(columns, scores, real=request.real, resamples=request.resamples, seed=request.seed)
        comparisons = _comparisons(columns, _chosen(scores, request.metrics), request, notes)
        videos = [] if votes is None else _videos(request, notes)
        by_vote = {} if votes is None or not videos else _by_vote(votes, videos, request)
        joint = {} if votes is None or not videos else _joint(votes, videos, made, request, notes)
    except ValueError as error:
        raise InputError(str(error)) from error
    return Correlated(
        correlations=found,
        comparisons=comparisons,
        joint=joint,
        by_vote=by_vote,
        ratings=made,
        votes=votes,
        rejected=(*rejected, *more),
        notes=tuple(notes),
        sources=_sources(request),
        rating_columns=columns,
        score_columns=scores,
        real=request.real,
    )


def _ratings(request: CorrelateRequest, made: ArenaRatings | None) -> tuple[dict[str, SystemColumn], list[Rejected]]:
    if request.ratings is not None:
        table = read_ratings(request.ratings, column=request.column)
        return dict(table.columns), list(table.rejected)
    if made is None:
        raise InputError("there are no ratings to correlate with; give --ratings FILE, or --votes FILE to make them")
    return {name: column_of(one, made.method) for name, one in made.trackers.items()}, []


def column_of(one: TrackerRatings, source: str) -> SystemColumn:
    """The ratings of a tracker as a column."""
    lower = {name: end for name, end in one.lower.items() if end is not None}
    upper = {name: end for name, end in one.upper.items() if end is not None}
    return SystemColumn(one.tracker, one.ratings, lower, upper, source)


def _protocol(request: CorrelateRequest) -> str:
    return Path(request.rules.protocol).stem


def _chosen(scores: Mapping[str, SystemColumn], metrics: Sequence[str] | None) -> dict[str, SystemColumn]:
    if metrics is None:
        return dict(scores)
    if missing := [name for name in metrics if name not in scores]:
        raise InputError(f"the scores hold no {', '.join(missing)}; they hold {', '.join(scores) or 'nothing'}")
    return {name: scores[name] for name in metrics}


def _comparisons(
    ratings: Mapping[str, SystemColumn],
    scores: Mapping[str, SystemColumn],
    request: CorrelateRequest,
    notes: list[str],
) -> dict[str, MetricComparison]:
    """All metrics side by side for each rating; those with too few systems are left out, so that they hide no other."""
    found = {}
    lacking: dict[tuple[str, ...], list[str]] = {}
    for name, rating in ratings.items():
        enough = {metric: one for metric, one in scores.items() if len(_common(rating, one)) >= LEAST_PAIRS}
        if few := tuple(metric for metric in scores if metric not in enough):
            lacking.setdefault(few, []).append(name)
        if len(enough) > 1:
            found[name] = compare_metrics(
                rating, enough, real=request.real, resamples=request.resamples, seed=request.seed
            )
    for few, names in lacking.items():
        common = f"fewer than {LEAST_PAIRS} systems in common with the rating{'s' * (len(names) > 1)}"
        notes.append(f"{', '.join(few)}: {common} {', '.join(names)}")
    return found


def _common(rating: SystemColumn, score: SystemColumn) -> list[str]:
    return [name for name, value in rating.values.items() if value is not None and score.values.get(name) is not None]


def _videos(request: CorrelateRequest, notes: list[str]) -> list[VideoScores]:
    """Scores of single videos; none, with a note, when only numbers by system were given."""
    found = video_scores(request.scores, None, _protocol(request), store=request.store)
    if not found:
        notes.append("the scores are by system only: no figures by vote, and intervals of r by systems alone")
    if request.metrics is None:
        return found
    return [one for one in found if one.metric in request.metrics]


def _by_vote(votes: Votes, videos: Sequence[VideoScores], request: CorrelateRequest) -> dict[str, ByVote]:
    drawn = {"resamples": request.resamples, "seed": request.seed}
    found = {}
    for tracker in TRACKERS:
        if not len(votes.comparisons(tracker)):
            continue
        accuracies = {
            one.metric: vote_accuracy(votes, one, tracker, tie_threshold=request.tie_threshold, **drawn)
            for one in videos
        }
        comparison = compare_accuracy(votes, videos, tracker, **drawn) if len(videos) > 1 else None
        found[tracker] = ByVote(tracker, accuracies, comparison)
    return found


def _joint(
    votes: Votes, videos: Sequence[VideoScores], made: ArenaRatings | None, request: CorrelateRequest, notes: list[str]
) -> dict[str, JointCorrelation]:
    """Correlation of each x whose score follows from scores of videos, votes and samples drawn together."""
    options = {} if made is None else made.options
    if options.get("ties") != "half" or options.get("side") or options.get("pair_floor"):
        notes.append("joint intervals of votes and samples are made for plain Bradley-Terry ratings only")
        return {}
    by_metric = {one.metric: one for one in videos}
    found = {}
    for tracker in TRACKERS:
        x = SAME.get(tracker, tracker)
        metric = _score_of(x, by_metric)
        if metric is None or not len(votes.comparisons(tracker)):
            continue
        draws = joint_draws(
            votes,
            {x: metric},
            tracker,
            ridge=request.rules.ridge or 0.0,
            resamples=request.resamples,
            seed=request.seed,
        )
        found[x] = correlation_of(draws, x)
    return found


def _score_of(x: str, videos: Mapping[str, VideoScores]) -> Metric | None:
    """The metric, or the means of means, that make up the score ``x``; ``None`` when a part has no scores of videos."""
    for name, one in videos.items():
        if x in (name, SAME.get(name)):
            return one
    rule = total_rules().get(x)
    if rule is None:
        return None
    parts: list[Metric] = []
    for name in rule.mean_of:
        part = _score_of(name, videos)
        if part is None:
            return None
        parts.append(part)
    return parts


def _sources(request: CorrelateRequest) -> tuple[tuple[str, str], ...]:
    given = [("scores", path) for path in request.scores]
    given += [(name, path) for name, path in (("ratings", request.ratings), ("votes", request.votes)) if path]
    return tuple((name, path.name) for name, path in given)


__all__ = ["ByVote", "CorrelateRequest", "Correlated", "column_of", "correlate_scores"]
