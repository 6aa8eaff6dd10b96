"""Chosen frames: the same ones whatever the header claims, with memory for what was asked only."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gen_eval.media import All, AtRate, Explicit, Sampling, Uniform, read_clip
from gen_eval.records import Flag

SAMPLINGS = [
    All(),
    All(5),
    Uniform(1),
    Uniform(5),
    Uniform(40),
    AtRate(2),
    AtRate(7, 4),
    AtRate(60),
    Explicit([7, 0, 7]),
]


@pytest.mark.parametrize("name", ["fast.mp4", "vfr.mp4", "cut.mp4", "rotated.mp4", "unknown.mkv"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("isolated", [True, False])
def test_chosen_frames_are_those_of_the_whole_clip(
    clips: Path,
    encode: Callable[..., Path],
    noise: Callable[..., np.ndarray],
    name: str,
    sampling: Sampling,
    isolated: bool,
) -> None:
    path = clips / name
    if name == "unknown.mkv" and not path.exists():
        encode(path, noise(24))  # a header without a count
    whole = read_clip(path)
    indices = sampling.choose(whole.times)
    clip = read_clip(path, sampling, isolated=isolated)
    assert clip.indices.tolist() == indices.tolist()
    assert np.array_equal(clip.frames, whole.frames[indices])
    assert clip.times.tolist() == whole.times[indices].tolist()
    assert len(clip) == len(indices)
    assert (Flag.FRAMES_REPEATED in clip.flags) == (len(set(indices.tolist())) < len(indices))
    if not isinstance(sampling, All | Explicit):
        assert clip.detail == whole.detail
        assert set(whole.flags) <= set(clip.flags)


def test_samplings_of_the_variable_clip(clips: Path) -> None:
    clip = read_clip(clips / "vfr.mp4", AtRate(2))
    assert clip.indices.tolist() == [0, 12, 16, 20]
    assert clip.times.tolist() == pytest.approx([0.0, 0.48, 0.96, 1.44])


def test_an_index_past_the_end_names_the_count(clips: Path) -> None:
    for isolated in (True, False):
        with pytest.raises(ValueError, match=r"frame 11 .* has 11 frames"):
            read_clip(clips / "cut.mp4", Explicit([3, 11]), isolated=isolated)


def test_what_is_not_needed_is_not_decoded(clips: Path) -> None:
    assert read_clip(clips / "fast.mp4", Explicit([3])).detail["decoded_frames"] == 4
    assert read_clip(clips / "fast.mp4", All(3)).detail["decoded_frames"] == 3


def test_a_frame_of_its_own(clips: Path) -> None:
    first, second = (read_clip(clips / "fast.mp4", Uniform(2)).frames for _ in range(2))
    first[:] = 0
    assert second.any()


MEASURE = """
    import re, resource, sys
    from pathlib import Path
    from gen_eval.media import Uniform, open_clip, read_clip
    from gen_eval.media.process import DEFAULT_POOL

    def peak(pid):  # MiB
        return int(re.search(r"VmHWM:\\s+(\\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024

    peaks = []
    for path in sys.argv[1:]:
        with open_clip(path) as stream:
            while len(stream.read(16)[0]):
                pass
        for isolated in (True, False):
            read_clip(path, Uniform(8), isolated=isolated)
        (child,) = DEFAULT_POOL._resting
        peaks.append((peak("self"), peak(child.process.pid)))
    print(*(late - early for early, late in zip(*peaks)))
"""


def test_memory_does_not_grow_with_the_length_of_the_clip(tmp_path: Path, encode: Callable[..., Path]) -> None:
    ramp = np.add.outer(np.arange(256), np.arange(256))[..., None] + np.zeros(3, int)
    pictures = [((ramp + 4 * index) % 256).astype(np.uint8) for index in range(60)]
    paths = [
        encode(tmp_path / f"{len(frames)}.mp4", frames, options={"preset": "ultrafast", "qp": "40"})
        for frames in (pictures, pictures * 10)
    ]
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), *map(str, paths)],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    ours, theirs = map(float, result.stdout.split())
    assert ours < 20  # all frames would be 113 MiB
    assert theirs < 20
