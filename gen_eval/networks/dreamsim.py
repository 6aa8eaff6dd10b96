"""The DreamSim ensemble: one embedding of a picture from three vision transformers, its adapter merged into them.

Source: DreamSim (Fu et al. 2023), package dreamsim 0.2. How the published archive becomes one list of tensors is in
``gen_eval.weights``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gen_eval.networks.attention import QuickGELU
from gen_eval.networks.views import normalised
from gen_eval.networks.vit import ViT

_PICTURE = 224
_PATCH = 16
_CLIP_EPS = 1e-5


class _Dino(nn.Module):
    """DINO's class token before the last normalisation."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.model = ViT(width, depth, heads, _PATCH)

    def forward(self, batch: Tensor) -> Tensor:
        return self.model.class_token(batch)


class _Clip(nn.Module):
    """CLIP's image tower in DINO's naming: the normalisation before its blocks is called ``pos_drop``."""

    def __init__(self, width: int, depth: int, heads: int, output: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.model = ViT(width, depth, heads, _PATCH, eps=_CLIP_EPS, activation=activation)
        self.model.register_module("pos_drop", nn.LayerNorm(width, eps=_CLIP_EPS))
        self.proj = nn.Parameter(torch.empty(width, output))

    def forward(self, batch: Tensor) -> Tensor:
        return self.model.embed(batch) @ self.proj


class DreamSim(nn.Module):
    """DINO, OpenAI's CLIP and open_clip's (whose activation is the exact GELU), all ViT-B/16."""

    def __init__(self, width: int, depth: int, heads: int, output: int) -> None:
        super().__init__()
        self.extractor_list = nn.ModuleList(
            [
                _Dino(width, depth, heads),
                _Clip(width, depth, heads, output, QuickGELU),
                _Clip(width, depth, heads, output, nn.GELU),
            ]
        )

    def embed(self, batch: Tensor) -> Tensor:
        """Embeddings (n, width + 2 output): the three side by side, less their own mean, over their L2 norm.

        Args:
            batch: (n, 3, 224, 224), 0..1; each tower normalises it itself.

        Raises:
            ValueError: pictures of another size.
        """
        if batch.shape[1:] != (3, _PICTURE, _PICTURE):
            raise ValueError(
                f"DreamSim sees (n, 3, {_PICTURE}, {_PICTURE}), not {tuple(batch.shape)}; resize the pictures"
            )
        dino, clip, open_clip = self.extractor_list
        for_dino, for_clip = normalised(batch, "imagenet"), normalised(batch, "clip")
        joined: Tensor = torch.cat([dino(for_dino), clip(for_clip), open_clip(for_clip)], dim=1).float()
        centred = joined - joined.mean(dim=1, keepdim=True)
        embedded: Tensor = centred / centred.norm(dim=1, keepdim=True)
        return embedded


def build(width: int = 768, depth: int = 12, heads: int = 12, output: int = 512) -> DreamSim:
    """The ensemble, without an adapter; the values of its parameters are not set.

    Args:
        width: size of a token of each tower.
        depth: transformer blocks of each tower.
        heads: attention heads of each tower.
        output: size of the projections of the two CLIP towers.
    """
    return DreamSim(width, depth, heads, output)
