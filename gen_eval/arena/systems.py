"""Numbers by system that come in or go out: ratings and scores, one column a tracker or metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gen_eval.records import Reason
from gen_eval.stats.summaries import exact_mean

REAL = ("Source Videos",)
"""Systems that are real videos when nobody says which are."""

_SAME = {"plausibility": "domain", "domain_score": "domain"}


def key_of(name: str) -> str:
    """The x under which a tracker, total or metric pairs: people judge plausibility, its partner is the Domain Score.

    >>> key_of("plausibility"), key_of("domain_score"), key_of("quality")
    ('domain', 'domain', 'quality')
    """
    return _SAME.get(name, name)


@dataclass(frozen=True)
class SystemColumn:
    """One number by system.

    Attributes:
        name: what it is of: a tracker (``overall``, ``quality``, ``plausibility`` or ``domain``) or a metric.
        values: by system; ``None`` where it has none.
        lower: lower end of an interval, where one is known.
        upper: upper end.
        source: the column, file or run that it came from.
        higher_is_better: ``False`` for an error.
        samples: how many samples a number was made from, where that is known.
        reason: why no system has a number (ratings without a maximum), where that is known.
        message: the same in words.
        unit: of the values, where that is known; ``ratio`` for 0 to 1.
    """

    name: str
    values: Mapping[str, float | None]
    lower: Mapping[str, float] = field(default_factory=dict)
    upper: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    higher_is_better: bool = True
    samples: Mapping[str, int] = field(default_factory=dict)
    reason: Reason | None = None
    message: str = ""
    unit: str = ""

    @property
    def key(self) -> str:
        """The name under which ratings and scores pair, see :func:`key_of`."""
        return key_of(self.name)


@dataclass(frozen=True)
class VideoScores:
    """What one metric says of single videos.

    Attributes:
        metric: its name.
        values: (system, sample) -> member (seed) -> value; videos without a value are absent.
        protocol: under which they were computed.
        higher_is_better: ``False`` for an error.
    """

    metric: str
    values: Mapping[tuple[str, str], Mapping[str, float]]
    protocol: str = ""
    higher_is_better: bool = True

    def of(self, model: str, sample: str, seed: str | None = None) -> float | None:
        """The value of one video, larger is better; without a seed the mean over the members of the sample."""
        members = self.values.get((model, sample))
        if not members or (seed is not None and seed not in members):
            return None
        value = members[seed] if seed is not None else exact_mean(list(members.values()))
        return value if self.higher_is_better else -value


def column_of(columns: Mapping[str, SystemColumn], x: str) -> SystemColumn | None:
    """The column that pairs under ``x``; ``None`` without one."""
    return next((one for one in columns.values() if one.key == x), None)


__all__ = ["REAL", "SystemColumn", "VideoScores", "column_of", "key_of"]
