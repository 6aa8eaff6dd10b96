"""Looking at benchmark data before it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from api.services.manifest_entries import Progress, silent
from control_metrics.segmentation_file import read_segmentation
from control_metrics.signals import open_depth
from gen_eval.data import Benchmark, detect_layout, load_benchmark
from gen_eval.media import probe, read_image
from gen_eval.records import ItemError, Sample
from gen_eval.records.files import is_file

_FILES = ("reference", "condition_image", "depth", "masks")
_DEPTH_FRAMES = 16


def _load(data: Path, layout: str | None) -> Benchmark:
    chosen = layout or detect_layout(data)
    track = "quality" if chosen == "pai-g" else "control"
    return load_benchmark(data, videos=data, track=track, layout=chosen)


def describe(data: Path, *, layout: str | None = None) -> dict[str, Any]:
    """Samples, domains, and which files each sample has; nothing is opened but the index files.

    Raises:
        InputError: ``data`` is no benchmark data.
    """
    benchmark = _load(data, layout)
    has = {name: sum(_there(getattr(sample, name)) for sample in benchmark.samples) for name in _FILES}
    has["prompt"] = sum(sample.prompt is not None for sample in benchmark.samples)
    has["all six captions"] = sum(len(sample.captions) == 6 for sample in benchmark.samples)
    controls = Counter(name for sample in benchmark.samples for name in sample.controls)
    has |= {f"control {name}": count for name, count in sorted(controls.items())}
    domains = Counter(sample.domain or "unknown_domain" for sample in benchmark.samples)
    return {
        "data": str(data),
        "layout": benchmark.layout,
        "samples": len(benchmark.samples),
        "has": has,
        "domains": dict(sorted(domains.items())),
        "problems": [
            {"where": one.where, "reason": str(one.reason), "message": one.message} for one in benchmark.rejected
        ],
    }


def verify(data: Path, *, layout: str | None = None, progress: Progress = silent) -> dict[str, Any]:
    """:func:`describe`, and every file of every sample opened: videos, control signals, pictures, depth maps, masks.

    Raises:
        InputError: ``data`` is no benchmark data.
    """
    found = describe(data, layout=layout)
    samples = _load(data, layout).samples
    for done, sample in enumerate(samples, start=1):
        found["problems"] += _broken(sample)
        progress("opening files", done, len(samples))
    return found


def _broken(sample: Sample) -> list[dict[str, str]]:
    files: list[tuple[str, Callable[[Path], object], Path | None]] = [
        ("reference", probe, sample.reference),
        ("condition_image", read_image, sample.condition_image),
        ("depth", _open_depth, sample.depth),
        ("masks", read_segmentation, sample.masks),
        *((f"control {name}", probe, path) for name, path in sorted(sample.controls.items())),
    ]
    problems = []
    for name, opened, path in files:
        if path is None:
            continue
        try:
            opened(path)
        except ItemError as error:
            problems.append({"where": f"{sample.id} {name}", "reason": str(error.reason), "message": error.message})
    return problems


def _open_depth(path: Path) -> None:
    with open_depth(path) as maps:
        for _ in maps.chunks(_DEPTH_FRAMES):
            pass


def _there(path: Path | None) -> bool:
    return path is not None and is_file(path)
