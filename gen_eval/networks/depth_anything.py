"""Depth Anything V2: relative inverse depth of each frame by itself. The network is that of the package transformers.

Source: Yang et al. 2024, Depth Anything V2; named by PAI-Bench-C's appendix B.1.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn
from transformers import DepthAnythingForDepthEstimation

from gen_eval.networks.folders import FolderError, check_kind, read_pretrained


class DepthAnything(nn.Module):
    """The network as depth is asked for here."""

    casts_weights = False

    def __init__(self, model: DepthAnythingForDepthEstimation) -> None:
        super().__init__()
        self.model = model

    def depth(self, pictures: Tensor) -> Tensor:
        """Depth (n, H, W) of normalised pictures (n, 3, H, W); 0 or more, up to scale and shift, larger is nearer.

        Raises:
            ValueError: pictures of another shape, or sides that are no multiples of a patch.
        """
        patch = int(self.model.config.patch_size)  # type: ignore[arg-type]
        if pictures.ndim != 4 or pictures.shape[1] != 3 or any(side % patch or not side for side in pictures.shape[2:]):
            raise ValueError(
                f"pictures must be (n, 3, H, W) with sides that are multiples of {patch}, not {tuple(pictures.shape)}"
            )
        found: Tensor = self.model(pixel_values=pictures).predicted_depth
        return found


def open_folder(folder: Path) -> DepthAnything:
    """The network of ``folder`` (``config.json``, ``model.safetensors``), float32.

    Raises:
        FolderError: it holds another network, tensors are missing, surplus or of another shape, or its depth is metric.
    """
    check_kind(folder, "depth_anything")
    model = read_pretrained(DepthAnythingForDepthEstimation, folder)
    if model.config.depth_estimation_type != "relative":
        raise FolderError(f"gives {model.config.depth_estimation_type} depth; expected relative inverse depth")
    return DepthAnything(model)
