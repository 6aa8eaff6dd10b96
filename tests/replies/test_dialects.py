import hashlib
import json
from collections import Counter

import pytest

from gen_eval.records import Flag, InputError
from gen_eval.replies import dialect_names, load_dialect, read_reference

COLUMNS = {
    "reason_script": "reason_script",
    "paibench_u": "lmms_paibench_u",
    "paibench_u_unstripped": "lmms_paibench_u_without_tag_stripping",
    "physical_ai_understanding": "lmms_physical_ai_understanding",
}
EXTRACTED = {
    "reason_script": "reason_script_extracted",
    "physical_ai_understanding": "physical_ai_understanding_filter_output",
}
TURNS = {"A": "Turn left", "B": "Turn", "C": "Turn left now", "D": None}


@pytest.mark.parametrize("dialect", COLUMNS)
def test_goldens(goldens, dialect):
    cases = json.loads((goldens / "understanding_pai" / "parse_choice.json").read_text())["cases"]
    for case in cases:
        reading = read_reference(dialect, case["raw"], options=case["options"], question_id=case["id"])
        drawn = Flag.RANDOM_DRAW in reading.flags
        assert ("RANDOM" if drawn else reading.value) == case["reference"][COLUMNS[dialect]], case["raw"]
        if dialect in EXTRACTED:
            assert reading.detail["extracted"] == case[EXTRACTED[dialect]], case["raw"]


def test_goldens_of_the_judge(goldens):
    for case in json.loads((goldens / "judge" / "parse_binary.json").read_text())["cases"]:
        assert read_reference("substring", case["raw"]).value == case["reference"], case["raw"]
        for key in ("Yes", "NO"):
            right = read_reference("substring", case["raw"], key=key).value == key.lower()
            assert right is (case["reference"] == key.lower()), case["raw"]
    for case in json.loads((goldens / "judge" / "parse_other_answers.json").read_text())["cases"]:
        found = read_reference("substring", case["raw"], key=case["correct_text"])
        assert (found.value == case["correct_text"]) is case["reference_is_correct"], case["raw"]


@pytest.mark.parametrize(
    ("dialect", "reply", "value", "why"),
    [
        ("reason_script", "x<answer> b. </answer>", "B", "full stop and case do not count"),
        ("reason_script", "x<answer>b)</answer>", None, "a bracket counts"),
        ("reason_script", "A", None, "no tag"),
        ("paibench_u", "Answer: C", "A", "the first capital, wherever it stands"),
        ("paibench_u", "The answer: C", "C", "a set phrase is deleted"),
        ("paibench_u", "See A, then (D)", "D", "brackets first"),
        ("paibench_u", "<think>(A)</think>C", "C", "reasoning is removed"),
        ("paibench_u", "<Think>(A)</Think>C", "A", "not in another case"),
        ("paibench_u", "A</think>C", "C", "only the closing tag"),
        ("paibench_u_unstripped", "A</think>C", "A", "reasoning stays"),
        ("physical_ai_understanding", "A red car", "A", "an article"),
        ("physical_ai_understanding", "D", "D", "a letter without a text"),
        ("physical_ai_understanding", "It will Turn left now", "A", "the option that is listed first"),
        ("physical_ai_understanding", "it will turn left", None, "case of the text counts"),
        ("physical_ai_understanding", "e!", "E", "compared at last, whatever the options"),
        ("substring", "Yes, the cup is now empty", None, "a no inside of a word"),
        ("substring", "I cannot determine this", "no", "a no inside of a word"),
    ],
)
def test_table(dialect, reply, value, why):
    assert read_reference(dialect, reply, options=TURNS, question_id="q").value == value


def test_a_draw_depends_on_the_question_alone():
    found = [read_reference("paibench_u", reply, question_id="video 7").value for reply in ("", "no idea", "x " * 30)]
    expected = "ABCDE"[int(hashlib.sha256(b"video 7").hexdigest(), 16) % 5]
    assert found == [expected] * 3
    drawn = Counter(read_reference("paibench_u", "", question_id=str(number)).value for number in range(5000))
    assert set(drawn) == set("ABCDE")
    assert all(880 < count < 1120 for count in drawn.values())  # four standard deviations


def test_no_reply():
    assert read_reference("paibench_u", None).failure == Flag.EMPTY
    assert read_reference("substring", 3, key="yes").failure == Flag.NOT_TEXT
    assert read_reference("substring", "to the right", key="Left").value == "to the right"


def test_the_page_names_every_dialect_and_step(request):
    page = (request.config.rootpath / "docs" / "replies.md").read_text()
    steps = {name for dialect in ("substring", *COLUMNS) for name, _ in load_dialect(dialect).steps}
    assert [name for name in (*dialect_names(), *steps) if f"`{name}`" not in page] == []


def test_names():
    assert {"substring", *COLUMNS} <= set(dialect_names())
    with pytest.raises(InputError, match=r"no dialect 'mine'; there are .*paibench_u"):
        load_dialect("mine")
    assert load_dialect("paibench_u").digest != load_dialect("paibench_u_unstripped").digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("steps: []", "must have a list of steps"),
        ("steps: [shout]", "'shout' is no step; there are delete,"),
        ("steps: [{delete: x}]", "delete takes a list of texts"),
        ("steps: [{draw: {letters: ''}}]", "draw takes a mapping with letters"),
        ("steps: [strip]", "must end with draw or equals_letter"),
        ("steps: [{lower: 1}]", "lower takes no argument"),
        ("steps: [strip]\naccept: {'yes': {holds: 'yes', lacks: 'no'}}", "other_keys: held"),
        ("steps: [strip]\naccept: {'yes': 'yes'}\nother_keys: held", "'yes' must map to"),
        ("steps: [strip]\nseed: 1", "unknown fields"),
        ("base: paibench_u\nsteps: [strip]", "without"),
    ],
)
def test_a_file_is_checked(tmp_path, monkeypatch, content, message):
    folder = tmp_path / "dialects"
    folder.mkdir()
    (folder / "own.yaml").write_text(content)
    monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path))
    with pytest.raises(InputError, match=message):
        load_dialect("own")
