"""A video Swin transformer whose attention knows which fragment of the frame a token was cut from.

Written from the description of DOVER's technical branch; parameter names are those of its published checkpoint. Tokens
lie channels last, (D, H, W, C), for one clip at a time: what attention adds to its scores is then made for a few
windows, used, and forgotten.

Source: Liu et al. 2022, Video Swin Transformer; Wu et al. 2022, FAST-VQA (gated relative position biases).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.attention import Mlp

Size = tuple[int, int, int]

_MASKED = -100.0  # added to the score of tokens that the shift has made neighbours
_PIECE = 1  # windows of the frame that are looked at together: their biases stay in the processor's cache
_ACCELERATED_PIECE = 64


def clipped(window: Size, shift: Size, size: Size) -> tuple[Size, Size]:
    """Window and shift for a map of ``size``: where it is not larger than the window, there is one, not shifted.

    >>> clipped((8, 7, 7), (4, 3, 3), (5, 7, 9))
    ((5, 7, 7), (0, 0, 3))
    """
    kept = [(w, s) if side > w else (side, 0) for w, s, side in zip(window, shift, size, strict=True)]
    (d, d_shift), (h, h_shift), (w, w_shift) = kept
    return (d, h, w), (d_shift, h_shift, w_shift)


@lru_cache(maxsize=8)
def relative_index(window: Size) -> Tensor:
    """Row of the bias table for two tokens of a window, (N, N) int64; N = tokens of the window.

    The table has one row for each distance of two tokens, of which each part is -(side - 1) ... side - 1.
    """
    places = torch.cartesian_prod(*(torch.arange(side) for side in window)).view(-1, 3)
    distance = places[:, None] - places[None, :] + torch.tensor(window) - 1
    _, rows, columns = (2 * side - 1 for side in window)
    return (distance[..., 0] * rows + distance[..., 1]) * columns + distance[..., 2]


@dataclass(frozen=True)
class Layout:
    """Where the tokens of each window lie in a map, and how they stand to each other.

    A windows side by side in a frame, B one after another in time, N tokens in each.

    Attributes:
        order: row of the map (depth, height and width in one axis) of each token, (A, B, N) int64; 0 for tokens with
            which the map was filled up to whole windows.
        real: which tokens are of the map, (A, B, N) bool; ``None``: all are.
        regions: tokens of a window with different numbers were no neighbours before the shift, (A, B, N) uint8;
            ``None`` where nothing was shifted.
        distances: distance (rows + columns) of the fragments of two tokens, (A, n, n) float32; the n places of a frame
            come again for each step in time.
    """

    order: Tensor
    real: Tensor | None
    regions: Tensor | None
    distances: Tensor


@lru_cache(maxsize=64)
def layout(size: Size, window: Size, shift: Size, device: torch.device) -> Layout:
    """The windows of a map.

    The map is filled up behind its last rows, rolled back by the shift, and cut. Its fragments are a grid of one in
    time and as many along each side as the window has places, enlarged to the filled map.

    Args:
        size: depth, height, width of the map in tokens.
        window: see :func:`clipped`.
        shift: likewise.
        device: where the numbers are wanted.
    """
    filled = [-(-side // w) * w for side, w in zip(size, window, strict=True)]
    rows = torch.full(filled, -1)
    rows[: size[0], : size[1], : size[2]] = torch.arange(size[0] * size[1] * size[2]).view(size)
    order = _cut(rows.roll([-step for step in shift], (0, 1, 2)), window)
    regions = torch.zeros(filled, dtype=torch.uint8)
    for axis, (side, w, step) in enumerate(zip(filled, window, shift, strict=True)):
        place = torch.arange(side)
        part = ((place >= side - w).byte() + (place >= side - step)) if step else torch.zeros(side, dtype=torch.uint8)
        regions = regions * 3 + part.view([-1 if other == axis else 1 for other in range(3)])
    return Layout(
        order.clamp(min=0).to(device),
        None if filled == list(size) else (order >= 0).to(device),
        _cut(regions, window).to(device) if any(shift) else None,
        _distances(filled[1:], window[1:], shift[1:]).to(device),
    )


def _cut(numbers: Tensor, window: Size) -> Tensor:
    """Numbers on a map (D, H, W), window by window: (A, B, N)."""
    (depth, height, width), (d, h, w) = numbers.shape, window
    cut = numbers.view(depth // d, d, height // h, h, width // w, w).permute(2, 4, 0, 1, 3, 5)
    return cut.reshape(-1, depth // d, d * h * w)


def _distances(sides: Sequence[int], window: Sequence[int], shift: Sequence[int]) -> Tensor:
    """Distances of fragments, see :class:`Layout`."""
    down, across = (
        (parts[:, :, None] - parts[:, None, :]).abs()
        for parts in (_fragments(w, side, s).view(-1, w) for side, w, s in zip(sides, window, shift, strict=True))
    )
    places = window[0] * window[1]
    return (down[:, None, :, None, :, None] + across[None, :, None, :, None, :]).reshape(-1, places, places)


def _fragments(count: int, side: int, shift: int) -> Tensor:
    """Which of ``count`` fragments each place of a side is nearest to, rolled back by the shift; (side,)."""
    grid = torch.arange(count, dtype=torch.float32)[None, None]
    return functional.interpolate(grid, size=side, mode="nearest")[0, 0].roll(-shift)


class _Attention(nn.Module):
    """Attention inside of windows."""

    def __init__(self, width: int, heads: int, window: Size, gated: bool) -> None:
        super().__init__()
        self.heads, self.window, self.gated = heads, window, gated
        rows = math.prod(2 * side - 1 for side in window)
        self.relative_position_bias_table = nn.Parameter(torch.empty(rows, heads))
        if gated:
            self.fragment_position_bias_table = nn.Parameter(torch.empty(rows, heads))
        # the checkpoint holds the index too; it follows from the window, and is computed from it
        tokens = math.prod(window)
        self.register_buffer("relative_position_index", torch.empty(tokens, tokens, dtype=torch.int64))
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor, scores: Tensor) -> Tensor:
        """What the tokens of each window make of each other.

        Args:
            tokens: (..., N, C).
            scores: added before the softmax, (1 or all windows, heads, N, N).
        """
        qkv = self.qkv(tokens).view(-1, tokens.shape[-2], 3, self.heads, tokens.shape[-1] // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=scores.to(q.dtype))
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(tokens.shape))
        return out

    def biases(self, tokens: int) -> tuple[Tensor, Tensor | None]:
        """Bias at distance 0, and what each step of distance adds, both (heads, N, N); ``None``: nothing is added.

        A smaller window reads the first rows and columns of the full window's index, as the published network does.
        """
        index = relative_index(self.window)[:tokens, :tokens].to(self.qkv.weight.device)
        relative = self.relative_position_bias_table.t().contiguous()[:, index]
        if not self.gated:
            return relative, None
        own = self.fragment_position_bias_table.t().contiguous()[:, index]
        return own, relative - own


def _scores(plain: Tensor, per_step: Tensor | None, distances: Tensor, regions: Tensor | None, time: int) -> Tensor:
    """What is added to the scores of some windows.

    Args:
        plain: see :meth:`_Attention.biases`.
        per_step: likewise; the distance is not limited to 1.
        distances: (a, n, n).
        regions: (a, B, N).
        time: B.

    Returns:
        (a B, heads, N, N), or (1, heads, N, N) where one serves for all.
    """
    tokens = plain.shape[-1]
    bias = plain[None]
    if per_step is not None:
        steps = tokens // distances.shape[-1]
        bias = torch.addcmul(plain, distances.repeat(1, steps, steps)[:, None], per_step)
    if regions is not None:
        apart = (regions[..., :, None] != regions[..., None, :]).to(bias.dtype)
        return torch.add(bias[:, None], apart[:, :, None], alpha=_MASKED).flatten(0, 1)
    return bias if len(bias) == 1 else bias.repeat_interleave(time, 0)


class _Block(nn.Module):
    """One pre-norm block; ``shift`` is that of maps larger than a window."""

    def __init__(self, width: int, heads: int, window: Size, shift: Size, gated: bool, ratio: int) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1 = nn.LayerNorm(width)
        self.attn = _Attention(width, heads, window, gated)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, ratio * width)

    def forward(self, x: Tensor) -> None:
        """Change the map ``x`` (D, H, W, C), a few windows at a time: their tokens depend on each other only."""
        size: Size = (x.shape[0], x.shape[1], x.shape[2])
        found = layout(size, *clipped(self.window, self.shift, size), x.device)
        plain, per_step = self.attn.biases(found.order.shape[-1])
        flat = x.view(-1, x.shape[-1])
        piece = _PIECE if x.device.type == "cpu" else _ACCELERATED_PIECE
        for start in range(0, len(found.order), piece):
            part = slice(start, start + piece)
            order, time = found.order[part], found.order.shape[1]
            regions = None if found.regions is None else found.regions[part]
            scores = _scores(plain, per_step, found.distances[part], regions, time)
            if found.real is None:
                flat[order] = self._window(flat[order], scores, None)
            else:
                real = found.real[part]
                flat[order[real]] = self._window(flat[order], scores, real)[real]

    def _window(self, tokens: Tensor, scores: Tensor, real: Tensor | None) -> Tensor:
        """The block for the tokens (a, B, N, C) of some windows; those that only fill up are 0 for the attention."""
        seen = self.norm1(tokens)
        tokens = tokens + self.attn(seen if real is None else seen * real[..., None], scores)
        out: Tensor = tokens + self.mlp(self.norm2(tokens))
        return out


class _Merging(nn.Module):
    """Two by two neighbours of a frame become one token of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pad(x, [0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2])
        corners = [x[:, row::2, column::2] for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
        merged: Tensor = self.reduction(self.norm(torch.cat(corners, -1)))
        return merged.float()  # what blocks add up keeps its digits


class _Stage(nn.Module):
    def __init__(
        self, width: int, depth: int, heads: int, window: Size, gated: bool, ratio: int, *, last: bool
    ) -> None:
        super().__init__()
        half: Size = (window[0] // 2, window[1] // 2, window[2] // 2)
        shifts = itertools.islice(itertools.cycle([(0, 0, 0), half]), depth)
        self.blocks = nn.ModuleList(_Block(width, heads, window, shift, gated, ratio) for shift in shifts)
        self.downsample = None if last else _Merging(width)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            block(x)
        if self.downsample is not None:
            x = self.downsample(x)
        return x


class _PatchEmbedding(nn.Module):
    def __init__(self, width: int, patch: Size) -> None:
        super().__init__()
        self.proj = nn.Conv3d(3, width, patch, patch)
        self.norm = nn.LayerNorm(width)

    def forward(self, clip: Tensor) -> Tensor:
        """(3, T, H, W) -> (D, H, W, C)."""
        patches: Tensor = self.proj(clip[None])[0].permute(1, 2, 3, 0)
        out: Tensor = self.norm(patches.float().contiguous())
        return out


class VideoSwin(nn.Module):
    """The backbone: patches, stages of windowed attention, a normalisation.

    Args:
        width: channels after the patches; each stage but the first has twice those of the one before.
        depths: blocks of each stage; every second one is shifted by half a window.
        heads: attention heads of each stage.
        window: tokens of a window in time, rows, columns.
        patch: pixels of a token likewise.
        gated: stages, counted from the first, whose attention knows the fragments.
        ratio: inner width of the perceptrons over the width.
    """

    def __init__(
        self,
        width: int,
        depths: Sequence[int],
        heads: Sequence[int],
        window: Size,
        patch: Size,
        *,
        gated: int,
        ratio: int,
    ) -> None:
        super().__init__()
        self.patch = patch
        self.width = width * 2 ** (len(depths) - 1)
        self.patch_embed = _PatchEmbedding(width, patch)
        stages = enumerate(zip(depths, heads, strict=True))
        self.layers = nn.ModuleList(
            _Stage(width * 2**i, depth, n, window, i < gated, ratio, last=i == len(depths) - 1)
            for i, (depth, n) in stages
        )
        self.norm = nn.LayerNorm(self.width)

    def forward(self, clip: Tensor) -> Tensor:
        """The tokens (D, H, W, C) of one clip (3, T, height, width), whose sides are multiples of a patch's."""
        x: Tensor = self.patch_embed(clip)
        for stage in self.layers:
            x = stage(x)
        out: Tensor = self.norm(x)
        return out
