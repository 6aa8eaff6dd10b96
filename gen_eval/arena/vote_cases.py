"""Votes beside the scores of the two videos that were shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gen_eval.arena.systems import VideoScores
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.arena.votes import TRACKERS, Votes
from gen_eval.stats.summaries import Floats, finite_number

GAPS = ("answer", "scores_of_both", "score_of_a", "score_of_b", "seed")
"""Why a vote takes no part: it does not count for the tracker; neither video has a score (or the vote names no sample);
video A has none; video B has none; the sample has scores but not of the seed that was shown."""


@dataclass(frozen=True)
class Cases:
    """Votes that count for a tracker and whose two videos have a score of every metric, ordered by sample.

    Attributes:
        samples: n names.
        pairs: n pairs of systems (A, B).
        share: ``(n,)`` share of the point that people gave A, 0..1.
        differences: ``(k, n)`` of k metrics, score of A less score of B, larger is better.
        N: votes in all.
        without: votes left out by reason, see :data:`GAPS`.
    """

    samples: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    share: Floats
    differences: Floats
    N: int
    without: Mapping[str, int]

    @property
    def answers(self) -> Floats:
        """``(n,)`` 1 where people prefer A, -1 for B, 0 for a tie."""
        return np.sign(self.share - 0.5)


def cases_of(votes: AnyVotes, scores: Sequence[VideoScores], tracker: str) -> Cases:
    """Put votes beside scores.

    Args:
        votes: in any form that :func:`votes_from` takes. Bare comparisons count as ``overall``; they name no seeds, and
            triples no samples either.
        scores: metrics; a vote is used when each has a score of both videos.
        tracker: one of :data:`TRACKERS`.

    Raises:
        ValueError: there is no such tracker, or a score is not finite.
    """
    if tracker not in TRACKERS:
        raise ValueError(f"tracker is {tracker!r}; expected one of {', '.join(TRACKERS)}")
    given = votes_from(votes)
    gaps: Counter[str] = Counter()
    rows: list[tuple[str, tuple[str, str], float, list[float]]] = []
    for shown in _shown(given, tracker):
        if shown.share is None:
            gaps["answer"] += 1
            continue
        found = [_difference(metric, shown) for metric in scores]
        lacking = next((one for one in found if isinstance(one, str)), None)
        if lacking is not None:
            gaps[lacking] += 1
            continue
        differences = [one for one in found if not isinstance(one, str)]
        rows.append((str(shown.sample), (shown.model_a, shown.model_b), shown.share, differences))
    rows.sort(key=lambda row: row[0])
    return Cases(
        samples=tuple(row[0] for row in rows),
        pairs=tuple(row[1] for row in rows),
        share=np.array([row[2] for row in rows], dtype=np.float64),
        differences=np.array([row[3] for row in rows], dtype=np.float64).reshape(len(rows), len(scores)).T,
        N=len(given),
        without={name: gaps[name] for name in GAPS},
    )


class _Shown(NamedTuple):
    sample: str | None
    model_a: str
    model_b: str
    seed_a: str | None
    seed_b: str | None
    share: float | None


def _shown(votes: Votes, tracker: str) -> Iterator[_Shown]:
    for vote in votes:
        yield _Shown(vote.sample, vote.model_a, vote.model_b, vote.seed_a, vote.seed_b, vote.score(tracker))
    if (bare := votes.bare) is not None:
        names = bare.models
        for a, b, sample, share in zip(bare.a, bare.b, bare.samples, bare.score.tolist(), strict=True):
            yield _Shown(sample, names[a], names[b], None, None, share if tracker == "overall" else None)


def _difference(scores: VideoScores, shown: _Shown) -> float | str:
    """Score of A less score of B, or the name of the gap."""
    if shown.sample is None:
        return "scores_of_both"
    a = scores.of(shown.model_a, shown.sample, shown.seed_a)
    b = scores.of(shown.model_b, shown.sample, shown.seed_b)
    if a is not None and b is not None:
        where = f"{scores.metric} of sample {shown.sample!r}"
        return finite_number(finite_number(a, where) - finite_number(b, where), where)
    sides = ((shown.model_a, a), (shown.model_b, b))
    if all(value is not None or scores.of(model, shown.sample) is not None for model, value in sides):
        return "seed"
    if a is None and b is None:
        return "scores_of_both"
    return "score_of_a" if a is None else "score_of_b"


__all__ = ["GAPS", "Cases", "cases_of"]
