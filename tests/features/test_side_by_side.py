"""Chunks of several clips put together: the frames that all have, and a few behind the end of the shortest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.features.side_by_side import SideBySide


def joined(lengths, chunk, tail):
    """The numbers of the frames of each clip, in the order in which they were put together."""
    clips = [np.arange(length, dtype=np.uint8)[:, None, None, None] for length in lengths]
    together, found = SideBySide(tail), []
    buffers = [np.empty((chunk, 1, 1, 1), np.uint8) for _ in clips]
    for start in range(0, max(lengths), chunk):
        parts = []
        for clip, buffer in zip(clips, buffers, strict=True):  # one memory for all chunks, as decoders have
            part = clip[start : start + chunk]
            buffer[: len(part)] = part
            parts.append(buffer[: len(part)] if len(part) else ())
        frames = together.join(parts)
        if frames is not None:
            found.append(frames[..., 0, 0, 0].copy())
        for buffer in buffers:
            buffer[:] = 99
    return np.concatenate(found).T.tolist()


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 9))
def test_by_definition(lengths, chunk, tail):
    count = min(max(lengths), min(lengths) + tail)
    expected = [[min(frame, length - 1) for frame in range(count)] for length in lengths]
    assert joined(lengths, chunk, tail) == expected


def test_a_clip_without_a_frame_has_none_to_repeat():
    with pytest.raises(ValueError, match="without any frame"):
        SideBySide(3).join([np.zeros((2, 1, 1, 3), np.uint8), ()])
    assert SideBySide().join([np.zeros((2, 1, 1, 3), np.uint8), ()]) is None
