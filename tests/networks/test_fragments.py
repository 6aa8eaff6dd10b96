"""Which frames and which patches DOVER sees: goldens, the draws of NumPy and torch, tiny cases, any length and size."""

import hashlib
import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gen_eval.networks.fragments import Grid, cut_fragments, offsets, places, segment_frames
from gen_eval.records import InputError, ItemError, Reason

SAMPLING = {"segments": 3, "frames": 32, "step": 2, "seed": 0}
ORIGINAL, ENLARGED = (Grid(7, 32, 3, 0, over) for over in ("original", "enlarged"))
GRIDS = st.sampled_from([ORIGINAL, ENLARGED])
CUTS = ["8x224x224", "5x256x320", "4x120x200", "3x480x832"]


@pytest.fixture(scope="module")
def golden(goldens_control):
    return json.loads((goldens_control / "dover.json").read_text())


@pytest.fixture(scope="module")
def pictures(goldens_control):
    with np.load(goldens_control / "dover_fragments.npz") as arrays:
        return dict(arrays)


def numbered(height, width):
    """A frame whose pixels tell where they lie: the row in the first colour, the column in the second, modulo 256."""
    frame = np.zeros((height, width, 3), np.uint8)
    frame[..., 0], frame[..., 1] = np.arange(height)[:, None] % 256, np.arange(width) % 256
    return frame


# --- frames ----------------------------------------------------------------------------------------------------------


def test_frames_are_those_of_the_golden(golden):
    assert len(golden["sampler"]) == 9
    for case in golden["sampler"]:
        assert segment_frames(case["num_frames"], **SAMPLING) == case["indices"], case["num_frames"]


def test_frames_by_hand():
    assert segment_frames(1, **SAMPLING) == [0] * 96
    assert segment_frames(2, **SAMPLING) == [0] * 96  # the parts have no frame, and all begin at the first
    assert segment_frames(3, **SAMPLING)[:4] == [0, 2, 1, 0]
    assert segment_frames(3, **SAMPLING)[32:36] == [1, 0, 2, 1]
    published = segment_frames(121, **SAMPLING)
    assert [published[slot] for slot in (0, 31, 32, 63, 64, 84, 85, 95)] == [0, 62, 40, 102, 80, 120, 1, 21]


@given(st.integers(1, 500), st.integers(0, 9))
@example(200, 0)
@settings(max_examples=80)
def test_frames_of_any_length(length, seed):
    numbers = segment_frames(length, **SAMPLING | {"seed": seed})
    assert len(numbers) == 96
    assert all(isinstance(one, int) and 0 <= one < length for one in numbers)
    assert numbers == segment_frames(length, **SAMPLING | {"seed": seed})
    part = length // 3
    for segment in range(3):
        own = numbers[32 * segment : 32 * segment + 32]
        assert all((b - a - 2) % length == 0 for a, b in pairwise(own))
        offset = own[0] - segment * part
        assert 0 <= offset < max(part - 64, 1)


@pytest.mark.parametrize("length", [195, 198, 240, 500])
def test_frames_are_drawn_as_numpy_does_after_seeding(length):
    np.random.seed(0)  # noqa: NPY002
    drawn = np.random.randint(0, length // 3 - 64, 3)  # noqa: NPY002
    numbers = segment_frames(length, **SAMPLING)
    assert [numbers[32 * one] - one * (length // 3) for one in range(3)] == drawn.tolist()


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CUTS)
def test_patches_are_those_of_the_golden(golden, pictures, formula_clip, case):
    expected = next(one for one in golden["fragments"] if one["id"] == case)
    clip = formula_clip(**expected["clip"])
    assert hashlib.sha256(clip.tobytes()).hexdigest() == expected["clip_sha256"]
    for own, name in zip(offsets(*clip.shape[1:3], ORIGINAL), "hw", strict=True):
        assert np.array_equal(own, pictures[f"{case}_offsets_{name}"])
    numbers = segment_frames(len(clip), **SAMPLING)
    assert [numbers[0], numbers[-1]] == expected["frame_indices_first_last"]
    seen = np.stack(
        [cut_fragments(clip[number], slot, grid=ORIGINAL, frames=32) for slot, number in enumerate(numbers)]
    )
    view = np.ascontiguousarray(seen.transpose(3, 0, 1, 2))
    assert list(view.shape) == expected["view_shape"]
    assert view.mean((1, 2, 3)) == pytest.approx(expected["view_mean_per_channel"], abs=0.01)
    slack = 1 if case == "4x120x200" else 0
    for slot in (0, 95):
        gap = np.abs(view[:, slot].astype(int) - pictures[f"{case}_f{slot}"])
        assert gap.max() <= slack
        assert gap.mean() < 0.01
    if not slack:
        assert hashlib.sha256(view.tobytes()).hexdigest() == expected["view_sha256_uint8_C_order"]


@given(st.integers(1, 900), st.integers(1, 900), st.integers(0, 5))
@settings(max_examples=60)
def test_places_are_drawn_as_torch_does_after_seeding(height, width, seed):
    grid = Grid(7, 32, 3, seed, "original")
    generator = torch.Generator().manual_seed(seed)
    for own, side in zip(offsets(height, width, grid), (height, width), strict=True):
        room = side // 7 - 32
        drawn = torch.randint(room, (7, 7, 3), generator=generator).numpy() if room > 0 else np.zeros((7, 7, 3))
        assert np.array_equal(own, drawn)


def test_the_whole_frame_is_seen_where_it_has_the_size_of_the_patches():
    frame = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    for slot in (0, 40, 95):
        assert np.array_equal(cut_fragments(frame, slot, grid=ENLARGED, frames=32), frame)


def test_patches_by_hand():
    grid = Grid(2, 2, 1, 0, "enlarged")
    frame = numbered(5, 8)  # cells of 2 x 4: rows are fixed, columns have two places each
    _, across = offsets(5, 8, grid)
    assert across.min() >= 0
    assert across.max() <= 1
    seen = cut_fragments(frame, 0, grid=grid, frames=1)
    assert seen[:, 0, 0].tolist() == [0, 1, 2, 3]
    for i in range(2):
        for j in range(2):
            left = 4 * j + across[i, j, 0]
            assert seen[2 * i, 2 * j : 2 * j + 2, 1].tolist() == [left, left + 1]


def test_each_segment_has_its_own_places_and_keeps_them():
    frame = numbered(480, 832)
    seen = [cut_fragments(frame, slot, grid=ENLARGED, frames=32) for slot in (0, 31, 32, 95)]
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[1], seen[2])
    assert not np.array_equal(seen[2], seen[3])


def test_a_cell_at_the_end_is_moved_into_the_frame():
    assert places(225, 300, ENLARGED).tops.max() == 192  # 7 cells of 32, and a row beyond
    assert places(34, 300, ORIGINAL).tops[0, :, 0].tolist() == [0, 2, 2, 2, 2, 2, 2]  # cells of 4 rows


@given(st.integers(1, 600), st.integers(1, 600), GRIDS)
@example(224, 224, ENLARGED)
@example(31, 224, ORIGINAL)
@example(32, 600, ORIGINAL)
@settings(max_examples=80)
def test_patches_of_any_size(height, width, grid):
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    frame = numbered(height, width)
    if grid is ORIGINAL and min(height, width) < 32:
        with pytest.raises(ItemError, match="smaller than a patch") as caught:
            cut_fragments(frame, 0, grid=grid, frames=32)
        assert caught.value.reason is Reason.TOO_SMALL
        assert caught.value.detail == {"size_hw": [height, width]}
        return
    found = places(height, width, grid)
    scale = min(height, width, 224) / 224
    assert found.scale == pytest.approx(scale)
    assert min(found.tops.min(), found.lefts.min()) >= 0
    assert found.tops.max() + 32 <= height / scale + 1e-6
    assert found.lefts.max() + 32 <= width / scale + 1e-6
    seen = cut_fragments(frame, 70, grid=grid, frames=32)
    assert (seen.shape, seen.dtype) == ((224, 224, 3), np.uint8)
    assert np.array_equal(seen, cut_fragments(frame, 70, grid=grid, frames=32))
    if scale == 1:
        rows, columns = found.pixels(32)
        assert np.array_equal(seen[..., 0], rows[2] % 256)
        assert np.array_equal(seen[..., 1], columns[2] % 256)
    assert torch.equal(torch_state, torch.random.get_rng_state())
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002


@given(st.integers(32, 223), st.integers(32, 400), GRIDS, st.booleans(), st.integers(0, 99))
@settings(max_examples=25)
def test_pixels_of_enlarged_frames_are_those_of_torch(short, long, grid, turned, seed):
    height, width = (long, short) if turned else (short, long)
    frame = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    planes = torch.from_numpy(frame).permute(2, 0, 1)[None] / 255
    factor = 1 / min(height / 224, width / 224)
    whole = torch.nn.functional.interpolate(planes, scale_factor=factor, mode="bilinear")
    whole = (whole * 255).to(torch.uint8)[0].permute(1, 2, 0).numpy()
    rows, columns = places(height, width, grid).pixels(32)
    gap = np.abs(cut_fragments(frame, 0, grid=grid, frames=32).astype(int) - whole[rows[0], columns[0]])
    assert gap.max() <= 1
    assert (gap > 0).mean() < 0.02


def test_the_far_part_is_seen_under_the_enlarged_grid_only():
    reach = [(places(120, 200, grid).lefts.max() + 32) * 120 / 224 for grid in (ORIGINAL, ENLARGED)]
    assert reach[0] < 110  # of 200 columns
    assert reach[1] > 180


def test_wrong_grids_are_refused():
    with pytest.raises(InputError, match="'both'"):
        Grid(7, 32, 3, 0, "both")
    with pytest.raises(InputError, match="1 or more"):
        Grid(0, 32, 3, 0, "enlarged")
