"""Attention over time: every pixel of a feature map looks at itself in the other frames of a window.

Names and shapes of its tensors are those of Video-Depth-Anything's published checkpoint.

Source: Chen et al. 2025, Video Depth Anything; the module is AnimateDiff's (Guo et al. 2023).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUPS = 32  # of the normalisation; the width of a feature map must be a multiple
_PIXELS = 1024  # sequences at a time: bounds what the feed-forward layer widens


class _Positions(nn.Module):
    """The sinusoid table; a part of the published file."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        steps = torch.arange(length).unsqueeze(1) * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        table = torch.stack([steps.sin(), steps.cos()], dim=2).flatten(1)
        self.pe: Tensor
        self.register_buffer("pe", table[None, :, :width].float())


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(width, width, bias=False)
        self.to_v = nn.Linear(width, width, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(width, width)])
        self.pos_encoder = _Positions(width, length)

    def forward(self, x: Tensor) -> Tensor:
        """(m, T, width); positions go into queries, keys and values alike."""
        x = x + self.pos_encoder.pe[:, : x.shape[1]]
        query, key, value = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.to_q, self.to_k, self.to_v)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.to_out[0](mixed.transpose(1, 2).flatten(2))
        return out


class _Gate(nn.Module):
    """GEGLU: one half of what a linear layer gives, times GELU of the other."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 2 * inner)

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.proj(x).chunk(2, dim=-1)
        out: Tensor = value * functional.gelu(gate)
        return out


class _FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.ModuleDict({"0": _Gate(width, 4 * width), "2": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net["2"](self.net["0"](x))
        return out


class _Block(nn.Module):
    """Two attentions and a feed-forward layer, each normalised first and added to what came in."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.attention_blocks = nn.ModuleList(_Attention(width, heads, length) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.ff = _FeedForward(width)
        self.ff_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        for attention, norm in zip(self.attention_blocks, self.norms, strict=True):
            x = x + attention(norm(x))
        out: Tensor = x + self.ff(self.ff_norm(x))
        return out


class _Transformer(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width, eps=1e-6)
        self.proj_in = nn.Linear(width, width)
        self.transformer_blocks = nn.ModuleList([_Block(width, heads, length)])
        self.proj_out = nn.Linear(width, width)

    def forward(self, maps: Tensor) -> Tensor:
        """(T, width, h, w): each frame is normalised by itself, then each pixel goes through time by itself."""
        pixels = self.norm(maps).flatten(2).permute(2, 0, 1)
        found = [self.proj_out(self.transformer_blocks[0](self.proj_in(part))) for part in pixels.split(_PIXELS)]
        return maps + torch.cat(found).permute(1, 2, 0).reshape(maps.shape)


class Temporal(nn.Module):
    """One temporal module.

    Args:
        width: channels of the feature map, a multiple of 32 and of ``heads``.
        heads: of an attention.
        length: frames of the longest window.
    """

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.temporal_transformer = _Transformer(width, heads, length)

    def forward(self, maps: Tensor) -> Tensor:
        """Feature maps (T, width, h, w) of the frames of one window, T at most ``length``, after the module."""
        out: Tensor = self.temporal_transformer(maps)
        return out
