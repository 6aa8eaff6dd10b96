"""What may be asked of a model and how its replies are decoded; the second stage is checked; domains, update, notes."""

import pytest

from api.services.answer_tables import answer_tables
from api.services.results import RunResults
from api.services.understanding.checking import check_capabilities, check_request
from api.services.understanding.decoding import decoding_of
from api.services.understanding.request import Condition, TaskRequest
from api.services.understanding.running import Working, run_task
from gen_eval.mllm import Capabilities, Reply, load_model
from gen_eval.mllm.asking import Limits
from gen_eval.mllm.entry import entry_of
from gen_eval.records import InputError
from gen_eval.records.run import RunFolder
from understanding import task

QUICK = Limits(attempts=1, first_wait=0.0)


def request(**more):
    return TaskRequest("pai/u", None, "vlm", **more)


def model(**more):
    return entry_of("vlm", {"id": "vlm", **more})


def decoding(entry, condition=None, **more):
    return decoding_of(request(**more), condition or Condition(), entry, task("pai/u"))


@pytest.fixture
def ask(tmp_path):
    """`ask(data, out=..., **request)`: without the video, so that nothing is decoded."""

    def go(data, out="run", how=None, **more):
        asked = TaskRequest("pai/u", data, "vlm", label="alpha", frames=(0,), **more)
        return run_task(asked, tmp_path / out, how or Working(limits=QUICK))

    return go


def key_of(request):
    return "ABC"[int(request.about["question"].split("_")[1]) % 3]


# --- decoding ---------------------------------------------------------------------


def test_makers_decoding_takes_what_the_entry_states_and_leaves_the_rest_to_the_form():
    found = decoding(load_model("qwen3-vl-8b"), decoding="makers")
    assert found.options.asked == {
        "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.0, "presence_penalty": 1.5,
        "max_tokens": 1024,
    }  # fmt: skip
    assert found.record["by"] == "makers"
    assert found.record["stated"] == dict(load_model("qwen3-vl-8b").defaults)
    assert decoding(load_model("qwen3-vl-8b")).options.temperature == 0.0


def test_published_rows_are_asked_as_their_authors_say():
    gpt, intern = load_model("gpt-5"), load_model("internvl3.5-8b")
    assert decoding(gpt, decoding="makers").options.effort == "minimal"
    assert decoding(gpt, Condition(effort="medium"), decoding="makers").options.effort == "medium"
    assert decoding(gpt).options.effort is None
    assert decoding(intern, decoding="makers").preset == "8-uniform"
    assert decoding(intern, decoding="makers", preset="4fps").preset == "4fps"
    assert decoding(intern, decoding="makers").record["published"] == {"preset": "8-uniform"}


@pytest.mark.parametrize("mode", ["switch", "always", "effort"])
def test_a_model_that_may_reason_gets_the_room_unless_reasoning_is_off(mode):
    entry = model(thinking={"mode": mode})
    assert decoding(entry).options.max_tokens == 16384
    assert decoding(entry).options.thinking is None
    assert decoding(entry, Condition(thinking=False)).options.max_tokens == 1024
    assert decoding(model()).options.max_tokens == 1024


def test_what_is_said_outright_comes_first():
    found = decoding(load_model("qwen3-vl-8b"), decoding="makers", temperature=0.2, top_p=0.5)
    assert (found.options.temperature, found.options.top_p, found.options.top_k) == (0.2, 0.5, 20)
    assert found.record["said"] == {"temperature": 0.2, "top_p": 0.5}


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"seeds": (0, 1)}, "temperature 0.*--temperature 0.7"),
        ({"seeds": (0, 1), "temperature": 0.0}, "same reply"),
        ({"decoding": "makers"}, "states no decoding"),
        ({"decoding": "mine"}, "form or makers"),
        ({"temperature": -1.0}, "--temperature"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"top_p": 0.0}, "--top-p"),
    ],
)
def test_decoding_that_cannot_be_used(more, match):
    with pytest.raises(InputError, match=match):
        decoding(model(), **more)


def test_seeds_are_for_replies_that_are_sampled():
    assert decoding(model(), seeds=(0, 1), temperature=0.7).options.temperature == 0.7
    assert decoding(model(), seeds=(3,)).options.temperature == 0.0
    decoding(load_model("gpt-5"), seeds=(0, 1))  # takes no temperature: it samples as its provider has it


def test_decoding_is_in_the_manifest(ask, published_folder, scripted):
    scripted(key_of)
    found = ask(published_folder(2, clips=[]), temperature=0.5)
    asked = RunResults.read(found.runs[0].path).manifest["asked"]
    assert asked["decoding"] == {"by": "form", "stated": {}, "said": {"temperature": 0.5}, "published": {}}
    assert asked["options"]["temperature"] == 0.5


# --- reasoning and efforts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thinking", "more", "match"),
    [
        ({"mode": "none"}, {"thinking": (True, False)}, "does not reason first"),
        ({"mode": "none"}, {"thinking": (False,)}, "does not reason first"),
        ({"mode": "always"}, {"thinking": (True,)}, "always reasons"),
        ({"mode": "none"}, {"efforts": ("low",)}, "has no efforts.*leave --effort out"),
        ({"mode": "switch", "template_key": "x"}, {"efforts": ("low",)}, "use --thinking on,off"),
        ({"mode": "effort", "efforts": ["low", "high"]}, {"efforts": ("some",)}, "it has low, high"),
        ({"mode": "effort", "efforts": ["low"]}, {"efforts": ("low",), "thinking": (False,)}, "contradict"),
    ],
)
def test_conditions_that_the_entry_does_not_have(thinking, more, match):
    with pytest.raises(InputError, match=match):
        check_request(request(**more), model(thinking=thinking))


@pytest.mark.parametrize(
    ("thinking", "more", "match"),
    [
        ({"mode": "switch"}, {"thinking": (True, False)}, "template_key"),
        ({"mode": "switch", "template_key": "think"}, {"thinking": (False,)}, "does not pass think on"),
        ({"mode": "effort", "efforts": ["low"]}, {"thinking": (True,)}, "the efforts low; use --effort"),
        ({"mode": "effort", "efforts": ["low"]}, {"efforts": ("low",)}, "an effort of vlm"),
    ],
)
def test_conditions_that_the_backend_does_not_heed(thinking, more, match):
    entry = model(thinking=thinking)
    with pytest.raises(InputError, match=match):
        check_capabilities(request(**more), entry, Capabilities(frozenset({"temperature"})))
    check_capabilities(request(**more), entry, Capabilities(frozenset({"thinking", "effort"})))


# --- the second stage ---------------------------------------------------------------------


def test_a_reader_that_answers_the_question_itself_is_named(ask, published_folder, scripted):
    scripted(lambda request: "no idea", text=lambda request: "<think>The robot turns.</think>B")
    found = ask(published_folder(4, clips=[]), second_stage="text")
    stage = found.to_json()["aggregate"]["second_stage"]
    assert stage["check"] == {"asked": 6, "none": 0, "answered": 6, "unclear": 0, "failed": 0}
    (table, _) = answer_tables(RunResults.read(found.runs[0].path))
    (warning,) = table.warnings
    assert "the second stage text answers questions itself" in warning
    assert "6 replies" in warning


def test_the_reader_is_not_checked_where_nothing_is_left_to_read(ask, published_folder, scripted):
    clients = scripted(key_of, text=lambda request: "NONE")
    found = ask(published_folder(4, clips=[]), second_stage="text")
    assert not clients["text"][0].asked
    assert found.to_json()["aggregate"]["second_stage"]["check"]["asked"] == 0


# --- what a report says ---------------------------------------------------------------------


def test_notes_of_the_report_are_made_from_the_run_folder(ask, published_folder, scripted):
    def say(request):
        return Reply("A" if request.about["question"] != "u_00001" else "hm", ignored=("top_p",))

    scripted(say, text=lambda request: "NONE")
    found = ask(published_folder(6, clips=[]), rotations=2, second_stage="text")
    results = RunResults.read(found.runs[0].path)
    corrected, reference = answer_tables(results)
    notes = "\n".join(corrected.notes)
    assert "Random guess 33.3 %, always A 33.3 %." in notes
    assert "Asked: 10 answers." in notes
    assert "Options moved on by so many places, accuracy over 2 questions: 0 " in notes
    assert "Second stage checked with 6 replies that choose nothing: NONE for 6." in notes
    assert "Without effect with this model: top_p (10 replies)." in notes
    assert not corrected.warnings
    assert any(note.startswith("Options moved on") for note in reference.notes)
    rotation = found.to_json()["aggregate"]["rotation"]
    assert rotation["rotations"]["0"]["n"] == 2
    assert rotation["letters"]["A"]["chosen"] == 1.0


# --- domains and update ---------------------------------------------------------------------


def test_only_the_questions_of_some_groups(ask, published_folder, scripted):
    clients = scripted(key_of)
    data = published_folder(6, clips=[])
    found = ask(data, domains=("cs_time", "Embodied Reasoning"))
    assert [row["id"] for row in found.to_json()["rows"]] == ["u_00001", "u_00002", "u_00004", "u_00005"]
    assert len(clients["vlm"][0].asked) == 4
    assert RunResults.read(found.runs[0].path).manifest["domains"] == ["Embodied Reasoning", "cs_time"]
    with pytest.raises(InputError, match=r"group nowhere; there are .*cs_space"):
        ask(data, domains=("nowhere",))


def test_an_update_keeps_the_answers_that_still_hold(ask, published_folder, scripted, tmp_path):
    clients = scripted(key_of)
    data = published_folder(6, clips=[])
    ask(data, limit=4)
    with pytest.raises(InputError, match="--update"):
        ask(data)
    again = Working(limits=QUICK, update=True)
    whole = ask(data, how=again)
    assert [len(one.asked) for one in clients["vlm"]] == [4, 0, 2]
    assert whole.to_json()["aggregate"]["n"] == 6
    ask(data, how=again, temperature=0.5)
    assert len(clients["vlm"][3].asked) == 6  # another decoding: no answer holds
    fresh = ask(data, out="fresh", temperature=0.5)
    with RunFolder(tmp_path / "run") as one, RunFolder(tmp_path / "fresh") as other:
        assert list(one.rows()) == list(other.rows())
    assert fresh.to_json()["aggregate"]["metrics"]["accuracy"] == 1.0
