"""Correlation of every position of one feature map with every position of another, looked up in small windows.

Source: the all-pairs correlation volumes of RAFT (2020), which AMT (2023) takes over in both directions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Scratch:
    """Memory of large results, handed out again for the next one of the same kind and size.

    Fresh memory of this size costs more time than the product that fills it. What was handed out before is overwritten.
    """

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def empty(self, kind: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """A tensor of ``shape``, of the format and on the device of ``like``."""
        held = self._held.get(kind)
        if held is None or held.shape != shape or held.dtype != like.dtype or held.device != like.device:
            self._held.pop(kind, None)
            held = self._held[kind] = torch.empty(shape, dtype=like.dtype, device=like.device)
        return held


class _Volume(NamedTuple):
    """Products of all source positions with all positions of a target map.

    Attributes:
        numbers: (B, source positions, target positions), the last two swapped if ``transposed``.
        height: of the target map.
        width: of the target map.
        transposed: see ``numbers``.
    """

    numbers: Tensor
    height: int
    width: int
    transposed: bool = False


class CorrelationPyramid:
    """Scalar products of all source positions with all target positions, the target at several scales.

    Halving the target's map before the product gives what averaging 2x2 of the products would: the average is linear.
    """

    def __init__(self, volumes: list[_Volume], radius: int) -> None:
        self._volumes = volumes
        self._radius = radius

    @classmethod
    def of(cls, source: Tensor, target: Tensor, *, levels: int, radius: int) -> CorrelationPyramid:
        """Multiply.

        Args:
            source: features (B, C, H, W).
            target: features (B, C, H, W).
            levels: scales of the target: 1, 1/2, 1/4, ...; its smaller side must stay at least two positions.
            radius: windows are 2 * radius + 1 positions wide.
        """
        return cls(_scales(source, target, levels, Scratch()), radius)

    @classmethod
    def both_ways(
        cls, source: Tensor, target: Tensor, *, levels: int, radius: int, scratch: Scratch | None = None
    ) -> tuple[CorrelationPyramid, CorrelationPyramid]:
        """The pyramid from ``source`` to ``target`` and the one from ``target`` to ``source``.

        At the finest scale, by far the largest, they are the same numbers. With ``scratch`` both are valid until it is
        used again.
        """
        scratch = scratch or Scratch()
        forth = _scales(source, target, levels, scratch)
        back = [forth[0]._replace(transposed=True), *_scales(target, source, levels, scratch, "back")]
        return cls(forth, radius), cls(back, radius)

    def lookup(self, positions: Tensor) -> Tensor:
        """Windows around one target position for each source position, bilinear, zero outside of the map.

        Args:
            positions: (B, 2, H, W) float32, x and y in target positions of the finest scale.

        Returns:
            (B, levels * (2 * radius + 1) ** 2, H, W) in memory with channels last; x varies slowest in a window.
        """
        batch, _, height, width = positions.shape
        x, y = positions.flatten(2).transpose(0, 1)
        windows = [self._windows(volume, x / 2**level, y / 2**level) for level, volume in enumerate(self._volumes)]
        return torch.cat(windows, 1).view(batch, height, width, -1).permute(0, 3, 1, 2)

    def _windows(self, volume: _Volume, x: Tensor, y: Tensor) -> Tensor:
        """Windows (B * positions, (2 * radius + 1) ** 2) of one scale around ``x`` and ``y`` (B, positions).

        All positions of a window lie equally far behind a whole position: one block of 2 * radius + 2 whole positions
        each way, blended by one pair of weights, is the window.
        """
        columns, left, right = self._taps(x, volume.width)
        rows, above, below = self._taps(y, volume.height)
        step, starts = _addresses(volume, x)
        offsets = rows.mul_(volume.width * step).add_(starts[..., None])
        block = volume.numbers.flatten().take(columns.mul_(step)[..., :, None] + offsets[..., None, :])
        block = (block[..., :-1, :] * left[..., None]).addcmul_(block[..., 1:, :], right[..., None])
        block = (block[..., :-1] * above[..., None, :]).addcmul_(block[..., 1:], below[..., None, :])
        return block.flatten(0, 1).flatten(1)

    def _taps(self, centre: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Along one axis: whole positions (..., n + 1) kept in the map, and weights (..., n) of each and its next.

        A position outside of the map weighs nothing; one that is no number makes its weights, and so all that is looked
        up there, no number either.
        """
        floor = centre.floor()[..., None]
        whole = floor + torch.arange(-self._radius, self._radius + 2, device=centre.device)
        kept = whole.nan_to_num(0.0, 0.0, 0.0).clamp_(0, size - 1)
        inside = (kept == whole).to(self._volumes[0].numbers.dtype)
        behind = (centre[..., None] - floor).to(inside.dtype)
        return kept.long(), inside[..., :-1] * (1 - behind), inside[..., 1:] * behind


def _addresses(volume: _Volume, positions: Tensor) -> tuple[int, Tensor]:
    """How far neighbouring target positions lie apart in the volume, and where each source position's begin (B, n)."""
    batch, sources = positions.shape
    targets = volume.height * volume.width
    images = torch.arange(batch, device=positions.device)[:, None] * (sources * targets)
    each = torch.arange(sources, device=positions.device)
    return (sources, images + each) if volume.transposed else (1, images + each * targets)


def _scales(source: Tensor, target: Tensor, levels: int, scratch: Scratch, back: str = "") -> list[_Volume]:
    """Scalar products divided by the root of the number of channels; for the way ``back`` without the finest scale."""
    rows = source.flatten(2).transpose(1, 2) / math.sqrt(source.shape[1])
    found = []
    for level in range(levels):
        if level > 0:
            target = functional.avg_pool2d(target, 2)
        if level > 0 or not back:
            columns = target.flatten(2)
            numbers = scratch.empty(f"products {back}{level}", (*rows.shape[:2], columns.shape[2]), rows)
            found.append(_Volume(torch.bmm(rows, columns, out=numbers), target.shape[2], target.shape[3]))
    return found
