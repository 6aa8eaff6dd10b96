"""LPIPS: how different two pictures look, from the layers of a network that classifies pictures.

Layers and heads are those of the package ``lpips`` 0.1.4, under its names. They are driven here so that several
pictures are compared with each other at once: each goes through the backbone once, each pair is formed once, and what
a layer gives is let go of before the next but one is made.

Source: Zhang et al. 2018, The unreasonable effectiveness of deep features as a perceptual metric.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import lpips
import torch
from torch import Tensor, nn

LEAST_SIDES: Mapping[str, int] = {"vgg": 16, "alex": 31}
"""Pixels that a side must have so that every layer has a pixel."""

_BACKBONE = re.compile(r"features\.(\d+)\.(\w+)")
_HEAD = re.compile(r"lin(\d)\.(.+)")
_TINY = 1e-10
_PICTURE_PIXELS = 2**17  # that go through a layer at a time
_ACCELERATED_PICTURE_PIXELS = 2**22
_STRIP_VALUES = 2**18  # normalised features at a time: they stay in the processor's cache
_ACCELERATED_STRIP_VALUES = 2**26


class Lpips(lpips.LPIPS):  # type: ignore[misc]
    """Heads on top of VGG16 or AlexNet, version 0.1."""

    casts_weights = False  # in half precision only convolutions are: heads and differences keep their digits

    def __init__(self, backbone: Literal["vgg", "alex"], narrow: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how the package says that torchvision shall fetch nothing
            super().__init__(pretrained=False, pnet_rand=True, net=backbone, version="0.1", verbose=False)
        self.backbone = backbone
        if narrow > 1:
            _narrow(self, narrow)

    def translate(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``state`` under the names of the package.

        Args:
            state: torchvision's backbone (``features.*``) and the package's heads (``lin<k>.*``).

        Returns:
            The same; the heads also under their second name, and the constants that pictures are scaled by.
        """
        slots = {name: slot for slot, part in self.net.named_children() for name, _ in part.named_children()}
        found: dict[str, Tensor] = {
            f"scaling_layer.{name}": tensor for name, tensor in self.scaling_layer.state_dict().items()
        }
        for name, tensor in state.items():
            if (layer := _BACKBONE.fullmatch(name)) and layer[1] in slots:
                found[f"net.{slots[layer[1]]}.{layer[1]}.{layer[2]}"] = tensor
                continue
            found[name] = tensor
            if head := _HEAD.fullmatch(name):
                found[f"lins.{head[1]}.{head[2]}"] = tensor
        return found

    def features(self, layer: int, pictures: Tensor) -> Tensor:
        """What ``layer`` (0..4) makes of the one before, (n, C, h, w)."""
        return getattr(self.net, f"slice{layer + 1}")(pictures)  # type: ignore[no-any-return]

    def distances(self, pictures: Tensor) -> Tensor:
        """How different each two of ``pictures`` look: (N (N - 1) / 2,) float64, see :meth:`terms`."""
        return self.terms(pictures).sum(0)

    def terms(self, pictures: Tensor) -> Tensor:
        """The share of each layer in the distances.

        Args:
            pictures: (N, 3, H, W) uint8, on the device of the network.

        Returns:
            (5, N (N - 1) / 2) float64: layers by pairs, in the order (0, 1), (0, 2), ..., (1, 2), ...

        Raises:
            ValueError: a side is too small for the backbone.
        """
        height, width = pictures.shape[-2:]
        least = LEAST_SIDES[self.backbone]
        if min(height, width) < least:
            raise ValueError(f"pictures of {width}x{height} pixels, and {self.backbone} needs sides of {least} or more")
        pixels = _PICTURE_PIXELS if pictures.device.type == "cpu" else _ACCELERATED_PICTURE_PIXELS
        step = max(1, pixels // (height * width))
        pieces = [self._seen(pictures[start : start + step]) for start in range(0, len(pictures), step)]
        found = []
        for layer in range(self.L):
            for number, piece in enumerate(pieces):  # each piece takes the place of the one that it is made from
                pieces[number] = self.features(layer, piece)
            weights = getattr(self, f"lin{layer}").model[-1].weight
            found.append(_compared([one for piece in pieces for one in piece], weights.flatten()))
        return torch.stack(found)

    def _seen(self, pictures: Tensor) -> Tensor:
        """``pictures`` as the backbone sees them: -1..1, then shifted and scaled."""
        scaled: Tensor = self.scaling_layer(pictures.float() / 127.5 - 1)
        return scaled


def _compared(maps: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Weighted squared differences of unit vectors, mean over positions, of each two of ``maps`` (C, h, w): (P,)."""
    flat = [one.flatten(1) for one in maps]
    channels, positions = flat[0].shape
    values = _STRIP_VALUES if flat[0].device.type == "cpu" else _ACCELERATED_STRIP_VALUES
    step = max(1, values // (len(flat) * channels))
    found = torch.zeros(len(flat) * (len(flat) - 1) // 2, dtype=torch.float64, device=flat[0].device)
    with torch.autocast(flat[0].device.type, enabled=False):
        for start in range(0, positions, step):
            found += _strip(torch.stack([one[:, start : start + step].float() for one in flat]), weights.float())
    return found / positions


def _strip(maps: Tensor, weights: Tensor) -> Tensor:
    """The same, summed over positions, of ``maps`` (N, C, s), which are changed."""
    maps /= torch.linalg.vector_norm(maps, dim=1, keepdim=True) + _TINY
    sums = []
    for number in range(len(maps) - 1):
        difference = (maps[number + 1 :] - maps[number]).square_()
        sums.append(torch.matmul(weights, difference).sum(-1, dtype=torch.float64))
    return torch.cat(sums)


def _narrow(module: Lpips, factor: int) -> None:
    """Replace all layers by such with a ``factor``-th of the channels."""
    for part in module.net.children():
        for name, layer in part.named_children():
            if isinstance(layer, nn.Conv2d):
                inputs = layer.in_channels if layer.in_channels == 3 else layer.in_channels // factor
                settings: Any = {"stride": layer.stride, "padding": layer.padding}
                part.register_module(
                    name, nn.Conv2d(inputs, layer.out_channels // factor, layer.kernel_size, **settings)  # type: ignore[arg-type]
                )  # fmt: skip
    for head in module.lins:
        head.model[-1] = nn.Conv2d(head.model[-1].in_channels // factor, 1, 1, bias=False)


def build(backbone: Literal["vgg", "alex"] = "vgg", narrow: int = 1) -> Lpips:
    """LPIPS 0.1 on a backbone; nothing is fetched, and the values of its parameters are not set.

    Args:
        backbone: ``vgg`` (VGG16) or ``alex`` (AlexNet).
        narrow: layers have this many times fewer channels than published ones.

    Raises:
        ValueError: there is no such backbone.
    """
    if backbone not in LEAST_SIDES:
        raise ValueError(f"LPIPS has no backbone {backbone!r} here; there are {', '.join(LEAST_SIDES)}")
    return Lpips(backbone, narrow)
