"""The public code's own result documents, made from verdicts: its summary, and one record a video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gen_eval.data.benchmark import PAI_G_DOMAINS, domain_of_id
from gen_eval.stats import exact_mean
from judge.domain import USUAL_SEEDS, DomainScores, Rules
from judge.questions import JudgeQuestion
from judge.verdict import Verdict


def summary(scores: DomainScores) -> dict[str, Any]:
    """``overall_accuracy``, ``total_videos`` and ``category_scores``; domains that the rules give as 0 are there."""
    domains = {name: one.value for name, one in scores.by_domain.items()} | dict.fromkeys(scores.domain_zeros, 0.0)
    known = [*PAI_G_DOMAINS, *sorted(set(domains) - set(PAI_G_DOMAINS))]
    return {
        "overall_accuracy": scores.video_mean.value,
        "total_videos": scores.video_mean.n,
        "category_scores": {f"{name}_score": domains[name] for name in known if name in domains},
    }


def video_records(
    verdicts: Iterable[Verdict],
    questions: Mapping[str, Sequence[JudgeQuestion]],
    *,
    rules: Rules,
    seeds: Sequence[str] = USUAL_SEEDS,
) -> list[dict[str, Any]]:
    """A record for each sample that has an answer, in order of id, in the form of the public detailed results.

    Args:
        verdicts: of one system by one judge.
        questions: of every sample.
        rules: how repeated uids are treated.
        seeds: which count, in the order in which they are listed.
    """
    own: dict[str, dict[tuple[str, str], Verdict]] = {}
    for verdict in verdicts:
        if verdict.right is not None and verdict.seed in seeds:
            own.setdefault(verdict.sample, {})[verdict.uid, verdict.seed] = verdict
    return [
        _video(sample, own[sample], questions[sample], rules, seeds) for sample in sorted(set(own) & set(questions))
    ]


def _video(
    sample: str,
    verdicts: Mapping[tuple[str, str], Verdict],
    questions: Sequence[JudgeQuestion],
    rules: Rules,
    seeds: Sequence[str],
) -> dict[str, Any]:
    there = [seed for seed in seeds if any(seed == given for _, given in verdicts)]
    merged: dict[str, list[JudgeQuestion]] = {}
    for question in questions:
        merged.setdefault(question.listed_uid if rules.repeated_uid == "merged" else question.uid, []).append(question)
    results = []
    for uid, same in merged.items():
        found = [verdicts[one.uid, seed] for seed in there for one in same if (one.uid, seed) in verdicts]
        if found:
            results.append(_result(uid, same[0], found))
    return {
        "video_id": sample,
        "seeds": there,
        "category": domain_of_id(sample),
        "results": results,
        "accuracy": exact_mean([one["accuracy"] for one in results]),
        "total_seeds": len(there),
    }


def _result(uid: str, question: JudgeQuestion, found: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "uid": uid,
        "question": question.question,
        "correct_answer": question.answer,
        "model_answers": [one.reply for one in found],
        "accuracy": exact_mean([float(bool(one.right)) for one in found]),
        "total_seeds": len(found),
        "task": question.task,
    }


__all__ = ["summary", "video_records"]
