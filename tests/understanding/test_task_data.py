"""What the readers of samples and predictions take, refuse and list."""

import gzip
import json

import pytest

from gen_eval.records import InputError, Rejection
from understanding import task
from understanding.data.pai_u import column_of
from understanding.data.predictions import paired, read_predictions

LINE = {"id": "q1", "video": "clips/a.mp4", "question": "Which?", "options": {"A": "x", "B": "y"}, "answer": "B"}


def load(path, **more):
    return task("pai/u").samples(path, **more)


def reasons(found):
    return [(one.where.rsplit(":", 1)[-1], one.reason) for one in found.rejected]


def test_the_published_folder(published_folder):
    found = load(published_folder(5, clips=[0, 2]))
    assert [one.id for one in found.samples] == [f"u_{place:05d}" for place in range(5)]
    assert [one.index for one in found.samples] == list(range(5))
    one = found.samples[0]
    assert one.letters == ("A", "B", "C")
    assert one.options["D"] is None
    assert one.groups == {
        "category": "Common Sense",
        "part": "Space",
        "subcategory": "Space: Relationship",
        "column": "cs_space",
        "average": "cs_avg",
    }
    assert [one.media.present for one in found.samples] == [True, True, False, False, True]
    assert found.samples[0].cluster == found.samples[1].cluster  # two questions about one clip


def test_a_json_list_with_videos_beside_it(tmp_path, question):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "000.mp4").write_bytes(b"")
    rows = [question(0, video_path="000.mp4"), "no object", question(2, video_path="../../etc/passwd")]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    found = load(tmp_path)
    assert [(one.id, one.media.path) for one in found.samples] == [("u_00000", tmp_path / "videos" / "000.mp4")]
    assert [one.reason for one in found.rejected] == [Rejection.MALFORMED_RECORD] * 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": 7}, Rejection.MALFORMED_RECORD),
        ({"id": ""}, Rejection.MALFORMED_RECORD),
        ({"id": None}, Rejection.MISSING_FIELD),
        ({"video": "/etc/passwd"}, Rejection.MALFORMED_RECORD),
        ({"video": "../a.mp4"}, Rejection.MALFORMED_RECORD),
        ({"video": "C:\\a.mp4"}, Rejection.MALFORMED_RECORD),
        ({"options": {"A": 1}}, Rejection.MALFORMED_RECORD),
        ({"options": {"first": "x"}}, Rejection.MALFORMED_RECORD),
        ({"options": ["x", "y"]}, Rejection.MALFORMED_RECORD),
        ({"question": 3}, Rejection.MALFORMED_RECORD),
        ({"answer": None}, Rejection.NO_TRUTH),
        ({"answer": "C"}, Rejection.NO_TRUTH),
    ],
)
def test_lines_that_cannot_be_used_are_listed(write_lines, changed, reason):
    found = load(write_lines("u.jsonl", [{**LINE, **changed}, {**LINE, "id": "good"}]))
    assert [one.id for one in found.samples] == ["good"]
    assert reasons(found) == [("1", reason)]


def test_lines_that_are_no_json_and_ids_that_come_twice(tmp_path):
    path = tmp_path / "u.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(f"{json.dumps(LINE)}\n\n{{broken\n[1]\n{json.dumps(LINE)}\nNaN\n")
    found = load(path)
    expected = [Rejection.LINE_NOT_JSON, Rejection.MALFORMED_RECORD, Rejection.LINE_NOT_JSON, Rejection.DUPLICATE_ID]
    assert sorted(map(str, (one.reason for one in found.rejected))) == sorted(map(str, expected))


def test_unknown_fields_are_carried_and_other_tasks_passed_over(write_lines):
    lines = [{**LINE, "source": "mine", "task": "pai/u"}, {**LINE, "id": "q2", "task": "vantage/vqa"}]
    found = load(write_lines("u.jsonl", lines))
    assert [one.extra for one in found.samples] == [{"source": "mine"}]


def test_numbers_of_a_clip_may_stand_for_it(write_lines):
    found = load(write_lines("u.jsonl", [{**LINE, "video": {"fps": 4, "n_frames": 9}}]))
    assert (found.samples[0].media.fps, found.samples[0].media.n_frames, found.samples[0].media.present) == (
        4,
        9,
        False,
    )


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_nothing_that_can_be_used_is_an_error(tmp_path, content):
    (tmp_path / "u.jsonl").write_text(content)
    with pytest.raises(InputError, match="holds no sample"):
        load(tmp_path / "u.jsonl")
    with pytest.raises(InputError, match="no questions of PAI-Bench-U"):
        load(tmp_path / "absent")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="as parquet"):
        load(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("category", "subcategory", "folder", "column"),
    [
        ("Common Sense", "Space: Geometry", None, "cs_space"),
        ("Time: Actions", "actions", None, "cs_time"),
        ("Embodied Reasoning", "BridgeData V2", None, "er_bd"),
        ("Embodied Reasoning", "agibot_world", None, "er_ab"),
        ("Embodied Reasoning", None, "robovqa", "er_rv"),
        ("Embodied Reasoning", "something else", "x", None),
        (None, None, None, None),
    ],
)
def test_columns_by_alias(category, subcategory, folder, column):
    found = column_of(category, subcategory, folder)
    assert (None if found is None else found.name) == column


# --- predictions -----------------------------------------------------------------------------------------------------


@pytest.fixture
def three(write_lines):
    return load(write_lines("u.jsonl", [{**LINE, "id": name} for name in ("q1", "q2", "q3")]))


def replies_of(path, samples, **more):
    tables, rejected = paired(read_predictions(path), samples, model=None, fallback="file", **more)
    return {
        (one.model, member, name): prediction
        for one in tables
        for member, own in one.replies.items()
        for name, prediction in own.items()
    }, [one.reason for one in rejected]


@pytest.mark.parametrize("field", ["reply", "prediction", "raw", "raw_pred", "pred"])
def test_names_of_the_reply(write_lines, three, field):
    found, rejected = replies_of(write_lines("r.jsonl", [{"id": "q1", field: "B"}]), three)
    assert found["file", "0", "q1"].reply == "B"
    assert not rejected


def test_lines_of_predictions_that_are_listed(write_lines, three):
    lines = [
        {"id": "q1", "reply": "A"},
        {"id": "q1", "reply": "B"},
        {"id": "q9", "reply": "B"},
        {"id": "q2", "reply": "A", "pred": "B"},
        {"id": 2, "reply": "A"},
        {"id": "q3"},
        {"id": "q3", "reply": None, "seed": [1]},
    ]
    found, rejected = replies_of(write_lines("r.jsonl", lines), three)
    assert {key: one.reply for key, one in found.items()} == {("file", "0", "q1"): "A"}
    assert sorted(rejected) == sorted(
        [
            Rejection.DUPLICATE_REPLY,
            Rejection.UNKNOWN_SAMPLE,
            Rejection.CONFLICTING_FIELDS,
            Rejection.MALFORMED_RECORD,
            Rejection.MISSING_FIELD,
            Rejection.MALFORMED_RECORD,
        ]
    )


def test_models_and_seeds_are_kept_apart(write_lines, three):
    lines = [
        {"id": "q1", "reply": "A", "model": "m", "seed": 0},
        {"id": "q1", "reply": "B", "model": "m", "seed": 1},
        {"id": "q1", "reply": "B", "model": "n", "prediction": "B"},
    ]
    found, rejected = replies_of(write_lines("r.jsonl", lines), three)
    assert {key: one.reply for key, one in found.items()} == {
        ("m", "0", "q1"): "A",
        ("m", "1", "q1"): "B",
        ("n", "0", "q1"): "B",
    }
    assert not rejected


def test_sample_logs_of_lmms_eval(tmp_path, published_folder, write_lines):
    samples = load(published_folder(4, clips=[]))
    log = [
        {"doc_id": 0, "target": "A", "resps": [["<think>so</think>A"]], "filtered_resps": ["A"]},
        {"doc_id": 1, "target": "B", "filtered_resps": ["(B"], "input": "…"},
        {"doc_id": 2, "target": "A", "filtered_resps": ["C"]},
        {"doc_id": 99, "target": "A", "filtered_resps": ["C"]},
        {"doc_id": True, "target": "A", "filtered_resps": ["C"]},
    ]
    folder = tmp_path / "org__model"
    folder.mkdir()
    path = folder / "20260101_samples_paibench_u.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in log))
    found, rejected = replies_of(path, samples)
    assert {key: one.reply for key, one in found.items()} == {
        ("org__model", "0", "u_00000"): "<think>so</think>A",
        ("org__model", "0", "u_00001"): "(B",
    }
    # the log's right answer is another one: it was made with other data
    assert sorted(rejected) == sorted(
        [Rejection.CONFLICTING_FIELDS, Rejection.UNKNOWN_SAMPLE, Rejection.MALFORMED_RECORD]
    )
    older = tmp_path / "older.json"
    older.write_text(json.dumps({"args": {}, "logs": [{**log[1], "doc": {"question": "another one"}}]}))
    assert replies_of(older, samples)[1] == [Rejection.CONFLICTING_FIELDS]


def test_prediction_tables_of_vlmevalkit(tmp_path, three):
    path = tmp_path / "model_data.tsv"
    path.write_text(
        "index\tquestion\tA\tB\tanswer\tprediction\n"
        "0\tWhich?\tx\ty\tB\tB\n"
        "q2\tWhich?\tx\ty\tB\tFailed to obtain answer via API.\n"
        "2\tWhat?\tx\ty\tB\tA\n"
        "\tWhich?\tx\ty\tB\tA\n"
    )
    found, rejected = replies_of(path, three)
    assert {key: (one.reply, one.error) for key, one in found.items()} == {
        ("file", "0", "q1"): ("B", None),
        ("file", "0", "q2"): (None, "Failed to obtain answer via API."),
    }
    assert sorted(rejected) == sorted([Rejection.CONFLICTING_FIELDS, Rejection.MALFORMED_RECORD])
    comma = tmp_path / "model_data.csv"
    comma.write_text('index,prediction\nq1,"B, because\nof the sign"\n')
    assert replies_of(comma, three)[0]["file", "0", "q1"].reply == "B, because\nof the sign"
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="index and prediction"):
        read_predictions(tmp_path / "wrong.csv")
    with pytest.raises(InputError, match=r"\.tsv or \.csv"):
        read_predictions(tmp_path / "sheet.xlsx")


QUESTIONS = [f"Which way does it go ({number})?" for number in range(5)]


@pytest.fixture
def five(write_lines):
    lines = [{**LINE, "id": f"q{number}", "question": QUESTIONS[number]} for number in range(5)]
    return load(write_lines("five.jsonl", [{**one, "answer": "BAABA"[place]} for place, one in enumerate(lines)]))


@pytest.fixture
def table(tmp_path):
    """`table(first, columns)`: a table of four rows counted from `first`; the reply names the row."""

    def write(first, **columns):
        lines = ["\t".join(["index", *columns, "prediction"])]
        for row in range(4):
            lines.append("\t".join([str(first + row), *(own[row] for own in columns.values()), f"reply {row}"]))
        path = tmp_path / "table.tsv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "columns",
    [{"question": QUESTIONS}, {"answer": "BAAB"}, {"question": QUESTIONS, "A": "xxxx", "B": "yyyy", "answer": "BAAB"}],
)
def test_rows_of_a_table_count_from_where_they_fit_the_data(five, table, first, columns):
    found, rejected = replies_of(table(first, **columns), five)
    assert {key[2]: one.reply for key, one in found.items()} == {f"q{row}": f"reply {row}" for row in range(4)}
    assert not rejected


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({}, "no column question"),
        ({"A": "xxxx", "B": "yyyy"}, "4 of 4 rows fit the data either way"),
        ({"question": [f"{one} Elsewhere." for one in QUESTIONS]}, "fit the data"),
    ],
)
def test_a_table_whose_first_row_cannot_be_told_is_refused(five, table, columns, match):
    with pytest.raises(InputError, match=match):
        replies_of(table(1, **columns), five)


def test_a_long_cell_is_read_and_the_limit_of_the_process_stays(tmp_path, three):
    import csv

    before = csv.field_size_limit()
    path = tmp_path / "long.csv"
    path.write_text(f"index,prediction\nq1,{'x' * (before + 10)}\n")
    assert len(replies_of(path, three)[0]["file", "0", "q1"].reply) == before + 10
    assert csv.field_size_limit() == before
