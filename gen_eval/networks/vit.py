"""DINO ViT-B/16: an embedding of a picture of any shape. The network is timm's, the rule for positions DINO's.

Source: Emerging Properties in Self-Supervised Vision Transformers (Caron et al. 2021), public code of DINO.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from gen_eval.networks.attention import Block, class_token, resized_positions, with_class_token

_PICTURE = 224  # the size that positions were learned for


class ViT(VisionTransformer):
    """timm's vision transformer with positions for any shape, asked for its class token only.

    Names and shapes of its tensors are those of DINO's published checkpoint.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        patch: int,
        *,
        eps: float = 1e-6,
        activation: type[nn.Module] = nn.GELU,
    ) -> None:
        """Args: ``eps`` of its normalisations and ``activation`` of its MLPs are DINO's by default."""
        super().__init__(
            img_size=_PICTURE,
            patch_size=patch,
            num_classes=0,
            embed_dim=width,
            depth=depth,
            num_heads=heads,
            norm_layer=partial(nn.LayerNorm, eps=eps),
            act_layer=activation,
            weight_init="skip",
        )

    def embed(self, batch: Tensor) -> Tensor:
        """The class token after the last normalisation, (n, width).

        Args:
            batch: (n, 3, H, W) normalised pictures, a side at least one patch. Pixels at the right and at the bottom
                that fill no patch are not seen.

        Raises:
            ValueError: something else, or pictures smaller than a patch.
        """
        side = self.patch_embed.patch_size[0]
        if batch.ndim != 4 or batch.shape[1] != 3 or min(batch.shape[2:]) < side:
            raise ValueError(f"pictures must be (n, 3, H, W) with sides of {side} or more, not {tuple(batch.shape)}")
        embedded: Tensor = self.norm(self.class_token(batch))
        return embedded

    def class_token(self, batch: Tensor) -> Tensor:
        """The class token after the last block, before its normalisation; see :meth:`embed`."""
        assert self.cls_token is not None
        tokens = with_class_token(self.patch_embed.proj(batch), self.cls_token[0, 0])
        tokens = self.pos_drop(tokens + self.positions(batch.shape[2], batch.shape[3]))
        return class_token([_block(part) for part in self.blocks], tokens)

    def positions(self, height: int, width: int) -> Tensor:
        """Position terms (1, 1 + patches, width of a token) of a picture of ``height`` x ``width`` pixels."""
        patch_h, patch_w = self.patch_embed.patch_size
        assert self.pos_embed is not None
        return resized_positions(self.pos_embed, height // patch_h, width // patch_w, square=height == width)


def _block(part: Any) -> Block:
    attention = part.attn
    return Block(
        norms=(part.norm1, part.norm2),
        weight=attention.qkv.weight,
        bias=attention.qkv.bias,
        heads=attention.num_heads,
        output=attention.proj,
        mlp=part.mlp,
    )


def build(width: int = 768, depth: int = 12, heads: int = 12, patch: int = 16) -> ViT:
    """DINO's vision transformer; the values of its parameters are not set.

    Args:
        width: size of a token and of the embedding.
        depth: transformer blocks.
        heads: attention heads.
        patch: side of a patch in pixels.
    """
    return ViT(width, depth, heads, patch)
