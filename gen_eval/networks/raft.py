"""RAFT (large): dense optical flow between neighbouring frames.

The layers are torchvision's. They are driven here so that each frame is encoded once, what does not change between
updates is computed once, and only the last update is brought to full size; the flow is the same.

Source: RAFT: Recurrent All-Pairs Field Transforms for Optical Flow (2020).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gen_eval.networks.correlation import CorrelationPyramid

_LEVELS = 4
_RADIUS = 4
_HIDDEN = 128
_FACTOR = 8

_ENCODER = {"fnet": "feature_encoder", "cnet": "context_encoder"}
_STEM = {"conv1": "convnormrelu.0", "norm1": "convnormrelu.1", "conv2": "conv"}
_BLOCK = {
    "conv1": "convnormrelu1.0",
    "norm1": "convnormrelu1.1",
    "conv2": "convnormrelu2.0",
    "norm2": "convnormrelu2.1",
    "downsample.0": "downsample.0",
    "downsample.1": "downsample.1",
}
_UPDATE = {
    "encoder.convc1": "motion_encoder.convcorr1.0",
    "encoder.convc2": "motion_encoder.convcorr2.0",
    "encoder.convf1": "motion_encoder.convflow1.0",
    "encoder.convf2": "motion_encoder.convflow2.0",
    "encoder.conv": "motion_encoder.conv.0",
    "flow_head.conv1": "flow_head.conv1",
    "flow_head.conv2": "flow_head.conv2",
}
_MASK = {"mask.0": "mask_predictor.convrelu.0", "mask.2": "mask_predictor.conv"}
_GATE = re.compile(r"gru\.conv([zrq])([12])")


def build() -> RAFT:
    """RAFT (large).

    Raises:
        ItemError: torchvision is not installed.
    """
    return RAFT()


class RAFT(nn.Module):
    """RAFT (large) with torchvision's names. Positions and flows are float32 whatever the format of its numbers."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.optical_flow import raft_large

        layers = raft_large(weights=None)
        self.feature_encoder = layers.feature_encoder
        self.context_encoder = layers.context_encoder
        self.update_block = layers.update_block
        self.mask_predictor = layers.mask_predictor

    def translate(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """``state`` under torchvision's names, whether it has these or those of the original file.

        The normalisation of a shortcut stands in the original file twice; the second name counts.
        """
        return {
            _translated(name): tensor for name, tensor in state.items() if not re.search(r"layer\d\.0\.norm3\.", name)
        }

    def features(self, frames: Tensor) -> Tensor:
        """What frames are matched by, (n, 256, H/8, W/8).

        Args:
            frames: (n, 3, H, W), 0..255; H and W are multiples of 8 and at least 128.
        """
        return self.feature_encoder(self._seen(frames))  # type: ignore[no-any-return]

    def flow(self, frames: Tensor, own: Tensor, others: Tensor, updates: int = 20) -> Tensor:
        """Where each pixel of a frame has gone in another frame.

        Args:
            frames: (n, 3, H, W), 0..255; H and W are multiples of 8 and at least 128.
            own: their :meth:`features`.
            others: :meth:`features` of the frames that they are compared with.
            updates: how often the flow is improved.

        Returns:
            (n, 2, H, W) float32: x and y in pixels.
        """
        correlation = CorrelationPyramid.of(own, others, levels=_LEVELS, radius=_RADIUS)
        hidden, context = self.context_encoder(self._seen(frames)).split(_HIDDEN, 1)
        hidden, gates = hidden.tanh(), [_Gates(unit, context.relu()) for unit in self._units()]
        block = self.update_block
        start = _grid(own)
        flow = torch.zeros_like(start)
        for _ in range(updates):
            # one map that lies otherwise in memory, and all that it meets lies so and is slower
            moved = flow.to(own.dtype).contiguous(memory_format=torch.channels_last)
            motion = block.motion_encoder(moved, correlation.lookup(start + flow))
            for gate in gates:
                hidden = gate(hidden, motion)
            flow = flow + block.flow_head(hidden).float()
        return _enlarged(flow, self.mask_predictor(hidden).float())

    def _seen(self, frames: Tensor) -> Tensor:
        """``frames`` as both encoders see them: -1..1."""
        seen = (2 * frames.float() / 255 - 1).to(next(self.parameters()).dtype)
        return seen.contiguous(memory_format=torch.channels_last)

    def _units(self) -> Iterator[Any]:
        recurrent = self.update_block.recurrent_block
        yield from (recurrent.convgru1, recurrent.convgru2)


class _Gates:
    """A recurrent unit in which the context's share of all three gates is computed once, and two gates together."""

    def __init__(self, unit: Any, context: Tensor) -> None:
        first, inner, last = (slice(None), slice(_HIDDEN, 2 * _HIDDEN)), slice(0, _HIDDEN), slice(2 * _HIDDEN, None)
        self._padding = unit.convz.padding
        moving = [
            torch.cat([conv.weight[:, inner], conv.weight[:, last]], 1) for conv in (unit.convz, unit.convr, unit.convq)
        ]
        self._update_reset, self._candidate = torch.cat(moving[:2]), moving[2]
        still = torch.cat([conv.weight[first] for conv in (unit.convz, unit.convr, unit.convq)])
        bias = torch.cat([conv.bias for conv in (unit.convz, unit.convr, unit.convq)])
        shares = functional.conv2d(context, still, bias, padding=self._padding)
        self._still = shares[:, : 2 * _HIDDEN], shares[:, 2 * _HIDDEN :]

    def __call__(self, hidden: Tensor, motion: Tensor) -> Tensor:
        both = functional.conv2d(torch.cat([hidden, motion], 1), self._update_reset, padding=self._padding)
        update, reset = both.add_(self._still[0]).sigmoid_().chunk(2, 1)
        candidate = functional.conv2d(torch.cat([reset * hidden, motion], 1), self._candidate, padding=self._padding)
        return torch.lerp(hidden, candidate.add_(self._still[1]).tanh_(), update)


def _grid(like: Tensor) -> Tensor:
    """Each position's own x and y (B, 2, H, W) float32."""
    batch, _, height, width = like.shape
    rows = torch.arange(height, device=like.device, dtype=torch.float32)
    columns = torch.arange(width, device=like.device, dtype=torch.float32)
    return torch.stack(torch.meshgrid(columns, rows, indexing="xy")).expand(batch, -1, -1, -1)


def _enlarged(flow: Tensor, mask: Tensor) -> Tensor:
    """``flow`` (B, 2, h, w) at 8 times the size: each value a mean of its 3x3 neighbours, weighted as ``mask`` says."""
    batch, _, height, width = flow.shape
    weights = mask.reshape(batch, 9, _FACTOR, _FACTOR, height, width).softmax(1)
    neighbours = functional.unfold(_FACTOR * flow, 3, padding=1).view(batch, 2, 9, height, width)
    fine = torch.einsum("bkijhw,bckhw->bchiwj", weights, neighbours)
    return fine.reshape(batch, 2, _FACTOR * height, _FACTOR * width)


def _translated(name: str) -> str:
    """The name that torchvision has for ``name``; names that mean nothing here stay as they are."""
    part, _, rest = name.partition(".")
    layer, _, kind = rest.rpartition(".")
    if part in _ENCODER:
        stage = re.fullmatch(r"(layer\d\.\d)\.(.+)", layer)
        known = _BLOCK.get(stage[2]) if stage else _STEM.get(layer)
        return f"{_ENCODER[part]}.{stage[1] + '.' if stage else ''}{known}.{kind}" if known else name
    if part != "update_block":
        return name
    if gate := _GATE.fullmatch(layer):
        return f"update_block.recurrent_block.convgru{gate[2]}.conv{gate[1]}.{kind}"
    if layer in _MASK:
        return f"{_MASK[layer]}.{kind}"
    return f"update_block.{_UPDATE[layer]}.{kind}" if layer in _UPDATE else name
