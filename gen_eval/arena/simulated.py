"""Votes by people who do not exist: what a study of a given size would look like under the model of the ratings.

For demonstrations, and to see before a study what its ratings would be worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gen_eval.arena.votes import QUESTIONS, Answer, Vote, Votes

_TIES = (Answer.BOTH_GOOD, Answer.BOTH_BAD)


def simulated_votes(
    strengths: Mapping[str, Mapping[str, float]],
    samples: Sequence[str],
    *,
    votes_per_sample: int = 12,
    annotators: int = 6,
    tie_parameter: float = 0.5,
    seed: int = 0,
) -> Votes:
    """Votes drawn from Davidson's model: P(a) : P(tie) : P(b) = e^t_a : nu e^((t_a + t_b)/2) : e^t_b.

    Pairs, sides and annotators are drawn evenly; a tie is "both good" or "both bad" with equal chance.

    Args:
        strengths: question -> system -> t, natural logarithm of its strength; 400 points of rating are ln 10.
        samples: that are shown.
        votes_per_sample: of each.
        annotators: how many people there are; each is named ``simulated 1`` and so on.
        tie_parameter: nu, 0 for no ties.
        seed: of everything that is drawn.

    Raises:
        ValueError: an unknown question, fewer than two systems, systems that differ between questions, or a number
            outside its range.

    >>> votes = simulated_votes({"quality": {"x": 50.0, "y": 0.0}}, ["s"], votes_per_sample=3, tie_parameter=0.0)
    >>> {vote.model_a if vote.quality == "a" else vote.model_b for vote in votes}
    {'x'}
    """
    models = _checked(strengths, votes_per_sample, annotators, tie_parameter)
    rng = np.random.default_rng(seed)
    found: list[Vote] = []
    for sample in samples:
        for _ in range(votes_per_sample):
            a, b = (models[place] for place in rng.permutation(len(models))[:2].tolist())
            answers = {question: _answer(rng, own[a] - own[b], tie_parameter) for question, own in strengths.items()}
            who = f"simulated {rng.integers(annotators) + 1}"
            left = "a" if rng.random() < 0.5 else "b"
            found.append(Vote(f"v{len(found)}", sample, who, a, b, **answers, shown_left=left))  # type: ignore[arg-type]
    return Votes(tuple(found))


def _checked(
    strengths: Mapping[str, Mapping[str, float]], votes_per_sample: int, annotators: int, tie_parameter: float
) -> list[str]:
    if not strengths or set(strengths) - set(QUESTIONS):
        raise ValueError(f"strengths are of {', '.join(strengths) or 'nothing'}; expected {' or '.join(QUESTIONS)}")
    names = [sorted(own) for own in strengths.values()]
    if len(names[0]) < 2 or any(one != names[0] for one in names):
        raise ValueError("each question needs the strengths of the same two systems or more")
    if votes_per_sample < 1 or annotators < 1 or not 0 <= tie_parameter < math.inf:
        raise ValueError(
            f"{votes_per_sample} votes a sample, {annotators} annotators, tie parameter {tie_parameter}; expected at "
            "least 1, 1, and a number from 0 on"
        )
    return names[0]


def _answer(rng: np.random.Generator, difference: float, tie_parameter: float) -> Answer:
    # divided by the larger strength, so that nothing overflows
    a, b = math.exp(min(0.0, difference)), math.exp(min(0.0, -difference))
    tie = tie_parameter * math.sqrt(a * b)
    drawn = rng.random() * (a + tie + b)
    if drawn < tie:
        return _TIES[int(rng.integers(2))]
    return Answer.A if drawn < tie + a else Answer.B


__all__ = ["simulated_votes"]
