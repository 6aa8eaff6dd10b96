"""How benchmarks print their results, as data."""

import pytest
import yaml

from gen_eval.protocols import columns, in_published_order, published_table, published_tables, total_rules
from gen_eval.records import InputError
from gen_eval.registry import names


def test_every_column_is_a_metric_or_a_total():
    known = {*names("gen_eval.metrics"), *total_rules()}
    for track, table in published_tables().items():
        assert table.track == track
        assert {column.score for column in table.columns} <= known


def test_directions_are_those_of_the_metrics():
    from api.services.facts import facts_of

    for table in published_tables().values():
        for column in table.columns:
            if column.score not in total_rules():
                assert column.higher_is_better is facts_of(column.score).higher_is_better, column.score


def test_the_control_table_has_six_columns_and_five_conditions():
    table = published_table("control")
    assert [one.score for one in table.columns] == [
        "blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou", "visual_quality", "diversity"
    ]  # fmt: skip
    assert table.conditions == ("blur", "edge", "depth", "seg", "all")
    assert [one.score for one in table.columns if one.beside] == ["visual_quality"]
    assert published_table("understanding") is None


def test_quality_stands_in_the_order_of_its_parts():
    eight = total_rules()["quality"].mean_of
    assert in_published_order(reversed(eight)) == list(eight)
    assert in_published_order(["z", "edge_f1", "a", "edge_f1"]) == ["edge_f1", "a", "z"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Tables of a configuration folder of one's own."""

    def read(**content):
        (tmp_path / "benchmarks").mkdir(exist_ok=True)
        (tmp_path / "benchmarks" / "pai-bench-c.yaml").write_text(yaml.safe_dump(content))
        monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path))
        columns.published_tables.cache_clear()
        return published_tables()

    yield read
    columns.published_tables.cache_clear()


COLUMN = {"score": "edge_f1", "digits": 1, "scale": 100, "better": "higher"}


def test_a_table_of_ones_own_wins(own):
    (column,) = own(track="control", columns=[COLUMN])["control"].columns
    assert (column.title, column.printed(0.12345)) == ("edge_f1", "12.3")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"columns": [COLUMN]}, "must name its track"),
        ({"track": "control", "columns": COLUMN}, "must name its track, and list"),
        ({"track": "control", "columns": [COLUMN, COLUMN]}, "two columns of one score"),
        *(
            ({"track": "control", "columns": [{**COLUMN, **wrong}]}, "a column must be")
            for wrong in (
                {"digits": 1.5}, {"digits": True}, {"scale": 0}, {"better": "more"}, {"score": 3}, {"colour": "red"},
                {"beside": {"value": "x"}},
            )
        ),
    ],
)  # fmt: skip
def test_malformed_tables_are_refused(own, content, said):
    with pytest.raises(InputError, match=said):
        own(**content)
