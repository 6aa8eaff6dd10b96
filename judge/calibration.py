"""What a judge is worth: estimates from its answers about clips whose truth is known.

Everything is computed from trials, and can be computed again from them. A reply that cannot be read is wrong in every
accuracy, and left out of sensitivity, specificity and the shares of yes, where it is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gen_eval.records import Reason
from gen_eval.records.answer import MAIN
from judge.estimates import NOTHING, Estimate, mean_difference, share
from judge.looking import Looking, gain, looking

WITHOUT_VIDEO = "without_video"
SHUFFLED = "shuffled"
OTHER_ORDER = "other_order"
REPEAT = "repeat:"
"""Conditions of the same questions; :data:`REPEAT` is followed by a number."""

Place: TypeAlias = tuple[str, str]
"""Clip and uid."""


@dataclass(frozen=True)
class Trial:
    """One question about a clip of known truth, and what the judge said.

    Attributes:
        scene: that the clip shows; a scene and its broken twins are one scene.
        clip: name of the clip.
        uid: of the question.
        truth: ``yes`` or ``no``.
        condition: empty for the question as it stands, else what was changed.
        said: ``yes``, ``no``, or ``None`` for a reply that could not be read.
        failed: why there is no reply; such a trial is counted and is in nothing else.
        flaw: what is broken in the clip; ``None`` in a true one.
        topic: of the question.
        turned: whether the question's answer is another one in the true clip and in its broken twin.
        chance: probability of yes by log-probabilities, when they came back.
        tokens: prompt and completion, ``None`` where the backend does not say.
        cost: ``None`` when no price is known.
    """

    scene: str
    clip: str
    uid: str
    truth: str
    condition: str = MAIN
    said: str | None = None
    failed: Reason | None = None
    flaw: str | None = None
    topic: str = ""
    turned: bool = False
    chance: float | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    cost: float | None = None

    @property
    def right(self) -> bool:
        """Whether it said what is true."""
        return self.said == self.truth


@dataclass(frozen=True)
class Spent:
    """What asking took.

    Attributes:
        answers: replies, all conditions together.
        prompt_tokens: of those that say; ``None`` when none does.
        completion_tokens: likewise.
        cost: of those with a known price; ``None`` when none has one.
        untold: replies without a token count.
    """

    answers: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    untold: int


@dataclass(frozen=True)
class Calibration:
    """What is known of a judge; shares in 0..1, differences in -1..1.

    Attributes:
        accuracy: share of right answers.
        sensitivity: share of yes where yes is true.
        specificity: share of no where no is true.
        yes_rate: share of yes.
        yes_bias: share of yes minus the share of questions where yes is true.
        unreadable: share of replies that could not be read.
        order_effect: share of yes when yes is named first minus that when no is, over the same questions.
        order_flips: share of questions whose answer changes with the order.
        accuracy_without_video: when the same questions are asked without any video.
        yes_rate_without_video: share of yes then.
        gain_over_no_video: accuracy with the video minus accuracy without, over the same questions.
        accuracy_shuffled: with another scene's video.
        gain_over_shuffled: accuracy with the right video minus that, over the same questions.
        repeatability: share of repeated questions that were answered as at first.
        twins: share of questions that turn over between a clip and its broken twin and are right in both.
        by_flaw: accuracy on clips of each flaw; ``none`` for true ones.
        by_topic: accuracy on each topic.
        looking: the verdict; see :mod:`judge.looking`.
        failed: trials without a reply, by reason.
        spent: tokens and cost.
    """

    accuracy: Estimate
    sensitivity: Estimate
    specificity: Estimate
    yes_rate: Estimate
    yes_bias: Estimate
    unreadable: Estimate
    order_effect: Estimate
    order_flips: Estimate
    accuracy_without_video: Estimate
    yes_rate_without_video: Estimate
    gain_over_no_video: Estimate
    accuracy_shuffled: Estimate
    gain_over_shuffled: Estimate
    repeatability: Estimate
    twins: Estimate
    by_flaw: Mapping[str, Estimate]
    by_topic: Mapping[str, Estimate]
    looking: Looking
    failed: Mapping[str, int] = field(default_factory=dict)
    spent: Spent = Spent(0, None, None, None, 0)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The single estimates by name, in the order in which they are shown."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **{name: one.to_json() for name, one in self.estimates.items()},
            "by_flaw": {name: one.to_json() for name, one in self.by_flaw.items()},
            "by_topic": {name: one.to_json() for name, one in self.by_topic.items()},
            "looking": str(self.looking),
            "failed": dict(self.failed),
            "spent": vars(self.spent),
        }


def calibrate(trials: Iterable[Trial]) -> Calibration:
    """All estimates from ``trials``.

    Whether it looks is decided in :mod:`judge.looking`. More scenes make the intervals narrower: a judge that looks and
    is weak needs more of them.
    """
    everything = list(trials)
    table = _Trials([one for one in everything if one.failed is None])
    main = table.of(MAIN)
    read = [one for one in main if one.said is not None]
    without, shuffled = table.of(WITHOUT_VIDEO), table.of(SHUFFLED)
    gains = (table.gain(WITHOUT_VIDEO), table.gain(SHUFFLED))
    return Calibration(
        accuracy=_share(main, _right),
        sensitivity=_share([one for one in read if one.truth == "yes"], _yes),
        specificity=_share([one for one in read if one.truth == "no"], _no),
        yes_rate=_share(read, _yes),
        yes_bias=mean_difference((one.scene, float(_yes(one)) - float(one.truth == "yes")) for one in read),
        unreadable=_share(main, lambda one: one.said is None),
        order_effect=table.order_effect(),
        order_flips=table.compared([OTHER_ORDER], lambda a, b: a.said != b.said, read=True),
        accuracy_without_video=_share(without, _right),
        yes_rate_without_video=_share([one for one in without if one.said is not None], _yes),
        gain_over_no_video=gains[0],
        accuracy_shuffled=_share(shuffled, _right),
        gain_over_shuffled=gains[1],
        repeatability=table.compared(table.repeats(), lambda a, b: a.said == b.said),
        twins=_twins(main),
        by_flaw=_grouped(main, lambda one: one.flaw or "none"),
        by_topic=_grouped(main, lambda one: one.topic),
        looking=looking(gains),
        failed=_counted(everything),
        spent=_spent(table.trials),
    )


def _right(trial: Trial) -> bool:
    return trial.right


def _yes(trial: Trial) -> bool:
    return trial.said == "yes"


def _no(trial: Trial) -> bool:
    return trial.said == "no"


def _share(trials: Iterable[Trial], of: Callable[[Trial], bool]) -> Estimate:
    return share((one.scene, of(one)) for one in trials)


class _Trials:
    """Trials with a reply, by condition and place."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = sorted(trials, key=lambda one: (one.scene, one.clip, one.uid, one.condition))
        self._by: dict[str, dict[Place, Trial]] = {}
        for trial in self.trials:
            self._by.setdefault(trial.condition, {})[trial.clip, trial.uid] = trial

    def of(self, condition: str) -> list[Trial]:
        return list(self._by.get(condition, {}).values())

    def repeats(self) -> list[str]:
        return sorted(name for name in self._by if name.startswith(REPEAT))

    def pairs(self, condition: str, *, read: bool = False) -> list[tuple[Trial, Trial]]:
        """The question as it stands beside the changed one, where both were answered (and ``read``)."""
        main = self._by.get(MAIN, {})
        found = [(main[place], other) for place, other in self._by.get(condition, {}).items() if place in main]
        return [pair for pair in found if not read or None not in (pair[0].said, pair[1].said)]

    def gain(self, condition: str) -> Estimate:
        return gain((a.scene, a.right, b.right) for a, b in self.pairs(condition))

    def order_effect(self) -> Estimate:
        read = self.pairs(OTHER_ORDER, read=True)
        return mean_difference((a.scene, float(_yes(a)) - float(_yes(b))) for a, b in read)

    def compared(
        self, conditions: Sequence[str], same: Callable[[Trial, Trial], bool], *, read: bool = False
    ) -> Estimate:
        """Share of the pairs that ``same`` is true of."""
        return share((a.scene, same(a, b)) for condition in conditions for a, b in self.pairs(condition, read=read))


def _twins(main: Sequence[Trial]) -> Estimate:
    """A broken clip's turned question counts with the true clip's own."""
    true = {(one.scene, one.uid): one for one in main if one.flaw is None}
    broken = [one for one in main if one.flaw is not None and one.turned and (one.scene, one.uid) in true]
    return share((one.scene, one.right and true[one.scene, one.uid].right) for one in broken)


def _grouped(main: Sequence[Trial], name: Callable[[Trial], str]) -> dict[str, Estimate]:
    names = sorted({name(one) for one in main})
    return {each: _share([one for one in main if name(one) == each], _right) for each in names if each}


def _counted(trials: Iterable[Trial]) -> dict[str, int]:
    found: dict[str, int] = {}
    for trial in trials:
        if trial.failed is not None:
            found[str(trial.failed)] = found.get(str(trial.failed), 0) + 1
    return dict(sorted(found.items()))


def _spent(trials: Sequence[Trial]) -> Spent:
    sides = [[one.tokens[side] for one in trials] for side in (0, 1)]
    told = [[count for count in side if count is not None] for side in sides]
    costs = [one.cost for one in trials if one.cost is not None]
    untold = sum(None in one.tokens for one in trials)
    prompt, completion = (sum(side) if side else None for side in told)
    return Spent(len(trials), prompt, completion, sum(costs) if costs else None, untold)


__all__ = [
    "NOTHING",
    "OTHER_ORDER",
    "REPEAT",
    "SHUFFLED",
    "WITHOUT_VIDEO",
    "Calibration",
    "Looking",
    "Spent",
    "Trial",
    "calibrate",
]
