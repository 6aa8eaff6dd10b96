"""DPT head: four feature maps of a vision transformer become one map of the picture, coarse to fine.

Names and shapes of its tensors are those of Depth Anything's published checkpoints.

Source: Ranftl et al. 2021, Vision transformers for dense prediction; Yang et al. 2024, Depth Anything V2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def enlarged(maps: Tensor, size: Sequence[int]) -> Tensor:
    """``maps`` (n, c, h, w) at ``size``, bilinear; the corners of both pictures are the same points."""
    return functional.interpolate(maps, tuple(size), mode="bilinear", align_corners=True)


class _Residual(nn.Module):
    """Two convolutions, added to what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv2(functional.relu_(self.conv1(functional.relu(x)))) + x
        return out


class _Fusion(nn.Module):
    """What came from the coarser level, with the next finer level added, at another size."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out_conv = nn.Conv2d(width, width, 1)
        self.resConfUnit1 = _Residual(width)  # of the coarsest level: published, and never used
        self.resConfUnit2 = _Residual(width)

    def forward(self, coarse: Tensor, size: Sequence[int], level: Tensor | None = None) -> Tensor:
        x = coarse if level is None else coarse + self.resConfUnit1(level)
        out: Tensor = self.out_conv(enlarged(self.resConfUnit2(x), size))
        return out


class _Scratch(nn.Module):
    """The convolutions after the levels have their sizes."""

    def __init__(self, widths: Sequence[int], fused: int) -> None:
        super().__init__()
        for number, width in enumerate(widths, 1):
            self.add_module(f"layer{number}_rn", nn.Conv2d(width, fused, 3, padding=1, bias=False))
            self.add_module(f"refinenet{number}", _Fusion(fused))
        self.output_conv1 = nn.Conv2d(fused, fused // 2, 3, padding=1)
        last = {"0": nn.Conv2d(fused // 2, 32, 3, padding=1), "2": nn.Conv2d(32, 1, 1)}
        self.output_conv2 = nn.ModuleDict(last)


class DptHead(nn.Module):
    """The head in its parts; what lies between them is the caller's.

    Args:
        width: channels of the backbone's feature maps.
        levels: channels of the four levels, fine to coarse.
        fused: channels after the levels.
    """

    def __init__(self, width: int, levels: Sequence[int], fused: int) -> None:
        super().__init__()
        if len(levels) != 4:
            raise ValueError(f"there must be four levels, not {len(levels)}")
        self.projects = nn.ModuleList(nn.Conv2d(width, level, 1) for level in levels)
        resizes = {
            "0": nn.ConvTranspose2d(levels[0], levels[0], 4, stride=4),
            "1": nn.ConvTranspose2d(levels[1], levels[1], 2, stride=2),
            "3": nn.Conv2d(levels[3], levels[3], 3, stride=2, padding=1),  # level 2 keeps its size
        }
        self.resize_layers = nn.ModuleDict(resizes)
        self.scratch = _Scratch(levels, fused)

    def project(self, number: int, tokens: Tensor) -> Tensor:
        """Level ``number`` (0 the finest) of feature maps (n, width, h, w), still at their size."""
        out: Tensor = self.projects[number](tokens)
        return out

    def resize(self, number: int, level: Tensor) -> Tensor:
        """The projected ``level`` at its size: 4, 2, 1 and 1/2 times that of the feature maps."""
        name = str(number)
        out: Tensor = self.resize_layers[name](level) if name in self.resize_layers else level
        return out

    def fuse(self, number: int, coarse: Tensor | None, level: Tensor, size: Sequence[int]) -> Tensor:
        """The next finer map at ``size``: ``coarse`` (``None`` at the coarsest level) with the resized ``level``."""
        adapted = getattr(self.scratch, f"layer{number + 1}_rn")(level)
        fusion = getattr(self.scratch, f"refinenet{number + 1}")
        out: Tensor = fusion(adapted, size) if coarse is None else fusion(coarse, size, adapted)
        return out

    def output(self, fine: Tensor, size: Sequence[int]) -> Tensor:
        """The map (n, h, w) at ``size``, 0 or more, of the finest fused map; the last two convolutions in float32."""
        x = enlarged(self.scratch.output_conv1(fine), size)
        with torch.autocast(x.device.type, enabled=False):
            last = self.scratch.output_conv2
            x = functional.relu_(last["2"](functional.relu_(last["0"](x.float()))))
        return x[:, 0]
