"""The second stage: a text model reads replies that the shared reader could not, and is checked before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from api.services.asking import Question, QuestionGroup, ask_groups_async
from api.services.manifest_entries import Progress
from api.services.understanding.asking import spread_subset
from api.services.understanding.rows import Scorer, by_condition
from gen_eval.mllm import ChatRequest
from gen_eval.mllm.asking import Asker
from gen_eval.mllm.showing import Shown
from gen_eval.records import Answer, Score
from gen_eval.records.answer import MAIN
from gen_eval.records.run import RunFolder
from understanding.data.choices import ChoiceSample
from understanding.tasks.choices import NONE, SECOND_STAGE, ChoiceTask, second_stage_word

CHECK = "second_stage_check:"
"""Start of the condition under which the reader is shown a reply that chooses nothing; the probe's name follows."""

_CHECKED = 3
"""Questions that the reader is checked with, each with every probe."""


@dataclass(frozen=True)
class SecondReader:
    """A text model, and how it is asked; its identity is known.

    Attributes:
        asker: asks it.
        task: that reads as the shared reader does.
    """

    asker: Asker
    task: ChoiceTask

    async def record(self) -> dict[str, Any]:
        """What a manifest says of it."""
        identity = (await self.asker.identity()).to_json()
        form = self.task.second_stage
        thinking, may_reason = self._reasoning
        options = form.decoding(thinking=thinking, may_reason=may_reason)
        model = self.asker.entry.to_json()
        return {"model": model, "identity": identity, "form": form.digest, "options": options.asked}

    @property
    def _reasoning(self) -> tuple[bool | None, bool]:
        """Reasoning is off; where it cannot be switched (``None``), whether there must be room for it."""
        how = self.asker.entry.thinking
        switched = how.mode in {"switch", "effort"} and "thinking" in self.asker.client.capabilities.honours
        return (False if switched else None), how.mode != "none"

    def _request(self, sample: ChoiceSample, reply: str, _shown: Shown | None = None) -> ChatRequest:
        thinking, may_reason = self._reasoning
        messages, options = self.task.second_stage_request(sample, reply, thinking=thinking, may_reason=may_reason)
        return ChatRequest(messages, options, {"question": sample.id})

    async def read(
        self, run: RunFolder, model: str, scorer: Scorer, samples: Mapping[str, ChoiceSample], progress: Progress
    ) -> None:
        """Have the replies read that the shared reader could not, and write those rows anew.

        The reader is shown replies that choose nothing first; what it makes of them is kept among the answers.
        """
        answers = by_condition([one for one in run.answers() if one.model == model])
        failed = self._failed(answers, samples)
        if not failed:
            return
        await ask_groups_async(run, model, self._probes(samples), self.asker, lambda *_: (), progress=progress)

        def finish(group: QuestionGroup, found: Sequence[Answer]) -> list[Score]:
            own = {**answers[group.sample, group.member], SECOND_STAGE: found[0]}
            return scorer.rows_of(samples[group.sample], group.member, own)

        groups = [self._group(sample, member, {SECOND_STAGE: reply}) for sample, member, reply in failed]
        await ask_groups_async(run, model, groups, self.asker, finish, progress=progress)

    def _failed(
        self, answers: Mapping[tuple[str, str], Mapping[str, Answer]], samples: Mapping[str, ChoiceSample]
    ) -> list[tuple[ChoiceSample, str, str]]:
        """Sample, seed and reply of what the shared reader could not read."""
        found = []
        for (name, member), own in answers.items():
            answer = own.get(MAIN)
            if answer is None or answer.reply is None or answer.reason is not None or name not in samples:
                continue
            if self.task.parse(answer.reply, samples[name]).failure is not None:
                found.append((samples[name], member, answer.reply))
        return found

    def _probes(self, samples: Mapping[str, ChoiceSample]) -> list[QuestionGroup]:
        shown = {f"{CHECK}{name}": reply for name, reply in self.task.second_stage.probes.items()}
        return [self._group(samples[name], "0", shown) for name in sorted(spread_subset(list(samples), _CHECKED))]

    def _group(self, sample: ChoiceSample, member: str, replies: Mapping[str, str]) -> QuestionGroup:
        questions = [
            Question("", partial(self._request, sample, reply), condition=condition, shows="")
            for condition, reply in replies.items()
        ]
        return QuestionGroup(sample.id, member, {}, tuple(questions))


def check_report(answers: Iterable[Answer]) -> dict[str, int]:
    """What the reader made of replies that choose nothing.

    Returns:
        ``asked``; of these ``none`` (right), ``answered`` (it named an option, so it answers the question itself),
        ``unclear`` (something else) and ``failed`` (no reply).
    """
    words = [
        None if one.reason is not None else second_stage_word(one.reply)
        for one in answers
        if one.condition.startswith(CHECK)
    ]
    none = sum(word == NONE for word in words)
    answered = sum(word is not None and len(word) == 1 and word.isalpha() for word in words)
    failed = words.count(None)
    unclear = len(words) - none - answered - failed
    return {"asked": len(words), "none": none, "answered": answered, "unclear": unclear, "failed": failed}
