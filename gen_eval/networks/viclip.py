"""ViCLIP: one embedding of eight frames and one of a text, to be compared by cosine.

Written from the description of the network; parameter names are those of the published checkpoint
``ViClip-InternVid-10M-FLT.pth``, so that it loads strictly. All frames of a clip are one sequence: attention runs over
space and time together.

Source: InternVid (Wang et al. 2023), ViCLIP; used by VBench and PAI-Bench for overall_consistency.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.attention import Block, QuickGELU, class_token
from gen_eval.networks.tokenizer import tokenize

VOCABULARY = 49408
_PICTURE = 224


class _Attention(nn.Module):
    """Parameters of self-attention, with the three input projections in one weight."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = QuickGELU()
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(self.gelu(self.c_fc(x)))
        return out


class _Block(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = _Attention(width, heads)
        self.ln_1 = nn.LayerNorm(width)
        self.mlp = _Mlp(width)
        self.ln_2 = nn.LayerNorm(width)

    def parts(self) -> Block:
        """What computes it."""
        attn = self.attn
        return Block(
            norms=(self.ln_1, self.ln_2),
            weight=attn.in_proj_weight,
            bias=attn.in_proj_bias,
            heads=attn.heads,
            output=attn.out_proj,
            mlp=self.mlp,
        )


class _Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))

    def blocks(self) -> list[Block]:
        """What computes each block."""
        return [block.parts() for block in self.resblocks if isinstance(block, _Block)]


class _VisionEncoder(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, patch: int, output: int, frames: int) -> None:
        super().__init__()
        tokens = (_PICTURE // patch) ** 2 + 1
        self.class_embedding = nn.Parameter(torch.empty(width))
        self.positional_embedding = nn.Parameter(torch.empty(tokens, width))
        self.temporal_positional_embedding = nn.Parameter(torch.empty(1, frames, width))
        self.proj = nn.Parameter(torch.empty(width, output))
        self.conv1 = nn.Conv3d(3, width, (1, patch, patch), (1, patch, patch), bias=False)
        self.ln_pre = nn.LayerNorm(width)
        self.transformer = _Transformer(width, layers, heads)
        self.ln_post = nn.LayerNorm(width)

    def tokens(self, clips: Tensor) -> Tensor:
        """(B, T, 3, H, W) -> (B, 1 + patches * T, width): one class token, then patch by patch all its frames."""
        clip_count, length = clips.shape[:2]
        # the kernel is one frame deep: frames can be convolved as pictures
        patches = functional.conv2d(clips.flatten(0, 1), self.conv1.weight[:, :, 0], stride=self.conv1.stride[1:])
        patches = patches.reshape(clip_count, length, patches.shape[1], -1).permute(0, 3, 1, 2)  # B, patches, T, width
        times = self.temporal_positional_embedding[0]
        times = times.mean(0, keepdim=True) if length == 1 else times
        patches = patches + self.positional_embedding[1:, None] + times
        start = (self.class_embedding + self.positional_embedding[0]).expand(clip_count, 1, -1)
        return torch.cat([start, patches.flatten(1, 2)], dim=1)

    def forward(self, clips: Tensor) -> Tensor:
        first = class_token(self.transformer.blocks(), self.ln_pre(self.tokens(clips)))
        out: Tensor = self.ln_post(first) @ self.proj
        return out


class _TextEncoder(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, output: int, context: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.empty(context, width))
        self.text_projection = nn.Parameter(torch.empty(width, output))
        self.transformer = _Transformer(width, layers, heads)
        self.token_embedding = nn.Embedding(VOCABULARY, width)
        self.ln_final = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embedding(tokens) + self.positional_embedding
        for block in self.transformer.blocks():
            x = block.every(x, causal=True)
        end = tokens.argmax(dim=1)  # the end token has the largest id; of several the first is read
        out: Tensor = self.ln_final(x[torch.arange(len(x), device=x.device), end]) @ self.text_projection
        return out


class ViCLIP(nn.Module):
    """The video and the text tower; embeddings are not normalised."""

    def __init__(self, vision: _VisionEncoder, text: _TextEncoder) -> None:
        super().__init__()
        self.temp = nn.Parameter(torch.empty(()))  # temperature of training; no score reads it
        self.vision_encoder = vision
        self.text_encoder = text

    def embed_clip(self, frames: Tensor) -> Tensor:
        """Embeddings (B, output) of clips.

        Args:
            frames: (B, T, 3, 224, 224) normalised by CLIP's mean and deviation, T as built or 1.

        Raises:
            ValueError: another number of frames or another size.
        """
        known = self.vision_encoder.temporal_positional_embedding.shape[1]
        if frames.ndim != 5 or frames.shape[1] not in {1, known} or frames.shape[2:] != (3, _PICTURE, _PICTURE):
            raise ValueError(
                f"clips must be (B, {known}, 3, {_PICTURE}, {_PICTURE}) (or of a single frame), not "
                f"{tuple(frames.shape)}; choose, resize and crop the frames first"
            )
        embedded: Tensor = self.vision_encoder(frames)
        return embedded

    def tokenize(self, texts: Sequence[str]) -> tuple[Tensor, list[int]]:
        """What ``embed_text`` takes, and how many tokens of each text were cut; see :mod:`gen_eval.networks.tokenizer`.

        Raises:
            ItemError: ``missing_weights``: the package with the vocabulary is not installed.
        """
        rows, cut = tokenize(texts, context=self.text_encoder.positional_embedding.shape[0])
        return torch.from_numpy(rows), cut

    def embed_text(self, tokens: Tensor) -> Tensor:
        """Embeddings (n, output) of texts.

        Args:
            tokens: (n, context) int64, each row a start token, the text, an end token (the largest id), zeros.

        Raises:
            ValueError: rows of another length.
        """
        context = self.text_encoder.positional_embedding.shape[0]
        if tokens.ndim != 2 or tokens.shape[1] != context:
            raise ValueError(f"tokens must be (n, {context}), not {tuple(tokens.shape)}; see ViCLIP.tokenize")
        embedded: Tensor = self.text_encoder(tokens)
        return embedded


def build(
    vision_width: int = 1024,
    vision_layers: int = 24,
    vision_heads: int = 16,
    vision_patch: int = 14,
    text_width: int = 768,
    text_layers: int = 12,
    text_heads: int = 12,
    output: int = 768,
    frames: int = 8,
    context: int = 32,
) -> ViCLIP:
    """ViCLIP with the given sizes (defaults: ViT-L/14, as published); the values of its parameters are not set.

    Args:
        vision_width: size of a video token.
        vision_layers: transformer blocks of the video tower.
        vision_heads: attention heads of the video tower.
        vision_patch: side of a patch in pixels, of pictures of 224 x 224.
        text_width: size of a text token.
        text_layers: transformer blocks of the text tower.
        text_heads: attention heads of the text tower.
        output: size of both embeddings.
        frames: frames of a clip.
        context: tokens of a text.
    """
    vision = _VisionEncoder(vision_width, vision_layers, vision_heads, vision_patch, output, frames)
    return ViCLIP(vision, _TextEncoder(text_width, text_layers, text_heads, output, context))
