"""The frames of several clips side by side: those that all have, and perhaps a few behind the end of the shortest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gen_eval.features.feature import Array


class SideBySide:
    """Puts chunks of clips of one size together.

    Args:
        tail: frames behind the end of the shortest clip that are put together as well; in them, clips that have ended
            repeat their last frame.
    """

    def __init__(self, tail: int = 0) -> None:
        self._tail = tail
        self._last: list[Array | None] = []

    def join(self, chunks: Sequence[Array]) -> Array | None:
        """The next frames (n, N, H, W, 3) of N clips, a copy; ``None`` when there are none.

        Args:
            chunks: the next frames of each clip, fewer than others have (or none) where a clip ends.
        """
        common, most = min(map(len, chunks)), max(map(len, chunks))
        count = common + min(self._tail, most - common)
        if common < most:
            self._tail -= count - common
        if not self._last:
            self._last = [None] * len(chunks)
        joined = None
        if count:
            joined = np.stack([_held(*one, count) for one in zip(chunks, self._last, strict=True)], axis=1)
        if self._tail:
            for place, chunk in enumerate(chunks):
                if len(chunk):
                    self._last[place] = chunk[-1].copy()  # the chunk's memory is used again
        return joined


def _held(chunk: Array, last: Array | None, count: int) -> Array:
    """The first ``count`` frames of ``chunk``; where it has fewer, its last one (or ``last``) stands still."""
    if len(chunk) >= count:
        return chunk[:count]
    still = chunk[-1] if len(chunk) else last
    if still is None:
        raise ValueError("a clip without any frame cannot be put beside others")
    rest = np.broadcast_to(still, (count - len(chunk), *still.shape))
    return np.concatenate([chunk, rest]) if len(chunk) else rest
