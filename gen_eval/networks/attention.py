"""What the transformers share: the MLP, how a block is computed, its last one for the class token alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_SLOPE = 1.702
_NUDGE = 0.1  # DINO adds it to the number of patches of a side; it enters where the grid is sampled


class QuickGELU(nn.Module):
    """``x * sigmoid(1.702 x)``, written into ``x``: nobody else reads what a linear layer has just made."""

    def forward(self, x: Tensor) -> Tensor:
        """Of ``x`` of any shape; ``x`` is overwritten."""
        return functional.silu(x.mul_(_SLOPE), inplace=True).mul_(1 / _SLOPE)


class Mlp(nn.Module):
    """Two linear layers with a GELU between them; ``fc1`` and ``fc2`` are their names in published files."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """Of tokens (..., width)."""
        out: Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return out


@dataclass(frozen=True)
class Block:
    """The parts of a pre-norm transformer block, whatever the package that holds them calls them.

    Attributes:
        norms: normalisations before attention and before the MLP.
        weight: query, key and value weights (3 width, width).
        bias: theirs (3 width).
        heads: of attention.
        output: projection of what attention gives.
        mlp: two layers.
    """

    norms: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]
    weight: Tensor
    bias: Tensor
    heads: int
    output: Callable[[Tensor], Tensor]
    mlp: Callable[[Tensor], Tensor]

    def every(self, tokens: Tensor, *, causal: bool = False) -> Tensor:
        """All tokens (n, count, width) after the block; ``causal``: each sees itself and the ones before it only."""
        query, key, value = functional.linear(self.norms[0](tokens), self.weight, self.bias).chunk(3, dim=-1)
        return self._joined(tokens, self._attention(query, key, value, causal=causal))

    def first(self, tokens: Tensor) -> Tensor:
        """Token 0 alone, (n, width): a row of :meth:`every` at a third of its cost, with keys and values of all."""
        width = tokens.shape[-1]
        seen = self.norms[0](tokens)
        query = functional.linear(seen[:, :1], self.weight[:width], self.bias[:width])
        key, value = functional.linear(seen, self.weight[width:], self.bias[width:]).chunk(2, dim=-1)
        return self._joined(tokens[:, :1], self._attention(query, key, value))[:, 0]

    def _attention(self, *parts: Tensor, causal: bool = False) -> Tensor:
        query, key, value = (x.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for x in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return mixed.transpose(1, 2).flatten(2)

    def _joined(self, tokens: Tensor, mixed: Tensor) -> Tensor:
        tokens = self.output(mixed) + tokens
        return self.mlp(self.norms[1](tokens)) + tokens


def class_token(blocks: Sequence[Block], tokens: Tensor) -> Tensor:
    """Token 0 (n, width) of ``tokens`` (n, count, width) after all ``blocks``; no other token leaves the last one."""
    for block in blocks[:-1]:
        tokens = block.every(tokens)
    return blocks[-1].first(tokens)


def with_class_token(patches: Tensor, token: Tensor) -> Tensor:
    """A feature map (n, width, h, w) as tokens (n, 1 + h w, width), ``token`` (width) before them."""
    flat = patches.flatten(2).transpose(1, 2)
    return torch.cat([token.expand(len(flat), 1, -1).to(flat.dtype), flat], dim=1)


def resized_positions(learned: Tensor, rows: int, columns: int, *, square: bool) -> Tensor:
    """Position terms (1, 1 + rows * columns, width of a token) of a picture of ``rows`` x ``columns`` patches.

    DINO and DINOv2 keep the learned grid only for square pictures with as many patches; any other is resized by a
    factor of ``(patches + 0.1) / side``, not to a size (bicubic, without antialias).

    Args:
        learned: (1, 1 + side * side, width), the class token's first.
        rows: patches from top to bottom.
        columns: patches from left to right.
        square: whether height and width of the picture are equal, in pixels.
    """
    side = math.isqrt(learned.shape[1] - 1)
    if square and rows * columns == side * side:
        return learned
    grid = learned[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    factors = ((rows + _NUDGE) / side, (columns + _NUDGE) / side)
    resized = functional.interpolate(grid.float(), scale_factor=factors, mode="bicubic")
    return torch.cat([learned[:, :1], resized.flatten(2).transpose(1, 2).to(learned.dtype)], dim=1)
