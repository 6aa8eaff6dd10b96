"""Which frames of a clip are taken: by presentation time, never by index over average rate.

Times are seconds from the first frame, increasing. "Nearest" means nearest in time; of two frames that are equally near
(within 1e-9 s) the earlier one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Times: TypeAlias = Sequence[float] | NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_TIE = 1e-9
_MOST = 10_000


def _checked(times: Times) -> NDArray[np.float64]:
    array = np.asarray(times, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"times must be the times of at least one frame, shape (n,), not {array.shape}")
    if not np.isfinite(array).all() or (np.diff(array) < 0).any():
        raise ValueError("times must be finite and must not decrease; sort the frames by presentation time first")
    return array


def _positive(name: str, value: float, *, whole: bool) -> None:
    if isinstance(value, bool) or (whole and not isinstance(value, int | np.integer)) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number above 0, not {value!r}")


def nearest(times: Times, targets: Times) -> Indices:
    """Index of the frame nearest to each target time.

    Args:
        times: (n,) seconds, not decreasing.
        targets: (m,) seconds, in any order; outside the clip the first or the last frame is nearest.

    Returns:
        (m,) int64.

    Example:
        >>> nearest([0.0, 0.04, 0.16], [0.1, 0.11, 9.0]).tolist()
        [1, 2, 2]
    """
    known, wanted = _checked(times), np.asarray(targets, np.float64)
    if np.isnan(wanted).any():
        raise ValueError("a target time is not a number")
    after = np.clip(np.searchsorted(known, wanted), 1, max(len(known) - 1, 1))
    after = np.minimum(after, len(known) - 1)
    before = np.maximum(after - 1, 0)
    later = np.abs(known[after] - wanted) < np.abs(wanted - known[before]) - _TIE
    chosen = np.where(later, after, before)
    return np.searchsorted(known, known[chosen]).astype(np.int64)  # the first of frames that share a time


def frame_at(times: Times, time: float) -> int:
    """Index of the frame nearest to ``time`` (seconds)."""
    return int(nearest(times, [time])[0])


def time_of(times: Times, index: int) -> float:
    """Time of frame ``index`` (0-based) in seconds.

    Raises:
        ValueError: there is no such frame.
    """
    known = _checked(times)
    _check_within([index], len(known))
    return float(known[index])


def frames_of_interval(times: Times, start: float, end: float) -> tuple[int, int]:
    """First and last frame of an interval in seconds: the frames nearest to its ends.

    :func:`interval_of_frames` leads back; each end inside the clip returns within half of the frame step around it.

    Raises:
        ValueError: the interval ends before it starts.

    Example:
        >>> frames_of_interval([0.0, 0.5, 1.0, 2.0], 0.4, 1.6)
        (1, 3)
    """
    if not start <= end:
        raise ValueError(f"an interval must not end before it starts: {start} .. {end}")
    return frame_at(times, start), frame_at(times, end)


def interval_of_frames(times: Times, first: int, last: int) -> tuple[float, float]:
    """Times of the first and the last frame of an interval, in seconds."""
    if last < first:
        raise ValueError(f"an interval must not end before it starts: frames {first} .. {last}")
    return time_of(times, first), time_of(times, last)


def _check_within(indices: Sequence[int], count: int) -> None:
    outside = [index for index in indices if not 0 <= index < count]
    if outside:
        raise ValueError(f"frame {outside[0]} was asked for, but the clip has {count} frames (0 to {count - 1})")


@dataclass(frozen=True)
class All:
    """Every frame, or the first ``limit`` frames.

    Attributes:
        limit: most frames that are taken; ``None`` for all.
    """

    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            _positive("limit", self.limit, whole=True)

    def choose(self, times: Times) -> Indices:
        """The indices, in order."""
        return np.arange(len(_checked(times)), dtype=np.int64)[: self.limit]


@dataclass(frozen=True)
class Uniform:
    """Frames nearest to ``count`` moments that are evenly spread from the first frame to the last, both included.

    One frame alone is the one nearest to the middle. At a constant rate no frame is taken twice as long as the clip
    has ``count`` frames; in a shorter clip, or where one frame stays on the screen for long, frames are repeated.

    Attributes:
        count: frames that are returned, always.

    Example:
        >>> Uniform(3).choose([0.0, 0.1, 0.2, 0.3, 0.4]).tolist()
        [0, 2, 4]
    """

    count: int

    def __post_init__(self) -> None:
        _positive("count", self.count, whole=True)

    def choose(self, times: Times) -> Indices:
        """``count`` indices that do not decrease."""
        known = _checked(times)
        share = np.linspace(0.0, 1.0, self.count) if self.count > 1 else np.array([0.5])
        return nearest(known, known[0] + share * (known[-1] - known[0]))


@dataclass(frozen=True)
class AtRate:
    """Frames nearest to 0, 1/fps, 2/fps ... seconds after the first frame, up to the time of the last frame.

    A clip slower than ``fps`` repeats frames. Where this gives more than ``max_frames``, ``Uniform(max_frames)`` takes
    its place, so that the whole clip stays covered.

    Attributes:
        fps: frames a second.
        max_frames: most frames that are returned; ``None`` for no limit.

    Example:
        >>> AtRate(2).choose([0.0, 0.4, 0.8, 1.2]).tolist()
        [0, 1, 2]
    """

    fps: float
    max_frames: int | None = None

    def __post_init__(self) -> None:
        _positive("fps", self.fps, whole=False)
        if self.max_frames is not None:
            _positive("max_frames", self.max_frames, whole=True)

    def choose(self, times: Times) -> Indices:
        """Indices that do not decrease.

        Raises:
            ValueError: more than 10,000 frames would be taken and more than ten times what the clip has; such times are
                those of a damaged file.
        """
        known = _checked(times)
        count = np.floor((known[-1] - known[0]) * self.fps + _TIE * self.fps) + 1
        if self.max_frames is not None and count > self.max_frames:
            return Uniform(self.max_frames).choose(known)
        if count > max(_MOST, 10 * len(known)):
            raise ValueError(
                f"{self.fps:g} frames a second over {known[-1] - known[0]:g} s are {count:.0f} frames of a clip that "
                f"has {len(known)}; set max_frames, or check the clip's time stamps"
            )
        return nearest(known, known[0] + np.arange(count) / self.fps)


@dataclass(frozen=True)
class Explicit:
    """The frames of the given indices, in the given order.

    Attributes:
        indices: 0-based, at least one; one may occur several times.
    """

    indices: tuple[int, ...]

    def __init__(self, indices: Sequence[int] | NDArray[Any]) -> None:
        given = tuple(int(index) for index in indices if int(index) == index)
        if not len(indices) or len(given) != len(indices) or min(given) < 0:
            raise ValueError(f"indices must be at least one whole number from 0 up, not {list(indices)!r}")
        object.__setattr__(self, "indices", given)

    def choose(self, times: Times) -> Indices:
        """The indices themselves.

        Raises:
            ValueError: one lies past the end; names it and the number of frames.
        """
        _check_within(self.indices, len(_checked(times)))
        return np.array(self.indices, np.int64)


Sampling: TypeAlias = All | Uniform | AtRate | Explicit
