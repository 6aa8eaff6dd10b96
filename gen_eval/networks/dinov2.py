"""DINOv2 ViT: tokens of a picture of any shape after several of its blocks.

Names and shapes of its tensors are those of the published backbones.

Source: DINOv2: Learning Robust Visual Features without Supervision (Oquab et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gen_eval.networks.attention import Block, Mlp, resized_positions, with_class_token

_EPS = 1e-6  # of the normalisations


class _Attention(nn.Module):
    """The weights of an attention; :class:`gen_eval.networks.attention.Block` computes it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)


class _Scale(nn.Module):
    """A factor per channel (LayerScale)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class _Block(nn.Module):
    """One pre-norm transformer block with scaled branches."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=_EPS)
        self.attn = _Attention(width)
        self.ls1 = _Scale(width)
        self.norm2 = nn.LayerNorm(width, eps=_EPS)
        self.mlp = Mlp(width, 4 * width)
        self.ls2 = _Scale(width)

    def forward(self, tokens: Tensor) -> Tensor:
        block = Block(
            norms=(self.norm1, self.norm2),
            weight=self.attn.qkv.weight,
            bias=self.attn.qkv.bias,
            heads=self.heads,
            output=lambda mixed: self.ls1(self.attn.proj(mixed)),
            mlp=lambda seen: self.ls2(self.mlp(seen)),
        )
        return block.every(tokens)


class _Patches(nn.Module):
    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, stride=patch)


class DinoV2(nn.Module):
    """The backbone.

    Args:
        width: size of a token.
        depth: blocks.
        heads: of an attention.
        patch: side of a patch in pixels.
        grid: patches of a side for which positions were learned.
        taps: blocks after which tokens are taken, counted from 1.
    """

    def __init__(self, width: int, depth: int, heads: int, patch: int, grid: int, taps: Sequence[int]) -> None:
        super().__init__()
        if not taps or not all(1 <= tap <= depth for tap in taps) or list(taps) != sorted(set(taps)):
            raise ValueError(f"taps must be different blocks of 1..{depth} in order, not {list(taps)}")
        self.patch, self.taps = patch, tuple(taps)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + grid * grid, width))
        self.mask_token = nn.Parameter(torch.zeros(1, width))  # for training; part of the published file
        self.patch_embed = _Patches(width, patch)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=_EPS)

    def forward(self, pictures: Tensor) -> list[Tensor]:
        """Feature maps (n, width, H / patch, W / patch), one for each tap, each after the last normalisation.

        Args:
            pictures: (n, 3, H, W) normalised, sides multiples of the patch.

        Raises:
            ValueError: something else.
        """
        if pictures.ndim != 4 or pictures.shape[1] != 3 or 0 in pictures.shape or self._leftover(pictures):
            raise ValueError(
                f"pictures must be (n, 3, H, W) with sides that are multiples of {self.patch}, "
                f"not {tuple(pictures.shape)}"
            )
        height, width = pictures.shape[2:]
        rows, columns = height // self.patch, width // self.patch
        tokens = with_class_token(self.patch_embed.proj(pictures), self.cls_token[0, 0])
        tokens = tokens + resized_positions(self.pos_embed, rows, columns, square=height == width)
        found = []
        for number, block in enumerate(self.blocks[: self.taps[-1]], 1):
            tokens = block(tokens)
            if number in self.taps:
                seen = self.norm(tokens)[:, 1:]
                found.append(seen.transpose(1, 2).unflatten(2, (rows, columns)))
        return found

    def _leftover(self, pictures: Tensor) -> bool:
        return any(side % self.patch for side in pictures.shape[2:])
