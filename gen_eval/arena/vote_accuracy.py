"""Agreement vote by vote: does a metric's difference of the two shown videos have the sign of the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gen_eval.arena.names import called
from gen_eval.arena.systems import VideoScores
from gen_eval.arena.three_way import ThreeWay, three_way
from gen_eval.arena.vote_cases import Cases, cases_of
from gen_eval.arena.vote_files import AnyVotes
from gen_eval.stats.intervals import bootstrap_mean, check_level
from gen_eval.stats.resampling import check_resampling
from gen_eval.stats.summaries import Floats


@dataclass(frozen=True)
class PairAccuracy:
    """Two-way accuracy over the votes on two systems.

    Attributes:
        a: first system by name.
        b: second system.
        n: votes on them without ties.
        ties: tied votes on them.
        accuracy: 0..1; ``None`` without a vote.
    """

    a: str
    b: str
    n: int
    ties: int
    accuracy: float | None


@dataclass(frozen=True)
class VoteAccuracy:
    """How often a metric prefers the video that people prefer.

    Attributes:
        metric: its name.
        protocol: under which it was computed.
        tracker: the question that was answered.
        n: votes that are no ties and whose videos both have a score.
        accuracy: share of these in which the metric has the sign of the vote, equal scores counting half; ``None``
            without any.
        lower: lower end of the bootstrap interval, samples drawn whole; ``None`` with one sample only.
        upper: upper end.
        equal: votes among the n whose two videos have equal scores.
        ties: tied votes whose videos both have a score.
        N: votes in all.
        without: votes left out by reason: no ``answer``, ``scores_of_both`` missing, ``score_of_a``, ``score_of_b``, or
            scores for other seeds than the shown one (``seed``).
        samples: that the n votes are about.
        three_way: with ties as a third answer; ``None`` without votes, or with one sample and no given threshold.
        pairs: by system pair, in order of names.
        level: nominal coverage.
        resamples: of the samples.
        seed: of these and of the folds.
        chance: accuracy of guessing.
    """

    metric: str
    protocol: str
    tracker: str
    n: int
    accuracy: float | None
    lower: float | None
    upper: float | None
    equal: int
    ties: int
    N: int
    without: Mapping[str, int]
    samples: int
    three_way: ThreeWay | None
    pairs: tuple[PairAccuracy, ...]
    level: float
    resamples: int
    seed: int
    chance: float = 0.5

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **vars(self),
            "without": dict(self.without),
            "three_way": None if self.three_way is None else self.three_way.to_json(),
            "pairs": [dict(vars(pair)) for pair in self.pairs],
        }

    def __str__(self) -> str:
        cover = f"{self.n} votes without ties and {self.ties} tied of {self.N}"
        if self.accuracy is None:
            return f"{self.metric}, {self.tracker}: no accuracy ({cover})"
        ends = "" if self.lower is None or self.upper is None else f" [{100 * self.lower:.1f}, {100 * self.upper:.1f}]"
        lines = [f"{self.metric}, {self.tracker}: {100 * self.accuracy:.1f} %{ends} of {cover}; chance 50 %"]
        if (three := self.three_way) is not None:
            lines.append(
                f"  with ties {100 * three.accuracy:.1f} % (always {called(three.majority)}: "
                f"{100 * three.majority_accuracy:.1f} %), threshold {three.threshold:.4g}, {three.rule}"
            )
        gaps = ", ".join(f"{called(name)} {count}" for name, count in self.without.items() if count)
        return "\n".join([*lines, *([f"  left out, by what is missing: {gaps}"] if gaps else [])])


def vote_accuracy(
    votes: AnyVotes,
    scores: VideoScores,
    tracker: str = "overall",
    *,
    tie_threshold: float | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> VoteAccuracy:
    """Accuracy of a metric against single votes.

    A vote that names the seeds of its videos is held against the scores of these; else against the mean over the
    seeds of the sample. For ``overall`` a vote whose two answers leave A more than half of the point prefers A.

    Args:
        votes: in any form that :func:`gen_eval.arena.votes_from` takes.
        scores: of single videos.
        tracker: ``overall``, ``quality`` or ``plausibility``.
        tie_threshold: largest difference of scores that the metric calls a tie; ``None`` to calibrate it on other
            samples than those that it answers.
        resamples: of the samples, each drawn with all its votes.
        seed: of these and of the folds.
        level: nominal coverage.

    Raises:
        ValueError: there is no such tracker, a score is not finite, or an argument is outside its range.
    """
    check_resampling(1, resamples, seed)
    check_level(level)
    cases = cases_of(votes, [scores], tracker)
    (differences,) = cases.differences
    decided = cases.answers != 0
    correct = correctness(cases.answers, differences)[decided]
    samples = [sample for sample, taken in zip(cases.samples, decided.tolist(), strict=True) if taken]
    lower, upper = _ends(correct, samples, resamples, seed, level)
    drawn = {"resamples": resamples, "seed": seed}
    return VoteAccuracy(
        metric=scores.metric,
        protocol=scores.protocol,
        tracker=tracker,
        n=len(correct),
        accuracy=float(correct.mean()) if len(correct) else None,
        lower=lower,
        upper=upper,
        equal=int(np.count_nonzero(differences[decided] == 0)),
        ties=int(np.count_nonzero(~decided)),
        N=cases.N,
        without=cases.without,
        samples=len(set(samples)),
        three_way=three_way(cases.answers, differences, cases.samples, threshold=tie_threshold, level=level, **drawn),
        pairs=_by_pair(cases, differences),
        level=level,
        **drawn,
    )


def _ends(
    correct: Floats, samples: list[str], resamples: int, seed: int, level: float
) -> tuple[float | None, float | None]:
    """Of the interval, samples drawn whole; none with one sample, of which nothing is known but itself."""
    if len(set(samples)) < 2:
        return None, None
    found = bootstrap_mean(correct, clusters=samples, resamples=resamples, seed=seed, level=level)
    return found.lower, found.upper


def correctness(answers: Floats, differences: Floats) -> Floats:
    """``(n,)`` 1 where the difference has the sign of the answer, 0 where the opposite, one half where it is 0."""
    found: Floats = (1 + answers * np.sign(differences)) / 2
    return found


def _by_pair(cases: Cases, differences: Floats) -> tuple[PairAccuracy, ...]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, (a, b) in enumerate(cases.pairs):
        places[min(a, b), max(a, b)].append(place)
    found = []
    for (a, b), own in sorted(places.items()):
        answers = cases.answers[own]
        correct = correctness(answers, differences[own])[answers != 0]
        accuracy = float(correct.mean()) if len(correct) else None
        found.append(PairAccuracy(a, b, len(correct), len(own) - len(correct), accuracy))
    return tuple(found)


__all__ = ["PairAccuracy", "VoteAccuracy", "correctness", "vote_accuracy"]
