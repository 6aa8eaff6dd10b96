"""Whether people agree: with each other on the same items, and with themselves when asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gen_eval.arena.annotators import (
    WARNINGS,
    AnnotatorPair,
    AnnotatorReport,
    Consistency,
    annotator_pairs,
    annotator_reports,
)
from gen_eval.arena.items import Judged, judged
from gen_eval.arena.names import called
from gen_eval.arena.vote_files import AnyVotes, votes_from
from gen_eval.arena.votes import QUESTIONS, Answer
from gen_eval.records import Reason
from gen_eval.stats import AgreementCoefficient, Interval, bootstrap_ratio, exact_mean, krippendorff_alpha
from gen_eval.stats.agreement import Measure

ALPHAS = ("nominal", "ties_merged", "interval")
"""Forms of Krippendorff's alpha: over the four answers; with both ties as one; on 1, 1/2, 0 with squared distances."""


@dataclass(frozen=True)
class RawAgreement:
    """Share of equal answers, over the four answers.

    Attributes:
        equal: pairs of answers of two people about one item that are equal.
        n: all such pairs. Each pair weighs the same, so an item with m people weighs m (m - 1) / 2.
        interval: percentile bootstrap, whole samples drawn; ``None`` with fewer than two samples.
    """

    equal: int
    n: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        """``equal / n``, 0..1; ``None`` when nobody shares an item."""
        return self.equal / self.n if self.n else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "value": self.value,
            "equal": self.equal,
            "n": self.n,
            "interval": None if self.interval is None else dict(vars(self.interval)),
        }


@dataclass(frozen=True)
class Agreement:
    """How far people agree on one question.

    Attributes:
        question: ``quality`` or ``plausibility``.
        votes: answers to it.
        unnamed: answers that name no annotator; they stand in nothing below.
        items: items that a named annotator judged.
        shared: items that several judged.
        raw: share of equal answers.
        alphas: Krippendorff's alpha by form, see :data:`ALPHAS`; ``n`` of each is ``shared``.
        pairs: annotators who share an item, two by two.
        mean_kappa: plain mean of the kappas of ``pairs`` that have a value; ``None`` without any.
        kappas: how many those are.
        annotators: one report each.
        consistency: of people with themselves.
        reason: ``not_connected`` when nobody shares an item; ``None`` else.
        message: the reason in words, and what to do.
    """

    question: str
    votes: int
    unnamed: int
    items: int
    shared: int
    raw: RawAgreement
    alphas: Mapping[str, AgreementCoefficient]
    pairs: tuple[AnnotatorPair, ...]
    mean_kappa: float | None
    kappas: int
    annotators: tuple[AnnotatorReport, ...]
    consistency: Consistency
    reason: Reason | None = None
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **vars(self),
            "raw": self.raw.to_json(),
            "alphas": {name: one.to_json() for name, one in self.alphas.items()},
            "pairs": [one.to_json() for one in self.pairs],
            "annotators": [one.to_json() for one in self.annotators],
            "consistency": self.consistency.to_json(),
            "reason": None if self.reason is None else str(self.reason),
            "warning_rules": dict(WARNINGS),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head = f"{self.question}: {self.votes} answers, {len(self.annotators)} annotators, {self.shared} shared items"
        lines = [head]
        if self.raw.value is not None:
            lines.append(f"  raw agreement {100 * self.raw.value:.1f} % of {self.raw.n} pairs of answers")
            lines += [f"  alpha, {called(name)}: {str(one).split(' ', 1)[1]}" for name, one in self.alphas.items()]
        if self.mean_kappa is not None:
            lines.append(f"  mean kappa {self.mean_kappa:.3f} over {self.kappas} pairs of annotators")
        lines.append(f"  asked again: same answer {self.consistency.everything}")
        for warning, rule in WARNINGS.items():
            if named := [one.name for one in self.annotators if warning in one.warnings]:
                lines.append(f"  {called(warning)}: {', '.join(named)} ({rule})")
        return "\n".join([*lines, *([f"  {self.message}"] if self.message else [])])


def agreement(
    votes: AnyVotes, question: str, *, resamples: int = 10_000, seed: int = 0, level: float = 0.95
) -> Agreement:
    """How far people agree on ``question``, each with the others and with themselves.

    An item is a sample, two systems and, where told, the seeds of both videos; answers are oriented to the system whose
    name comes first. An annotator's first answer about an item (in the order given) is compared with other people's;
    later ones are compared with the first alone, so nobody agrees with themselves in the figures between people.

    Args:
        votes: in any form that :func:`gen_eval.arena.vote_files.votes_from` takes.
        question: ``quality`` or ``plausibility``.
        resamples: of the intervals, which draw whole samples; 0 for none.
        seed: of the draws, non-negative.
        level: nominal coverage of the intervals, strictly between 0 and 1.

    Returns:
        The figures; without named annotators or shared items those between people have no value, with a reason.

    Raises:
        ValueError: no such question, or an argument outside its range.
    """
    if question not in QUESTIONS:
        raise ValueError(f"question is {question!r}; expected one of {', '.join(QUESTIONS)}")
    given = votes_from(votes).votes
    judgements = judged(given, question)
    shared = {item: own for item, own in judgements.first.items() if len(own) > 1}
    pairs = annotator_pairs(judgements)
    kappas = [one.kappa for one in pairs if one.kappa is not None]
    draws = {"resamples": resamples, "seed": seed}
    return Agreement(
        question=question,
        votes=sum(vote.answer(question) is not None for vote in given),
        unnamed=judgements.unnamed,
        items=len(judgements.first),
        shared=len(shared),
        raw=_raw(judgements, level, draws),
        alphas={name: _alpha(name, judgements, level, draws) for name in ALPHAS},
        pairs=pairs,
        mean_kappa=exact_mean(kappas) if kappas else None,
        kappas=len(kappas),
        annotators=annotator_reports(given, question, judgements),
        consistency=Consistency.of(judgements.repeats),
        reason=None if shared else Reason.NOT_CONNECTED,
        message="" if shared else _why_not(judgements),
    )


def _raw(judgements: Judged, level: float, draws: Mapping[str, int]) -> RawAgreement:
    samples: dict[str, list[int]] = {}
    for item, own in judgements.first.items():
        answers = list(own.values())
        if len(answers) > 1:
            counts = samples.setdefault(item.sample, [0, 0])
            counts[0] += sum(answers.count(one) * (answers.count(one) - 1) for one in Answer) // 2
            counts[1] += len(answers) * (len(answers) - 1) // 2
    equal, n = ([counts[place] for counts in samples.values()] for place in (0, 1))
    interval = bootstrap_ratio(equal, n, level=level, **draws) if draws["resamples"] and len(samples) > 1 else None
    return RawAgreement(sum(equal), sum(n), interval)


def _alpha(name: str, judgements: Judged, level: float, draws: Mapping[str, int]) -> AgreementCoefficient:
    units: list[Sequence[Answer | float]] = [
        list(own.values()) if name == "nominal" else [answer.score for answer in own.values()]
        for own in judgements.first.values()
    ]
    samples = [item.sample for item in judgements.first]
    measure: Measure = "interval" if name == "interval" else "nominal"
    return krippendorff_alpha(units, level=measure, clusters=samples, coverage=level, **draws)


def _why_not(judgements: Judged) -> str:
    names = {name for own in judgements.first.values() for name in own}
    if not names:
        return "no answer names an annotator, so no two people can be compared; give the field annotator"
    if len(names) == 1:
        return f"only {names.pop()!r:.80} answered; agreement needs two people on the same items"
    return (
        f"no two of the {len(names)} annotators judged the same item (same sample, systems and seeds); "
        "give some items to several people"
    )


__all__ = ["ALPHAS", "Agreement", "RawAgreement", "agreement"]
