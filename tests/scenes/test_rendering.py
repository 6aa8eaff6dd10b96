"""Pixels, masks, depth and outlines belong together, and equal arguments give equal bits."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.scenes import FLAWS, KINDS, render, scene
from gen_eval.scenes.backdrop import background_depth
from gen_eval.scenes.coverage import Camera, coverage
from gen_eval.scenes.signals import outlines
from gen_eval.scenes.world import Ellipse, Polygon, box

PLAIN = Camera(1.0, (0.0, 20.0))  # one pixel a unit; row = 20 - y


def whole(shape, camera=PLAIN, height=20, width=20):
    picture = np.zeros((height, width))
    found = coverage(shape, camera, height, width)
    if found is not None:
        window, shares = found
        picture[window.slices] = shares
    return picture


def test_rectangle_coverage_by_hand():
    shares = whole(box(1.25, 0.5, (3.25, 17.75)))  # columns 2.0 to 4.5, rows 1.75 to 2.75
    expected = np.zeros((20, 20))
    expected[1, 2:5] = 0.25 * np.array([1, 1, 0.5])
    expected[2, 2:5] = 0.75 * np.array([1, 1, 0.5])
    np.testing.assert_allclose(shares, expected, atol=1e-12)


@given(st.floats(3, 17), st.floats(3, 17), st.floats(0.2, 2.9), st.floats(0.2, 2.9))
@settings(max_examples=50, deadline=None)
def test_ellipse_coverage_sums_to_its_area(x, y, a, b):
    assert whole(Ellipse((a, b), (x, y))).sum() == pytest.approx(np.pi * a * b, rel=1e-9)


@given(st.lists(st.tuples(st.floats(-4, 24), st.floats(-4, 24)), min_size=3, max_size=3))
@settings(max_examples=40, deadline=None)
def test_triangle_coverage_agrees_with_dense_sampling(vertices):
    fine = (np.arange(20 * 16) + 0.5) / 16
    x, y = np.meshgrid(fine, 20 - fine)
    sides = []
    for index in range(3):
        (x0, y0), (x1, y1) = vertices[index - 1], vertices[index]
        sides.append((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0))
    hit = np.all(np.array(sides) >= 0, axis=0) | np.all(np.array(sides) <= 0, axis=0)
    (ax, ay), (bx, by), (cx, cy) = vertices
    if abs((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) < 1e-3:
        hit = np.zeros_like(hit)  # as good as no triangle
    sampled = hit.reshape(20, 16, 20, 16).mean(axis=(1, 3))
    np.testing.assert_allclose(whole(Polygon(tuple(vertices))), sampled, atol=0.13)


def test_a_shape_out_of_view_covers_nothing():
    assert coverage(box(1, 1, (-5, 5)), PLAIN, 20, 20) is None
    assert coverage(Ellipse((1, 1), (5, 40)), PLAIN, 20, 20) is None


def grown(mask):
    """The mask and its eight neighbours."""
    padded = np.pad(mask, ((0, 0), (1, 1), (1, 1)))
    height, width = mask.shape[1:]
    return np.any([padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)], axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_depth_and_pixels_agree(kind):
    clip = render(kind, seed=2, size=(72, 113), fps=8, frames=9)
    assert clip.frames.shape == (9, 72, 113, 3)
    assert clip.frames.dtype == np.uint8
    assert clip.depth.shape == clip.edges.shape == (9, 72, 113)
    assert clip.depth.dtype == np.float32
    assert (clip.depth > 0).all()
    rows = background_depth(Camera.fitting(72, 113).y(np.arange(72) + 0.5)).astype(np.float32)
    behind = np.broadcast_to(rows[None, :, None], clip.depth.shape)
    any_mask = np.zeros(clip.edges.shape, dtype=bool)
    for _, mask in clip.masks:
        assert mask.dtype == np.bool_
        assert mask.any()
        assert not (any_mask & mask).any()  # only what is visible
        assert (clip.depth[mask] > behind[mask]).all()
        any_mask |= mask
    # Where depth is that of the surroundings there is no object; only ropes and hooks have depth without a mask.
    assert not (any_mask & (clip.depth == behind)).any()
    if kind != "swinging":  # a pixel that two objects share may belong to neither
        seam = np.all([grown(mask) for _, mask in clip.masks], axis=0)
        np.testing.assert_array_equal(any_mask[~seam], (clip.depth != behind)[~seam])
    np.testing.assert_array_equal(clip.edges, outlines([mask for _, mask in clip.masks]))
    assert (any_mask | ~clip.edges).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_main_object_has_its_colour_where_its_mask_is(kind):
    clip, drawn = render(kind, seed=1, size=(120, 200), frames=1), scene(kind, 1)
    seen = clip.frames[0][clip.masks[0][1][0]].astype(float)
    hue = np.argsort(drawn.bodies[0].colour)
    median = np.median(seen, axis=0)
    assert np.ptp(median) > 40
    np.testing.assert_array_equal(np.argsort(median), hue)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_where_the_simulation_puts_the_bodies(kind):
    clip = render(kind, seed=3, size=(100, 160), fps=6, frames=8)
    camera = Camera.fitting(100, 160)
    track, mask = clip.tracks[0], clip.masks[0][1]
    rows, columns = np.arange(100) + 0.5, np.arange(160) + 0.5
    for frame in range(8):
        touches = mask[frame][0].any() or mask[frame][:, 0].any() or mask[frame][:, -1].any()
        if touches or kind == "occluded":
            continue
        x, y = camera.x(columns)[mask[frame].any(axis=0)], camera.y(rows)[mask[frame].any(axis=1)]
        middle = ((x.min() + x.max()) / 2, y.max() - drawn_top(kind, clip))
        np.testing.assert_allclose(middle, track.centre[frame], atol=1.6 / camera.scale)


def drawn_top(kind, clip):
    return clip.parameters["half_height"] if kind == "floating" else scene(kind, clip.seed).bodies[0].base


def test_outlines_by_hand():
    mask = np.zeros((1, 5, 6), dtype=bool)
    mask[0, 0:4, 1:5] = True
    expected = mask.copy()
    expected[0, 0:3, 2:4] = False  # the border of the picture is no outline
    np.testing.assert_array_equal(outlines([mask]), expected)
    np.testing.assert_array_equal(outlines([mask, mask]), expected)
    assert not outlines([np.ones((2, 4, 4), dtype=bool)]).any()


def test_nothing_but_the_object_and_its_shadow_changes():
    clip = render("swinging", seed=1, size=(90, 160), frames=20)
    still = np.ptp(clip.frames.astype(int), axis=0).max(axis=-1) == 0
    swept = clip.masks[0][1].any(axis=0)
    assert still.mean() > 0.5
    assert not still[swept].all()


def test_an_occluded_car_has_no_mask_while_it_is_hidden():
    clip = render("occluded", seed=0, size=(72, 120), fps=60, frames=120)
    hidden = (clip.times >= clip.parameters["hidden"]) & (clip.times <= clip.parameters["out"])
    car = clip.masks[0][1].any(axis=(1, 2))
    assert hidden.sum() >= 2
    assert not car[hidden].any()
    assert car[clip.times < clip.parameters["hidden"] - 0.05].all()
    wall = clip.masks[1][1]
    np.testing.assert_array_equal(wall, np.broadcast_to(wall[0], wall.shape))


def digest(clip):
    parts = [clip.frames, clip.depth, clip.edges, *(mask for _, mask in clip.masks)]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def test_equal_arguments_give_equal_bits_and_no_global_state_is_touched():
    np.random.seed(7)  # noqa: NPY002 - the state that must not be read or moved
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    arguments = {"seed": 4, "size": (33, 47), "frames": 5, "flaw": "noise", "variation": 2}
    first = digest(render("bouncing", **arguments))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert digest(render("bouncing", **arguments)) == first
    program = (
        "import hashlib, numpy as np; from gen_eval.scenes import render; "
        f"c = render('bouncing', **{arguments!r}); "
        "parts = [c.frames, c.depth, c.edges, *(m for _, m in c.masks)]; "
        "print(hashlib.sha256(b''.join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == first
    assert digest(render("bouncing", **{**arguments, "seed": 5})) != first


@pytest.mark.parametrize("flaw", [None, *FLAWS])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_flaw_at_tiny_and_odd_sizes(kind, flaw):
    for size, frames, strength in (((16, 16), 3, 1.0), ((17, 33), 5, 0.1), ((45, 16), 2, 0.5), ((21, 19), 1, 1.0)):
        clip = render(kind, size=size, frames=frames, fps=5, flaw=flaw, strength=strength)
        assert clip.frames.shape == (frames, *size, 3)
        assert clip.depth.shape == clip.edges.shape == (frames, *size)
        assert np.isfinite(clip.depth).all()
        assert (clip.depth > 0).all()
        assert all(mask.shape == (frames, *size) for _, mask in clip.masks)
        assert clip.questions
        assert repr(clip).startswith(f"SceneClip({kind}, seed 0, {frames} frames {size[1]}x{size[0]} at 5 fps")


@pytest.mark.parametrize("kind", KINDS)
def test_a_variation_is_another_take_of_the_same_scene(kind):
    exact, first, second = (
        render(kind, seed=1, size=(64, 96), frames=4, variation=variation) for variation in (None, 0, 1)
    )
    assert np.abs(first.frames.astype(int) - second.frames).max() > 0
    assert np.abs(first.frames.astype(int) - exact.frames).mean() < 3
    assert first.questions == second.questions == exact.questions
    for (phrase, one), (other_phrase, other) in zip(first.masks, second.masks, strict=True):
        assert phrase == other_phrase
        if one.any() and other.any():
            assert (one & other).sum() / (one | other).sum() > 0.6
    for own, other in zip(first.tracks, second.tracks, strict=True):
        np.testing.assert_array_equal(own.centre, other.centre)


@pytest.mark.parametrize("kind", KINDS)
def test_wording(kind):
    clip = render(kind, seed=0, size=(16, 16), frames=1)
    texts = [clip.prompt, *clip.captions]
    assert len(texts) == len(set(texts)) == 6
    colour = clip.masks[0][0].split()[1]
    for text in texts:
        assert colour in text
        assert text.endswith(".")
        assert " a orange" not in text.lower()
    assert clip.masks[0][0].split()[0] in ("a", "an")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"kind": "exploding"}, "exploding"),
        ({"size": (15, 64)}, "15"),
        ({"fps": 0}, "fps"),
        ({"fps": float("nan")}, "fps"),
        ({"frames": 0}, "frames"),
        ({"seed": -1}, "seed"),
        ({"flaw": "melting"}, "melting"),
        ({"flaw": "blur", "strength": 0}, "strength"),
        ({"flaw": "blur", "strength": 1.5}, "1.5"),
        ({"variation": -1}, "variation"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        render(**{"kind": "falling", "size": (16, 16), "frames": 2, **arguments})
