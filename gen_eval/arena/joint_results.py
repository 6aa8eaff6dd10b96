"""What the joint bootstrap of votes and samples gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gen_eval.arena.coefficients import COEFFICIENTS, Bools, Coefficient
from gen_eval.arena.correlations import Ends
from gen_eval.arena.names import called, level_name
from gen_eval.arena.noise import NoiseCorrected
from gen_eval.arena.systems import SystemColumn
from gen_eval.records import Reason
from gen_eval.stats.summaries import Floats

INTERVAL_RULE = (
    "percentiles; noise of votes and scores pulls r towards 0 in the value and again in each resample, so that these "
    "intervals lie too low where it is large; r with the noise taken off stands beside"
)


@dataclass(frozen=True)
class JointDraws:
    """Ratings and scores of M systems over R resamples of samples.

    Attributes:
        models: the systems that have votes and a score of every metric, sorted.
        rating: ratings from all votes; without values when there is a reason.
        columns: scores from all samples, by metric.
        ratings: ``(R, M)``.
        scores: by metric ``(R, M)``, errors with their sign as given.
        identified: ``(R,)`` whether the drawn votes have a Bradley-Terry maximum.
        scored: ``(R,)`` whether every system has a score of every metric among the drawn samples.
        reason: why the votes have no ratings (``not_connected``, ``one_sided``); ``None`` when they have.
        message: the reason in words.
        tracker: the question that was answered.
        n_votes: votes that count.
        samples: that were drawn from: those with votes or with scores.
        samples_with_both: of these, that have votes and scores.
        without_scores: systems with votes that lack a metric.
        words: what was drawn.
    """

    models: tuple[str, ...]
    rating: SystemColumn
    columns: Mapping[str, SystemColumn]
    ratings: Floats = field(repr=False)
    scores: Mapping[str, Floats] = field(repr=False)
    identified: Bools = field(repr=False)
    scored: Bools = field(repr=False)
    reason: Reason | None
    message: str
    tracker: str
    n_votes: int
    samples: int
    samples_with_both: int
    without_scores: tuple[str, ...]
    words: str

    @property
    def defined(self) -> Bools:
        """``(R,)`` whether the resample has every rating and score."""
        return self.identified & self.scored


@dataclass(frozen=True)
class JointCorrelation:
    """Correlation of ratings with one metric, with what votes and samples leave open.

    The systems are fixed: the interval says what other votes and samples would have given for these, not what other
    systems would. The sign is that of the score as given.

    Attributes:
        metric: its name.
        tracker: the question that was answered.
        n: systems.
        reason: why there is no value (``not_connected``, ``one_sided``, ``too_few_systems``, ``no_variance``).
        message: the reason in words, where there is more to say.
        pearson: from all votes and samples, -1..1.
        spearman: likewise.
        kendall_tau_b: likewise.
        intervals: by coefficient, percentiles; ``None`` without a resample that has a value. They lie too low where
            votes or scores are noisy, see :data:`INTERVAL_RULE`.
        widened: coefficients with an end that was moved to hold the value.
        noise_corrected: r with the noise of votes and scores taken off, with its interval; ``None`` without a value.
        undefined: resamples left out, by cause: ``not_identified`` (no ratings), ``without_scores`` (a system without a
            drawn score), ``no_variance``.
        resamples: that were drawn.
        level: nominal coverage.
        n_votes: votes that count.
        samples: that were drawn from.
        samples_with_both: of these, that have votes and scores.
        models: the systems.
        without_scores: systems with votes and without scores.
        higher_is_better: ``False`` where the score is an error and agreement therefore negative.
        words: what was drawn.
    """

    metric: str
    tracker: str
    n: int
    reason: Reason | None
    message: str
    pearson: float | None
    spearman: float | None
    kendall_tau_b: float | None
    intervals: Mapping[Coefficient, Ends | None]
    widened: tuple[Coefficient, ...]
    noise_corrected: NoiseCorrected | None
    undefined: Mapping[str, int]
    resamples: int
    level: float
    n_votes: int
    samples: int
    samples_with_both: int
    models: tuple[str, ...]
    without_scores: tuple[str, ...]
    higher_is_better: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the names of intervals carry their level in percent."""
        fields = {name: value for name, value in vars(self).items() if name != "intervals"}
        percent = level_name(self.level)
        ends = {f"{name}_{percent}": None if one is None else list(one) for name, one in self.intervals.items()}
        return {
            **fields,
            **ends,
            "reason": None if self.reason is None else str(self.reason),
            "widened": list(self.widened),
            "noise_corrected": None if self.noise_corrected is None else self.noise_corrected.to_json(),
            "undefined": dict(self.undefined),
            "models": list(self.models),
            "without_scores": list(self.without_scores),
            "interval_rule": INTERVAL_RULE,
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        start = f"{self.metric} against {self.tracker} (n = {self.n} systems, {self.n_votes} votes)"
        if self.reason is not None:
            return f"{start}: no correlation ({self.reason}). {self.message}".rstrip()
        lines = [start]
        for name in COEFFICIENTS:
            ends = self.intervals[name]
            shown = "" if ends is None else f" [{ends[0]:.3f}, {ends[1]:.3f}]"
            lines.append(f"  {called(name)} {getattr(self, name):.3f}{shown}")
        if self.noise_corrected is not None:
            lines.append(f"  {self.noise_corrected}")
        lines.append(f"  {self.words}; {sum(self.undefined.values())} of them without a value")
        return "\n".join(lines)


__all__ = ["INTERVAL_RULE", "JointCorrelation", "JointDraws"]
