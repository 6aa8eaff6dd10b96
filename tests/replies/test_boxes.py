"""Boxes of replies, in declared coordinates."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.mllm.entry import Coordinates
from gen_eval.records import Flag
from gen_eval.replies import read_boxes

THOUSANDTHS = Coordinates(unit="thousandths")
FRACTIONS = Coordinates(unit="fraction")
SIZE, INPUT = (1080, 1920), (756, 1344)
TRUTH = (0.5, 0.25, 0.75, 0.5)  # of pixels [960, 270, 1440, 540]

REPLIES = {
    "thousandths": "[500, 250, 750, 500]",
    "fraction": "[.5, .25, .75, .5]",
    "thousandths yxyx": "[250, 500, 500, 750]",
    "pixel_of_input": "[672, 189, 1008, 378]",
    "pixel_of_source": "[960, 270, 1440, 540]",
}
CONVENTIONS = {
    "thousandths": Coordinates(unit="thousandths"),
    "fraction": Coordinates(unit="fraction"),
    "thousandths yxyx": Coordinates(unit="thousandths", order="yxyx"),
    "pixel_of_input": Coordinates(unit="pixel_of_input"),
    "pixel_of_source": Coordinates(unit="pixel_of_source"),
}


def read(reply, coordinates=THOUSANDTHS, **more):
    return read_boxes(reply, coordinates, size=SIZE, input_size=INPUT, **more)


def corners(reading):
    return [box.xyxy for box in reading.value]


def iou(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    inside = max(width, 0) * max(height, 0)
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second))
    return inside / (area - inside)


# --- the convention is declared


@pytest.mark.parametrize("name", REPLIES)
def test_every_convention_is_read_as_it_is_declared(name):
    reading = read(REPLIES[name], CONVENTIONS[name])
    assert iou(reading.value[0].xyxy, TRUTH) >= 0.999
    assert reading.flags == ()


@pytest.mark.parametrize(
    ("reply", "declared", "failure", "flags"),
    [
        ("thousandths", "fraction", Flag.OUT_OF_RANGE, ()),
        ("thousandths yxyx", "fraction", Flag.OUT_OF_RANGE, ()),
        ("pixel_of_input", "fraction", Flag.OUT_OF_RANGE, ()),
        ("pixel_of_source", "fraction", Flag.OUT_OF_RANGE, ()),
        ("pixel_of_source", "thousandths", Flag.OUT_OF_RANGE, ()),
        ("pixel_of_source", "pixel_of_input", Flag.OUT_OF_RANGE, ()),
        ("pixel_of_input", "thousandths", None, (Flag.CLIPPED,)),
        ("fraction", "thousandths", None, (Flag.SCALE_SUSPECT,)),
        ("fraction", "pixel_of_input", None, (Flag.SCALE_SUSPECT,)),
        ("fraction", "pixel_of_source", None, (Flag.SCALE_SUSPECT,)),
        # nothing in the numbers tells these; they are read as declared, and wrong
        ("thousandths yxyx", "thousandths", None, ()),
        ("thousandths", "thousandths yxyx", None, ()),
        ("thousandths", "pixel_of_source", None, ()),
        ("thousandths", "pixel_of_input", None, ()),
    ],
)
def test_a_wrong_declaration_fails_by_name_or_is_flagged_and_never_put_right(reply, declared, failure, flags):
    reading = read(REPLIES[reply], CONVENTIONS[declared])
    assert (reading.failure, reading.flags) == (failure, flags)
    if failure is None:
        assert iou(reading.value[0].xyxy, TRUTH) < 0.9
    else:
        assert reading.detail == {"dropped": {"out_of_range": 1}}


def test_a_key_may_carry_an_order_of_its_own():
    reply = '[{"box_2d": [250, 500, 500, 750]}, {"bbox_2d": [500, 250, 750, 500]}]'
    told = read(reply, Coordinates(unit="thousandths", keys={"box_2d": "yxyx"}))
    assert corners(told) == [TRUTH, TRUTH]
    assert told.flags == ()
    untold = read(reply)
    assert corners(untold) == [(0.25, 0.5, 0.5, 0.75), TRUTH]
    assert untold.flags == (Flag.ORDER_SUSPECT,)
    assert [box.flags for box in untold.value] == [(Flag.ORDER_SUSPECT,), ()]
    yxyx = read(reply, Coordinates(unit="thousandths", order="yxyx"))
    assert (corners(yxyx)[0], yxyx.flags) == (TRUTH, ())


def test_named_corners_have_the_order_of_their_names():
    yxyx = Coordinates(unit="thousandths", order="yxyx")
    for names in (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("X_min", "Y_min", "X_max", "Y_max")):
        reply = json.dumps(dict(zip(names, (500, 250, 750, 500), strict=True)))
        assert corners(read(reply, yxyx)) == [TRUTH]
        assert corners(read(f'{{"bbox": {reply}, "label": "car"}}', yxyx)) == [TRUTH]


def test_bins():
    reading = read("[0, 33, 99, 66]", Coordinates(unit="bin_100"))
    assert corners(reading) == [(0, 33 / 99, 1, 66 / 99)]


def test_pixel_units_need_a_size():
    with pytest.raises(ValueError, match="input_size"):
        read_boxes("[1, 2, 3, 4]", Coordinates(unit="pixel_of_input"), size=SIZE)
    with pytest.raises(ValueError, match="need size"):
        read_boxes("[1, 2, 3, 4]", Coordinates(unit="pixel_of_source"), size=(0, 5))


# --- range, corners


def test_the_edge_of_the_range():
    reading = read("[[-20, 0, 1020, 1000], [-20.1, 0, 900, 900], [0, 0, 1020.1, 900]]")
    assert corners(reading) == [(0, 0, 1, 1)]
    assert reading.flags == (Flag.CLIPPED,)
    assert reading.detail == {"dropped": {"out_of_range": 2}}


def test_corners_in_the_wrong_order_are_sorted():
    reading = read("[750, 250, 500, 500]")
    assert (corners(reading), reading.flags) == ([TRUTH], (Flag.CORNERS_SWAPPED,))


def test_a_box_without_area_is_unusable_unless_it_is_asked_for():
    assert read("[500, 250, 500, 500]").failure is Flag.NO_USABLE_BOX
    kept = read("[500, 250, 500, 500]", zero_area="keep")
    assert corners(kept) == [(0.5, 0.25, 0.5, 0.5)]


# --- shapes


@pytest.mark.parametrize(
    "reply",
    [
        "[500, 250, 750, 500]",
        "[[500, 250, 750, 500]]",
        "[[[500, 250, 750, 500]]]",
        "[[500, 250], [750, 500]]",
        '{"bbox_2d": [500, 250, 750, 500]}',
        '{"bbox_2d": [[500, 250, 750, 500], "label": "car"}',
        '{"bbox": [["500", "250", "750", "500"]], "label": null}',
        '{"boxes": [{"frame": 3, "box": [500, 250, 750, 500]}]}',
        "{'temporal_range': [2.0, 6.5], 'boxes': [{'box': [500, 250, 750, 500]}]}",
        '{"result": {"bboxes": [[500, 250, 750, 500]]}}',
        '[{"frame_1": "500,250,750,500"}]',
        '["500 250 750 500"]',
        "500, 250, 750, 500",
        "(500, 250, 750, 500)",
        "(500, 250), (750, 500)",
        "It is here: (500,250),(750,500).",
        "<ref>car</ref><box>(500,250),(750,500)</box>",
        "<box>[[500, 250, 750, 500]]</box>",
        "<|box_start|>(500,250),(750,500)<|box_end|>",
        "The car [1] is at [500, 250, 750, 500]. See also [2].",
        "```json\n[500, 250, 750, 500]\n```\nnot [1, 2, 3, 4]",
        "<think>[1, 2, 3, 4]</think><answer>[500, 250, 750, 500]</answer>",
        "[500, 250, 750, 500,]",
        "[500, 250, 750, 500] [cut",
    ],
)
def test_shapes_of_one_box(reply):
    assert corners(read(reply)) == [TRUTH]


def test_pixels_may_carry_their_unit_and_a_decimal_comma():
    assert corners(read('["960px", "270,0", "1440 px", 540]', Coordinates(unit="pixel_of_source"))) == [TRUTH]


def test_labels_scores_and_the_rest_of_an_object():
    reading = read(
        '[{"bbox_2d": [500, 250, 750, 500], "label": "car", "score": 0.25, "frame": 3}, [500, 250, 750, 500, 0.5]]'
    )
    first, second = reading.value
    assert (first.label, first.score, first.fields["frame"]) == ("car", 0.25, 3)
    assert (second.label, second.score) == (None, 0.5)


def test_boxes_under_names():
    reading = read('{"frames": {"frame_1": [500, 250, 750, 500], "frame_2": null, "frame_3": [1, 2]}}')
    assert [(box.name, box.xyxy) for box in reading.value] == [("frame_1", TRUTH)]
    assert reading.detail == {"dropped": {"unreadable": 1}, "absent": 1}
    assert read('{"frame_1": null, "frame_2": null}').value == ()


def test_lists_in_prose_are_the_first_or_all():
    reply = "As in [[0, 0, 100, 100]] the car is at [[500, 250, 750, 500]]"
    assert corners(read(reply)) == [(0, 0, 0.1, 0.1)]
    assert corners(read(reply, values="all")) == [(0, 0, 0.1, 0.1), TRUTH]


def test_values_in_a_row_belong_together():
    assert len(read('{"bbox": [1, 2, 30, 40]}\n{"bbox": [5, 6, 70, 80]}').value) == 2
    assert len(read("Here: [1, 2, 30, 40], [5, 6, 70, 80].").value) == 2


@pytest.mark.parametrize(
    "reply",
    [
        '[{"bbox_2d": [500, 250, 750, 500]}, {"bbox_2d": [500, 2',
        '[{"bbox_2d": [500, 250, 750, 500], "label": "car"}, {"bbox_2d": [500, 250, 750, 500], "la',
        '{"boxes": [{"box": [500, 250, 750, 500]}, {"box": [50',
        '{"frame_1": [500, 250, 750, 500], "frame_2": [500, 250, 750, 50',
        "Found: [[500, 250, 750, 500], [110, 120",
        '```json\n[{"bbox_2d": [500, 250, 750, 500]},',
        '[{"bbox_2d": [500, 250, 750, 500]',
    ],
)
def test_what_is_complete_in_a_cut_off_reply_is_kept(reply):
    reading = read(reply)
    assert corners(reading) == [TRUTH]
    assert reading.flags == (Flag.CUT_OFF,)


def test_a_last_number_that_may_have_lost_digits_makes_no_box():
    reading = read("[500, 250, 750, 50")
    assert (reading.failure, reading.flags) == (Flag.NO_USABLE_BOX, (Flag.CUT_OFF,))


@pytest.mark.parametrize(
    "bad", ["NaN", "Infinity", "-Infinity", "true", "false", "null", '"x"', "[1]", "1e999", '"50%"', '""']
)
def test_one_bad_value_makes_one_box_unusable_and_is_never_zero(bad):
    reading = read(f"[[{bad}, 250, 750, 500], [500, 250, 750, 500]]")
    assert corners(reading) == [TRUTH]
    assert reading.detail == {"dropped": {"unreadable": 1}}
    assert read(f'[{{"bbox": [{bad}, 250, 750, 500]}}]').failure is Flag.NO_USABLE_BOX


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (None, Flag.EMPTY),
        ("  ", Flag.EMPTY),
        (["x"], Flag.NOT_TEXT),
        ("<think>[1, 2, 3, 4]", Flag.UNCLOSED_REASONING),
        ("I cannot find that object.", Flag.NO_ANSWER),
        ("null", Flag.NO_ANSWER),
        ("None", Flag.NO_ANSWER),
        ("{nothing}", Flag.BAD_JSON),
        ('["nothing"]', Flag.NO_USABLE_BOX),
        ('{"label": "car"}', Flag.NO_USABLE_BOX),
        ("[1, 2, 3]", Flag.NO_USABLE_BOX),
        ("[[1, 2, 3], [0, 0, 5000, 5000]]", Flag.OUT_OF_RANGE),
    ],
)
def test_what_is_no_box_has_a_name(reply, failure):
    assert read(reply).failure is failure


@pytest.mark.parametrize("reply", ["[]", "{}", '{"boxes": []}', "```json\n[]\n```"])
def test_an_empty_list_says_that_there_is_nothing(reply):
    reading = read(reply)
    assert (reading.value, reading.failure) == ((), None)


# --- properties

FOUR = st.tuples(*[st.integers(0, 1000)] * 4).filter(lambda four: four[0] != four[2] and four[1] != four[3])


@given(st.lists(FOUR, min_size=1, max_size=5), st.sampled_from(["xyxy", "yxyx"]))
def test_boxes_are_sorted_fractions_in_the_order_of_the_reply(fours, order):
    reading = read(str([list(four) for four in fours]), Coordinates(unit="thousandths", order=order))
    assert len(reading.value) == len(fours)
    for box, (a, b, c, d) in zip(reading.value, fours, strict=True):
        x0, y0, x1, y1 = (a, b, c, d) if order == "xyxy" else (b, a, d, c)
        wanted = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
        assert all(math.isclose(got * 1000, want, abs_tol=1e-9) for got, want in zip(box.xyxy, wanted, strict=True))


@given(FOUR, st.sampled_from([1, 2, 7]))
def test_units_agree(four, scale):
    pixels = read_boxes(
        str([number * scale for number in four]), CONVENTIONS["pixel_of_source"], size=(1000 * scale,) * 2
    )
    thousandths = read(str(list(four)))
    for one, other in zip(pixels.value[0].xyxy, thousandths.value[0].xyxy, strict=True):
        assert math.isclose(one, other)


@given(st.text(alphabet="[]{}(),:'\"<>box_2d 0159.-\n", max_size=60))
def test_any_reply_gives_boxes_in_the_picture_or_a_named_failure(reply):
    reading = read(reply)
    for box in reading.value or ():
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1


@pytest.mark.parametrize(
    "piece", ["[", "{", '["', "[1,", "[1,2,3,4],", '{"bbox":[1,2,3,4]},', "<box>", "(1,2)", "[]", "[' ',[\" "]
)
def test_hostile_text_is_read_in_one_pass(piece):
    assert read(piece * 20_000).rule
