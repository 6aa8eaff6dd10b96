"""What metrics are made of: features that are computed once and shared, meters that count, and two doors.

The doors drive the meters: arrays in memory (`arrays`) and groups of videos (`planner`).
"""

from gen_eval.features.arrays import measure_pair, measure_set, measure_single
from gen_eval.features.feature import (
    FRAMES,
    Array,
    Chunk,
    ClipFrames,
    ClipSignal,
    Feature,
    Selection,
    StreamFeature,
    StreamInfo,
    parameters_of,
)
from gen_eval.features.metric import Coverage, Measure, Meter, Metric, SelectingMeter, SetMeter

__all__ = [
    "FRAMES",
    "Array",
    "Chunk",
    "ClipFrames",
    "ClipSignal",
    "Coverage",
    "Feature",
    "Measure",
    "Meter",
    "Metric",
    "SelectingMeter",
    "Selection",
    "SetMeter",
    "StreamFeature",
    "StreamInfo",
    "measure_pair",
    "measure_set",
    "measure_single",
    "parameters_of",
]
