"""Quality and Overall of PAI-Bench-G (publication, section 3.1 and Table 3; protocol of the quality track, section 5).

Which scores they are made of stands in ``configs/benchmarks/pai-bench-g.yaml``; the arithmetic is
:func:`gen_eval.stats.total_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gen_eval.protocols import total_rules
from gen_eval.records import InputError
from gen_eval.stats import Total, total_of
from gen_eval.stats.totals import Score


def quality_total(scores: Mapping[str, Score], **options: Any) -> Total:
    """The Quality score: plain mean of its eight dimensions.

    Args:
        scores: dimension -> its score, a number or (for an interval) a :class:`gen_eval.stats.Column` of values; all on
            one scale. Other names are not looked at; a dimension that is absent or ``None`` leaves the total without a
            value, and the mean of the others in ``partial``.
        options: ``resamples``, ``seed`` and ``level`` of :func:`gen_eval.stats.total_of`.

    Example:
        >>> print(quality_total({"subject_consistency": 0.9, "motion_smoothness": 0.98}).partial.value)
        0.94
    """
    return _total("quality", scores, options)


def overall_total(domain: Score, quality: Score, **options: Any) -> Total:
    """The Overall score: (Domain + Quality) / 2, both unrounded.

    Args:
        domain: the Domain score (``domain_score``): accuracy of a judge's answers.
        quality: the Quality score, best as :func:`quality_total` returns it; on the same scale.
        options: as for :func:`quality_total`.

    Example:
        >>> overall_total(0.898, 0.780).value
        0.839
    """
    return _total("overall", {"domain_score": domain, "quality": quality}, options)


def _total(name: str, scores: Mapping[str, Score], options: Mapping[str, Any]) -> Total:
    rule = total_rules().get(name)
    if rule is None:
        raise InputError(f"no benchmark file says what the total {name!r} is made of; see configs/benchmarks")
    return total_of(name, rule.mean_of, scores, **options)
