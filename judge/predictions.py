"""Replies of a judge that exist already: JSON lines with ``id``, ``uid`` and ``reply``, or the public detailed results.

``id`` is the sample's id with the seed of the generation (``av_0001__0``); the bare id is the seed ``default``. The
public results list, for each question, the answers of all seeds in the order of ``seeds``; a uid that a file of
questions holds twice has the answers of its questions in turn for each seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_eval.data import Rejected, split_name
from gen_eval.data.records_file import (
    Refused,
    error_of,
    json_document,
    json_lines,
    objects_of,
    real_of,
    reply_of,
    required_text,
    seed_of,
)
from gen_eval.records import Answer, InputError, Reason, Rejection
from gen_eval.records.answer import NOT_TEXT
from judge.questions import JudgeQuestion

_BARE = "default"
_CALLED = "the file of replies"

Key = tuple[str, str, str]
"""Sample, seed, uid."""


@dataclass(frozen=True)
class StoredReplies:
    """What a file of replies holds.

    Attributes:
        answers: one for each sample, seed and uid; the system's label is left empty.
        model: the system that the lines name, empty when they name none.
        rejected: lines that were not used.
    """

    answers: Mapping[Key, Answer]
    model: str
    rejected: tuple[Rejected, ...]


def read_replies(
    path: Path, questions: Mapping[str, Sequence[JudgeQuestion]], *, model: str | None = None
) -> StoredReplies:
    """The replies in ``path`` about the videos of one system.

    Args:
        path: ``.jsonl``, ``.jsonl.gz``, or ``.json`` with a list of replies or of the public detailed results.
        questions: of every sample; replies to others are listed as ``unknown_sample``.
        model: which system, where the lines name several.

    Raises:
        InputError: the file cannot be read, no reply of it can be used, or it names several systems and not ``model``.
    """
    uids = {sample: {one.uid for one in own} for sample, own in questions.items()}
    found: dict[str, dict[Key, Answer]] = {}
    rejected: list[Rejected] = []
    for where, record in _records(path, questions, rejected):
        try:
            answer, named = _answer(record, uids)
            key = (answer.sample, answer.member, answer.question)
            own = found.setdefault(named, {})
            if key in own:
                raise Refused(Rejection.DUPLICATE_REPLY, f"a reply to {' / '.join(key)} came before; it is kept")
        except Refused as refusal:
            rejected.append(refusal.at(where))
        else:
            own[key] = answer
    if not any(found.values()):
        first = f": {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} holds no reply to a question of the data{first}")
    chosen = _chosen(path, found, model)
    return StoredReplies(found[chosen], chosen, tuple(rejected))


def _chosen(path: Path, found: Mapping[str, Mapping[Key, Answer]], model: str | None) -> str:
    """The name under which the replies of one system stand."""
    names = [name for name, own in found.items() if own]
    if model in names:
        return str(model)
    if len(names) == 1:
        return names[0]
    listed = ", ".join(name or "(none)" for name in names)
    raise InputError(f"{path} holds replies about several systems ({listed}); choose one with --model, a run for each")


def _records(
    path: Path, questions: Mapping[str, Sequence[JudgeQuestion]], rejected: list[Rejected]
) -> Iterator[tuple[str, Any]]:
    if path.suffix != ".json":
        yield from json_lines(path, rejected, called=_CALLED)
        return
    content = json_document(path, called=_CALLED)
    if isinstance(content, dict):  # the public file wraps the list
        content = next((value for value in content.values() if isinstance(value, list)), content)
    if not isinstance(content, list):
        raise InputError(f"{path} must hold a list of replies or of detailed results, not {type(content).__name__}")
    for where, record in objects_of(content, path, rejected):
        if "results" in record:
            yield from _of_public(where, record, questions, rejected)
        else:
            yield where, record


def _answer(record: Mapping[str, Any], uids: Mapping[str, set[str]]) -> tuple[Answer, str]:
    name, uid = required_text(record, "id"), required_text(record, "uid")
    place = split_name(name, uids, bare_member=_BARE)
    if place is None or uid not in uids[place[0]]:
        raise Refused(Rejection.UNKNOWN_SAMPLE, f"there is no question {uid!r} about {name!r}")
    seed = record.get("seed")
    given = place[1] if seed is None else seed_of(seed)
    if given != place[1] and place[1] != _BARE:
        raise Refused(Rejection.CONFLICTING_FIELDS, f"id names the seed {place[1]!r} and seed is {seed!r:.60}")
    reply, error = reply_of(record), error_of(record)
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
        message=error or "",
    )
    return answer, str(record.get("model") or "")


def _chances(value: Any) -> dict[str, float] | None:
    known = value if isinstance(value, dict) else {}
    found = {str(word): real_of(number) for word, number in known.items()}
    return {word: number for word, number in found.items() if number is not None} or None


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
    try:
        names = [video if seed == _BARE else f"{video}__{seed_of(seed)}" for seed in seeds]
    except Refused as refusal:
        rejected.append(refusal.at(where))
        return
    for result in record["results"]:
        answers = result.get("model_answers") if isinstance(result, dict) else None
        same = [one.uid for one in questions[video] if isinstance(result, dict) and one.listed_uid == result.get("uid")]
        if not isinstance(answers, list) or not same or len(answers) != len(seeds) * len(same):
            message = f"{video}: expected {len(seeds) * len(same)} answers to {len(same)} questions of that uid"
            rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, message))
            continue
        for place, answer in enumerate(answers):
            yield where, {"id": names[place // len(same)], "uid": same[place % len(same)], "reply": answer}


__all__ = ["StoredReplies", "read_replies"]
