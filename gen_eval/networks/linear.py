"""A linear head on embeddings, such as LAION's aesthetic predictor."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Linear):
    """``x W^T + b``, in float32 whatever the format of the network before it."""

    casts_weights = False

    def embed(self, batch: Tensor) -> Tensor:
        """Outputs (n, outputs) for ``batch`` (n, inputs).

        Raises:
            ValueError: rows of another length, or pictures.
        """
        if batch.ndim != 2 or batch.shape[1] != self.in_features:
            raise ValueError(f"this head takes (n, {self.in_features}) embeddings, not {tuple(batch.shape)}")
        with torch.autocast(batch.device.type, enabled=False):
            return functional.linear(batch.float(), self.weight, self.bias)


def build(inputs: int, outputs: int) -> Linear:
    """A head with ``inputs`` weights for each of ``outputs`` numbers (LAION's aesthetic predictor: 768, 1)."""
    return Linear(inputs, outputs)
