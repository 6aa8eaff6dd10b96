"""`understand run` with a model that says what the test tells it to: rows, resume, conditions, rotation, seeds."""

import json
from collections import Counter

import pytest

from api.services.results import RunResults
from api.services.understanding.comparing import compare_runs
from api.services.understanding.request import TaskRequest
from api.services.understanding.running import Working, run_task
from gen_eval.mllm import ChatError, Frames, Reply
from gen_eval.mllm.asking import Limits
from gen_eval.records import Flag, InputError, Reason
from gen_eval.records.run import RunFolder

QUICK = Working(limits=Limits(attempts=1, first_wait=0.0))
PRESET = "4-frames.yaml"


@pytest.fixture
def ask(tmp_path):
    """`ask(data, out=..., **request)`: run the task, four small frames a clip."""
    preset = tmp_path / PRESET
    preset.write_text("small: {counting: {count: 4}, pixels: {factor: 28, least: 784, most: 3136}}")

    def go(data, out="run", **request):
        given = {"preset": str(preset), "label": "alpha", **request}
        return run_task(TaskRequest("pai/u", data, "vlm", **given), tmp_path / out, QUICK)

    return go


def key_of(request):
    """The right letter of the question, by its number."""
    return "ABC"[int(request.about["question"].split("_")[1]) % 3]


def number_of(request):
    return int(request.about["question"].split("_")[1])


def test_rows_and_numbers(ask, published_folder, scripted):
    scripted(lambda request: key_of(request) if number_of(request) != 4 else "no idea")
    found = ask(published_folder(6))
    document = found.to_json()
    assert document["aggregate"]["metrics"]["accuracy"] == pytest.approx(5 / 6)
    assert document["aggregate"]["unparsed"] == {"no_answer": 1}
    assert document["aggregate"]["groups"]["column"]["cs_space"]["correct"] == 2
    assert [row["value"] for row in document["rows"]] == [1, 1, 1, 1, 0, 1]
    assert document["rows"][4]["flags"][:2] == ["unparsed", "no_answer"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    results = RunResults.read(found.runs[0].path)
    assert results.model == "alpha"
    assert results.aggregate["accuracy"]["corrected"].main.value == pytest.approx(5 / 6)
    assert set(results.groups) == {"cs_space", "cs_time", "er_av"}
    assert not results.absent
    assert found.exit_code == results.exit_code == 0
    shown = results.rows[0].detail["shown"]
    assert (shown["frames"], shown["form"]) == (4, "images")


def test_a_clip_is_decoded_once_for_all_questions_and_seeds(ask, published_folder, scripted, monkeypatch):
    from api.services.understanding import asking

    decoded = Counter()
    show = asking.show

    def counted(path, *args, **kwargs):
        decoded[path.name] += 1
        return show(path, *args, **kwargs)

    monkeypatch.setattr(asking, "show", counted)
    clients = scripted(key_of)
    found = ask(published_folder(6), seeds=(0, 1), rotations=2, temperature=0.7)
    assert decoded == {"000.mp4": 1, "001.mp4": 1, "002.mp4": 1}
    assert len(clients["vlm"][0].asked) == 6 * 2 + 2 * 2 * 2
    assert {(request.options.seed, request.options.temperature) for request in clients["vlm"][0].asked} == {
        (0, 0.7),
        (1, 0.7),
    }
    report = found.to_json()["aggregate"]["rotation"]
    assert (report["questions"], report["seeds"]) == (2, 2)
    assert {one["n"] for one in report["rotations"].values()} == {2}


def test_absent_clips_are_not_asked_about_and_lower_no_score(ask, published_folder, scripted):
    clients = scripted(key_of)
    found = ask(published_folder(6, clips=[0, 2]))
    aggregate = found.to_json()["aggregate"]
    assert aggregate["metrics"]["accuracy"] == 1.0
    assert (aggregate["n"], aggregate["N"]) == (4, 6)
    assert aggregate["coverage"]["without"] == {"missing_media": 2}
    assert aggregate["groups"]["column"]["er_av"]["N"] == 2
    assert len(clients["vlm"][0].asked) == 4
    assert found.exit_code == 1
    rows = {row.sample: row for row in RunResults.read(found.runs[0].path).rows if row.protocol == "corrected"}
    assert rows["u_00002"].reason is Reason.MISSING_MEDIA
    assert rows["u_00002"].value is None


def test_nothing_is_asked_twice_and_what_failed_is_asked_again(ask, published_folder, scripted, tmp_path):
    state = {"broken": True}

    def say(request):
        if state["broken"] and number_of(request) in {1, 4}:
            return ChatError(Reason.ENDPOINT_ERROR, "gone", retry=False)
        return key_of(request)

    clients = scripted(say)
    data = published_folder(6)
    first = ask(data)
    assert first.to_json()["aggregate"]["n"] == 4
    assert first.exit_code == 1
    state["broken"] = False
    second = ask(data)
    assert sorted(number_of(request) for request in clients["vlm"][1].asked) == [1, 4]
    third = ask(data)
    assert not clients["vlm"][2].asked
    whole = ask(data, out="uninterrupted")
    with RunFolder(tmp_path / "run") as one, RunFolder(tmp_path / "uninterrupted") as other:
        assert one.id == other.id
        assert list(one.rows()) == list(other.rows())
    assert second.to_json() == third.to_json() == whole.to_json()


def test_a_stop_in_between_loses_no_answer(ask, published_folder, scripted, tmp_path):
    asked = []

    def say(request):
        asked.append(number_of(request))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return key_of(request)

    scripted(say)
    data = published_folder(6)
    with pytest.raises(KeyboardInterrupt):
        ask(data)
    with RunFolder(tmp_path / "run") as run:
        kept = {int(one.sample.split("_")[1]) for one in run.answers()}
    before = len(asked)
    found = ask(data)
    assert found.to_json()["aggregate"]["metrics"]["accuracy"] == 1.0
    assert sorted(asked[before:]) == sorted(set(range(6)) - kept)


def test_what_a_refusal_and_an_end_for_length_are(ask, published_folder, scripted):
    def say(request):
        if number_of(request) == 0:
            return ChatError(Reason.CONTENT_FILTER, "declined")
        return Reply("I would say that", finish_reason="length") if number_of(request) == 1 else key_of(request)

    scripted(say)
    found = ask(published_folder(4))
    rows = found.to_json()["rows"]
    assert (rows[0]["status"], rows[0]["reason"], rows[0]["value"]) == ("refused", "content_filter", 0.0)
    assert str(Flag.CUT_OFF) in rows[1]["flags"]
    assert found.to_json()["aggregate"]["metrics"]["accuracy"] == 0.5  # a declined answer stays in the denominator
    results = RunResults.read(found.runs[0].path)
    assert results.aggregate["accuracy"]["corrected"].main.value == 0.5


def test_frames_are_compared_on_the_same_questions(ask, published_folder, scripted, words):
    def say(request):
        shown = [part for part in request.parts if isinstance(part, Frames)]
        if not shown:
            assert "video" not in words(request).replace("videos/", "")
            return "A"
        assert len(shown[0].pictures) == 2
        return key_of(request)

    scripted(say)
    found = ask(published_folder(6), frames=(0, 2))
    document = found.to_json()
    assert [one["condition"] for one in document["conditions"]] == ["0 frames", "2 frames"]
    assert [one["aggregate"]["metrics"]["accuracy"] for one in document["conditions"]] == [pytest.approx(1 / 3), 1.0]
    (compared,) = document["comparisons"]
    assert compared["mcnemar"]["only_second"] == 4
    assert compared["mcnemar"]["p_value"] == 0.125
    assert compared["difference"] == pytest.approx(2 / 3)
    folders = [RunResults.read(one.path) for one in found.runs]
    assert [run.condition for run in folders] == ["0 frames", "2 frames"]
    (corrected, _) = compare_runs(*folders)
    assert corrected.found.test == found.comparisons()[0][2].test


def test_shards_are_merged_into_the_same_run(ask, published_folder, scripted, tmp_path):
    from api.services.merging import merge

    made = scripted(key_of)
    data = published_folder(6)
    ask(data, out="whole")
    for place in (1, 2):
        how = Working(limits=QUICK.limits, shard=(place, 2))
        request = TaskRequest("pai/u", data, "vlm", preset=str(tmp_path / PRESET), label="alpha")
        run_task(request, tmp_path / f"shard{place}", how)
    assert [len(one.asked) for one in made["vlm"]] == [6, 3, 3]
    merged = merge([tmp_path / "shard1", tmp_path / "shard2"], tmp_path / "merged")
    assert not merged.missing
    assert RunResults.read(tmp_path / "merged").to_json() == RunResults.read(tmp_path / "whole").to_json()
    with RunFolder(tmp_path / "merged") as run:
        assert len(list(run.answers())) == 6


def test_a_dry_run_counts_questions_and_asks_nobody(published_folder, scripted, tmp_path):
    from api.services.understanding.forecasting import forecast

    made = scripted(key_of)
    request = TaskRequest("pai/u", published_folder(6, clips=(0, 1)), "qwen3-vl-8b", preset="8-uniform", frames=(0, 2))
    expected = forecast(request)
    assert (expected["samples"], expected["without_media"]) == (6, 2)
    assert [one["questions"] for one in expected["conditions"]] == [6, 4]
    assert expected["conditions"][0]["tokens"] < expected["conditions"][1]["tokens"]
    assert not made


def test_text_only_needs_no_clips(ask, published_folder, scripted):
    scripted(key_of)
    found = ask(published_folder(4, clips=[]), frames=(0,))
    assert found.to_json()["aggregate"]["n"] == 4
    assert found.exit_code == 0


def test_rotation_maps_letters_back(ask, published_folder, scripted, words):
    def say(request):  # follows the content: always the letter that "Turn left." stands under
        lines = words(request).splitlines()
        return next(line[0] for line in lines if line.endswith(". Turn left."))

    scripted(say)
    found = ask(published_folder(6), rotations=6)
    report = found.to_json()["aggregate"]["rotation"]
    assert report["questions"] == 6
    assert report["same_answer"] == {"n": 6, "same": 6}
    assert set(report["rotations"]) == {"0", "1", "2"}
    assert [one["correct"] for one in report["rotations"].values()] == [2, 2, 2]
    assert report["letters"]["B"]["chosen"] == pytest.approx(1 / 3)


def test_a_second_stage_reads_only_what_failed(ask, published_folder, scripted, words):
    replies = {0: "the first of them", 1: "B", 2: "", 3: "it is raining", 4: "both A and B", 5: "C"}

    def reader(request):
        return "A" if "the first of them" in words(request) else "NONE"

    clients = scripted(lambda request: replies[number_of(request)], text=reader)
    data = published_folder(6)
    found = ask(data, second_stage="text")
    asked = clients["text"][0].asked
    probes = {"", "The bakery opens at seven in the morning and sells out of bread before noon."}
    checked, read = asked[:6], asked[6:]  # two replies that choose nothing, each with three questions, come first
    assert sum(any(f"----\n{probe}\n----" in words(request) for probe in probes) for request in checked) == 6
    assert sorted(number_of(request) for request in read) == [0, 2, 3, 4]
    assert all(request.options.choices == ("A", "B", "C", "NONE") for request in asked)
    document = found.to_json()
    stage = document["aggregate"]["second_stage"]
    assert (stage["asked"], stage["read"], stage["share"]) == (4, 1, pytest.approx(4 / 6))
    assert stage["accuracy_without"] == pytest.approx(2 / 6)
    assert stage["check"] == {"asked": 6, "none": 6, "answered": 0, "unclear": 0, "failed": 0}
    assert document["aggregate"]["asked_by"]["answers"] == 6  # what the text model said is counted apart
    assert stage["answers"] == 10
    assert document["aggregate"]["metrics"]["accuracy"] == pytest.approx(3 / 6)
    row = document["rows"][0]
    assert (row["parsed"], row["rule"]) == ("A", "second_stage")
    assert row["corrected"]["stages"]["first"]["failure"] == "no_answer"
    ask(data, second_stage="text")
    assert not clients["text"][1].asked


def test_two_models_question_by_question(ask, published_folder, scripted):
    state = {"wrong": {0, 1}}
    scripted(lambda request: "no" if number_of(request) in state["wrong"] else key_of(request))
    data = published_folder(6)
    first = ask(data, out="one", label="one")
    state["wrong"] = {1}
    second = ask(data, out="two", label="two")
    runs = [RunResults.read(one.runs[0].path) for one in (first, second)]
    (corrected, *_) = compare_runs(*runs)
    assert corrected.means == (pytest.approx(4 / 6), pytest.approx(5 / 6))
    assert (corrected.found.test.only_first, corrected.found.test.only_second) == (0, 1)
    assert "clusters" in corrected.found.difference.interval.method


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        ({"frames": (-1,)}, "--frames must be 0 to"),
        ({"frames": (8, 8)}, "more than once"),
        ({"thinking": (True,)}, "does not reason first"),
        ({"rotations": -1}, "--rotations"),
        ({"dialect": "unheard"}, "no dialect"),
        ({"preset": "unheard"}, "no preset"),
        ({"protocol": "unheard"}, "no protocol"),
    ],
)
def test_what_cannot_be_asked_is_said(ask, published_folder, scripted, request_, match):
    scripted(key_of)
    with pytest.raises(InputError, match=match):
        ask(published_folder(2), **request_)
