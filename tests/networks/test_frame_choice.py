"""Which frames are compared at a few frames a second: goldens, and brute force over time stamps."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.networks.frame_choice import FrameChoice, interval_of


def chosen(times, fps, rate=8):
    choice, by_index, by_time = FrameChoice(fps, interval_of(fps, rate)), [], []
    for time in times:
        choice, first, second = choice.next(float(time))
        by_index += first
        by_time += second
    return by_index, by_time


def nearest(times, fps, rate=8):
    """By the definition: for each multiple of k / fps within the clip the frame with the nearest time."""
    step = interval_of(fps, rate) / fps
    count = int(np.floor(times[-1] / step + 1e-9)) + 1
    return [int(np.abs(times - number * step).argmin()) for number in range(count)]


def test_golden_intervals(quality_goldens):
    cases = json.loads((quality_goldens / "flicker_motion.json").read_text())["frame_selection"]
    assert len(cases) == 20
    assert [interval_of(case["fps"], 8) for case in cases] == [case["interval"] for case in cases]


@pytest.mark.parametrize("fps", [None, 0, 0.5])
def test_slow_and_unknown_rates_use_every_frame(fps):
    times = np.arange(5) / (fps or 1)
    assert chosen(times, fps) == (list(range(5)), list(range(5)))


@given(st.sampled_from([1, 7.99, 8, 12, 15, 16, 23.976, 24, 25, 29.97, 30, 50, 60, 120]), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_at_a_constant_rate_both_ways_choose_the_same(fps, count):
    exact = np.arange(count) / fps
    by_index, by_time = chosen(exact, fps)
    assert by_index == by_time == list(range(0, count, interval_of(fps, 8)))
    if fps <= 30:  # containers that round to a millisecond
        assert chosen(np.round(exact, 3), fps) == (by_index, by_time)


@given(st.sampled_from([8, 12, 24, 30]), st.lists(st.integers(1, 30), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_at_a_variable_rate_the_nearest_frames_are_chosen(fps, steps):
    times = np.concatenate([[0], np.cumsum(steps)]) / 120  # 1/120 s is more than the slack for rounded stamps
    by_index, by_time = chosen(times, fps)
    assert by_index == list(range(0, len(times), interval_of(fps, 8)))
    expected = nearest(times, fps)
    assert by_time[: len(expected)] == expected
    assert set(by_time[len(expected) :]) <= {len(times) - 1}  # a time just behind the last frame
    assert by_time == sorted(by_time)


def test_a_held_frame_is_chosen_for_each_time():
    times = np.array([0, 1, 2, 12, 13]) / 24  # k = 3: wanted at 0, 3, 6, 9, 12 / 24
    assert chosen(times, 24.0) == ([0, 3], [0, 2, 2, 3, 3])


def test_a_stamp_far_behind_the_others_does_not_fill_the_memory():
    choice = FrameChoice(8.0, 1)
    for time in (0.0, 0.125):
        choice, _by_index, by_time = choice.next(time)
    choice, by_index, by_time = choice.next(1e9)
    assert by_index == (2,)
    assert by_time == (2,) * 1000
    _choice, _by_index, by_time = choice.next(1e9 + 0.125)
    assert by_time == (3,)
