"""Ours and a plain reference in alternation: ratio, median, spread, peak memory.

Times on a shared machine wander, so the two are run in turn and a ratio is taken in each round; the median of those
ratios is what is reported, with the least and the largest beside it. Steps of one thread are timed by the processor
time they take, which other work on the machine disturbs less than the clock on the wall; that one is there on request.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2

RESULTS = Path(__file__).parent / "results"

Step = Callable[[], Any]


@dataclass(frozen=True)
class Comparison:
    """What one bench found.

    Attributes:
        name: what was run.
        ratio: median over rounds of plain time / our time.
        ratios: the ratio of each round.
        ours: our seconds, each round.
        plain: the reference's seconds, each round.
        ours_peak: memory above the start at our peak, MiB; ``None`` where it cannot be read.
        plain_peak: likewise of the reference.
        target: least ratio that is wanted, ``None`` for information only.
        note: what the plain reference does.
    """

    name: str
    ratio: float
    ratios: tuple[float, ...]
    ours: tuple[float, ...]
    plain: tuple[float, ...]
    ours_peak: float | None = None
    plain_peak: float | None = None
    target: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the ratio reaches the target."""
        return self.target is None or self.ratio >= self.target


def single_thread() -> None:
    """One thread for OpenCV; NumPy's is set by the environment when the package ``bench`` is imported."""
    cv2.setNumThreads(1)


def seconds(step: Step, *, wall: bool = False) -> float:
    """Time of one call: of this process's processors, or on the wall."""
    clock = time.perf_counter if wall else time.process_time
    start = clock()
    step()
    return clock() - start


def compare(
    name: str,
    ours: Step,
    plain: Step,
    *,
    rounds: int,
    target: float | None = None,
    note: str = "",
    wall: bool = False,
    plain_share: float = 1.0,
) -> Comparison:
    """Run both once untimed for memory, then ``rounds`` times in alternation, the first in turn changing.

    Args:
        name: what is run.
        ours: our step.
        plain: the reference's step.
        rounds: timed runs of each.
        target: least ratio that is wanted.
        note: what the reference does.
        wall: time on the wall and not of the processor (steps that wait or start processes).
        plain_share: share of the work that the reference does, 0..1; its time is divided by it.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be 1 or more, not {rounds}")
    single_thread()
    peaks = peak_memory(ours), peak_memory(plain)
    own: list[float] = []
    other: list[float] = []
    for turn in range(rounds):
        for step, into in ((ours, own), (plain, other)) if turn % 2 == 0 else ((plain, other), (ours, own)):
            into.append(seconds(step, wall=wall) / (plain_share if step is plain else 1.0))
    ratios = tuple(slow / fast for slow, fast in zip(other, own, strict=True))
    return Comparison(name, statistics.median(ratios), ratios, tuple(own), tuple(other), *peaks, target, note)


def peak_memory(step: Step) -> float | None:
    """MiB of resident memory that ``step`` takes at its peak above what is there before it.

    Linux can forget the peak of a process; elsewhere nothing comparable can be had and ``None`` is returned.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        step()
        return None
    before = _resident("VmRSS")
    step()
    return (_resident("VmHWM") - before) / 1024


def _resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )
    packages = ("numpy", "scipy", "opencv-python-headless")
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(),
            "packages": {name: version(name) for name in packages}}  # fmt: skip


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []


def table(results: Iterable[Comparison]) -> str:
    """The results as lines of text."""
    rows: list[tuple[str, ...]] = [("", "ratio", "least..largest", "ours", "plain", "MiB ours", "MiB plain", "target")]
    for one in results:
        spread = f"{min(one.ratios):.1f}..{max(one.ratios):.1f}"
        target = "" if one.target is None else f">= {one.target:g} {'ok' if one.met else 'MISSED'}"
        times = [f"{statistics.median(values) * 1e3:.1f} ms" for values in (one.ours, one.plain)]
        peaks = ["-" if peak is None else f"{peak:.0f}" for peak in (one.ours_peak, one.plain_peak)]
        rows.append((one.name, f"{one.ratio:.1f}", spread, *times, *peaks, target))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def save(name: str, results: Sequence[Comparison], **more: Any) -> Path:
    """Write the results to ``bench/results/NAME.json``."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    document = {"machine": machine(), "results": [{**asdict(one), "met": one.met} for one in results], **more}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path
