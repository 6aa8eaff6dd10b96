"""What two runs must share for their scores to be compared, and the values that are paired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, TypeAlias

from api.services.differences import differing_samples
from api.services.facts import facts_of
from api.services.judged import ways_differ
from api.services.results import RunResults
from gen_eval.stats import PairedDifference, exact_mean

Verdict = Literal["better", "worse", "no clear difference", "not ranked", "no common value"]

SampleValues: TypeAlias = dict[tuple[str, str], dict[str, float | None]]
"""(metric, protocol) -> sample -> mean over its members."""


def pairs_of(run: RunResults, protocol: str | None = None) -> set[tuple[str, str]]:
    """Metrics and protocols of ``run``; those of one protocol when it is given."""
    return {
        (metric, name)
        for metric, entry in run.manifest["metrics"].items()
        for name in entry["protocols"]
        if protocol in {None, name}
    }


def sample_values(run: RunResults) -> SampleValues:
    """What is paired: members of a sample are averaged first under every protocol."""
    members: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in run.rows:
        if row.value is not None:
            members[row.metric, row.protocol][row.sample].append(row.value)
    return {
        pair: {sample: exact_mean(own) if (own := members[pair].get(sample)) else None for sample in run.domains}
        for pair in pairs_of(run)
    }


def other_inputs(first: RunResults, other: RunResults, metric: str) -> list[str]:
    """Common samples whose files that ``metric`` is scored against differ, sorted."""
    return sorted({sample for name in facts_of(metric).reads for sample in differing_samples(first, other, name)})


def not_comparable(first: RunResults, other: RunResults, metric: str, protocol: str) -> str:
    """Why the scores of a metric under a protocol were made by different rules; empty when they were not."""
    return next(_obstacles(first, other, metric, protocol), "")


def _obstacles(first: RunResults, other: RunResults, metric: str, protocol: str) -> Iterator[str]:
    entries = [run.manifest["metrics"][metric] for run in (first, other)]
    versions = [entry["version"] for entry in entries]
    if versions[0] != versions[1]:
        yield f"the versions of the metric differ ({versions[0]} and {versions[1]})"
    digests = [entry["protocols"][protocol] for entry in entries]
    if digests[0] != digests[1]:
        yield f"the parameters differ ({digests[0][:12]} and {digests[1][:12]})"
    if all(run.manifest.get("judge") for run in (first, other)):
        for way in ways_differ(first.manifest, other.manifest):
            yield f"they were judged in different ways: {way}"
    weights = [_weights(run, metric, protocol) for run in (first, other)]
    if weights[0] != weights[1] and all(weights):
        yield f"the weights differ ({' and '.join(', '.join(names) for names in weights)})"


def _weights(run: RunResults, metric: str, protocol: str) -> list[str]:
    """Weights that gave values; empty when there are no values, or nobody knows."""
    if run.imported:
        return []
    rows = (row for row in run.rows if row.metric == metric and row.protocol == protocol and row.value is not None)
    return sorted({"none" if row.weights is None else row.weights[:12] for row in rows})


def verdict_of(paired: PairedDifference, higher_is_better: bool) -> Verdict:
    """By the interval of the difference and the direction."""
    if paired.difference is None:
        return "no common value"
    if paired.lower is None or paired.upper is None or paired.lower <= 0 <= paired.upper:
        return "no clear difference"
    return "better" if (paired.lower > 0) == higher_is_better else "worse"
