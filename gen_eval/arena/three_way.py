"""A better, tie, or B better: a metric's difference read as three answers by a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.stats.intervals import bootstrap_mean
from gen_eval.stats.summaries import Floats

CLASSES = ("a", "tie", "b")

FOLDS = 10
"""Parts of the samples for the calibration of the threshold; fewer where there are fewer samples."""


@dataclass(frozen=True)
class ThreeWay:
    """Accuracy over three answers.

    Attributes:
        n: votes.
        accuracy: share of them in which the metric gives the answer of people.
        lower: lower end of the bootstrap interval, samples drawn whole, thresholds held; ``None`` with one sample.
        upper: upper end.
        confusion: votes by the answer of people (outer) and of the metric (inner).
        threshold: the metric says "tie" up to this difference; from all votes where it was calibrated.
        thresholds: of the folds, each from the votes outside it; the given one alone where it was given.
        folds: 0 where the threshold was given.
        majority: the answer that people give most, which a constant guess would give.
        majority_accuracy: its share.
        chance: accuracy of a guess that takes each answer equally often.
        rule: how the threshold was found, in words.
    """

    n: int
    accuracy: float
    lower: float | None
    upper: float | None
    confusion: Mapping[str, Mapping[str, int]]
    threshold: float
    thresholds: tuple[float, ...]
    folds: int
    majority: str
    majority_accuracy: float
    rule: str
    chance: float = 1 / 3

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        confusion = {name: dict(row) for name, row in self.confusion.items()}
        return {**vars(self), "confusion": confusion, "thresholds": list(self.thresholds)}


def three_way(
    answers: Floats,
    differences: Floats,
    samples: Sequence[str],
    *,
    threshold: float | None,
    resamples: int,
    seed: int,
    level: float,
) -> ThreeWay | None:
    """Accuracy over three answers.

    Without a threshold it is calibrated: samples are dealt at random into folds, and the votes of a fold are answered
    with the threshold that is best for all other folds, so that no vote has a say in its own threshold.

    Args:
        answers: ``(n,)`` of people: 1 for A, -1 for B, 0 for a tie.
        differences: ``(n,)`` score of A less score of B.
        samples: sample of each vote, in ascending order.
        threshold: 0 or above; ``None`` to calibrate.
        resamples: of the samples.
        seed: of these and of the folds.
        level: nominal coverage.

    Returns:
        ``None`` without votes, or when a threshold cannot be calibrated because there is one sample only.

    Raises:
        ValueError: the threshold is below 0 or not finite.
    """
    if threshold is not None and not 0 <= threshold < np.inf:
        raise ValueError(f"tie_threshold is {threshold}; it is a difference of scores, 0 or above, and finite")
    names = sorted(set(samples))
    if not len(answers) or (threshold is None and len(names) < 2):
        return None
    if threshold is None:
        predicted, thresholds, rule = _cross_validated(answers, differences, samples, names, seed)
    else:
        predicted, thresholds, rule = predict(differences, threshold), (threshold,), "given"
    correct = (predicted == answers).astype(np.float64)
    lower = upper = None
    if len(names) > 1:
        ends = bootstrap_mean(correct, clusters=samples, resamples=resamples, seed=seed, level=level)
        lower, upper = ends.lower, ends.upper
    counts = {name: int(np.count_nonzero(answers == _CODES[name])) for name in CLASSES}
    majority = max(CLASSES, key=counts.__getitem__)
    return ThreeWay(
        n=len(answers),
        accuracy=float(correct.mean()),
        lower=lower,
        upper=upper,
        confusion=_confusion(answers, predicted),
        threshold=best_threshold(answers, differences) if threshold is None else threshold,
        thresholds=thresholds,
        folds=len(thresholds) if threshold is None else 0,
        majority=majority,
        majority_accuracy=counts[majority] / len(answers),
        rule=rule,
    )


_CODES = {"a": 1.0, "tie": 0.0, "b": -1.0}


def predict(differences: Floats, threshold: float) -> Floats:
    """``(n,)`` the metric's answers: 0 up to the threshold, else the sign."""
    found: Floats = np.where(np.abs(differences) <= threshold, 0.0, np.sign(differences))
    return found


def best_threshold(answers: Floats, differences: Floats) -> float:
    """The threshold with most answers of people met; of equally good ones the smallest.

    It lies half way between two neighbouring differences, or is 0 (equal scores only), or the largest difference.
    """
    size = np.abs(differences)
    order = np.argsort(size, kind="stable")
    size, answers, signs = size[order], answers[order], np.sign(differences)[order]
    # met[k]: the k smallest differences are called ties
    ties = np.concatenate([[0], np.cumsum(answers == 0)])
    signed = np.concatenate([[0], np.cumsum((answers == signs) & (signs != 0))])
    met = ties + signed[-1] - signed
    # a cut is possible before the first difference above 0, between different ones, and after the last
    zeros = int(np.count_nonzero(size == 0))
    cuts = [zeros, *(place for place in _changes(size) if place > zeros), *([len(size)] if len(size) > zeros else [])]
    best = max(cuts, key=lambda cut: (met[cut], -cut))
    if best == zeros:
        return 0.0
    if best == len(size):
        return float(size[-1])
    return float(_between(size[best - 1], size[best]))


def _changes(size: Floats) -> list[int]:
    found: list[int] = (np.flatnonzero(size[1:] > size[:-1]) + 1).tolist()
    return found


def _between(low: float, high: float) -> float:
    """Half way, and below ``high`` also where the two are neighbours among floats."""
    middle = low + (high - low) / 2
    return middle if middle < high else low


def _cross_validated(
    answers: Floats, differences: Floats, samples: Sequence[str], names: list[str], seed: int
) -> tuple[Floats, tuple[float, ...], str]:
    folds = min(FOLDS, len(names))
    dealt = np.random.default_rng(seed).permutation(len(names)) % folds
    fold_of = dict(zip(names, dealt.tolist(), strict=True))
    fold: NDArray[np.int64] = np.array([fold_of[sample] for sample in samples], dtype=np.int64)
    predicted, thresholds = np.zeros(len(answers)), []
    for place in range(folds):
        inside = fold == place
        thresholds.append(best_threshold(answers[~inside], differences[~inside]))
        predicted[inside] = predict(differences[inside], thresholds[-1])
    rule = f"calibrated on the other samples, {folds} folds of samples, seed {seed}"
    return predicted, tuple(thresholds), rule


def _confusion(answers: Floats, predicted: Floats) -> dict[str, dict[str, int]]:
    return {
        people: {
            metric: int(np.count_nonzero((answers == _CODES[people]) & (predicted == _CODES[metric])))
            for metric in CLASSES
        }
        for people in CLASSES
    }


__all__ = ["CLASSES", "FOLDS", "ThreeWay", "best_threshold", "predict", "three_way"]
