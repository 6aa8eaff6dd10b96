"""How replies are decoded: as the form of asking has it, as the model's makers state, or as it was said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from api.services.understanding.request import Condition, TaskRequest
from gen_eval.mllm import ModelEntry, Options
from gen_eval.mllm.entry import PublishedAs
from gen_eval.records import InputError
from understanding.task import Task

FORM = "form"
MAKERS = "makers"
DECODINGS = (FORM, MAKERS)


@dataclass(frozen=True)
class Decoding:
    """How the replies of one run are decoded, and by whose word.

    Attributes:
        options: whole, without a seed.
        record: what was taken from where, for the manifest.
        preset: what is shown, where the way of asking that is repeated says so.
    """

    options: Options
    record: Mapping[str, Any]
    preset: str | None = None


def decoding_of(request: TaskRequest, condition: Condition, entry: ModelEntry, bound: Task[Any]) -> Decoding:
    """How the replies of ``entry`` are decoded under ``condition``.

    The form of asking says everything. With ``makers`` what the model's entry states takes its place (``defaults``, and
    ``published`` for the task's table: effort and what is shown); what it does not state stays. What was said
    outright (temperature, top_p, a condition's effort, a preset) comes before both.

    Raises:
        InputError: the options cannot be used, or several seeds would give the same reply.
    """
    for problem in _problems(request, entry, bound):
        raise InputError(problem)
    makers = request.decoding == MAKERS
    row = entry.published.get(bound.table, PublishedAs()) if makers else PublishedAs()
    effort = condition.effort if condition.effort is not None or condition.thinking is False else row.effort
    stated = dict(entry.defaults) if makers else {}
    said = {"temperature": request.temperature, "top_p": request.top_p}
    chosen = {name: value for name, value in said.items() if value is not None}
    options = bound.decoding(thinking=condition.thinking, effort=effort, may_reason=entry.thinking.mode != "none")
    options = replace(options, **{**stated, **chosen})
    _check_seeds(request, options, entry, bound)
    published = row.model_dump(exclude_none=True)
    record = {"by": request.decoding, "stated": stated, "said": chosen, "published": published}
    return Decoding(options, record, request.preset or row.preset)


def _problems(request: TaskRequest, entry: ModelEntry, bound: Task[Any]) -> Iterator[str]:
    if request.decoding not in DECODINGS:
        yield f"--decoding must be {' or '.join(DECODINGS)}, not {request.decoding!r}"
    heat, nucleus = request.temperature, request.top_p
    if heat is not None and not (math.isfinite(heat) and heat >= 0):
        yield f"--temperature must be 0 or more, not {heat}"
    if nucleus is not None and not 0 < nucleus <= 1:
        yield f"--top-p must be above 0 and at most 1, not {nucleus}"
    if request.decoding != MAKERS:
        return
    if not entry.defaults and bound.table not in entry.published:
        yield (
            f"the entry {entry.name} states no decoding of its makers (defaults, published); leave --decoding out, say "
            "--temperature and --top-p, or write an entry that states them"
        )
    if unknown := sorted(set(entry.defaults) - {one.name for one in fields(Options)}):
        yield f"the entry {entry.name} has defaults that are no options of decoding: {', '.join(unknown)}"


def _check_seeds(request: TaskRequest, options: Options, entry: ModelEntry, bound: Task[Any]) -> None:
    """Refuse to ask the same several times: a spread over seeds of 0 would look like a finding."""
    sampled_anyway = "temperature" in entry.parameters.get("without", ())
    if len(request.seeds) > 1 and options.temperature == 0 and not sampled_anyway:
        stated = f", or --decoding {MAKERS}" if entry.defaults.get("temperature") else ""
        raise InputError(
            f"--seeds names {len(request.seeds)} seeds, but replies are decoded at temperature 0 (form "
            f"{bound.form['name']}), where each of them gives the same reply; name one seed, or have replies sampled: "
            f"--temperature 0.7{stated}"
        )
