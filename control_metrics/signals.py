"""Control signals: pictures of edges and blur, and depth maps in files.

The pictures come from the same functions as the metrics, so that what a generator is given is what it is measured by.
Source: PAI-Bench-C, making the control signals; depth files are ``.npz`` with one array ``data`` (T, H, W).
"""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from control_metrics.blur import blur_feature
from control_metrics.edge import canny_parameters, edge_maps
from gen_eval.features import Measure
from gen_eval.records import ItemError, Reason

_MAX_PIXELS = 67_108_864  # of one map
_MAX_FRAMES = 1_000_000
_MAX_FORTRAN = 2**31
_BROKEN = (
    OSError, EOFError, ValueError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
    SyntaxError, tokenize.TokenError,  # NumPy reads old headers as Python text
)  # fmt: skip


def edge_signal(frames: NDArray[np.uint8], measure: Measure) -> NDArray[np.uint8]:
    """Edge pictures of frames: the maps that ``edge_f1`` compares, 255 on edges, as three equal channels.

    Args:
        frames: (n, H, W, 3) uint8 RGB.
        measure: ``measure`` section of a protocol of ``edge_f1``.
    """
    return np.repeat(edge_maps(frames, **canny_parameters(measure))[..., None], 3, axis=-1)


def blur_signal(frames: NDArray[np.uint8], measure: Measure) -> NDArray[np.uint8]:
    """Blurred pictures of frames: what ``blur_ssim`` compares.

    Args:
        frames: (n, H, W, 3) uint8 RGB.
        measure: ``measure`` section of a protocol of ``blur_ssim``.
    """
    blurred: NDArray[np.uint8] = blur_feature(measure)(frames)
    return blurred


class DepthFile:
    """Depth maps in an ``.npz``, read a few frames at a time; a context manager.

    Attributes:
        path: the file.
        shape: (T, H, W) as declared.
        dtype: as stored; float16, float32 or float64 of either byte order.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile, member: IO[bytes]) -> None:
        self.path = path
        self._archive, self._member = archive, member
        version = npy.read_magic(member)
        if version not in {(1, 0), (2, 0)}:
            raise ValueError(f"its array has format version {version}; expected 1.0 or 2.0")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        self.shape, self._fortran, self.dtype = read_header(member)
        self._check()

    def _check(self) -> None:
        if self.dtype.kind != "f" or self.dtype.itemsize not in {2, 4, 8}:
            raise ValueError(f"its array is {self.dtype}; expected float16, float32 or float64")
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise ValueError(f"its array has shape {self.shape}; expected (T, H, W), none of them 0")
        if self.shape[0] > _MAX_FRAMES or self.shape[1] * self.shape[2] > _MAX_PIXELS:
            raise ValueError(f"its array has shape {self.shape}; more than {_MAX_FRAMES} x {_MAX_PIXELS} is not read")
        if self._fortran and math.prod(self.shape) * self.dtype.itemsize > _MAX_FORTRAN:
            raise ValueError("its array is stored column by column and too large to be held; save it in C order")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._member.close()
        self._archive.close()

    def chunks(self, size: int, limit: int | None = None) -> Iterator[NDArray[np.floating[Any]]]:
        """The maps in order, once.

        Args:
            size: maps of one chunk.
            limit: only the first maps.

        Yields:
            (n, H, W) float32; float64 if that is what is stored.

        Raises:
            ItemError: ``undecodable``, the data end early or are damaged.
        """
        total = self.shape[0] if limit is None else min(limit, self.shape[0])
        target = np.float64 if self.dtype.itemsize == 8 else np.float32
        try:
            if self._fortran:
                maps = self._read(math.prod(self.shape)).reshape(self.shape, order="F")
                for start in range(0, total, size):
                    yield maps[start : min(start + size, total)].astype(target, order="C")
                return
            for start in range(0, total, size):
                count = min(size, total - start)
                values = self._read(count * self.shape[1] * self.shape[2])
                yield values.reshape(count, *self.shape[1:]).astype(target, copy=False)
        except _BROKEN as error:
            raise _undecodable(self.path, error) from error

    def _read(self, values: int) -> NDArray[Any]:
        wanted = values * self.dtype.itemsize
        found = self._member.read(wanted)
        if len(found) < wanted:
            raise ValueError(f"its data end early, {wanted - len(found)} bytes short of what its header declares")
        return np.frombuffer(found, self.dtype)


def open_depth(path: Path) -> DepthFile:
    """Open an ``.npz`` that holds depth maps (T, H, W) as ``data``; nothing in it is ever unpickled.

    Raises:
        ItemError: ``undecodable``, the file is absent, no ``.npz``, or holds something else; the message names what.
    """
    path = Path(path)
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if "data" not in names:
                found = ", ".join(sorted(names)[:8]) or "nothing"
                raise ValueError(f"it has no array 'data'; it holds {found}")
            member = stack.enter_context(archive.open(archive.namelist()[names.index("data")]))
            opened = DepthFile(path, archive, member)
            stack.pop_all()
            return opened
    except _BROKEN as error:
        raise _undecodable(path, error) from error


def _undecodable(path: Path, error: BaseException) -> ItemError:
    said = error.strerror if isinstance(error, OSError) else None  # not the path: rows are equal wherever data lie
    text = said or str(error) or type(error).__name__
    return ItemError(
        Reason.UNDECODABLE,
        f"{path.name} cannot be read as depth maps: {text}; expected an .npz with one array 'data' (T, H, W) of floats",
        {"file": path.name},
    )
