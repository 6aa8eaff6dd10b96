"""Structural similarity of 8-bit frames with a uniform window, exact up to the last divisions.

With S the sum over the N = window x window pixels of a window, means are S/N and the sample (co)variances are
(N Sxy - Sx Sy) / (N (N - 1)). Multiplying numerator and denominator of the SSIM formula by N^2 and N (N - 1) leaves

                 (2 Sx Sy + N^2 C1) (2 (N Sxy - Sx Sy) + N (N - 1) C2)
    SSIM = --------------------------------------------------------------------------
            (Sx^2 + Sy^2 + N^2 C1) (N Sxx - Sx^2 + N Syy - Sy^2 + N (N - 1) C2)

where all that depends on pixels is an integer below 2^31 (windows up to 11 x 11): nothing cancels, and frames of equal
content give 1 exactly. The window moves over the whole frame, its border filled by symmetric reflection. Work is done
in strips of rows that stay in the processor's cache.

Source: Wang et al., Image quality assessment: from error visibility to structural similarity, 2004, equation 13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError

Frames: TypeAlias = NDArray[np.uint8]
Moments: TypeAlias = tuple[NDArray[np.uint16], NDArray[np.int32], NDArray[np.float64]]
"""Per frame: window sums Sx (H, W, 3), spreads N Sxx - Sx^2 (H, W, 3), and the range of the frame's values."""

LARGEST_WINDOW = 11
_STRIP_VALUES = 120_000


def check_window(window: int) -> None:
    """Refuse windows for which the integer arithmetic does not hold.

    Raises:
        InputError: the window is even, below 3 or above 11.
    """
    if window % 2 == 0 or not 3 <= window <= LARGEST_WINDOW:
        raise InputError(f"an SSIM window must be odd and 3 to {LARGEST_WINDOW} pixels wide, not {window}")


def moments(frames: Frames, *, window: int) -> Moments:
    """What SSIM needs of one side and can be kept for several partners.

    Args:
        frames: (n, H, W, 3) uint8.
        window: odd side of the uniform window in pixels; no frame side may be smaller.

    Returns:
        Window sums (n, H, W, 3) uint16, spreads (n, H, W, 3) int32, and max - min over each frame (n,) float64.
    """
    check_window(window)
    sums = np.empty(frames.shape, np.uint16)
    spreads = np.empty(frames.shape, np.int32)
    buffers = _Buffers(frames.shape[1:], window)
    for index, frame in enumerate(frames):
        cv2.boxFilter(frame, cv2.CV_16U, (window, window), dst=sums[index], **_BOX)
        for strip in _strips(frame.shape[0], buffers.rows, window):
            spread = spreads[index, strip.rows]
            np.multiply(buffers.box(buffers.product(frame, frame, strip), strip), window * window, out=spread)
            own = buffers.integer[: len(spread)]
            np.copyto(own, sums[index, strip.rows])
            own *= own
            spread -= own
    ranges = np.ptp(frames.reshape(len(frames), -1), axis=1).astype(np.float64)
    return sums, spreads, ranges


class FrameSsim:
    """Mean SSIM of pairs of frames of one size; keeps its working memory from frame to frame.

    Args:
        shape: (H, W, 3) of all frames.
        window: odd side of the uniform window.
        k1: first stability constant of the formula.
        k2: second stability constant.
        precision: ``float64`` or ``float32`` for everything that is not an integer.
    """

    def __init__(self, shape: tuple[int, ...], *, window: int, k1: float, k2: float, precision: str) -> None:
        check_window(window)
        if precision not in {"float64", "float32"}:
            raise InputError(f"unknown precision {precision!r}; expected float64 or float32")
        self._window, self._k1, self._k2 = window, k1, k2
        self._buffers = _Buffers(shape, window)
        self._ratio = np.empty(self._buffers.integer.shape, precision)
        self._factor = np.empty_like(self._ratio)

    def mean(self, x: Frames, y: Frames, sums: NDArray[np.uint16], spread: NDArray[np.int32], reach: float) -> float:
        """Mean of the full map of ``y`` against ``x`` over all pixels and channels.

        Args:
            x: (H, W, 3) uint8, the side whose moments are given.
            y: (H, W, 3) uint8.
            sums: window sums of ``x``.
            spread: N Sxx - Sx^2 of ``x``.
            reach: data range that scales the constants; above 0.
        """
        total = 0.0
        for strip in _strips(x.shape[0], self._buffers.rows, self._window):
            total += self._strip(x, y, sums[strip.rows], spread[strip.rows], reach, strip)
        return 4.0 * total / x.size

    def _strip(
        self, x: Frames, y: Frames, sx: NDArray[np.uint16], spread: NDArray[np.int32], reach: float, strip: _Strip
    ) -> float:
        """A quarter of the sum of the map over one strip (the numerator's factors are halved)."""
        work, n = self._buffers, self._window**2
        c1 = (self._k1 * reach) ** 2 * n * n
        c2 = (self._k2 * reach) ** 2 * n * (n - 1)
        ratio, factor = self._ratio[: len(sx)], self._factor[: len(sx)]
        a, ab = work.integer[: len(sx)], work.other[: len(sx)]
        b = work.box(y[strip.source], strip, 0)
        np.copyto(a, sx)
        np.multiply(a, b, out=ab)
        np.copyto(ratio, ab)
        ratio += c1 / 2
        covariance = work.box(work.product(x, y, strip), strip, 1)
        covariance *= n
        covariance -= ab
        np.copyto(factor, covariance)
        factor += c2 / 2
        ratio *= factor
        a *= a
        b *= b
        a += b
        np.copyto(factor, a)
        factor += c1
        ratio /= factor
        variance = work.box(work.product(y, y, strip), strip, 1)
        variance *= n
        variance -= b
        variance += spread
        np.copyto(factor, variance)
        factor += c2
        ratio /= factor
        return float(ratio.sum(dtype=np.float64))


def literal_mean(x: Frames, y: Frames, *, window: int, k1: float, k2: float, reach: float) -> float:
    """Mean SSIM map of two (H, W, 3) frames by floating point box filters, rounding included.

    Only for a range of 0, where the constants vanish: 0/0 arises in every window in which the filters' rounding leaves
    both variances at exactly 0, so what the public code returns there (a number near 0, noise, or NaN) is its rounding.
    The operations and their order are those of the usual double-precision implementation over SciPy's box filter.

    Returns:
        The mean, which may be NaN or infinite.
    """
    from scipy.ndimage import uniform_filter

    n = window * window
    c1, c2 = (k1 * reach) ** 2, (k2 * reach) ** 2
    total = 0.0
    for channel in range(x.shape[2]):
        u, v = x[..., channel].astype(np.float64), y[..., channel].astype(np.float64)
        mean_u, mean_v = uniform_filter(u, window), uniform_filter(v, window)
        scale = n / (n - 1)
        var_u = scale * (uniform_filter(u * u, window) - mean_u * mean_u)
        var_v = scale * (uniform_filter(v * v, window) - mean_v * mean_v)
        cov = scale * (uniform_filter(u * v, window) - mean_u * mean_v)
        numerator = (2 * mean_u * mean_v + c1) * (2 * cov + c2)
        with np.errstate(divide="ignore", invalid="ignore"):
            total += float(np.mean(numerator / ((mean_u**2 + mean_v**2 + c1) * (var_u + var_v + c2))))
    return float(total / x.shape[2])


_BOX: dict[str, Any] = {"normalize": False, "borderType": cv2.BORDER_REFLECT}


@dataclass(frozen=True)
class _Strip:
    """Rows of the result, the rows they are computed from, and where the former lie among the latter."""

    rows: slice
    source: slice
    inside: slice


def _strips(height: int, rows: int, window: int) -> Iterator[_Strip]:
    radius = window // 2
    for start in range(0, height, rows):
        stop = min(start + rows, height)
        low, high = max(0, start - radius), min(height, stop + radius)
        yield _Strip(slice(start, stop), slice(low, high), slice(start - low, stop - low))


class _Buffers:
    """Working memory of one strip, allocated once."""

    def __init__(self, shape: tuple[int, ...], window: int) -> None:
        values = shape[1] * shape[2]
        # a strip is never lower than the window, or the halo would be most of the work
        self.rows = min(shape[0], max(window, _STRIP_VALUES // values))
        self._window = window
        source = (min(shape[0], self.rows + window - 1), *shape[1:])
        self._product = np.empty(source, np.uint16)
        self._boxed = (np.empty(source, np.int32), np.empty(source, np.int32))
        self.integer = np.empty((self.rows, *shape[1:]), np.int32)
        self.other = np.empty_like(self.integer)

    def product(self, x: Frames, y: Frames, strip: _Strip) -> NDArray[np.uint16]:
        """Products of x and y over the rows that ``strip`` is computed from."""
        out = self._product[: strip.source.stop - strip.source.start]
        return np.multiply(x[strip.source], y[strip.source], out=out, dtype=np.uint16)

    def box(self, source: NDArray[Any], strip: _Strip, slot: int = 0) -> NDArray[np.int32]:
        """Window sums of ``source`` (the strip with its halo) for the rows of ``strip``."""
        out = self._boxed[slot][: len(source)]
        cv2.boxFilter(source, cv2.CV_32S, (self._window, self._window), dst=out, **_BOX)
        return out[strip.inside]
