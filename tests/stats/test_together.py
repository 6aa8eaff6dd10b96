"""Means taken together are the means that each column has alone; results know what is absent and where rows are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.stats import Column, aggregates, mean_with_coverage

VALUES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.dictionaries(st.sampled_from("012"), st.none() | st.floats(-5, 5), max_size=3),
    min_size=1,
    max_size=5,
)
COLUMNS = st.builds(
    Column, VALUES, st.sampled_from(["sample_first", "pooled"]), st.booleans(), st.just("ratio"), st.booleans()
)


@settings(max_examples=40, deadline=None)
@given(st.lists(COLUMNS, max_size=5))
def test_columns_together_equal_columns_alone(columns):
    alone = [
        mean_with_coverage(
            one.values,
            members=one.rule,
            higher_is_better=one.higher_is_better,
            unit=one.unit,
            resamples=10_000 if one.interval else 0,
        )
        for one in columns
    ]
    assert aggregates(columns) == alone


def test_a_large_column_beside_others_equals_itself_alone():
    columns = [
        Column(
            {f"s{number:04d}": {"0": (number * factor % 997) / 997} for number in range(400)}, "sample_first", True, "x"
        )
        for factor in (7, 13, 29)
    ]
    together = aggregates(columns)
    assert together == [aggregates([one])[0] for one in columns]
    assert together == [mean_with_coverage(one.values, unit="x") for one in columns]
