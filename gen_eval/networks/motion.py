"""What networks make of neighbouring frames: how well a frame is guessed from its neighbours, and how far pixels move.

Both are stream features (see :class:`gen_eval.features.metric.StreamFeature`). torch is imported when the first of them
runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gen_eval.features.feature import StreamFeature, StreamInfo, parameters_of
from gen_eval.networks import PLANES
from gen_eval.networks.frame_choice import FrameChoice, interval_of
from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current

if TYPE_CHECKING:
    from torch import Tensor

Values: TypeAlias = NDArray[Any]

LEAST_SIDE = 128
"""Pixels that the shorter padded side must have: below, the coarsest correlations of AMT and RAFT are one wide."""

_INTERPOLATION_MULTIPLE = 16
_FLOW_MULTIPLE = 8
_PAIRS_AT_ONCE = 4


def interpolation_feature(measure: Mapping[str, Any]) -> StreamFeature:
    """How far the frame between two frames is from the guess of the network of ``measure``.

    The entry of frame 2 k + 2 is the mean absolute difference of frame 2 k + 1, over pixels and channels and in 8-bit
    steps, from what the network puts between frames 2 k and 2 k + 2. All other frames have ``nan``; so have all frames
    of a clip that is too small for the network.
    """
    parameters = parameters_of({"network": measure["network"]})
    return StreamFeature("interpolation_error", _Interpolation, parameters, source=PLANES)


def flow_feature(measure: Mapping[str, Any]) -> StreamFeature:
    """How far pixels move between sampled frames, by the network of ``measure``; entries are :class:`Arrival`."""
    chosen = {name: measure[name] for name in ("network", "updates", "sampling_rate", "fastest")}
    return StreamFeature("flow_magnitude", _Flow, parameters_of(chosen), source=PLANES)


def too_small_to_interpolate(info: StreamInfo) -> bool:
    """Whether AMT has no value for frames of this size."""
    return _padded_side(info, _INTERPOLATION_MULTIPLE) < LEAST_SIDE


def too_small_for_flow(info: StreamInfo) -> bool:
    """Whether RAFT has no value for frames of this size."""
    return _padded_side(info, _FLOW_MULTIPLE) < LEAST_SIDE


def _padded_side(info: StreamInfo, multiple: int) -> int:
    side = min(info.height, info.width)
    return side + -side % multiple


def padded(frames: Tensor, multiple: int) -> Tensor:
    """``frames`` (n, C, H, W) float with border pixels repeated until both sides are multiples; half of them lead."""
    from torch.nn import functional

    height, width = -frames.shape[2] % multiple, -frames.shape[3] % multiple
    around = (width // 2, width - width // 2, height // 2, height - height // 2)
    return functional.pad(frames, around, mode="replicate")


def unpadded(frames: Tensor, height: int, width: int) -> Tensor:
    """The part of :func:`padded` ``frames`` (..., H, W) that shows the picture of ``height`` and ``width``."""
    top, left = (frames.shape[-2] - height) // 2, (frames.shape[-1] - width) // 2
    return frames[..., top : top + height, left : left + width]


def mean_of_longest(flow: Tensor, share: float, least: int = 0) -> float:
    """Mean length of the longest vectors of ``flow`` (2, H, W): ``share`` of them, rounded down, or ``least``.

    ``nan`` when that is none.
    """
    import torch

    lengths = torch.linalg.vector_norm(flow, dim=0, dtype=torch.float64).flatten()
    count = max(int(share * len(lengths)), least)
    return float(lengths.topk(count).values.mean()) if count else math.nan


# --- interpolation ---------------------------------------------------------------------------------------------------


class _Interpolation:
    """Errors of guessed frames of one clip."""

    def __init__(self, info: StreamInfo, *, network: str) -> None:
        self._network = network
        self._too_small = too_small_to_interpolate(info)
        self._held: list[Tensor] = []  # from the last frame with an even number on: one or two
        self._scratch: Any = None

    def __call__(self, planes: Tensor, times: Values) -> Values:
        """Entries of the next frames, (n, 3, H, W) uint8."""
        import torch

        frames = [*self._held, *planes]
        errors = np.full(len(frames), math.nan)
        if not self._too_small:
            # on a CPU a pair fits into the caches on its own only
            at_once = 1 if current().device == "cpu" else _PAIRS_AT_ONCE
            with torch.inference_mode(), memory_errors():
                for start in range(2, len(frames), 2 * at_once):
                    chosen = range(start, min(start + 2 * at_once, len(frames)), 2)
                    first, between, last = (torch.stack([frames[end - back] for end in chosen]) for back in (2, 1, 0))
                    errors[list(chosen)] = self._errors(first, between, last)
        held = len(self._held)
        self._held = [frame.clone() for frame in frames[(len(frames) - 1) // 2 * 2 :]]
        return errors[held:]

    def _errors(self, first: Tensor, between: Tensor, last: Tensor) -> Values:
        import torch

        from gen_eval.networks.correlation import Scratch
        from gen_eval.networks.loading import able

        module = able(self._network, "interpolate")
        if self._scratch is None and not current().compile:
            self._scratch = Scratch()
        ends = [padded(side.float() / 255, _INTERPOLATION_MULTIPLE) for side in (first, last)]
        guess = unpadded(module.interpolate(*ends, self._scratch), *between.shape[2:])
        steps = (guess * 255).clamp_(0, 255).floor_()  # what is behind the point is cut off, not rounded
        return np.asarray(steps.sub_(between).abs_().mean((1, 2, 3), dtype=torch.float64).cpu())


# --- flow ------------------------------------------------------------------------------------------------------------


class Magnitude(NamedTuple):
    """Mean length of the longest flow vectors between two frames, in pixels; ``nan`` where there is no flow.

    Attributes:
        padded: with the pixels that were added around the frame.
        unpadded: without them; of one vector at least.
    """

    padded: float
    unpadded: float


class Arrival(NamedTuple):
    """What became known when a frame had arrived.

    Attributes:
        by_index: numbers of frames now known to be sampled by counting.
        by_time: numbers of frames now known to be sampled by time stamps.
        index_pairs: magnitudes of the former, each from the frame sampled before it; the first of a clip has none.
        time_pairs: magnitudes of the latter, likewise.
    """

    by_index: tuple[int, ...]
    by_time: tuple[int, ...]
    index_pairs: tuple[Magnitude, ...]
    time_pairs: tuple[Magnitude, ...]


@dataclass
class _Frame:
    """A frame (3, H, W) uint8, and what it is matched by once that has been computed."""

    planes: Tensor
    features: Tensor | None = None


@dataclass(frozen=True)
class _State:
    """What is remembered between frames: the last sampled ones, the last frame, magnitudes of pairs of these."""

    choice: FrameChoice
    by_index: tuple[int, ...] = ()
    by_time: tuple[int, ...] = ()
    frames: Mapping[int, _Frame] = field(default_factory=dict)
    known: Mapping[tuple[int, int], Magnitude] = field(default_factory=dict)


class _Flow:
    """Flow magnitudes of one clip."""

    def __init__(self, info: StreamInfo, *, network: str, updates: int, sampling_rate: float, fastest: float) -> None:
        self._network, self._updates, self._share = network, updates, fastest
        self._size = (info.height, info.width)
        self._too_small = too_small_for_flow(info)
        self._state = _State(FrameChoice(info.fps, interval_of(info.fps, sampling_rate)))

    def __call__(self, planes: Tensor, times: Values) -> Values:
        """Entries of the next frames, (n, 3, H, W) uint8."""
        import torch

        state, entries = self._state, np.empty(len(planes), object)
        with torch.inference_mode(), memory_errors():
            for number, (frame, time) in enumerate(zip(planes, times.tolist(), strict=True)):
                state, entries[number] = self._next(state, _Frame(frame.clone()), time)
        self._state = state
        return entries

    def _next(self, state: _State, frame: _Frame, time: float) -> tuple[_State, Arrival]:
        choice, by_index, by_time = state.choice.next(time)
        number, frames = state.choice.count, {**state.frames, state.choice.count: frame}
        index_chain, time_chain = (*state.by_index, *by_index), (*state.by_time, *by_time)
        known = dict(state.known)
        for pair in (*pairwise(index_chain), *pairwise(time_chain)):
            if pair not in known:
                known[pair] = self._magnitude(frames[pair[0]], frames[pair[1]])
        arrival = Arrival(
            by_index,
            by_time,
            tuple(known[pair] for pair in pairwise(index_chain)),
            tuple(known[pair] for pair in pairwise(time_chain)),
        )
        last_by_index, last_by_time = index_chain[-1:], time_chain[-1:]
        needed = {number, *last_by_index, *last_by_time}
        after = _State(
            choice,
            last_by_index,
            last_by_time,
            {one: frames[one] for one in needed},
            {pair: magnitude for pair, magnitude in known.items() if pair[1] in needed},
        )
        return after, arrival

    def _magnitude(self, first: _Frame, second: _Frame) -> Magnitude:
        from gen_eval.networks.loading import able

        if self._too_small:
            return Magnitude(math.nan, math.nan)
        module = able(self._network, "flow")
        for frame in (first, second):
            if frame.features is None:
                frame.features = module.features(self._padded(frame))
        flow = module.flow(self._padded(first), first.features, second.features, self._updates)[0]
        return Magnitude(
            mean_of_longest(flow, self._share), mean_of_longest(unpadded(flow, *self._size), self._share, least=1)
        )

    @staticmethod
    def _padded(frame: _Frame) -> Tensor:
        return padded(frame.planes[None].float(), _FLOW_MULTIPLE)
