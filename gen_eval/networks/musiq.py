"""MUSIQ: quality of a picture of any size, from patches of it at three scales.

Written from the description of the network; parameter names are those of the published PyTorch port of the SPAQ model
(``musiq_spaq_ckpt-358bb6af.pth``), so that it loads strictly.

The published form pads the sequences of the two fixed scales to 49 and 144 tokens and gives every score with such a
token the value -1000 before the softmax. Beside a score above -896 that is a weight of exactly 0 in float32, and what
the tokens themselves become is never read: here they are left out.

Source: Ke et al. 2021, MUSIQ: multi-scale image quality transformer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.attention import Mlp
from gen_eval.records import ItemError, Reason

PATCH = 32
SIDES = (224, 384)  # longer side of the two resized scales; the third is the picture itself
_GRID = 10
_GROUPS = 32
_PIECE = 128  # patches that go through the stem at a time: what they become stays in the processor's cache
_ACCELERATED_PIECE = 8192


def scale_size(height: int, width: int, side: int) -> tuple[int, int]:
    """Height and width of the scale whose longer side is ``side``; a side of 0 cannot be made.

    >>> scale_size(295, 512, 224)
    (129, 224)
    """
    ratio = side / max(height, width)
    return round(height * ratio), round(width * ratio)


def _padded_same(x: Tensor, kernel: int, stride: int) -> Tensor:
    """Zero padding after which ``ceil(side / stride)`` windows fit; the odd row and column come after."""
    before_after: list[int] = []
    for side in (x.shape[-1], x.shape[-2]):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        before_after += [total // 2, total - total // 2]
    return functional.pad(x, before_after) if any(before_after) else x


class _StdConv(nn.Conv2d):
    """Convolution without bias and with "same" padding, by a weight that is standardised per output channel."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight = weight / (weight.std((1, 2, 3), keepdim=True) + 1e-5)
        kernel, stride = self.kernel_size[0], self.stride[0]
        return functional.conv2d(_padded_same(x, kernel, stride), weight, stride=stride)


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        middle = outputs // 4
        self.conv1 = _StdConv(inputs, middle, 1)
        self.gn1 = nn.GroupNorm(_GROUPS, middle, eps=1e-4)
        self.conv2 = _StdConv(middle, middle, 3)
        self.gn2 = nn.GroupNorm(_GROUPS, middle, eps=1e-4)
        self.conv3 = _StdConv(middle, outputs, 1)
        self.gn3 = nn.GroupNorm(_GROUPS, outputs, eps=1e-4)
        self.conv_proj = _StdConv(inputs, outputs, 1)
        self.gn_proj = nn.GroupNorm(_GROUPS, outputs, eps=1e-4)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = self.gn_proj(self.conv_proj(x))
        x = functional.relu_(self.gn1(self.conv1(x)))
        x = functional.relu_(self.gn2(self.conv2(x)))
        return functional.relu_(self.gn3(self.conv3(x)).add_(shortcut))


class _Attention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, *, first: bool) -> Tensor:
        """Attention of the tokens ``x`` (n, N, hidden) to each other; with ``first`` of the first token only."""
        read = x[:, :1] if first else x
        q, k, v = (
            part.view(*part.shape[:2], self.heads, -1).transpose(1, 2)
            for part in (self.query(read), self.key(x), self.value(x))
        )
        mixed = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out


class _Block(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, hidden: int, mlp: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden, eps=1e-6)
        self.attention = _Attention(hidden, heads)
        self.norm2 = nn.LayerNorm(hidden, eps=1e-6)
        self.mlp = Mlp(hidden, mlp)

    def forward(self, x: Tensor, *, first: bool) -> Tensor:
        """All tokens, or with ``first`` the first one only, (n, 1, hidden)."""
        kept = x[:, :1] if first else x
        x = kept + self.attention(self.norm1(x), first=first)
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class _PositionTable(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.position_emb = nn.Parameter(torch.empty(1, _GRID * _GRID, hidden))


class _ScaleTable(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scale_emb = nn.Parameter(torch.empty(len(SIDES) + 1, hidden))


class _Encoder(nn.Module):
    def __init__(self, hidden: int, mlp: int, heads: int, layers: int) -> None:
        super().__init__()
        self.cls = nn.Parameter(torch.empty(1, 1, hidden))
        self.posembed_input = _PositionTable(hidden)
        self.scaleembed_input = _ScaleTable(hidden)
        self.encoder_norm = nn.LayerNorm(hidden, eps=1e-6)
        self.transformer = nn.ModuleDict({f"encoderblock_{i}": _Block(hidden, mlp, heads) for i in range(layers)})

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        """The class token after the last block, (n, hidden).

        Args:
            tokens: (n, N, hidden).
            places: what is added to them by position and scale, (N, hidden).
        """
        x = torch.cat([self.cls.expand(len(tokens), -1, -1), tokens + places], dim=1)
        blocks = list(self.transformer.values())
        for number, block in enumerate(blocks, 1):
            x = block(x, first=number == len(blocks))  # only the class token of the last block is read
        out: Tensor = self.encoder_norm(x[:, 0])
        return out

    def places(self, grids: list[tuple[int, int]]) -> Tensor:
        """Position and scale terms of the patches of all scales, (N, hidden); ``grids``: rows and columns of each."""
        positions = torch.tensor([place for grid in grids for place in _hashed_places(*grid)])
        scales = torch.tensor([scale for scale, (rows, columns) in enumerate(grids) for _ in range(rows * columns)])
        device = self.cls.device
        by_position = self.posembed_input.position_emb[0][positions.to(device)]
        return by_position + self.scaleembed_input.scale_emb[scales.to(device)]


def _hashed_places(rows: int, columns: int) -> list[int]:
    """Cell of a 10 x 10 grid in which each patch lies, row by row."""
    return [i * _GRID // rows * _GRID + j * _GRID // columns for i in range(rows) for j in range(columns)]


class Musiq(nn.Module):
    """The whole network: patches of all scales through one convolutional stem, then a transformer."""

    casts_weights = False  # in half precision only products are: pixels, positions and norms keep their digits

    def __init__(self, hidden: int, mlp: int, heads: int, layers: int) -> None:
        super().__init__()
        self.conv_root = _StdConv(3, 64, 7, 2)
        self.gn_root = nn.GroupNorm(_GROUPS, 64, eps=1e-6)
        self.block1 = _Bottleneck(64, 256)
        self.embedding = nn.Linear(256 * (PATCH // 4) ** 2, hidden)
        self.transformer_encoder = _Encoder(hidden, mlp, heads, layers)
        self.head = nn.Linear(hidden, 1)

    def embed(self, images: Tensor) -> Tensor:
        """Quality of pictures, (n, 1), about 0..100 and not clamped.

        Args:
            images: (n, 3, h, w), 0..1.

        Raises:
            ItemError: ``too_small``: a side of a resized scale would be 0 (one side is 448 times the other, or more).
        """
        x = images * 2 - 1
        height, width = x.shape[-2:]
        scales = [*(_resized(x, scale_size(height, width, side)) for side in SIDES), x]
        cut = [_patches(scale) for scale in scales]
        patches = torch.cat([part for part, _ in cut], dim=1)
        tokens = self._stem(patches.flatten(0, 1)).view(*patches.shape[:2], -1)
        places = self.transformer_encoder.places([grid for _, grid in cut])
        summary = self.transformer_encoder(tokens, places)
        # the head in float32, and so no linear layer under autocast: near 50 the steps of bfloat16 are 0.25
        quality: Tensor = (summary.float() * self.head.weight.float()).sum(-1, keepdim=True) + self.head.bias.float()
        return quality

    def _stem(self, patches: Tensor) -> Tensor:
        """(m, 3, 32, 32) -> (m, hidden)."""
        piece = _PIECE if patches.device.type == "cpu" else _ACCELERATED_PIECE
        starts = range(0, len(patches), piece)
        return torch.cat([self._stem_piece(patches[start : start + piece]) for start in starts])

    def _stem_piece(self, patches: Tensor) -> Tensor:
        x = functional.relu_(self.gn_root(self.conv_root(patches)))
        # pooling is ten times faster with the channels last, normalising with them first
        x = _padded_same(x, 3, 2).contiguous(memory_format=torch.channels_last)
        x = self.block1(functional.max_pool2d(x, 3, 2).contiguous())
        embedded: Tensor = self.embedding(x.permute(0, 2, 3, 1).flatten(1))
        return embedded


def _resized(x: Tensor, size: tuple[int, int]) -> Tensor:
    if 0 in size:
        height, width = x.shape[-2:]
        raise ItemError(
            Reason.TOO_SMALL,
            f"frames of {width}x{height} pixels (width x height) have no scale with a longer side of {max(size)}: "
            "nothing would be left of the shorter one; crop the clip",
            {"size_hw": [height, width]},
        )
    return functional.interpolate(x, size, mode="bicubic", align_corners=False, antialias=False)


def _patches(x: Tensor) -> tuple[Tensor, tuple[int, int]]:
    """(n, 3, h, w) -> (n, rows * columns, 3, 32, 32), row by row and zero-padded, with (rows, columns)."""
    x = _padded_same(x, PATCH, PATCH)
    rows, columns = x.shape[-2] // PATCH, x.shape[-1] // PATCH
    cells = x.reshape(len(x), 3, rows, PATCH, columns, PATCH)
    return cells.permute(0, 2, 4, 1, 3, 5).flatten(1, 2), (rows, columns)


def build(hidden: int = 384, mlp: int = 1152, heads: int = 6, layers: int = 14) -> Musiq:
    """MUSIQ with the given sizes (defaults: as published); the values of its parameters are not set.

    Args:
        hidden: size of a token.
        mlp: inner size of the transformer's perceptrons.
        heads: attention heads.
        layers: transformer blocks.
    """
    return Musiq(hidden, mlp, heads, layers)
