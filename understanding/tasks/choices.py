"""Tasks whose answer is the letter of an option; the score is accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from gen_eval.mllm import Frames, Message, Options, VideoFile
from gen_eval.records import Flag, Reason
from gen_eval.replies import Reading, read_choice, read_reference, unwrap
from gen_eval.stats import exact_mean
from understanding.data.choices import ChoiceSample
from understanding.messages.choices import choice_messages, second_stage_messages
from understanding.messages.forms import PromptForm, load_form
from understanding.scoring.aggregate import (
    RESAMPLES,
    BySample,
    GroupCount,
    TaskAggregate,
    by_sample,
    count,
    coverage,
    failures,
    flag_counts,
    grouped,
)
from understanding.scoring.floors import floors
from understanding.scoring.outcome import SampleScore
from understanding.scoring.seeds import seed_spread
from understanding.task import REPLIES, Task, ordered, reading_of

DRAWS_WRONG = "draws_wrong"
"""Further number of a row: the value with a letter that was drawn at random counted as wrong."""

SECOND_STAGE = "second_stage"
NONE = "NONE"
_AROUND_LETTER = " .:()[]*_`'\"\t\r\n"


class ChoiceTask(Task[ChoiceSample]):
    """A multiple-choice task.

    Attributes:
        ways: ways of grouping that are reported.
        letters: options of a sample that does not name its own (when only replies are scored).
    """

    metric: ClassVar[str] = "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    ways: ClassVar[tuple[str, ...]] = ("category",)
    letters: ClassVar[str] = "ABCD"

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def _form(self) -> PromptForm:
        return load_form(self.prompts, self.protocol.name if self.reading == REPLIES else self.reading)

    @property
    def form(self) -> Mapping[str, str]:
        """Name and digest of the form of asking, and the preset that goes with it."""
        form = self._form
        return {"name": form.name, "digest": form.digest, "preset": self.preset or form.preset or ""}

    def build_messages(
        self,
        sample: ChoiceSample | Mapping[str, Any],
        part: Frames | VideoFile | None,
        *,
        family: str = "generic",
    ) -> tuple[Message, ...]:
        """The turns that put the question to a model; with its options rotated when the sample is.

        Raises:
            ValueError: the sample has no question or no options.
        """
        return choice_messages(self.of(sample), part, self._form, family=family)

    def decoding(
        self,
        *,
        thinking: bool | None = None,
        effort: str | None = None,
        seed: int | None = None,
        may_reason: bool = False,
    ) -> Options:
        """How replies are decoded under this form of asking."""
        return self._form.decoding(thinking=thinking, effort=effort, seed=seed, may_reason=may_reason)

    # --- the second stage -----------------------------------------------------------------------------------------

    @property
    def second_stage(self) -> PromptForm:
        """How a text model is asked which option a reply chooses."""
        return load_form(self.prompts, SECOND_STAGE)

    def second_stage_request(
        self, sample: ChoiceSample, reply: str, *, thinking: bool | None = False, may_reason: bool = False
    ) -> tuple[tuple[Message, ...], Options]:
        """Turns and decoding that ask a text model to read ``reply``; its output is one of the letters or NONE.

        Args:
            sample: the question.
            reply: what is to be read.
            thinking: switched off; ``None`` for a model that has no switch.
            may_reason: whether such a model reasons all the same; it then gets the room.
        """
        form = self.second_stage
        options = form.decoding(thinking=thinking, may_reason=may_reason)
        return second_stage_messages(sample, reply, form), replace(options, choices=(*sample.letters, NONE))

    def second_stage_reading(self, reply: str | None, sample: ChoiceSample) -> Reading[str]:
        """What the text model found: a letter of the question, or nothing. It stands alone, reasoning left out."""
        said = second_stage_word(reply)
        if said is None:
            return Reading(None, unwrap(reply).failure, SECOND_STAGE)
        if said in sample.letters:
            return Reading(said, rule=SECOND_STAGE)
        return Reading(None, Flag.NO_ANSWER if said == NONE else Flag.NOT_AN_OPTION, SECOND_STAGE)

    # --- scoring --------------------------------------------------------------------------------------------------

    def parse(self, reply: Any, sample: ChoiceSample | Mapping[str, Any]) -> Reading[str]:
        """The letter that ``reply`` gives, as it was shown, by the protocol's reading."""
        one = self.of(sample)
        if self.reading == REPLIES:
            return read_choice(reply, one.options or dict.fromkeys(self.letters, ""))
        options = one.options or dict.fromkeys(self.letters)  # public code takes an empty text to stand in any reply
        return read_reference(self.reading, reply, options=options, question_id=one.id)

    def score(self, parsed: Any, sample: ChoiceSample | Mapping[str, Any], *, member: str = "0") -> SampleScore:
        """1 for the right letter, 0 for another one and for a reply that could not be read.

        Raises:
            ValueError: the sample has no right answer.
        """
        one, reading = self.of(sample), reading_of(parsed)
        if one.no_truth:
            raise ValueError(f"{one.id!r} cannot be scored: {one.no_truth}")
        value = float(reading.value == one.answer)
        drawn = Flag.RANDOM_DRAW in reading.flags
        further = {} if self.reading == REPLIES else {DRAWS_WRONG: 0.0 if drawn else value}
        return SampleScore(
            one,
            value,
            flags=reading.unparsed,
            values=further,
            parsed=reading.value,
            failure=reading.failure,
            rule=reading.rule,
            detail=dict(reading.detail),
            member=member,
        )

    def gap(
        self, sample: ChoiceSample, reason: Reason, message: str = "", *, member: str = "0", **detail: Any
    ) -> SampleScore:
        """The score of a question without a reply."""
        found = super().gap(sample, reason, message, member=member, **detail)
        drawn = {} if self.reading == REPLIES or found.value is None else {DRAWS_WRONG: found.value}
        return replace(found, values=drawn)

    def aggregate(self, scores: Iterable[SampleScore], *, resamples: int = RESAMPLES) -> TaskAggregate:
        """Accuracy over all and by every way of grouping, with intervals, floors and coverage."""
        listed = ordered(scores)
        samples = by_sample(listed)
        whole = count(samples, resamples=resamples)
        floor = floors(_choice(own[0]) for own in samples.values())
        table = grouped(samples, self.ways, order=self._order, resamples=resamples)
        return TaskAggregate(
            task=self.name,
            protocol=self.protocol.name,
            dialect=self.dialect,
            n=whole.n,
            N=whole.N,
            metrics=self._metrics(whole, samples),
            whole=whole,
            groups=table,
            unparsed=failures(listed),
            flags=flag_counts(listed),
            coverage=coverage(samples),
            floors={**floor.to_json(), "by_group": self._floors_by_group(samples)},
            seeds=seed_spread(samples),
            reference=self._public_outputs(listed),
        )

    def _metrics(self, whole: GroupCount, samples: BySample) -> dict[str, float | None]:
        found: dict[str, float | None] = {"accuracy": whole.accuracy}
        if self.reading != REPLIES:
            found[f"accuracy_{DRAWS_WRONG}"] = _mean_of(samples, DRAWS_WRONG)
        return found

    def _order(self, _way: str, groups: Iterable[str]) -> list[str]:
        """The order in which the groups of a way are reported."""
        return sorted(groups)

    def _floors_by_group(self, samples: BySample) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, list[ChoiceSample]]] = {}
        for own in samples.values():
            sample = _choice(own[0])
            for way in self.ways:
                if (group := sample.groups.get(way)) is not None:
                    found.setdefault(way, {}).setdefault(group, []).append(sample)
        return {
            way: {group: floors(parts[group]).random_guess for group in self._order(way, parts)}
            for way, parts in found.items()
        }

    def _public_outputs(self, _scores: list[SampleScore]) -> dict[str, Any]:
        """What public programs print of the same answers."""
        return {}


def second_stage_word(reply: str | None) -> str | None:
    """What the text model said, in capitals and without marks around it; ``None`` for nothing but reasoning.

    >>> second_stage_word("<think>B? No.</think> **none.**"), second_stage_word("<think>It may be")
    ('NONE', None)
    """
    opened = unwrap(reply)
    return None if opened.value is None else opened.value.strip(_AROUND_LETTER).upper()


def _choice(score: SampleScore) -> ChoiceSample:
    assert isinstance(score.sample, ChoiceSample)
    return score.sample


def _mean_of(samples: BySample, name: str) -> float | None:
    """Mean over samples of the mean over seeds; a gap that counts as wrong counts as 0 here too."""
    means = []
    for own in samples.values():
        values = [score.values.get(name, 0.0) or 0.0 for score in own if score.value is not None]
        if values:
            means.append(exact_mean(values))
    return exact_mean(means) if means else None
