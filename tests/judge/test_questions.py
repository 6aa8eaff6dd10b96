"""Questions of a judge: the public layout and JSON lines, and what is listed in place of being asked."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_eval.records import InputError, Rejection
from gen_eval.scenes import write_benchmark
from judge.questions import JudgeQuestion, is_question_file, load_questions

YES_NO = {"A": "Yes", "B": "No"}


def record(uid="q0", **more):
    return {"uid": uid, "question": "Is it red?", "index2ans": YES_NO, "answer": "A", "task": "Space: x", **more}


@pytest.fixture
def layout(tmp_path):
    """A folder in the public layout: `layout({sample: records or text})`."""

    def make(files):
        folder = tmp_path / "data" / "vqa"
        folder.mkdir(parents=True)
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
        return folder.parent

    return make


@pytest.fixture
def lines(tmp_path):
    def make(*records, name="questions.jsonl"):
        path = tmp_path / name
        text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return make


def reasons(found):
    return [(one.where, one.reason) for one in found.rejected]


def test_public_layout(layout):
    data = layout({"av_2": [record(), record("q1", answer="B", extra=[1])], "av_1": [record("x")]})
    found = load_questions(data, known=["av_1", "av_2"])
    assert list(found.by_sample) == ["av_1", "av_2"]
    second = found.by_sample["av_2"][1]
    assert (second.uid, second.truth, second.binary, second.task) == ("q1", "No", "no", "Space: x")
    assert second.extra == {"extra": [1]}
    assert found.rejected == found.repeated == ()
    assert load_questions(data / "vqa").by_sample == found.by_sample


@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz"])
def test_json_lines(lines, name):
    path = lines({"id": "a", **record()}, "", {"id": "a", **record("q1")}, {"id": "b", **record()}, name=name)
    assert is_question_file(path)
    assert {sample: len(own) for sample, own in load_questions(path).by_sample.items()} == {"a": 2, "b": 1}


def test_a_uid_that_came_before_gets_a_number(layout):
    data = layout({"a": [record(), record("q0#2"), record(), record("q1"), record()]})
    found = load_questions(data)
    assert [one.uid for one in found.by_sample["a"]] == ["q0", "q0#2", "q0#3", "q1", "q0#4"]
    assert [one.listed_uid for one in found.by_sample["a"]] == ["q0", "q0#2", "q0", "q1", "q0"]
    assert found.repeated == (("a", "q0#3"), ("a", "q0#4"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", Rejection.LINE_NOT_JSON),
        ("[" * 100_000, Rejection.LINE_NOT_JSON),
        ('[{"uid": NaN}]', Rejection.LINE_NOT_JSON),
        ("{}", Rejection.MALFORMED_RECORD),
        ([3], Rejection.MALFORMED_RECORD),
        ([record(uid=7)], Rejection.MALFORMED_RECORD),
        ([record(uid="")], Rejection.MALFORMED_RECORD),
        ([record(question=None)], Rejection.MISSING_FIELD),
        ([record(question="\udcff")], Rejection.MALFORMED_RECORD),
        ([record(question="a\0b")], Rejection.MALFORMED_RECORD),
        ([record(index2ans=["Yes", "No"])], Rejection.MALFORMED_RECORD),
        ([record(index2ans={"A": 1})], Rejection.MALFORMED_RECORD),
        ([record(task=3)], Rejection.MALFORMED_RECORD),
        ([record(answer="C")], Rejection.NO_TRUTH),
        ([record(answer=None)], Rejection.NO_TRUTH),
        ([record(answer=["A"])], Rejection.NO_TRUTH),
    ],
)
def test_what_cannot_be_asked_is_listed_and_the_rest_is_asked(layout, content, reason):
    found = load_questions(layout({"bad": content, "good": [record()]}), known=["bad", "good"])
    assert list(found.by_sample) == ["good"]
    assert [one.reason for one in found.rejected] == [reason, Rejection.NO_TRUTH]
    assert found.rejected[0].where.startswith("vqa/bad.json")


def test_one_bad_question_leaves_the_others_of_its_file(layout):
    found = load_questions(layout({"a": [record(), record("q1", answer="Z"), record("q2")]}))
    assert [one.uid for one in found.by_sample["a"]] == ["q0", "q2"]
    assert reasons(found) == [("vqa/a.json[1]", Rejection.NO_TRUTH)]
    assert "'Z'" in found.rejected[0].message


def test_files_of_no_sample_and_samples_without_a_question(layout):
    found = load_questions(layout({"a": [record()], "stranger": [record()], "empty": []}), known=["a", "empty", "none"])
    assert reasons(found) == [
        ("vqa/stranger.json", Rejection.UNKNOWN_VIDEO),
        ("empty", Rejection.NO_TRUTH),
        ("none", Rejection.NO_TRUTH),
    ]


def test_lines_of_no_sample_and_broken_lines(lines):
    path = lines({"id": "a", **record()}, "{", {"id": "b", **record()}, {"id": 7, **record()}, [1], record())
    found = load_questions(path, known=["a"])
    assert [reason for _, reason in reasons(found)] == [
        Rejection.LINE_NOT_JSON,
        Rejection.UNKNOWN_VIDEO,
        Rejection.MALFORMED_RECORD,
        Rejection.MALFORMED_RECORD,
        Rejection.MISSING_FIELD,
    ]
    assert found.rejected[0].where == "questions.jsonl:2"


def test_places_without_questions_are_refused(tmp_path, lines):
    with pytest.raises(InputError, match="vqa/"):
        load_questions(tmp_path)
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(InputError, match=r"\.jsonl"):
        load_questions(tmp_path / "x.txt")
    with pytest.raises(InputError, match="no judge question"):
        load_questions(lines({"id": "a"}))
    assert not is_question_file(lines({"id": "a", "prompt_en": "x"}, name="samples.jsonl"))
    assert not is_question_file(lines(name="empty.jsonl"))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"x" * 100)[:20])
    with pytest.raises(InputError, match="cannot be read"):
        load_questions(tmp_path / "cut.jsonl.gz")


def test_scenes_ask_the_same_in_both_forms(tmp_path):
    write_benchmark(tmp_path, kinds=["falling"], size=(16, 16), frames=2, controls=False)
    folder, file = load_questions(tmp_path), load_questions(tmp_path / "questions.jsonl")
    assert folder.by_sample == file.by_sample
    assert {one.binary for one in folder.by_sample["physics_falling_000"]} == {"yes", "no"}


def test_other_answers_have_no_word():
    question = JudgeQuestion("a", "q", "Which side?", {"A": "Left", "B": " YES "}, "A")
    assert (question.truth, question.binary) == ("Left", None)
    assert JudgeQuestion("a", "q", "?", question.options, "B").binary == "yes"
    with pytest.raises(ValueError, match="none of A, B"):
        JudgeQuestion("a", "q", "?", question.options, "C")


@given(st.lists(st.sampled_from(["q", "q#2", "q#3", "r"]), max_size=8))
def test_uids_are_unique_and_keep_their_order(tmp_path_factory, uids):
    path = tmp_path_factory.mktemp("q") / "q.jsonl"
    path.write_text("".join(json.dumps({"id": "a", **record(uid)}) + "\n" for uid in uids) or "\n")
    own = load_questions(path, known=["a"]).by_sample.get("a", ())
    assert [one.listed_uid for one in own] == uids
    assert len({one.uid for one in own}) == len(uids)
