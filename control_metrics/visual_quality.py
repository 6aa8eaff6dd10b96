"""Visual quality: how free a clip is of blur, noise and compression, as DOVER's technical branch learned it.

Source: PAI-Bench-C, quality score (the public code takes the technical branch alone); Wu et al. 2023 (DOVER), Wu et al.
2022 (FAST-VQA, fragments).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gen_eval.features import (
    FRAMES,
    Chunk,
    Measure,
    Meter,
    Metric,
    Selection,
    StreamInfo,
    measure_single,
    parameters_of,
)
from gen_eval.networks import placement_of
from gen_eval.networks.fragments import Grid, cut_fragments, places, segment_frames
from gen_eval.networks.rating import rate_segments
from gen_eval.protocols import load_protocol
from gen_eval.protocols.values import whole_number
from gen_eval.records import Flag, InputError, MetricResult, Reason

_LARGEST = 2**32 - 1  # that seeds a generator
_MOST_PIXELS = 2**28
_FEW = 3  # frames; a segment of a clip with fewer has none of its own


def grid_of(measure: Measure) -> Grid:
    """How patches are cut under ``measure``.

    Raises:
        InputError: a value makes no grid.
    """
    return Grid(
        **{name: _whole(measure, name) for name in ("cells", "patch", "segments", "seed")}, laid_over=measure["grid"]
    )


def fragments_selection(measure: Measure) -> Selection:
    """The ratings of the segments of a clip. Of each frame only its patches are kept."""
    sampling = {name: _whole(measure, name) for name in ("segments", "frames", "step", "seed")}
    rating = {name: measure[name] for name in ("network", "segments", "normalise")}
    grid = grid_of(measure)
    preparation = {"grid": grid, "frames": sampling["frames"]}
    pixels = sampling["segments"] * sampling["frames"] * grid.side**2
    if pixels > _MOST_PIXELS:
        raise InputError(
            f"segments x frames x (cells x patch)^2 is {pixels}; at most {_MOST_PIXELS} pixels of a clip are kept"
        )
    return Selection(
        "ratings_of_segments_" + "_".join(f"{name}{value}" for name, value in sampling.items()),
        partial(segment_frames, **sampling),
        rate_segments,
        parameters_of(rating),
        cut_fragments,
        parameters_of(preparation),
    )


def _whole(measure: Measure, name: str) -> int:
    return whole_number(measure, name, least=int(name != "seed"), most=_LARGEST)


@dataclass
class Ratings:
    """What is averaged.

    Attributes:
        enlarged: whether the frames are smaller than all patches together.
        frames: frames of the clip.
        views: the network's number for each segment (segments,), ``None`` before the end of the clip.
    """

    enlarged: bool
    frames: int = 0
    views: NDArray[np.float64] | None = None


class _Meter:
    def __init__(self, measure: Measure, info: StreamInfo) -> None:
        self._selection, grid = fragments_selection(measure), grid_of(measure)
        places(info.height, info.width, grid)  # refuses a clip before it is read
        self._counts = Ratings(grid.enlarges(info.height, info.width))

    def update(self, clip: Chunk) -> None:
        self._counts.frames += len(clip[FRAMES])

    def end(self, selected: Mapping[Selection, Any]) -> None:
        self._counts.views = selected[self._selection]

    def counts(self) -> Ratings:
        return self._counts


class VisualQuality(Metric):
    """DOVER's technical rating on a scale from 0 to 100."""

    name = "visual_quality"
    track = "control"
    inputs = "single"
    rates_reference = True
    unit = "of 100"
    further_units: ClassVar[Mapping[str, str]] = {"raw": "of the network"}
    bounds = (0.0, 100.0)
    source = "PAI-Bench-C, quality score (public code); DOVER, technical branch"

    def selections(self, measure: Measure) -> tuple[Selection, ...]:
        """The ratings of the segments that stand for the clip."""
        return (fragments_selection(measure),)

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """DOVER."""
        return (str(measure["network"]),)

    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A meter that waits for the end of the clip."""
        assert isinstance(member, StreamInfo)
        return _Meter(measure, member)

    def decide(self, counts: Ratings, decide: Mapping[str, Any]) -> MetricResult:
        """``scale`` x sigmoid((r - ``centre``) / ``spread``), r being the mean of the segments' ratings."""
        if not (decide["spread"] > 0 and decide["scale"] > 0):
            raise InputError(f"spread and scale must be above 0, not {decide['spread']} and {decide['scale']}")
        if counts.views is None:
            return MetricResult.without_value(self.name, Reason.TOO_FEW_FRAMES, "the clip has no frame")
        raw = math.fsum(counts.views) / len(counts.views) if np.isfinite(counts.views).all() else math.nan
        result = MetricResult.of(
            self.name,
            decide["scale"] * _sigmoid((raw - decide["centre"]) / decide["spread"]),
            values={"raw": raw},
            detail={
                "frames": counts.frames,
                "views": [float(one) if math.isfinite(one) else None for one in counts.views],
            },
        )
        unusual = {Flag.FEW_FRAMES: counts.frames < _FEW, Flag.ENLARGED: counts.enlarged}
        return result.with_flags(*(flag for flag, present in unusual.items() if present))


def _sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow where it is near 0; ``nan`` stays ``nan``."""
    return 1 / (1 + math.exp(-x)) if not x < 0 else math.exp(x) / (1 + math.exp(x))


METRIC = VisualQuality()


def visual_quality(
    clip: NDArray[np.uint8], *, protocol: str = "corrected", device: str = "cpu", dtype: str = "float32"
) -> MetricResult:
    """How free of blur, noise and compression a clip is, 0..100; models of the benchmark get about 6 to 11.

    DOVER's technical branch sees three parts of the clip, 32 frames of each, and of each frame 7 x 7 patches of 32 x 32
    pixels at their own resolution. With r the mean of its three ratings: 100 sigmoid((r - 0.1107) / 0.07355).

    Args:
        clip: (T, H, W, 3) uint8 RGB; one frame is enough.
        protocol: ``corrected``, ``reference`` or ``reference-v2``; they differ for frames with a side below 224. The
            array is looked at as it is under each: what the public code does with files before (``reference``:
            resized to the reference clip, encoded again) is done where files are scored.
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``auto``.
        dtype: number format of the network: ``float32``, ``bfloat16`` or ``float16``.

    Returns:
        A result with ``values["raw"]`` (r) and the three ratings as ``views`` in its detail. Flags ``few_frames``
        (fewer than three), ``enlarged`` (a side below 224). Without a value: ``not_finite``, ``missing_weights``
        (checkpoint ``dover``); ``reference_stops`` under the reference protocols for a side below 32.

    Raises:
        TypeError: ``clip`` is not an array.
        ValueError: ``clip`` is not (T, H, W, 3) uint8.
        InputError: there is no such protocol, device or number format.

    Source:
        PAI-Bench-C, quality score; Wu et al. 2023 (DOVER).

    Example:
        >>> import numpy as np
        >>> print(visual_quality(np.zeros((1, 64, 64, 3), np.uint8)))  # doctest: +SKIP
        visual_quality 6.2, raw -0.0891 [few_frames, enlarged]
    """
    return measure_single(METRIC, clip, load_protocol(METRIC.name, protocol), placement=placement_of(device, dtype))
