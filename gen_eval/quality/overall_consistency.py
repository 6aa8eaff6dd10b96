"""Overall consistency: how well a clip as a whole fits the text that it was made from.

Source: VBench, overall consistency; PAI-Bench-G uses the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import (
    FRAMES,
    Chunk,
    Feature,
    Measure,
    Meter,
    Metric,
    Selection,
    StreamInfo,
    measure_single,
    parameters_of,
)
from gen_eval.networks import embed_clip, placement_of, text_feature, view_parameters
from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, InputError, MetricResult, Reason


def middle_frames(length: int, count: int) -> list[int]:
    """Numbers of ``count`` frames of a clip of ``length``: the middle ones (the earlier of two) of equal pieces.

    A clip of fewer frames gives each of them, and the last one again for the rest.

    >>> middle_frames(49, 8)
    [2, 8, 14, 20, 26, 32, 38, 45]
    >>> middle_frames(3, 8)
    [0, 1, 2, 2, 2, 2, 2, 2]
    """
    pieces = min(count, length)
    edges = [number * length // pieces for number in range(pieces + 1)]
    middles = [(start + stop - 1) // 2 for start, stop in pairwise(edges)]
    return middles + middles[-1:] * (count - pieces)


def clip_selection(measure: Measure) -> Selection:
    """The embedding of the frames that ``measure`` has chosen."""
    count = measure["frames"]
    if not isinstance(count, int) or count < 1:
        raise InputError(f"frames must be a number of frames, 1 or more, not {count!r}")
    parameters = parameters_of({"network": measure["network"], **view_parameters(measure)})
    return Selection(f"embedding_of_{count}_middle_frames", partial(middle_frames, count=count), embed_clip, parameters)


@dataclass
class Embeddings:
    """What is compared.

    Attributes:
        text: embedding of the prompt (D,).
        cut_tokens: tokens of the prompt behind the network's context.
        clip: embedding of the clip (D,), ``None`` before its end.
        frames: frames of the clip.
        drawn: frames that its embedding is made of.
    """

    text: NDArray[np.float64]
    cut_tokens: int
    drawn: int
    clip: NDArray[np.float64] | None = None
    frames: int = 0


class _Meter:
    def __init__(self, measure: Measure, text: Chunk) -> None:
        self._selection = clip_selection(measure)
        embedding, cut = text[text_feature(measure)]
        self._counts = Embeddings(embedding[0].astype(np.float64), int(cut[0]), int(measure["frames"]))

    def update(self, clip: Chunk) -> None:
        self._counts.frames += len(clip[FRAMES])

    def end(self, selected: Mapping[Selection, Any]) -> None:
        self._counts.clip = selected[self._selection][0].astype(np.float64)

    def counts(self) -> Embeddings:
        return self._counts


class OverallConsistency(Metric):
    """Cosine of the embeddings of a clip and of its prompt by a video-language network."""

    name = "overall_consistency"
    track = "quality"
    inputs = "single"
    uses_prompt = True
    marks_constant_frames = True
    bounds = (-1.0, 1.0)
    source = "VBench, overall consistency; PAI-Bench-G, section 3.1 and appendix A.2 (public code)"

    def text_features(self, measure: Measure) -> tuple[Feature, ...]:
        """The embedding of the prompt, shared by all members of the group."""
        return (text_feature(measure),)

    def selections(self, measure: Measure) -> tuple[Selection, ...]:
        """The embedding of the frames that stand for the clip."""
        return (clip_selection(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """ViCLIP."""
        return (str(measure["network"]),)

    def meter(
        self,
        measure: Measure,
        member: StreamInfo | Sequence[StreamInfo],
        *,
        image: Chunk | None = None,
        text: Chunk | None = None,
    ) -> Meter:
        """A meter that waits for the end of the clip."""
        assert text is not None
        return _Meter(measure, text)

    def decide(self, counts: Embeddings, decide: Mapping[str, Any]) -> MetricResult:
        """The cosine, neither clamped nor scaled."""
        detail = {"frames": counts.frames, "cut_tokens": counts.cut_tokens}
        if counts.clip is None:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "the clip has no frame", detail=detail)
        indices = middle_frames(counts.frames, counts.drawn)
        result = MetricResult.of(
            self.name, _cosine(counts.clip, counts.text), detail={**detail, "frames_seen": indices}
        )
        repeated = counts.frames < counts.drawn and result.value is not None
        return result.with_flags(Flag.FRAMES_REPEATED) if repeated else result


def _cosine(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Cosine of two vectors, ``nan`` when one has no direction or holds a number that is not finite."""
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return math.nan
    lengths = math.sqrt(first @ first) * math.sqrt(second @ second)
    return max(-1.0, min(1.0, float(first @ second) / lengths)) if lengths else math.nan  # a rounding step above 1 is 1


METRIC = OverallConsistency()


def overall_consistency(
    clip: NDArray[np.uint8],
    prompt: str,
    *,
    protocol: str = "corrected",
    device: str = "cpu",
    dtype: str = "float32",
) -> MetricResult:
    """How well a clip fits a text: the cosine of their embeddings, -1..1, about 0.2 in practice.

    ViCLIP (ViT-L/14, InternVid-10M-FLT) sees eight frames, the middle ones of equal pieces of the clip, each resized to
    a shorter side of 224 pixels and cropped to the central square. Of the text it reads the first 30 tokens.

    Args:
        clip: (T, H, W, 3) uint8 RGB; one frame is enough.
        prompt: the text; without one the result has the reason ``missing_prompt``.
        protocol: ``corrected`` or ``reference``; they differ in how clips are averaged, and in the name under which a
            missing prompt is reported.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with ``cut_tokens`` (tokens behind the 30th, which played no part) and ``frames_seen`` in its detail;
        fewer than eight frames give the flag ``frames_repeated``. Without a value: ``missing_prompt``
        (``reference_stops`` under ``reference``), ``not_finite``, ``missing_weights`` (checkpoint ``viclip``).

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        VBench, overall consistency; PAI-Bench, appendix A.2; Wang et al. 2023 (InternVid).

    Example:
        >>> import numpy as np
        >>> print(overall_consistency(np.zeros((8, 64, 64, 3), np.uint8), "a dark room"))  # doctest: +SKIP
        overall_consistency 0.214 [constant_frame]
    """
    chosen, placement = load_protocol(METRIC.name, protocol), placement_of(device, dtype)
    return measure_single(METRIC, clip, chosen, prompt=prompt, placement=placement)
