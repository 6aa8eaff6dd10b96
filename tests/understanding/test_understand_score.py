"""`understand score` and `parse` as services: the document of interchange, gaps, several models, runs that are kept."""

import json

import pytest

from api.services.results import RunResults
from api.services.understanding.inspecting import parse_reply, reply_text, task_catalogue
from api.services.understanding.predicting import score_predictions
from gen_eval.records import InputError
from gen_eval.records.run import RunFolder

OPTIONS = {"A": "cat", "B": "dog", "C": "car", "D": "a red bus"}
TABLE = {  # field case H9: an option's letter inside words
    "The answer is dog.": "B",
    "The answer is a red bus parked near the gate": "D",
    "answer is clearly D, not because of the colour": "D",
    "Answer: **D**": "D",
    "ANSWER: $D$": "D",
    "(d)": "D",
    "<answer> D. </answer>": "D",
    "The answer is B. Note that A is a distractor.": "B",
    "It is not B, the answer is D": "D",
    "None of the above": None,
    "I don't know": None,
    "A, B": None,
}


@pytest.fixture
def score(write_lines):
    """`score(samples, replies, **more)`: lines of both, through the service."""

    def go(samples, replies, out=None, **more):
        return score_predictions(
            "pai/u", write_lines("u.jsonl", samples), write_lines("replies.jsonl", replies), out, **more
        )

    return go


def samples(count, **more):
    return [{"id": f"q{place}", "options": OPTIONS, "answer": "D", **more} for place in range(count)]


def test_letters_inside_words_are_no_answers(score):
    replies = [{"id": f"q{place}", "reply": reply} for place, reply in enumerate(TABLE)]
    document = score(samples(len(TABLE)), replies).to_json()
    rows = {row["id"]: row for row in document["rows"]}
    for place, (reply, letter) in enumerate(TABLE.items()):
        row = rows[f"q{place}"]
        assert row["parsed"] == letter, reply
        assert row["reply"] == reply
        assert row["value"] == float(letter == "D")
        assert ("unparsed" in row["flags"]) == (letter is None) == (row["corrected"]["failure"] is not None)
    right = sum(letter == "D" for letter in TABLE.values())
    assert document["aggregate"]["metrics"]["accuracy"] == right / len(TABLE)
    assert sum(document["aggregate"]["unparsed"].values()) == 3


def test_the_document_is_that_of_interchange(score):
    found = score(
        samples(2, category="Warehouse"), [{"id": "q0", "reply": "D", "seed": 3}, {"id": "q1", "reply": None}]
    )
    document = found.to_json()
    assert set(document) == {"aggregate", "rows"}
    expected = {"task", "protocol", "n", "N", "metrics", "coverage", "unparsed", "flags", "groups"}
    assert expected <= set(document["aggregate"])
    row = document["rows"][0]
    fields = {"id", "task", "model", "seed", "protocol", "status", "reason", "flags", "value", "values", "parsed"}
    assert fields | {"rule", "dropped", "reference", "corrected"} <= set(row)
    assert (row["seed"], row["values"]["accuracy"], row["reference"]["value"]) == (3, 1.0, 1.0)
    assert document["rows"][1]["corrected"]["failure"] == "empty"  # null is a reply that says nothing
    assert document["aggregate"]["groups"]["category"]["Warehouse"]["n"] == 2
    json.dumps(document, allow_nan=False)


def test_what_is_missing_is_counted_by_its_rule(score):
    replies = [
        {"id": "q0", "reply": "D"},
        {"id": "q1", "reply": "D", "error": "timeout"},
        {"id": "q2", "reply": "", "finish_reason": "content_filter"},
        {"id": "q3", "reply": 7},
        {"id": "q3", "reply": "D"},
        {"id": "elsewhere", "reply": "D"},
        {"id": "q5", "reply": "the right one is", "finish_reason": "length"},
    ]
    found = score(samples(6), replies)
    aggregate = found.to_json()["aggregate"]
    rows = {row["id"]: row for row in found.to_json()["rows"]}
    assert [rows[f"q{place}"]["reason"] for place in range(6)] == [
        None, "endpoint_error", "content_filter", None, "missing_reply", None,
    ]  # fmt: skip
    assert rows["q1"]["value"] is None
    assert rows["q4"]["value"] == 0.0
    assert rows["q3"]["corrected"]["failure"] == "not_text"
    assert "cut_off" in rows["q5"]["flags"]
    assert (aggregate["n"], aggregate["N"], aggregate["metrics"]["accuracy"]) == (5, 6, 1 / 5)
    listed = aggregate["coverage"]
    assert [one["reason"] for one in listed["rejected"]] == ["duplicate_reply"]
    assert [one["where"] for one in listed["unknown_sample"]] == ["replies.jsonl:6"]
    assert found.exit_code == 1


def test_five_hundred_and_ten_of_six_hundred_and_ten_in_small(published_folder, write_lines):
    data = published_folder(6, clips=[0, 1])  # questions 4 and 5 have no clip
    replies = write_lines("r.jsonl", [{"id": f"u_{place:05d}", "reply": "ABC"[place % 3]} for place in range(4)])
    aggregate = score_predictions("pai/u", data, replies).to_json()["aggregate"]
    assert aggregate["metrics"]["accuracy"] == 1.0
    assert (aggregate["n"], aggregate["N"]) == (4, 6)
    assert aggregate["coverage"]["without"] == {"missing_media": 2}
    assert aggregate["coverage"]["without_media"] == 2


def test_questions_without_truth_are_listed_and_not_counted(score):
    found = score(
        [*samples(1), {"id": "open", "options": OPTIONS}], [{"id": one, "reply": "D"} for one in ("q0", "open")]
    )
    aggregate = found.to_json()["aggregate"]
    assert (aggregate["N"], aggregate["metrics"]["accuracy"]) == (1, 1.0)
    assert len(aggregate["coverage"]["no_truth"]) == 1
    assert found.exit_code == 0


def test_several_models_are_scored_apart_and_several_seeds_averaged_first(score, tmp_path):
    replies = [
        {"id": "q0", "reply": "D", "model": "m", "seed": 0},
        {"id": "q0", "reply": "A", "model": "m", "seed": 1},
        {"id": "q1", "reply": "D", "model": "m", "seed": 0},
        {"id": "q1", "reply": "D", "model": "m", "seed": 1},
        {"id": "q0", "reply": "D", "model": "n/1"},
    ]
    document = score(samples(2), replies, tmp_path / "out").to_json()
    assert {name: one["metrics"]["accuracy"] for name, one in document["aggregates"].items()} == {"m": 0.75, "n/1": 0.5}
    assert document["aggregates"]["m"]["seeds"]["accuracy"] == {"0": 1.0, "1": 0.5}
    assert document["aggregates"]["m"]["seeds"]["mean"] == 0.75
    assert RunResults.read(tmp_path / "out" / "m").aggregate["accuracy"]["corrected"].main.value == 0.75
    assert RunResults.read(tmp_path / "out" / "n_1").aggregate["accuracy"]["corrected"].main.value == 0.5


def test_a_kept_run_holds_raw_replies_and_both_readings(score, tmp_path):
    replies = [{"id": "q0", "reply": "The answer is dog."}, {"id": "q1", "reply": "d"}]
    out = tmp_path / "run"
    first = score(samples(3), replies, out)
    assert score(samples(3), replies, out).to_json() == first.to_json()  # once more into the same folder
    with RunFolder(out) as run:
        assert [one.reply for one in run.answers()] == ["The answer is dog.", "d"]
        rows = list(run.rows())
    assert len(rows) == 6
    assert {row.protocol for row in rows} == {"corrected", "reference"}
    results = RunResults.read(out)
    own = first.to_json()["aggregate"]
    assert results.aggregate["accuracy"]["corrected"].main.value == own["metrics"]["accuracy"]
    assert results.aggregate["accuracy"]["reference"].main.value == own["beside"]["reference"]["metrics"]["accuracy"]
    with pytest.raises(InputError, match="another run"):
        score(samples(3), replies[:1], out)


def test_the_dialect_is_part_of_what_is_compared(score, tmp_path):
    runs = []
    for dialect in ("paibench_u", "reason_script"):
        score(samples(1), [{"id": "q0", "reply": "D"}], tmp_path / dialect, protocol="reference", dialect=dialect)
        runs.append(RunResults.read(tmp_path / dialect))
    digests = [run.manifest["metrics"]["accuracy"]["protocols"] for run in runs]
    assert digests[0]["corrected"] == digests[1]["corrected"]
    assert digests[0]["reference"] != digests[1]["reference"]
    assert [run.manifest["dialect"] for run in runs] == ["paibench_u", "reason_script"]
    assert [run.aggregate["accuracy"]["reference"].main.value for run in runs] == [1.0, 0.0]


def test_a_drawn_letter_is_the_same_every_time_and_counted(score):
    replies = [{"id": f"q{place}", "reply": "?"} for place in range(40)]
    documents = [score(samples(40), replies, protocol="reference").to_json() for _ in range(2)]
    assert documents[0] == documents[1]
    aggregate = documents[0]["aggregate"]
    assert aggregate["flags"]["random_draw"] == 40
    assert aggregate["metrics"]["accuracy_draws_wrong"] == 0.0
    assert 0 < aggregate["metrics"]["accuracy"] < 0.5


def test_parse_shows_which_rule_read_what(tmp_path):
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"id": "q", "options": OPTIONS, "answer": "D"}))
    found = parse_reply("pai/u", "Answer: C", path)
    readings = {one["dialect"]: one for one in found["readings"]}
    assert set(readings) == {None, "paibench_u", "reason_script", "physical_ai_understanding"}
    assert (readings[None]["value"], readings[None]["rule"]) == ("C", "choice 4a")
    assert readings["paibench_u"]["value"] == "A"  # the A of Answer
    assert readings["reason_script"]["value"] is None
    lines = tmp_path / "q.jsonl"
    lines.write_text(
        f"{json.dumps({'id': 'one', 'options': {'A': 'x', 'B': 'y'}, 'answer': 'A'})}\n{path.read_text()}\n"
    )
    assert parse_reply("pai/u", "a red bus", lines, sample_id="q")["readings"][0]["value"] == "D"
    bare = {one["dialect"]: one["value"] for one in parse_reply("pai/u", "Answer: C")["readings"]}
    assert (bare[None], bare["paibench_u"], bare["physical_ai_understanding"]) == ("C", "A", None)
    with pytest.raises(InputError, match="holds no sample other"):
        parse_reply("pai/u", "x", lines, sample_id="other")


def test_a_reply_is_text_or_a_file(tmp_path):
    (tmp_path / "reply.txt").write_text("B")
    assert reply_text(str(tmp_path / "reply.txt")) == "B"
    assert reply_text("B") == "B"
    assert reply_text("x" * 5000) == "x" * 5000
    assert reply_text("a\0b") == "a\0b"


def test_the_catalogue_names_what_a_task_can():
    (one,) = [entry for entry in task_catalogue() if entry["name"] == "pai/u"]
    assert one["dialects"] == ["paibench_u", "reason_script", "physical_ai_understanding"]
    assert one["forms"]["corrected"]["preset"] == "16-uniform"
    assert one["forms"]["reference, reason_script"]["preset"] == "4fps"


def test_reports_and_comparisons_take_such_runs(score, tmp_path):
    from api.services.comparison import compare
    from api.services.reporting import write_report

    for name, reply in (("one", "A"), ("two", "D")):
        score(samples(6, category="x"), [{"id": f"q{place}", "reply": reply} for place in range(6)], tmp_path / name)
    runs = [RunResults.read(tmp_path / name) for name in ("one", "two")]
    for ending in ("html", "csv", "json", "tex"):
        write_report(runs, tmp_path / f"report.{ending}")
    assert "accuracy" in (tmp_path / "report.html").read_text()
    found = compare(*runs, protocol="corrected")
    assert found.others[0].metrics[0].paired.difference == 1.0


def test_intervals_of_reports_and_comparisons_draw_whole_videos(score, tmp_path):
    from api.services.comparison import compare

    shared = [{**one, "video": f"{place // 4}.mp4"} for place, one in enumerate(samples(16))]
    apart = [{**one, "video": f"{place}.mp4"} for place, one in enumerate(samples(16))]
    widths = {}
    for name, data in (("shared", shared), ("apart", apart)):
        replies = [{"id": f"q{place}", "reply": "D" if place < 8 else "A"} for place in range(16)]
        own = score(data, replies, tmp_path / name).models[0].aggregate()
        one = RunResults.read(tmp_path / name).aggregate["accuracy"]["corrected"].main
        assert (one.lower, one.upper) == (own.whole.bootstrap.lower, own.whole.bootstrap.upper)
        widths[name] = one.upper - one.lower
    assert widths["shared"] > widths["apart"]
    run = RunResults.read(tmp_path / "shared")
    score(shared, [{"id": f"q{place}", "reply": "D"} for place in range(16)], tmp_path / "better")
    (found,) = compare(run, RunResults.read(tmp_path / "better"), protocol="corrected").others
    assert "clusters" in found.metrics[0].paired.interval.method


def test_the_command_prints_the_document_and_nothing_else(cli, write_lines, tmp_path):
    data = write_lines("u.jsonl", samples(2))
    replies = write_lines("r.jsonl", [{"id": "q0", "reply": "D"}, {"id": "q1", "reply": "no idea"}])
    done = cli("understand", "score", "pai/u", "--data", data, "--predictions", replies, "--out", "run", "--json")
    assert done.code == 0, done
    assert done.json == score_predictions("pai/u", data, replies).to_json()
    assert (tmp_path / "run" / "report.html").is_file()


def test_importing_tasks_loads_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, understanding; understanding.task('pai/u'); print('torch' in sys.modules, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["False", "False"]
