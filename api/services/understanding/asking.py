"""The questions of a task as groups for the asking service; a video that several share is decoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from api.services.asking import CLIP, Question, QuestionGroup
from api.services.shared_clips import SharedClips
from gen_eval.mllm import ChatRequest, ModelEntry, Options
from gen_eval.mllm.showing import Shown, show
from gen_eval.protocols.shown import ShownPreset
from understanding.data.choices import ChoiceSample
from understanding.task import Task

ROTATION = "rotation:"
"""Start of the condition under which a rotated question is answered; the number of places follows."""

TEXT_RESERVE = 1024
"""Tokens left free for the text of a question with its options besides the reply."""


@dataclass(frozen=True)
class TaskAsking:
    """How the questions of a task are put to one model under one condition.

    Attributes:
        task: bound to the protocol that chooses the form.
        entry: the model.
        preset: what is shown; ``None`` asks without the video.
        options: of decoding, without a seed.
        seeds: label of a run -> seed of sampling, ``None`` for none.
        rotated: samples that are also asked with their options in every other order.
        decoding: where the options come from, for the manifest.
    """

    task: Task[Any]
    entry: ModelEntry
    preset: ShownPreset | None
    options: Options
    seeds: Mapping[str, int | None]
    rotated: frozenset[str] = frozenset()
    decoding: Mapping[str, Any] = field(default_factory=dict)

    def show(self, path: Path) -> Shown:
        """What the model is shown of a clip.

        Raises:
            ItemError: nothing of it can be shown.
        """
        assert self.preset is not None
        return show(path, self.preset, self.entry, reserve=self.options.max_tokens + TEXT_RESERVE)

    def request(self, sample: Any, member: str, shown: Shown | None) -> ChatRequest:
        """One question."""
        part = None if shown is None else shown.part
        messages = self.task.build_messages(sample, part, family=self.entry.family)
        about = {"question": sample.id, "video": sample.cluster}
        return ChatRequest(messages, replace(self.options, seed=self.seeds[member]), about)

    def groups(self, samples: Sequence[Any], wanted: Collection[tuple[str, str]] | None = None) -> list[QuestionGroup]:
        """One group a sample and seed; those that share a clip follow one another, so that few are held.

        Args:
            samples: what may be asked.
            wanted: id and seed of what is to be asked; ``None`` for all.
        """
        places = [(sample, member) for sample in samples for member in self.seeds]
        places = [place for place in places if wanted is None or (place[0].id, place[1]) in wanted]
        places.sort(key=lambda place: (place[0].cluster, place[0].id, place[1]))
        if self.preset is None:
            return [self._group(sample, member, {}) for sample, member in places]
        clips = SharedClips(self.show, [sample.media.path for sample, _ in places])
        return [self._group(sample, member, {CLIP: partial(clips.get, sample.media.path)}) for sample, member in places]

    def _group(self, sample: Any, member: str, clips: Mapping[str, Callable[[], Shown]]) -> QuestionGroup:
        shows = CLIP if clips else ""
        questions = [Question("", partial(self.request, sample, member), shows=shows)]
        for places in self.rotations(sample):
            rotated = partial(self.request, sample.rotated(places), member)
            questions.append(Question("", rotated, condition=f"{ROTATION}{places}", shows=shows))
        return QuestionGroup(sample.id, member, clips, tuple(questions))

    def rotations(self, sample: Any) -> range:
        """By how many places the options of ``sample`` are rotated, besides not at all."""
        rotated = isinstance(sample, ChoiceSample) and sample.id in self.rotated
        return range(1, len(sample.letters)) if rotated else range(0)


def spread_subset(names: Sequence[str], count: int) -> frozenset[str]:
    """``count`` of ``names``, the same whatever their order: those with the least digests."""
    return frozenset(sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count])
