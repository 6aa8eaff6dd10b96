"""Ratings and scores by system from tables and documents, through ``read_ratings`` and ``read_scores``."""

import csv
import json
import math

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen_eval.arena import ArenaRatings, TrackerRatings, read_ratings, read_scores
from gen_eval.records import InputError

slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def save(tmp_path):
    def make(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        elif name.endswith(".jsonl"):
            path.write_text("\n".join(map(json.dumps, content)))
        elif name.endswith(".parquet"):
            pd.DataFrame(content).to_parquet(path)
        else:
            path.write_text(json.dumps(content))
        return path

    return make


def values(table):
    return {name: dict(column.values) for name, column in table.columns.items()}


# --- wide ----------------------------------------------------------------------------------------------------------


def test_the_published_table_serves_both_sides(goldens):
    path = goldens / "papers" / "pai_table8.csv"
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for table, prefix in ((read_ratings(path), "elo"), (read_scores(path), "score")):
        assert list(table.columns) == ["overall", "domain", "quality"]
        assert table.systems == tuple(line["model"] for line in lines)
        assert not table.rejected
        for x, column in table.columns.items():
            assert column.values == {line["model"]: float(line[f"{prefix}_{x}"]) for line in lines}
            assert column.source == f"pai_table8.csv, {prefix}_{x}"


WIDE = "name,elo_overall,elo_overall_lower,elo_overall_upper,bt_overall,rating_plausibility,score_overall,other\n"


def test_prefixes_intervals_and_empty_cells(save):
    path = save("t.csv", WIDE + "x,1100,1050,1150.5,,900,0.5,abc\n y ,,,,1000,,,\n")
    table = read_ratings(path, column=["elo", "rating_plausibility"])
    assert values(table) == {"overall": {"x": 1100.0, "y": None}, "plausibility": {"x": 900.0, "y": None}}
    overall = table.columns["overall"]
    assert (overall.lower, overall.upper) == ({"x": 1050.0}, {"x": 1150.5})
    assert table.columns["plausibility"].key == "domain"
    assert values(read_ratings(path, column="bt_overall")) == {"overall": {"x": None, "y": 1000.0}}
    assert values(read_scores(path)) == {"overall": {"x": 0.5, "y": None}}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (None, r"overall: elo_overall, bt_overall\); choose with --column"),
        ("glicko", "no column glicko of ratings; its columns of ratings are elo_overall, bt_overall, rating_plaus"),
        ("score_overall", "no column score_overall of ratings"),
    ],
)
def test_several_columns_of_one_thing_need_a_choice(save, column, said):
    with pytest.raises(InputError, match=said):
        read_ratings(save("t.csv", WIDE + "x,1,,,2,3,,\n"), column=column)


def test_plausibility_and_domain_are_one_thing(save):
    path = save("t.csv", "model,elo_plausibility,elo_domain,score_domain,score_domain_score\nx,1,2,3,4\n")
    with pytest.raises(InputError, match="domain: elo_plausibility, elo_domain"):
        read_ratings(path)
    assert list(read_ratings(path, column="elo_domain").columns) == ["domain"]
    with pytest.raises(InputError, match="domain and domain_score, which are one thing"):
        read_scores(path)


def test_a_metric_may_be_called_like_the_end_of_an_interval(save):
    table = read_scores(save("t.csv", "model,score_lower,score_a_b,score_a_b_upper\nx,1,2,3\n"))
    assert values(table) == {"lower": {"x": 1.0}, "a_b": {"x": 2.0}}
    assert table.columns["a_b"].upper == {"x": 3.0}


@pytest.mark.parametrize("cell", ["nan", "inf", "-Infinity", "12 %", "1e999", "=1+1"])
def test_a_cell_that_is_no_number_is_listed_and_the_others_stay(save, cell):
    table = read_ratings(save("t.csv", f"model,elo_overall,elo_quality\nx,{cell},5\n,1,1\ny,3,4\n"))
    assert values(table) == {"overall": {"x": None, "y": 3.0}, "quality": {"x": 5.0, "y": 4.0}}
    assert [(one.where, str(one.reason)) for one in table.rejected] == [
        ("t.csv:2", "malformed_record"),
        ("t.csv:3", "missing_field"),
    ]
    assert repr(cell) in table.rejected[0].message


def test_names_are_the_first_of_model_system_name(save):
    lines = [
        {"model": "x", "name": "other", "score_a": 1},
        {"system": "y", "score_a": 2},
        {"name": "z", "model": "", "score_a": 3},
        {"model": 5, "score_a": 4},
    ]
    table = read_scores(save("t.jsonl", lines))
    assert values(table) == {"a": {"x": 1.0, "y": 2.0, "z": 3.0}}
    assert "model must be a text" in table.rejected[0].message


# --- long ----------------------------------------------------------------------------------------------------------

LONG = [
    {"model": "x", "tracker": "overall", "rating": 1010, "lower": 1000.0, "upper": "1020", "n": 4},
    {"model": "y", "tracker": "overall", "rating": None},
    {"model": "x", "tracker": "plausibility", "rating": "990.5"},
    {"model": "y", "rating": 3},
    {"model": "y", "tracker": "plausibility", "rating": "much"},
]


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_long_ratings(save, name):
    table = read_ratings(save(name, LONG))
    assert values(table) == {"overall": {"x": 1010.0, "y": None}, "plausibility": {"x": 990.5}}
    assert (table.columns["overall"].lower, table.columns["overall"].upper) == ({"x": 1000.0}, {"x": 1020.0})
    assert [str(one.reason) for one in table.rejected] == ["missing_field", "malformed_record"]


def test_the_choice_of_a_column_is_for_wide_tables(save):
    with pytest.raises(InputError, match="bt chooses among the columns of a wide table"):
        read_ratings(save("t.jsonl", LONG), column="bt")
    with pytest.raises(InputError, match="is a document of ratings"):
        read_ratings(save("t.json", {"trackers": {}}), column="bt")


def scored(*rows):
    return [dict(zip(("model", "metric", "protocol", "value"), row, strict=True)) for row in rows]


def test_one_protocol_a_column(save):
    path = save(
        "t.jsonl",
        scored(
            ("x", "a", "reference", 1), ("x", "a", "corrected", 2), ("y", "a", "reference", 3),
            ("x", "b", "reference", 4), ("x", "c", None, 5),
        ),
    )  # fmt: skip
    # y has a under another protocol only, so it has no number here
    assert values(read_scores(path)) == {"a": {"x": 2.0}, "b": {"x": 4.0}, "c": {"x": 5.0}}
    assert values(read_scores(path, protocol="reference")) == {
        "a": {"x": 1.0, "y": 3.0},
        "b": {"x": 4.0},
        "c": {"x": 5.0},
    }
    assert read_scores(path).columns["a"].source == "t.jsonl, corrected"


def test_protocols_that_cannot_be_chosen_among(save):
    path = save("t.jsonl", scored(("x", "a", "reference", 1), ("x", "a", "reference-v2", 2)))
    with pytest.raises(InputError, match=r"a under several protocols \(reference, reference-v2\)"):
        read_scores(path)
    with pytest.raises(InputError, match="nothing under the protocol corrected; it has reference, reference-v2"):
        read_scores(path, protocol="corrected")


@pytest.mark.parametrize(
    "content", ["model,score_a\nx,1\nx,\n", "model,metric,value\nx,a,1\nx,a,1\n", "model,metric,value\nx,a,1\n x,a,2\n"]
)
def test_a_system_has_one_number_of_a_thing(save, content):
    with pytest.raises(InputError, match="a of 'x' more than once"):
        read_scores(save("t.csv", content))


def test_which_way_is_better_is_said_by_whoever_knows(save):
    path = save("t.csv", "model,score_a,score_error\nx,1,2\n")
    columns = read_scores(path, higher_is_better={"error": False}).columns
    assert [column.higher_is_better for column in columns.values()] == [True, False]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", ""),
        ("t.csv", "model,a\nx,1\n"),
        ("t.csv", "model,elo_a,score_a\n"),
        ("t.csv", "label,elo_a,score_a\nx,1,1\n"),
        ("t.json", "[]"),
        ("t.json", "[1]"),
        ("t.json", "{}"),
        ("t.json", "3"),
        ("t.json", '{"trackers": 3, "aggregate": 3, "model": "x"}'),
        ("t.json", '{"trackers": {"a": {"ratings": {"x": "1"}}}, "aggregate": {"a": {"p": {"value": true}}}}'),
        ("t.json", '{"runs": [3], "trackers": {"a": {}}}'),
        ("t.json", '{"runs": [], "trackers": {"a": {"ratings": {"x": NaN}}}}'),
        ("t.jsonl", "{"),
        ("t.parquet", b"PAR1"),
        ("t.txt", "model"),
    ],
)
def test_what_holds_no_numbers_of_systems_ends_the_command(save, name, content):
    path = save(name, content)
    for read in (read_ratings, read_scores):
        with pytest.raises(InputError, match=r"t\."):
            read(path)


# --- documents -----------------------------------------------------------------------------------------------------


def test_ratings_that_were_printed_are_read_back(save):
    trackers = {
        "overall": TrackerRatings("overall", {"x": 1020.5, "y": 979.5}, 9, lower={"x": 1000.0}, upper={"x": 1041.0}),
        "plausibility": TrackerRatings("plausibility", {"x": None, "y": None}, 2),
    }
    document = ArenaRatings("elo", "given", 9, trackers).to_json()
    table = read_ratings(save("r.json", document))
    assert values(table) == {name: dict(one.ratings) for name, one in trackers.items()}
    overall = table.columns["overall"]
    assert (overall.lower, overall.upper) == ({"x": 1000.0}, {"x": 1041.0})
    assert overall.source == "r.json, trackers.overall"


def test_ratings_by_a_metric_are_scores(save):
    own = ArenaRatings("elo", "given", 9, {"domain_score": TrackerRatings("domain_score", {"x": 1020.5}, 9)}).to_json()
    document = {"trackers": {}, "automatic": {"domain_score": own}}
    assert values(read_scores(save("r.json", document))) == {"domain": {"x": 1020.5}}


def cell(value, lower=None, upper=None):
    return {"value": value, "lower": lower, "upper": upper, "n": 3, "N": 4}


def run_of(model, metrics, totals=None, condition=None):
    aggregate = {name: {"corrected": cell(value), "reference": cell(value + 1)} for name, value in metrics.items()}
    total = {name: {"corrected": cell(value)} for name, value in (totals or {}).items()}
    return {"run": "r", "model": model, "condition": condition, "aggregate": aggregate, "totals": total, "rows": []}


def test_a_run_has_metrics_and_totals(save):
    path = save("s.json", run_of("x", {"a": 0.5, "domain_score": 0.25}, {"quality": 0.75}, "text"))
    table = read_scores(path)
    assert values(table) == {"a": {"x, text": 0.5}, "domain": {"x, text": 0.25}, "quality": {"x, text": 0.75}}
    assert values(read_scores(path, protocol="reference")) == {"a": {"x, text": 1.5}, "domain": {"x, text": 1.25}}


def test_a_report_of_several_runs_has_its_totals_in_tables(save):
    """The parts of a total lie in two runs here, so that neither can tell it."""
    scores = {"a": cell(0.5), "a.further": cell(9.0), "quality": cell(0.6, 0.5, 0.7), "overall": cell(0.55)}
    table = {
        "protocol": "corrected",
        "columns": [{"name": "a", "better": "lower"}, {"name": "overall", "better": "higher"}, {"name": "a.further"}],
        "lines": [
            {"model": "x", "condition": None, "domain": None, "scores": scores},
            {"model": "x", "condition": None, "domain": "robot", "scores": {"overall": cell(0.1)}},
            {"model": "y", "condition": None, "domain": None, "scores": {"a": cell(0.4), "overall": None}},
        ],
    }
    runs = [run_of("x", {"a": 0.5}, {"quality": None}), run_of("x", {"domain_score": 0.5}), run_of("y", {"a": 0.4})]
    found = read_scores(save("x.json", {"runs": runs, "tables": [table]}))
    assert values(found) == {
        "a": {"x": 0.5, "y": 0.4},
        "domain": {"x": 0.5},
        "quality": {"x": 0.6},
        "overall": {"x": 0.55},
    }
    assert found.columns["quality"].lower == {"x": 0.5}
    assert {name: column.higher_is_better for name, column in found.columns.items()} == {
        "a": False, "domain": True, "quality": True, "overall": True,
    }  # fmt: skip


def test_two_runs_of_one_system_with_one_metric_are_not_mixed(save):
    with pytest.raises(InputError, match="a of 'x' more than once"):
        read_scores(save("x.json", {"runs": [run_of("x", {"a": 0.5}), run_of("x", {"a": 0.6})]}))


# --- properties ----------------------------------------------------------------------------------------------------

names = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6).map(str.strip).filter(bool)
)
cells = st.one_of(st.none(), st.floats(-1e9, 1e9))


@slow
@given(
    columns=st.dictionaries(st.sampled_from(["overall", "quality", "domain"]), st.none(), min_size=1),
    systems=st.lists(names, min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_wide_and_long_tables_of_every_format_say_the_same(save, columns, systems, data):
    given_values = {x: {name: data.draw(cells) for name in systems} for x in columns}
    wide = [{"model": name, **{f"elo_{x}": given_values[x][name] for x in columns}} for name in systems]
    long = [{"model": name, "tracker": x, "rating": given_values[x][name]} for x in columns for name in systems]
    for name in ("w.jsonl", "w.json", "w.parquet"):
        assert values(read_ratings(save(name, wide))) == given_values
        assert values(read_ratings(save(name, long))) == given_values


def number_of_systems(path):
    try:
        return {name for read in (read_ratings, read_scores) for name in read(path).systems}
    except InputError:
        return set()


@slow
@given(
    content=st.binary(max_size=150),
    name=st.sampled_from(["t.csv", "t.jsonl", "t.json", "t.parquet"]),
    lead=st.booleans(),
)
def test_any_bytes_give_numbers_or_an_input_error(save, content, name, lead):
    path = save(name, b"model,elo_a,score_a\nx,1,2\n" * lead * (name == "t.csv") + content)
    assert all(isinstance(name, str) and name for name in number_of_systems(path))


@slow
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=2),
            st.dictionaries(
                st.sampled_from(
                    ["runs", "tables", "trackers", "aggregate", "totals", "ratings", "lines", "model", "x"]
                ),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=12,
    )
)
def test_any_json_gives_numbers_or_an_input_error(save, document):
    text = json.dumps(document).replace("Infinity", "1")
    assert all(isinstance(name, str) and name for name in number_of_systems(save("t.json", text)))


def test_no_value_is_ever_not_finite(save):
    table = read_scores(save("t.parquet", [{"model": "x", "score_a": math.nan}, {"model": "y", "score_a": math.inf}]))
    assert values(table) == {"a": {"x": None, "y": None}}
    assert [one.where for one in table.rejected] == ["t.parquet row 2"]
