"""Replies that were given before: one a line (docs/understanding.md), or as other harnesses write them.

``read_predictions`` finds out which it is. What a line says is kept; lines that cannot be used are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import (
    Refused,
    error_of,
    json_document,
    json_lines,
    objects_of,
    reply_of,
    required_text,
    seed_of,
    text,
)
from gen_eval.records import InputError, Rejection
from understanding.data.samples import Samples, SampleT

DEFAULT_MEMBER = "0"
_TABLES = (".csv", ".tsv")
_KEPT = ("usage", "logprobs", "coordinates", "family", "sampled", "demonstrations", "run")


@dataclass(frozen=True)
class Prediction:
    """One reply as it was given.

    Attributes:
        where: file and line.
        id: of the sample; ``None`` where only its place is known.
        index: place of the sample in the data, as other harnesses name it.
        reply: raw, normally text; ``None`` for none.
        model: label; ``None`` when the file does not say.
        member: seed, as text.
        finish_reason: how the reply ended.
        error: why there is no reply, in the words of what asked.
        said: what the file says of the sample itself, to be compared with it (``answer``, ``question``).
        options: texts of the options by letter, as the file has them; they only tell what ``index`` counts from.
        kept: further fields of the line.
    """

    where: str
    id: str | None
    reply: Any
    index: int | None = None
    model: str | None = None
    member: str = DEFAULT_MEMBER
    finish_reason: str | None = None
    error: str | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Predictions:
    """All replies of a file.

    Attributes:
        format: ``replies``, ``lmms-eval`` or ``vlmevalkit``.
        items: in the order of the file.
        rejected: lines that could not be used.
        counts_from: number of the first row, for ``index``; ``None`` where the format does not fix it.
    """

    format: str
    items: tuple[Prediction, ...]
    rejected: tuple[Rejected, ...] = ()
    counts_from: int | None = 0


@dataclass(frozen=True)
class Paired(Generic[SampleT]):
    """The replies of one model, by seed and sample.

    Attributes:
        model: label.
        replies: member -> id of the sample -> reply.
    """

    model: str
    replies: Mapping[str, Mapping[str, Prediction]]


def read_predictions(path: Path, *, ids: Iterable[str] = ("id",)) -> Predictions:
    """The replies in ``path``: ``.jsonl`` (``.gz``), ``.json``, ``.csv`` or ``.tsv``.

    Args:
        path: the file.
        ids: fields that hold the sample's id; the first present counts.

    Raises:
        InputError: the file cannot be read, or holds no reply that can be used.
    """
    from understanding.data import lmms_logs, vlmevalkit

    if path.suffix == ".xlsx":
        raise InputError(f"{path} is a spreadsheet; save its table as .tsv or .csv (VLMEvalKit: PRED_FORMAT=tsv)")
    if path.suffix in _TABLES:
        found = vlmevalkit.read(path)
    elif path.suffix == ".json":
        found = _document(path, tuple(ids))
    else:
        rejected: list[Rejected] = []
        records = list(json_lines(path, rejected))
        logged = any(lmms_logs.is_log(record) for _, record in records)
        found = lmms_logs.of(records, path, rejected) if logged else _replies(records, tuple(ids), rejected)
    if not found.items:
        first = f": {found.rejected[0].where}: {found.rejected[0].message}" if found.rejected else ""
        raise InputError(f"{path} holds no reply that can be used{first}")
    return found


def _document(path: Path, ids: tuple[str, ...]) -> Predictions:
    from understanding.data import lmms_logs

    content = json_document(path)
    records = content.get("logs") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise InputError(f"{path} must be a list of objects with id and reply, or a sample log with logs: [..]")
    rejected: list[Rejected] = []
    named = objects_of(records, path, rejected)
    if any(lmms_logs.is_log(record) for _, record in named):
        return lmms_logs.of(named, path, rejected)
    return _replies(named, ids, rejected)


def _replies(
    records: Iterable[tuple[str, Mapping[str, Any]]], ids: tuple[str, ...], rejected: list[Rejected]
) -> Predictions:
    items: list[Prediction] = []
    for where, record in records:
        try:
            items.append(_reply(where, record, ids))
        except Refused as refusal:
            rejected.append(refusal.at(where))
    return Predictions("replies", tuple(items), tuple(rejected))


def _reply(where: str, record: Mapping[str, Any], ids: tuple[str, ...]) -> Prediction:
    name = next((name for name in ids if name in record), ids[0])
    return Prediction(
        where=where,
        id=required_text(record, name),
        reply=reply_of(record),
        model=text(record, "model"),
        member=_member(record.get("seed")),
        finish_reason=text(record, "finish_reason"),
        error=error_of(record),
        kept={field_name: record[field_name] for field_name in _KEPT if record.get(field_name) is not None},
    )


def _member(seed: Any) -> str:
    return DEFAULT_MEMBER if seed is None else seed_of(seed)


def paired(
    found: Predictions, samples: Samples[SampleT], *, model: str | None, fallback: str
) -> tuple[list[Paired[SampleT]], list[Rejected]]:
    """Replies by model, seed and sample; what cannot be placed is listed.

    Args:
        found: what was read.
        samples: the data.
        model: label that takes the place of those in the file.
        fallback: label of lines that name no model.

    Returns:
        One entry a model, sorted by label, and the rejected lines (those of ``found`` first).

    Raises:
        InputError: it cannot be told what the places of a table count from.
    """
    from understanding.data.placing import placed

    found = placed(found, samples)
    rejected = list(found.rejected)
    tables: dict[str, dict[str, dict[str, Prediction]]] = {}
    for one in found.items:
        try:
            sample = _sample_of(one, samples)
            own = tables.setdefault(model or one.model or fallback, {}).setdefault(one.member, {})
            if sample.id in own:
                first = own[sample.id].where
                raise Refused(
                    Rejection.DUPLICATE_REPLY, f"{sample.id!r} was answered before ({first}); the first is kept"
                )
            own[sample.id] = one
        except Refused as refusal:
            rejected.append(refusal.at(one.where))
    return [Paired(name, tables[name]) for name in sorted(tables)], rejected


def _sample_of(one: Prediction, samples: Samples[SampleT]) -> SampleT:
    sample = samples.by_id.get(one.id) if one.id is not None else None
    if sample is None and one.index is not None:
        sample = samples.by_index.get(one.index)
    if sample is None:
        named = one.id if one.id is not None else f"number {one.index}"
        raise Refused(Rejection.UNKNOWN_SAMPLE, f"no sample is called {named!r}")
    for name, said in one.said.items():
        known = {"answer": sample.truth, **sample.prompt}.get(name)
        if isinstance(known, str) and known.split() != said.split():
            raise Refused(
                Rejection.CONFLICTING_FIELDS,
                f"the file says that {name} of {sample.id!r} is {said!r:.80}, the data say {known!r:.80}: other data?",
            )
    return sample
