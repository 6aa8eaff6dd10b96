"""From scores to preferences: an automatic arena, in which of two videos of a sample the one with more points wins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.systems import VideoScores
from gen_eval.stats.summaries import Floats, finite_number


@dataclass(frozen=True)
class Preferences:
    """What the scores of one metric prefer, sample by sample.

    Attributes:
        comparisons: of every two systems that have a value for a sample; all of one sample hang together.
        threshold: largest difference that is a tie.
        samples: with at least one comparison.
        left_out: samples that fewer than two systems have a value for, sorted.
        without_value: by system, how many samples it has no value for; the samples are those that any row names.
        without_comparisons: systems that share no sample with another, sorted.
    """

    comparisons: Comparisons
    threshold: float
    samples: int
    left_out: tuple[str, ...] = ()
    without_value: Mapping[str, int] | None = None
    without_comparisons: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.comparisons)

    def facts(self) -> dict[str, Any]:
        """What stands beside the ratings, as plain JSON values."""
        return {
            "tie_threshold": self.threshold,
            "samples": self.samples,
            "left_out_samples": list(self.left_out),
            "without_value": dict(self.without_value or {}),
            "without_comparisons": list(self.without_comparisons),
        }


def votes_from_scores(scores: VideoScores, *, threshold: float = 0.0) -> Preferences:
    """Every two systems compared on every sample that both have a value for.

    A system's value for a sample is the mean over its members. The better one wins; a difference of at most
    ``threshold`` is a tie, half a point for each.

    Args:
        scores: of one metric under one protocol.
        threshold: in the unit of the metric, at least 0.

    Raises:
        ValueError: the threshold is negative or not finite, or a score is not finite.

    >>> scores = VideoScores("m", {("x", "s"): {"0": 0.9}, ("y", "s"): {"0": 0.4, "1": 0.6}})
    >>> votes_from_scores(scores).comparisons.score
    array([1.])
    """
    if not math.isfinite(threshold) or threshold < 0:
        raise ValueError(f"threshold is {threshold}; expected a difference of at least 0 in the metric's unit")
    systems = sorted({system for system, _ in scores.values})
    samples = sorted({sample for _, sample in scores.values})
    values = np.zeros((len(samples), len(systems)))
    known = np.zeros(values.shape, dtype=bool)
    rows, columns = ({name: place for place, name in enumerate(names)} for names in (samples, systems))
    for system, sample in scores.values:
        value = scores.of(system, sample)
        if value is not None:
            value = finite_number(value, f"{scores.metric} of {system!r:.60}, sample {sample!r:.60},")
            values[rows[sample], columns[system]], known[rows[sample], columns[system]] = value, True
    several = known.sum(axis=1) > 1
    compared = known[several].any(axis=0)
    return Preferences(
        comparisons=_comparisons(values, known, systems, samples, threshold),
        threshold=threshold,
        samples=int(several.sum()),
        left_out=tuple(name for name, there in zip(samples, several, strict=True) if not there),
        without_value=dict(zip(systems, (~known).sum(axis=0).tolist(), strict=True)),
        without_comparisons=tuple(name for name, there in zip(systems, compared, strict=True) if not there),
    )


def _comparisons(
    values: Floats, known: NDArray[np.bool_], systems: list[str], samples: list[str], threshold: float
) -> Comparisons:
    """Sample by sample, of each the pairs of systems in order; systems without any are not among the models."""
    first, second = np.triu_indices(len(systems), 1)
    row, pair = np.nonzero(known[:, first] & known[:, second])
    a, b = first[pair], second[pair]
    with np.errstate(over="ignore"):  # an infinite difference has its sign, and is no tie
        difference = values[row, a] - values[row, b]
    tie = np.abs(difference) <= threshold
    there = np.unique(np.concatenate([a, b]))
    n = len(row)
    return Comparisons(
        models=tuple(systems[place] for place in there),
        a=np.searchsorted(there, a).astype(np.int64),
        b=np.searchsorted(there, b).astype(np.int64),
        score=np.where(tie, 0.5, np.where(difference > 0, 1.0, 0.0)),
        tie=tie.astype(np.float64),
        left=np.ones(n, dtype=np.int64),
        samples=tuple(samples[place] for place in row),
        annotators=(None,) * n,
        times=(None,) * n,
    )


__all__ = ["Preferences", "votes_from_scores"]
