"""Records with values of the wrong kind in the right places: listed, never a surprise, and no file is waited for."""

import datetime
import json
import os

import pytest

from gen_eval.data.records_file import Refused, object_of, real_of, seed_of
from gen_eval.records import InputError
from judge.predictions import read_replies
from judge.questions import JudgeQuestion, load_questions
from understanding.data import pai_u
from understanding.data.predictions import read_predictions

ASKED = {"av_1": [JudgeQuestion("av_1", uid, "?", {"A": "Yes", "B": "No"}, "A") for uid in ("a", "b")]}


@pytest.mark.parametrize("value", [b"x", datetime.date(2025, 1, 1), {1, 2}])
def test_values_that_json_has_not_are_refused(value):
    with pytest.raises(Refused):
        object_of({"question": value})


def test_numbers_and_seeds():
    assert [real_of(one) for one in (1, -0.5, True, "1", None, 10**400)] == [1.0, -0.5, None, None, None, None]
    assert [seed_of(one) for one in (0, -1, "x")] == ["0", "-1", "x"]
    for bad in (True, 1.5, "", [], {}, "\0"):
        with pytest.raises(Refused, match="seed must be"):
            seed_of(bad)


def test_stored_replies_with_odd_seeds_and_numbers(tmp_path):
    own = {"id": "av_1", "uid": "a", "reply": "Yes"}
    seeds = [True, 1.5, [], "", "\0", 1, "2"]
    lines = [{**own, "seed": seed} for seed in seeds] + [{**own, "logprobs": {"Yes": 10**400, "No": -1}}]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = read_replies(path, ASKED)
    assert [key[1] for key in found.answers] == ["1", "2", "default"]
    assert found.answers["av_1", "default", "a"].chances == {"No": -1.0}
    assert [one.where for one in found.rejected] == [f"replies.jsonl:{number}" for number in range(1, 6)]


def test_public_results_with_odd_seeds(tmp_path):
    results = [{"uid": "a", "model_answers": ["Yes", "No"]}]
    path = tmp_path / "detailed.json"
    odd, good = ({"video_id": "av_1", "seeds": seeds, "results": results} for seeds in ([None, {}], [0, "1"]))
    path.write_text(json.dumps([odd, good]))
    found = read_replies(path, ASKED)
    assert {key[1]: one.reply for key, one in found.answers.items()} == {"0": "Yes", "1": "No"}
    assert ["seed must be" in one.message for one in found.rejected] == [True]


@pytest.mark.parametrize("change", [{"task": "a\0"}, {"index2ans": {"A": "Yes\0"}}, {"task": 5}])
def test_a_question_that_no_store_takes_is_listed(tmp_path, change):
    (tmp_path / "vqa").mkdir()
    one = {"uid": "a", "question": "?", "index2ans": {"A": "Yes"}, "answer": "A"}
    (tmp_path / "vqa" / "av_1.json").write_text(json.dumps([one, {**one, "uid": "b", **change}]))
    found = load_questions(tmp_path)
    assert [question.uid for question in found.by_sample["av_1"]] == ["a"]
    assert [rejected.where for rejected in found.rejected] == ["vqa/av_1.json[1]"]


def test_pipes_are_not_waited_for(tmp_path):
    (tmp_path / "vqa").mkdir()
    os.mkfifo(tmp_path / "vqa" / "av_1.json")
    (rejected,) = load_questions(tmp_path).rejected
    assert (rejected.where, rejected.message) == ("vqa/av_1.json", "it is no regular file")
    for name in ("pipe.parquet", "pipe.json"):
        os.mkfifo(tmp_path / name)
    row = {"question": "?", "index2ans": {"A": "x"}, "answer": "A", "video_path": "v.mp4"}
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    assert [one.id for one in pai_u.load(tmp_path).samples] == ["u_00000"]


def test_frames_and_rates_beyond_all_numbers_are_left_out(tmp_path):
    row = {"question": "?", "index2ans": {"A": "x", "B": None}, "answer": "A"}
    video = {"path": "v.mp4", "fps": 10**400, "n_frames": 12}
    (tmp_path / "rows.json").write_text(json.dumps([{**row, "video_path": video}]))
    (sample,) = pai_u.load(tmp_path).samples
    assert (sample.media.fps, sample.media.n_frames) == (None, 12)


def test_a_table_with_an_open_quote_is_damaged(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text('index\tprediction\n0\tA\n1\t"the answer is\n2\tB\n3\tC\n')
    with pytest.raises(InputError, match="cannot be read as a table"):
        read_predictions(path)
