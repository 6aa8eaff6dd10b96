"""What a run of answers says beside its mean, as tables for the terminal and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from api.services import wording
from api.services.aggregation import Part, asked_of, tables_of
from gen_eval.records import Reason, Score
from gen_eval.stats import Aggregate

if TYPE_CHECKING:
    from api.services.domain.further import SoftScores
    from api.services.results import RunResults
    from judge.domain import DomainScores

_SHOWN_ANSWERS = 200
_SHOWN_CHARACTERS = 300
_BESIDE = {
    "shuffled": "the same questions about another sample's video",
    "without_video": "the same questions without a video",
}


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


def answer_tables(results: RunResults, every: Sequence[RunResults] = ()) -> tuple[AnswerTable, ...]:
    """One table a protocol, the one that was asked for first; none for runs that hold no answers.

    Args:
        results: the run.
        every: all runs that are shown together; real source videos among them stand beside, as the ceiling.
    """
    return tuple(_tables(results, every))


def asked_table(results: RunResults) -> AnswerTable | None:
    """The table under the protocol that was asked for alone: the intervals of the others take time."""
    return next(_tables(results, ()), None)


def _tables(results: RunResults, every: Sequence[RunResults]) -> Iterator[AnswerTable]:
    track = results.manifest["track"]
    for metric, protocol in _asked_first(results) if track in {"understanding", "domain"} else ():
        if track == "domain":
            yield _domain_table(results, protocol, every)
        else:
            yield _group_table(results, metric, protocol)


def _asked_first(results: RunResults) -> list[tuple[str, str]]:
    """Metric and protocol of each table, the protocol that was asked for first."""
    asked = str(results.manifest["protocol"])
    return sorted(asked_of(results.manifest), key=lambda pair: (pair[1] != asked, pair))


def _group_table(results: RunResults, metric: str, protocol: str) -> AnswerTable:
    """A metric over all questions and over each of their groups; intervals draw whole videos."""
    from api.services.understanding.further import floors_of, further_of_run
    from api.services.understanding.remarks import floor_remark, further_remarks, further_warnings

    samples = {entry["id"]: dict(entry.get("groups", {})) for entry in results.manifest["samples"]}
    groups = sorted({(kind, name) for own in samples.values() for kind, name in own.items()})
    parts = {"all questions": list(samples)} | {
        f"{kind} {name}": [one for one, own in samples.items() if own.get(kind) == name] for kind, name in groups
    }
    rows = [row for row in results.rows if (row.metric, row.protocol) == (metric, protocol)]
    tables = tables_of(results.manifest, [Part(_of(rows, set(own)), own) for own in parts.values()])
    found = [table[metric][protocol] for table in tables]
    lines = [AnswerLine.of(name, one.main) for name, one in zip(parts, found, strict=True)]
    unread = ", ".join(f"{count} {name}" for name, count in found[0].flags.items()) or "none"
    without = ", ".join(f"{count} {name}" for name, count in found[0].reasons.items()) or "none"
    notes = [f"Flags: {unread}.", f"Questions without a value: {without}."]
    further = further_of_run(results, metric, protocol)
    told = [*floor_remark(floors_of(rows)), *further_remarks(further)]
    notes += [f"{one[0].upper()}{one[1:]}." for one in told]
    return AnswerTable(f"{metric}, {protocol}", tuple(lines), tuple(notes), tuple(further_warnings(further)))


def _of(rows: Sequence[Score], samples: set[str]) -> list[Score]:
    return [row for row in rows if row.sample in samples]


def _domain_table(results: RunResults, protocol: str, every: Sequence[RunResults]) -> AnswerTable:
    from api.services.domain.further import scores_under, soft_scores

    scores = scores_under(results, protocol)
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
    beside = results.aggregate["domain_score"][protocol].values
    soft = soft_scores(results, protocol)
    if soft is not None:
        lines += [AnswerLine.of(f"soft score, domain {name}", one) for name, one in soft.by_domain.items()]
    lines += [AnswerLine.of(words, beside[name]) for name, words in _BESIDE.items() if name in beside]
    if soft is not None:
        lines.append(AnswerLine.of("by the chance of the right answer (soft score)", soft.video_mean))
    beneath, why = _ceiling(results, protocol, every)
    lines += beneath
    notes, warnings = (*_notes(results, scores), *_soft_notes(soft), *why), tuple(_warnings(results, protocol))
    return AnswerTable(f"domain_score, {protocol}", tuple(lines), notes, warnings)


def _ceiling(
    results: RunResults, protocol: str, every: Sequence[RunResults]
) -> tuple[list[AnswerLine], tuple[str, ...]]:
    """The score of real source videos under the same judge, or why it is not beside."""
    from api.services.domain.ceiling import ceiling_of
    from api.services.domain.further import scores_under

    source, why = ceiling_of(results, every, protocol)
    if source is None:
        return [], (f"Source videos are not shown beside, as they were judged in another way: {why}.",) if why else ()
    found = scores_under(source, protocol)
    means = {"source videos (ceiling)": found.video_mean} | {
        f"source videos, domain {name}": one for name, one in found.by_domain.items()
    }
    note = "Source videos are real ones under the same judge and questions: their score is the ceiling, and not 100 %."
    return [AnswerLine.of(name, one) for name, one in means.items()], (note,)


def _soft_notes(soft: SoftScores | None) -> Iterator[str]:
    """How far the judge's probabilities can be believed."""
    if soft is None:
        return
    found = soft.confidence
    yield (
        f"Soft score from the log-probabilities of {wording.counted(found.n, 'answer')}; {found.absent:,} without. "
        f"Brier score {found.brier:.3f}, expected calibration error {found.error:.3f}."
    )
    curve = "; ".join(f"{one.chance:.2f} → {one.share:.2f} (n = {one.n:,})" for one in found.curve if one.n)
    yield f"Calibration curve, probability of yes → share of questions whose key is yes: {curve}."


def _notes(results: RunResults, scores: DomainScores) -> Iterator[str]:
    counts = scores.coverage
    yield f"Judge: {results.manifest['judge']['title']}."
    unread = ", ".join(f"{count} {name}" for name, count in counts.unparsed_by.items()) or "none"
    yield f"{wording.counted(counts.answers, 'answer')} counted. Unreadable, and counted as wrong: {unread}."
    if counts.refused or counts.missing:
        yield f"Declined: {counts.refused}, not there: {counts.missing}; both counted as wrong."
    asked = [row.detail for row in results.rows if row.protocol == results.manifest["protocol"]]
    ignored = sum((Counter(one.get("ignored", {})) for one in asked), Counter[str]())
    if ignored:
        named = ", ".join(f"{name} ({count})" for name, count in sorted(ignored.items()))
        yield f"Options that had no effect, with the number of answers: {named}."
    if counts.failed_by:
        failed = ", ".join(f"{count} {name}" for name, count in counts.failed_by.items())
        yield f"Not answered, and left out: {failed}."
    if len(counts.seed_counts) > 1:
        uneven = ", ".join(f"{count} with {seeds}" for seeds, count in counts.seed_counts.items())
        yield f"Samples have uneven numbers of seeds: {uneven}."
    if repeated := results.manifest.get("repeated_uids"):
        named = wording.listed([f"{uid} of {sample}" for sample, uid in repeated])
        yield f"Questions whose uid came before in their file, asked under another one: {named}."
    if counts.bare_beside_numbered:
        named = wording.listed(list(counts.bare_beside_numbered))
        yield f"A video without a seed in its name counts as one more seed, beside numbered ones: {named}."


def _warnings(results: RunResults, protocol: str) -> Iterator[str]:
    from api.services.domain.further import looks

    if results.manifest["judge"].get("simulated"):
        yield (
            "The judge is simulated: it is told what is true (the key of each question; of built-in scenes also what a "
            "flaw changes), and answers so with stated chances. No model looked."
        )
    seen = looks(results, protocol)
    verdict = "" if seen is None else seen["verdict"]
    if verdict == "does_not_look":
        yield "This judge does not look: it scores hardly better on the video than without it or on another one."
    if verdict == "not_clear":
        yield "Whether this judge looks is not clear: too few questions to tell a weak judge from a blind one."


def read_answers(results: RunResults) -> tuple[tuple[ReadAnswer, ...], int]:
    """Replies under the protocol that was asked for, unreadable and wrong ones first, and how many more there are."""
    protocol = str(results.manifest["protocol"])
    rows = [row for row in results.rows if row.protocol == protocol]
    found = [(row, one) for row in rows for one in _replies(row)]
    found.sort(key=lambda pair: (not pair[1]["flags"], bool(pair[1]["right"])))  # stable: else in key order
    shown = tuple(_read(row, one) for row, one in found[:_SHOWN_ANSWERS])
    return shown, max(0, len(found) - _SHOWN_ANSWERS)


def _replies(row: Score) -> Sequence[Mapping[str, Any]]:
    """The questions of a row: those of a judged video, or the one that an understanding row is about."""
    if "questions" in row.detail:
        return [one for one in row.detail["questions"] if one["reason"] != Reason.MISSING_VIDEO]
    if "parsed" not in row.detail:
        return ()
    right = None if row.value is None else row.value == 1
    about = {"uid": row.sample, "question": "", "truth": row.detail.get("truth"), "reply": row.detail.get("reply")}
    read = {"said": row.detail["parsed"], "rule": row.detail.get("rule"), "flags": [str(flag) for flag in row.flags]}
    return [{**about, **read, "right": right, "reason": row.reason}]


def _read(row: Score, one: Mapping[str, Any]) -> ReadAnswer:
    right = {True: "right", False: "wrong", None: str(one["reason"] or "not answered")}[one["right"]]
    return ReadAnswer(
        row.sample,
        row.member,
        f"{one['uid']}: {one['question']}" if one["question"] else str(one["uid"]),
        str(one["truth"] if one["truth"] is not None else wording.NO_VALUE),
        _short(one["reply"]),
        str(one["said"] or wording.NO_VALUE),
        str(one["rule"] or ""),
        ", ".join(one["flags"]),
        right,
    )


def _short(reply: str | None) -> str:
    if reply is None:
        return wording.NO_VALUE
    return reply if len(reply) <= _SHOWN_CHARACTERS else f"{reply[:_SHOWN_CHARACTERS]}… ({len(reply):,} characters)"
