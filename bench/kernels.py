"""The arithmetic of the metrics against the protocols written down literally: ``python -m bench.kernels``.

832 x 480, 49 frames, one thread. Both sides get the same arrays; their results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bench import plain
from bench.measure import Comparison, compare, save, seconds, single_thread, table
from control_metrics import mask_miou
from control_metrics.blur import METRIC as BLUR
from control_metrics.blur import bilateral_blur, blur_feature, moments_feature
from control_metrics.depth import depth_si_rmse
from control_metrics.edge import canny_parameters, count_edges, edge_maps
from gen_eval.features import StreamInfo
from gen_eval.protocols import load_protocol
from gen_eval.quality import temporal_flickering

_CHUNK = 8
_BLUR = load_protocol("blur_ssim", "corrected").measure
_CANNY = canny_parameters(load_protocol("edge_f1", "corrected").measure)


def clip(frames: int, height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Smooth coloured noise that drifts: a stand-in for real frames."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 16 + frames, width // 16, 3), dtype=np.uint8)
    views = (coarse[start : start + height // 16] for start in range(frames))
    return np.stack([cv2.resize(view, (width, height), interpolation=cv2.INTER_CUBIC) for view in views])


def close(name: str, ours: float, other: float, tolerance: float) -> None:
    """End the bench when the two sides do not compute the same."""
    if abs(ours - other) > tolerance:
        sys.exit(f"{name}: ours {ours!r} and the plain reference {other!r} differ by more than {tolerance}")


def _parts(frames: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK, frames)) for start in range(0, frames, _CHUNK))


def bench_ssim(real: NDArray[np.uint8], own: NDArray[np.uint8], rounds: int) -> list[Comparison]:
    """SSIM of blurred frames, all from scratch and with the reference's moments at hand."""
    blurred, moments = blur_feature(_BLUR), moments_feature(_BLUR)
    info = StreamInfo(*real.shape[1:3])

    def run(cached: list[Any] | None) -> float:
        meter = BLUR.meter(_BLUR, info)
        for number, part in enumerate(_parts(len(real))):
            known = moments(real[part]) if cached is None else cached[number]
            meter.update({blurred: own[part]}, {blurred: real[part], moments: known})
        return float(np.mean(meter.counts().frames))

    cached = [moments(real[part]) for part in _parts(len(real))]
    close("ssim", run(None), plain.ssim(own, real), 1e-9)

    def literal() -> float:
        return plain.ssim(own, real)

    note = "scikit-image structural_similarity(full=True, channel_axis=2), frame by frame"
    return [
        compare(name, lambda at=at: run(at), literal, rounds=rounds, target=target, note=note)  # type: ignore[misc]
        for name, at, target in (("SSIM", None, 4), ("SSIM, reference cached", cached, 7))
    ]


def bench_edges(real: NDArray[np.uint8], own: NDArray[np.uint8], rounds: int) -> list[Comparison]:
    """Counting from two stacks of Canny maps."""
    maps, others = edge_maps(own, **_CANNY), edge_maps(real, **_CANNY)

    def run() -> tuple[int, int, int]:
        tp, edges, expected = (int(one) for one in count_edges(maps, others).sum(axis=0))
        return tp, edges - tp, expected - tp

    if run() != plain.edge_counts(maps, others):
        sys.exit("edge counts differ")
    note = "flattened 0/1 maps, both values looked for, three sums over logical combinations"
    return [
        compare("edge_f1: counting", run, lambda: plain.edge_counts(maps, others), rounds=rounds, target=10, note=note)
    ]


def bench_depth(frames: int, height: int, width: int, rounds: int) -> list[Comparison]:
    """Depth with a few invalid pixels in each frame."""
    rng = np.random.default_rng(3)
    other = rng.random((frames, height, width), dtype=np.float32) + 0.1
    own = other * 2 + rng.random(other.shape, dtype=np.float32) / 10
    other[:, : height // 50] = 0
    close("depth", float(depth_si_rmse(own, other)), plain.si_rmse(own, other), 1e-7)
    return [compare("depth_si_rmse", lambda: depth_si_rmse(own, other), lambda: plain.si_rmse(own, other),
                    rounds=rounds, target=1.5, note="boolean selection, numpy.median, float64 residuals")]  # fmt: skip


def bench_masks(frames: int, height: int, width: int, rounds: int) -> list[Comparison]:
    """6 x 6 instances in 4 x 4 classes."""

    def side(shift: int) -> list[tuple[str, NDArray[np.bool_]]]:
        found = []
        for number in range(6):
            mask = np.zeros((frames, height, width), np.bool_)
            top, left = height * number // 8 + shift, width * number // 8 + shift
            mask[:, top : top + height // 5, left : left + width // 4] = True
            found.append((f"class {number % 4}", mask))
        return found

    real, own = side(0), side(6)
    close("masks", float(mask_miou(own, real, protocol="reference")), plain.miou(own, real)[0], 1e-6)
    note = "8-bit instance maps, class masks, IoU of each pair over whole boolean maps"
    return [
        compare(f"mask_miou ({protocol})", lambda name=protocol: mask_miou(own, real, protocol=name),  # type: ignore[misc]
                lambda: plain.miou(own, real), rounds=rounds, target=10, note=note)
        for protocol in ("reference", "corrected")
    ]  # fmt: skip


def bench_flickering(own: NDArray[np.uint8], rounds: int) -> list[Comparison]:
    """The whole metric."""
    close("flickering", float(temporal_flickering(own)), plain.flickering(own), 1e-6)
    note = "float32 frames, mean of absolute differences"
    steps = (lambda: temporal_flickering(own)), (lambda: plain.flickering(own))
    return [compare("temporal_flickering", *steps, rounds=rounds, note=note)]


def filters(real: NDArray[np.uint8]) -> dict[str, float]:
    """Seconds a frame of the two OpenCV steps that come before the arithmetic and stay as they are."""
    single_thread()
    blur = {name: _BLUR[name] for name in ("diameter", "sigma_color", "sigma_space")}
    few = real[:3]
    steps = {"cv2.bilateralFilter": lambda: bilateral_blur(few, **blur), "cv2.Canny": lambda: edge_maps(few, **_CANNY)}
    return {name: min(seconds(step) for _ in range(3)) / len(few) for name, step in steps.items()}


def main(arguments: Sequence[str] | None = None) -> bool:
    """Run all kernels, print a table, write ``bench/results/kernels.json``; whether every target was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=49)
    chosen = parser.parse_args(arguments)
    single_thread()
    height, width = 480, 832
    real = clip(chosen.frames, height, width, 1)
    own = cv2.addWeighted(real, 0.8, clip(chosen.frames, height, width, 2), 0.2, 0).astype(np.uint8)
    results = [
        *bench_ssim(real, own, chosen.rounds),
        *bench_edges(real, own, chosen.rounds),
        *bench_depth(chosen.frames, height, width, chosen.rounds),
        *bench_masks(chosen.frames, height, width, chosen.rounds),
        *bench_flickering(own, chosen.rounds),
    ]
    print(f"{width}x{height}, {chosen.frames} frames, one thread, {chosen.rounds} rounds in alternation\n")
    print(table(results))
    costs = filters(real)
    print("\n" + ", ".join(f"{name} {cost * 1e3:.1f} ms a frame" for name, cost in costs.items()))
    print(f"\n{save('kernels', results, filters=costs)}")
    return all(one.met for one in results)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
