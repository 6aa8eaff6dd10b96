"""Sample logs of lmms-eval (``<date>_samples_<task>.jsonl``, written with ``--log_samples``).

An entry has ``doc_id`` (0-based row of the split), ``target`` (as text), ``filtered_resps``, and ``resps`` where it
differs from these; texts lie in one or two lists. ``resps`` is what the model said, ``filtered_resps`` what the task's
filter left of it, so the former is read when it is there. Older versions keep the ``doc`` and write one document with
``logs``. The folder is called by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused
from gen_eval.records import Rejection
from understanding.data.predictions import Prediction, Predictions


def is_log(record: Mapping[str, Any]) -> bool:
    """Whether ``record`` is an entry of such a log."""
    return "doc_id" in record and ("resps" in record or "filtered_resps" in record)


def of(records: Iterable[tuple[str, Mapping[str, Any]]], path: Path, rejected: list[Rejected]) -> Predictions:
    """The replies in the entries of the log ``path``; entries of another form go to ``rejected``."""
    items: list[Prediction] = []
    for where, record in records:
        try:
            items.append(_entry(where, record, path.parent.name or None))
        except Refused as refusal:
            rejected.append(refusal.at(where))
    return Predictions("lmms-eval", tuple(items), tuple(rejected))


def _entry(where: str, record: Mapping[str, Any], model: str | None) -> Prediction:
    place = record.get("doc_id")
    if isinstance(place, str) and place.isascii() and place.isdigit() and len(place) < 10:
        place = int(place)
    if not isinstance(place, int) or isinstance(place, bool) or place < 0:
        raise Refused(Rejection.MALFORMED_RECORD, f"doc_id must be the row of the sample, not {place!r:.60}")
    raw = record["resps"] if "resps" in record else record.get("filtered_resps")
    replies = list(_texts(raw))
    if len(replies) > 1:
        raise Refused(Rejection.MALFORMED_RECORD, f"{len(replies)} replies to one question; one is expected")
    target = record.get("target")
    said = {"answer": target} if isinstance(target, str) and len(target.strip()) == 1 else {}
    doc = record.get("doc")
    if isinstance(doc, Mapping) and isinstance(doc.get("question"), str):
        said["question"] = doc["question"]
    kept = {"filtered": record["filtered_resps"]} if "resps" in record and "filtered_resps" in record else {}
    return Prediction(where, None, replies[0] if replies else None, index=place, model=model, said=said, kept=kept)


def _texts(value: Any, depth: int = 0) -> Iterable[Any]:
    """The replies in lists of lists."""
    if not isinstance(value, list):
        yield value
    elif depth < 3:
        for one in value:
            yield from _texts(one, depth + 1)
