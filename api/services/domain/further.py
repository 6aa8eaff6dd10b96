"""Everything that one set of answers says beside the headline, computed again from the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gen_eval.records import Flag, Reason, Score
from gen_eval.stats import exact_mean, paired_difference
from judge.domain import METRIC, DomainScores, domain_scores, rules_from
from judge.questions import JudgeQuestion
from judge.verdict import Verdict

if TYPE_CHECKING:
    from api.services.results import RunResults

NEAR = 0.1
"""A judge whose score is surely less than this above the one without the video is called one that does not look."""


def further_scores(results: RunResults) -> dict[str, DomainScores]:
    """Protocol -> all aggregations, for a run of the domain track."""
    entry = results.manifest["metrics"][METRIC.name]
    questions = _questions(results)
    return {protocol: _scores(results, protocol, questions) for protocol in entry["protocols"]}


def _scores(results: RunResults, protocol: str, questions: Mapping[str, tuple[JudgeQuestion, ...]]) -> DomainScores:
    rows = [row for row in results.rows if row.protocol == protocol]
    verdicts = [verdict for row in rows for verdict in _verdicts(row)]
    seeds = {row.member for row in rows}
    expected = {sample: questions.get(sample, ()) for sample in results.domains}
    rules = rules_from(results.manifest["metrics"][METRIC.name]["rules"][protocol])
    return domain_scores(verdicts, expected, rules=rules, seeds=seeds, domains=results.domains)


def _verdicts(row: Score) -> Iterator[Verdict]:
    """The answers of a row; those of a video without a value are none: not all of its questions were answered."""
    for one in row.detail.get("questions", ()):
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
    scores = further_scores(results)
    return {
        "judge": results.manifest["judge"],
        "conditions": results.manifest["conditions"],
        "protocols": {
            protocol: {**one.to_json(), "looks": looks(results, protocol)} for protocol, one in scores.items()
        },
    }


def looks(results: RunResults, protocol: str) -> dict[str, Any] | None:
    """Whether the judge sees what it is asked about: its score against those without video and on another video.

    Returns:
        ``None`` when neither was asked for; else the paired difference over the samples that have both, and a verdict:
        ``looks`` when the score is surely above all of them, ``does_not_look`` when it is surely near to one
        (:data:`NEAR`), ``not_clear`` otherwise. *Surely*: by the ends of the 95 % interval.
    """
    rows = [row for row in results.rows if row.protocol == protocol and row.value is not None]
    found = {name: one for name in results.manifest["conditions"] if (one := _against(rows, name)) is not None}
    ends = [(one["lower"], one["upper"]) for one in found.values()]
    known = [(lower, upper) for lower, upper in ends if lower is not None and upper is not None]
    if not found:
        return None
    if any(upper < NEAR for _, upper in known):
        verdict = "does_not_look"
    else:
        verdict = "looks" if len(known) == len(found) and all(lower > 0 for lower, _ in known) else "not_clear"
    return {**found, "verdict": verdict}


def _against(rows: Sequence[Score], condition: str) -> dict[str, Any] | None:
    """The score and the one under ``condition``, over the samples that have both."""
    own: dict[str, list[float]] = {}
    other: dict[str, list[float]] = {}
    for row in rows:
        beside = row.values.get(condition)
        if row.value is not None and beside is not None:
            own.setdefault(row.sample, []).append(row.value)
            other.setdefault(row.sample, []).append(beside)
    if not own:
        return None
    means = [{sample: exact_mean(values) for sample, values in one.items()} for one in (own, other)]
    paired = paired_difference(*means)
    return {
        "samples": paired.n,
        "score": exact_mean(list(means[0].values())),
        "reference": exact_mean(list(means[1].values())),
        "difference": paired.difference,
        "lower": paired.lower,
        "upper": paired.upper,
    }
