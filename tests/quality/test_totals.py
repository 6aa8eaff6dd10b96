"""Quality and Overall against the published table, through the functions that runs use."""

import csv
from pathlib import Path

import pytest

from gen_eval.protocols import total_rules
from gen_eval.quality.totals import overall_total, quality_total

TABLE = Path(__file__).parents[1] / "goldens" / "papers" / "pai_table3.csv"
COLUMN_OF = {
    "subject_consistency": "quality_sc",
    "background_consistency": "quality_bc",
    "motion_smoothness": "quality_ms",
    "aesthetic_quality": "quality_aq",
    "imaging_quality": "quality_iq",
    "overall_consistency": "quality_oc",
    "i2v_subject": "quality_is",
    "i2v_background": "quality_ib",
}


def published():
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_there_are_sixteen_rows():
    assert len(published()) == 16


@pytest.mark.parametrize("row", published(), ids=lambda row: row["model"])
def test_quality_of_every_published_row(row):
    total = quality_total({name: float(row[column]) for name, column in COLUMN_OF.items()})
    assert (total.n, total.N) == (8, 8)
    # the print rounds each dimension and the average to one decimal: 0.1 would be possible
    assert -0.0625 - 1e-9 <= total.value - float(row["quality_avg"]) <= 0.05 + 1e-9


@pytest.mark.parametrize("row", published(), ids=lambda row: row["model"])
def test_overall_of_every_published_row(row):
    total = overall_total(float(row["domain_avg"]), float(row["quality_avg"]))
    assert abs(total.value - float(row["overall"])) <= 0.05 + 1e-9


def test_halves_are_not_rounded_before_they_are_averaged():
    dynamic = next(row for row in published() if row["model"] == "DynamicCrafter")
    total = overall_total(float(dynamic["domain_avg"]), float(dynamic["quality_avg"]))
    assert total.value == pytest.approx(68.35, abs=1e-9)
    dimensions = dict.fromkeys(COLUMN_OF, 0.5) | {"i2v_subject": 0.504}
    quality = quality_total(dimensions)
    assert quality.value == pytest.approx(0.5005, abs=1e-12)
    assert overall_total(0.6, quality).value == pytest.approx(0.55025, abs=1e-12)


def test_dimensions_of_vbench_never_enter():
    parts = total_rules()["quality"].mean_of
    assert len(parts) == 8
    assert not {"temporal_flickering", "dynamic_degree"} & set(parts)
    plain = quality_total(dict.fromkeys(COLUMN_OF, 0.5))
    more = quality_total(dict.fromkeys(COLUMN_OF, 0.5) | {"temporal_flickering": 1.0, "dynamic_degree": 1.0})
    assert plain == more


def test_a_dimension_that_is_missing_leaves_a_partial_mean():
    total = quality_total(dict.fromkeys(COLUMN_OF, 0.5) | {"imaging_quality": None})
    assert total.value is None
    assert total.partial.value == 0.5
    assert total.missing == ("imaging_quality",)
    assert (total.n, total.N) == (7, 8)
    assert overall_total(0.9, total).value is None
    assert overall_total(None, 0.5).missing == ("domain_score",)
