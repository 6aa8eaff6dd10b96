import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.stats import holm

p_values = st.lists(st.none() | st.floats(0, 1), max_size=8)


def test_by_hand():
    # 3 * .01, 2 * .02, 1 * .035 is below the one before, so .04; a test that was not made does not count
    assert holm([0.035, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_no_p_value(value):
    with pytest.raises(ValueError, match=r"p_values\[1\].*lies in 0..1"):
        holm([0.5, value])


@given(p_values)
def test_between_the_value_and_bonferroni(values):
    made = sum(value is not None for value in values)
    for value, corrected in zip(values, holm(values), strict=True):
        assert (value is None) == (corrected is None)
        if value is not None:
            assert value <= corrected <= min(1.0, made * value) + 1e-15


@given(p_values)
def test_keeps_the_order_of_the_values(values):
    pairs = sorted(
        (value, corrected) for value, corrected in zip(values, holm(values), strict=True) if value is not None
    )
    assert [corrected for _, corrected in pairs] == sorted(corrected for _, corrected in pairs)
