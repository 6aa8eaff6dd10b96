"""Several runs over the same questions: mean and spread."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from gen_eval.stats import exact_mean
from understanding.scoring.aggregate import BySample


def seed_spread(samples: BySample) -> dict[str, Any] | None:
    """Accuracy of each seed on the questions that all seeds have, their mean and standard deviation.

    Args:
        samples: sample -> its scores, one a seed.

    Returns:
        ``None`` with a single seed; else ``{"questions", "accuracy": {seed: ..}, "mean", "std"}`` where ``std`` is the
        standard deviation of a sample (divided by the number of seeds minus one); without a common question the
        numbers are ``None``.
    """
    seeds = sorted({score.member for scores in samples.values() for score in scores})
    if len(seeds) < 2:
        return None
    values: dict[str, list[float]] = defaultdict(list)
    questions = 0
    for scores in samples.values():
        own = {score.member: score.value for score in scores if score.value is not None}
        if len(own) == len(seeds):
            questions += 1
            for seed, value in own.items():
                values[seed].append(value)
    if not questions:
        return {"questions": 0, "accuracy": dict.fromkeys(seeds), "mean": None, "std": None}
    accuracy = {seed: exact_mean(values[seed]) for seed in seeds}
    mean = exact_mean(list(accuracy.values()))
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in accuracy.values()) / (len(seeds) - 1))
    return {"questions": questions, "accuracy": accuracy, "mean": mean, "std": spread}
