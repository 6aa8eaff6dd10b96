"""`arena correlate`: how far scores agree with people, by system and by vote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from api.services.arena.rating import REAL, RatingRules, rated, votes_in
from api.services.arena.sources import Scores, metric_of, scores_in
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
from gen_eval.arena.systems import SystemColumn, VideoScores, key_of
from gen_eval.arena.vote_accuracy import VoteAccuracy, vote_accuracy
from gen_eval.arena.votes import Votes
from gen_eval.data.benchmark import Rejected
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
        lower_is_better: metrics that are errors, beside those that are known to be.
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
    lower_is_better: tuple[str, ...] = ()


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
        comparisons_joint: by tracker, all metrics with scores of videos, votes and samples drawn together.
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
        scores_protocol: under which numbers of runs, reports and tables were taken.
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
    scores_protocol: str
    comparisons_joint: Mapping[str, MetricComparison] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 when a line of a file could not be used."""
        bad_votes = self.votes is not None and self.votes.rejected
        return EXIT_FAILED_ITEMS if self.rejected or bad_votes else EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena correlate --json``."""
        return {
            **self.correlations.to_json(),
            "scores_protocol": self.scores_protocol,
            "scores": {name: _score_json(one) for name, one in self.score_columns.items()},
            "comparisons": {name: one.to_json() for name, one in self.comparisons.items()},
            "comparisons_joint": {name: one.to_json() for name, one in self.comparisons_joint.items()},
            "joint": {name: one.to_json() for name, one in self.joint.items()},
            "by_vote": {name: one.to_json() for name, one in self.by_vote.items()},
            "ratings": None if self.ratings is None else self.ratings.to_json(),
            "rejected": [
                {"where": one.where, "reason": str(one.reason), "message": one.message} for one in self.rejected
            ],
            "notes": list(self.notes),
            "sources": _by_kind(self.sources),
        }


def _by_kind(sources: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, name in sources:
        found.setdefault(kind, []).append(name)
    return found


def _score_json(column: SystemColumn) -> dict[str, Any]:
    return {
        "values": dict(column.values),
        "n": dict(column.samples),
        "higher_is_better": column.higher_is_better,
        "source": column.source,
    }


def correlate_scores(request: CorrelateRequest) -> Correlated:
    """Correlate ratings with scores, and where votes are given, votes with scores of videos.

    Raises:
        InputError: neither ratings nor votes, a file that cannot be read or contradicts itself, or a metric that was
            asked for and is not there, or an option that would have no effect.
    """
    _check(request)
    votes = None if request.votes is None else votes_in(request.votes)
    made = None if votes is None else rated(votes, request.rules)
    columns, rejected = _ratings(request, made)
    scores = scores_in(
        request.scores, request.rules.of_scores, store=request.store, lower_is_better=request.lower_is_better
    )
    notes = [*_unknown_real(request.real, columns, scores.columns), *_sample_notes(scores.columns)]
    if not scores.columns and not scores.videos:
        notes.append(
            f"nothing has a score under the protocol {request.rules.of_scores}; --scores-protocol names another"
        )
    by_vote, joint = {}, _Joint()
    try:
        found = correlate(columns, scores.columns, real=request.real, resamples=request.resamples, seed=request.seed)
        comparisons = _comparisons(columns, _chosen(scores.columns, request.metrics), request, notes)
        if votes is not None and made is not None and (videos := _videos(scores, request, notes)):
            by_vote, joint = _by_vote(votes, videos, request), _joint(votes, videos, made, request, notes)
    except ValueError as error:
        raise InputError(str(error)) from error
    return Correlated(
        correlations=found,
        comparisons=comparisons,
        comparisons_joint=joint.comparisons,
        joint=joint.correlations,
        by_vote=by_vote,
        ratings=made,
        votes=votes,
        rejected=tuple(dict.fromkeys((*rejected, *scores.rejected))),
        notes=tuple(notes),
        sources=_sources(request),
        rating_columns=columns,
        score_columns=scores.columns,
        real=request.real,
        scores_protocol=request.rules.of_scores,
    )


_OF_VOTES = ("method", "order", "ridge", "clusters")


def _check(request: CorrelateRequest) -> None:
    """Refuse what is about votes, or about a file of ratings, where there is none: it would have no effect."""
    given = [name for name in _OF_VOTES if getattr(request.rules, name) is not None] if request.votes is None else []
    if request.votes is None and request.tie_threshold is not None:
        given.append("tie-threshold")
    if given:
        options = ", ".join(f"--{name}" for name in given)
        raise InputError(f"{options} is about --votes, and there are none; leave it out, or give --votes FILE")
    if request.column is not None and request.ratings is None:
        raise InputError("--column is about --ratings, and there are none; leave it out, or give --ratings FILE")


def _ratings(request: CorrelateRequest, made: ArenaRatings | None) -> tuple[dict[str, SystemColumn], list[Rejected]]:
    if request.ratings is not None:
        table = read_ratings(request.ratings, column=request.column)
        return dict(table.columns), list(table.rejected)
    if made is None:
        raise InputError("there are no ratings to correlate with; give --ratings FILE, or --votes FILE to make them")
    return {name: _column(one, made.method) for name, one in made.trackers.items()}, []


def _column(one: TrackerRatings, source: str) -> SystemColumn:
    """The ratings of a tracker as a column."""
    lower = {name: end for name, end in one.lower.items() if end is not None}
    upper = {name: end for name, end in one.upper.items() if end is not None}
    message = "" if one.reason is None else one.message
    return SystemColumn(one.tracker, one.ratings, lower, upper, source, reason=one.reason, message=message)


def _chosen(scores: Mapping[str, SystemColumn], metrics: Sequence[str] | None) -> dict[str, SystemColumn]:
    if metrics is None:
        return dict(scores)
    if missing := [name for name in metrics if key_of(name) not in scores]:
        raise InputError(f"the scores hold no {', '.join(missing)}; they hold {', '.join(scores) or 'nothing'}")
    return {key: scores[key] for key in map(key_of, metrics)}


def _unknown_real(real: Sequence[str], *sides: Mapping[str, SystemColumn]) -> Iterator[str]:
    """Systems that were called real videos and that nothing names; the default name may well be absent."""
    named = {name for side in sides for column in side.values() for name in column.values}
    for name in real:
        if name not in named and name not in REAL:
            yield f"no rating or score is of a system named {name!r}, which --real calls real videos"


def _sample_notes(scores: Mapping[str, SystemColumn]) -> Iterator[str]:
    """How many samples are behind the scores, where that is known."""
    counted: dict[tuple[int, int], list[str]] = {}
    for name, column in scores.items():
        if any(column.samples.values()):
            counted.setdefault((min(column.samples.values()), max(column.samples.values())), []).append(name)
    for (least, most), names in counted.items():
        uneven = "" if least == most else f"{least} to "
        apart = "" if least == most else ": not every system was measured on the same ones"
        yield f"{', '.join(names)}: means of systems over n = {uneven}{most} samples{apart}"


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
        if rating.reason is not None:
            notes.append(f"{name} has no ratings ({rating.reason}): {rating.message}".rstrip(": ."))
            continue
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


def _videos(scores: Scores, request: CorrelateRequest, notes: list[str]) -> list[VideoScores]:
    """Scores of single videos; none, with a note, when only numbers by system were given."""
    if not scores.videos:
        notes.append("the scores are by system only: no figures by vote, and intervals of r by systems alone")
    if request.metrics is None:
        return scores.videos
    wanted = {key_of(name) for name in request.metrics}
    return [one for one in scores.videos if key_of(one.metric) in wanted]


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


@dataclass(frozen=True)
class _Joint:
    """What is made of votes and samples that are drawn together.

    Attributes:
        correlations: of each x whose score follows from scores of videos.
        comparisons: by tracker, of all metrics with scores of videos.
    """

    correlations: Mapping[str, JointCorrelation] = field(default_factory=dict)
    comparisons: Mapping[str, MetricComparison] = field(default_factory=dict)


def _joint(
    votes: Votes, videos: Sequence[VideoScores], made: ArenaRatings, request: CorrelateRequest, notes: list[str]
) -> _Joint:
    options = made.options
    if options.get("ties") != "half" or options.get("side") or options.get("pair_floor"):
        notes.append("joint intervals of votes and samples are made for plain Bradley-Terry ratings only")
        return _Joint()
    drawn = partial(joint_draws, votes, ridge=options["ridge"], resamples=request.resamples, seed=request.seed)
    by_metric = {one.metric: one for one in videos}
    correlations, comparisons = {}, {}
    for tracker in TRACKERS:
        x = key_of(tracker)
        if not len(votes.comparisons(tracker)):
            continue
        if (metric := metric_of(x, by_metric)) is not None:
            correlations[x] = correlation_of(drawn({x: metric}, tracker), x)
        enough = _with_systems(votes.comparisons(tracker).models, by_metric)
        if len(enough) > 1 and (draws := drawn(enough, tracker)).reason is None:
            comparisons[tracker] = compare_metrics(draws.rating, draws.columns, real=request.real, draws=draws)
    return _Joint(correlations, comparisons)


def _with_systems(models: Sequence[str], videos: Mapping[str, VideoScores]) -> dict[str, VideoScores]:
    """The metrics with values of enough of the systems that have votes."""
    measured = {name: {system for (system, _), own in one.values.items() if own} for name, one in videos.items()}
    return {name: one for name, one in videos.items() if len(measured[name].intersection(models)) >= LEAST_PAIRS}


def _sources(request: CorrelateRequest) -> tuple[tuple[str, str], ...]:
    given = [("scores", path) for path in request.scores]
    given += [(name, path) for name, path in (("ratings", request.ratings), ("votes", request.votes)) if path]
    return tuple((name, path.name) for name, path in given)


__all__ = ["ByVote", "CorrelateRequest", "Correlated", "correlate_scores"]
