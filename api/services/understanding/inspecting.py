"""`gen-eval understand list` and `parse`: what there is, and which rule read what in a reply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gen_eval.data.records_file import JSON_LINES, Refused, json_document, json_lines, object_of
from gen_eval.protocols import protocol_names
from gen_eval.records import InputError
from understanding.task import REPLIES, Task, task, task_names

_LONGEST_REPLY = 16 << 20


def task_catalogue() -> list[dict[str, Any]]:
    """Every task: its metrics, protocols and dialects, the form of asking and what is shown under each."""
    return [_entry(name) for name in task_names()]


def _entry(name: str) -> dict[str, Any]:
    bound = task(name)
    protocols = {one: task(name, one) for one in protocol_names(bound.metric)}
    forms = {one: dict(found.form) for one, found in protocols.items()}
    forms |= {f"reference, {one}": dict(task(name, "reference", one).form) for one in bound.dialects}
    return {
        "name": name,
        "title": bound.title,
        "metrics": list(bound.metrics),
        "protocols": {one: found.protocol.digest for one, found in protocols.items()},
        "dialects": list(bound.dialects),
        "forms": forms,
    }


def parse_reply(name: str, reply: str, sample: Path | None = None, *, sample_id: str | None = None) -> dict[str, Any]:
    """How every reading of the task ``name`` reads ``reply``.

    Args:
        name: of the task.
        reply: raw text.
        sample: file with the question (one JSON object, or JSON lines); options A to D without texts by default.
        sample_id: which line of that file; the first by default.

    Returns:
        ``{"task", "id", "readings": [{"protocol", "dialect", "value", "failure", "rule", "flags", "detail"}]}``.

    Raises:
        InputError: the task is not known or the sample cannot be used.
    """
    record = {} if sample is None else _record(sample, sample_id)
    bound = task(name)
    found = bound.sample(record)
    readings = [_reading(bound, reply, found)]
    for dialect in bound.dialects or (None,):
        readings.append(_reading(task(name, "reference", dialect), reply, found))
    return {"task": name, "id": found.id, "readings": readings}


def _reading(bound: Task[Any], reply: str, sample: Any) -> dict[str, Any]:
    found = bound.parse(reply, sample)
    return {
        "protocol": bound.protocol.name,
        "dialect": None if bound.reading == REPLIES else bound.reading,
        "value": found.value,
        "failure": None if found.failure is None else str(found.failure),
        "rule": found.rule,
        "flags": [str(flag) for flag in found.flags],
        "detail": dict(found.detail),
    }


def _record(path: Path, sample_id: str | None) -> Mapping[str, Any]:
    try:
        if not path.name.endswith(JSON_LINES):
            return object_of(json_document(path, called="the sample"))
        records = [record for _, record in json_lines(path, [], called="the sample")]
    except Refused as error:
        raise InputError(f"the sample {path} cannot be read: {error}") from error
    chosen = [one for one in records if sample_id is None or one.get("id") == sample_id]
    if not chosen:
        raise InputError(f"{path} holds no sample {sample_id or ''}".rstrip())
    return chosen[0]


def reply_text(given: str) -> str:
    """The reply itself, or the content of the file of that name.

    Raises:
        InputError: the file is no text, or too long to be a reply.
    """
    try:
        path = Path(given)
        is_file = len(given) < 4096 and "\0" not in given and path.is_file()
    except OSError:
        is_file = False
    if not is_file:
        return given
    try:
        if path.stat().st_size > _LONGEST_REPLY:
            raise InputError(f"{path} has {path.stat().st_size} bytes; a reply of at most {_LONGEST_REPLY} is read")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the reply {path} cannot be read: {error}") from error
