"""Correlation with the uncertainty of both sides: votes and scores of the same drawn samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from gen_eval.arena.cells import Cells, cell_counts, cells_of
from gen_eval.arena.coefficients import COEFFICIENTS, Bools, Coefficient, row_coefficients
from gen_eval.arena.comparisons import Comparisons, Ints
from gen_eval.arena.connectivity import Diagnosis, diagnose
from gen_eval.arena.correlate import common_systems, numbers_of, subset_of
from gen_eval.arena.correlations import Ends, Subset
from gen_eval.arena.fitting import fit
from gen_eval.arena.joint_results import JointCorrelation, JointDraws
from gen_eval.arena.noise import NoiseCorrected, noise_corrected
from gen_eval.arena.resampled_ends import percentile_ends
from gen_eval.arena.scale import INITIAL, POINTS
from gen_eval.arena.systems import SystemColumn
from gen_eval.arena.video_means import Metric, MetricTable, Sums, name_of, resampled_means
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.stats.intervals import check_level
from gen_eval.stats.resampling import check_resampling, resampled_counts
from gen_eval.stats.summaries import Floats


def joint_draws(
    votes: AnyVotes,
    metrics: Mapping[str, Metric],
    tracker: str = "overall",
    *,
    ridge: float = 0.0,
    resamples: int = 10_000,
    seed: int = 0,
    block: int | None = None,
) -> JointDraws:
    """Draw samples with replacement; the votes and the scores of a drawn sample come with it.

    Drawn from are all samples that have votes or scores, so what makes a sample odd for people and for the metric at
    once stays together. Per resample: Bradley-Terry ratings by maximum likelihood (ties half a win for each), and per
    system the mean over the drawn samples of the mean over their seeds. :func:`compare_metrics` takes the result:
    ``compare_metrics(draws.rating, draws.columns, draws=draws)``.

    Args:
        votes: in any form that :func:`gen_eval.arena.votes_from` takes; bare triples have no sample in common with
            any score.
        metrics: scores of videos by name; for a total the parts, see :data:`Metric`.
        tracker: ``overall``, ``quality`` or ``plausibility``.
        ridge: penalty on the ratings, 0 for none.
        resamples: R.
        seed: of the draws.
        block: counts held at a time; changes memory and speed, never the result.

    Raises:
        ValueError: no vote that counts, no metric, a total without parts or of scores and errors mixed, a score that is
            not finite, no such tracker, or an argument outside its range.
    """
    check_resampling(1, resamples, seed)
    comparisons = votes_from(votes).comparisons(tracker)
    if not len(comparisons):
        raise ValueError(f"no vote counts for {tracker}; expected votes that answer its question")
    tables = _tables(metrics)
    models = tuple(name for name in comparisons.models if all(name in one.models for one in tables.values()))
    samples = _Samples.of(comparisons, tables.values())
    study = _Study.of(comparisons, models, samples, ridge)
    sums = {name: one.sums(models, samples.places) for name, one in tables.items()}
    drawn = _Drawn.empty(resamples, len(models), tables)
    for weights in resampled_counts(samples.units, resamples=resamples, seed=seed, block=block):
        drawn.add(study, sums, weights, len(samples.places))
    return JointDraws(
        models=models,
        rating=SystemColumn(tracker, dict(zip(models, study.estimates(), strict=True))),
        columns={name: one.column(models) for name, one in tables.items()},
        ratings=drawn.ratings,
        scores=drawn.scores,
        identified=drawn.identified,
        scored=drawn.scored,
        reason=None if study.diagnosis is None else study.diagnosis.reason,
        message="" if study.diagnosis is None else study.diagnosis.message,
        tracker=tracker,
        n_votes=len(comparisons),
        samples=samples.units,
        samples_with_both=samples.both,
        without_scores=tuple(name for name in comparisons.models if name not in models),
        words=f"samples drawn with their votes and their scores, {resamples} resamples, seed {seed}",
    )


def _tables(metrics: Mapping[str, Metric]) -> dict[str, MetricTable]:
    if not metrics:
        raise ValueError("metrics hold no score; give the scores of at least one metric")
    return {name: MetricTable.of(name, metric) for name, metric in metrics.items()}


class _Samples(NamedTuple):
    """What is drawn: samples by place, and behind them the votes that name none, each by itself."""

    places: Mapping[str, int]
    of_votes: Ints  # (n,) place of each vote
    units: int
    both: int  # samples with votes and scores

    @classmethod
    def of(cls, comparisons: Comparisons, tables: Iterable[MetricTable]) -> _Samples:
        judged = {name for name in comparisons.samples if name is not None}
        measured = {name for one in tables for name in one.samples}
        places = {name: place for place, name in enumerate(sorted(judged | measured))}
        beyond = count(len(places))
        of_votes = [next(beyond) if name is None else places[name] for name in comparisons.samples]
        units = len(places) + comparisons.samples.count(None)
        return cls(places, np.array(of_votes, dtype=np.int64), units, len(judged & measured))


class _Study(NamedTuple):
    """The votes as cells, each with the place of its sample, and their fit."""

    cells: Cells
    places: Ints
    columns: list[int]  # of the systems that count, among all that have votes
    ridge: float
    theta: Floats
    diagnosis: Diagnosis | None

    @classmethod
    def of(cls, comparisons: Comparisons, models: tuple[str, ...], samples: _Samples, ridge: float) -> _Study:
        cells = cells_of(comparisons)
        columns = [comparisons.models.index(name) for name in models]
        theta = fit(cells, cells.counts[None], ridge=ridge).theta[0]
        return cls(cells, samples.of_votes, columns, ridge, theta, None if ridge else diagnose(cells))

    def estimates(self) -> list[float | None]:
        if self.diagnosis is not None:
            return [None] * len(self.columns)
        return [INITIAL + POINTS * float(self.theta[place]) for place in self.columns]

    def ratings(self, weights: Floats) -> tuple[Floats, Bools]:
        """``(k, M)`` points of k resamples, and which have any."""
        counts = cell_counts(self.cells, self.places, weights)
        found = fit(self.cells, counts, ridge=self.ridge, start=self.theta)
        return INITIAL + POINTS * found.theta[:, self.columns], found.identified


@dataclass
class _Drawn:
    """Resamples as they come in, block by block."""

    ratings: Floats
    scores: dict[str, Floats]
    identified: Bools
    scored: Bools
    done: int = 0

    @classmethod
    def empty(cls, resamples: int, models: int, metrics: Iterable[str]) -> _Drawn:
        scores = {name: np.zeros((resamples, models)) for name in metrics}
        nothing = np.zeros(resamples, dtype=bool)
        return cls(np.zeros((resamples, models)), scores, nothing, np.ones(resamples, dtype=bool))

    def add(self, study: _Study, sums: Mapping[str, Sums], weights: Floats, named: int) -> None:
        rows = slice(self.done, self.done + len(weights))
        if study.diagnosis is None:
            self.ratings[rows], self.identified[rows] = study.ratings(weights)
        for name, parts in sums.items():
            self.scores[name][rows], present = resampled_means(parts, weights[:, :named])
            self.scored[rows] &= present
        self.done += len(weights)


def joint_correlation(
    votes: AnyVotes,
    scores: Metric,
    tracker: str = "overall",
    *,
    name: str | None = None,
    ridge: float = 0.0,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> JointCorrelation:
    """Correlation of Bradley-Terry ratings with a metric, with a joint bootstrap of votes and samples.

    Args:
        votes: see :func:`joint_draws`.
        scores: of videos, or the parts of a total (see :data:`Metric`).
        tracker: ``overall``, ``quality`` or ``plausibility``.
        name: of the metric; its own without.
        ridge: see :func:`joint_draws`.
        resamples: of the samples.
        seed: of these.
        level: nominal coverage.

    Raises:
        ValueError: see :func:`joint_draws`, or the level is outside its range.
    """
    check_level(level)
    called = name if name is not None else name_of(scores)
    draws = joint_draws(votes, {called: scores}, tracker, ridge=ridge, resamples=resamples, seed=seed)
    return correlation_of(draws, called, level=level)


def correlation_of(draws: JointDraws, metric: str, *, level: float = 0.95) -> JointCorrelation:
    """The correlation of one of the metrics of ``draws``.

    Raises:
        KeyError: there is no such metric.
    """
    column = draws.columns[metric]
    whole = _whole(draws, column)
    found = row_coefficients(draws.ratings, draws.scores[metric])
    defined = draws.defined & found.defined if whole.reason is None else np.zeros(len(draws.ratings), dtype=bool)
    intervals, widened = _intervals({name: found.of(name)[defined] for name in COEFFICIENTS}, whole, level)
    return JointCorrelation(
        metric=metric,
        tracker=draws.tracker,
        n=len(draws.models),
        reason=whole.reason,
        message=draws.message,
        pearson=whole.pearson,
        spearman=whole.spearman,
        kendall_tau_b=whole.kendall_tau_b,
        intervals=intervals,
        widened=widened,
        noise_corrected=_noise_corrected(draws, column, defined, level),
        undefined=_undefined(draws, found.defined),
        resamples=len(draws.ratings),
        level=level,
        n_votes=draws.n_votes,
        samples=draws.samples,
        samples_with_both=draws.samples_with_both,
        models=draws.models,
        without_scores=draws.without_scores,
        higher_is_better=column.higher_is_better,
        words=draws.words,
    )


def _intervals(
    values: Mapping[Coefficient, Floats], whole: Subset, level: float
) -> tuple[dict[Coefficient, Ends | None], tuple[Coefficient, ...]]:
    """Ends by coefficient, and which had to be widened to hold their value."""
    intervals: dict[Coefficient, Ends | None] = dict.fromkeys(values)
    widened: list[Coefficient] = []
    for name, own in values.items():
        if (estimate := whole.value(name)) is not None and len(own):
            found = percentile_ends(own, estimate, level)
            intervals[name] = found.ends
            if found.widened:
                widened.append(name)
    return intervals, tuple(widened)


def _noise_corrected(draws: JointDraws, column: SystemColumn, defined: Bools, level: float) -> NoiseCorrected | None:
    if not defined.any():
        return None
    x, y = numbers_of(draws.rating, draws.models), numbers_of(column, draws.models)
    return noise_corrected(x, y, draws.ratings[defined], draws.scores[column.name][defined], level)


def _whole(draws: JointDraws, column: SystemColumn) -> Subset:
    if draws.reason is not None:
        return Subset(0, None, None, None, draws.reason)
    names, _ = common_systems([draws.rating, column])
    return subset_of(numbers_of(draws.rating, names), numbers_of(column, names))


def _undefined(draws: JointDraws, varied: Bools) -> dict[str, int]:
    return {
        "not_identified": int(np.count_nonzero(~draws.identified)),
        "without_scores": int(np.count_nonzero(draws.identified & ~draws.scored)),
        "no_variance": int(np.count_nonzero(draws.defined & ~varied)),
    }


__all__ = ["correlation_of", "joint_correlation", "joint_draws"]
