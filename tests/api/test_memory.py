"""Memory through the public door: it grows neither with the length of a clip nor with the number of videos."""

import subprocess
import sys

import numpy as np
import pytest

from gen_eval.media import write_clip

SCORE = """
import sys
from pathlib import Path
from api.services.preparation import ScoreRequest
from api.services.scoring import Execution, score

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024

home = Path(sys.argv[1])
data = home / "data" if (home / "data").is_dir() else None
track = "control" if data else "quality"
Path("/proc/self/clear_refs").write_text("5")
score(ScoreRequest(track, home / "videos", data=data), home / "run", Execution(workers=1))
print(peak())
"""


def peak_mib(home):
    done = subprocess.run([sys.executable, "-c", SCORE, home], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the high water of a process is read from /proc")


def test_ten_times_the_length_takes_no_more_memory(tmp_path):
    """H13: all quality metrics on 60 and on 600 frames of 256x256."""
    peaks = []
    for frames in (60, 600):
        videos = tmp_path / str(frames) / "videos"
        videos.mkdir(parents=True)
        ground = np.random.default_rng(0).integers(0, 256, (4, 256, 256, 3), dtype=np.uint8)
        write_clip(videos / "a__0.mp4", (np.roll(ground, k, axis=2) for k in range(frames // 4)), 24.0)
        peaks.append(peak_mib(tmp_path / str(frames)))
    assert peaks[1] - peaks[0] < 40


def test_ten_times_the_videos_take_no_more_memory(tmp_path, make_clip):
    peaks = []
    for count in (3, 30):
        home = tmp_path / str(count)
        for name in ("videos", "data"):
            (home / name).mkdir(parents=True)
        for number in range(count):
            write_clip(home / "data" / f"t{number}.mp4", make_clip(number, 3), 24.0)
            write_clip(home / "videos" / f"t{number}__0.mp4", make_clip(number + 1, 3), 24.0)
        peaks.append(peak_mib(home))
    assert peaks[1] - peaks[0] < 20
