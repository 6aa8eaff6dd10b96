"""What a run of the judge would ask, before anything is asked."""

from __future__ import annotations

from typing import Any

from api.services.domain.asking import question_groups
from api.services.domain.preparation import prepare
from api.services.domain.request import DomainRequest
from api.services.domain.scoring import asking_of
from gen_eval.mllm import Usage
from gen_eval.mllm.asking import cost_of
from gen_eval.records import ItemError
from judge.entry import load_judge

_USUAL_TEXT = 120
_USUAL_REPLY = 4
"""Tokens of a question's text and of its reply as they usually are, for a forecast; what is kept free is more."""


def forecast(request: DomainRequest) -> dict[str, Any]:
    """Samples, videos, questions, and about how many tokens they come to; one clip is looked at, nobody is asked.

    Raises:
        InputError: the request is bad.
    """
    prepared = prepare(request)
    members = [member for group in prepared.groups for member in group.members]
    document: dict[str, Any] = {
        "dry_run": True,
        "samples": len(prepared.groups),
        "videos": sum(member.path is not None for member in members),
        "missing_videos": sum(member.problem is not None for member in members),
        "unknown_videos": list(prepared.matched.unknown),
        "not_asked_videos": list(prepared.matched.not_asked),
        "rejected": len(prepared.rejected),
    }
    if request.judge is None:
        return document
    judge = load_judge(request.judge, endpoint=request.endpoint, served_as=request.served_as)
    asking = asking_of(request, judge)
    groups = question_groups(prepared.groups, prepared.questions, asking)
    count = sum(len(group.questions) for group in groups)
    document |= {"judge": judge.title, "questions": count, "tokens": None, "cost": None}
    for group in groups[:1]:
        try:
            tokens = next(iter(group.clips.values()))().facts.get("tokens")
        except ItemError as error:
            document["first_clip"] = str(error)
            break
        if tokens is not None:
            usage = Usage(prompt_tokens=count * (tokens + _USUAL_TEXT), completion_tokens=count * _USUAL_REPLY)
            document |= {"tokens": usage.prompt_tokens, "cost": cost_of(judge.model, usage)}
    return document
