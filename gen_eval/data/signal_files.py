"""Signal files that this project writes: depth maps and edge maps as ``.npz``, segmentation as JSON.

Equal content gives equal bytes, and every file appears whole or not at all. They are read by `control_metrics`.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from gen_eval.records.files import write_atomic, written_whole

Bool = NDArray[np.bool_]
Size = tuple[int, int, int]
"""Frames, height, width."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # zip archives carry times, which must not tell equal maps apart


def maps_archive(maps: NDArray[Any]) -> bytes:
    """(T, H, W) ``maps`` as an ``.npz`` with one array under the key ``data``."""
    array, archive = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(array, np.ascontiguousarray(maps), allow_pickle=False)
    with zipfile.ZipFile(archive, "w") as file:
        entry = zipfile.ZipInfo("data.npy", date_time=_EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        file.writestr(entry, array.getbuffer(), compresslevel=1)
    return archive.getvalue()


def depth_archive(depth: NDArray[np.floating[Any]]) -> bytes:
    """Depth maps (T, H, W) as :func:`maps_archive`, in float32.

    Raises:
        ValueError: ``depth`` is not (T, H, W) of floats.
    """
    if depth.ndim != 3 or depth.dtype.kind != "f":
        raise ValueError(f"depth must be (T, H, W) of floats, not {depth.shape} {depth.dtype}")
    return maps_archive(depth.astype(np.float32, copy=False))


def write_depth(path: Path, depth: NDArray[np.floating[Any]]) -> None:
    """Write depth maps (T, H, W) to ``path`` (``<id>.npz``).

    Raises:
        ValueError: ``depth`` is not (T, H, W) of floats.
    """
    write_atomic(Path(path), depth_archive(depth))


class DepthWriter:
    """Writes depth maps to ``<id>.npz`` as they come; a context manager.

    They wait in an unnamed file beside the target, for the array's header tells how many there are. The archive appears
    when the block ends, and not at all when it ends with an error. Its array is float32 and not compressed: what
    networks make of real pictures shrinks by a tenth, at ten times the time.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(path)
        self._count = 0
        self._size: tuple[int, ...] | None = None
        self._spool: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._spool = tempfile.TemporaryFile(dir=self._path.parent)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._spool is not None
        with self._spool as spool:
            if error is None:
                self._write(spool)

    def add(self, maps: NDArray[np.floating[Any]]) -> None:
        """Append maps (n, H, W).

        Raises:
            ValueError: they are no floats (n, H, W), or of another size than the ones before.
        """
        if self._spool is None or self._spool.closed:
            raise ValueError("maps can be added inside of the with block only")
        if maps.ndim != 3 or maps.dtype.kind != "f":
            raise ValueError(f"depth must be (n, H, W) of floats, not {maps.shape} {maps.dtype}")
        if self._size is not None and maps.shape[1:] != self._size:
            raise ValueError(f"depth of {maps.shape[1:]} pixels follows depth of {self._size}; all must be of one size")
        self._size = maps.shape[1:]
        self._count += len(maps)
        self._spool.write(np.ascontiguousarray(maps, "<f4").data)

    def _write(self, spool: IO[bytes]) -> None:
        if not self._count or self._size is None:
            raise ValueError(f"no depth was given for {self._path.name}")
        shape = (self._count, *self._size)
        header = io.BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, described)
        entry = zipfile.ZipInfo("data.npy", date_time=_EPOCH)
        entry.file_size = len(header.getvalue()) + spool.tell()  # decides whether the long form of the zip is needed
        spool.seek(0)
        with (
            written_whole(self._path) as file,
            zipfile.ZipFile(file, "w") as archive,
            archive.open(entry, "w") as target,
        ):
            target.write(header.getvalue())
            shutil.copyfileobj(spool, target, 1 << 20)


def write_edges(path: Path, maps: Bool) -> None:
    """Write edge maps (T, H, W) bool to ``path`` (``<id>.npz``).

    Raises:
        ValueError: ``maps`` is not (T, H, W) bool.
    """
    if maps.ndim != 3 or maps.dtype != np.bool_:
        raise ValueError(f"edge maps must be (T, H, W) bool, not {maps.shape} {maps.dtype}")
    write_atomic(Path(path), maps_archive(maps))


def masks_document(objects: Iterable[tuple[str, Bool]], size: Size | None = None) -> bytes:
    """Masks as JSON: COCO compressed run lengths of each frame as text, null where the object is absent.

    Args:
        objects: phrase and mask (T, H, W) bool, in order of detection.
        size: frames, height, width; needed when there is no object.

    Raises:
        ValueError: masks differ in size, are not bool, or there is neither an object nor a size.
    """
    written: list[tuple[str, list[str | None]]] = []
    for phrase, mask in objects:
        if mask.dtype != np.bool_ or mask.ndim != 3:
            raise ValueError(f"the mask of {phrase!r} must be (T, H, W) bool, not {mask.shape} {mask.dtype}")
        size = size or (mask.shape[0], mask.shape[1], mask.shape[2])
        if mask.shape != tuple(size):
            raise ValueError(f"the mask of {phrase!r} has shape {mask.shape}; the others have {size}")
        written.append((phrase, _run_lengths(mask)))
    if size is None:
        raise ValueError("without an object the size (T, H, W) must be given")
    return _document(size, written)


def _document(size: Size, objects: Iterable[tuple[str, Sequence[str | None]]]) -> bytes:
    listed = [{"phrase": phrase, "rle": list(runs)} for phrase, runs in objects]
    return (json.dumps({"size": list(size), "objects": listed}, ensure_ascii=False) + "\n").encode()


def _run_lengths(masks: Bool) -> list[str | None]:
    """Compressed run lengths of masks (n, H, W), ``None`` for an empty one."""
    from pycocotools import mask as coco

    runs = coco.encode(np.asfortranarray(np.moveaxis(masks, 0, -1), dtype=np.uint8))
    seen = [bool(mask.any()) for mask in masks]
    return [run["counts"].decode("ascii") if here else None for run, here in zip(runs, seen, strict=True)]


class MasksWriter:
    """Writes masks to ``<id>.masks.json`` frame by frame; a context manager.

    Only run lengths are kept. The file is that of :func:`masks_document`; it appears when the block ends, and not at
    all when it ends with an error.

    Args:
        path: the file.
        phrases: one for each object, in order of detection; there may be none.
        height: pixels of a frame.
        width: likewise.
    """

    def __init__(self, path: Path, phrases: Sequence[str], height: int, width: int) -> None:
        self._path, self._size = Path(path), (height, width)
        self._frames = 0
        self._objects: list[tuple[str, list[str | None]]] = [(phrase, []) for phrase in phrases]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            write_atomic(self._path, _document((self._frames, *self._size), self._objects))

    def add(self, masks: Bool) -> None:
        """Append the next frame.

        Args:
            masks: (n, H, W) bool, one for each object.

        Raises:
            ValueError: they are of another number, size or type.
        """
        wanted = (len(self._objects), *self._size)
        if masks.shape != wanted or masks.dtype != np.bool_:
            raise ValueError(f"masks of a frame must be {wanted} bool, not {masks.shape} {masks.dtype}")
        self._frames += 1
        if self._objects:
            for (_, runs), new in zip(self._objects, _run_lengths(masks), strict=True):
                runs.append(new)


def write_masks(path: Path, objects: Iterable[tuple[str, Bool]], size: Size | None = None) -> None:
    """Write masks to ``path`` (``<id>.masks.json``); see :func:`masks_document`."""
    write_atomic(Path(path), masks_document(objects, size))
