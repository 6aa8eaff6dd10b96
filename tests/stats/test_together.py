"""Means taken together are the means that each column has alone; results know what is absent and where rows are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.services.aggregation import Column, aggregates
from api.services.results import RunResults
from gen_eval.records import InputError
from gen_eval.stats import mean_with_coverage

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


def test_absent_rows_are_those_that_the_manifest_asks_for(maker):
    manifest = maker.manifest([maker.sample("s1"), maker.sample("s2")], metrics={"blur_ssim": ("corrected",)})
    change = lambda row: None if row.key[1:3] == ("s2", "1") else row  # noqa: E731
    assert RunResults.read(maker("run", manifest, change=change)).absent == [
        ("alpha", "s2", "1", "blur_ssim", "corrected")
    ]
    assert RunResults.read(maker("whole", manifest)).absent == []


def test_a_store_that_does_not_know_the_run_leaves_it_to_the_folder(maker, tmp_path):
    manifest = maker.manifest([maker.sample("s1")])
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    inside, outside = maker("inside", manifest), maker("outside", {**manifest, "chunk": 16}, store=url)
    assert RunResults.read(inside, store=url).rows == RunResults.read(inside).rows
    assert len(RunResults.read(outside, store=url).rows) == 8
    elsewhere = f"sqlite:///{tmp_path / 'empty.sqlite'}"
    with pytest.raises(InputError, match="neither in its folder nor in the store"):
        RunResults.read(outside, store=elsewhere)
