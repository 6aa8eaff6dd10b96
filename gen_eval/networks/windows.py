"""Long clips through a network that sees a few frames at a time: overlapping windows, and maps stitched together.

Everything is a stream: of a clip no more is held than one window, and a map is given away as soon as no later window
can change it.

Source: Chen et al. 2025, Video Depth Anything; public code of its inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError

Item = TypeVar("Item")
Maps: TypeAlias = NDArray[np.float32]

_WIDEST = 1024
_PAIR = 2  # slots of a window that are aligned with the reference pair


@dataclass(frozen=True)
class WindowRule:
    """How a clip is cut into windows.

    Every window but the first begins with slots of the one before: its first slot (which so stays the clip's first
    frame), its slot ``key``, and its last ones.

    Attributes:
        window: slots of a window.
        overlap: slots that a window takes from the one before.
        key: the slot whose map becomes the second half of the reference pair.
    """

    window: int
    overlap: int
    key: int

    def __post_init__(self) -> None:
        """Refuse rules that do not fit together.

        Raises:
            InputError: the numbers and what is expected.
        """
        numbers = (self.window, self.overlap, self.key)
        if not all(isinstance(number, int) for number in numbers) or not (
            _PAIR + 1 < self.overlap < self.window <= _WIDEST and 0 < self.key < self.window
        ):
            raise InputError(
                f"window, overlap and key_slot are {', '.join(map(str, numbers))}; expected whole numbers with "
                f"{_PAIR + 1} < overlap < window <= {_WIDEST} and 0 < key_slot < window"
            )

    @property
    def step(self) -> int:
        """Frames that a window has and the one before has not."""
        return self.window - self.overlap

    @property
    def kept(self) -> list[int]:
        """Slots of a window that the next one begins with."""
        return [0, self.key, *range(self.final, self.window)]

    @property
    def final(self) -> int:
        """The first slot whose map the next window changes."""
        return self.step + _PAIR


@dataclass(frozen=True)
class Window(Generic[Item]):
    """One window.

    Attributes:
        slots: what stands in its slots.
        left: frames of the clip from its start on, as far as they are known.
    """

    slots: list[Item]
    left: int


def windows(items: Iterable[Item], rule: WindowRule) -> Iterator[Window[Item]]:
    """The windows of a clip, from something for each of its frames; the last item fills up what is missing.

    There is a window for every ``step`` frames begun.

    Example:
        >>> rule = WindowRule(window=6, overlap=4, key=3)
        >>> [window.slots for window in windows(range(9), rule)]  # doctest: +NORMALIZE_WHITESPACE
        [[0, 1, 2, 3, 4, 5], [0, 3, 4, 5, 6, 7], [0, 5, 6, 7, 8, 8], [0, 7, 8, 8, 8, 8], [0, 8, 8, 8, 8, 8]]
    """
    coming = iter(items)
    slots = list(islice(coming, rule.window))
    start, seen = 0, len(slots)
    while start < seen:
        slots += slots[-1:] * (rule.window - len(slots))
        yield Window(slots, seen - start)
        new = list(islice(coming, rule.step))
        start, seen = start + rule.step, seen + len(new)
        slots = [slots[slot] for slot in rule.kept] + new


class Stitcher:
    """Maps of overlapping windows as maps of one clip.

    The first window is taken as it is. Of each further one the first two slots are brought to the reference pair by a
    scale and a shift (least squares); these are applied to its other slots, what becomes negative is 0, and the slots
    that the window before has as well are cross-faded with its maps of them. The reference pair is the map of the
    clip's first frame, and the stitched map of the slot ``key`` of the window before.
    """

    def __init__(self, rule: WindowRule) -> None:
        self._rule = rule
        self._pair: dict[int, Maps] = {}  # 0: of the clip's first frame; 1: of the slot `key`
        self._open: list[Maps] = []  # maps that the next window changes

    def add(self, maps: Iterable[Maps], left: int) -> Iterator[Maps]:
        """Take in the next window. Its maps are asked for one by one, and not more of them than are needed.

        Args:
            maps: (H, W) float32 of its slots, in order.
            left: see :class:`Window`.

        Yields:
            The maps (H, W) that are final, in order.
        """
        rule, first = self._rule, not self._pair
        if not first and left <= _PAIR:  # the clip ends before the window changes anything
            return
        coming = iter(maps)
        scale, shift = (None, None) if first else aligned(list(islice(coming, _PAIR)), [self._pair[0], self._pair[1]])
        fading, self._open = self._open, []
        slots = range(0 if first else _PAIR, left if left <= rule.step else rule.window)
        for slot, one in zip(slots, coming, strict=False):
            stitched = one if scale is None or shift is None else _moved(one, scale, shift)
            self._remember(slot, stitched, first=first)
            if not first and slot < rule.overlap:
                stitched = _mixed(fading[slot - _PAIR], stitched, (slot - _PAIR) / (rule.overlap - _PAIR - 1))
            if slot >= rule.final:
                self._open.append(stitched)
            elif slot < left:
                yield stitched

    def _remember(self, slot: int, stitched: Maps, *, first: bool) -> None:
        if first and slot == 0:
            self._pair[0] = stitched
        if slot == self._rule.key:
            self._pair[1] = stitched


def aligned(maps: Sequence[Maps], reference: Sequence[Maps]) -> tuple[np.float32, np.float32]:
    """Scale and shift that bring ``maps`` closest to ``reference`` (both lists of (H, W) float32).

    Least squares over all pixels, in float32; scale 1 and shift 0 where the determinant is 0.
    """
    own, other = np.stack(maps).ravel(), np.stack(reference).ravel()
    one = np.float32(1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite then stays so in the maps
        square, total, count = np.sum(own * own), np.sum(own), np.float32(own.size)
        product, target = np.sum(own * other), np.sum(other)
        determinant = square * count - total * total
        if determinant == 0:
            return one, one - one
        return (count * product - total * target) / determinant, (square * target - total * product) / determinant


def _moved(one: Maps, scale: np.float32, shift: np.float32) -> Maps:
    with np.errstate(over="ignore", invalid="ignore"):
        moved: Maps = np.maximum(one * scale + shift, np.float32(0))
    return moved


def _mixed(before: Maps, after: Maps, share: float) -> Maps:
    """``before`` and ``after``, cross-faded: ``share`` of the latter."""
    mixed: Maps = before * np.float32(1 - share) + after * np.float32(share)
    return mixed
