"""Whole jobs: six captions of a task, memory by length and videos, 100,000 scores: ``python -m bench.pipeline``."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from api.services.planning import make_plan
from api.services.preparation import Prepared
from api.services.request import ScoreRequest
from api.services.results import RunResults
from api.services.scoring import Execution, pending, score
from bench.captions import six_captions
from bench.kernels import clip
from bench.measure import save, table
from gen_eval.data import Benchmark
from gen_eval.media import write_clip
from gen_eval.records import Generation, Group, Sample, Score, Status
from gen_eval.records.run import MANIFEST_FORMAT, RunFolder

_SCORES = (10_000, 100_000)
_LENGTHS = (60, 600)
_COUNTS = (4, 40)


# --- memory --------------------------------------------------------------------------------------------------------


def _peak_of(work: Callable[[], Any], into: Any) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # what the parent had before it started this process is no peak
    work()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    into.put((_high_water("self"), sum(_high_water(child) for child in children)))


def _high_water(process: str) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def peak_mib(work: Callable[[], Any]) -> tuple[float, float]:
    """Peak resident memory of ``work`` in a process of its own, and of all decoders that it started, MiB."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_peak_of, args=(work, queue))
    process.start()
    found: tuple[float, float] = queue.get()
    process.join()
    return found


class Scored:
    """Scoring a folder, as a picklable piece of work."""

    def __init__(self, folder: Path, track: Any) -> None:
        self.folder, self.track = folder, track

    def __call__(self) -> None:
        """Score from the beginning in this process."""
        out = self.folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        data = self.folder / "data" if self.track == "control" else None
        score(ScoreRequest(self.track, self.folder / "videos", data=data), out, Execution(workers=1))


def memory_by_length(folder: Path) -> dict[str, Any]:
    """Peak for 60 and for 600 frames of 256x256, all quality metrics (H13)."""
    found = {}
    for frames in _LENGTHS:
        home = folder / f"length{frames}"
        (home / "videos").mkdir(parents=True)
        write_clip(home / "videos" / "a__0.mp4", _long_clip(frames), 24.0)
        found[str(frames)] = peak_mib(Scored(home, "quality"))
    return found


def _long_clip(frames: int) -> Any:
    ground = clip(8, 256, 256, seed=3)
    return (np.roll(ground, start, axis=2) for start in range(0, frames, 8))


def memory_by_videos(folder: Path) -> dict[str, Any]:
    """Peak for 4 and for 40 videos of 128x128, 9 frames, against references."""
    found = {}
    for count in _COUNTS:
        home = folder / f"videos{count}"
        for sub in ("videos", "data"):
            (home / sub).mkdir(parents=True)
        for number in range(count):
            write_clip(home / "data" / f"t{number}.mp4", clip(9, 128, 128, seed=number), 24.0)
            write_clip(home / "videos" / f"t{number}__0.mp4", clip(9, 128, 128, seed=number + 1), 24.0)
        found[str(count)] = peak_mib(Scored(home, "control"))
    return found


# --- many scores ---------------------------------------------------------------------------------------------------


def many_scores(folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds to see that nothing is left to do, and to aggregate, by number of scores."""
    times: dict[int, list[tuple[float, float]]] = {count: [] for count in _SCORES}
    runs = {count: _filled_run(folder / f"scores{count}", count) for count in _SCORES}
    for _ in range(rounds):
        for count, (path, prepared) in runs.items():
            times[count].append(_resume_and_aggregate(path, prepared))
    middle = {
        str(count): {
            "schedule and resume": statistics.median(one for one, _ in found),
            "aggregate": statistics.median(two for _, two in found),
            "both": statistics.median(one + two for one, two in found),
        }
        for count, found in times.items()
    }
    few, many = (middle[str(count)]["both"] for count in _SCORES)
    return {**middle, "growth": many / few, "target": "<= 11"}


def _resume_and_aggregate(path: Path, prepared: Prepared) -> tuple[float, float]:
    started = time.process_time()
    with RunFolder.create(path, prepared.manifest) as run:
        if left := pending(run, prepared, list(prepared.groups)):
            raise SystemExit(f"{len(left)} groups are left to do in a finished run")
    scheduled = time.process_time()
    results = RunResults.read(path)
    for table_ in (results.aggregate, *results.groups.values()):
        for protocols in table_.values():
            for one in protocols.values():
                if one.main.n != one.main.N:
                    raise SystemExit("a finished run has gaps")
    return scheduled - started, time.process_time() - scheduled


def _filled_run(path: Path, count: int) -> tuple[Path, Prepared]:
    plan = make_plan(ScoreRequest("quality", path))
    protocols = sum(len(one.protocols) for one in plan.measurements)
    samples = [Sample(f"physics_{number:06d}", domain="physics") for number in range(count // protocols)]
    groups = tuple(
        Group("bench", one, (Generation(one.id, "0", Path(f"{one.id}__0.mp4"), "0" * 64),)) for one in samples
    )
    metrics: dict[str, Any] = {}
    for one in plan.measurements:
        entry = metrics.setdefault(one.metric.name, {"version": one.metric.version, "protocols": {}})
        entry["protocols"].update({protocol.name: protocol.digest for protocol in one.protocols})
    manifest = {
        "format": MANIFEST_FORMAT, "model": "bench", "track": "quality", "metrics": metrics, "protocol": "corrected",
        "preset": {}, "environment": {}, "chunk": 8, "rejected": [], "unknown_videos": [], "not_asked_videos": [],
        "samples": [{"id": one.id, "domain": one.domain, "prompt": None, "members": [{"id": "0"}]} for one in samples],
    }  # fmt: skip
    prepared = Prepared(Benchmark("videos-only", path, tuple(samples)), groups, plan, manifest)
    rng = np.random.default_rng(0)
    with RunFolder.create(path, manifest) as run:
        run.write(
            Score(*key, value=float(rng.random()), status=Status.OK, parameters=protocol.digest)
            for group in groups
            for key, _, protocol in prepared.expected(group)
        )
    return path, prepared


def limits(length: dict[str, Any], videos: dict[str, Any], scores: dict[str, Any]) -> list[tuple[str, float, float]]:
    """What was measured, beside the most that it may be: MiB of growth, and growth of the time."""
    few, many = (length[str(frames)][0] for frames in _LENGTHS)
    some, more = (videos[str(count)][0] for count in _COUNTS)
    return [
        (f"MiB more for {_LENGTHS[1]} frames than for {_LENGTHS[0]}", many - few, 40),
        (f"MiB more for {_COUNTS[1]} videos than for {_COUNTS[0]}", more - some, 10),
        ("times as long for 100,000 scores as for 10,000", scores["growth"], 11),
    ]


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print the tables and write ``bench/results/pipeline.json``; whether every target was met.

    The ratio of the six captions does not depend on the number of frames; ``--frames 49`` takes seven times as long.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=7, help="frames of the six captions (default 7)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of alternation (default 3)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        length, videos = memory_by_length(folder), memory_by_videos(folder)
        scores = many_scores(folder, options.rounds)
        results = [six_captions(folder, options.frames, options.rounds)]
    print(table(results))
    for what, found in (("frames", length), ("videos", videos)):
        for number, (own, decoders) in found.items():
            print(f"peak memory, {number:>3} {what}: {own:.0f} MiB, decoders {decoders:.0f} MiB")
    for count in _SCORES:
        print(f"{count:>7,} scores: " + ", ".join(f"{key} {value:.2f} s" for key, value in scores[str(count)].items()))
    checked = limits(length, videos, scores)
    for what_, value, most in checked:
        print(f"{value:.1f} {what_} (at most {most:g}: {'ok' if value <= most else 'MISSED'})")
    save("pipeline", results, memory={"by_length": length, "by_videos": videos}, scores=scores)
    return all(one.met for one in results) and all(value <= most for _, value, most in checked)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
