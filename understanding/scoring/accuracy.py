"""Accuracy: the share of questions whose answer is right."""

from __future__ import annotations

from gen_eval.records import MetricFacts

METRIC = MetricFacts(
    name="accuracy",
    track="understanding",
    source="right answers over questions (PAI-Bench, table 5; VANTAGE-Bench, VQA and pointing)",
)
