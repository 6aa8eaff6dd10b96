"""Memory through the public door: it grows neither with the length of a clip nor with the number of videos."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from bench import stand_in
from gen_eval.media import write_clip, write_image

SCORE = """
import sys
from pathlib import Path
from api.services.preparation import ScoreRequest
from api.services.scoring import Execution, score

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024

home = Path(sys.argv[1])
data = next((home / name for name in ("data", "samples.jsonl") if (home / name).exists()), None)
track = "control" if (home / "data").is_dir() else "quality"
Path("/proc/self/clear_refs").write_text("5")
request = ScoreRequest(track, home / "videos", data=data, metrics=tuple(sys.argv[2:]) or None)
score(request, home / "run", Execution(workers=1))
print(peak())
"""


def peak_mib(home, *metrics, environment=None):
    variables = os.environ | (environment or {})
    command = [sys.executable, "-c", SCORE, home, *metrics]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=variables)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the high water of a process is read from /proc")


def test_ten_times_the_length_takes_no_more_memory(tmp_path):
    """H13 without networks: 40 and 400 frames of 256x256, which are 68 MiB more."""
    peaks = []
    for frames in (40, 400):
        videos = tmp_path / str(frames) / "videos"
        videos.mkdir(parents=True)
        ground = np.random.default_rng(0).integers(0, 256, (4, 256, 256, 3), dtype=np.uint8)
        write_clip(videos / "a__0.mp4", (np.roll(ground, k, axis=2) for k in range(frames // 4)), 24.0)
        peaks.append(peak_mib(tmp_path / str(frames)))
    assert peaks[1] - peaks[0] < 40


def test_with_networks_five_times_the_length_takes_no_more_memory(tmp_path):
    """The quality dimensions that remember frames, choose them or embed each, with small networks."""
    asked = {
        "subject_consistency": ["dino_vitb16"],
        "background_consistency": ["clip_vitb32_visual"],
        "aesthetic_quality": ["clip_vitl14_visual", "aesthetic_head"],
        "i2v_background": ["dreamsim_ensemble"],
        "overall_consistency": ["viclip"],
        "motion_smoothness": ["amt_s"],
    }
    names = [name for needed in asked.values() for name in needed]
    environment = stand_in.write(tmp_path / "networks", names, small=True) | {"GEN_EVAL_THREADS": "1"}
    ground = np.random.default_rng(0).integers(0, 256, (4, 128, 128, 3), dtype=np.uint8)
    peaks = []
    for frames in (8, 40):
        home = tmp_path / str(frames)
        (home / "videos").mkdir(parents=True)
        write_clip(home / "videos" / "a__0.mp4", (np.roll(ground, k, axis=2) for k in range(frames // 4)), 24.0)
        write_image(home / "a.png", ground[0])
        sample = {"id": "a", "prompt": "squares roll", "image_name": "a.png"}
        (home / "samples.jsonl").write_text(json.dumps(sample))
        peaks.append(peak_mib(home, *asked, environment=environment))
        with closing(sqlite3.connect(home / "run" / "scores.sqlite")) as store:
            statuses = {status for (status,) in store.execute("SELECT DISTINCT status FROM scores")}
        assert statuses == {"ok"}
    assert peaks[1] - peaks[0] < 25


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
