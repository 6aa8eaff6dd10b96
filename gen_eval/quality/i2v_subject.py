"""Image-to-video subject: how alike DINO finds frames and the picture that the clip starts from.

Source: VBench, image-to-video subject; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import measure_single
from gen_eval.networks import placement_of
from gen_eval.protocols import load_protocol
from gen_eval.quality._conditioned import ConditionedSimilarity
from gen_eval.records import MetricResult


class I2VSubject(ConditionedSimilarity):
    """Similarity of DINO's embedding to that of the condition image and of the frame before."""

    name = "i2v_subject"
    source = "VBench, i2v subject; PAI-Bench-G, section 3.1 (public code)"


METRIC = I2VSubject()


def i2v_subject(
    clip: NDArray[np.uint8],
    condition_image: NDArray[np.uint8],
    *,
    protocol: str = "corrected",
    device: str = "cpu",
    dtype: str = "float32",
) -> MetricResult:
    """How well a clip keeps to its condition image, 0..1, 1 for a still clip that starts with it.

    On the unit embeddings that DINO ViT-B/16 gives to the central square of 224 pixels, with
    c_t = cos+(condition image, frame t), e_t = cos+(frame t-1, frame t) and cos+ the cosine, not below 0:
    0.4 max(c) + 0.3 mean(e) + 0.3 min(e).

    Args:
        clip: (T, H, W, 3) uint8 RGB.
        condition_image: (H, W, 3) uint8 RGB, of any size.
        protocol: ``corrected`` or ``reference``; they differ for a single frame, which has no value
            (``too_few_frames``) and at which the public code stops, in how picture files that are not plain RGB are
            read, and in how clips are averaged.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with the curves ``i2v_subject`` (e, ``nan`` for the first frame) and ``to_condition`` (c), and the
        three ``parts`` of the sum in its detail. Without the checkpoint ``dino_vitb16`` it has the reason
        ``missing_weights``.

    Raises:
        TypeError: ``clip`` or ``condition_image`` is not an array.
        ValueError: one of them is not uint8 RGB.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, i2v subject (public code). The text of PAI-Bench's appendix A.2 gives another formula; its table was
        made with this one.

    Example:
        >>> import numpy as np
        >>> clip = np.zeros((2, 64, 64, 3), np.uint8)
        >>> print(i2v_subject(clip, clip[0]))  # doctest: +SKIP
        i2v_subject 1 [constant_frame]
    """
    placement = placement_of(device, dtype)
    return measure_single(
        METRIC, clip, load_protocol(METRIC.name, protocol), image=condition_image, placement=placement
    )
