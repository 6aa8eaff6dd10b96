"""Reading chunk by chunk: any chunk size gives the same frames, and the chunk handed out stays valid until the next."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gen_eval.media import DecoderPool, open_clip, read_clip
from gen_eval.media import sources as sources_module
from gen_eval.records import Flag

Noise = Callable[..., np.ndarray]


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    isolated=st.booleans(),
    chunk=st.none() | st.integers(1, 30),
)
def test_any_sequence_of_reads_gives_the_same_frames(
    clips: Path, counts: list[int], isolated: bool, chunk: int | None
) -> None:
    whole = read_clip(clips / "fast.mp4", isolated=False)
    position = 0
    with open_clip(clips / "fast.mp4", isolated=isolated, chunk=chunk) as stream:
        for count in [*counts, 30, 1]:
            frames, times = stream.read(count)
            upto = min(position + count, 24)
            assert len(frames) == len(times) == upto - position
            assert frames.dtype == np.uint8
            assert frames.flags.c_contiguous
            assert np.array_equal(frames, whole.frames[position:upto])
            assert times.tolist() == whole.times[position:upto].tolist()
            position = upto
        assert stream.ended
        assert stream.decoded_frames == 24


@pytest.mark.parametrize("isolated", [True, False])
def test_frames_are_valid_until_the_next_read_and_after_closing(clips: Path, isolated: bool, pool: DecoderPool) -> None:
    whole = read_clip(clips / "fast.mp4", isolated=False).frames
    with open_clip(clips / "fast.mp4", isolated=isolated, pool=pool) as stream:
        stream.read(12)
        frames, _ = stream.read(12)
        assert np.array_equal(frames, whole[12:])
    kept = np.asarray(memoryview(frames))  # held by something else than the array that was given
    del frames
    for _ in range(3):
        read_clip(clips / "rotated.mp4", isolated=isolated, pool=pool)  # by the same process
    assert np.array_equal(kept, whole[12:])


def test_memory_is_used_again_when_nobody_looks_at_it(clips: Path, pool: DecoderPool) -> None:
    addresses = []
    for _ in range(3):
        with open_clip(clips / "fast.mp4", pool=pool) as stream:
            addresses.append(stream.read(8)[0].ctypes.data)
    assert len(set(addresses)) == 1
    (process,) = pool._resting
    assert process.free_memory() is not None


def test_chunks_too_large_for_memory_are_put_together(clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "_MOST_BYTES", 3 * 64 * 48 * 5)
    for isolated in (True, False):
        with open_clip(clips / "fast.mp4", isolated=isolated) as stream:
            frames = [stream.read(count)[0].copy() for count in (12, 7, 100)]
        assert [len(part) for part in frames] == [12, 7, 5]
        assert np.array_equal(np.concatenate(frames), read_clip(clips / "fast.mp4").frames)


def test_limit_ends_the_clip_without_a_flag(clips: Path) -> None:
    for isolated in (True, False):
        with open_clip(clips / "cut.mp4", limit=9, isolated=isolated) as stream:
            assert len(stream.read(100)[0]) == 9
            assert len(stream.read(100)[0]) == 0
            assert stream.flags == ()
            assert stream.detail()["decoded_frames"] == 9
        with open_clip(clips / "cut.mp4", limit=12, isolated=isolated) as stream:
            assert len(stream.read(100)[0]) == 11
            assert stream.flags == (Flag.TRUNCATED,)


def test_flags_of_the_end_come_at_the_end(clips: Path) -> None:
    with open_clip(clips / "cut.mp4") as stream:
        stream.read(2)
        assert stream.flags == ()
        stream.read(20)
        assert stream.flags == (Flag.TRUNCATED,)


def test_bad_arguments(clips: Path) -> None:
    for arguments in ({"limit": 0}, {"timeout": 0.0}, {"timeout": float("nan")}, {"chunk": -1}):
        with pytest.raises(ValueError, match="must be above 0"):
            open_clip(clips / "fast.mp4", **arguments)  # type: ignore[arg-type]
    with open_clip(clips / "fast.mp4") as stream:
        with pytest.raises(ValueError, match="at least one frame"):
            stream.read(0)
        stream.read(1)
        with pytest.raises(ValueError, match="before the first read"):
            stream.select([1])
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)
    stream.close()


def test_a_stream_left_open_warns_and_gives_its_decoder_back(clips: Path) -> None:
    streams = [open_clip(clips / "fast.mp4")]
    with pytest.warns(ResourceWarning, match="not closed"):
        streams.clear()


@pytest.mark.parametrize("isolated", [True, False])
def test_no_descriptor_is_left_open(clips: Path, tmp_path: Path, isolated: bool) -> None:
    (tmp_path / "text.mp4").write_text("no video")

    def use() -> None:
        frames = read_clip(clips / "rotated.mp4", isolated=isolated).frames
        with open_clip(clips / "cut.mp4", isolated=isolated) as stream:
            stream.read(3)
            stream.read(9)
        for name in ("text.mp4", "absent.mp4"):
            with pytest.raises(Exception, match=name):
                open_clip(tmp_path / name, isolated=isolated)
        assert len(frames) == 24

    use()
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        use()
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
