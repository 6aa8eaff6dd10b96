"""What metrics of whole clips call: pictures of fragments in, one number a segment out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current
from gen_eval.networks.running import autocast, numpy_of, view


def rate_segments(pictures: NDArray[np.uint8], *, network: str, segments: int, normalise: str) -> NDArray[np.float64]:
    """What a network that rates clips says of each segment. Memory is that of one segment, whatever their number.

    Args:
        pictures: (segments x frames, side, side, 3) uint8 RGB, segment by segment.
        network: checkpoint.
        segments: into how many clips of equal length the pictures fall.
        normalise: see :mod:`gen_eval.networks.views`.

    Returns:
        (segments,) float64, on the network's own scale.

    Raises:
        ItemError: see :func:`gen_eval.networks.loading.loaded`.
        InputError: the network is of another kind, or clips of this size are none that it looks at.
        MemoryError: one segment is too large for the device.
    """
    import torch

    from gen_eval.networks.loading import able, shown

    module = able(network, "rate")
    rated = []
    for clip in np.split(pictures, segments):
        seen = view(clip, resize="none", normalise=normalise)
        with torch.inference_mode(), memory_errors(), shown(network), autocast(module):
            rated.append(numpy_of(module.rate(seen.transpose(0, 1)[None].to(current().device))))
    return np.concatenate(rated).astype(np.float64)
