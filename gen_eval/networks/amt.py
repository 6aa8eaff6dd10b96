"""AMT-S: the frame between two frames, from correlations in both directions and three flows each way.

Source: All-Pairs Multi-Field Transforms for Efficient Frame Interpolation (2023). Written from a description of the
network; the published checkpoint loads by its names.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.amt_blocks import ContextEncoder, Decoder, MatchingEncoder, Update, rescaled
from gen_eval.networks.correlation import CorrelationPyramid, Scratch

_MIDDLE = 0.5
_FIELDS = 3
_LEVELS = 4
_RADIUS = 3


def build() -> AMT:
    """AMT-S."""
    return AMT()


class AMT(nn.Module):
    """AMT-S with three pairs of flows. Positions and flows are float32 whatever the format of its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.feat_encoder = MatchingEncoder()
        self.encoder = ContextEncoder()
        self.decoder4 = Decoder(113, 112, 48)
        self.decoder3 = Decoder(136, 132, 36)
        self.decoder2 = Decoder(100, 96, 24)
        self.decoder1 = Decoder(64, 60, 24)
        self.update4 = Update(44, 1)
        self.update3 = Update(32, 2)
        self.update2 = Update(20, 4)
        self.comb_block = nn.Sequential(
            nn.Conv2d(3 * _FIELDS, 6 * _FIELDS, 3, 1, 1), nn.PReLU(6 * _FIELDS), nn.Conv2d(6 * _FIELDS, 3, 3, 1, 1)
        )

    def interpolate(self, first: Tensor, last: Tensor, scratch: Scratch | None = None) -> Tensor:
        """The frame in the middle.

        Args:
            first: (B, 3, H, W) float32, 0..1; H and W are multiples of 16 and at least 128.
            last: likewise.
            scratch: memory to use again in calls with images of one size.

        Returns:
            (B, 3, H, W) float32, 0..1.
        """
        scratch = scratch or Scratch()
        images = torch.cat([first, last]).float()
        means = torch.stack(images.chunk(2)).mean((0, 2, 3, 4)).repeat(2)
        flows, planes = self._decode(images - means[:, None, None, None], scratch)
        return self._merged(images, flows, planes, scratch)

    def _decode(self, images: Tensor, scratch: Scratch) -> tuple[Tensor, Tensor]:
        """What the picture is made of.

        Args:
            images: first images, then last ones (2 B, 3, H, W), mean-free.
            scratch: see :meth:`interpolate`.

        Returns:
            Flows from the middle to each image at half size (2 B, 2, H/2, W/2) float32; and (B, 24, H, W): for each of
            three fields corrections of the flow to the first image, of that to the last, a mask and a residual.
        """
        seen = images.to(next(self.parameters()).dtype).contiguous(memory_format=torch.channels_last)
        matcher = _Matcher(self.feat_encoder(seen), scratch)
        *finer, coarsest = self.encoder(seen)
        first, last = coarsest.chunk(2)
        output = self.decoder4(torch.cat([first, last, torch.full_like(first[:, :1], _MIDDLE)], 1))
        flows, features = _by_image(output[:, :4]), output[:, 4:]
        flows, features = self._corrected(self.update4, matcher, flows, features, 1)
        for decoder, update, factor, contexts in (
            (self.decoder3, self.update3, 2, finer[2]),
            (self.decoder2, self.update2, 4, finer[1]),
        ):
            output = decoder(_gathered(features, contexts, flows))
            flows, features = _by_image(output[:, :4]) + 2 * rescaled(flows, 2), output[:, 4:]
            flows, features = self._corrected(update, matcher, flows, features, factor)
        return flows, self.decoder1(_gathered(features, finer[0], flows))

    def _corrected(
        self, update: Update, matcher: _Matcher, flows: Tensor, features: Tensor, factor: int
    ) -> tuple[Tensor, Tensor]:
        """Flows and features after ``update``."""
        more_features, more_flows = update(features, *matcher.look_up(flows, factor))
        return flows + _by_image(more_flows), features + more_features

    def _merged(self, images: Tensor, flows: Tensor, planes: Tensor, scratch: Scratch) -> Tensor:
        """The pictures that three fields give, their mean, and what the last convolutions add to it."""
        planar = _planar(planes.float(), scratch)
        fields, mask, residual = torch.split(planar, [4 * _FIELDS, _FIELDS, 3 * _FIELDS], 1)
        mask = mask.sigmoid()
        coarse = positions(2 * rescaled(flows, 2))
        scale = _steps(coarse)
        sides = []
        for image, start, field in zip(images.chunk(2), coarse.chunk(2), fields.chunk(2, 1), strict=True):
            there = torch.addcmul(start[:, None], field.view(-1, _FIELDS, 2, *field.shape[2:]), scale)
            sides.append([sampled(image, one) for one in there.unbind(1)])
        made = torch.empty_like(residual, memory_format=torch.channels_last)
        for index, (first, last) in enumerate(zip(*sides, strict=True)):
            part = slice(3 * index, 3 * index + 3)
            made[:, part] = torch.lerp(last, first, mask[:, index : index + 1]).add_(residual[:, part])
        refined = self.comb_block(made.to(planes.dtype))
        drawn = torch.stack([*made.chunk(_FIELDS, 1)]).mean(0).add_(refined)
        return drawn.masked_fill_(~drawn.isfinite(), math.nan).clamp_(0, 1)  # the clamp would make infinity a colour


class _Matcher:
    """Correlations of both images of each pair, seen from the frame between them."""

    def __init__(self, features: Tensor, scratch: Scratch) -> None:
        first, last = features.chunk(2)
        self._forth, self._back = CorrelationPyramid.both_ways(
            first, last, levels=_LEVELS, radius=_RADIUS, scratch=scratch
        )
        rows, columns = torch.arange(features.shape[2]), torch.arange(features.shape[3])
        self._grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy")).float().to(features.device)

    def look_up(self, flows: Tensor, factor: int) -> tuple[Tensor, Tensor]:
        """Both flows of each pair at 1/8 side by side (B, 4, ...), and the correlations around them (B, 392, ...).

        Flows lead from the middle frame; from one image to the other it is twice as far.
        """
        if factor > 1:
            flows = rescaled(flows, 1 / factor) / factor
        to_first, to_last = flows.chunk(2)
        forth = self._forth.lookup(self._grid + to_last / (1 - _MIDDLE))
        back = self._back.lookup(self._grid + to_first / _MIDDLE)
        return torch.cat([to_first, to_last], 1), torch.cat([forth, back], 1)


def _by_image(flows: Tensor) -> Tensor:
    """Flows to the first and to the last image (B, 4, H, W) as the batch has images: (2 B, 2, H, W) float32."""
    return torch.cat(flows.float().chunk(2, 1))


def _planar(x: Tensor, scratch: Scratch) -> Tensor:
    """``x`` (B, C, H, W), in memory with channels last, copied channel by channel; as matrices that takes a third."""
    matrices = x.permute(0, 2, 3, 1).flatten(1, 2).transpose(1, 2)
    copy = scratch.empty("planes", tuple(matrices.shape), x)
    for target, matrix in zip(copy, matrices, strict=True):
        target.copy_(matrix)
    return copy.view(x.shape)


def _gathered(features: Tensor, contexts: Tensor, flows: Tensor) -> Tensor:
    """Input of a decoder: features, both images' features seen from the middle, both flows."""
    seen = sampled(contexts, positions(flows))
    return _side_by_side(features, *seen.chunk(2), *flows.chunk(2))


def _side_by_side(first: Tensor, *others: Tensor) -> Tensor:
    """Maps (B, C, H, W) one after the other, with channels last and the first one's number format.

    Joined as they are, maps of either order in memory would lose it, and the convolutions behind are slower without.
    """
    channels = sum(part.shape[1] for part in (first, *others))
    shape = (len(first), channels, *first.shape[2:])
    joined = torch.empty(shape, dtype=first.dtype, device=first.device, memory_format=torch.channels_last)
    start = 0
    for part in (first, *others):
        joined[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return joined


def _steps(like: Tensor) -> Tensor:
    """One pixel of ``like`` (B, 2, H, W) in the units of :func:`positions`, for x and for y: (2, 1, 1)."""
    height, width = like.shape[2:]
    return torch.tensor([2 / (width - 1), 2 / (height - 1)], device=like.device)[:, None, None]


def positions(flows: Tensor) -> Tensor:
    """Where ``flows`` (B, 2, H, W) in pixels point: x and y, -1 in the first pixel's centre, 1 in the last's."""
    height, width = flows.shape[2:]
    columns = torch.linspace(-1, 1, width, device=flows.device).expand(height, width)
    rows = torch.linspace(-1, 1, height, device=flows.device)[:, None].expand(height, width)
    return torch.addcmul(torch.stack([columns, rows]), flows, _steps(flows))


def sampled(images: Tensor, where: Tensor) -> Tensor:
    """``images`` (B, C, H, W) read at :func:`positions` (B, 2, h, w), bilinear; border pixels go on outside.

    Positions are too fine for half precision: the reading is done in float32.
    """
    grid = where.permute(0, 2, 3, 1)
    read = functional.grid_sample(images.float(), grid, mode="bilinear", padding_mode="border", align_corners=True)
    return read.to(images.dtype)
