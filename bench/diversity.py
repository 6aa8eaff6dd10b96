"""Diversity of six clips, full-size LPIPS: each frame through the backbone once against once for each ordered pair.

    python -m bench.diversity [--frames 2] [--size 96x80] [--rounds 1]

Both sides ask the same network with stand-in numbers; the plain one as the package drives it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.kernels import clip, close
from bench.measure import Comparison, compare, save, table
from bench.networks import stand_ins
from control_metrics import diversity
from control_metrics.diversity import CLIPS
from gen_eval.networks.loading import loaded

_NETWORK = "lpips_vgg"
_BATCH = 10
_PASSES = 10
"""Times fewer pictures through the backbone."""
_TIME = 5
_TOLERANCE = 1e-5


def plain(clips: Sequence[NDArray[np.uint8]]) -> float:
    """Mean over all ordered pairs of clips, frames in batches of ten."""
    import torch

    module = loaded(_NETWORK)
    found = []
    with torch.inference_mode():
        for one, other in permutations(clips, 2):
            frames = []
            for start in range(0, len(one), _BATCH):
                first, second = (
                    torch.from_numpy(side[start : start + _BATCH]).permute(0, 3, 1, 2).float() / 127.5 - 1
                    for side in (one, other)
                )
                frames += module(first, second).flatten().tolist()
            found.append(np.mean(frames))
    return float(np.mean(found))


def counted(step: Callable[[], float]) -> tuple[float, int]:
    """What ``step`` gives, and the pictures that it sends through the backbone."""
    seen: list[int] = []
    hook = loaded(_NETWORK).net.slice1.register_forward_hook(lambda _module, given, _found: seen.append(len(given[0])))
    value = step()
    hook.remove()
    return value, sum(seen)


def measure(frames: int, height: int, width: int, rounds: int) -> tuple[Comparison, tuple[int, int]]:
    """Times of both sides, and the pictures that each sends through the backbone."""
    clips = [clip(frames, height, width, seed) for seed in range(CLIPS)]
    (ours, few), (other, many) = counted(lambda: float(diversity(clips))), counted(lambda: plain(clips))
    close("diversity", ours, other, _TOLERANCE * other)
    note = "both orders of each pair, both sides through the backbone at each call, batches of ten frames"
    found = compare("diversity", lambda: diversity(clips), lambda: plain(clips), rounds=rounds, target=_TIME, note=note)
    return found, (few, many)


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print the table and write ``bench/results/diversity.json``; whether both targets were met."""
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=int, default=2, help="frames of each clip (default 2)")
    parser.add_argument("--size", default="96x80", help="width x height (default 96x80)")
    parser.add_argument("--rounds", type=int, default=1, help="timed runs of each side (default 1)")
    options = parser.parse_args(arguments)
    width, height = map(int, options.size.split("x"))
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, stand_ins(Path(name), [_NETWORK]):
        found, (ours, other) = measure(options.frames, height, width, options.rounds)
    print(table([found]))
    fewer = other / ours >= _PASSES
    print(f"pictures through the backbone: {ours} against {other} (at least {_PASSES} times fewer: "
          f"{'ok' if fewer else 'MISSED'})")  # fmt: skip
    save("diversity", [found], arguments=vars(options), passes={"ours": ours, "plain": other})
    return found.met and fewer


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
