"""Building blocks of AMT-S. Names of parts are those of the published checkpoint.

Feature maps lie in memory with channels last, and are of the network's own number format; flows are float32.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

_SIDE_CHANNELS = 20
_SLOPE = 0.1


def rescaled(x: Tensor, factor: float) -> Tensor:
    """``x`` (B, C, H, W) bilinearly resized by ``factor``, pixel areas aligned."""
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)


def conv_prelu(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """A 3x3 convolution and PReLU with a slope for each channel."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1), nn.PReLU(outputs))


def _standardised(x: Tensor) -> Tensor:
    """``x``, of one image, with mean 0 and variance 1 in each channel.

    Of a single image this is instance normalisation; unlike that, it keeps channels last in memory.
    """
    return functional.batch_norm(x, None, None, training=True, eps=1e-5)


class Bottleneck(nn.Module):
    """A residual block 1x1, 3x3, 1x1 with instance normalisation."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        inner = outputs // 4
        self.conv1 = nn.Conv2d(inputs, inner, 1)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1)
        self.conv3 = nn.Conv2d(inner, outputs, 1)
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride))
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Features of one image."""
        y = _standardised(self.conv1(x)).relu_()
        y = _standardised(self.conv2(y)).relu_()
        y = _standardised(self.conv3(y)).relu_()
        if self.stride > 1:
            x = _standardised(self.downsample(x))
        return y.add_(x).relu_()


class MatchingEncoder(nn.Module):
    """Features (B, 84, H/8, W/8) whose scalar products say which positions look alike."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 7, 2, 3)
        self.layer1 = nn.Sequential(Bottleneck(32, 32, 1), Bottleneck(32, 32, 1))
        self.layer2 = nn.Sequential(Bottleneck(32, 64, 2), Bottleneck(64, 64, 1))
        self.layer3 = nn.Sequential(Bottleneck(64, 96, 2), Bottleneck(96, 96, 1))
        self.conv2 = nn.Conv2d(96, 84, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Features of (B, 3, H, W)."""
        return torch.cat([self._features(image) for image in images.chunk(len(images))])

    def _features(self, image: Tensor) -> Tensor:
        x = _standardised(self.conv1(image)).relu_()
        return self.conv2(self.layer3(self.layer2(self.layer1(x))))  # type: ignore[no-any-return]


class ContextEncoder(nn.Module):
    """Features at 1/2, 1/4, 1/8 and 1/16 with 20, 32, 44 and 56 channels."""

    def __init__(self) -> None:
        super().__init__()
        for number, (inputs, outputs) in enumerate(pairwise((3, 20, 32, 44, 56)), start=1):
            stage = nn.Sequential(conv_prelu(inputs, outputs, 2), conv_prelu(outputs, outputs))
            self.add_module(f"pyramid{number}", stage)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Features of (B, 3, H, W), the finest first."""
        found = [images]
        for stage in self.children():
            found.append(stage(found[-1]))
        return found[1:]


class SideResidual(nn.Module):
    """A residual block in which the last 20 channels pass a convolution of their own after the first and the second."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = conv_prelu(channels, channels)
        self.conv2 = conv_prelu(_SIDE_CHANNELS, _SIDE_CHANNELS)
        self.conv3 = conv_prelu(channels, channels)
        self.conv4 = conv_prelu(_SIDE_CHANNELS, _SIDE_CHANNELS)
        self.conv5 = nn.Conv2d(channels, channels, 3, 1, 1)
        self.prelu = nn.PReLU(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Features of the same shape."""
        y = self.conv1(x)
        y[:, -_SIDE_CHANNELS:] = self.conv2(y[:, -_SIDE_CHANNELS:])
        y = self.conv3(y)
        y[:, -_SIDE_CHANNELS:] = self.conv4(y[:, -_SIDE_CHANNELS:])
        return self.prelu(self.conv5(y).add_(x))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """What is known at one scale to flows and features (or, last, to all that makes the picture) at twice the scale."""

    def __init__(self, inputs: int, channels: int, outputs: int) -> None:
        super().__init__()
        self.convblock = nn.Sequential(
            conv_prelu(inputs, channels), SideResidual(channels), nn.ConvTranspose2d(channels, outputs, 4, 2, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, outputs, 2 H, 2 W) from (B, inputs, H, W)."""
        return self.convblock(x)  # type: ignore[no-any-return]


def _rectified(x: Tensor) -> Tensor:
    return functional.leaky_relu_(x, _SLOPE)


def _two_convolutions(inputs: int, channels: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, 1, 1),
        nn.LeakyReLU(_SLOPE, inplace=True),
        nn.Conv2d(channels, outputs, 3, 1, 1),
    )


class Update(nn.Module):
    """Corrections of features and flows from correlations, computed at 1/8 for a scale ``factor`` times as fine."""

    def __init__(self, channels: int, factor: int) -> None:
        super().__init__()
        self.factor = factor
        self.convc1 = nn.Conv2d(392, 64, 1)
        self.convf1 = nn.Conv2d(4, 40, 7, 1, 3)
        self.convf2 = nn.Conv2d(40, 20, 3, 1, 1)
        self.conv = nn.Conv2d(84, 68, 3, 1, 1)
        self.gru = _two_convolutions(68 + 4 + channels, 76, 76)
        self.feat_head = _two_convolutions(76, 76, channels)
        self.flow_head = _two_convolutions(76, 76, 4)

    def forward(self, features: Tensor, flows: Tensor, correlation: Tensor) -> tuple[Tensor, Tensor]:
        """Corrections.

        Args:
            features: (B, C, factor * H/8, factor * W/8).
            flows: both flows at 1/8, (B, 4, H/8, W/8) float32.
            correlation: (B, 392, H/8, W/8).

        Returns:
            What to add to the features, and to both flows (float32), at the scale of the features.
        """
        moved = flows.to(features.dtype)
        if self.factor > 1:
            features = rescaled(features, 1 / self.factor)
        matched = _rectified(self.convc1(correlation))
        motion = _rectified(self.convf2(_rectified(self.convf1(moved))))
        state = _rectified(self.conv(torch.cat([matched, motion], 1)))
        state = self.gru(torch.cat([state, moved, features], 1))
        more_features, more_flows = self.feat_head(state), self.flow_head(state).float()
        if self.factor > 1:
            more_features = rescaled(more_features, self.factor)
            more_flows = rescaled(more_flows, self.factor) * self.factor
        return more_features, more_flows
