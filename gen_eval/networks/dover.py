"""DOVER, technical branch: how free a clip is of blur, noise and compression, from fragments at their own resolution.

Written from the description of the network; parameter names are those of the published checkpoint (``DOVER.pth``,
``technical_*``; what it holds of the aesthetic branch is left out by the catalogue), so that it loads strictly.

Source: Wu et al. 2023, Exploring video quality assessment on user generated contents from aesthetic and technical
perspectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.video_swin import Size, VideoSwin


class _Head(nn.Module):
    """Two layers on each token by itself; as convolutions of one place they have the published shapes."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc_hid = nn.Conv3d(width, hidden, 1)
        self.fc_last = nn.Conv3d(hidden, 1, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """(D, H, W, C) -> (D, H, W) float32."""
        hidden = functional.gelu(functional.linear(tokens, self.fc_hid.weight.flatten(1), self.fc_hid.bias))
        # the last layer in float32, and so no linear layer under autocast: a step of bfloat16 is a visible score
        weight, bias = self.fc_last.weight.flatten().float(), self.fc_last.bias
        assert bias is not None
        rated: Tensor = (hidden.float() * weight).sum(-1) + bias.float()
        return rated


class Dover(nn.Module):
    """Backbone and head."""

    casts_weights = False  # in half precision only products are: scores hang on the third digit

    def __init__(self, backbone: VideoSwin, hidden: int) -> None:
        super().__init__()
        self.technical_backbone = backbone
        self.technical_head = _Head(backbone.width, hidden)

    def rate(self, clips: Tensor) -> Tensor:
        """The mean of the quality map of each clip, (n,) float32; about -0.3 .. 0.3 on real clips, larger is better.

        Clips go through the network one by one, so that memory does not hang on their number.

        Args:
            clips: (n, 3, T, H, W), normalised by ImageNet's mean and spread; 32 frames of 224 x 224 as published.

        Raises:
            ValueError: clips of another form.
        """
        patch = self.technical_backbone.patch
        if (
            clips.ndim != 5
            or clips.shape[1] != 3
            or any(side % p for side, p in zip(clips.shape[2:], patch, strict=True))
        ):
            raise ValueError(
                f"DOVER sees clips (n, 3, T, H, W) with T, H, W multiples of {patch}, not {tuple(clips.shape)}"
            )
        return torch.stack([self.quality_map(self.tokens(clip)).mean() for clip in clips])

    def tokens(self, clip: Tensor) -> Tensor:
        """What the backbone makes of one clip (3, T, H, W): (D, H, W, C)."""
        found: Tensor = self.technical_backbone(clip)
        return found

    def quality_map(self, tokens: Tensor) -> Tensor:
        """The quality (D, H, W) of each of ``tokens`` (D, H, W, C)."""
        found: Tensor = self.technical_head(tokens)
        return found


def build(
    width: int = 96,
    depths: Sequence[int] = (2, 2, 6, 2),
    heads: Sequence[int] = (3, 6, 12, 24),
    window: Sequence[int] = (8, 7, 7),
    patch: Sequence[int] = (2, 4, 4),
    gated: int = 3,
    ratio: int = 4,
    hidden: int = 64,
) -> Dover:
    """The technical branch with the given sizes (defaults: as published); the values of its parameters are not set.

    Args:
        width: channels of the first stage.
        depths: blocks of each stage.
        heads: attention heads of each stage.
        window: tokens of a window in time, rows, columns.
        patch: pixels of a token in time, rows, columns.
        gated: stages, counted from the first, whose attention knows the fragments.
        ratio: inner width of the perceptrons over the width.
        hidden: channels between the two layers of the head.

    Raises:
        ValueError: the sizes make no network.
    """
    backbone = VideoSwin(width, depths, heads, _three(window), _three(patch), gated=gated, ratio=ratio)
    return Dover(backbone, hidden)


def _three(sides: Sequence[int]) -> Size:
    depth, height, width = sides
    return depth, height, width
