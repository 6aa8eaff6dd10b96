"""Comparisons of two systems as arrays: what every rating method takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import digest_of
from gen_eval.stats.summaries import Floats

Ints = NDArray[np.int64]

Unit = Literal["votes", "samples", "annotators"]
"""What is independent, and therefore drawn whole by a bootstrap."""


@dataclass(frozen=True)
class Comparisons:
    """n comparisons for one tracker, in the order given.

    Attributes:
        models: M names of systems that take part, sorted.
        a: ``(n,)`` place of system A in ``models``.
        b: ``(n,)`` place of system B, never equal to that of A.
        score: ``(n,)`` share of the point that A gets, 0..1 (0, 1/4, 1/2, 3/4, 1 from votes).
        tie: ``(n,)`` share of the questions that were answered by a tie, 0..1; A's share of wins is score - tie / 2.
        left: ``(n,)`` +1 where A stood on the left (or nobody said), -1 where B did.
        samples: sample of each comparison, ``None`` when nobody names one: it is then a sample of its own.
        annotators: annotator of each, ``None`` when nobody is named.
        times: time of each, ``None`` when not told.
        mixed_clocks: whether some times are dates and some plain seconds, which have no common order.
    """

    models: tuple[str, ...]
    a: Ints
    b: Ints
    score: Floats
    tie: Floats
    left: Ints
    samples: tuple[str | None, ...]
    annotators: tuple[str | None, ...]
    times: tuple[float | None, ...]
    mixed_clocks: bool = False

    def __len__(self) -> int:
        return len(self.a)

    @classmethod
    def of(cls, triples: Iterable[tuple[str, str, float]]) -> Comparisons:
        """Bare comparisons (A, B, A's share of the point); none names a sample, a half is a tie.

        Raises:
            ValueError: a system against itself, or a share outside 0..1.

        >>> Comparisons.of([("x", "y", 1.0), ("y", "z", 0.5)]).models
        ('x', 'y', 'z')
        """
        rows = [(str(a), str(b), float(share)) for a, b, share in triples]
        for place, (a, b, share) in enumerate(rows):
            if a == b:
                raise ValueError(f"comparison {place} is of {a!r} against itself; expected two systems")
            if not 0 <= share <= 1:
                raise ValueError(f"comparison {place} gives A {share}; expected a share in 0..1")
        models = tuple(sorted({name for a, b, _ in rows for name in (a, b)}))
        index = {name: place for place, name in enumerate(models)}
        score = np.array([share for _, _, share in rows], dtype=np.float64)
        return cls(
            models=models,
            a=np.array([index[a] for a, _, _ in rows], dtype=np.int64),
            b=np.array([index[b] for _, b, _ in rows], dtype=np.int64),
            score=score,
            tie=1 - np.abs(2 * score - 1),
            left=np.ones(len(rows), dtype=np.int64),
            samples=(None,) * len(rows),
            annotators=(None,) * len(rows),
            times=(None,) * len(rows),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that moves a rating, in the order given."""
        columns = np.stack([self.a, self.b, self.score, self.tie, self.left]).astype("<f8")
        numbers = sha256(columns.tobytes()).hexdigest()  # as text they would take longer than a fit
        return digest_of([self.models, numbers, self.samples, self.annotators, self.times])

    @cached_property
    def repeated(self) -> bool:
        """Whether an annotator judged a sample more than once, so that votes are not independent of each other."""
        named = [pair for pair in zip(self.annotators, self.samples, strict=True) if pair[1] is not None]
        return len(set(named)) < len(named)

    @cached_property
    def unit(self) -> Unit:
        """What is independent: votes when each annotator judged each sample once, else samples."""
        return "samples" if self.repeated else "votes"

    def clusters(self, unit: Unit) -> tuple[Ints, int]:
        """``(n,)`` place of each comparison's unit (by first appearance), and how many units there are.

        Raises:
            ValueError: ``annotators``, and a comparison has none.
        """
        if unit == "votes":
            return np.arange(len(self), dtype=np.int64), len(self)
        labels: Sequence[str | None] = self.samples if unit == "samples" else self.annotators
        if unit == "annotators" and any(one is None for one in labels):
            raise ValueError("clusters by annotator need an annotator in every vote; take clusters by sample")
        keys = [place if label is None else label for place, label in enumerate(labels)]
        places: dict[str | int, int] = {}
        found = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)
        return found, len(places)

    def per_model(self) -> dict[str, int]:
        """Comparisons that each system takes part in."""
        counts = np.bincount(self.a, minlength=len(self.models)) + np.bincount(self.b, minlength=len(self.models))
        return dict(zip(self.models, counts.tolist(), strict=True))


__all__ = ["Comparisons", "Ints", "Unit"]
