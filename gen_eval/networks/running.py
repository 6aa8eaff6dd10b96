"""What features call: frames in, NumPy arrays out. torch is imported when the first of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current

if TYPE_CHECKING:
    from torch import Tensor


def to_device(frames: NDArray[np.uint8]) -> Tensor:
    """``frames`` (n, H, W, 3) uint8 RGB as (n, 3, H, W) uint8 on the current device, a copy.

    They become floats only inside of a view, part by part: as floats they would be four times as large.
    """
    import torch

    from gen_eval.networks.views import planes_of

    with torch.inference_mode(), memory_errors():
        return planes_of(frames).to(current().device)


def view(frames: Tensor | NDArray[np.uint8], **parameters: Any) -> Tensor:
    """What a network sees of ``frames``; see :func:`gen_eval.networks.views.make`."""
    import torch

    from gen_eval.networks import views

    with torch.inference_mode(), memory_errors():
        return views.make(frames, **parameters)


def embed(batch: Tensor | NDArray[np.float32], *, network: str) -> NDArray[np.float32]:
    """Outputs (n, D) float32 of an image network for a view (n, 3, h, w), or of a head for embeddings (n, K).

    Raises:
        ItemError: see :func:`gen_eval.networks.loading.loaded`.
        InputError: the network is of another kind, or pictures of this size are none that it looks at.
        MemoryError: the batch is too large for the device.
    """
    import torch

    from gen_eval.networks.loading import able, shown

    module = able(network, "embed")
    with torch.inference_mode(), memory_errors(), shown(network), autocast(module):
        tensor = torch.as_tensor(batch, device=current().device)
        return numpy_of(module.embed(tensor.to(dtype_of(module))))


def embed_text(prompts: Sequence[str], *, network: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Outputs (n, D) float32 of a text network, and how many tokens of each prompt did not fit and were cut (n,)."""
    import torch

    from gen_eval.networks.loading import able, shown

    module = able(network, "embed_text")
    with torch.inference_mode(), memory_errors(), shown(network), autocast(module):
        tokens, cut = module.tokenize(prompts)
        return numpy_of(module.embed_text(tokens.to(current().device))), np.asarray(cut, np.int64)


def embed_clip(frames: NDArray[np.uint8], *, network: str, **parameters: Any) -> NDArray[np.float32]:
    """Output (1, D) float32 of a video network for frames (k, H, W, 3) uint8 RGB; ``parameters`` are the view."""
    import torch

    from gen_eval.networks.loading import able, shown

    module = able(network, "embed_clip")
    seen = view(frames, **parameters)  # in main memory: where values are rounded, all devices round alike
    with torch.inference_mode(), memory_errors(), shown(network), autocast(module):
        return numpy_of(module.embed_clip(seen[None].to(current().device, dtype_of(module))))


def distances(frames: NDArray[np.uint8], *, network: str) -> NDArray[np.float64]:
    """How different each two of N pictures side by side look, by a perceptual network.

    Each picture goes through the network once. Memory is that of one group of N pictures, whatever their number.

    Args:
        frames: (n, N, H, W, 3) uint8 RGB: n groups of N pictures of one size.
        network: checkpoint.

    Returns:
        (n, N (N - 1) / 2) float64, 0 for equal pictures: pairs in the order (0, 1), (0, 2), ..., (1, 2), ...

    Raises:
        TypeError: the pictures are not uint8; they are scaled here.
        ItemError: see :func:`gen_eval.networks.loading.loaded`.
        InputError: the network is of another kind, or the pictures are too small for it.
        MemoryError: one group is too large for the device.
    """
    import torch

    from gen_eval.networks.loading import able, shown
    from gen_eval.networks.views import planes_of

    if frames.dtype != np.uint8:
        raise TypeError(f"pictures must be uint8 RGB, 0..255, not {frames.dtype}; the network's scaling is done here")
    module = able(network, "distances")
    found = []
    with torch.inference_mode(), memory_errors(), shown(network), autocast(module):
        for pictures in frames:
            found.append(module.distances(planes_of(pictures).to(current().device)).cpu().numpy())
    return np.stack(found)


def dtype_of(module: Any) -> Any:
    """Number format of what ``module`` is fed with: that of its own numbers."""
    return next(iter(module.parameters())).dtype


def autocast(module: Any) -> Any:
    """The context that ``module`` runs in: mixed precision for networks that keep float32 (``casts_weights`` off)."""
    import torch

    placement = current()
    mixed = placement.dtype != "float32" and not getattr(module, "casts_weights", True)
    kind = placement.device.partition(":")[0]
    return torch.autocast(kind, dtype=getattr(torch, placement.dtype), enabled=mixed)


def numpy_of(tensor: Tensor) -> NDArray[np.float32]:
    """``tensor`` as float32 in main memory."""
    return tensor.float().cpu().numpy()
