"""Recorded values of the public programs and of the publication, through the task and the scoring service."""

import csv
import json

import pytest

from understanding import task

COLUMNS = {
    "cs_space": "Space: Relationship",
    "cs_time": "Time: Order",
    "cs_physics": "Physics: States",
    "er_bd": "BridgeData V2",
    "er_rv": "RoboVQA",
    "er_rf": "RoboFail",
    "er_ab": "AgiBot",
    "er_ha": "HoloAssist",
    "er_av": "AV",
}


def load(goldens, name):
    return json.loads((goldens / "understanding_pai" / name).read_text())


def cases(goldens):
    return {case["name"]: case for case in load(goldens, "aggregate.json")["cases"]}


@pytest.fixture
def scores():
    """The golden's answers as scores of the bound task."""

    def make(case):
        bound = task("pai/u")
        found = []
        for place, one in enumerate(case["results"]):
            options = dict.fromkeys("ABCDE"[: one["n_options"]], "some text")
            groups = {"category": one["category"], "subcategory": one["subcategory"]}
            sample = bound.sample({"id": f"q{place:03d}", "options": options, "answer": one["answer"], **groups})
            found.append(bound.score(one["pred"], sample))
        return bound.aggregate(found, resamples=50)

    return make


@pytest.mark.parametrize("name", ["grouped", "space_time_prefixes_and_unparsed", "all_right"])
def test_aggregates_are_those_recorded(goldens, scores, name):
    case = cases(goldens)[name]
    found, expected = scores(case), case["corrected"]
    assert (found.whole.correct, found.whole.n, found.whole.percent) == tuple(expected["overall"].values())
    for way in ("category", "subcategory"):
        counts = {group: (one.correct, one.n, one.percent) for group, one in found.groups[way].items()}
        assert counts == {group: tuple(one.values()) for group, one in expected[f"by_{way}"].items()}
    assert 100 * found.floors["random_guess"] == pytest.approx(expected["random_guess_percent"], rel=1e-14)
    assert sum(found.unparsed.values()) == expected["unparsed"]


@pytest.mark.parametrize("name", ["grouped", "space_time_prefixes_and_unparsed", "all_right"])
def test_the_public_programs_print_the_same(goldens, scores, name):
    case = cases(goldens)[name]
    found = scores(case).reference
    assert found["harness"] == case["reference"]["lmms_paibench_u"]
    assert found["script"] == case["reference"]["reason_script_stdout"]


def test_published_counts_give_every_printed_figure_of_all_models(goldens):
    content = load(goldens, "published_counts.json")
    with (goldens / "papers" / "pai_table5.csv").open() as file:
        printed = {row["model"]: row for row in csv.DictReader(file)}
    bound = task("pai/u")
    options = {"A": "yes", "B": "no"}
    questions = {
        column: [
            bound.sample({"id": f"{column}_{place}", "subcategory": name, "options": options, "answer": "A"})
            for place in range(content["questions"][column])
        ]
        for column, name in COLUMNS.items()
    }
    right, wrong = ({one.id: bound.score(said, one) for own in questions.values() for one in own} for said in "AB")
    assert len(content["rows"]) == 16
    for row in content["rows"]:
        counts = row["correct_counts"]
        scores = [
            (right if place < counts[column] else wrong)[one.id]
            for column, own in questions.items()
            for place, one in enumerate(own)
        ]
        found = bound.aggregate(scores, resamples=0)
        figures = {**found.groups["column"], **found.groups["average"], "overall": found.whole}
        assert {name: f"{one.percent:.1f}" for name, one in figures.items()} == {
            name: printed[row["model"]][name] for name in figures
        }
        assert set(figures) == set(printed[row["model"]]) - {"model", "group"}


def dialects(bound):
    return {
        "reason_script": "reason_script",
        **{f"lmms_{one}": one for one in bound.dialects if one != "reason_script"},
    }


def test_every_recorded_reply_is_read_as_recorded_through_the_scoring_service(goldens, write_lines):
    from api.services.understanding.predicting import score_predictions

    items = load(goldens, "parse_choice.json")["cases"]
    data = write_lines("u.jsonl", [{"id": one["id"], "options": one["options"], "answer": "A"} for one in items])
    replies = write_lines("replies.jsonl", [{"id": one["id"], "reply": one["raw"]} for one in items])
    expected = {one["id"]: one for one in items}
    for golden, dialect in dialects(task("pai/u")).items():
        rows = score_predictions("pai/u", data, replies, dialect=dialect).to_json()["rows"]
        assert len(rows) == len(items)
        for row in rows:
            one = expected[row["id"]]
            assert row["corrected"]["parsed"] == row["parsed"] == one["corrected"], one
            assert row["corrected"]["failure"] == one.get("corrected_failure"), one
            read = "RANDOM" if "random_draw" in row["reference"]["flags"] else row["reference"]["parsed"]
            letters = [letter for letter in "ABCDE" if letter == read] if read != "RANDOM" else ["RANDOM"]
            assert (letters or [None]) == [one["reference"][golden]], one
