"""Results as an object."""

import pytest

from api.services.results import RunResults
from gen_eval.records import InputError


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
