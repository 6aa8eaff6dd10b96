"""Soft scores: what a judge would have said with which probability, from the log-probabilities of yes and no.

The hard score stays the headline. A judge that gives no log-probabilities, or only those of one of the two words, has
no soft score for that answer: such answers are counted and nothing is put in their place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gen_eval.records import Answer
from gen_eval.stats import Interval, bootstrap_mean, exact_mean
from judge.questions import JudgeQuestion

_WORDS = ("yes", "no")
_TRIMMED = " \t\r\n.,:;!?\"'*_`()[]{}▁Ġ"
BINS = 10


def yes_probability(chances: Mapping[str, float] | None) -> float | None:
    """Probability of yes against no, from log-probabilities of tokens.

    Tokens that spell the same word (case, blanks and punctuation around it aside) are added up, and the two words are
    normalised over each other.

    Args:
        chances: token -> natural logarithm of its probability; ``None`` for none.

    Returns:
        0..1, or ``None`` when one of the words is not there, or neither has any probability.

    >>> round(yes_probability({"Yes": -0.1, "yes": -3.0, " No": -2.0, "It": -4.0}), 4)
    0.8758
    """
    found: dict[str, list[float]] = {word: [] for word in _WORDS}
    for token, chance in (chances or {}).items():
        word = token.strip(_TRIMMED).casefold()
        if word in found and isinstance(chance, int | float) and not math.isnan(chance):
            found[word].append(min(float(chance), 0.0))
    if not all(found.values()):
        return None
    most = max(max(own) for own in found.values())
    if most == -math.inf:
        return None
    yes, no = (math.fsum(math.exp(one - most) for one in found[word]) for word in _WORDS)
    return yes / (yes + no)


def soft_right(question: JudgeQuestion, answer: Answer) -> float | None:
    """Probability that the judge gives to the right one of yes and no; ``None`` without both log-probabilities."""
    chance = yes_probability(answer.chances)
    if chance is None or question.binary is None:
        return None
    return chance if question.binary == "yes" else 1.0 - chance


@dataclass(frozen=True)
class Bin:
    """Answers whose probability of yes lies in one range.

    Attributes:
        lower: end of the range, included.
        upper: end of the range, excluded but for 1.
        n: answers.
        chance: their mean probability of yes; ``None`` without answers.
        share: share of them whose key is yes.
    """

    lower: float
    upper: float
    n: int
    chance: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Confidence:
    """How far probabilities can be believed.

    Attributes:
        n: answers with both log-probabilities.
        absent: answers without; they are in nothing else.
        brier: mean square of (probability of yes - 1 or 0), 0 is best, 0.25 what 0.5 everywhere has.
        brier_interval: its interval, samples drawn whole; ``None`` with fewer than two samples.
        error: expected calibration error: mean over the answers of how far their bin is from the diagonal.
        curve: the bins.
    """

    n: int
    absent: int
    brier: float | None
    brier_interval: Interval | None
    error: float | None
    curve: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        ends = self.brier_interval
        return {
            "n": self.n,
            "absent": self.absent,
            "brier": self.brier,
            "brier_interval": None if ends is None else {"lower": ends.lower, "upper": ends.upper},
            "expected_calibration_error": self.error,
            "curve": [vars(one) for one in self.curve],
        }


def confidence(
    answers: Iterable[tuple[str, float | None, bool]], *, bins: int = BINS, resamples: int = 10_000
) -> Confidence:
    """Calibration curve, expected calibration error and Brier score.

    On generated videos the key says what the prompt asked for and not what is to be seen; only on clips whose truth is
    known are these figures about the judge alone.

    Args:
        answers: sample, probability of yes (``None`` when it is not known), and whether yes is right.
        bins: of equal width over 0..1.
        resamples: of the interval; 0 for none.

    Raises:
        ValueError: a probability outside 0..1, or fewer than one bin.
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}; at least 1 is needed")
    everything = list(answers)
    known = [(sample, chance, truth) for sample, chance, truth in everything if chance is not None]
    if bad := [chance for _, chance, _ in known if not 0 <= chance <= 1]:
        raise ValueError(f"a probability is {bad[0]}; it lies in 0..1")
    curve = _curve([(chance, truth) for _, chance, truth in known], bins)
    absent = len(everything) - len(known)
    if not known:
        return Confidence(0, absent, None, None, None, curve)
    known.sort(key=lambda one: one[0])
    squares = [(chance - truth) ** 2 for _, chance, truth in known]
    clusters = [sample for sample, _, _ in known]
    interval = None
    if resamples and len(set(clusters)) > 1:
        interval = bootstrap_mean(squares, clusters=clusters, resamples=resamples)
    gaps = [one.n * abs(one.chance - one.share) for one in curve if one.chance is not None and one.share is not None]
    return Confidence(len(known), absent, exact_mean(squares), interval, math.fsum(gaps) / len(known), curve)


def _curve(known: Sequence[tuple[float, bool]], bins: int) -> tuple[Bin, ...]:
    inside: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for chance, truth in known:
        inside[min(int(chance * bins), bins - 1)].append((chance, truth))
    found = []
    for place, own in enumerate(inside):
        ends = (place / bins, (place + 1) / bins)
        if not own:
            found.append(Bin(*ends, 0))
            continue
        share = exact_mean([float(truth) for _, truth in own])
        found.append(Bin(*ends, len(own), exact_mean([chance for chance, _ in own]), share))
    return tuple(found)


__all__ = ["BINS", "Bin", "Confidence", "confidence", "soft_right", "yes_probability"]
