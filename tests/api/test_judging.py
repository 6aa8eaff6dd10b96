"""Services of judges: one question, calibration, agreement."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from api.services.judging import CalibrationRequest, agree, ask_one, calibrate_judge
from api.services.judging.clips import FLAWS, clips_of
from gen_eval.media import write_clip
from gen_eval.mllm import ChatError, Reply, TokenChance, Usage
from gen_eval.mllm.asking import Asker, Limits
from gen_eval.records import InputError, ItemError, MissingPart, Reason
from gen_eval.records.run import RunFolder
from judge.calibration import Looking
from judge.entry import load_judge
from judge.questions import JudgeQuestion
from judge.service import ask, judge_video
from judge.simulated import Client

SMALL = {"scenes": 4, "size": (32, 48), "fps": 8.0, "frames": 17}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Runs of the two shipped simulated judges on the same few small clips."""
    home = tmp_path_factory.mktemp("calibrated")
    return {
        name: (calibrate_judge(CalibrationRequest(name, **SMALL), home / name), home / name)
        for name in ("simulated", "simulated-blind")
    }


def test_one_that_looks_and_one_that_does_not(calibrated):
    looks, blind = (calibrated[name][0] for name in ("simulated", "simulated-blind"))
    assert looks.calibration.looking is Looking.LOOKS
    assert blind.calibration.looking is Looking.DOES_NOT_LOOK
    assert "does not look" in blind.sentence
    assert looks.calibration.accuracy.value > 0.75
    assert blind.calibration.gain_over_shuffled.value == 0
    assert looks.calibration.repeatability.value == 1
    assert looks.calibration.twins.n >= 3
    assert looks.confidence.absent == 0
    for one in (looks, blind):
        document = one.to_json()
        assert document["judge"]["simulated"] is True
        assert "simulated" in document["judge"]["title"]


def test_a_second_call_asks_nothing_and_changes_nothing(calibrated):
    found, out = calibrated["simulated"]
    before = (out / "calibration.json").read_bytes()
    again = calibrate_judge(CalibrationRequest("simulated", **SMALL), out)
    assert (again.tally.requests, again.to_json()) == (0, found.to_json())
    assert (out / "calibration.json").read_bytes() == before
    assert json.loads(before) == found.to_json()
    with RunFolder(out) as run:
        conditions = {answer.condition for answer in run.answers()}
    assert conditions == {"", "without_video", "shuffled", "other_order", "repeat:1"}


def test_another_request_needs_another_folder(calibrated):
    with pytest.raises(InputError, match="another run"):
        calibrate_judge(CalibrationRequest("simulated", **{**SMALL, "scenes": 2}), calibrated["simulated"][1])
    with pytest.raises(InputError, match="2 scenes"):
        calibrate_judge(CalibrationRequest("simulated", scenes=1), calibrated["simulated"][1])


def test_judges_agree_as_far_as_they_do(calibrated):
    paths = [path for _, path in calibrated.values()]
    found = agree(paths, resamples=100)
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"]) == ("simulated", "simulated-blind")
    assert pair["overall"]["n"] == calibrated["simulated"][0].calibration.accuracy.n
    assert pair["overall"]["kappa"] < 0.5
    assert set(pair["by_domain"]) == {"physics", "common_sense", "industry", "av"}
    with pytest.raises(InputError, match="twice"):
        agree([paths[0], paths[0], paths[0]])
    with pytest.raises(InputError, match="two judges"):
        agree(paths[:1])


def test_clips_are_scenes_with_broken_twins():
    clips = clips_of(16, **{name: value for name, value in SMALL.items() if name != "scenes"})
    true, broken = ([one for one in clips if (one.flaw is None) is clean] for clean in (True, False))
    assert len({one.name for one in clips}) == len(clips) == 32
    assert {one.flaw for one in broken} == set(FLAWS)
    keys = {(one.scene, question.uid): question for one in true for question in one.questions}
    for twin in broken:
        assert twin.turned
        for question in twin.questions:
            if question.uid in twin.turned:
                assert keys[twin.scene, question.uid].answer != question.answer
    shares = [question.binary == "yes" for one in clips for question in one.questions]
    assert 0.4 < sum(shares) / len(shares) < 0.6  # a judge that always says one word is near a half


# --- asking as functions ---------------------------------------------------------------------------------------------


class Scripted(Client):
    """Answers by a table of question -> reply text or error."""

    replies: dict

    async def reply(self, request):
        found = self.replies[request.about["question"].split("/")[-1]]
        if isinstance(found, Exception):
            raise found
        chances = {"Yes": math.log(0.75), "No": math.log(0.25)}
        return Reply(found, usage=Usage(100, 2), logprobs=(TokenChance("Yes", chances["Yes"], chances),), model="m")


@pytest.fixture
def scripted():
    judge = load_judge("simulated")
    price = {"input": 1.0, "output": 10.0, "as_of": "2025-01-01"}
    model = type(judge.model).model_validate({**judge.model.model_dump(), "price": price})
    judge = replace(judge, model=model)

    def make(**replies):
        client = Scripted(model)
        client.replies = replies
        return Asker(client, limits=Limits(attempts=1)), judge

    return make


@pytest.fixture
def clip(tmp_path, make_clip):
    path = tmp_path / "av_1__0.mp4"
    write_clip(path, make_clip(1), 8.0)
    return path


def test_one_question(scripted, clip):
    asker, judge = scripted(**{"": "Yes, it is."})
    found = asyncio.run(ask(clip, "Is it red?", asker, judge))
    assert (found.reading.value, found.answer.reply, found.currency) == ("yes", "Yes, it is.", "USD")
    assert found.chance == pytest.approx(0.75)
    assert found.answer.cost == pytest.approx((100 + 20) / 1e6)
    document = found.to_json()
    assert document["reading"]["rule"]
    assert document["shown"]["preset"] == "2fps-qwen-0.0.8"
    assert len(document["shown"]["indices"]) == 4
    json.dumps(document, allow_nan=False)
    with pytest.raises(InputError, match="empty"):
        asyncio.run(ask(clip, " ", asker, judge))


def questions(*uids):
    return [JudgeQuestion("av_1", uid, f"{uid}?", {"A": "Yes", "B": "No"}, "A") for uid in uids]


def test_all_questions_of_a_video(scripted, clip):
    asker, judge = scripted(a="Yes.", b="No.", c="I cannot tell")
    found = asyncio.run(judge_video(clip, questions("a", "b", "c"), asker, judge))
    assert [one.right for one in found.verdicts] == [True, False, False]
    assert found.value == pytest.approx(1 / 3)
    assert [one.reply for one in found.answers] == ["Yes.", "No.", "I cannot tell"]


def test_what_fails_is_in_the_verdicts(scripted, clip, tmp_path):
    down = ChatError(Reason.ENDPOINT_ERROR, "down")
    declined = ChatError(Reason.CONTENT_FILTER, "declined")
    asker, judge = scripted(a="Yes.", b=down, c=declined)
    found = asyncio.run(judge_video(clip, questions("a", "b", "c"), asker, judge))
    assert [one.right for one in found.verdicts] == [True, None, False]
    assert found.value is None  # a question has no answer
    assert asyncio.run(judge_video(clip, questions("a", "c"), asker, judge)).value == 0.5
    absent = asyncio.run(judge_video(tmp_path / "no.mp4", questions("a"), asker, judge))
    assert (absent.value, absent.verdicts[0].reason) == (None, Reason.MISSING_VIDEO)
    asker, judge = scripted(**{"": down})
    with pytest.raises(ItemError, match="down"):
        asyncio.run(ask(clip, "Is it red?", asker, judge))


def test_ask_one_names_who_answered(clip):
    found = ask_one(clip, "Is it red?", judge="simulated")
    assert found["judge"]["simulated"] is True
    assert found["prompt"]["name"] == "yes-no"
    assert found["reading"]["value"] in ("yes", "no")
    assert ask_one(None, "Is it red?", judge="simulated", prompt="no-yes")["prompt"]["name"] == "without-video"
    with pytest.raises(InputError, match="no video"):
        ask_one(clip.with_name("absent.mp4"), "Is it red?", judge="simulated")
    with pytest.raises(MissingPart):
        ask_one(clip, "Is it red?", judge="pai-g", endpoint="http://127.0.0.1:9/v1")


def test_the_command_prints_one_document(cli, clip):
    found = cli("judge", "ask", clip, "--question", "Is it red?", "--judge", "simulated-blind", "--json")
    assert found.code == 0, found
    assert found.json["judge"]["name"] == "simulated-blind"
    assert "simulated" in found.err
