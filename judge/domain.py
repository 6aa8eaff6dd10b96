"""Domain score: the share of a judge's answers about a generated video that are right."""

from __future__ import annotations

from gen_eval.records import MetricFacts

METRIC = MetricFacts(
    name="domain_score",
    track="domain",
    source="PAI-Bench, section on the Domain Score: accuracy of a judge's yes/no answers, videos weighted alike",
)
