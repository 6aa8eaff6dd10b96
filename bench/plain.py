"""The protocols written down literally, with scikit-image and loops: what our kernels are measured against.

Each function is what one would write from the text alone, in NumPy, without tricks and without deliberate waste.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from skimage.metrics import structural_similarity  # noqa: TID251 - the independent reference

Frames = NDArray[np.uint8]
Masks = Sequence[tuple[str, NDArray[np.bool_]]]


def decoded(path: Path) -> Frames:
    """All frames (T, H, W, 3) RGB."""
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def ssim(prediction: Frames, reference: Frames) -> float:
    """Mean of scikit-image's full SSIM map, frame by frame, with the range of each reference frame."""
    means = []
    for own, other in zip(prediction, reference, strict=True):
        reach = float(other.max()) - float(other.min())
        _, full = structural_similarity(other, own, data_range=reach, channel_axis=2, full=True)  # type: ignore[no-untyped-call]
        means.append(full.mean())
    return float(np.mean(means))


def edge_counts(prediction: Frames, reference: Frames) -> tuple[int, int, int]:
    """tp, fp, fn of two stacks of 0/255 maps: flattened over the whole video to 0 and 1, both must occur in each."""
    own = (prediction.flatten() > 0).astype(np.uint8)
    other = (reference.flatten() > 0).astype(np.uint8)
    for labels in (own, other):
        if not (labels.any() and not labels.all()):
            raise ValueError("a map has one value only")
    tp = np.sum((own == 1) & (other == 1))
    fp = np.sum((own == 1) & (other == 0))
    fn = np.sum((own == 0) & (other == 1))
    return int(tp), int(fp), int(fn)


def si_rmse(prediction: NDArray[Any], reference: NDArray[Any]) -> float:
    """Median-scaled error of each frame in float64, mean over frames; frames without a valid pixel count 0."""
    errors = []
    for own, other in zip(prediction, reference, strict=True):
        valid = (other > 0) & (own > 0)
        if not valid.any():
            errors.append(0.0)
            continue
        p, g = own[valid].astype(np.float64), other[valid].astype(np.float64)
        ratio = np.median(g) / np.median(p)
        errors.append(math.sqrt(np.mean((g - ratio * p) ** 2)))
    return float(np.mean(errors))


def miou(prediction: Masks, reference: Masks) -> tuple[float, float]:
    """Mean IoU and recall: instance maps, class masks, every pair of classes over whole boolean maps."""
    classes = []
    for side in (reference, prediction):
        labels = np.zeros(side[0][1].shape, np.uint8)
        for number, (_, mask) in enumerate(side):
            labels[mask] = number + 1
        unions: dict[str, NDArray[np.bool_]] = {}
        for number, (phrase, _) in enumerate(side):
            own = labels == number + 1
            unions[phrase] = unions[phrase] | own if phrase in unions else own
        classes.append(list(unions.values()))
    iou = np.zeros((len(classes[0]), len(classes[1])), np.float32)
    for row, left in enumerate(classes[0]):
        for column, right in enumerate(classes[1]):
            union = np.logical_or(left, right).sum()
            iou[row, column] = np.logical_and(left, right).sum() / union if union else 0
    rows, columns = linear_sum_assignment(iou, maximize=True)
    matched = iou[rows, columns]
    kept = matched[matched > 0.1]
    return (float(kept.mean()) if kept.size else 0.0), len(kept) / len(matched)


def flickering(clip: Frames) -> float:
    """(255 - mean absolute difference of neighbouring frames) / 255 in float32."""
    frames = [frame.astype(np.float32) for frame in clip]
    means = [np.mean(np.abs(one - two)) for one, two in pairwise(frames)]
    return float((255.0 - np.mean(means)) / 255.0)
