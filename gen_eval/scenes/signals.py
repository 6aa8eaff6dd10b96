"""Control signals of a clip: outlines, masks, depth; as arrays, as files that metrics read, as pictures for people."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.records.files import write_atomic

Masks = Sequence[tuple[str, NDArray[np.bool_]]]
Bool = NDArray[np.bool_]

_EPOCH = (1980, 1, 1, 0, 0, 0)


def outlines(masks: Sequence[Bool]) -> Bool:
    """(T, H, W) pixels of any mask (T, H, W) that touch, by a side, a pixel outside of that mask.

    The border of the picture is no outline: an object that leaves the view goes on beyond it.
    """
    edges: Bool = np.zeros(masks[0].shape, dtype=bool)
    for mask in masks:
        inner = mask.copy()
        inner[:, 1:] &= mask[:, :-1]
        inner[:, :-1] &= mask[:, 1:]
        inner[:, :, 1:] &= mask[:, :, :-1]
        inner[:, :, :-1] &= mask[:, :, 1:]
        edges |= mask & ~inner
    return edges


def eroded(masks: Sequence[Bool], share: float) -> list[Bool]:
    """Masks without the pixels whose distance to the outside is at most ``share`` of the largest such distance.

    At least the outermost pixels go (where something is left), and an object that is seen keeps a pixel.
    """
    if not share:
        return list(masks)
    return [np.stack([_eroded(frame, share) for frame in mask]) for mask in masks]


def _eroded(mask: Bool, share: float) -> Bool:
    padded = np.pad(mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]
    largest = float(distance.max())
    if largest <= 1:
        return mask
    kept: Bool = distance > max(1.0, share * largest)
    return kept


def masks_document(masks: Masks) -> bytes:
    """Masks as the JSON form of this project: COCO compressed run lengths a frame, null where an object is absent.

    Args:
        masks: phrase and (T, H, W) bool per object, in detection order; at least one.
    """
    from pycocotools import mask as coco

    objects = []
    for phrase, mask in masks:
        runs = coco.encode(np.asfortranarray(np.moveaxis(mask, 0, -1).astype(np.uint8)))
        seen = [bool(frame.any()) for frame in mask]
        texts = [run["counts"].decode("ascii") if here else None for run, here in zip(runs, seen, strict=True)]
        objects.append({"phrase": phrase, "rle": texts})
    document = {"size": list(masks[0][1].shape), "objects": objects}
    return (json.dumps(document, ensure_ascii=False) + "\n").encode()


def depth_archive(depth: NDArray[np.float32]) -> bytes:
    """(T, H, W) maps as an ``.npz`` with one array under the key ``data``; equal maps give equal bytes."""
    array, archive = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(array, np.ascontiguousarray(depth), allow_pickle=False)
    with zipfile.ZipFile(archive, "w") as file:
        entry = zipfile.ZipInfo("data.npy", date_time=_EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        file.writestr(entry, array.getvalue(), compresslevel=1)
    return archive.getvalue()


def write_masks(path: Path, masks: Masks) -> None:
    """Write ``masks`` to ``path`` (``<id>.masks.json``), whole or not at all."""
    write_atomic(path, masks_document(masks))


def write_depth(path: Path, depth: NDArray[np.float32]) -> None:
    """Write (T, H, W) ``depth`` to ``path`` (``<id>.npz``), whole or not at all."""
    write_atomic(path, depth_archive(depth))


def gray_video(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(T, H, W) uint8 as (T, H, W, 3) with equal channels."""
    return np.repeat(values[..., None], 3, axis=-1)


def depth_picture(depth: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Depth for people: stretched over the clip to 0..255, near is bright; a constant clip is black."""
    low, high = float(depth.min()), float(depth.max())
    if high == low:
        return gray_video(np.zeros(depth.shape, dtype=np.uint8))
    return gray_video(np.rint((depth - low) / (high - low) * 255).astype(np.uint8))


def masks_picture(masks: Masks) -> NDArray[np.uint8]:
    """Masks for people: each object in its own colour on black, small ones painted over large ones."""
    picture = np.zeros((*masks[0][1].shape, 3), dtype=np.uint8)
    by_size = sorted(range(len(masks)), key=lambda index: -int(masks[index][1].sum()))
    for index in by_size:
        hue = np.array([[[(index * 67) % 180, 200, 235]]], dtype=np.uint8)
        picture[masks[index][1]] = cv2.cvtColor(hue, cv2.COLOR_HSV2RGB)[0, 0]
    return picture


def blurred(frames: NDArray[np.uint8], diameter: int, sigma_color: float, sigma_space: float) -> NDArray[np.uint8]:
    """Each frame through the bilateral filter of the conditional track."""
    return np.stack([cv2.bilateralFilter(frame, diameter, sigma_color, sigma_space) for frame in frames])
