"""Whether a judge looks at what it is shown: one rule, for calibration and for every run with reference points.

A judge is asked the same questions with the right video, and without one or with another video. Its *gain* is the share
of right answers with the right video minus that under such a reference point, over the questions that were answered in
both; an unreadable reply is wrong. The 95 % interval of the gain (:func:`judge.estimates.mean_difference`) knows which
scene or sample an answer is about. Then

* ``looks``: every gain is surely above 0, the lower end of its interval is;
* ``does_not_look``: some gain is surely below :data:`NEAR`, the upper end of its interval is;
* ``not_clear``: neither; there are too few questions to tell a weak judge from a blind one;
* ``not_asked``: no reference point has an answer.

A gain may be surely above 0 and surely below :data:`NEAR`: then it is too small to be worth the name, and the judge
does not look.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import StrEnum

from judge.estimates import Estimate, mean_difference

NEAR = 0.1
"""A gain that is surely below this is as good as none."""


class Looking(StrEnum):
    """Whether a judge's answers depend on what it is shown."""

    LOOKS = "looks"
    NOT_CLEAR = "not_clear"
    DOES_NOT_LOOK = "does_not_look"
    NOT_ASKED = "not_asked"


def gain(pairs: Iterable[tuple[Hashable, bool, bool]]) -> Estimate:
    """Share of right answers with the right video minus that under a reference point.

    Args:
        pairs: scene or sample, whether the answer is right with the right video, and under the reference point.
    """
    return mean_difference((scene, float(right) - float(beside)) for scene, right, beside in pairs)


def looking(gains: Iterable[Estimate]) -> Looking:
    """The verdict, by the rule above.

    Args:
        gains: one a reference point that was asked for; those without a value say nothing.
    """
    asked = [one for one in gains if one.value is not None]
    if not asked:
        return Looking.NOT_ASKED
    if any(one.upper is not None and one.upper < NEAR for one in asked):
        return Looking.DOES_NOT_LOOK
    if all(one.lower is not None and one.lower > 0 for one in asked):
        return Looking.LOOKS
    return Looking.NOT_CLEAR


__all__ = ["NEAR", "Looking", "gain", "looking"]
