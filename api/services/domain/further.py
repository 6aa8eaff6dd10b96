"""Everything that one set of answers says beside the headline, computed again from the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gen_eval.records import Flag, Reason, Score
from gen_eval.stats import Aggregate, exact_mean
from judge.domain import METRIC, DomainScores, domain_scores, is_right, rules_from
from judge.estimates import Estimate
from judge.looking import gain, looking
from judge.questions import JudgeQuestion
from judge.soft import Confidence, confidence
from judge.verdict import Verdict

if TYPE_CHECKING:
    from api.services.results import RunResults


def scores_under(
    results: RunResults, protocol: str, value: Callable[[Verdict], float | None] = is_right
) -> DomainScores:
    """All aggregations under one protocol, for a run of the domain track.

    Args:
        results: the run.
        protocol: one that its manifest names.
        value: what a verdict is worth, in 0..1; ``None`` leaves it out.
    """
    questions = _questions(results)
    rows = _rows(results, protocol)
    verdicts = [verdict for row in rows for verdict in _verdicts(row)]
    seeds = {row.member for row in rows}
    expected = {sample: questions.get(sample, ()) for sample in results.domains}
    rules = rules_from(results.manifest["metrics"][METRIC.name]["rules"][protocol])
    return domain_scores(verdicts, expected, rules=rules, seeds=seeds, domains=results.domains, value=value)


def _rows(results: RunResults, protocol: str) -> list[Score]:
    return [row for row in results.rows if (row.metric, row.protocol) == (METRIC.name, protocol)]


@dataclass(frozen=True)
class SoftScores:
    """What a judge's log-probabilities say; the hard score stays the headline.

    Attributes:
        video_mean: of the probability that it gives to the right word, over seeds, questions and samples as in the
            headline; answers without both log-probabilities are in none of it.
        by_domain: the same within each domain.
        confidence: calibration curve, expected calibration error, Brier score, and how many answers have no
            probability (``absent``); of questions whose key is yes or no, for others cannot have one.
    """

    video_mean: Aggregate
    by_domain: Mapping[str, Aggregate]
    confidence: Confidence

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "video_mean": self.video_mean.to_json(),
            "by_domain": {name: one.to_json() for name, one in self.by_domain.items()},
            "confidence": self.confidence.to_json(),
        }


def soft_scores(results: RunResults, protocol: str) -> SoftScores | None:
    """The soft score of a run of the domain track; ``None`` when no answer has log-probabilities of both words."""
    rows = [row for row in _rows(results, protocol) if row.value is not None]
    entries = [(row, one) for row in rows for one in _entries(row)]
    chances = {(row.sample, row.member, one["uid"]): one["chance"] for row, one in entries}
    if all(chance is None for chance in chances.values()):
        return None
    found = scores_under(results, protocol, lambda verdict: chances.get(verdict.key))
    keys = [(row.sample, one["chance"], _question(row.sample, one).binary) for row, one in entries]
    believed = confidence(
        (sample, chance if chance is None or key == "yes" else 1.0 - chance, key == "yes")
        for sample, chance, key in keys
        if key is not None
    )
    return SoftScores(found.video_mean, found.by_domain, believed)


def _verdicts(row: Score) -> Iterator[Verdict]:
    """The answers of a row; those of a video without a value are none: not all of its questions were answered."""
    for one in _entries(row):
        reason = None if one["reason"] is None else Reason(one["reason"])
        yield Verdict(
            row.sample,
            row.member,
            one["uid"],
            one["right"] if row.value is not None else None,
            one["said"],
            one["rule"],
            tuple(Flag(name) for name in one["flags"]),
            reason or row.reason,
            one["reply"],
        )


def _questions(results: RunResults) -> dict[str, tuple[JudgeQuestion, ...]]:
    """What aggregation needs of the questions, as the rows have it."""
    found: dict[str, tuple[JudgeQuestion, ...]] = {}
    for row in results.rows:
        listed = row.detail.get("questions", ())
        if row.sample not in found and listed:
            found[row.sample] = tuple(_question(row.sample, one) for one in listed)
    return found


def _question(sample: str, entry: Mapping[str, Any]) -> JudgeQuestion:
    return JudgeQuestion(
        sample, entry["uid"], "", {"key": entry["truth"]}, "key", entry["task"], listed_uid=entry["listed_uid"]
    )


def judge_document(results: RunResults) -> dict[str, Any]:
    """Who judged, and all aggregations by protocol (JSON values only)."""
    return {
        "judge": results.manifest["judge"],
        "conditions": results.manifest["conditions"],
        "protocols": {
            protocol: {
                **scores_under(results, protocol).to_json(),
                "looks": looks(results, protocol),
                "soft": _soft_json(results, protocol),
            }
            for protocol in results.manifest["metrics"][METRIC.name]["protocols"]
        },
    }


def _soft_json(results: RunResults, protocol: str) -> dict[str, Any] | None:
    found = soft_scores(results, protocol)
    return None if found is None else found.to_json()


def looks(results: RunResults, protocol: str) -> dict[str, Any] | None:
    """Whether the judge sees what it is asked about, by the rule of :mod:`judge.looking`.

    Returns:
        ``None`` when no reference point was asked for; else for each of them the share of right answers with the video
        and under it, over the questions that have both, and their difference with its interval; and the verdict.
    """
    conditions = results.manifest["conditions"]
    if not conditions:
        return None
    rows = [row for row in _rows(results, protocol) if row.value is not None]
    found = {name: _pairs(rows, name) for name in conditions}
    gains = {name: gain(pairs) for name, pairs in found.items()}
    beside = {name: _against(pairs, gains[name]) for name, pairs in found.items() if pairs}
    return {**beside, "verdict": str(looking(gains.values()))}


def _pairs(rows: Sequence[Score], condition: str) -> list[tuple[str, bool, bool]]:
    """Sample, whether an answer is right, and whether the one under ``condition`` is; where there are both."""
    entries = ((row.sample, one["right"], one["right_under"].get(condition)) for row in rows for one in _entries(row))
    return [(sample, own, beside) for sample, own, beside in entries if own is not None and beside is not None]


def _entries(row: Score) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = row.detail.get("questions", ())
    return found


def _against(pairs: Sequence[tuple[str, bool, bool]], found: Estimate) -> dict[str, Any]:
    return {
        "samples": found.scenes,
        "answers": found.n,
        "score": exact_mean([float(own) for _, own, _ in pairs]),
        "reference": exact_mean([float(beside) for _, _, beside in pairs]),
        "difference": found.value,
        "lower": found.lower,
        "upper": found.upper,
    }
