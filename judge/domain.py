"""Domain score: the share of a judge's answers about a generated video that are right.

One set of verdicts gives every aggregation of the protocol; nothing else is needed to compute them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from gen_eval.data.benchmark import PAI_G_DOMAINS, domain_of_id
from gen_eval.protocols import Protocol
from gen_eval.records import MetricFacts
from gen_eval.stats import Aggregate, Column, Count, Interval, aggregates, exact_mean, resampled_sums
from gen_eval.stats.intervals import percentile_interval
from judge.coverage import Coverage, coverage_of
from judge.questions import JudgeQuestion
from judge.verdict import Verdict

METRIC = MetricFacts(
    name="domain_score",
    track="domain",
    source="PAI-Bench, section on the Domain Score: accuracy of a judge's yes/no answers, videos weighted alike",
)

USUAL_SEEDS = ("0", "1", "2", "3", "4", "default")
"""Seeds that count when no others are asked for; ``default`` is a video that carries the sample's id alone."""

UNPUBLISHED_DOMAIN = "misc"
"""The domain that the public code knows and the published table leaves out."""

_RESAMPLES = 10_000

ByQuestion: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]
"""uid -> (seed, value) of every answer that counts."""


@dataclass(frozen=True)
class Rules:
    """How verdicts become one number, as the protocol states it.

    Attributes:
        repeated_uid: whether questions that share a uid in the file are one question (``merged``) or ``separate``.
        empty_domain: a domain without videos is 0 (``zero``) or ``left_out``.
        unknown_domain: a sample whose id names no domain is ``counted`` in the whole, or ``stops`` the public code and
            is left out.
    """

    repeated_uid: Literal["separate", "merged"] = "separate"
    empty_domain: Literal["left_out", "zero"] = "left_out"
    unknown_domain: Literal["counted", "stops"] = "counted"


def rules_of(protocol: Protocol) -> Rules:
    """The rules that a protocol of the domain score states in its section ``decide``."""
    return rules_from(protocol.decide)


def rules_from(decide: Mapping[str, Any]) -> Rules:
    """The rules among the parameters of a section ``decide``, as a manifest keeps it."""
    return Rules(**{name: decide[name] for name in Rules.__dataclass_fields__})


@dataclass(frozen=True)
class Floor:
    """What a judge would score that always gives one answer, over the same videos and questions."""

    video_mean: float | None
    question_pooled: float | None
    by_domain: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "video_mean": self.video_mean,
            "question_pooled": self.question_pooled,
            "by_domain": dict(self.by_domain),
        }


@dataclass(frozen=True)
class DomainScores:
    """Every aggregation of one set of verdicts; values are ratios in 0..1.

    Attributes:
        video_mean: the headline: mean over the seeds of a question, then over the questions of a sample, then over the
            samples that have an answer. Samples without one are in N, and 0 in ``mean_missing_as_zero``.
        question_pooled: mean over all questions of all samples, seeds averaged first.
        domain_macro: mean over the domains that have an answer.
        by_domain: the headline within each domain.
        by_topic: question-pooled within each topic, and within each group of topics.
        per_seed: the headline of each seed alone.
        std_over_seeds: standard deviation (n - 1) of these; ``None`` with one seed.
        without_misc: the headline without the domain that the published table does not have.
        always_yes: see :class:`Floor`.
        always_no: likewise.
        values: value of each sample that has one; what comparisons between systems are made of.
        coverage: what was expected and what was there.
        rules: by which all this was computed.
        domain_zeros: domains without videos that the rules give as 0.
    """

    video_mean: Aggregate
    question_pooled: Aggregate
    domain_macro: Aggregate
    by_domain: Mapping[str, Aggregate]
    by_topic: Mapping[str, Aggregate]
    by_topic_group: Mapping[str, Aggregate]
    per_seed: Mapping[str, Aggregate]
    std_over_seeds: float | None
    without_misc: Aggregate
    always_yes: Floor
    always_no: Floor
    values: Mapping[str, float]
    coverage: Coverage
    rules: Rules
    domain_zeros: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "video_mean": self.video_mean.to_json(),
            "question_pooled": self.question_pooled.to_json(),
            "domain_macro": self.domain_macro.to_json(),
            **{
                name: {key: one.to_json() for key, one in getattr(self, name).items()}
                for name in ("by_domain", "by_topic", "by_topic_group", "per_seed")
            },
            "std_over_seeds": self.std_over_seeds,
            "without_misc": self.without_misc.to_json(),
            "always_yes": self.always_yes.to_json(),
            "always_no": self.always_no.to_json(),
            "coverage": self.coverage.to_json(),
        }


def is_right(verdict: Verdict) -> float | None:
    """1 for a right answer, 0 for a wrong one, ``None`` for none: the hard score."""
    return None if verdict.right is None else float(verdict.right)


def by_question(
    verdicts: Iterable[Verdict],
    questions: Sequence[JudgeQuestion],
    rules: Rules,
    value: Callable[[Verdict], float | None] = is_right,
) -> dict[str, list[tuple[str, float]]]:
    """The answers about one sample, by uid in the order of the questions; questions without an answer are absent."""
    own = _by_uid(verdicts)
    found: dict[str, list[tuple[str, float]]] = {}
    for question in questions:
        uid = question.listed_uid if rules.repeated_uid == "merged" else question.uid
        answers = [
            (verdict.seed, number) for verdict in own.get(question.uid, ()) if (number := value(verdict)) is not None
        ]
        if answers:
            found.setdefault(uid, []).extend(answers)
    return found


def _by_uid(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.uid, []).append(verdict)
    return found


def sample_value(answers: ByQuestion, seed: str | None = None) -> float | None:
    """Mean over the answers of a question, then over the questions that have one; of one seed, or of all.

    >>> sample_value({"q0": [("0", 1.0), ("1", 0.0)], "q1": [("0", 1.0)]})
    0.75
    """
    means = [
        exact_mean(own)
        for pairs in answers.values()
        if (own := [number for given, number in pairs if seed in (None, given)])
    ]
    return exact_mean(means) if means else None


def domain_scores(
    verdicts: Iterable[Verdict],
    questions: Mapping[str, Sequence[JudgeQuestion]],
    *,
    rules: Rules | None = None,
    seeds: Collection[str] = USUAL_SEEDS,
    domains: Mapping[str, str | None] | None = None,
    value: Callable[[Verdict], float | None] = is_right,
    intervals: bool = True,
) -> DomainScores:
    """All aggregations of ``verdicts``.

    Intervals resample whole samples (10,000 resamples, seed 0): answers about one sample depend on each other.

    Args:
        verdicts: of one system by one judge, at most one for each sample, seed and uid.
        questions: of every sample that is expected; samples without a question do not belong here.
        rules: how; the corrected ones by default.
        seeds: which seeds count; answers about others are listed in the coverage.
        domains: sample -> domain; by the prefix of the id by default.
        value: what a verdict is worth, in 0..1; ``None`` leaves it out.
        intervals: whether intervals are wanted.

    Raises:
        ValueError: two verdicts for one question and seed.
    """
    rules = rules or Rules()
    named = {sample: domain_of_id(sample) for sample in questions} if domains is None else domains
    table = _Table(list(verdicts), questions, rules, frozenset(seeds), named, value)
    columns = table.columns(intervals)
    found = dict(zip(columns, aggregates(list(columns.values())), strict=True))
    per_seed = {key[1]: one for key, one in found.items() if key[0] == "seed"}
    seed_values = [one.value for one in per_seed.values() if one.value is not None]
    by_domain = {key[1]: one for key, one in found.items() if key[0] == "domain"}
    zeros = table.empty_domains(by_domain) if rules.empty_domain == "zero" else ()
    return DomainScores(
        video_mean=found["whole", ""],
        question_pooled=found["pooled", ""],
        domain_macro=_macro(table, by_domain, intervals),
        by_domain=by_domain,
        by_topic={key[1]: one for key, one in found.items() if key[0] == "topic"},
        by_topic_group={key[1]: one for key, one in found.items() if key[0] == "group"},
        per_seed=per_seed,
        std_over_seeds=float(np.std(seed_values, ddof=1)) if len(seed_values) > 1 else None,
        without_misc=found["without_misc", ""],
        always_yes=table.floor("yes"),
        always_no=table.floor("no"),
        values=table.values,
        coverage=table.coverage,
        rules=rules,
        domain_zeros=zeros,
    )


class _Table:
    """The verdicts by sample, question and seed."""

    def __init__(
        self,
        verdicts: Sequence[Verdict],
        questions: Mapping[str, Sequence[JudgeQuestion]],
        rules: Rules,
        seeds: frozenset[str],
        domains: Mapping[str, str | None],
        value: Callable[[Verdict], float | None],
    ) -> None:
        if twice := [key for key, count in Counter(one.key for one in verdicts).items() if count > 1]:
            raise ValueError(f"two verdicts for {twice[0]}; there is one for each sample, seed and question")
        self.rules, self.domains = rules, domains
        known = {sample: domains.get(sample) for sample in questions}
        stopped = tuple(sorted(one for one in known if known[one] is None)) if rules.unknown_domain == "stops" else ()
        self.questions = {one: questions[one] for one in sorted(questions) if one not in set(stopped)}
        own: dict[str, list[Verdict]] = {sample: [] for sample in self.questions}
        for verdict in verdicts:
            if verdict.sample in own and verdict.seed in seeds:
                own[verdict.sample].append(verdict)
        self.answers = {one: by_question(own[one], self.questions[one], rules, value) for one in self.questions}
        found = {sample: sample_value(answers) for sample, answers in self.answers.items()}
        self.values = {sample: number for sample, number in found.items() if number is not None}
        self.coverage = coverage_of(verdicts, self.questions, seeds=seeds, domains=known, stopped=stopped)

    def samples(self, domain: str | None = None, *, but: str | None = None) -> list[str]:
        """The expected samples, of one domain, or of all but one."""
        chosen = ((one, self.domains.get(one)) for one in self.questions)
        return [one for one, own in chosen if (domain is None or own == domain) and (but is None or own != but)]

    def domain_names(self) -> list[str]:
        return sorted({own for one in self.questions if (own := self.domains.get(one)) is not None})

    def columns(self, intervals: bool) -> dict[tuple[str, str], Column]:
        """Every mean that is wanted, by kind and name."""
        whole = self._by_sample(self.samples())
        kinds: dict[tuple[str, str], tuple[Any, Literal["sample_first", "pooled"]]] = {
            ("whole", ""): (whole, "sample_first"),
            ("without_misc", ""): (self._by_sample(self.samples(but=UNPUBLISHED_DOMAIN)), "sample_first"),
            ("pooled", ""): (self._pooled(), "pooled"),
        }
        for domain in self.domain_names():
            kinds["domain", domain] = (self._by_sample(self.samples(domain)), "sample_first")
        for seed in sorted({seed for own in self.answers.values() for pairs in own.values() for seed, _ in pairs}):
            kinds["seed", seed] = (self._by_sample(self.samples(), seed), "sample_first")
        topics = sorted({one.task for own in self.questions.values() for one in own if one.task})
        for topic in topics:
            kinds["topic", topic] = (self._pooled({topic}), "pooled")
        for group in sorted(set(map(_group, topics))):
            kinds["group", group] = (self._pooled({topic for topic in topics if _group(topic) == group}), "pooled")
        return {key: Column(values, rule, True, "ratio", intervals) for key, (values, rule) in kinds.items()}

    def _by_sample(self, samples: Iterable[str], seed: str | None = None) -> dict[str, dict[str, float | None]]:
        return {sample: {"": sample_value(self.answers[sample], seed)} for sample in samples}

    def _pooled(self, topics: Collection[str] | None = None) -> dict[str, dict[str, float | None]]:
        """Mean over the answers of each question of these topics, by sample; samples without one are absent."""
        found: dict[str, dict[str, float | None]] = {}
        for sample, own in self.questions.items():
            uids = dict.fromkeys(self._uid(question) for question in own if topics is None or question.task in topics)
            answers = self.answers[sample]
            means = {
                uid: exact_mean([number for _, number in answers[uid]]) if uid in answers else None for uid in uids
            }
            if means:
                found[sample] = means
        return found

    def _uid(self, question: JudgeQuestion) -> str:
        return question.listed_uid if self.rules.repeated_uid == "merged" else question.uid

    def floor(self, word: str) -> Floor:
        """The score of a judge that always says ``word``, over the questions that have an answer."""
        shares: dict[str, list[float]] = {}
        for sample, own in self.questions.items():
            keys: dict[str, list[float]] = {}
            for question in own:
                if (uid := self._uid(question)) in self.answers[sample]:
                    keys.setdefault(uid, []).append(float(question.binary == word))
            if keys:
                shares[sample] = [exact_mean(values) for values in keys.values()]
        means = {sample: exact_mean(values) for sample, values in shares.items()}
        pooled = [value for values in shares.values() for value in values]
        domains = {
            domain: exact_mean(there)
            for domain in self.domain_names()
            if (there := [means[one] for one in self.samples(domain) if one in means])
        }
        return Floor(
            exact_mean(list(means.values())) if means else None, exact_mean(pooled) if pooled else None, domains
        )

    @staticmethod
    def empty_domains(by_domain: Mapping[str, Aggregate]) -> tuple[str, ...]:
        return tuple(one for one in PAI_G_DOMAINS if one not in by_domain or by_domain[one].value is None)


def _group(task: str) -> str:
    """The part of a topic before its colon."""
    return task.split(":", 1)[0].strip()


def _macro(table: _Table, by_domain: Mapping[str, Aggregate], intervals: bool) -> Aggregate:
    """Mean over the domains; its interval draws the samples of each domain apart from those of the others."""
    filled = {name: one for name, one in by_domain.items() if one.value is not None}
    values = [one.value for one in filled.values() if one.value is not None]
    mean = exact_mean(values) if values else None
    own = {name: [table.values[one] for one in table.samples(name) if one in table.values] for name in filled}
    interval = _macro_interval(list(own.values())) if intervals and own and min(map(len, own.values())) > 1 else None
    rule = "mean over the samples of a domain that have an answer, then over the domains that have one"
    return Aggregate(
        mean,
        None if interval is None else interval.lower,
        None if interval is None else interval.upper,
        len(filled),
        len(by_domain),
        _members(by_domain),
        exact_mean([*values, *[0.0] * (len(by_domain) - len(values))]) if values else None,
        rule,
        "ratio",
        interval=interval,
    )


def _members(by_domain: Mapping[str, Aggregate]) -> Count:
    return Count(sum(one.n for one in by_domain.values()), sum(one.N for one in by_domain.values()))


def _macro_interval(groups: Sequence[Sequence[float]]) -> Interval:
    means = np.zeros(_RESAMPLES)
    for place, values in enumerate(groups):
        sums = resampled_sums(np.array(values)[:, None], resamples=_RESAMPLES, seed=place)
        means += sums[:, 0] / len(values) / len(groups)
    method = "percentile bootstrap, samples drawn with replacement within each domain, seeds 0, 1, …"
    return percentile_interval(np.clip(means, 0.0, 1.0), 0.95, _RESAMPLES, method)


__all__ = [
    "METRIC",
    "USUAL_SEEDS",
    "DomainScores",
    "Floor",
    "Rules",
    "by_question",
    "domain_scores",
    "is_right",
    "rules_from",
    "rules_of",
    "sample_value",
]
