"""Six captions of one task of PAI-Bench-C, all metrics without networks, against the public way of working.

The public code decodes, blurs and reads both sides again for each of the six captions; here the reference's side is
computed once.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco

from api.services.planning import load_metric
from bench import plain
from bench.kernels import clip
from bench.measure import Comparison, compare
from gen_eval.data.signal_files import write_depth, write_masks
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.protocols import load_preset, load_protocol
from gen_eval.records import Generation, Group, Sample

CAPTIONS = 6
METRICS = ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou")
_HEIGHT, _WIDTH = 480, 832
_OBJECTS = 6

Scores = list[dict[str, float]]


def six_captions(folder: Path, frames: int, rounds: int) -> Comparison:
    """All metrics without networks of six clips of one task, files and decoding included."""
    group = _task(folder, frames)
    protocols = [(load_metric(name), [load_protocol(name, "reference")]) for name in METRICS]
    plan = Plan.of(protocols, load_preset("121-frames"), 8)
    ours, other = _ours(group, plan), _plainly(group)
    for own, literal in zip(ours, other, strict=True):
        for name in METRICS:
            if not math.isclose(own[name], literal[name], abs_tol=1e-6):
                raise SystemExit(f"six captions: {name} is {own[name]} here and {literal[name]} by the plain reference")
    return compare(
        f"all without networks, six captions, {frames} frames {_WIDTH}x{_HEIGHT}",
        lambda: score_group(group, plan),
        lambda: _plainly(group),
        rounds=rounds,
        target=1 / 0.55,
        note="both sides decoded, filtered and read again for each caption, in one process; our decoders in their own",
        wall=True,
    )


def _task(folder: Path, frames: int) -> Group:
    """A task with its reference and six clips, each with depth maps and segmentation."""
    names = ["task", *(f"task__{k}" for k in range(CAPTIONS))]
    for seed, name in enumerate(names):
        write_clip(folder / f"{name}.mp4", clip(frames, _HEIGHT, _WIDTH, seed), 30.0)
        write_depth(folder / f"{name}.npz", _depth(frames, seed))
        write_masks(folder / f"{name}.masks.json", _objects(frames, seed))
    depth, masks = _signals(folder / "task")
    members = []
    for k, name in enumerate(names[1:]):
        own_depth, own_masks = _signals(folder / name)
        members.append(Generation("task", str(k), folder / f"{name}.mp4", depth=own_depth, masks=own_masks))
    sample = Sample("task", reference=folder / "task.mp4", depth=depth, masks=masks)
    return Group("bench", sample, tuple(members))


def _signals(path: Path) -> tuple[Path, Path]:
    """Files of depth maps and of segmentation."""
    return path.with_name(f"{path.name}.npz"), path.with_name(f"{path.name}.masks.json")


def _depth(frames: int, seed: int) -> NDArray[np.float32]:
    noise = np.random.default_rng(seed).random((frames, _HEIGHT // 16, _WIDTH // 16), dtype=np.float32)
    return np.stack([cv2.resize(one, (_WIDTH, _HEIGHT)) for one in noise]) + np.float32(0.1)


def _objects(frames: int, seed: int) -> list[tuple[str, NDArray[np.bool_]]]:
    """Boxes in four classes, a little elsewhere for each ``seed``."""
    found = []
    for number in range(_OBJECTS):
        mask = np.zeros((frames, _HEIGHT, _WIDTH), np.bool_)
        top, left = _HEIGHT * number // 8 + 6 * seed, _WIDTH * number // 8 + 6 * seed
        mask[:, top : top + _HEIGHT // 5, left : left + _WIDTH // 4] = True
        found.append((f"class {number % 4}", mask))
    return found


def _ours(group: Group, plan: Plan) -> Scores:
    found: dict[str, dict[str, float]] = {one.member: {} for one in group.members}
    for outcome in score_group(group, plan).outcomes:
        found[outcome.member][outcome.result.metric] = float(outcome.result)
    return [found[one.member] for one in group.members]


def _plainly(group: Group) -> Scores:
    reference = group.sample.reference
    assert reference is not None
    return [_plain_scores(member.path, reference) for member in group.members if member.path is not None]


def _plain_scores(member: Path, reference: Path) -> dict[str, float]:
    """One caption as one would write it down from the protocol alone."""
    own, other = plain.decoded(member), plain.decoded(reference)
    tp, fp, fn = plain.edge_counts(_edges(own), _edges(other))
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    return {
        "blur_ssim": plain.ssim(_blurred(own), _blurred(other)),
        "edge_f1": 2 * precision * recall / (precision + recall),
        "depth_si_rmse": plain.si_rmse(_read_depth(member), _read_depth(reference)),
        "mask_miou": plain.miou(_read_masks(member), _read_masks(reference))[0],
    }


def _blurred(frames: NDArray[np.uint8]) -> NDArray[Any]:
    return np.stack([cv2.bilateralFilter(frame, 30, 150, 100) for frame in frames])


def _edges(frames: NDArray[np.uint8]) -> NDArray[Any]:
    return np.stack([cv2.Canny(frame, 100, 200) for frame in frames])


def _read_depth(video: Path) -> NDArray[np.float32]:
    with np.load(video.with_suffix(".npz")) as arrays:
        return np.asarray(arrays["data"], np.float32)


def _read_masks(video: Path) -> list[tuple[str, NDArray[np.bool_]]]:
    """The masks by the C decoder of run lengths, which may be given files of our own."""
    document = json.loads(video.with_name(f"{video.stem}.masks.json").read_text())
    _, height, width = document["size"]
    found = []
    for item in document["objects"]:
        runs = [{"size": [height, width], "counts": one.encode()} for one in item["rle"] if one is not None]
        decoded = iter(np.moveaxis(coco.decode(runs), -1, 0).astype(bool)) if runs else iter(())
        empty = np.zeros((height, width), bool)
        found.append((item["phrase"], np.stack([empty if one is None else next(decoded) for one in item["rle"]])))
    return found
