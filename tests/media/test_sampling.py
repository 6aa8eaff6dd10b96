"""Choosing frames by time: hand-computed cases and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.media import All, AtRate, Explicit, Uniform, frame_at, frames_of_interval, interval_of_frames, time_of

# 12 frames every 40 ms, then 12 every 120 ms: the average rate is 100/7, the last frame is shown at 1.80 s
VARIABLE = np.array([*np.arange(12) * 0.04, *(0.48 + np.arange(12) * 0.12)])

steps = st.lists(st.floats(0.001, 2.0), min_size=0, max_size=40)
times_of_clips = steps.map(lambda gaps: np.concatenate([[0.0], np.cumsum(gaps)]))


def test_two_a_second_goes_by_time_stamps_with_ties_to_the_earlier_frame() -> None:
    assert AtRate(2).choose(VARIABLE).tolist() == [0, 12, 16, 20]  # 1.5 s lies midway between 20 and 21


def test_an_event_becomes_frames_and_comes_back() -> None:
    first, last = frames_of_interval(VARIABLE, 0.5, 1.8)
    assert (first, last) == (12, 23)
    assert interval_of_frames(VARIABLE, first, last) == pytest.approx((0.48, 1.8))


@pytest.mark.parametrize(
    ("sampling", "count", "expected"),
    [
        (All(), 3, [0, 1, 2]),
        (All(limit=2), 3, [0, 1]),
        (All(limit=9), 3, [0, 1, 2]),
        (Uniform(8), 11, [0, 1, 3, 4, 6, 7, 9, 10]),
        (Uniform(8), 8, [0, 1, 2, 3, 4, 5, 6, 7]),
        (Uniform(3), 5, [0, 2, 4]),
        (Uniform(1), 5, [2]),
        (Uniform(1), 4, [1]),
        (Uniform(4), 2, [0, 0, 1, 1]),
        (Uniform(3), 1, [0, 0, 0]),
        (AtRate(5), 5, [0, 2, 4]),
        (AtRate(10, max_frames=3), 5, [0, 2, 4]),
        (AtRate(10, max_frames=5), 5, [0, 1, 2, 3, 4]),
        (AtRate(20), 3, [0, 0, 1, 1, 2]),
        (AtRate(0.1), 5, [0]),
        (Explicit([3, 0, 3]), 5, [3, 0, 3]),
    ],
)
def test_choice_at_ten_frames_a_second(sampling: All, count: int, expected: list[int]) -> None:
    assert sampling.choose(np.arange(count) / 10).tolist() == expected


def test_uniform_spreads_over_time_not_over_indices() -> None:
    assert Uniform(3).choose([0.0, 0.1, 0.2, 0.3, 2.0]).tolist() == [0, 3, 4]


def test_a_frame_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"frame 5 .* has 5 frames \(0 to 4\)"):
        Explicit([1, 5]).choose(np.arange(5.0))
    with pytest.raises(ValueError, match="frame 5"):
        time_of(np.arange(5.0), 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(0),
        lambda: Uniform(2.5),  # type: ignore[arg-type]
        lambda: Uniform(True),
        lambda: AtRate(0),
        lambda: AtRate(float("nan")),
        lambda: AtRate(float("inf")),
        lambda: AtRate(2, max_frames=0),
        lambda: All(limit=-1),
        lambda: Explicit([]),
        lambda: Explicit([-1]),
        lambda: Explicit([0.5]),
    ],
)
def test_bad_parameters_are_refused(make: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("times", [[], [[0.0]], [0.0, float("nan")], [1.0, 0.5]])
def test_bad_times_are_refused(times: list[float]) -> None:
    with pytest.raises(ValueError, match="times must"):
        Uniform(2).choose(times)


def test_times_of_a_damaged_file_do_not_exhaust_memory() -> None:
    with pytest.raises(ValueError, match="2000001 frames of a clip that has 3"):
        AtRate(2).choose([0.0, 0.04, 1e6])
    assert AtRate(2, max_frames=3).choose([0.0, 0.04, 1e6]).tolist() == [0, 1, 2]
    assert len(AtRate(100).choose(np.arange(20_000) / 50)) == 39_999


def test_an_interval_must_run_forward() -> None:
    with pytest.raises(ValueError, match="before it starts"):
        frames_of_interval([0.0, 1.0], 0.9, 0.1)
    with pytest.raises(ValueError, match="before it starts"):
        interval_of_frames([0.0, 1.0], 1, 0)
    with pytest.raises(ValueError, match="not a number"):
        frame_at([0.0, 1.0], float("nan"))


@given(times_of_clips, st.floats(-1.0, 100.0))
def test_no_frame_is_nearer_than_the_nearest(times: np.ndarray, target: float) -> None:
    chosen = frame_at(times, target)
    gaps = np.abs(times - target)
    assert gaps[chosen] <= gaps.min() + 1e-9
    assert not (gaps[:chosen] <= gaps[chosen]).any()  # of equals the earliest


@given(times_of_clips)
def test_a_frame_is_nearest_to_its_own_time(times: np.ndarray) -> None:
    assert [frame_at(times, time_of(times, index)) for index in range(len(times))] == list(range(len(times)))


@given(times_of_clips, st.floats(0, 1), st.floats(0, 1))
def test_interval_comes_back_within_half_a_local_step(times: np.ndarray, one: float, other: float) -> None:
    start, end = sorted((one * times[-1], other * times[-1]))
    back = interval_of_frames(times, *frames_of_interval(times, start, end))
    for asked, got in zip((start, end), back, strict=True):
        after = int(np.searchsorted(times, asked))
        step = times[after] - times[after - 1] if 0 < after < len(times) else 0.0
        assert abs(asked - got) <= step / 2 + 1e-9


@given(st.integers(1, 200), st.integers(1, 60))
def test_uniform_repeats_nothing_at_a_constant_rate(frames: int, wanted: int) -> None:
    chosen = Uniform(wanted).choose(np.arange(frames) / 24)
    assert len(chosen) == wanted
    assert (np.diff(chosen) >= 0).all()
    assert len(set(chosen.tolist())) == min(frames, wanted) or frames < wanted
    assert wanted == 1 or (chosen[0], chosen[-1]) == (0, frames - 1)


@given(times_of_clips, st.floats(0.2, 50.0), st.none() | st.integers(1, 10))
def test_at_rate_stays_within_the_clip_and_its_limit(times: np.ndarray, fps: float, most: int | None) -> None:
    chosen = AtRate(fps, most).choose(times)
    assert 1 <= len(chosen) <= (most or np.inf)
    assert (np.diff(chosen) >= 0).all()
    if most is None:
        assert (len(chosen) - 1) / fps <= times[-1] + 1e-6
        assert np.abs(times[chosen] - np.arange(len(chosen)) / fps).max() <= max(np.diff(times, append=0).max(), 1e-6)


@given(times_of_clips, st.floats(0.0, 1e4))
def test_choice_does_not_depend_on_where_the_clock_starts(times: np.ndarray, offset: float) -> None:
    whole = np.round(times * 1024) / 1024  # so that adding the offset loses nothing that matters
    start = round(offset)
    for sampling in (Uniform(7), AtRate(3.0)):
        assert np.array_equal(sampling.choose(whole), sampling.choose(whole + start))
