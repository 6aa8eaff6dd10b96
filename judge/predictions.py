"""Replies of a judge that exist already: JSON lines with ``id``, ``uid`` and ``reply``, or the public detailed results.

``id`` is the sample's id with the seed of the generation (``av_0001__0``); the bare id is the seed ``default``. The
public results list, for each question, the answers of all seeds in the order of ``seeds``; a uid that a file of
questions holds twice has the answers of its questions in turn for each seed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_eval.data import Rejected, split_name
from gen_eval.data.naming import is_unicode
from gen_eval.records import Answer, InputError, Reason, Rejection, canonical_json
from judge.questions import JudgeQuestion

REPLY_FIELDS = ("reply", "prediction", "raw", "raw_pred", "pred")
"""Names under which the reply is read; two of them may not differ."""

NOT_TEXT = "not_text"
"""Where an answer keeps a reply that is no text."""

_BARE = "default"

Key = tuple[str, str, str]
"""Sample, seed, uid."""


@dataclass(frozen=True)
class StoredReplies:
    """What a file of replies holds.

    Attributes:
        answers: one for each sample, seed and uid; the system's label is left empty.
        models: the systems that the lines name.
        rejected: lines that were not used.
    """

    answers: Mapping[Key, Answer]
    models: tuple[str, ...]
    rejected: tuple[Rejected, ...]


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, reason: Rejection, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_replies(path: Path, questions: Mapping[str, Sequence[JudgeQuestion]]) -> StoredReplies:
    """The replies in ``path``.

    Args:
        path: ``.jsonl``, ``.jsonl.gz``, or ``.json`` with a list of replies or of the public detailed results.
        questions: of every sample; replies to others are listed as ``unknown_sample``.

    Raises:
        InputError: the file cannot be read, or no reply of it can be used.
    """
    uids = {sample: {one.uid for one in own} for sample, own in questions.items()}
    found: dict[Key, Answer] = {}
    rejected: list[Rejected] = []
    models: dict[str, None] = {}
    for where, record in _records(path, questions, rejected):
        try:
            answer, model = _answer(record, uids)
            key = (answer.sample, answer.member, answer.question)
            if key in found:
                raise _Refused(Rejection.DUPLICATE_REPLY, f"a reply to {' / '.join(key)} came before; it is kept")
        except _Refused as refusal:
            rejected.append(Rejected(where, refusal.reason, str(refusal)))
        else:
            found[key] = answer
            models.setdefault(model)
    if not found:
        first = f": {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} holds no reply to a question of the data{first}")
    return StoredReplies(found, tuple(name for name in models if name), tuple(rejected))


def _records(
    path: Path, questions: Mapping[str, Sequence[JudgeQuestion]], rejected: list[Rejected]
) -> Iterator[tuple[str, Any]]:
    if path.suffix != ".json":
        yield from _lines(path, rejected)
        return
    content = _loads(_text_of(path), path)
    if isinstance(content, dict):  # the public file wraps the list
        content = next((value for value in content.values() if isinstance(value, list)), content)
    if not isinstance(content, list):
        raise InputError(f"{path} must hold a list of replies or of detailed results, not {type(content).__name__}")
    for number, record in enumerate(content):
        where = f"{path.name} entry {number}"
        if isinstance(record, dict) and "results" in record:
            yield from _of_public(where, record, questions, rejected)
        else:
            yield where, record


def _lines(path: Path, rejected: list[Rejected]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(_text_of(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        try:
            yield where, json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            rejected.append(Rejected(where, Rejection.LINE_NOT_JSON, f"not JSON: {error}"))


def _text_of(path: Path) -> str:
    try:
        content = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
        return content.decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"the file of replies {path} cannot be read: {error}") from error


def _loads(text: str, path: Path) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _answer(record: Any, uids: Mapping[str, set[str]]) -> tuple[Answer, str]:
    if not isinstance(record, dict) or not is_unicode(record):
        raise _Refused(Rejection.MALFORMED_RECORD, "expected an object with id, uid and reply, all of it text")
    name, uid = (_field(record, field) for field in ("id", "uid"))
    place = split_name(name, uids, bare_member=_BARE)
    if place is None or uid not in uids[place[0]]:
        raise _Refused(Rejection.UNKNOWN_SAMPLE, f"there is no question {uid!r} about {name!r}")
    seed = record.get("seed")
    if seed is not None and str(seed) != place[1] and place[1] != _BARE:
        raise _Refused(Rejection.CONFLICTING_FIELDS, f"id names the seed {place[1]!r} and seed is {seed!r}")
    given = place[1] if seed is None else str(seed)
    reply, error = _reply(record), record.get("error")
    finish = record.get("finish_reason")
    answer = Answer(
        "",
        place[0],
        given,
        uid,
        reply=reply if isinstance(reply, str) and not error else None,
        finish_reason=finish if isinstance(finish, str) else None,
        chances=_chances(record.get("logprobs")),
        usage=_usage(record.get("usage")),
        attempts=0,
        raw={} if reply is None or isinstance(reply, str) else {NOT_TEXT: reply},
        reason=Reason.ENDPOINT_ERROR if error else None,
        message=str(error) if error else "",
    )
    return answer, str(record.get("model") or "")


def _field(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if value is None:
        raise _Refused(Rejection.MISSING_FIELD, f"the field {name} is missing")
    if not isinstance(value, str):
        raise _Refused(Rejection.MALFORMED_RECORD, f'{name} must be text, not {value!r}; write "{value}"')
    return value


def _reply(record: Mapping[str, Any]) -> Any:
    given = {name: record[name] for name in REPLY_FIELDS if name in record}
    if not given:
        raise _Refused(Rejection.MISSING_FIELD, "the field reply is missing; write null for no reply")
    if len({canonical_json(value) for value in given.values()}) > 1:
        raise _Refused(Rejection.CONFLICTING_FIELDS, f"{' and '.join(given)} differ; keep one of them")
    return next(iter(given.values()))


def _chances(value: Any) -> dict[str, float] | None:
    known = value if isinstance(value, dict) else {}
    found = {str(word): float(number) for word, number in known.items() if isinstance(number, int | float)}
    return found or None


def _usage(value: Any) -> dict[str, int]:
    known = value if isinstance(value, dict) else {}
    return {str(name): count for name, count in known.items() if isinstance(count, int) and not isinstance(count, bool)}


def _of_public(
    where: str, record: Mapping[str, Any], questions: Mapping[str, Sequence[JudgeQuestion]], rejected: list[Rejected]
) -> Iterator[tuple[str, Any]]:
    """The answers of one video of the public detailed results, as lines of our own."""
    video, seeds = record.get("video_id"), record.get("seeds")
    if not isinstance(video, str) or video not in questions:
        rejected.append(Rejected(where, Rejection.UNKNOWN_SAMPLE, f"no sample has the id {video!r}"))
        return
    if not isinstance(seeds, list) or not isinstance(record["results"], list):
        rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, "seeds and results must be lists"))
        return
    for result in record["results"]:
        answers = result.get("model_answers") if isinstance(result, dict) else None
        same = [one.uid for one in questions[video] if isinstance(result, dict) and one.listed_uid == result.get("uid")]
        if not isinstance(answers, list) or not same or len(answers) != len(seeds) * len(same):
            message = f"{video}: expected {len(seeds) * len(same)} answers to {len(same)} questions of that uid"
            rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, message))
            continue
        for place, answer in enumerate(answers):
            seed = seeds[place // len(same)]
            name = video if seed == _BARE else f"{video}__{seed}"
            yield where, {"id": name, "uid": same[place % len(same)], "reply": answer}


__all__ = ["NOT_TEXT", "REPLY_FIELDS", "StoredReplies", "read_replies"]
