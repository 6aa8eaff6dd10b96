"""Subject consistency: how alike DINO finds each frame, the first and the one before.

Source: VBench, subject consistency; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import measure_single
from gen_eval.networks import placement_of
from gen_eval.protocols import load_protocol
from gen_eval.quality._similarity import Consistency
from gen_eval.records import MetricResult


class SubjectConsistency(Consistency):
    """Mean similarity of DINO's embedding to those of the first frame and of the frame before."""

    name = "subject_consistency"
    source = "VBench, subject consistency; PAI-Bench-G, section 3.1 and appendix A.2 (public code)"


METRIC = SubjectConsistency()


def subject_consistency(
    clip: NDArray[np.uint8], *, protocol: str = "corrected", device: str = "cpu", dtype: str = "float32"
) -> MetricResult:
    """How alike the frames of a clip are to DINO ViT-B/16, 0..1, 1 for a still clip.

    With d the unit embeddings of frames of 224 pixels on the shorter side and cos+ the cosine, not below 0: the mean
    over the frames t = 2..T of (cos+(d_1, d_t) + cos+(d_(t-1), d_t)) / 2.

    Args:
        clip: (T, H, W, 3) uint8 RGB.
        protocol: ``corrected`` or ``reference``; they differ for a single frame, which has no value
            (``too_few_frames``) and at which the public code stops, and in how clips are averaged.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with the curves ``subject_consistency`` (``nan`` for the first frame), ``to_first`` and
        ``to_previous``, and the ``sum`` and ``count`` of the mean in its detail. Without the checkpoint
        ``dino_vitb16`` it has the reason ``missing_weights``.

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, subject consistency; PAI-Bench, appendix A.2.

    Example:
        >>> import numpy as np
        >>> print(subject_consistency(np.zeros((2, 64, 64, 3), np.uint8)))  # doctest: +SKIP
        subject_consistency 1 [constant_frame]
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), placement=placement_of(device, dtype))
