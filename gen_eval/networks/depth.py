"""Depth of every frame of a clip: frames in, maps out, as a stream. torch is imported when the first clip comes.

Two sorts of networks do it, and the network decides: one that looks at a window of frames together (windows overlap and
are stitched, see :mod:`gen_eval.networks.windows`), or one that looks at each frame by itself.

Source: PAI-Bench-C, depth si-RMSE (public code); Chen et al. 2025, Video Depth Anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.data.signal_files import DepthWriter
from gen_eval.features.feature import ClipFrames, ClipSignal, parameters_of
from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current
from gen_eval.networks.running import autocast, numpy_of
from gen_eval.networks.windows import Maps, Stitcher, WindowRule, windows
from gen_eval.protocols.values import number_above
from gen_eval.records import InputError, ItemError, Reason

if TYPE_CHECKING:
    from torch import Tensor

Pictures = NDArray[np.float32]
Part = TypeVar("Part", bound=Sequence[Any])

DEPTH_KEYS = (
    "network", "base_side", "multiple", "widest", "wide_factor", "filter", "normalise", "map_filter",
    "window", "overlap", "key_slot",
)  # fmt: skip
"""Names of a measure section that say how depth is made; see :class:`DepthView` and :class:`WindowRule`."""

_FILTERS = {"bicubic": cv2.INTER_CUBIC, "bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}
_MAP_FILTERS = {"bilinear_corners": True, "bilinear": False}  # whether the corners of both maps are the same points

# Pixels at a time, of what a network is shown. They bound memory, not the result: pieces depend on the size only.
_ENCODED = 2**21
_RENDERED = 2**19
_ACCELERATED = 16
_MOST = 16  # frames at a time
_LARGEST_BASE = 8192


@dataclass(frozen=True)
class DepthView:
    """What a depth network sees of a frame, and how its map becomes one of the frame.

    Attributes:
        base_side: pixels of the shorter side, at least.
        multiple: both sides are rounded to multiples of it.
        widest: frames whose longer side is more than this many times the shorter get a smaller base:
            ``base_side * wide_factor / ratio``, cut to a whole number and rounded to a multiple.
        wide_factor: see ``widest``.
        filter: ``bicubic``, ``bilinear`` or ``area``; OpenCV's, on floats.
        normalise: name of mean and deviation, see :func:`gen_eval.networks.views.normalised`.
        map_filter: ``bilinear_corners`` (the corners of both maps are the same points) or ``bilinear``.
    """

    base_side: int
    multiple: int
    widest: float
    wide_factor: float
    filter: str
    normalise: str
    map_filter: str

    def __post_init__(self) -> None:
        """Refuse what no view is made by.

        Raises:
            InputError: the value and what is expected.
        """
        sides = (self.base_side, self.multiple)
        whole = all(isinstance(side, int) and not isinstance(side, bool) for side in sides)
        if not whole or not 0 < self.multiple <= self.base_side <= _LARGEST_BASE:
            expected = f"expected whole numbers, {_LARGEST_BASE} >= base_side >= multiple > 0"
            raise InputError(f"base_side and multiple are {sides}; {expected}")
        for name in ("widest", "wide_factor"):
            number_above({name: getattr(self, name)}, name, 0)
        for name, table in (("filter", _FILTERS), ("map_filter", _MAP_FILTERS)):
            if getattr(self, name) not in table:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected {', '.join(table)}")

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of what the network sees of a frame of ``height`` x ``width`` pixels.

        Raises:
            ItemError: ``too_small``: nothing would be left of the shorter side.

        Example:
            >>> view = DepthView(518, 14, 1.78, 1.777, "bicubic", "imagenet", "bilinear_corners")
            >>> view.size(704, 1280)
            (504, 910)
        """
        base, ratio = self.base_side, max(height, width) / min(height, width)
        if ratio > self.widest:
            base = self._multiple(int(base * self.wide_factor / ratio))
        if base < 1:
            raise ItemError(
                Reason.TOO_SMALL,
                f"frames of {width}x{height} pixels (width x height) are too long a strip for the depth network: "
                "nothing would be left of the shorter side; crop the clip",
                {"size_hw": [height, width]},
            )
        scale = max(base / height, base / width)
        return self._side(scale * height, base), self._side(scale * width, base)

    def _multiple(self, side: float) -> int:
        return int(np.round(side / self.multiple) * self.multiple)  # half to even

    def _side(self, side: float, least: int) -> int:
        rounded = self._multiple(side)
        return rounded if rounded >= least else int(np.ceil(side / self.multiple) * self.multiple)

    def resized(self, frame: NDArray[np.uint8], size: tuple[int, int]) -> Pictures:
        """``frame`` (H, W, 3) uint8 RGB as (h, w, 3) float32, 0..1 (cubic filters overshoot), not normalised yet."""
        values = frame.astype(np.float32) / np.float32(255)
        return np.asarray(cv2.resize(values, size[::-1], interpolation=_FILTERS[self.filter]), np.float32)


def depth_maps(
    clip: ClipFrames, *, network: str, window: int, overlap: int, key_slot: int, **view: Any
) -> Iterator[Maps]:
    """Relative inverse depth of the frames of ``clip``, in order.

    Equal frames give equal maps, however they are cut into chunks.

    Args:
        clip: frames of one size.
        network: checkpoint that does ``depth``.
        window: for networks that look at frames together, with ``overlap`` and ``key_slot``: see
            :class:`gen_eval.networks.windows.WindowRule`.
        overlap: likewise.
        key_slot: likewise.
        view: fields of :class:`DepthView`.

    Yields:
        (n, H, W) float32 at the frames' size, 0 or more, up to scale and shift; larger is nearer.

    Raises:
        ItemError: see :func:`gen_eval.networks.loading.loaded`; ``too_small``: see :meth:`DepthView.size`.
        InputError: the parameters fit neither together nor to the network.
        MemoryError: a single frame, or what is kept of a window, is too large for the device.
    """
    from gen_eval.networks.loading import able

    seen, rule = DepthView(**view), WindowRule(window, overlap, key_slot)
    maker = _Maker(able(network, "depth"), network, seen, (clip.info.height, clip.info.width))
    yield from maker.in_windows(clip, rule) if hasattr(maker.module, "relate") else maker.frame_by_frame(clip)


@dataclass
class _Maker:
    """A network at work on the frames of one clip.

    Attributes:
        module: the network.
        name: of its checkpoint.
        view: what it sees.
        frame_size: height and width of a frame.
    """

    module: Any
    name: str
    view: DepthView
    frame_size: tuple[int, int]

    def __post_init__(self) -> None:
        self._seen_size = self.view.size(*self.frame_size)

    def frame_by_frame(self, clip: ClipFrames) -> Iterator[Maps]:
        """Maps of a network that looks at each frame by itself."""

        def made(part: Sequence[Pictures]) -> Tensor:
            return self._at_frame_size(self.module.depth(self._tensor(part)))

        for pictures in self._pictures(clip):
            for maps in self._halving(made, pictures):
                yield numpy_of(maps)

    def in_windows(self, clip: ClipFrames, rule: WindowRule) -> Iterator[Maps]:
        """Maps of a network that looks at the frames of a window together; each is encoded once."""
        stitcher = Stitcher(rule)
        for one in windows(self._encoded(clip), rule):
            for stitched in stitcher.add(self._window_maps(one.slots), one.left):
                yield stitched[None]

    def _pictures(self, clip: ClipFrames) -> Iterator[list[Pictures]]:
        """What the network sees, a few frames at a time, whatever chunks they come in."""
        frames = (self.view.resized(frame, self._seen_size) for chunk in clip.chunks for frame in chunk)
        while pictures := list(islice(frames, self._count(_ENCODED))):
            yield pictures

    def _encoded(self, clip: ClipFrames) -> Iterator[tuple[Tensor, ...]]:
        """What the network makes of each frame by itself."""
        for pictures in self._pictures(clip):
            for parts in self._halving(lambda part: self.module.encode(self._tensor(part)), pictures):
                for frame in range(len(parts[0])):
                    yield tuple(part[frame : frame + 1].clone() for part in parts)  # lets go of the others

    def _window_maps(self, slots: Sequence[tuple[Tensor, ...]]) -> Iterator[Maps]:
        """The maps of a window's slots one by one, made when they are asked for."""
        import torch

        (related,) = self._run(lambda: [self.module.relate(tuple(map(torch.cat, zip(*slots, strict=True))))])
        count = self._count(_RENDERED)
        for start in range(0, len(slots), count):
            places = range(start, min(start + count, len(slots)))
            for maps in self._halving(lambda part: self._rendered(related, part), places):
                yield from numpy_of(maps)

    def _rendered(self, related: Sequence[Tensor], places: range) -> Tensor:
        maps = self.module.render(tuple(part[places.start : places.stop] for part in related))
        return self._at_frame_size(maps)

    def _count(self, pixels: int) -> int:
        height, width = self._seen_size
        budget = pixels if current().device == "cpu" else pixels * _ACCELERATED
        return min(_MOST, max(1, budget // (height * width)))

    def _tensor(self, pictures: Sequence[Pictures]) -> Tensor:
        import torch

        from gen_eval.networks.views import normalised

        planes = torch.from_numpy(np.stack(pictures)).to(current().device).permute(0, 3, 1, 2)
        return normalised(planes, self.view.normalise).contiguous()

    def _at_frame_size(self, maps: Tensor) -> Tensor:
        from torch.nn import functional

        corners = _MAP_FILTERS[self.view.map_filter]
        planes = maps.float()[:, None]
        return functional.interpolate(planes, self.frame_size, mode="bilinear", align_corners=corners)[:, 0]

    def _run(self, compute: Callable[[], Any]) -> Any:
        """``compute()`` as a network runs. Nothing is yielded in here: what is set up belongs to the thread."""
        import torch

        from gen_eval.networks.loading import shown

        with torch.inference_mode(), memory_errors(), shown(self.name), autocast(self.module):
            return compute()

    def _halving(self, compute: Callable[[Part], Any], whole: Part) -> list[Any]:
        """``compute`` of ``whole``, or, when memory runs out, of its halves; of one alone it is an error."""
        try:
            return [self._run(lambda: compute(whole))]
        except MemoryError:
            if len(whole) <= 1:
                raise
        middle = len(whole) // 2
        first, second = whole[:middle], whole[middle:]
        return self._halving(compute, first) + self._halving(compute, second)  # type: ignore[arg-type]


def write_depth_maps(clip: ClipFrames, target: Path, **parameters: Any) -> Mapping[str, Any]:
    """Write the depth of ``clip`` to ``target`` (``.npz``), a few maps at a time; see :func:`depth_maps`.

    Returns:
        What a row says of it: the network, its number format, and the size that it saw.

    Raises:
        ItemError: see :func:`depth_maps`; ``not_finite``: the network gave a number that is none; ``out_of_memory``;
            ``undecodable``: the clip has no frame.
    """
    frames = 0
    try:
        with DepthWriter(target) as writer:
            for maps in depth_maps(clip, **parameters):
                _check_finite(maps, frames, parameters["network"])
                writer.add(maps)
                frames += len(maps)
            if not frames:
                raise ItemError(Reason.UNDECODABLE, "the clip has no frame that depth could be made of")
    except MemoryError as error:
        said = "the depth of a single frame, or of a window, does not fit into memory; use smaller frames or a larger "
        raise ItemError(Reason.OUT_OF_MEMORY, f"{said}machine", {"checkpoint": parameters["network"]}) from error
    view = DepthView(**{name: parameters[name] for name in DepthView.__dataclass_fields__})
    seen = view.size(clip.info.height, clip.info.width)
    return {"network": parameters["network"], "dtype": current().dtype, "network_hw": list(seen)}


def _check_finite(maps: Maps, before: int, network: str) -> None:
    finite = np.isfinite(maps).all(axis=(1, 2))
    if not finite.all():
        frame = before + int(np.argmin(finite))
        said = f"the network {network} gave depth that is no number in frame {frame}; try --dtype float32"
        raise ItemError(Reason.NOT_FINITE, said, {"checkpoint": network, "frame": frame})


def depth_signal(measure: Mapping[str, Any]) -> ClipSignal:
    """The depth maps that the network of ``measure`` makes of a clip."""
    parameters = {name: measure[name] for name in DEPTH_KEYS}
    return ClipSignal("depth", ".npz", write_depth_maps, (str(measure["network"]),), parameters_of(parameters))
