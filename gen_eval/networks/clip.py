"""OpenAI's CLIP, the image tower: one embedding of a picture of 224 x 224. The network is open_clip's.

Source: Learning Transferable Visual Models From Natural Language Supervision (Radford et al. 2021).
"""

from __future__ import annotations

from typing import Any

from open_clip.transformer import LayerNorm, VisionTransformer
from torch import Tensor, nn

from gen_eval.networks.attention import Block, QuickGELU, class_token, with_class_token

_PICTURE = 224


class ClipImage(nn.Module):
    """The image tower; names and shapes of its tensors are those of the published checkpoints under ``visual.``."""

    def __init__(self, patch: int, width: int, layers: int, heads: int, output: int) -> None:
        super().__init__()
        self.heads = heads
        self.visual = VisionTransformer(
            image_size=_PICTURE,
            patch_size=patch,
            width=width,
            layers=layers,
            heads=heads,
            mlp_ratio=4.0,
            output_dim=output,
            act_layer=QuickGELU,
            norm_layer=LayerNorm,
        )

    def embed(self, batch: Tensor) -> Tensor:
        """Projected embeddings (n, output), not normalised.

        Args:
            batch: (n, 3, 224, 224), normalised by CLIP's mean and deviation.

        Raises:
            ValueError: pictures of another size.
        """
        if batch.shape[1:] != (3, _PICTURE, _PICTURE):
            raise ValueError(
                f"CLIP sees (n, 3, {_PICTURE}, {_PICTURE}), not {tuple(batch.shape)}; resize and crop the pictures"
            )
        tower = self.visual
        tokens = with_class_token(tower.conv1(batch), tower.class_embedding)
        tokens = tower.ln_pre(tokens + tower.positional_embedding)
        first = class_token([self._block(part) for part in tower.transformer.resblocks], tokens)
        embedded: Tensor = tower.ln_post(first) @ tower.proj
        return embedded

    def _block(self, part: Any) -> Block:
        attention = part.attn
        return Block(
            norms=(part.ln_1, part.ln_2),
            weight=attention.in_proj_weight,
            bias=attention.in_proj_bias,
            heads=self.heads,
            output=attention.out_proj,
            mlp=part.mlp,
        )


def build(patch: int, width: int, layers: int, heads: int, output: int) -> ClipImage:
    """CLIP's image tower (ViT-B/32: 32, 768, 12, 12, 512; ViT-L/14: 14, 1024, 24, 16, 768).

    Args:
        patch: side of a patch in pixels.
        width: size of a token.
        layers: transformer blocks.
        heads: attention heads.
        output: size of the embedding.
    """
    return ClipImage(patch, width, layers, heads, output)
