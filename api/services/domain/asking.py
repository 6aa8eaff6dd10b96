"""The questions of a run as groups: what is shown with each, and how it is put."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from api.services.asking import CLIP, Question, QuestionGroup
from gen_eval.mllm import ChatRequest
from gen_eval.mllm.showing import Shown, show
from gen_eval.protocols.shown import ShownPreset
from gen_eval.records import Group
from gen_eval.records.answer import MAIN
from judge.entry import JudgeEntry
from judge.questions import JudgeQuestion

_OTHER = "other"
_TEXT_TOKENS = 512
"""Left free for the text of a question besides the reply; the longest shipped question needs about a quarter."""


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
        reserve = self.judge.options.max_tokens + _TEXT_TOKENS
        return show(path, self.preset, self.judge.model, context=self.judge.context, reserve=reserve)

    def request(self, question: JudgeQuestion, clip: str | None, shown: Shown | None) -> ChatRequest:
        """One question about a clip, or about nothing."""
        return self.judge.request(question, None if shown is None else shown.part, video=clip)


def question_groups(
    groups: Sequence[Group], questions: Mapping[str, Sequence[JudgeQuestion]], asking: Asking
) -> list[QuestionGroup]:
    """One group a video that is there; samples and members in the order of ``groups``."""
    clips = [(group.sample.id, member.member, member.path) for group in groups for member in group.members]
    present = [(sample, member, path) for sample, member, path in clips if path is not None]
    found = []
    for sample, member, path in present:
        own = questions[sample]
        shown: dict[str, Callable[[], Shown]] = {CLIP: partial(asking.show, path)}
        asked = [_asked(one, asking, f"{sample}__{member}") for one in own]
        for condition in asking.conditions:
            other = _other_video(present, sample) if condition == "shuffled" else None
            if condition == "shuffled" and other is not None:
                shown[_OTHER] = partial(asking.show, other[2])
                name = f"{other[0]}__{other[1]}"
                asked += [replace(_asked(one, asking, name), condition=condition, shows=_OTHER) for one in own]
            elif condition == "without_video":
                asked += [replace(_asked(one, asking, None), condition=condition, shows="") for one in own]
        found.append(QuestionGroup(sample, member, shown, tuple(asked)))
    return found


def _asked(question: JudgeQuestion, asking: Asking, clip: str | None) -> Question:
    return Question(question.uid, partial(asking.request, question, clip), MAIN)


def _other_video(present: Sequence[tuple[str, str, Path]], sample: str) -> tuple[str, str, Path] | None:
    """The first video of the next sample (of the first one after the last); ``None`` when there is no other sample."""
    firsts: dict[str, tuple[str, str, Path]] = {}
    for one in present:
        firsts.setdefault(one[0], one)
    if len(firsts) < 2:
        return None
    names = list(firsts)
    return firsts[names[(names.index(sample) + 1) % len(names)]]
