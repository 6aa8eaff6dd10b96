"""AMT-S to the letter: volumes halved by averaging, one reading for each window place, maps joined as they are.

The convolutions are those of the module; nothing is shared between both directions, and memory is as it comes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 4
_RADIUS = 3


def interpolate(module: Any, first: Tensor, last: Tensor) -> Tensor:
    """The frame between ``first`` and ``last`` (B, 3, H, W), 0..1, by the layers of ``module`` (AMT-S)."""
    mean = torch.cat([first, last], 2).mean((1, 2, 3), keepdim=True)
    first, last = first - mean, last - mean
    look = _Correlations(*_matched_by(module.feat_encoder, torch.cat([first, last])).chunk(2))
    firsts, lasts = module.encoder(first), module.encoder(last)
    middle = torch.full_like(firsts[3][:, :1], 0.5)
    output = module.decoder4(torch.cat([firsts[3], lasts[3], middle], 1))
    flows, features = [output[:, :2], output[:, 2:4]], output[:, 4:]
    for factor, update, decoder, level in (
        (1, module.update4, module.decoder3, 2),
        (2, module.update3, module.decoder2, 1),
        (4, module.update2, module.decoder1, 0),
    ):
        more_features, more_flows = update(features, *look.up(flows, factor))
        flows = [flow + more for flow, more in zip(flows, more_flows.chunk(2, 1), strict=True)]
        features = features + more_features
        seen = [_warped(side[level], flow) for side, flow in zip((firsts, lasts), flows, strict=True)]
        output = decoder(torch.cat([features, *seen, *flows], 1))
        if level > 0:
            flows = [more + 2 * _rescaled(flow, 2) for more, flow in zip(output[:, :4].chunk(2, 1), flows, strict=True)]
            features = output[:, 4:]
    return _merged(module, (first, last), mean, flows, output)


def _merged(module: Any, images: tuple[Tensor, Tensor], mean: Tensor, flows: list[Tensor], output: Tensor) -> Tensor:
    to_first, to_last = (
        more + 2 * _rescaled(flow, 2).repeat(1, 3, 1, 1)
        for more, flow in zip(output[:, :12].chunk(2, 1), flows, strict=True)
    )
    mask, residual = output[:, 12:15].sigmoid(), output[:, 15:]
    made = []
    for index in range(3):
        flow, part = slice(2 * index, 2 * index + 2), slice(3 * index, 3 * index + 3)
        share = mask[:, index : index + 1]
        both = share * _warped(images[0], to_first[:, flow]) + (1 - share) * _warped(images[1], to_last[:, flow])
        made.append(both + mean + residual[:, part])
    refined: Tensor = module.comb_block(torch.cat(made, 1))
    return (torch.stack(made).mean(0) + refined).clamp(0, 1)


def _matched_by(encoder: Any, images: Tensor) -> Tensor:
    x = functional.relu(functional.instance_norm(encoder.conv1(images)))
    for block in (*encoder.layer1, *encoder.layer2, *encoder.layer3):
        y = x
        for layer in (block.conv1, block.conv2, block.conv3):
            y = functional.relu(functional.instance_norm(layer(y)))
        shortcut = functional.instance_norm(block.downsample(x)) if block.stride > 1 else x
        x = functional.relu(y + shortcut)
    matched: Tensor = encoder.conv2(x)
    return matched


class _Correlations:
    def __init__(self, first: Tensor, last: Tensor) -> None:
        batch, channels, self._height, self._width = first.shape
        volume = first.flatten(2).transpose(1, 2) @ last.flatten(2) / math.sqrt(channels)
        self._pyramids = [self._scales(volume), self._scales(volume.transpose(1, 2))]
        rows, columns = torch.meshgrid(torch.arange(self._height), torch.arange(self._width), indexing="ij")
        self._grid = torch.stack([columns, rows]).float()[None].repeat(batch, 1, 1, 1)

    def _scales(self, volume: Tensor) -> list[Tensor]:
        scales = [volume.reshape(-1, 1, self._height, self._width)]
        for _ in range(_LEVELS - 1):
            scales.append(functional.avg_pool2d(scales[-1], 2))
        return scales

    def up(self, flows: list[Tensor], factor: int) -> tuple[Tensor, Tensor]:
        """Both flows at 1/8, and what is found around where they lead."""
        if factor > 1:
            flows = [_rescaled(flow, 1 / factor) / factor for flow in flows]
        found = [
            self._windows(scales, self._grid + 2 * flow)
            for scales, flow in zip(self._pyramids, flows[::-1], strict=True)
        ]
        return torch.cat(flows, 1), torch.cat(found, 1)

    def _windows(self, scales: list[Tensor], centre: Tensor) -> Tensor:
        around = torch.arange(-_RADIUS, _RADIUS + 1).float()
        places = torch.stack(torch.meshgrid(around, around, indexing="ij"), -1)
        found = []
        for level, volume in enumerate(scales):
            at = centre.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level + places
            sides = torch.tensor([volume.shape[3] - 1, volume.shape[2] - 1])
            read = functional.grid_sample(volume, 2 * at / sides - 1, align_corners=True)
            found.append(read.view(len(centre), self._height, self._width, -1).permute(0, 3, 1, 2))
        return torch.cat(found, 1)


def _rescaled(x: Tensor, factor: float) -> Tensor:
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)


def _warped(images: Tensor, flow: Tensor) -> Tensor:
    height, width = flow.shape[2:]
    columns = torch.linspace(-1, 1, width).view(1, 1, width) + flow[:, 0] / ((width - 1) / 2)
    rows = torch.linspace(-1, 1, height).view(1, height, 1) + flow[:, 1] / ((height - 1) / 2)
    grid = torch.stack([columns, rows], -1)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=True)
