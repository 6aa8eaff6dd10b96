"""Views: goldens of every transform, the primitives they stand for, odd and extreme sizes, bad parameters."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from gen_eval.networks.resampling import Window, resample
from gen_eval.networks.views import make, planes_of, resized_size
from gen_eval.records import InputError, ItemError, Reason

SUBJECT = {"resize": "shorter", "side": 224, "filter": "bilinear", "antialias": False, "normalise": "imagenet"}
CLIP = {"resize": "shorter", "side": 224, "filter": "bicubic", "antialias": False, "crop": 224, "normalise": "clip"}
I2V_SUBJECT = {"resize": "shorter", "side": 256, "filter": "bicubic", "antialias": True, "crop": 224} | {
    "normalise": "imagenet"
}
I2V_BACKGROUND = {"resize": "square", "side": 224, "filter": "bicubic", "antialias": True}
IMAGING = {"resize": "longer_at_most", "side": 512, "filter": "bilinear", "antialias": False}
SHORTER = IMAGING | {"resize": "shorter_at_most"}
TRANSFORMS = {
    "subject_frames": ("frames", SUBJECT),
    "clip_frames_float": ("frames", CLIP),
    "viclip_frames_uint8": ("chosen", CLIP | {"rounding": "uint8"}),
    "i2v_subject_frames": ("frames", I2V_SUBJECT),
    "i2v_subject_condition": ("condition", I2V_SUBJECT | {"backend": "pillow"}),
    "i2v_background_frames": ("frames", I2V_BACKGROUND),
    "i2v_background_condition": ("condition", I2V_BACKGROUND | {"backend": "pillow"}),
    "imaging_longer": ("frames", IMAGING),
    "imaging_shorter": ("frames", SHORTER),
    "imaging_shorter_centercrop": ("frames", SHORTER | {"crop": 512}),
    "imaging_None": ("frames", {"resize": "none"}),
}
CLIPS = ["clip_a", "clip_b", "clip_c", "clip_wide"]


@pytest.fixture(scope="module")
def golden(request):
    folder = request.path.parents[1] / "goldens" / "quality"
    expected = json.loads((folder / "preprocess.json").read_text())["clips"]
    assert sorted(expected) == CLIPS
    assert {name for name in expected["clip_a"] if name != "viclip_frame_indices"} == set(TRANSFORMS)

    def read(clip, transform):
        with np.load(folder / "clips" / f"{clip}.npz") as arrays:
            frames, condition = arrays["frames"], arrays["condition"]
        chosen = frames[expected[clip]["viclip_frame_indices"]]
        source = {"frames": frames, "condition": condition[None], "chosen": chosen}[TRANSFORMS[transform][0]]
        return source, expected[clip][transform]

    return read


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_golden(golden, clip, transform):
    frames, expected = golden(clip, transform)
    seen = make(frames, **TRANSFORMS[transform][1])
    assert seen.dtype == torch.float32
    assert seen.is_contiguous()
    whole = seen[0] if len(expected["shape"]) == 3 else seen
    assert list(whole.shape) == expected["shape"]
    found = whole.double()
    for name, value in {
        "mean": found.mean(),
        "std": found.std(correction=0),
        "min": found.min(),
        "max": found.max(),
    }.items():
        assert float(value) == pytest.approx(expected[name], abs=1e-4), name
    top, left = expected["crop_yx"]
    patch = np.array(expected["crop_first_frame_4x6"])
    np.testing.assert_allclose(seen[0, :, top : top + 4, left : left + 6], patch, rtol=0, atol=1e-4)
    np.testing.assert_allclose(seen[0, :, 0, 0], expected["corner_first_frame"], rtol=0, atol=1e-4)


def noise(height, width, count=1, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("order", [np.s_[:], np.s_[::-1], np.s_[:, ::-1], np.s_[:, :, ::2], np.s_[..., ::-1]])
@pytest.mark.parametrize("size", [(5, 7), (1, 9), (9, 1), (1, 1)])
def test_planes_are_a_copy_whatever_the_layout(size, order):
    frames = noise(*size, count=3)[order]
    planes = planes_of(frames)
    np.testing.assert_array_equal(planes, frames.transpose(0, 3, 1, 2))
    before = planes.clone()
    frames[:] = 0
    assert torch.equal(planes, before)


SIDES = st.integers(1, 70)


@given(
    SIDES, SIDES, SIDES, SIDES, st.sampled_from([("bilinear", False), ("bicubic", False), ("bicubic", True)]), st.data()
)
@settings(max_examples=60, deadline=None)
def test_resampling_is_the_operation_of_torch(height, width, rows, columns, filter_, data):
    kind, antialias = filter_
    columns = max(columns, 2) if antialias else columns  # torch 2.14 repeats its first row into a single column
    top, left = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    window = Window(top, left, data.draw(st.integers(1, rows - top)), data.draw(st.integers(1, columns - left)))
    planes = planes_of(noise(height, width, 2, height))
    whole = functional.interpolate(planes.float(), (rows, columns), mode=kind, align_corners=False, antialias=antialias)
    expected = whole[:, :, top : top + window.height, left : left + window.width]
    found = resample(planes, (rows, columns), window, kind=kind, antialias=antialias)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)
    torch.testing.assert_close(
        resample(planes.float(), (rows, columns), window, kind=kind, antialias=antialias), found, rtol=0, atol=2e-4
    )


@pytest.mark.parametrize(("height", "width"), [(480, 832), (832, 480), (1079, 1919)])
def test_resampling_of_large_frames_is_the_operation_of_torch(height, width):
    planes = planes_of(noise(height, width))
    size = resized_size(height, width, "shorter", 256)
    expected = functional.interpolate(planes.float(), size, mode="bicubic", align_corners=False, antialias=True)
    top, left = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    found = resample(planes, size, Window(top, left, 224, 224), kind="bicubic", antialias=True)
    torch.testing.assert_close(found, expected[:, :, top : top + 224, left : left + 224], rtol=0, atol=2e-4)


@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 300))
@settings(max_examples=100, deadline=None)
def test_sizes(height, width, side):
    found = resized_size(height, width, "shorter", side)
    assert min(found) == side
    assert max(found) == int(side * max(height, width) / min(height, width))
    assert resized_size(width, height, "shorter", side) == found[::-1]
    assert resized_size(height, width, "square", side) == (side, side)
    assert resized_size(height, width, "none", None) == (height, width)
    if max(height, width) <= side:
        assert resized_size(height, width, "longer_at_most", side) == (height, width)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((480, 832), (295, 512)), ((704, 1280), (281, 512)), ((1280, 704), (512, 281)), ((512, 512), (512, 512))],
)
def test_sizes_of_imaging_quality(size, expected):
    assert resized_size(*size, "longer_at_most", 512) == expected


def test_by_hand_float_values_overshoot_and_bytes_do_not():
    frames = np.zeros((1, 2, 8, 3), np.uint8)
    frames[:, :, 4:] = 255
    rule = {"resize": "square", "side": 16, "filter": "bicubic"}
    kept, rounded = make(frames, **rule), make(frames, rounding="uint8", **rule)
    assert kept.min() < -0.01
    assert kept.max() > 1.01
    assert (rounded.min(), rounded.max()) == (0, 1)
    torch.testing.assert_close(rounded * 255, (kept * 255).clamp(0, 255).round(), rtol=0, atol=1e-4)


def test_by_hand_bilinear_without_antialias_reads_two_pixels_each_way():
    frames = np.zeros((1, 8, 8, 3), np.uint8)
    frames[0, 3, 3] = 255  # one of the four pixels around the centre
    assert make(frames, resize="square", side=1, filter="bilinear")[0, 0].item() == pytest.approx(0.25)
    wide = make(frames, resize="square", side=1, filter="bilinear", antialias=True)[0, 0].item()
    assert 0 < wide < 0.05


def test_by_hand_normalisation():
    frames = np.full((1, 2, 2, 3), 51, np.uint8)
    seen = make(frames, resize="none", normalise="imagenet")[0, :, 0, 0]
    np.testing.assert_allclose(
        seen, [(0.2 - m) / d for m, d in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))], atol=1e-6
    )


def test_the_crop_is_central_and_rounds_half_to_even():
    frames = np.arange(15, dtype=np.uint8)[None, None, :, None].repeat(15, 1).repeat(3, 3)
    seen = make(frames, resize="none", crop=4)[0, 0, 0] * 255  # (15 - 4) / 2 = 5.5 -> 6
    np.testing.assert_allclose(seen, [6, 7, 8, 9], atol=1e-4)
    seen = make(frames, resize="none", crop=6)[0, 0, 0] * 255  # 4.5 -> 4
    np.testing.assert_allclose(seen, [4, 5, 6, 7, 8, 9], atol=1e-4)


@pytest.mark.parametrize("rule", [SUBJECT, CLIP, I2V_SUBJECT, I2V_BACKGROUND, IMAGING])
@pytest.mark.parametrize("backend", ["torch", "pillow"])
@pytest.mark.parametrize("size", [(1, 1), (1, 3), (37, 20), (64, 33), (224, 224)])
def test_odd_small_and_portrait_frames(rule, backend, size):
    seen = make(noise(*size, count=2), **rule, backend=backend)
    assert seen.shape[:2] == (2, 3)
    assert torch.isfinite(seen).all()
    assert min(seen.shape[2:]) >= 1


@pytest.mark.parametrize("rule", [SUBJECT, CLIP, I2V_SUBJECT, I2V_BACKGROUND, IMAGING, CLIP | {"rounding": "uint8"}])
def test_one_colour_stays_one_colour(rule):
    frames = np.broadcast_to(np.array([10, 100, 250], np.uint8), (1, 50, 70, 3)).copy()
    seen = make(frames, **rule)
    assert float((seen.amax((2, 3)) - seen.amin((2, 3))).max()) < 1e-4


@pytest.mark.parametrize("rule", [SUBJECT, CLIP | {"rounding": "uint8"}, I2V_SUBJECT, {"resize": "none", "crop": 3}])
def test_frames_are_seen_alike_in_any_chunk_and_are_left_alone(rule):
    frames = noise(30, 41, count=5)
    planes = planes_of(frames).float()
    whole = make(planes, **rule)
    np.testing.assert_array_equal(planes, frames.transpose(0, 3, 1, 2))
    parts = torch.cat([make(planes_of(frames[part]), **rule) for part in (np.s_[:2], np.s_[2:])])
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-6)


def test_a_view_without_resize_does_not_write_into_its_source():
    planes = planes_of(noise(8, 8)).float()
    before = planes.clone()
    make(planes, resize="none", normalise="clip")
    make(planes, resize="square", side=8, rounding="uint8", filter="bicubic", normalise="clip")
    assert torch.equal(planes, before)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"resize": "fit"}, "shorter, square"),
        ({"filter": "lanczos"}, "bicubic"),
        ({"filter": "none"}, "name a filter"),
        ({"rounding": "floor"}, "uint8"),
        ({"normalise": "vgg"}, "imagenet"),
        ({"backend": "opencv"}, "pillow"),
        ({"antialias": "maybe"}, "True"),
        ({"side": None}, "side in pixels"),
        ({"side": 0}, "side in pixels"),
        ({"crop": "centre"}, "number of pixels"),
        ({"crop": 0}, "number of pixels"),
    ],
)
def test_unknown_parameters_are_refused(change, named):
    with pytest.raises(InputError, match=named):
        make(noise(8, 8), **(CLIP | change))


def test_frames_that_vanish_or_are_smaller_than_the_crop():
    with pytest.raises(ItemError, match="1024x1") as caught:
        make(noise(1, 1024), **IMAGING)
    assert caught.value.reason is Reason.TOO_SMALL
    with pytest.raises(ItemError, match="8x6") as caught:
        make(noise(6, 8), resize="none", crop=7)
    assert caught.value.reason is Reason.TOO_SMALL
    assert math.prod(make(noise(6, 8), **(SHORTER | {"crop": 512})).shape) == 3 * 6 * 8  # not resized: not cropped
