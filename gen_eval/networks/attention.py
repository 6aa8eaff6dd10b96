"""What the image transformers share: the class token alone out of the last block, and the activation of CLIP."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

_SLOPE = 1.702


class QuickGELU(nn.Module):
    """``x * sigmoid(1.702 x)``, written into ``x``: nobody else reads what a linear layer has just made."""

    def forward(self, x: Tensor) -> Tensor:
        """Of ``x`` of any shape; ``x`` is overwritten."""
        return functional.silu(x.mul_(_SLOPE), inplace=True).mul_(1 / _SLOPE)


def class_token(
    tokens: Tensor,
    *,
    norms: tuple[nn.Module, nn.Module],
    projection: tuple[Tensor, Tensor],
    heads: int,
    output: nn.Module,
    mlp: Callable[[Tensor], Tensor],
) -> Tensor:
    """Token 0 after a pre-norm transformer block; equal to the block's own result, at a third of its cost.

    After the last block only the class token is read, so only its query, its output projection and its MLP are
    computed; keys and values are those of all tokens.

    Args:
        tokens: (n, count, width) before the block.
        norms: the block's normalisations, before attention and before the MLP.
        projection: its query-key-value weight (3 width, width) and bias (3 width).
        heads: of its attention.
        output: projection of what attention gives.
        mlp: its MLP.

    Returns:
        (n, width).
    """
    width = tokens.shape[-1]
    weight, bias = projection
    seen = norms[0](tokens)
    query = functional.linear(seen[:, :1], weight[:width], bias[:width])
    key, value = functional.linear(seen, weight[width:], bias[width:]).chunk(2, dim=-1)
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (query, key, value))
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    first = tokens[:, 0] + output(mixed)[:, 0]
    result: Tensor = first + mlp(norms[1](first))
    return result


def with_class_token(patches: Tensor, token: Tensor) -> Tensor:
    """A feature map (n, width, h, w) as tokens (n, 1 + h w, width), ``token`` (width) before them."""
    flat = patches.flatten(2).transpose(1, 2)
    return torch.cat([token.expand(len(flat), 1, -1).to(flat.dtype), flat], dim=1)
