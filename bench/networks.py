"""The eight quality dimensions, full-size networks: one pass against a pass for each dimension.

    python -m bench.networks [--frames 49] [--size 832x480] [--dtypes float32,bfloat16] [--device cpu] [--threads 2]

Both sides ask the same networks, loaded before the clock starts, so memory is what the passes take above them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from api.services.planning import load_metric
from bench import stand_in
from bench.kernels import clip
from bench.measure import RESULTS, machine, peak_memory
from gen_eval.execution.local import limit_threads
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import open_clip, write_clip, write_image
from gen_eval.networks.placement import Placement, placed
from gen_eval.protocols import Preset, load_preset, load_protocol
from gen_eval.records import Generation, Group, Sample
from gen_eval.settings import settings

_PROMPT = "A robotic arm lifts a red cube from a workbench and puts it down beside two blue cylinders."
_CHUNK = 8
_LIMITS = {"prepare": 0.3, "float32": 0.95, "bfloat16": 0.65}
"""Most that our time may be of the plain pass's in float32."""
_LIMIT_ON_DEVICE = 0.4
_DEVIATION = 1e-4


def plan_of(dimensions: Sequence[str], placement: Placement) -> Plan:
    """All dimensions under ``corrected``."""
    asked = [(load_metric(name), [load_protocol(name, "corrected")]) for name in dimensions]
    return replace(Plan.of(asked, load_preset("all-frames"), _CHUNK), placement=placement)


def group_of(folder: Path, frames: int, height: int, width: int) -> Group:
    """One sample with one video of moving texture."""
    pixels = clip(frames, height, width, seed=0)
    write_clip(folder / "s__0.mp4", pixels, 16.0)
    write_image(folder / "s.png", pixels[0])
    sample = Sample("s", prompt=_PROMPT, condition_image=folder / "s.png")
    return Group("bench", sample, (Generation("s", "0", folder / "s__0.mp4"),))


def prepare_once(group: Group, plan: Plan) -> None:
    """Decoding and every view of the plan, without networks."""
    from gen_eval.features.extraction import ChunkFeatures

    views = {
        feature.source
        for one in plan.measurements
        for feature in one.metric.member_features(one.measure)
        for feature in _with_sources(feature)
        if feature.source is not None and feature.source.name == "view"
    }
    (member,) = group.members
    assert member.path is not None
    with placed(plan.placement), open_clip(member.path, chunk=plan.chunk) as stream:
        while len(frames := stream.read(plan.chunk)[0]):
            chunk = ChunkFeatures(frames)
            for view in views:
                chunk[view]


def _with_sources(feature: Any) -> Iterator[Any]:
    while feature is not None:
        yield feature
        feature = feature.source


def seconds(step: Callable[[], Any]) -> float:
    """On the wall: decoders are processes of their own."""
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


@contextmanager
def stand_ins(folder: Path, names: list[str]) -> Iterator[None]:
    """Full-size networks with stand-in numbers in place of the published ones."""
    before = dict(os.environ)
    os.environ |= stand_in.write(folder, names, small=False)
    settings.cache_clear()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before
        settings.cache_clear()


def _load(plan: Plan) -> None:
    from gen_eval.networks.loading import loaded

    with placed(plan.placement):
        for name in plan.networks:
            loaded(name)


def ours(group: Group, plan: Plan) -> dict[str, float]:
    """Scores of one pass."""
    return {one.measurement.metric.name: float(one.result) for one in score_group(group, plan).outcomes}


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything that is measured, as JSON values."""
    import torch

    from bench import plain_quality

    limit_threads(options.threads)
    torch.set_num_threads(options.threads)
    width, height = map(int, options.size.split("x"))
    group = group_of(folder, options.frames, height, width)
    (member,) = group.members
    assert member.path is not None
    path, dimensions = member.path, list(plain_quality.DIMENSIONS)
    base = plan_of(dimensions, Placement(options.device))
    with stand_ins(folder, list(base.networks)):
        _load(base)
        # weights are mapped from their files and come into memory when they are first used: that is no side's memory
        score_group(group, replace(base, preset=Preset("warm-up", 3)))
        found: dict[str, Any] = {"prepare": _prepared(group, base, path), "dimensions": {}}
        with placed(base.placement), torch.inference_mode():
            plain: dict[str, float] = {}
            found["plain"] = {"peak_mib": peak_memory(lambda: plain.update(_plain(group, path, found["dimensions"])))}
        found["plain"]["seconds"] = sum(one["plain"] for one in found["dimensions"].values())
        for name in dimensions:
            alone = plan_of([name], base.placement)
            found["dimensions"][name]["ours_alone"] = seconds(partial(ours, group, alone))
        for dtype in options.dtypes.split(","):
            plan = plan_of(dimensions, Placement(options.device, dtype))
            _load(plan)
            found[dtype] = _one_pass(group, plan, plain, found["plain"]["seconds"])
    return found


def _prepared(group: Group, plan: Plan, path: Path) -> dict[str, float]:
    from bench import plain_quality

    own = min(seconds(lambda: prepare_once(group, plan)) for _ in range(3))
    other = min(seconds(lambda: [prepare(path) for prepare in plain_quality.PREPARE.values()]) for _ in range(3))
    return {"ours": own, "plain": other, "ratio": own / other}


def _plain(group: Group, path: Path, times: dict[str, Any]) -> dict[str, float]:
    from bench import plain_quality

    scores = {}
    for name, dimension in plain_quality.DIMENSIONS.items():
        started = time.perf_counter()
        scores[name] = dimension(path, group.sample)
        times[name] = {"plain": time.perf_counter() - started}
    return scores


def _one_pass(group: Group, plan: Plan, plain: dict[str, float], plain_seconds: float) -> dict[str, Any]:
    scores: dict[str, float] = {}
    took: list[float] = []
    peak = peak_memory(lambda: took.append(seconds(lambda: scores.update(ours(group, plan)))))
    deviations = {name: scores[name] - value for name, value in plain.items()}
    return {"seconds": took[0], "ratio": took[0] / plain_seconds, "peak_mib": peak, "deviations": deviations}


def limits(found: dict[str, Any], device: str) -> list[tuple[str, float, float]]:
    """What was measured beside the most that it may be."""
    checked = [("decoding and preprocessing, ours / plain", found["prepare"]["ratio"], _LIMITS["prepare"])]
    for dtype in ("float32", "bfloat16"):
        if dtype in found:
            most = _LIMITS[dtype] if device == "cpu" else _LIMIT_ON_DEVICE
            checked.append((f"all eight in {dtype}, ours / plain", found[dtype]["ratio"], most))
    if "float32" in found:
        one, plain = found["float32"], found["plain"]
        if one["peak_mib"] is not None and device == "cpu":
            checked.append(("peak memory above the networks, ours / plain", one["peak_mib"] / plain["peak_mib"], 1.0))
        largest = max(map(abs, one["deviations"].values()))
        checked.append(("largest deviation of a score in float32", largest, _DEVIATION))
    return checked


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print what was found and write ``bench/results/networks.json``; whether every target was met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=int, default=49, help="frames of the video (default 49)")
    parser.add_argument("--size", default="832x480", help="width x height (default 832x480)")
    parser.add_argument("--dtypes", default="float32,bfloat16", help="number formats of our pass")
    parser.add_argument("--device", default="cpu", help="where networks run (default cpu)")
    parser.add_argument("--threads", type=int, default=2, help="threads (default 2)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        found = measure(options, Path(name))
    for dimension, times in found["dimensions"].items():
        print(f"{dimension:24} plain {times['plain']:8.2f} s   ours alone {times['ours_alone']:8.2f} s")
    for dtype in options.dtypes.split(","):
        one = found[dtype]
        print(f"{dtype}: {one['seconds']:.1f} s of {found['plain']['seconds']:.1f} s; deviations: " + ", ".join(
            f"{name} {value:+.1e}" for name, value in one["deviations"].items()))  # fmt: skip
    print(f"peak above the networks: ours {found[options.dtypes.split(',')[0]]['peak_mib']}, "
          f"plain {found['plain']['peak_mib']} MiB")  # fmt: skip
    checked = limits(found, options.device)
    for what, value, most in checked:
        print(f"{what}: {value:.3g} (at most {most:g}: {'ok' if value <= most else 'MISSED'})")
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "arguments": vars(options), **found}
    (RESULTS / "networks.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return all(np.isfinite(value) and value <= most for _, value, most in checked)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
