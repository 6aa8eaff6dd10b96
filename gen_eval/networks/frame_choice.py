"""Which frames of a clip are compared when it is sampled at a few frames a second, decided while it is read.

Source: VBench, dynamic degree (by counting); by time stamps: see docs/protocols.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_SLACK = 0.05  # of a frame's time: stamps are rounded to the container's time unit

_MOST_REPEATS = 1000  # times that end with one frame: a stamp far behind the others must not fill the memory


def interval_of(fps: float | None, rate: float) -> int:
    """Frames from one sampled frame to the next, so that about ``rate`` a second are left; 1 when ``fps`` is unknown.

    >>> interval_of(12, 8), interval_of(20, 8), interval_of(None, 8)
    (2, 2, 1)
    """
    return max(1, round((fps or 0) / rate))  # half to even


@dataclass(frozen=True)
class FrameChoice:
    """Frames chosen in two ways: each k-th (k = ``interval``), and those nearest to the multiples of k / fps seconds.

    At a constant rate these are the same. A frame that is nearest to several times is chosen several times; of a pause
    with more than 1000 of them, the last 1000 count. Without a rate only counting is possible, and serves for both.

    Attributes:
        fps: average frame rate, ``None`` when unknown.
        interval: frames from one chosen frame to the next by counting.
        count: frames seen.
        previous: time of the last of them.
        due: multiples of k / fps that have their frame.
    """

    fps: float | None
    interval: int
    count: int = 0
    previous: float = -math.inf
    due: int = 0

    def next(self, time: float) -> tuple[FrameChoice, tuple[int, ...], tuple[int, ...]]:
        """Take in a frame at ``time`` seconds.

        Returns:
            What comes after it, and the numbers of frames that are now known to be chosen: by counting (this one), and
            by time (this one, the one before, or both).
        """
        number = self.count
        by_index = () if number % self.interval else (number,)
        by_time, due = by_index, self.due
        if self.fps:
            by_time = ()
            due = max(due, math.floor(time * self.fps / self.interval) + 1 - _MOST_REPEATS)
            while (wanted := due * self.interval / self.fps) <= time + _SLACK / self.fps:
                nearer = number - 1 if wanted - self.previous <= abs(time - wanted) else number
                by_time, due = (*by_time, nearer), due + 1
        return replace(self, count=number + 1, previous=time, due=due), by_index, by_time
