"""`gen-eval understand compare`: two runs of a task on the questions that both have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.services.pairing import not_comparable, pairs_of, sample_values
from api.services.results import RunResults
from api.services.understanding.manifest import TRACK
from gen_eval.records import InputError
from gen_eval.stats import exact_mean
from understanding.scoring.comparing import PairedComparison, compare


@dataclass(frozen=True)
class RunComparison:
    """Two runs in one metric under one protocol.

    Attributes:
        metric: name.
        protocol: name.
        means: of the first and the second run over the questions that both have.
        found: second minus first, with McNemar's test and the interval over videos.
        why: why they are not compared; empty when they are.
    """

    metric: str
    protocol: str
    means: tuple[float | None, float | None] = (None, None)
    found: PairedComparison | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        head: dict[str, Any] = {"metric": self.metric, "protocol": self.protocol}
        if self.found is None:
            return {**head, "not_compared": self.why}
        return {**head, "first": self.means[0], "second": self.means[1], **self.found.to_json()}


def compare_runs(first: RunResults, second: RunResults, *, protocol: str | None = None) -> list[RunComparison]:
    """The second run against the first, question by question, under every protocol that both have.

    Raises:
        InputError: one is no run of a task, or they have nothing in common.
    """
    for run in (first, second):
        if run.manifest["track"] != TRACK:
            raise InputError(f"run {run.run[:12]} of {run.model} is no run of a task; use `gen-eval compare`")
    if first.manifest["task"] != second.manifest["task"]:
        tasks = f"{first.manifest['task']} and {second.manifest['task']}"
        raise InputError(f"the runs belong to different tasks: {tasks}")
    pairs = sorted(pairs_of(first, protocol) & pairs_of(second, protocol))
    if not pairs:
        raise InputError("the runs share no protocol; leave --protocol out to see what each has")
    return [_compared(first, second, *pair) for pair in pairs]


def _compared(first: RunResults, second: RunResults, metric: str, protocol: str) -> RunComparison:
    if why := not_comparable(first, second, metric, protocol):
        return RunComparison(metric, protocol, why=why)
    sides = [sample_values(run)[metric, protocol] for run in (first, second)]
    clusters = {
        entry["id"]: entry.get("cluster") or entry["id"] for run in (second, first) for entry in run.manifest["samples"]
    }
    found = compare(sides[0], sides[1], clusters)
    common = [name for name, value in sides[0].items() if value is not None and sides[1].get(name) is not None]
    means = [exact_mean([value for name in common if (value := side[name]) is not None]) for side in sides if common]
    return RunComparison(metric, protocol, (means[0], means[1]) if common else (None, None), found)
