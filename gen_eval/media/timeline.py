"""Times of frames from their time stamps, in seconds from the first frame."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ASSUMED_STEP = Fraction(1, 25)


class Timeline:
    """Turns the time stamps of one clip into times, exactly, and remembers what was odd about them.

    A frame's time is (stamp - first stamp) x time base. Where a stamp is absent, or not later than the frame before,
    the frame gets the time of the frame before plus one nominal step; so times always increase.

    Attributes:
        repaired: how many frames got their time from the nominal step.
    """

    def __init__(self, time_base: Fraction | None, step: Fraction | None, source: str = "container") -> None:
        """Start at the first frame.

        Args:
            time_base: seconds of one unit of the stamps; ``None`` when the container has none.
            step: seconds from frame to frame by the header's rate; ``None`` when unknown (1/25 s is assumed).
            source: what the stamps are, for the detail: ``container`` (presentation times) or ``decode_order``.
        """
        self._source = source
        self._unit = time_base
        self._assumed = step is None
        self._step = step or _ASSUMED_STEP
        self._last: Fraction | None = None
        self._zero: Fraction | None = None
        self._parts: list[NDArray[np.float64]] = []
        self.repaired = 0

    def add(self, stamps: Sequence[int | None]) -> NDArray[np.float64]:
        """Times of the next frames (k,), float64 seconds."""
        times = np.array([float(self._next(stamp)) for stamp in stamps], np.float64)
        self._parts.append(times)
        return times

    def _next(self, stamp: int | None) -> Fraction:
        time = None if stamp is None or self._unit is None else stamp * self._unit
        nominal = Fraction(0) if self._last is None else self._last + self._step
        if time is None:
            self.repaired += 1
            self._last = nominal
        elif self._zero is None:
            self._zero, self._last = time - nominal, nominal
        elif self._last is not None and time - self._zero <= self._last:
            self.repaired += 1
            self._last = nominal
        else:
            self._last = time - self._zero
        return self._last

    @property
    def times(self) -> NDArray[np.float64]:
        """Times of all frames so far (n,)."""
        return np.concatenate(self._parts) if self._parts else np.empty(0)

    @property
    def variable(self) -> bool:
        """Whether frame steps differ.

        They do when the longest exceeds the shortest by more than 1 % of the mean step and by more than what rounding
        to the container's time unit explains (one unit, where a step has at least two of them).
        """
        steps = np.diff(self.times)
        if len(steps) < 2:
            return False
        mean = float(steps.mean())
        unit = float(self._unit or 0)
        rounding = unit if mean >= 2 * unit else 0.0
        return float(steps.max() - steps.min()) > max(rounding, mean / 100) + 1e-9

    def detail(self) -> dict[str, Any]:
        """Where the times come from, for a row's detail."""
        if self.repaired and self.repaired >= sum(map(len, self._parts)) - 1:
            return {"timestamps": "assumed_25_fps" if self._assumed else "frame_rate"}
        return {"timestamps": self._source} | ({"timestamps_repaired": self.repaired} if self.repaired else {})
