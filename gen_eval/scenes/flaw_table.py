"""Which metric must see which flaw: what a metric is worth, written down before it is measured.

Both twins are scored against the clean clip. A pair that is not listed is not promised: there the answer depends on
the scene. A name with a dot is a further number of a metric. Metrics that arrive later add their columns here.

What networks embed promises an order even with numbers drawn at random: frames that are alike have like embeddings.
A distance between frames (diversity, of the clean and the broken twin together) is above 0 wherever they differ, and
more counts as better: alone it rewards what is wrong. Ratings of a picture or a clip (aesthetic, imaging and visual
quality, overall consistency) promise nothing that holds for every network, so they are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Effect(StrEnum):
    """How the score of the broken twin compares with that of the clean one."""

    WORSE = "worse"
    BETTER = "better"
    EQUAL = "equal"


_W, _B, _E = Effect.WORSE, Effect.BETTER, Effect.EQUAL

# Every physical flaw and every displacement moves something in the picture and, with it, in depth and masks.
_MOVED = {
    "blur_ssim": _W,
    "edge_f1": _W,
    "depth_si_rmse": _W,
    "mask_miou": _W,
    "mask_miou.all": _W,
    "diversity": _B,
}
# What only touches the picture leaves the signals that come with the clip alone.
_PICTURE = {**_MOVED, "depth_si_rmse": _E, "mask_miou": _E, "mask_miou.all": _E}
# Embeddings of frames, among themselves and against the picture that the clip starts from.
_EMBEDDED = ("subject_consistency", "background_consistency", "i2v_subject", "i2v_background")
_UNLIKE: Mapping[str, Effect] = dict.fromkeys(_EMBEDDED, _W)
_ALIKE: Mapping[str, Effect] = dict.fromkeys(_EMBEDDED, _B)
# A frame is guessed from its neighbours, and flow measured between frames.
_ROUGH = {"motion_smoothness": _W}
_SMOOTH = {"motion_smoothness": _B}
_MORE_MOTION = {"dynamic_degree.motion": _B}
_LESS_MOTION = {"dynamic_degree.motion": _W}
_UNTOUCHED = {"blur_ssim": _E, "edge_f1": _E, "temporal_flickering": _E, "diversity": _E}

FLAW_TABLE: Mapping[str, Mapping[str, Effect]] = {
    "teleport": _MOVED,
    "wrong_gravity": _MOVED,
    # temporal_flickering measures motion: a clip in which less moves scores better, however wrong that is.
    "vanish": _MOVED,
    "freeze": {**_MOVED, "temporal_flickering": _B, **_ALIKE, **_SMOOTH, **_LESS_MOTION},
    "frame_drop": {**_MOVED, "temporal_flickering": _B, **_LESS_MOTION},
    # mask_miou drops objects that overlap too little: where a still object remains, its mean may even stay at 1.
    "reversed": {name: effect for name, effect in _MOVED.items() if name != "mask_miou"},
    # The picture that the clip starts from does not shift with it.
    "shift": {**_MOVED, "i2v_subject": _W, "i2v_background": _W},
    "jitter": {**_MOVED, "temporal_flickering": _W, **_UNLIKE, **_ROUGH, **_MORE_MOTION},
    "flicker": {**_PICTURE, "temporal_flickering": _W, **_UNLIKE, **_ROUGH, **_MORE_MOTION},
    "noise": {**_PICTURE, "temporal_flickering": _W, **_UNLIKE, **_ROUGH},
    # A blur takes the sharp differences between frames away, which temporal_flickering counts as good.
    "blur": {**_PICTURE, "temporal_flickering": _B, **_SMOOTH},
    # An outline may survive a change of colour, so edge_f1 promises nothing.
    "colour_shift": {name: effect for name, effect in _PICTURE.items() if name != "edge_f1"},
    "mask_erosion": {**_UNTOUCHED, "depth_si_rmse": _E, "mask_miou": _W, "mask_miou.all": _W},
    "depth_noise": {**_UNTOUCHED, "depth_si_rmse": _W, "mask_miou": _E, "mask_miou.all": _E},
}
"""Flaw -> metric -> what the score must do."""

FULL_STRENGTH: Mapping[str, Mapping[str, Effect]] = {
    "vanish": {"temporal_flickering": _B},
    "reversed": {"temporal_flickering": _E},
}
"""What holds beyond that at strength 1 only: backwards as a whole, a clip has the same neighbours."""
