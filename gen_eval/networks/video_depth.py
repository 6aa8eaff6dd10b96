"""Video-Depth-Anything: relative inverse depth of the frames of a window, which look at each other.

Everything before the first temporal module sees each frame by itself: it is done once a frame, in pieces, and what is
kept of a frame is small. So a window costs its new frames only, and its last layers are run a few frames at a time.

Names and shapes of its tensors are those of the published ``video_depth_anything_vits.pth``.

Source: Chen et al. 2025, Video Depth Anything: consistent depth estimation for super-long videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from gen_eval.networks.dinov2 import DinoV2
from gen_eval.networks.dpt import DptHead
from gen_eval.networks.temporal import Temporal

Parts: TypeAlias = tuple[Tensor, ...]
"""Tensors whose first axis is the frames."""


class _Head(DptHead):
    def __init__(self, width: int, levels: Sequence[int], fused: int, heads: int, window: int) -> None:
        super().__init__(width, levels, fused)
        widths = (levels[2], levels[3], fused, fused)
        self.motion_modules = nn.ModuleList(Temporal(one, heads, window) for one in widths)


class VideoDepth(nn.Module):
    """The network, whole (:meth:`depth`) and in three steps (:meth:`encode`, :meth:`relate`, :meth:`render`).

    Attributes:
        window: frames that can look at each other.
        multiple: sides of pictures must be multiples of this.
    """

    casts_weights = False  # as published: in half precision only products are

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        patch: int,
        grid: int,
        taps: Sequence[int],
        levels: Sequence[int],
        fused: int,
        temporal_heads: int,
        window: int,
    ) -> None:
        """See :func:`build`."""
        super().__init__()
        self.window, self.multiple = window, patch
        self.pretrained = DinoV2(width, depth, heads, patch, grid, taps)
        self.head = _Head(width, levels, fused, temporal_heads, window)

    def depth(self, pictures: Tensor) -> Tensor:
        """Depth (T, H, W) float32 of the frames of one window.

        Args:
            pictures: (T, 3, H, W) normalised; T at most ``window``, sides multiples of ``multiple``.

        Returns:
            Relative inverse depth (up to scale and shift), 0 or more: larger is nearer.

        Raises:
            ValueError: pictures of another shape.
        """
        related = self.relate(self.encode(pictures))
        return torch.cat([self.render(tuple(part[at : at + 1] for part in related)) for at in range(len(pictures))])

    def encode(self, pictures: Tensor) -> Parts:
        """What is known of each frame by itself, (n, 3, H, W) -> four levels (n, channels, h, w), fine to coarse.

        The two finest ones are still as small as the grid of patches.
        """
        levels = [self.head.project(number, tokens) for number, tokens in enumerate(self.pretrained(pictures))]
        return (*levels[:2], *(self.head.resize(number, levels[number]) for number in (2, 3)))

    def relate(self, encoded: Parts) -> Parts:
        """What the frames of a window become when they have looked at each other, by the levels of :meth:`encode`.

        Raises:
            ValueError: there are more frames than ``window``.
        """
        first, second, third, fourth = encoded
        if len(third) > self.window:
            raise ValueError(f"a window has at most {self.window} frames, not {len(third)}")
        motion = self.head.motion_modules
        third, fourth = motion[0](third), motion[1](fourth)
        rows, columns = third.shape[2:]
        fused = motion[2](self.head.fuse(3, None, fourth, (rows, columns)))
        fused = motion[3](self.head.fuse(2, fused, third, (2 * rows, 2 * columns)))
        return first, second, fused

    def render(self, related: Parts) -> Tensor:
        """Depth (n, H, W) float32 of frames that :meth:`relate` gave; frames by themselves, so any of them."""
        first, second, fused = related
        rows, columns = first.shape[2:]
        fused = self.head.fuse(1, fused, self.head.resize(1, second), (4 * rows, 4 * columns))
        fused = self.head.fuse(0, fused, self.head.resize(0, first), (8 * rows, 8 * columns))
        return self.head.output(fused, (self.multiple * rows, self.multiple * columns))


def build(
    width: int = 384,
    depth: int = 12,
    heads: int = 6,
    patch: int = 14,
    grid: int = 37,
    taps: Sequence[int] = (3, 6, 9, 12),
    levels: Sequence[int] = (48, 96, 192, 384),
    fused: int = 64,
    temporal_heads: int = 8,
    window: int = 32,
) -> VideoDepth:
    """Video-Depth-Anything with the given sizes (defaults: small, as published); its parameters' values are not set.

    Args:
        width: size of a token of the backbone.
        depth: its blocks.
        heads: of its attentions.
        patch: side of a patch in pixels.
        grid: patches of a side for which positions were learned.
        taps: the four blocks whose tokens the head reads, counted from 1.
        levels: channels of the head's four levels; the last two multiples of 32.
        fused: channels after them, a multiple of 32.
        temporal_heads: of the attentions over time.
        window: frames that can look at each other.
    """
    return VideoDepth(width, depth, heads, patch, grid, taps, levels, fused, temporal_heads, window)
