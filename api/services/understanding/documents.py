"""What a scored task amounts to: the aggregate and the rows, as commands print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from api.services.understanding.rows import Scorer, row_json
from gen_eval.data import Rejected
from gen_eval.records import Answer, Rejection, Status
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS
from understanding.scoring.aggregate import RESAMPLES, TaskAggregate
from understanding.scoring.outcome import SampleScore

_LISTED = frozenset({Rejection.NO_TRUTH, Rejection.UNKNOWN_SAMPLE})


@dataclass(frozen=True)
class Scored:
    """One sample and seed: its scores by protocol, and the answer that they come from."""

    scores: Mapping[str, SampleScore]
    answer: Answer | None = None


@dataclass(frozen=True)
class ModelScores:
    """Everything about one model.

    Attributes:
        scorer: the task.
        scored: one a sample and seed.
        rejected: lines that were listed and not used.
        further: what else was found out (rotation, second stage).
        run: folder of its run, when it was kept.
    """

    scorer: Scorer
    scored: Sequence[Scored]
    rejected: Sequence[Rejected] = ()
    further: Mapping[str, Any] = field(default_factory=dict)
    run: Path | None = None

    def aggregate(self, protocol: str | None = None, *, resamples: int = RESAMPLES) -> TaskAggregate:
        """The numbers under ``protocol`` (the one that was asked for by default); 0 resamples make no intervals."""
        bound = next(
            (one for one in self.scorer.tasks if one.protocol.name == protocol),
            self.scorer.main,
        )
        scores = [one.scores[bound.protocol.name] for one in self.scored]
        found: TaskAggregate = bound.aggregate(scores, resamples=resamples)
        return replace(found, coverage={**found.coverage, **self._listed()})

    def _listed(self) -> dict[str, Any]:
        unknown = [one for one in self.rejected if one.reason is Rejection.UNKNOWN_SAMPLE]
        truth = [one for one in self.rejected if one.reason is Rejection.NO_TRUTH]
        others = [one for one in self.rejected if one not in unknown and one not in truth]
        return {
            name: [_rejected_json(one) for one in found]
            for name, found in (("unknown_sample", unknown), ("no_truth", truth), ("rejected", others))
        }

    def aggregate_json(self) -> dict[str, Any]:
        """The aggregate under the protocol that was asked for, the others' main numbers beside it."""
        beside = {}
        for one in self.scorer.tasks[1:]:
            other = self.aggregate(one.protocol.name, resamples=0)
            beside[other.protocol] = {
                "dialect": other.dialect,
                "metrics": dict(other.metrics),
                "n": other.n,
                "unparsed": dict(other.unparsed),
                "flags": dict(other.flags),
                "reference": dict(other.reference),
            }
        own = self.aggregate()
        return {**own.to_json(), "model": self.scorer.model, "beside": beside, **self.further}

    def rows_json(self) -> list[dict[str, Any]]:
        """The rows, by sample and seed."""
        return [row_json(self.scorer, one.scores, one.answer) for one in self.scored]

    @property
    def exit_code(self) -> int:
        """0 done, 1 with failed or refused items or rejected lines."""
        main = self.scorer.main.protocol.name
        broken = any(one.scores[main].status in {Status.FAILED, Status.REFUSED} for one in self.scored)
        refused = any(one.reason not in _LISTED for one in self.rejected)
        return EXIT_FAILED_ITEMS if broken or refused else EXIT_DONE


@dataclass(frozen=True)
class TaskDocument:
    """What ``gen-eval understand score`` and ``run`` print."""

    models: Sequence[ModelScores]

    def to_json(self) -> dict[str, Any]:
        """``aggregate`` and ``rows``; with several models an aggregate each, by label."""
        rows = [row for one in self.models for row in one.rows_json()]
        if len(self.models) == 1:
            return {"aggregate": self.models[0].aggregate_json(), "rows": rows}
        return {"aggregates": {one.scorer.model: one.aggregate_json() for one in self.models}, "rows": rows}

    @property
    def exit_code(self) -> int:
        """The worst of all models."""
        return max(one.exit_code for one in self.models)


def _rejected_json(one: Rejected) -> dict[str, str]:
    return {"where": one.where, "reason": str(one.reason), "message": one.message}
