"""Boxes and spans of the goldens of VANTAGE and AnyGround, as far as the shared readers decide them.

What a task adds (frames that were asked for, times of boxes, a box without a time) is tested with the task.
"""

import json

import pytest

from gen_eval.mllm.entry import Coordinates
from gen_eval.replies import read_boxes, read_span

SEEN = {"clipped", "corners_swapped", "scale_suspect", "order_suspect"}  # the flags that these goldens record


# The one item whose recorded flag is not taken over: its key is bbox_2d, whose order is x first by its own convention,
# as declared. The rule of docs/replies.md flags box_2d under a declared xyxy, since that key means y first elsewhere; a
# flag on every bbox_2d would be on most replies of models that write it and would tell nothing.
OTHER_FLAG = "r02__rx_000003"


@pytest.fixture
def cases(goldens):
    def read(name, key="items"):
        return json.loads((goldens / f"{name}.json").read_text())[key]

    return read


def wanted(item):
    return item.get("corrected") or item["reference"]


def agrees(reading, right):
    found = {str(flag) for flag in reading.flags} & SEEN
    assert (reading.failure, found) == (right.get("failure"), set(right.get("flags", ())))


def boxes(reading, scale=1000):
    return [pytest.approx([value * scale for value in box.xyxy], abs=1e-9) for box in reading.value or ()]


def test_referring(cases):
    for item in cases("vantage/referring"):
        right = dict(wanted(item))
        if item["id"] == OTHER_FLAG:
            assert right.pop("flags") == ["order_suspect"]
        values = "all" if item["index"] == 11 else "first"  # several lists in prose: the golden takes all of them
        reading = read_boxes(item["prediction"], Coordinates(unit="thousandths"), values=values)
        assert boxes(reading) == right["parsed_0_1000"], item["prediction"]
        assert reading.detail.get("dropped", {}) == right.get("dropped", {})
        agrees(reading, right)
    assert OTHER_FLAG in {item["id"] for item in cases("vantage/referring")}


def test_object_localization(cases):
    for item in cases("vantage/object_localization"):
        right = wanted(item)
        reading = read_boxes(item["prediction"], Coordinates(unit="thousandths"))
        sides = [item["width"], item["height"]] * 2
        pixels = [
            [int(round(value * 1000, 6) / 1000 * side) for value, side in zip(box.xyxy, sides, strict=True)]
            for box in reading.value or ()
        ]
        assert pixels == [box["bbox"] for box in right["parsed_pixels"]], item["prediction"]
        scores = [1.0 if box.score is None else box.score for box in reading.value or ()]
        assert scores == [box["score"] for box in right["parsed_pixels"]]
        assert reading.detail.get("dropped", {}) == right.get("dropped", {})
        agrees(reading, right)


def test_tracking(cases):
    for item in cases("vantage/tracking"):
        right = wanted(item)
        reading = read_boxes(item["prediction"], Coordinates(unit="thousandths"))
        found = {}
        for box, corners in zip(reading.value or (), boxes(reading), strict=True):
            frame = str(box.fields["frame"]) if box.name is None else box.name.removeprefix("frame_")
            found[frame] = corners
        asked = {frame: box for frame, box in found.items() if 1 <= int(frame) < len(item["gt_bboxes"])}
        assert asked == {frame: box for frame, box in right["parsed"].items() if box is not None}
        dropped = {name: count for name, count in right.get("dropped", {}).items() if name != "unknown_frame"}
        assert reading.detail.get("dropped", {}) == dropped
        agrees(reading, right)


def test_temporal(cases):
    for item in cases("vantage/temporal"):
        corrected = item.get("corrected", {})
        right = corrected["span"] if corrected else item["reference"]["span_scored"]
        reading = read_span(item["prediction"], duration=item["duration"])
        assert (reading.value and list(reading.value)) == right, item["prediction"]
        assert reading.failure == corrected.get("failure")


def test_temporal_grounding(cases):
    for case in cases("anyground/tvg", "cases"):
        if case["family"] in ("gpt", "llava_st"):  # indices of frames and marks of their own
            continue
        reading = read_span(case["raw"], outside="keep", reversed_ends="keep")
        assert (reading.value and list(reading.value)) == case["corrected"]["span"], case["case"]


TASK_DECIDES = {
    "internvl_09",  # the time of one box cannot be read
    "eagle_04",  # a box without a time
    "gemini_10",  # times and boxes in prose
    "gemini_11",
    "gpt_03",  # frames that were not shown
    "gpt_13",
    "gpt_14",
}


@pytest.mark.parametrize("name", ["anyground/stvg", "anyground/svg"])
def test_boxes_in_time(cases, name):
    declared, compared = cases(name, "declared"), 0
    for case in cases(name, "cases"):
        if case["family"] == "llava_st" or case["case"] in TASK_DECIDES:
            continue
        unit, order = (declared[case["family"]][key] for key in ("unit", "order"))
        reading = read_boxes(case["raw"], Coordinates(unit=unit, order=order), zero_area="keep")
        assert boxes(reading, 1) == [row[1:] for row in case["corrected"]["rows"]], case["case"]
        agrees(reading, case["corrected"])
        compared += 1
    assert compared > 10
