"""The bilateral filter of 8-bit frames on the device, with OpenCV's window, weights and border.

Each pixel becomes the mean of its neighbours in a disc, weighted by a Gaussian of how far off they lie and one of how
far their colour is (the sum of the absolute differences of the three channels). OpenCV adds up in another order, so a
mean that lies half way between two levels may be rounded to the other one.

Source: Tomasi and Manduchi 1998, Bilateral filtering for gray and color images; ``cv2.bilateralFilter``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current
from gen_eval.networks.views import planes_of
from gen_eval.records import InputError

_PIXELS = 2**23  # filtered at a time: all that is added up takes 50 bytes a pixel


def bilateral_filter(
    frames: NDArray[np.uint8], *, diameter: int, sigma_color: float, sigma_space: float
) -> NDArray[np.uint8]:
    """``frames`` (n, H, W, 3) uint8, each through the filter on the current device.

    Args:
        frames: of any size; mirrored at the border, the outermost row not repeated.
        diameter: of the disc in pixels; 30 and 31 are the same.
        sigma_color: deviation of the colour difference, in levels.
        sigma_space: deviation of the distance, in pixels.

    Returns:
        (n, H, W, 3) uint8, within one level of OpenCV's.

    Raises:
        InputError: a parameter is not positive.
        MemoryError: a frame is too large for the device.
    """
    if min(diameter, sigma_color, sigma_space) <= 0:
        raise InputError(
            f"a bilateral filter needs a positive diameter and sigmas, not {diameter}, {sigma_color}, {sigma_space}"
        )
    filtered = np.empty_like(frames)
    step = max(1, _PIXELS // (frames.shape[1] * frames.shape[2]))
    with torch.inference_mode(), memory_errors():
        for start in range(0, len(frames), step):
            part = slice(start, start + step)
            planes = planes_of(frames[part]).to(current().device).float()
            found = _filtered(planes, max(1, diameter // 2), sigma_color, sigma_space)
            filtered[part] = found.round_().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return filtered


def _filtered(planes: Tensor, radius: int, sigma_color: float, sigma_space: float) -> Tensor:
    """The means, not rounded, of ``planes`` (n, 3, H, W) 0..255."""
    height, width = planes.shape[-2:]
    padded = planes[:, :, _mirrored(height, radius)][..., _mirrored(width, radius)]
    sums, weights = torch.zeros_like(planes), torch.zeros_like(planes[:, :1])
    difference, weight = torch.empty_like(planes), torch.empty_like(weights)
    for row, column, square in _disc(radius):
        other = padded[:, :, row : row + height, column : column + width]
        torch.sub(other, planes, out=difference)
        torch.sum(difference.abs_(), dim=1, keepdim=True, out=weight)
        weight.square_().mul_(-0.5 / sigma_color**2).add_(-0.5 * square / sigma_space**2).exp_()
        weights += weight
        sums.addcmul_(other, weight)
    return sums.div_(weights)


def _disc(radius: int) -> Iterator[tuple[int, int, int]]:
    """Row and column of each place of the window from its upper left corner, and its squared distance."""
    for row in range(-radius, radius + 1):
        for column in range(-radius, radius + 1):
            if math.hypot(row, column) <= radius:
                yield row + radius, column + radius, row * row + column * column


def _mirrored(side: int, margin: int) -> list[int]:
    """Which row of ``side`` stands where, with ``margin`` more before and after; more than once in a small frame."""
    period = max(1, 2 * (side - 1))
    places = [abs(place) % period for place in range(-margin, side + margin)]
    return [min(place, period - place) if side > 1 else 0 for place in places]
