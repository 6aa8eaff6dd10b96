"""What the terminal says of a task beside its accuracy, and of data that is not named well."""

import pytest

import understanding
from api.services.understanding.remarks import further_remarks
from gen_eval.mllm import load_model
from gen_eval.records import InputError


def test_rotation_second_stage_and_options_without_effect_are_told():
    rotation = {
        "questions": 2,
        "rotations": {"0": {"correct": 1, "n": 2, "accuracy": 0.5}, "1": {"correct": 0, "n": 0, "accuracy": None}},
        "same_answer": {"n": 1, "same": 1},
        "letters": {"A": {"chosen": 1.0, "right": 0.25}, "B": {"chosen": 0.0, "right": 0.75}},
    }
    stage = {"asked": 3, "read": 2, "share": 0.5, "accuracy_without": 0.25}
    told = list(further_remarks({"rotation": rotation, "second_stage": stage, "ignored_options": {"top_k": 1}}))
    assert told == [
        "second stage: shown 3 unreadable replies, read 2; accuracy without it 25.00 %",
        "options moved on by so many places, accuracy over 2 questions: 0 50.0 %, 1 –",
        "the same option under every order: 1 of 1 questions that were read under all of them",
        "letters chosen (right): A 100 % (25 %), B 0 % (75 %)",
        "without effect with this model: top_k (1 reply)",
    ]
    assert list(further_remarks({"ignored_options": {}})) == []


def test_a_folder_without_the_usual_names_says_which_files_there_are(write_lines):
    path = write_lines("understanding.jsonl", [])
    with pytest.raises(InputError, match=r"understanding\.jsonl; name the file that has them"):
        understanding.task("pai/u").samples(path.parent)


def test_an_unknown_model_is_called_a_model_entry():
    with pytest.raises(InputError, match=r"^no model entry named 'nobody'; there are .*qwen3-vl-8b"):
        load_model("nobody")
