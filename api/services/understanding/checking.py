"""What cannot be asked of a model is said before anything is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from api.services.understanding.request import MOST_FRAMES, TaskRequest
from gen_eval.data.naming import is_unicode
from gen_eval.mllm import Capabilities, ModelEntry
from gen_eval.records import InputError


def check_request(request: TaskRequest, entry: ModelEntry) -> None:
    """Refuse what contradicts itself, or what the model's entry says that it cannot do.

    Raises:
        InputError: what, and what to do.
    """
    for problem in (*_problems(request), *_reasoning(request, entry)):
        raise InputError(problem)


def check_capabilities(request: TaskRequest, entry: ModelEntry, able: Capabilities) -> None:
    """Refuse conditions that would have no effect where the model is asked: they would be compared with themselves.

    Raises:
        InputError: what the model has in its place.
    """
    if request.thinking and "thinking" not in able.honours:
        raise InputError(
            f"the reasoning of {entry.name} cannot be switched on or off where it is asked ({entry.backend}): "
            f"{_why_no_switch(entry)}"
        )
    if request.efforts and "effort" not in able.honours:
        raise InputError(
            f"an effort of {entry.name} cannot be asked for where it is asked ({entry.backend}): that takes no such "
            "option. Leave --effort out, or ask it through its provider's own interface"
        )


def _why_no_switch(entry: ModelEntry) -> str:
    how = entry.thinking
    if how.mode == "effort":
        return f"{_has_efforts(entry)}; use --effort in place of --thinking"
    if how.template_key is None:
        return (
            "its entry names no variable of the chat template (thinking.template_key); leave --thinking out, or name it"
        )
    return f"that does not pass {how.template_key} on to the chat template; leave --thinking out"


def _has_efforts(entry: ModelEntry) -> str:
    known = ", ".join(entry.thinking.efforts)
    return f"it has the efforts {known}" if known else "it has efforts, which its entry does not list"


def _problems(request: TaskRequest) -> Iterator[str]:
    for name, option in (("frames", "frames"), ("thinking", "thinking"), ("efforts", "effort"), ("seeds", "seeds")):
        if twice := [one for one, count in Counter(getattr(request, name)).items() if count > 1]:
            yield f"--{option} names {twice[0]} more than once; name each of them once"
    if strange := [one for one in request.frames if not 0 <= one <= MOST_FRAMES]:
        yield f"--frames must be 0 to {MOST_FRAMES}, not {strange[0]}"
    if request.rotations < 0:
        yield f"--rotations must be a number of questions, 0 or more, not {request.rotations}"
    if request.label is not None and not is_unicode(request.label):
        yield f"{request.label!a} is no UTF-8 text; give another --label"


def _reasoning(request: TaskRequest, entry: ModelEntry) -> Iterator[str]:
    how = entry.thinking
    if request.thinking and how.mode == "none":
        yield f"{entry.name} does not reason first (its entry has thinking.mode none); leave --thinking out"
    if request.thinking and how.mode == "always":
        yield f"{entry.name} always reasons first (its entry has thinking.mode always); leave --thinking out"
    if not request.efforts:
        return
    if how.mode != "effort":
        instead = "use --thinking on,off" if how.mode == "switch" else "leave --effort out"
        yield f"{entry.name} has no efforts (its entry has thinking.mode {how.mode}); {instead}"
    if how.efforts and (unknown := [one for one in request.efforts if one not in how.efforts]):
        yield f"{entry.name} has no effort {unknown[0]!r}; it has {', '.join(how.efforts)}"
    if False in request.thinking:
        yield "--thinking off and --effort contradict each other; leave one of them out"
