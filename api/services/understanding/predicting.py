"""`gen-eval understand score`: replies that exist already are scored; nobody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from api.services.understanding.documents import ModelScores, Scored, TaskDocument
from api.services.understanding.manifest import manifest_of
from api.services.understanding.rows import Scorer
from gen_eval.data import Rejected
from gen_eval.data.naming import is_unicode
from gen_eval.media import sha256_file
from gen_eval.records import Answer, InputError, Reason
from gen_eval.records.answer import NOT_TEXT
from gen_eval.records.run import RunFolder
from understanding.data.predictions import DEFAULT_MEMBER, Paired, Prediction, paired, read_predictions
from understanding.data.samples import Samples, TaskSample

_FILTERED = "content_filter"
_PRESET = {"name": "not known", "limit": None, "digest": None}


def score_predictions(
    name: str,
    data: Path,
    predictions: Path,
    out: Path | None = None,
    *,
    protocol: str = "corrected",
    dialect: str | None = None,
    media: Path | None = None,
    model: str | None = None,
    limit: int | None = None,
    store: str | None = None,
) -> TaskDocument:
    """Score the replies in a file.

    Args:
        name: of the task.
        data: the benchmark's folder or file, or JSON lines.
        predictions: replies as JSON lines, or as lmms-eval or VLMEvalKit write them.
        out: run folder that answers and rows are written to; with several models a folder each below it.
        protocol: under which the headline is read; the others are beside it.
        dialect: which public code the protocol ``reference`` reads as.
        media: folder that media paths are relative to.
        model: label in place of those in the file.
        limit: only the first samples.
        store: database URL for the rows.

    Raises:
        InputError: a file cannot be used, a name is not known, or ``out`` holds another run.
    """
    scorer = Scorer.of(name, protocol, dialect)
    whole = scorer.main.samples(data, media=media)
    samples = whole.limited(limit)
    found = read_predictions(predictions)
    label = model or predictions.name.split(".")[0]
    if not is_unicode(label):
        raise InputError(f"{label!a} is no UTF-8 text; give another name with --model")
    tables, rejected = paired(found, whole, model=model, fallback=label)
    models = tables or [Paired(label, {})]
    listed = (*samples.rejected, *rejected)
    source = {"path": predictions.name, "sha256": sha256_file(predictions), "format": found.format}
    document = TaskDocument(
        [_scores(replace(scorer, model=one.model, fixed={"data": "replies"}), samples, one, listed) for one in models]
    )
    if out is None:
        return document
    kept = [
        _keep(one, samples, out if len(models) == 1 else out / _folder(one.scorer.model), protocol, source, store)
        for one in document.models
    ]
    return TaskDocument(kept)


def _scores(scorer: Scorer, samples: Samples[Any], table: Paired[Any], listed: Sequence[Rejected]) -> ModelScores:
    scored = []
    for sample in samples.samples:
        # a sample that one seed answered is not without a reply; how uneven seeds are is in the coverage
        members = [member for member in sorted(table.replies) if sample.id in table.replies[member]]
        for member in members or [DEFAULT_MEMBER]:
            prediction = table.replies.get(member, {}).get(sample.id)
            answer = _answer(scorer.model, sample, member, prediction, samples)
            scored.append(Scored(scorer.scores(sample, member, answer), answer))
    return ModelScores(scorer, scored, listed)


def _answer(
    model: str, sample: TaskSample, member: str, one: Prediction | None, samples: Samples[Any]
) -> Answer | None:
    """The reply as an answer; ``None`` when there is none, and that is nobody's fault but the file's."""
    empty = Answer(model, sample.id, member, "")
    if one is None:
        absent = sample.media is not None and sample.media.path is not None and not sample.media.present
        if absent and samples.has_media:  # it could not be asked about, so no reply is missing
            message = f"the clip {sample.media.name} is not here, and no reply stands for it" if sample.media else ""
            return replace(empty, reason=Reason.MISSING_MEDIA, message=message)
        return None
    answer = replace(empty, finish_reason=one.finish_reason, raw={"where": one.where, **_plain(one.kept)})
    if one.error is not None:
        return replace(answer, reason=Reason.ENDPOINT_ERROR, message=one.error)
    if one.finish_reason == _FILTERED and not one.reply:
        return replace(answer, reason=Reason.CONTENT_FILTER, message="the endpoint declined to answer")
    if one.reply is None or isinstance(one.reply, str):
        return replace(answer, reply=one.reply)
    return replace(answer, raw={**answer.raw, NOT_TEXT: one.reply})


def _plain(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kept.items() if name != NOT_TEXT}


def _folder(model: str) -> str:
    """A folder's name for a label, which may hold anything."""
    kept = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in model).strip(".")
    return kept or "model"


def _keep(
    one: ModelScores,
    samples: Samples[Any],
    out: Path,
    protocol: str,
    source: Mapping[str, Any],
    store: str | None,
) -> ModelScores:
    members: dict[str, list[str]] = {}
    main = one.scorer.main.protocol.name
    for scored in one.scored:
        score = scored.scores[main]
        members.setdefault(score.sample.id, []).append(score.member)
    manifest = manifest_of(
        one.scorer,
        samples,
        members,
        one.rejected,
        protocol=protocol,
        preset=_PRESET,
        digests={},
        predictions=dict(source),
    )
    with RunFolder.create(out, manifest, store=store) as run, run.locked():
        run.write_answers(scored.answer for scored in one.scored if scored.answer is not None)
        run.write(row for scored in one.scored for row in one.scorer.rows(scored.scores, scored.answer))
    return replace(one, run=out)
