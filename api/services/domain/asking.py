"""The questions of a run as groups: what is shown with each, and how it is put."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from api.services.asking import CLIP, Question, QuestionGroup
from api.services.shared_clips import SharedClips
from gen_eval.mllm import ChatRequest
from gen_eval.mllm.showing import Shown
from gen_eval.protocols.shown import ShownPreset
from gen_eval.records import Group
from gen_eval.records.answer import MAIN
from judge.entry import JudgeEntry
from judge.questions import JudgeQuestion
from judge.service import show_video

_OTHER = "other"
_SHUFFLED = "shuffled"

Video: TypeAlias = tuple[str, str, Path]
"""Sample, member, file."""


@dataclass(frozen=True)
class Asking:
    """How questions are put to one judge.

    Attributes:
        judge: who is asked, and how.
        preset: what it is shown.
        conditions: reference points that are asked beside.
    """

    judge: JudgeEntry
    preset: ShownPreset
    conditions: tuple[str, ...] = ()

    def show(self, path: Path) -> Shown:
        """What the judge is shown of a clip.

        Raises:
            ItemError: nothing of it can be shown.
        """
        return show_video(path, self.judge, self.preset)

    def request(self, question: JudgeQuestion, clip: str | None, shown: Shown | None) -> ChatRequest:
        """One question about a clip, or about nothing."""
        return self.judge.request(question, None if shown is None else shown.part, video=clip)


def question_groups(
    groups: Sequence[Group],
    questions: Mapping[str, Sequence[JudgeQuestion]],
    asking: Asking,
    wanted: Collection[tuple[str, str]] | None = None,
) -> list[QuestionGroup]:
    """One group a video that is there; samples and members in the order of ``groups``.

    Args:
        groups: all of the run, so that which other video is shown does not depend on what is left to be asked.
        questions: of each sample.
        asking: how they are put.
        wanted: sample and member of the videos that are to be asked about; ``None`` for all.
    """
    clips = [(group.sample.id, member.member, member.path) for group in groups for member in group.members]
    present = [(sample, member, path) for sample, member, path in clips if path is not None]
    mine = [place for place in present if wanted is None or place[:2] in wanted]
    others = _other_videos(present) if _SHUFFLED in asking.conditions else {}
    shown = [path for _, _, path in mine]
    shown += [other[2] for sample, _, _ in mine if (other := others.get(sample)) is not None]
    shared = SharedClips(asking.show, shown)
    return [_group(place, others.get(place[0]), questions[place[0]], asking, shared) for place in mine]


def _group(
    place: Video, other: Video | None, questions: Sequence[JudgeQuestion], asking: Asking, shared: SharedClips
) -> QuestionGroup:
    sample, member, path = place
    shown: dict[str, Callable[[], Shown]] = {CLIP: partial(shared.get, path)}
    asked = [_asked(one, asking, f"{sample}__{member}") for one in questions]
    for condition in asking.conditions:
        if condition == _SHUFFLED and other is not None:
            shown[_OTHER] = partial(shared.get, other[2])
            name = f"{other[0]}__{other[1]}"
            asked += [replace(_asked(one, asking, name), condition=condition, shows=_OTHER) for one in questions]
        elif condition == "without_video":
            asked += [replace(_asked(one, asking, None), condition=condition, shows="") for one in questions]
    return QuestionGroup(sample, member, shown, tuple(asked))


def _asked(question: JudgeQuestion, asking: Asking, clip: str | None) -> Question:
    return Question(question.uid, partial(asking.request, question, clip), MAIN)


def _other_videos(present: Sequence[Video]) -> dict[str, Video]:
    """Sample -> the first video of the next sample (of the first one after the last); empty with one sample only."""
    firsts: dict[str, Video] = {}
    for one in present:
        firsts.setdefault(one[0], one)
    names = list(firsts)
    return dict(zip(names, [firsts[name] for name in [*names[1:], *names[:1]]], strict=True)) if len(names) > 1 else {}
