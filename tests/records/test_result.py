import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.records import Flag, ItemError, MetricResult, Reason, Status


def test_a_value_is_a_float():
    assert float(MetricResult.of("m", 0.25)) == 0.25


def test_without_a_value_float_raises_the_reason():
    result = MetricResult.without_value("m", Reason.TOO_SMALL, "5 pixels are too few", detail={"side": 5})
    assert (result.value, result.status) == (None, Status.UNDEFINED)
    with pytest.raises(ItemError, match=r"too_small\. 5 pixels are too few") as caught:
        float(result)
    assert caught.value.reason is Reason.TOO_SMALL
    assert caught.value.detail["side"] == 5


@given(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
def test_what_is_not_finite_becomes_a_reason(value):
    result = MetricResult.of("m", value, values={"part": 1.0})
    assert (result.value, result.status, result.reason) == (None, Status.FAILED, Reason.NOT_FINITE)


@pytest.mark.parametrize(
    "fields",
    [
        {"value": None},
        {"value": 1.0, "status": Status.FAILED, "reason": Reason.UNDECODABLE},
        {"value": 1.0, "reason": Reason.UNDECODABLE},
        {"value": float("nan")},
        {"value": 1.0, "values": {"part": float("inf")}},
    ],
)
def test_a_result_cannot_contradict_itself(fields):
    with pytest.raises(ValueError, match="m: "):
        MetricResult("m", **fields)


def test_it_prints_goes_to_pandas_and_plots():
    result = MetricResult.of(
        "m", 0.5, values={"precision": 0.25, "recall": None}, flags=(Flag.RESIZED,), curves={"m": np.array([0.4, 0.6])}
    )
    assert str(result) == "m 0.5, precision 0.25, recall - [resized]"
    assert result.to_pandas()["m"].tolist() == [0.4, 0.6]
    assert result.plot().get_title() == str(result)
    assert "m 0.5" in result._repr_html_()


def test_flags_are_added_once_in_order():
    result = MetricResult.of("m", 1.0).with_flags(Flag.RESIZED, Flag.SHORT_CLIP).with_flags(Flag.RESIZED)
    assert result.flags == (Flag.RESIZED, Flag.SHORT_CLIP)


def test_every_reason_has_a_status_that_means_no_value():
    assert {reason.status for reason in Reason} == {Status.UNDEFINED, Status.SKIPPED, Status.FAILED, Status.REFUSED}
    assert Reason.MISSING_WEIGHTS.status is Status.SKIPPED
    assert Reason.UNDECODABLE.status is Status.FAILED
