"""The table of decisions, reference against corrected, row by row, for the metrics without weights.

Each row: situation, what is called, and for the three protocols the expected value or reason, and the expected flags.
A value given as a function is computed from the arguments by an independent rule.
"""

import math

import cv2
import numpy as np
import pytest

from control_metrics import blur_ssim, depth_si_rmse, edge_f1, mask_miou
from gen_eval.records import Flag, Reason

PROTOCOLS = ("reference", "reference-v2", "corrected")


def steps(*levels, height=16, width=24):
    """A clip with one vertical edge in each frame, of the given contrast; (0, 0) is a black frame."""
    clip = np.zeros((len(levels), height, width, 3), np.uint8)
    for frame, level in zip(clip, levels, strict=True):
        frame[:, width // 2 :] = level
    return clip


def depth(*rows):
    """Depth maps (T, 1, W) from rows of numbers."""
    return np.array(rows, dtype=np.float64)[:, None]


def mask(*frames):
    """A mask (T, 1, W) from texts of # and . ."""
    return np.array([[[sign == "#" for sign in frame]] for frame in frames])


def flat(level, frames=1):
    return np.full((frames, 9, 9, 3), level, np.uint8)


def resized(clip, size, how):
    return np.stack([cv2.resize(frame, size[::-1], interpolation=how) for frame in clip])


PATTERN = np.random.default_rng(0).integers(0, 256, (2, 24, 32, 3), dtype=np.uint8)
WIDER = np.random.default_rng(1).integers(0, 256, (2, 20, 48, 3), dtype=np.uint8)
TALLER = np.random.default_rng(2).integers(0, 256, (2, 28, 36, 3), dtype=np.uint8)
NEARLY = np.random.default_rng(3).integers(0, 256, (2, 23, 34, 3), dtype=np.uint8)  # lower, wider, more pixels
MAPS = np.random.default_rng(4).random((1, 4, 6)) + 0.5
LARGE = np.random.default_rng(5).random((1, 9, 11)) + 0.5
SMALL = np.random.default_rng(6).random((1, 3, 4)) + 0.5


def blur_of(own, how):
    return float(blur_ssim(resized(own, (24, 32), how), PATTERN))


def depth_of(own, how):
    return float(depth_si_rmse(resized(own, (4, 6), how), MAPS))


ONE = mask("##......", "##......")
SAME, SHORT_CLIP, LONG_CLIP, RESIZED = (), (Flag.SHORT_CLIP,), (Flag.LONG_CLIP,), (Flag.RESIZED,)
C1 = 2.55**2


def rows(situation, function, arguments, expected, **options):
    """One parameter set for each protocol."""
    for protocol in PROTOCOLS:
        value, flags = expected[protocol] if isinstance(expected, dict) else expected
        name = f"{situation} [{protocol}]"
        yield pytest.param(function, arguments, {**options, "protocol": protocol}, value, flags, id=name)


def split(both, corrected):
    """What the two reference protocols give, and what corrected gives."""
    return {"reference": both, "reference-v2": both, "corrected": corrected}


ROWS = [
    # all metrics
    *rows(
        "all: aspect ratios more than 5 % apart", blur_ssim, (WIDER, PATTERN),
        split((blur_of(WIDER, cv2.INTER_LINEAR), RESIZED), (Reason.ASPECT_MISMATCH, SAME)),
    ),
    *rows(
        "all: aspect ratios more than 5 % apart, edges", edge_f1, (np.zeros_like(WIDER), np.zeros_like(PATTERN)),
        split((Reason.REFERENCE_UNSET, RESIZED), (Reason.ASPECT_MISMATCH, SAME)),
    ),
    *rows(
        "all: generated clip larger", blur_ssim, (TALLER, PATTERN), (blur_of(TALLER, cv2.INTER_AREA), RESIZED),
    ),
    *rows(
        "all: generated clip lower, wider and of more pixels", blur_ssim, (NEARLY, PATTERN),
        split((blur_of(NEARLY, cv2.INTER_LINEAR), RESIZED), (Reason.ASPECT_MISMATCH, SAME)),
    ),
    *rows(
        "all: maps are only resized", depth_si_rmse, (LARGE[:, :9, :2], MAPS),
        {
            "reference": (depth_of(LARGE[:, :9, :2], cv2.INTER_NEAREST), RESIZED),
            "reference-v2": (depth_of(LARGE[:, :9, :2], cv2.INTER_LINEAR), RESIZED),
            "corrected": (depth_of(LARGE[:, :9, :2], cv2.INTER_LINEAR), RESIZED),
        },
    ),
    *rows("all: shorter clip, blur", blur_ssim, (PATTERN[:1], PATTERN), (1.0, SHORT_CLIP)),
    *rows("all: shorter clip, edges", edge_f1, (steps(255), steps(255, 255)), (1.0, SHORT_CLIP)),
    *rows("all: shorter clip, depth", depth_si_rmse, (depth([1, 2]), depth([1, 2], [3, 1])), (0.0, SHORT_CLIP)),
    *rows(
        "all: shorter clip, masks", mask_miou, ([("a", ONE[:1])], [("a", ONE)]),
        split((Reason.REFERENCE_STOPS, SAME), (1.0, SHORT_CLIP)), max_frames=2,
    ),
    *rows("all: longer clip, blur", blur_ssim, (PATTERN, PATTERN[:1]), (1.0, LONG_CLIP)),
    *rows("all: longer clip, edges", edge_f1, (steps(255, 0), steps(255)), (1.0, LONG_CLIP)),
    *rows("all: longer clip, depth", depth_si_rmse, (depth([1, 2], [3, 1]), depth([1, 2])), (0.0, LONG_CLIP)),
    *rows(
        "all: longer clip, masks", mask_miou, ([("a", ONE)], [("a", ONE[:1])]), (1.0, LONG_CLIP), max_frames=1,
    ),
    *rows("all: one frame, blur", blur_ssim, (PATTERN[:1], PATTERN[:1]), (1.0, SAME)),
    *rows("all: one frame, edges", edge_f1, (steps(255), steps(255)), (1.0, SAME)),
    *rows("all: one frame, depth", depth_si_rmse, (depth([1, 2]), depth([1, 2])), (0.0, SAME)),
    *rows("all: one frame, masks", mask_miou, ([("a", ONE[:1])], [("a", ONE[:1])]), (1.0, SAME)),
    *rows(
        "all: NaN in a result", blur_ssim, (flat(80), flat(80)),
        split((Reason.NOT_FINITE, SAME), (1.0, (Flag.CONSTANT_FRAME,))),
    ),
    # blur_ssim
    *rows(
        "blur_ssim: constant reference frame", blur_ssim, (flat(100), flat(200)),
        split((Reason.NOT_FINITE, SAME), ((2 * 100 * 200 + C1) / (100**2 + 200**2 + C1), (Flag.CONSTANT_FRAME,))),
    ),
    *rows(
        "blur_ssim: side < 7", blur_ssim, (PATTERN[:, :6], PATTERN[:, :6]),
        split((Reason.REFERENCE_STOPS, SAME), (Reason.TOO_SMALL, SAME)),
    ),
    # edge_f1
    *rows("edge_f1: picture, an edge that gray does not show", edge_f1, (steps((0, 0, 140)), steps((0, 0, 140))), {
        "reference": (1.0, SAME),
        "reference-v2": (Reason.REFERENCE_UNSET, SAME),
        "corrected": (1.0, SAME),
    }),
    *rows(
        "edge_f1: no edges in either clip", edge_f1, (steps(0), steps(0)),
        split((Reason.REFERENCE_UNSET, SAME), (1.0, (Flag.NO_EDGES,))),
    ),
    *rows(
        "edge_f1: no edges in the generated clip", edge_f1, (steps(0), steps(255)),
        split((Reason.REFERENCE_UNSET, SAME), (0.0, (Flag.NO_EDGES_ONE_SIDE,))),
    ),
    *rows(
        "edge_f1: no edges in the reference clip", edge_f1, (steps(255), steps(0)),
        split((Reason.REFERENCE_UNSET, SAME), (0.0, (Flag.NO_EDGES_ONE_SIDE,))),
    ),
    *rows("edge_f1: single edge-free frames", edge_f1, (steps(255, 0), steps(255, 0)), (1.0, SAME)),
    *rows("edge_f1: single edge-free frame of one clip", edge_f1, (steps(255, 0), steps(255, 255)), (2 / 3, SAME)),
    # depth_si_rmse
    *rows("depth_si_rmse: maps of unequal size, larger", depth_si_rmse, (LARGE, MAPS), {
        "reference": (depth_of(LARGE, cv2.INTER_NEAREST), RESIZED),
        "reference-v2": (depth_of(LARGE, cv2.INTER_AREA), RESIZED),
        "corrected": (depth_of(LARGE, cv2.INTER_AREA), RESIZED),
    }),
    *rows("depth_si_rmse: maps of unequal size, smaller", depth_si_rmse, (SMALL, MAPS), {
        "reference": (depth_of(SMALL, cv2.INTER_NEAREST), RESIZED),
        "reference-v2": (depth_of(SMALL, cv2.INTER_LINEAR), RESIZED),
        "corrected": (depth_of(SMALL, cv2.INTER_LINEAR), RESIZED),
    }),
    *rows("depth_si_rmse: residual", depth_si_rmse, (depth([1, 1, 1]), depth([1, 1, 101])), {
        "reference": (100 / math.sqrt(3), SAME),
        "reference-v2": (10 / math.sqrt(3), SAME),
        "corrected": (100 / math.sqrt(3), SAME),
    }),
    *rows(
        "depth_si_rmse: dead frame", depth_si_rmse, (depth([1, 1, 1], [1, 1, 1]), depth([1, 2, 3], [0, 0, 0])),
        split((math.sqrt(2 / 3) / 2, (Flag.DEAD_FRAMES,)), (math.sqrt(2 / 3), (Flag.DEAD_FRAMES,))),
    ),
    *rows(
        "depth_si_rmse: no valid pixel at all", depth_si_rmse, (depth([1, 1]), depth([0, -1])),
        split((0.0, (Flag.DEAD_FRAMES,)), (Reason.NO_VALID_DEPTH, SAME)),
    ),
    *rows("depth_si_rmse: NaN pixel", depth_si_rmse, (depth([1, 2, math.nan]), depth([2, 4, 9])), (0.0, SAME)),
    *rows(
        "depth_si_rmse: infinite pixel", depth_si_rmse, (depth([1, 2, math.inf]), depth([2, 4, 9])),
        {
            "reference": (Reason.NOT_FINITE, SAME),
            "reference-v2": (10 / math.sqrt(3), SAME),  # the cap makes it finite
            "corrected": (0.0, SAME),
        },
    ),
    # mask_miou
    *rows(
        "mask_miou: overlaps", mask_miou, ([("b", mask("##..")), ("a", mask("####"))], [("a", mask("####"))]),
        split((1.0, (Flag.EXTRA_CLASS,)), (1.0, (Flag.EXTRA_CLASS,))) | {"reference-v2": (1.0, SAME)},
    ),
    *rows(
        "mask_miou: overlaps, later object smaller", mask_miou,
        ([("a", mask("####")), ("b", mask("##.."))], [("a", mask("####"))]),
        split((0.5, (Flag.EXTRA_CLASS,)), (1.0, (Flag.EXTRA_CLASS,))),
    ),
    *rows(
        "mask_miou: class empty in all frames", mask_miou,
        ([("a", mask("##..")), ("b", mask("...."))], [("a", mask("##.."))]),
        {"reference": (1.0, (Flag.EXTRA_CLASS,)), "reference-v2": (1.0, SAME), "corrected": (1.0, SAME)},
    ),
    *rows(
        "mask_miou: only empty classes on the reference side", mask_miou,
        ([("a", mask("##.."))], [("a", mask("...."))]),
        {
            "reference": (0.0, SAME),
            "reference-v2": (Reason.REFERENCE_STOPS, SAME),
            "corrected": (Reason.NO_REFERENCE_OBJECTS, SAME),
        },
    ),
    *rows(
        "mask_miou: only empty classes on the generated side", mask_miou,
        ([("a", mask("...."))], [("a", mask("##.."))]),
        {
            "reference": (0.0, SAME),
            "reference-v2": (Reason.REFERENCE_STOPS, SAME),
            "corrected": (0.0, (Flag.NO_DETECTIONS,)),
        },
    ),
    *rows(
        "mask_miou: nothing on the reference side", mask_miou, ([("a", ONE)], []),
        split((0.0, SAME), (Reason.NO_REFERENCE_OBJECTS, SAME)),
    ),
    *rows(
        "mask_miou: nothing on the generated side", mask_miou, ([], [("a", ONE)]), (0.0, (Flag.NO_DETECTIONS,)),
    ),
    *rows(
        "mask_miou: nothing on either side", mask_miou, ([], []),
        split((0.0, (Flag.NO_DETECTIONS,)), (Reason.NO_REFERENCE_OBJECTS, SAME)),
    ),
    *rows(
        "mask_miou: missing class", mask_miou,
        ([("a", mask("##.."))], [("a", mask("##..")), ("b", mask("..##"))]), (1.0, (Flag.MISSING_CLASS,)),
    ),
    *rows(
        "mask_miou: extra class", mask_miou,
        ([("a", mask("##..")), ("b", mask("..##"))], [("a", mask("##.."))]), (1.0, (Flag.EXTRA_CLASS,)),
    ),
    *rows(
        "mask_miou: threshold", mask_miou, ([("a", mask("#........."))], [("a", mask("##########"))]), (0.0, SAME),
    ),
    *rows(
        "mask_miou: more than 255 objects", mask_miou, ([("a", ONE)] * 256, [("a", ONE)]),
        split((Reason.REFERENCE_STOPS, SAME), (1.0, SAME)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "options", "expected", "flags"), ROWS)
def test_decision(function, arguments, options, expected, flags):
    result = function(*arguments, **options)
    if isinstance(expected, Reason):
        assert (result.value, result.status, result.reason) == (None, expected.status, expected)
    else:
        assert result.reason is None
        assert result.value == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert result.flags == flags
    assert result.protocol == options["protocol"]


def test_range_of_each_reference_frame_and_borders_are_in():
    """Two frames of other contrast, one number apart from what a fixed range or a cropped border would give."""
    from skimage.metrics import structural_similarity  # noqa: TID251

    real = np.concatenate([PATTERN[:1] // 4, PATTERN[:1]])
    own = np.concatenate([PATTERN[1:] // 4, PATTERN[1:]])
    expected = []
    for x, y in zip(real, own, strict=True):
        x, y = (cv2.bilateralFilter(frame, 30, 150, 100) for frame in (x, y))
        reach = int(x.max()) - int(x.min())
        cropped, full = structural_similarity(x, y, data_range=reach, channel_axis=2, full=True)
        assert abs(cropped - full.mean()) > 1e-4
        expected.append(full.mean())
    for protocol in PROTOCOLS:
        assert float(blur_ssim(own, real, protocol=protocol)) == pytest.approx(np.mean(expected), abs=1e-12)


def test_edge_parts_that_are_undefined_are_null():
    none, some = steps(0), steps(255)
    assert (edge_f1(none, some).precision, edge_f1(none, some).recall) == (None, 0.0)
    assert (edge_f1(some, none).precision, edge_f1(some, none).recall) == (0.0, None)
    assert (edge_f1(none, none).precision, edge_f1(none, none).recall) == (1.0, 1.0)


def test_missing_and_extra_classes_cost_in_the_stricter_means():
    left, right = mask("##.."), mask("..##")
    missing = mask_miou([("a", left)], [("a", left), ("b", right)])
    assert missing.values == {"recall": 1.0, "all": 0.5, "same_phrase": 0.5}
    extra = mask_miou([("b", left), ("a", right)], [("a", left)])
    assert extra.values == {"recall": 1.0, "all": 1.0, "same_phrase": 0.0}
