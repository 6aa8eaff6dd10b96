"""What has no value, by reason: in words, with the message that says how to get it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.services import wording
from api.services.results import RunResults
from gen_eval.records import Reason, Score, Status

_MESSAGES = 30
_VIDEOS = 12

_ORDER = (Status.FAILED, Status.REFUSED, Status.SKIPPED, Status.UNDEFINED)


@dataclass(frozen=True)
class Message:
    """One message, the metrics that it was given for, and the videos."""

    text: str
    metrics: str
    videos: str
    count: int


@dataclass(frozen=True)
class Problem:
    """All rows without a value for one reason.

    Attributes:
        rows: how many there are.
        more: messages that are not shown.
    """

    status: str
    reason: str
    words: str
    rows: int
    messages: tuple[Message, ...]
    more: int


def problems_of(run: RunResults) -> tuple[Problem, ...]:
    """Failed first, then refused, skipped and undefined; within these by reason."""
    found: dict[tuple[Status, Reason], list[Score]] = defaultdict(list)
    for row in run.rows:
        if row.reason is not None:
            found[row.status, row.reason].append(row)
    order = sorted(found, key=lambda pair: (_ORDER.index(pair[0]), str(pair[1])))
    protocols = {metric: set(entry["protocols"]) for metric, entry in run.manifest["metrics"].items()}
    return tuple(_problem(status, reason, found[status, reason], protocols) for status, reason in order)


def _problem(status: Status, reason: Reason, rows: Sequence[Score], protocols: Mapping[str, set[str]]) -> Problem:
    by_message: dict[str, list[Score]] = defaultdict(list)
    for row in rows:
        by_message[str(row.detail.get("message", ""))].append(row)
    messages = [_message(text, own, protocols) for text, own in by_message.items()]
    return Problem(
        str(status),
        str(reason),
        wording.REASON_WORDS[reason],
        len(rows),
        tuple(messages[:_MESSAGES]),
        max(0, len(messages) - _MESSAGES),
    )


def _message(text: str, rows: Sequence[Score], protocols: Mapping[str, set[str]]) -> Message:
    concerned: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        concerned[row.metric].add(row.protocol)
    metrics = [
        metric if own >= protocols.get(metric, own) else f"{metric} ({', '.join(sorted(own))})"
        for metric, own in sorted(concerned.items())
    ]
    videos = list(dict.fromkeys(f"{row.sample} / {row.member}" for row in rows))
    return Message(text, ", ".join(metrics), wording.listed(videos, _VIDEOS), len(videos))
