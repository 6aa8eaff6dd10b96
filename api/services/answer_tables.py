"""What a run of answers says beside its mean, as tables for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from api.services import wording
from gen_eval.records import Score
from gen_eval.stats import Aggregate

if TYPE_CHECKING:
    from api.services.results import RunResults
    from judge.domain import DomainScores

_SHOWN_ANSWERS = 200
_SHOWN_CHARACTERS = 300


@dataclass(frozen=True)
class AnswerLine:
    """One mean in words."""

    name: str
    value: str
    interval: str = wording.NO_VALUE
    coverage: str = wording.NO_VALUE

    @classmethod
    def of(cls, name: str, one: Aggregate) -> AnswerLine:
        """The line of an aggregate."""
        return cls(name, wording.number(one.value, one.unit), wording.interval(one), f"{one.n:,} of {one.N:,}")


@dataclass(frozen=True)
class AnswerTable:
    """Means of one set of answers, taken in several ways.

    Attributes:
        notes: counts and facts, a sentence each.
        warnings: what forbids to trust the numbers.
    """

    caption: str
    lines: tuple[AnswerLine, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadAnswer:
    """One reply and what was read in it."""

    sample: str
    member: str
    question: str
    truth: str
    reply: str
    said: str
    rule: str
    flags: str
    right: str


def answer_tables(results: RunResults) -> tuple[AnswerTable, ...]:
    """One table a protocol, the one that was asked for first; none for runs that hold no answers."""
    if results.manifest["track"] != "domain":
        return ()
    from api.services.domain.further import further_scores

    asked = str(results.manifest["protocol"])
    scores = further_scores(results)
    ordered = sorted(scores, key=lambda name: (name != asked, name))
    return tuple(_domain_table(results, name, scores[name]) for name in ordered)


def _domain_table(results: RunResults, protocol: str, scores: DomainScores) -> AnswerTable:
    means = {
        "videos (headline)": scores.video_mean,
        "questions": scores.question_pooled,
        "domains": scores.domain_macro,
        "without misc": scores.without_misc,
        **{f"domain {name}": one for name, one in scores.by_domain.items()},
        **{f"topics {name}": one for name, one in scores.by_topic_group.items()},
        **{f"topic {name}": one for name, one in scores.by_topic.items()},
        **{f"seed {name}": one for name, one in scores.per_seed.items()},
    }
    lines = [AnswerLine.of(name, one) for name, one in means.items()]
    if scores.std_over_seeds is not None:
        lines.append(AnswerLine("standard deviation over seeds", wording.number(scores.std_over_seeds, "ratio")))
    for word, floor in (("yes", scores.always_yes), ("no", scores.always_no)):
        lines.append(AnswerLine(f"a judge that always says {word}", wording.number(floor.video_mean, "ratio")))
    warnings = tuple(_warnings(results, protocol))
    return AnswerTable(f"domain_score, {protocol}", tuple(lines), tuple(_notes(results, scores)), warnings)


def _notes(results: RunResults, scores: DomainScores) -> Iterator[str]:
    counts = scores.coverage
    yield f"Judge: {results.manifest['judge']['title']}."
    unread = ", ".join(f"{count} {name}" for name, count in counts.unparsed_by.items()) or "none"
    yield f"{wording.counted(counts.answers, 'answer')} counted. Unreadable, and counted as wrong: {unread}."
    if counts.failed_by:
        failed = ", ".join(f"{count} {name}" for name, count in counts.failed_by.items())
        yield f"Not answered, and left out: {failed}."
    if len(counts.seed_counts) > 1:
        uneven = ", ".join(f"{count} with {seeds}" for seeds, count in counts.seed_counts.items())
        yield f"Samples have uneven numbers of seeds: {uneven}."
    if counts.bare_beside_numbered:
        named = wording.listed(list(counts.bare_beside_numbered))
        yield f"A video without a seed in its name counts as one more seed, beside numbered ones: {named}."


def _warnings(results: RunResults, protocol: str) -> Iterator[str]:
    from api.services.domain.further import looks

    if results.manifest["judge"].get("simulated"):
        yield "The judge is simulated: it is told what is true, and answers so with stated chances. No model looked."
    seen = looks(results, protocol)
    if seen is not None and seen["verdict"] == "does_not_look":
        yield "This judge does not look: it scores hardly better on the video than without it or on another one."


def read_answers(results: RunResults) -> tuple[tuple[ReadAnswer, ...], int]:
    """Replies under the protocol that was asked for, unreadable and wrong ones first, and how many more there are."""
    protocol = str(results.manifest["protocol"])
    rows = [row for row in results.rows if row.protocol == protocol]
    found = [(row, one) for row in rows for one in row.detail.get("questions", ())]
    found.sort(key=lambda pair: (not pair[1]["flags"], bool(pair[1]["right"])))  # stable: else in key order
    shown = tuple(_read(row, one) for row, one in found[:_SHOWN_ANSWERS])
    return shown, max(0, len(found) - _SHOWN_ANSWERS)


def _read(row: Score, one: Mapping[str, Any]) -> ReadAnswer:
    right = {True: "right", False: "wrong", None: str(one["reason"] or "not answered")}[one["right"]]
    return ReadAnswer(
        row.sample,
        row.member,
        f"{one['uid']}: {one['question']}",
        str(one["truth"]),
        _short(one["reply"]),
        str(one["said"] or wording.NO_VALUE),
        str(one["rule"]),
        ", ".join(one["flags"]),
        right,
    )


def _short(reply: str | None) -> str:
    if reply is None:
        return wording.NO_VALUE
    return reply if len(reply) <= _SHOWN_CHARACTERS else f"{reply[:_SHOWN_CHARACTERS]}… ({len(reply):,} characters)"
