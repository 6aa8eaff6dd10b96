"""What a run of a task would ask, before anything is asked."""

from __future__ import annotations

from typing import Any

from api.services.understanding.asking import TaskAsking
from api.services.understanding.checking import check_request
from api.services.understanding.request import TaskRequest
from api.services.understanding.rows import Scorer
from api.services.understanding.running import asking_of
from gen_eval.mllm import Usage, load_model
from gen_eval.mllm.asking import cost_of
from gen_eval.records import ItemError

_USUAL_TEXT = 150
_USUAL_REPLY = 16
"""Tokens of a question's text and of its reply as they usually are, for a forecast; what is kept free is more."""


def forecast(request: TaskRequest) -> dict[str, Any]:
    """Questions, those without their video, and about how many tokens they come to; one clip a condition is looked at.

    Raises:
        InputError: the request is bad.
    """
    entry = load_model(request.model, endpoint=request.endpoint, served_as=request.served_as)
    check_request(request, entry)
    scorer = Scorer.of(request.task, request.protocol, request.dialect, preset=request.preset)
    samples = scorer.main.samples(request.data, media=request.media).restricted(request.domains).limited(request.limit)
    present = [one for one in samples.samples if one.media is not None and one.media.present]
    conditions = []
    for condition in request.conditions():
        asking = asking_of(request, condition, entry, scorer, samples)
        asked = list(samples.samples) if asking.preset is None else present
        count = sum(len(group.questions) for group in asking.groups(asked))
        conditions.append({"condition": condition.words, "questions": count, **_tokens(asking, asked, count)})
    return {
        "dry_run": True,
        "task": request.task,
        "model": entry.title,
        "samples": len(samples.samples),
        "without_media": len(samples.samples) - len(present),
        "rejected": len(samples.rejected),
        "conditions": conditions,
    }


def _tokens(asking: TaskAsking, samples: list[Any], count: int) -> dict[str, Any]:
    """Prompt tokens of all questions as far as the first clip tells, and what they cost."""
    seen: int | None = 0
    if asking.preset is not None and samples:
        try:
            seen = asking.show(samples[0].media.path).facts.get("tokens")
        except ItemError as error:
            return {"tokens": None, "cost": None, "first_clip": str(error)}
    if seen is None:
        return {"tokens": None, "cost": None}
    usage = Usage(prompt_tokens=count * (seen + _USUAL_TEXT), completion_tokens=count * _USUAL_REPLY)
    return {"tokens": usage.prompt_tokens, "cost": cost_of(asking.entry, usage)}
