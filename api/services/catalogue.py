"""What exists: metrics with their facts, benchmarks with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gen_eval.features.metric import Metric
from gen_eval.protocols import config_names, config_path, load_protocol, protocol_names
from gen_eval.records import MetricFacts
from gen_eval.registry import load, names


def metric_catalogue() -> list[dict[str, Any]]:
    """All metrics, by name."""
    return [_metric_entry(name) for name in names("gen_eval.metrics")]


def _metric_entry(name: str) -> dict[str, Any]:
    found = load("gen_eval.metrics", name)
    return {**_facts(found), **_needs(found)}


def _facts(metric: Metric | MetricFacts) -> dict[str, Any]:
    return {
        "name": metric.name,
        "track": metric.track,
        "version": metric.version,
        "unit": metric.unit,
        "bounds": list(metric.bounds),
        "higher_is_better": metric.higher_is_better,
        "protocols": {each: load_protocol(metric.name, each).digest for each in protocol_names(metric.name)},
        "source": metric.source,
        "caveat": metric.caveat,
    }


def _needs(metric: Metric | MetricFacts) -> dict[str, Any]:
    if isinstance(metric, MetricFacts):
        nothing = {"uses_condition_image": False, "uses_prompt": False, "networks": []}
        return {"inputs": "answers", "signal": "replies", **nothing}
    return {
        "inputs": metric.inputs,
        "signal": metric.signal,
        "uses_condition_image": metric.uses_condition_image,
        "uses_prompt": metric.uses_prompt,
        "networks": _networks(metric),
    }


def _networks(metric: Metric) -> list[str]:
    """Checkpoints that the metric's protocols need, those included that make a signal which was not given."""
    measures = [load_protocol(metric.name, each).measure for each in protocol_names(metric.name)]
    signals = [metric.clip_signal(measure) for measure in measures]
    always = [checkpoint for measure in measures for checkpoint in metric.networks(measure)]
    made = [checkpoint for signal in signals if signal is not None for checkpoint in signal.networks]
    return list(dict.fromkeys([*always, *made]))


def benchmark_catalogue() -> list[dict[str, Any]]:
    """Known benchmarks: what they hold, where they are published, under which terms."""
    return [
        {"name": name, **yaml.safe_load(Path(config_path("benchmarks", name)).read_text(encoding="utf-8"))}
        for name in config_names("benchmarks")
    ]
