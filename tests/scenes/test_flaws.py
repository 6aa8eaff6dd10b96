"""Each flaw breaks what it says, grows with its strength, and carries over to the signals."""

from itertools import pairwise

import numpy as np
import pytest

from gen_eval.scenes import FLAWS, KINDS, render

SIZE, FPS, FRAMES = (32, 52), 6, 12
STRENGTHS = (0.3, 0.6, 1.0)
PICTURE_ONLY = ("flicker", "noise", "blur", "colour_shift")


def clip_of(kind, flaw=None, strength=1.0, **others):
    return render(kind, seed=1, size=SIZE, fps=FPS, frames=FRAMES, flaw=flaw, strength=strength, **others)


@pytest.fixture(scope="module")
def clean():
    return {kind: clip_of(kind) for kind in KINDS}


def difference(one, other):
    return float(np.abs(one.astype(float) - other.astype(float)).mean())


def equal_masks(one, other):
    return all(np.array_equal(own[1], twin[1]) for own, twin in zip(one.masks, other.masks, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flaw", [name for name, flaw in FLAWS.items() if flaw.kind != "signal"])
def test_pixels_move_away_with_strength(kind, flaw, clean):
    distances = [difference(clip_of(kind, flaw, strength).frames, clean[kind].frames) for strength in STRENGTHS]
    assert distances[0] > 0
    assert distances[-1] > distances[0] or flaw in ("teleport", "wrong_gravity")  # a body is either there or not
    slack = 0.15 if FLAWS[flaw].kind == "physics" else 0.01
    assert all(later >= (1 - slack) * earlier for earlier, later in pairwise(distances))


@pytest.mark.parametrize("kind", KINDS)
def test_signal_flaws_only_touch_their_signal(kind, clean):
    for flaw in ("mask_erosion", "depth_noise"):
        broken = clip_of(kind, flaw)
        np.testing.assert_array_equal(broken.frames, clean[kind].frames)
        np.testing.assert_array_equal(broken.edges, clean[kind].edges)
        assert np.array_equal(broken.depth, clean[kind].depth) == (flaw != "depth_noise")
        assert equal_masks(broken, clean[kind]) == (flaw != "mask_erosion")


@pytest.mark.parametrize("kind", KINDS)
def test_eroded_masks_shrink_with_strength_and_never_vanish(kind, clean):
    sizes = []
    for strength in STRENGTHS:
        broken = clip_of(kind, "mask_erosion", strength)
        for (_, own), (_, whole) in zip(broken.masks, clean[kind].masks, strict=True):
            assert not (own & ~whole).any()
            np.testing.assert_array_equal(own.any(axis=(1, 2)), whole.any(axis=(1, 2)))
        sizes.append(sum(mask.sum() for _, mask in broken.masks))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] < sum(mask.sum() for _, mask in clean[kind].masks)
    assert sizes[-1] < sizes[0]


def test_depth_noise_grows_with_strength_and_stays_positive(clean):
    errors = []
    for strength in STRENGTHS:
        depth = clip_of("pushed", "depth_noise", strength).depth
        assert (depth > 0).all()
        errors.append(float(np.log(depth / clean["pushed"].depth).std()))
    np.testing.assert_allclose(errors, np.array(STRENGTHS) * 0.4, rtol=0.02)


@pytest.mark.parametrize("flaw", PICTURE_ONLY)
def test_picture_flaws_leave_the_signals_alone(flaw, clean):
    for kind in KINDS:
        broken = clip_of(kind, flaw)
        np.testing.assert_array_equal(broken.depth, clean[kind].depth)
        np.testing.assert_array_equal(broken.edges, clean[kind].edges)
        assert equal_masks(broken, clean[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_teleport_displaces_the_main_body_from_one_frame_on(kind, clean):
    broken = clip_of(kind, "teleport")
    moved = broken.tracks[0].centre - clean[kind].tracks[0].centre
    jumped = np.abs(moved[:, 0]) > 0
    assert not jumped[0]
    assert jumped[-1]
    assert np.diff(jumped.astype(int)).sum() == 1
    np.testing.assert_allclose(np.abs(moved[jumped, 0]), 0.55)
    assert not equal_masks(broken, clean[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_vanish_takes_the_object_its_shadow_and_its_signals_away(kind, clean):
    broken = clip_of(kind, "vanish")
    gone = ~broken.tracks[0].present
    assert not gone[0]
    assert gone[-1]
    assert not broken.masks[0][1][gone].any()
    assert (broken.depth[gone] <= clean[kind].depth[gone]).all()
    earlier = clip_of(kind, "vanish", 0.3).tracks[0].present
    assert earlier.sum() > broken.tracks[0].present.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_time_flaws_only_reorder_frames(kind, clean):
    frames = clean[kind].frames
    np.testing.assert_array_equal(clip_of(kind, "reversed").frames, frames[::-1])
    half = clip_of(kind, "reversed", 0.5)
    np.testing.assert_array_equal(half.frames, np.concatenate([frames[:6][::-1], frames[6:]]))
    np.testing.assert_array_equal(half.depth, np.concatenate([clean[kind].depth[:6][::-1], clean[kind].depth[6:]]))
    frozen = clip_of(kind, "freeze").frames
    stop = next(index for index in range(FRAMES) if np.array_equal(frozen[index], frozen[-1]))
    np.testing.assert_array_equal(frozen[: stop + 1], frames[: stop + 1])
    assert all(np.array_equal(frame, frozen[-1]) for frame in frozen[stop:])
    dropped, more = (clip_of(kind, "frame_drop", strength) for strength in (0.4, 0.8))
    kept = [np.array_equal(own, other) for own, other in zip(dropped.frames, frames, strict=True)]
    assert kept[0]
    for index in range(1, FRAMES):
        assert kept[index] or np.array_equal(dropped.frames[index], dropped.frames[index - 1])
    np.testing.assert_array_equal(dropped.frames[0], more.frames[0])
    assert difference(more.frames, frames) >= difference(dropped.frames, frames) > 0


def test_shift_moves_everything_by_whole_pixels(clean):
    broken, moved = clip_of("swinging", "shift"), 2  # ceil(0.06 * 32)
    np.testing.assert_array_equal(broken.frames[:, moved:, moved:], clean["swinging"].frames[:, :-moved, :-moved])
    np.testing.assert_array_equal(broken.depth[:, moved:, moved:], clean["swinging"].depth[:, :-moved, :-moved])
    own, other = broken.masks[0][1], clean["swinging"].masks[0][1]
    np.testing.assert_array_equal(own[:, moved:, moved:], other[:, :-moved, :-moved])


def test_jitter_moves_each_frame_by_whole_pixels(clean):
    broken, inner = clip_of("rolling", "jitter"), slice(2, -2)
    for frame, picture in enumerate(clean["rolling"].frames):
        cut = broken.frames[frame, inner, inner]
        moves = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            if np.array_equal(cut, picture[2 - down : 30 - down, 2 - right : 50 - right])
        ]
        assert moves


def test_flicker_darkens_every_other_frame(clean):
    broken = clip_of("pushed", "flicker").frames.mean(axis=(1, 2, 3))
    before = clean["pushed"].frames.mean(axis=(1, 2, 3))
    np.testing.assert_array_equal(broken[::2], before[::2])
    assert (broken[1::2] < 0.85 * before[1::2]).all()


def test_noise_has_the_stated_spread_and_grows_on_the_same_pattern(clean):
    small, large = (
        clip_of("falling", "noise", strength).frames.astype(float) - clean["falling"].frames for strength in (0.1, 0.2)
    )
    middle = (clean["falling"].frames > 60) & (clean["falling"].frames < 195)
    assert small[middle].std() == pytest.approx(4, rel=0.03)
    assert large[middle].std() == pytest.approx(8, rel=0.03)
    assert np.corrcoef(small[middle], large[middle])[0, 1] > 0.98


def test_colour_shift_ends_at_another_colour(clean):
    broken = clip_of("colliding", "colour_shift")
    mask = clean["colliding"].masks[0][1]
    np.testing.assert_array_equal(broken.frames[0], clean["colliding"].frames[0])
    before, after = (np.median(clip.frames[-1][mask[-1]], axis=0) for clip in (clean["colliding"], broken))
    assert np.abs(before - after).max() > 60
    outside = ~np.any([each for _, each in clean["colliding"].masks], axis=0)
    changed = np.abs(broken.frames.astype(int) - clean["colliding"].frames).max(axis=-1) > 0
    assert changed[mask].mean() > 0.5
    assert changed[outside].mean() < 0.02  # blended pixels round the object


def test_the_table_of_flaws_names_itself():
    for name, flaw in FLAWS.items():
        assert flaw.name == name
        assert flaw.breaks
        assert flaw.kind in ("physics", "appearance", "signal")
    assert {"teleport", "wrong_gravity", "vanish", "reversed", "flicker", "freeze"} <= set(FLAWS)
