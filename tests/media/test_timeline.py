"""Time stamps become times: exactly where they are good, by one stated rule where they are not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.media.timeline import Timeline

STEP = Fraction(1, 10)
UNIT = Fraction(1, 1000)


def test_times_start_at_the_first_frame_and_are_exact() -> None:
    line = Timeline(Fraction(1, 90_000), Fraction(1, 30))
    assert line.add([7500, 10_500, 13_500]).tolist() == [0.0, 1 / 30, 2 / 30]
    assert line.detail() == {"timestamps": "container"}
    assert not line.variable


@pytest.mark.parametrize(
    ("stamps", "times", "repaired"),
    [
        ([None, None, None], [0.0, 0.1, 0.2], 3),
        ([0, None, 250], [0.0, 0.1, 0.25], 1),
        ([0, 50, 50, 200], [0.0, 0.05, 0.15, 0.2], 1),
        ([500, 600, 0, 100], [0.0, 0.1, 0.2, 0.3], 2),  # the clock was set back
        ([None, 300, 400], [0.0, 0.1, 0.2], 1),  # the first known stamp continues from where the clip is
    ],
)
def test_missing_and_standing_stamps_take_one_nominal_step(
    stamps: list[int | None], times: list[float], repaired: int
) -> None:
    line = Timeline(UNIT, STEP)
    assert line.add(stamps).tolist() == pytest.approx(times)
    assert line.repaired == repaired


def test_detail_says_where_the_times_come_from() -> None:
    def detail(stamps: list[int | None], step: Fraction | None = STEP, source: str = "container") -> dict[str, object]:
        line = Timeline(UNIT, step, source)
        line.add(stamps)
        return line.detail()

    assert detail([0, 100, 100, 300]) == {"timestamps": "container", "timestamps_repaired": 1}
    assert detail([0, 100, None], source="decode_order") == {"timestamps": "decode_order", "timestamps_repaired": 1}
    assert detail([None, None]) == {"timestamps": "frame_rate"}
    assert detail([0, 0, 0]) == {"timestamps": "frame_rate"}
    assert detail([None, None], step=None) == {"timestamps": "assumed_25_fps"}


def test_rounding_to_milliseconds_is_no_variable_rate_and_a_missing_frame_is() -> None:
    def variable(stamps: list[int], unit: Fraction) -> bool:
        line = Timeline(unit, STEP)
        line.add(stamps)
        return line.variable

    assert not variable([round(index * 1000 / 24) for index in range(48)], UNIT)
    assert not variable([round(index * 1000 / 240) for index in range(48)], UNIT)
    assert variable([0, 1, 2, 4, 5], Fraction(1, 25))
    assert variable([0, 40, 80, 200, 320], UNIT)
    assert not variable([0, 40], UNIT)


@given(st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1, max_size=30), st.data())
def test_times_always_increase_and_do_not_depend_on_the_chunks(stamps: list[int | None], data: st.DataObject) -> None:
    whole, parts = Timeline(UNIT, STEP), Timeline(UNIT, STEP)
    times = whole.add(stamps)
    cut = data.draw(st.integers(0, len(stamps)))
    parts.add(stamps[:cut])
    parts.add(stamps[cut:])
    assert times[0] == 0.0
    assert (np.diff(times) > 0).all()
    assert np.array_equal(parts.times, times)
