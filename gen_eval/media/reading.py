"""Reading chosen frames of a clip into memory, with memory for those frames only."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.media.process import DecoderPool
from gen_eval.media.sampling import All, Explicit, Indices, Sampling
from gen_eval.media.stream import ClipInfo, ClipStream, Frames, open_clip
from gen_eval.records import Flag, ItemError, Reason

_CHUNK = 8
_MOST_GUESSED = 1_000_000
_MOST_TRUSTED = 4 * 2**30


@dataclass(frozen=True)
class Clip:
    """Frames of one clip, in memory.

    Attributes:
        frames: (k, H, W, 3) uint8 RGB.
        times: (k,) seconds from the clip's first frame.
        indices: (k,) 0-based positions of these frames among the decodable ones.
        info: what the header and the first frame say.
        flags: what is unusual; ``frames_repeated`` when a frame was taken more than once.
        detail: counts and sources for a row (JSON values only).
    """

    frames: Frames
    times: NDArray[np.float64]
    indices: Indices
    info: ClipInfo
    flags: tuple[Flag, ...]
    detail: dict[str, Any]

    def __len__(self) -> int:
        return len(self.frames)


def read_clip(
    path: str | os.PathLike[str],
    sampling: Sampling = All(),  # noqa: B008 - immutable
    *,
    timeout: float | None = None,
    isolated: bool = True,
    pool: DecoderPool | None = None,
) -> Clip:
    """Decode ``path`` and keep the frames that ``sampling`` chooses by their presentation times.

    ``Uniform`` and ``AtRate`` need the times of all decodable frames. They are guessed from the header, and when the
    whole clip has been decoded and the guess was wrong, a second pass fetches the right frames: the result does not
    depend on what the header claims. ``All(limit)`` and ``Explicit`` stop at the last frame that they need, so what
    lies behind it is neither counted nor flagged.

    Raises:
        ItemError: see :func:`gen_eval.media.open_clip` and ``ClipStream.read``; ``undecodable`` also when the time
            stamps are so far apart that ``AtRate`` refuses them.
        ValueError: ``Explicit`` names a frame that the clip does not have.
    """
    arguments: dict[str, Any] = {"timeout": timeout, "isolated": isolated, "pool": pool}
    with open_clip(path, **arguments) as stream:
        guess, limit = _guess(stream.info, sampling)
        stream.select(None if guess is None else guess.tolist(), limit)
        frames = _collect(stream, None if guess is None else len(guess))
        indices = _choose(sampling, stream)
        kept = np.arange(len(frames)) if guess is None else guess[: len(frames)]
    if not np.isin(indices, kept).all():
        kept = np.unique(indices)
        with open_clip(path, **arguments) as again:
            again.select(kept.tolist(), int(kept[-1]) + 1)
            frames = _collect(again, len(kept))
    order = np.searchsorted(kept, indices)
    repeated = (Flag.FRAMES_REPEATED,) if len(np.unique(indices)) < len(indices) else ()
    return Clip(
        frames=frames if np.array_equal(order, np.arange(len(frames))) else frames[order],
        times=stream.times[indices],
        indices=indices,
        info=stream.info,
        flags=stream.flags + repeated,
        detail=stream.detail(),
    )


def _guess(info: ClipInfo, sampling: Sampling) -> tuple[Indices | None, int | None]:
    """Frames that are probably wanted (ascending, each once; ``None``: all), and how many must be decoded for them."""
    if isinstance(sampling, All):
        return None, sampling.limit
    if isinstance(sampling, Explicit):
        wanted = np.unique(np.array(sampling.indices, np.int64))
        return wanted, int(wanted[-1]) + 1
    count = info.declared_frames
    if count is None and info.duration and info.fps:
        count = round(info.duration * info.fps)
    if not count or not info.fps or count > _MOST_GUESSED:
        return np.empty(0, np.int64), None
    try:
        return np.unique(sampling.choose(np.arange(count) / info.fps)), None
    except ValueError:  # a header of absurd length; the real times decide
        return np.empty(0, np.int64), None


def _choose(sampling: Sampling, stream: ClipStream) -> Indices:
    try:
        return sampling.choose(stream.times)
    except ValueError as error:
        if isinstance(sampling, Explicit):
            raise  # the caller asked for a frame that is not there
        raise ItemError(Reason.UNDECODABLE, f"its time stamps cannot be sampled: {error}", stream.detail()) from error


def _collect(stream: ClipStream, expected: int | None) -> Frames:
    """All frames that ``stream`` gives, in an array of their own."""
    shape = (stream.info.height, stream.info.width, 3)
    if expected is None:  # memory that is never written to costs nothing, but a header may claim anything
        expected = min(stream.info.declared_frames or _CHUNK, max(_CHUNK, _MOST_TRUSTED // math.prod(shape)))
    kept = np.empty((expected, *shape), np.uint8)
    count = 0
    while True:
        frames, _ = stream.read(_CHUNK)
        if count + len(frames) > len(kept):
            kept = np.concatenate([kept[:count], np.empty((max(count, _CHUNK), *shape), np.uint8)])
        kept[count : count + len(frames)] = frames
        count += len(frames)
        if len(frames) < _CHUNK:
            return kept[:count]
