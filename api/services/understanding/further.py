"""What a run of a task found out beside its accuracy, made from its rows and answers alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.services.understanding.rows import FIRST_STAGE, ROTATIONS
from api.services.understanding.second_stage import CHECK, check_report
from gen_eval.records import Answer, Score
from gen_eval.stats import exact_mean
from understanding.data.choices import ChoiceSample
from understanding.scoring.floors import floors
from understanding.scoring.rotation import TurnedAnswer, rotation_report
from understanding.tasks.choices import SECOND_STAGE

if TYPE_CHECKING:
    from api.services.results import RunResults


def further_of(manifest: Mapping[str, Any], rows: Sequence[Score], answers: Iterable[Answer]) -> dict[str, Any]:
    """Rotation, second stage, options without effect, tokens and cost of a run that asked a model.

    Args:
        manifest: of the run.
        rows: under one protocol.
        answers: all of the run.
    """
    asked: Mapping[str, Any] = manifest["asked"]
    own, reader = _split([one for one in answers if one.model == manifest["model"]])
    found: dict[str, Any] = {
        "ignored_options": ignored_options(own),
        "asked_by": {
            "model": asked["model"]["name"],
            "condition": manifest.get("condition") or "",
            "form": asked["form"]["name"],
            "decoding": asked["decoding"]["by"],
            **_spent(own),
        },
    }
    if asked["rotated"]:
        found["rotation"] = rotation_report(_turned(rows))
    if asked["second_stage"] is not None:
        model = asked["second_stage"]["model"]["name"]
        found[SECOND_STAGE] = {
            "model": model,
            **_second_stage_share(rows),
            "check": check_report(reader),
            "ignored_options": ignored_options(reader),
            **_spent(reader),
        }
    return found


def further_of_run(results: RunResults, metric: str, protocol: str) -> dict[str, Any]:
    """:func:`further_of` for a run in its folder; nothing where replies that existed were scored."""
    if "asked" not in results.manifest:
        return {}
    rows = [row for row in results.rows if (row.metric, row.protocol) == (metric, protocol)]
    return further_of(results.manifest, rows, results.answers())


def floors_of(rows: Iterable[Score]) -> dict[str, Any]:
    """The floors of the questions behind ``rows``, as their rows describe them."""
    found: dict[str, ChoiceSample] = {}
    for row in rows:
        letters, truth = row.detail.get("letters"), row.detail.get("truth")
        if isinstance(letters, str) and isinstance(truth, str):
            found[row.sample] = ChoiceSample(id=row.sample, options=dict.fromkeys(letters, ""), answer=truth)
    return floors(found.values()).to_json() if found else {}


def ignored_options(answers: Iterable[Answer]) -> dict[str, int]:
    """Options that were asked for and had no effect -> in how many replies."""
    return dict(sorted(Counter(name for one in answers for name in one.shown.get("ignored", ())).items()))


def _split(answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """What the model said, and what the reader of the second stage said."""
    parts: tuple[list[Answer], list[Answer]] = ([], [])
    for one in answers:
        parts[one.condition == SECOND_STAGE or one.condition.startswith(CHECK)].append(one)
    return parts


def _spent(answers: Sequence[Answer]) -> dict[str, Any]:
    usage: Counter[str] = Counter()
    for answer in answers:
        usage.update(answer.usage)
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return {"answers": len(answers), "usage": dict(sorted(usage.items())), "cost": sum(costs) if costs else None}


def _turned(rows: Iterable[Score]) -> Iterable[TurnedAnswer]:
    for row in rows:
        for one in row.detail.get(ROTATIONS, ()):
            yield TurnedAnswer(question=row.sample, member=row.member, **one)


def _second_stage_share(rows: Sequence[Score]) -> dict[str, Any]:
    """How many replies went to the text model, how many it read, and the accuracy without it."""
    stages = [row.detail["stages"][SECOND_STAGE] for row in rows if SECOND_STAGE in row.detail.get("stages", {})]
    replies = sum(row.reason is None for row in rows)
    alone: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        value = row.values.get(FIRST_STAGE, row.value)
        if value is not None:
            alone[row.sample].append(value)
    return {
        "asked": len(stages),
        "read": sum(one.get("read") is not None for one in stages),
        "share": len(stages) / replies if replies else None,
        "accuracy_without": exact_mean([exact_mean(own) for own in alone.values()]) if alone else None,
    }
