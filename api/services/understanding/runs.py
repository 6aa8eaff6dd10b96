"""What a call of `understand run` did: a run a way of asking, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.services.understanding.documents import ModelScores
from api.services.understanding.request import Condition
from gen_eval.mllm.asking import Tally
from understanding.scoring.aggregate import by_sample, value_of
from understanding.scoring.comparing import PairedComparison, compare


@dataclass(frozen=True)
class ConditionRun:
    """One way of asking, done.

    Attributes:
        condition: what was changed.
        run: id of the run.
        path: its folder.
        scores: everything about it.
        tally: requests, retries, tokens and cost of this call.
    """

    condition: Condition
    run: str
    path: Path
    scores: ModelScores
    tally: Tally


@dataclass(frozen=True)
class TaskRun:
    """All ways of asking that one call did."""

    task: str
    runs: Sequence[ConditionRun]

    def comparisons(self) -> list[tuple[Condition, Condition, PairedComparison]]:
        """Every condition against the first, on the questions that both have."""
        first, *others = self.runs
        clusters = _clusters(first.scores)
        return [
            (first.condition, one.condition, compare(_values(first.scores), _values(one.scores), clusters))
            for one in others
        ]

    def to_json(self) -> dict[str, Any]:
        """Of one condition the document of ``score``, of several the aggregate of each and what differs."""
        if len(self.runs) == 1:
            (only,) = self.runs
            return {
                "aggregate": only.scores.aggregate_json(),
                "rows": only.scores.rows_json(),
                "run": only.run,
                "condition": only.condition.words,
            }
        return {
            "conditions": [
                {
                    "condition": one.condition.words,
                    "run": one.run,
                    "folder": one.path.name,
                    "aggregate": one.scores.aggregate_json(),
                    "rows": one.scores.rows_json(),
                }
                for one in self.runs
            ],
            "comparisons": [
                {"first": first.words, "second": second.words, **found.to_json()}
                for first, second, found in self.comparisons()
            ],
        }

    @property
    def exit_code(self) -> int:
        """The worst of all conditions."""
        return max(one.scores.exit_code for one in self.runs)


def _values(scores: ModelScores) -> dict[str, float | None]:
    """Question -> its value, the mean over seeds."""
    main = scores.scorer.main.protocol.name
    samples = by_sample(scored.scores[main] for scored in scores.scored)
    return {name: value_of(own) for name, own in samples.items()}


def _clusters(scores: ModelScores) -> dict[str, str]:
    main = scores.scorer.main.protocol.name
    return {one.scores[main].sample.id: one.scores[main].sample.cluster for one in scores.scored}
