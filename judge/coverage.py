"""What of the expected answers was there, and what became of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gen_eval.records import Reason
from judge.questions import JudgeQuestion
from judge.verdict import Verdict

_BARE = "default"


@dataclass(frozen=True)
class Coverage:
    """Counts and names beside a score. A *video* here is a sample with all its seeds, as in the publication.

    Attributes:
        videos_expected: samples that have a question.
        videos_with_answers: those with at least one answer that counts.
        without_answers: the others.
        answers: answers that count.
        unparsed: those of them that could not be read, and are wrong.
        unparsed_by: the same by failure.
        refused: those of them that the endpoint declined to give, and are wrong.
        missing: those of them that a file of replies does not hold, and are wrong.
        failed_by: questions that were not answered, by reason.
        seed_counts: number of seeds -> number of samples with so many.
        seeds_left_out: seeds that do not count -> number of answers about them.
        bare_beside_numbered: samples with a video that carries the id alone beside numbered ones.
        unknown_domain: samples whose id names no domain.
        stopped: those of them that the public code stops at; left out.
        unknown_samples: answers about samples that are not expected, by sample.
    """

    videos_expected: int
    videos_with_answers: int
    without_answers: tuple[str, ...]
    answers: int
    unparsed: int
    unparsed_by: Mapping[str, int]
    refused: int
    missing: int
    failed_by: Mapping[str, int]
    seed_counts: Mapping[int, int]
    seeds_left_out: Mapping[str, int]
    bare_beside_numbered: tuple[str, ...]
    unknown_domain: tuple[str, ...]
    stopped: tuple[str, ...]
    unknown_samples: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Mapping):
                plain[name] = {str(key): count for key, count in value.items()}
            else:
                plain[name] = list(value) if isinstance(value, tuple) else value
        return plain


def coverage_of(
    verdicts: Sequence[Verdict],
    questions: Mapping[str, Sequence[JudgeQuestion]],
    *,
    seeds: Collection[str],
    domains: Mapping[str, str | None],
    stopped: tuple[str, ...] = (),
) -> Coverage:
    """Count ``verdicts`` against what is expected.

    Args:
        verdicts: all that there are.
        questions: of the samples that take part.
        seeds: which seeds count.
        domains: of every sample, also of those that were stopped at.
        stopped: samples that the public code stops at.
    """
    known = {sample: {one.uid for one in own} for sample, own in questions.items()}
    about = [one for one in verdicts if one.uid in known.get(one.sample, ())]
    taken = [one for one in about if one.seed in seeds]
    counted = [one for one in taken if one.right is not None]
    seeds_of: dict[str, set[str]] = {}
    for verdict in counted:
        seeds_of.setdefault(verdict.sample, set()).add(verdict.seed)
    unparsed = Counter(str(one.unparsed) for one in counted if one.unparsed is not None)
    unknown = (one for one in verdicts if one.sample not in known and one.sample not in stopped)
    return Coverage(
        videos_expected=len(questions),
        videos_with_answers=len(seeds_of),
        without_answers=tuple(sorted(set(questions) - set(seeds_of))),
        answers=len(counted),
        unparsed=sum(unparsed.values()),
        unparsed_by=_sorted(unparsed),
        refused=sum(one.reason is not None and str(one.reason.status) == "refused" for one in counted),
        missing=sum(one.reason is Reason.MISSING_REPLY for one in counted),
        failed_by=_sorted(Counter(str(one.reason) for one in taken if one.reason is not None and one.right is None)),
        seed_counts=dict(sorted(Counter(map(len, seeds_of.values())).items())),
        seeds_left_out=_sorted(Counter(one.seed for one in about if one.seed not in seeds)),
        bare_beside_numbered=tuple(sorted(one for one, own in seeds_of.items() if _BARE in own and len(own) > 1)),
        unknown_domain=tuple(sorted(one for one, domain in domains.items() if domain is None)),
        stopped=stopped,
        unknown_samples=_sorted(Counter(one.sample for one in unknown)),
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


__all__ = ["Coverage", "coverage_of"]
