"""Windows and stitching: the given slot tables and maps, hand-computed cases, properties of any length."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.networks.windows import Stitcher, WindowRule, aligned, windows
from gen_eval.records import InputError

RULE = WindowRule(window=32, overlap=10, key=12)
SMALL = WindowRule(window=8, overlap=4, key=5)


@pytest.fixture(scope="module")
def golden(request):
    folder = request.config.rootpath / "tests" / "goldens" / "control"
    with np.load(folder / "vda.npz") as arrays:
        return json.loads((folder / "vda.json").read_text()), dict(arrays)


def stitched(windows_maps, frames, rule):
    stitcher = Stitcher(rule)
    given_windows = zip(windows(range(frames), rule), windows_maps, strict=True)
    return [one for window, maps in given_windows for one in stitcher.add(maps, window.left)]


def test_golden_slots(golden):
    tables = golden[0]["window_slots"]
    assert [table["frames"] for table in tables] == [5, 22, 32, 49, 121]
    for table in tables:
        assert [window.slots for window in windows(range(table["frames"]), RULE)] == table["slots"]


@pytest.mark.parametrize("frames", [20, 32, 49, 121])
def test_golden_stitching(golden, frames):
    maps = golden[1]
    found = np.stack(stitched(maps[f"stitch_{frames}_windows"], frames, RULE))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, maps[f"stitch_{frames}_depth"], rtol=1e-4, atol=0)


def test_by_hand():
    """The second window tells 2 x - 1 where the first one tells x: it is brought back, then faded in."""
    first = [np.array([[1.0 + slot, 2.0 + 3 * slot]], np.float32) for slot in range(8)]
    new = [np.array([values], np.float32) for values in ((9, 4), (1, -2), (8, 0.5), (7, 3), (6, 2))]
    # slots of the second window: frames 0, 5 (both as they were), 6, 7, 8 ... 11
    second = [2 * one - 1 for one in (first[0], first[5], first[6] + 1, *new)]
    stitcher = Stitcher(SMALL)
    early = list(stitcher.add(first, 8))
    np.testing.assert_array_equal(early, first[:6])  # frames 6 and 7 are still open
    late = list(stitcher.add(second, 6))  # the clip has 10 frames
    # of the faded frames 6 and 7 the second window has the share 0 and 1; what is below 0 becomes 0
    np.testing.assert_allclose(late, [first[6], new[0], [[1, 0]], new[2]], rtol=1e-5)


def test_least_squares_by_hand():
    maps = [np.array([[0.0, 1.0]], np.float32), np.array([[2.0, 3.0]], np.float32)]
    assert aligned(maps, [3 * one + 2 for one in maps]) == (3, 2)
    # the best line through (0, 0), (1, 0), (2, 1), (3, 1) is 0.4 x - 0.1
    reference = [np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)]
    assert aligned(maps, reference) == pytest.approx((0.4, -0.1), rel=1e-6)


def test_maps_without_variation_are_left_as_they_are():
    """Determinant 0: scale 1, shift 0."""
    dead = [np.zeros((2, 3), np.float32)] * 2
    assert aligned(dead, [np.ones((2, 3), np.float32)] * 2) == (1, 0)
    maps = [[np.full((2, 3), level, np.float32)] * 8 for level in (0, 0, 0)]
    assert all(not one.any() for one in stitched(maps, 12, SMALL))


def test_numbers_that_are_not_finite_stay_so():
    first = [np.full((1, 2), 1.0 + slot, np.float32) for slot in range(8)]
    second = [np.full((1, 2), np.nan, np.float32)] * 8
    assert np.isnan(stitched([first, second, second], 12, SMALL)[8:]).all()


@given(st.integers(1, 130))
@settings(max_examples=40)
def test_every_frame_has_one_map_and_windows_hold_the_frames_they_should(frames):
    found = list(windows(range(frames), RULE))
    assert len(found) == -(-frames // 22)
    for number, window in enumerate(found):
        own = [min(frames - 1, 22 * number + slot) for slot in range(32)]
        assert window.slots[0] == 0
        assert window.slots[2 if number else 0 :] == own[2 if number else 0 :]
        assert window.left <= frames - 22 * number
    # equal maps of a frame in every window: stitching finds scale 1 and shift 0
    pictures = np.random.default_rng(frames).random((frames, 3, 4), dtype=np.float32) + 0.5
    maps = [[pictures[slot] for slot in window.slots] for window in found]
    np.testing.assert_allclose(np.stack(stitched(maps, frames, RULE)), pictures, rtol=2e-4)


@given(st.integers(1, 40), st.integers(4, 9), st.integers(1, 6), st.data())
@settings(max_examples=40)
def test_other_rules(frames, overlap, step, data):
    rule = WindowRule(overlap + step, overlap, data.draw(st.integers(1, overlap + step - 1)))
    rng = np.random.default_rng(frames)
    pictures = rng.random((frames, 3, 4), dtype=np.float32) + 0.5
    found = list(windows(range(frames), rule))
    affine = [(rng.uniform(0.5, 2), rng.uniform(0, 1)) for _ in found]
    affine[0] = (1, 0)
    maps = [
        [(pictures[slot] * scale + shift).astype(np.float32) for slot in window.slots]
        for window, (scale, shift) in zip(found, affine, strict=True)
    ]
    assert len(stitched(maps, frames, rule)) == frames
    if frames > 1:  # the scale and the shift that each window has of its own are undone
        np.testing.assert_allclose(np.stack(stitched(maps, frames, rule)), pictures, rtol=5e-3, atol=5e-3)


def test_no_more_is_taken_than_a_window_and_maps_leave_when_they_are_final():
    taken, made = [], []

    def frames():
        for number in range(60):
            taken.append(number)
            yield number

    def maps(window):
        for slot in window.slots:
            made.append(slot)
            yield np.full((1, 1), slot, np.float32)

    stitcher = Stitcher(RULE)
    came = windows(frames(), RULE)
    first = next(came)
    assert len(taken) == 32
    assert sum(1 for _ in stitcher.add(maps(first), first.left)) == 24  # the last 8 wait
    second = next(came)
    assert len(taken) == 54
    assert sum(1 for _ in stitcher.add(maps(second), second.left)) == 22
    made.clear()
    last = next(came)
    assert sum(1 for _ in stitcher.add(maps(last), last.left)) == 14
    assert len(made) == 16  # what stands behind the clip's end is not asked for
    assert list(came) == []


def test_a_window_that_changes_nothing_is_not_asked_for():
    def maps():
        raise AssertionError("asked for")
        yield

    stitcher = Stitcher(RULE)
    first, second = windows(range(23), RULE)
    assert len(list(stitcher.add([np.ones((1, 1), np.float32)] * 32, first.left))) == 23
    assert list(stitcher.add(maps(), second.left)) == []


def test_nothing_has_no_window():
    assert list(windows([], RULE)) == []


@pytest.mark.parametrize("numbers", [(32, 3, 12), (10, 10, 2), (32, 10, 0), (32, 10, 32), (32, 10, 1.5), ("a", 10, 12)])
def test_rules_that_do_not_fit_are_refused(numbers):
    with pytest.raises(InputError, match="whole numbers"):
        WindowRule(*numbers)
