"""What is asked for: generated videos, the questions about them, and who judges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from api.services.request import label_of
from gen_eval.data.naming import is_unicode
from gen_eval.records import InputError

CONDITIONS = ("without_video", "shuffled")
"""Reference points that need asking: the question alone, and the question about another sample's video."""


@dataclass(frozen=True)
class DomainRequest:
    """What is to be judged, by whom, and how.

    Attributes:
        videos: folder of the generated videos; may be absent when stored replies are scored.
        data: benchmark folder, prompt file, sample file or file of judge questions.
        questions: folder ``vqa`` or file of judge questions, when they do not lie in ``data``.
        media: folder that paths of a sample file are relative to.
        layout: take ``data`` as this layout.
        model: label; :func:`label_of` the folder by default.
        judge: name of a judge, of a model, or the path of a ``.yaml``; ``None`` with ``predictions``.
        endpoint: address of the server, in place of the entry's own.
        served_as: the model's name on that server.
        predictions: replies that exist already (JSON lines with id, uid and reply).
        prompt: name of the prompt, in place of the judge's own.
        preset: what the judge is shown, in place of the judge's own.
        protocol: the protocol that was asked for.
        conditions: reference points that are asked beside, of :data:`CONDITIONS`.
        logprobs: alternatives of each token that are asked for with their log-probabilities.
        seeds: members that every sample is expected to have; by default those of :data:`judge.domain.USUAL_SEEDS` that
            are there.
        domains: only samples of these.
        limit: only the first samples.
        device: where a judge in this process runs.
        dtype: its number format; ``None`` for the checkpoint's own.
    """

    videos: Path | None
    data: Path
    questions: Path | None = None
    media: Path | None = None
    layout: str | None = None
    model: str | None = None
    judge: str | None = None
    endpoint: str | None = None
    served_as: str | None = None
    predictions: Path | None = None
    prompt: str | None = None
    preset: str | None = None
    protocol: str = "corrected"
    conditions: tuple[str, ...] = ()
    logprobs: int | None = None
    seeds: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    limit: int | None = None
    device: str = "auto"
    dtype: str | None = None

    @property
    def label(self) -> str:
        """Label of the system that is judged."""
        if self.model is not None:
            return self.model
        if self.videos is not None:
            return label_of(self.videos)
        assert self.predictions is not None
        return self.predictions.name.split(".")[0]


def check_request(request: DomainRequest) -> None:
    """Refuse what contradicts itself or could not be written down.

    Raises:
        InputError: what, and what to do.
    """
    if (request.judge is None) == (request.predictions is None):
        raise InputError(
            "give --judge NAME to ask a judge, or --predictions FILE to score replies that exist; not both"
        )
    if request.videos is None and request.predictions is None:
        raise InputError("give --videos DIR: a judge must be shown something")
    if request.predictions is not None and request.conditions:
        raise InputError("reference points are asked of a judge; leave them out with --predictions")
    for name in ("seeds", "domains"):
        given = getattr(request, name)
        if given == ():
            raise InputError(f"--{name} names nothing; name at least one, or leave the option out")
        if twice := [one for one, count in Counter(given or ()).items() if count > 1]:
            raise InputError(f"--{name} names {twice[0]} more than once; name each of them once")
    texts = [request.label, *(request.seeds or ()), *(request.domains or ())]
    if strange := [text for text in texts if not is_unicode(text)]:
        raise InputError(f"{strange[0]!a} is no UTF-8 text; give another name (--model labels the videos)")
