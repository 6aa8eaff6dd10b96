"""`score domain`: a judge asked about every video, or replies that exist, from folders to rows and every mean."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from api.services.domain import DomainRequest, Judging, score_domain, score_replies
from api.services.results import RunResults
from gen_eval.media import write_clip
from gen_eval.mllm import Capabilities, ChatClient, ChatError, Identity, Reply
from gen_eval.mllm.asking import Limits
from gen_eval.records import InputError, MissingPart, Reason
from gen_eval.records.run import RunFolder

YES_NO = {"A": "Yes", "B": "No"}


def question(uid, answer="A", options=YES_NO, task="Space: Relationship"):
    text = f"Is light {uid} red?"  # equal questions about one clip would be asked once
    return {"uid": uid, "question": text, "index2ans": options, "answer": answer, "task": task}


def lay_out(root, questions):
    """The public layout: a prompt file and vqa/."""
    data = root / "data"
    (data / "vqa").mkdir(parents=True)
    prompts = [{"video_id": name, "prompt_en": name} for name in questions]
    (data / "bench_full_info.json").write_text(json.dumps(prompts))
    for name, own in questions.items():
        (data / "vqa" / f"{name}.json").write_text(json.dumps(own))
    return data


@pytest.fixture
def benchmark(tmp_path, make_clip):
    """Three samples of two domains with two questions each, and two seeds of a model's videos."""

    def make(names=("av_1", "av_2", "robot_1"), seeds=(0, 1)):
        data = lay_out(tmp_path, {name: [question("q0"), question("q1", "B")] for name in names})
        videos = tmp_path / "model" / "videos"
        videos.mkdir(parents=True)
        for place, name in enumerate(names):
            for seed in seeds:
                write_clip(videos / f"{name}__{seed}.mp4", make_clip(10 * place + seed, frames=5, height=32), 8.0)
        return DomainRequest(videos, data, judge="simulated")

    return make


class Scripted(ChatClient):
    """Answers as a function says; counts what it was asked."""

    def __init__(self, entry, say):
        super().__init__(entry)
        self.say, self.asked = say, []

    @property
    def capabilities(self):
        return Capabilities(frozenset({"max_tokens", "seed"}))

    async def identity(self):
        return Identity("scripted", None, "test")

    async def reply(self, request):
        place = (request.about["video"], request.about["question"])
        self.asked.append(place)
        await asyncio.sleep(0)
        said = self.say(*place)
        if isinstance(said, BaseException):
            raise said
        return Reply(said)


@pytest.fixture
def scripted(monkeypatch):
    """Put a scripted judge in the place of the one that is asked for."""

    def use(say):
        made = []

        def opened(entry, **_):
            made.append(Scripted(entry, say))
            return made[-1]

        monkeypatch.setattr("api.services.domain.scoring.open_client", opened)
        return made

    return use


FAST = Judging(limits=Limits(attempts=2, first_wait=0, longest_wait=0))


def rows_of(run, protocol="corrected"):
    return {(row.sample, row.member): row for row in RunResults.read(run).rows if row.protocol == protocol}


# --- what the publication's code gives ------------------------------------------------------------------------------


def golden_cases(goldens):
    return json.loads((goldens / "judge" / "aggregate.json").read_text())["cases"]


def replies_of(case):
    for name, answers in case["answers"].items():
        stem = name.removesuffix(".mp4")
        own = case["questions"].get(stem.rsplit("__", 1)[0], ())
        seen = {}
        for one, reply in zip(own, answers, strict=True):
            seen[one["uid"]] = seen.get(one["uid"], 0) + 1
            uid = one["uid"] if seen[one["uid"]] == 1 else f"{one['uid']}#{seen[one['uid']]}"
            yield {"id": stem, "uid": uid, "reply": reply}


@pytest.mark.parametrize("place", range(6))
def test_stored_replies_give_the_recorded_scores(goldens, tmp_path, place):
    case = golden_cases(goldens)[place]
    data = lay_out(tmp_path, {name: case["questions"].get(name, []) for name in case["prompt_video_ids"]})
    predictions = tmp_path / "replies.jsonl"
    predictions.write_text("".join(json.dumps(one) + "\n" for one in replies_of(case)))
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in case["answers"]:  # replies are scored: nobody looks into the videos
        (videos / name).write_bytes(name.encode())
    score_replies(DomainRequest(videos, data, predictions=predictions), tmp_path / "run")
    document = RunResults.read(tmp_path / "run").to_json()
    found = document["aggregate"]["domain_score"]
    assert found["reference"]["value"] == pytest.approx(case["reference"]["overall_accuracy"], abs=1e-9)
    corrected, expected = document["domain"]["protocols"]["corrected"], case["corrected"]
    assert found["corrected"]["value"] == pytest.approx(expected["video_mean_over_answered"], abs=1e-9)
    assert found["corrected"]["mean_missing_as_zero"] == pytest.approx(expected["video_mean_missing_as_zero"], abs=1e-9)
    assert corrected["video_mean"]["value"] == pytest.approx(found["corrected"]["value"], abs=1e-12)
    assert corrected["question_pooled"]["value"] == pytest.approx(expected["question_pooled"], abs=1e-9)
    assert corrected["domain_macro"]["value"] == pytest.approx(expected["domain_macro"], abs=1e-9)
    domains = {name: table["domain_score"]["corrected"]["value"] for name, table in document["groups"].items()}
    known = {name: value for name, value in domains.items() if value is not None}
    assert known == pytest.approx(expected["by_domain"], abs=1e-9)
    assert corrected["coverage"]["unparsed"] == expected["coverage"]["unparsed"]
    assert corrected["coverage"]["answers"] == expected["coverage"]["answers"]
    assert corrected["coverage"]["videos_expected"] == expected["coverage"]["videos_expected"]
    assert corrected["question_pooled"]["N"] == corrected["video_mean"]["N"] == found["corrected"]["N"]


def test_an_id_of_no_domain_stops_the_public_code_and_not_the_run(tmp_path):
    data = lay_out(tmp_path, {"zoo_1": [question("q0")], "av_1": [question("q0")]})
    predictions = tmp_path / "replies.jsonl"
    lines = [{"id": f"{name}__0", "uid": "q0", "reply": "Yes"} for name in ("zoo_1", "av_1")]
    predictions.write_text("\n".join(map(json.dumps, lines)))
    score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    assert rows_of(tmp_path / "run", "reference")["zoo_1", "0"].reason is Reason.REFERENCE_STOPS
    row = rows_of(tmp_path / "run")["zoo_1", "0"]
    assert (row.value, [str(flag) for flag in row.flags]) == (1.0, ["unknown_domain"])


@pytest.mark.parametrize(
    ("key", "reply", "corrected", "reference", "flags"),
    [
        ("A", "Yes, there is nothing unusual", 1.0, 0.0, ()),  # the reply holds "no" in "nothing"
        ("B", "No, her eyes are closed", 1.0, 0.0, ()),  # and this one "yes" in "eyes"
        ("A", "yes", 1.0, 1.0, ()),
        ("A", "Yes.", 1.0, 1.0, ()),
        ("B", "**No**", 1.0, 1.0, ()),
        ("A", "yes and no", 0.0, 0.0, ("unparsed", "ambiguous")),
        ("A", "", 0.0, 0.0, ("unparsed", "empty")),
        ("A", '{"answer": "ye', 0.0, 0.0, ("unparsed", "bad_json")),
        ("B", "I cannot tell", 0.0, 1.0, ("unparsed", "no_answer")),  # right by accident: "cannot"
        ("A", ["yes"], 0.0, 0.0, ("unparsed", "not_text")),
    ],
)
def test_replies_are_read_as_words_and_failures_have_names(tmp_path, key, reply, corrected, reference, flags):
    data = lay_out(tmp_path, {"av_1": [question("q0", key)]})
    predictions = tmp_path / "replies.jsonl"
    predictions.write_text(json.dumps({"id": "av_1__0", "uid": "q0", "reply": reply}))
    score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    row = rows_of(tmp_path / "run")["av_1", "0"]
    assert row.value == corrected
    assert tuple(map(str, row.flags)) == flags
    assert row.detail["questions"][0]["reply"] == (reply if isinstance(reply, str) else None)
    if isinstance(reply, str):
        assert rows_of(tmp_path / "run", "reference")["av_1", "0"].value == reference


def test_the_public_detailed_results_are_read_back(goldens, tmp_path):
    case = golden_cases(goldens)[1]
    data = lay_out(tmp_path, {name: case["questions"][name] for name in case["prompt_video_ids"]})
    detailed = tmp_path / "detailed.json"
    detailed.write_text(json.dumps(case["reference"]["videos"]))
    score_replies(DomainRequest(None, data, predictions=detailed), tmp_path / "run")
    found = RunResults.read(tmp_path / "run").aggregate["domain_score"]["reference"].main
    assert found.value == pytest.approx(case["reference"]["overall_accuracy"], abs=1e-9)


def test_lines_that_cannot_be_used_are_listed(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0"), question("q1")]})
    lines = [
        {"id": "av_1__0", "uid": "q0", "reply": "yes"},
        {"id": "av_1__0", "uid": "q0", "reply": "no"},
        {"id": "av_1__0", "uid": "q7", "reply": "no"},
        {"id": "av_9__0", "uid": "q0", "reply": "no"},
        {"id": "av_1__0", "uid": "q1", "reply": "no", "raw": "yes"},
        {"id": "av_1__0", "reply": "no"},
        {"id": "av_1__0", "uid": "q1", "error": "HTTP 500", "reply": None},
    ]
    predictions = tmp_path / "replies.jsonl"
    predictions.write_text("\n".join(map(json.dumps, lines)) + "\n{cut")
    score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    results = RunResults.read(tmp_path / "run")
    assert [str(one["reason"]) for one in results.manifest["rejected"]] == [
        "duplicate_reply",
        "unknown_sample",
        "unknown_sample",
        "conflicting_fields",
        "missing_field",
        "line_not_json",
    ]
    row = rows_of(tmp_path / "run")["av_1", "0"]
    assert (row.reason, row.detail["answered"]) == (Reason.ENDPOINT_ERROR, 1)
    assert results.exit_code == 1


def test_replies_about_a_sample_that_the_prompt_file_lacks_are_listed(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0")]})
    (data / "vqa" / "robot_9.json").write_text(json.dumps([question("q0")]))
    predictions = tmp_path / "replies.jsonl"
    lines = [{"id": f"{name}__0", "uid": "q0", "reply": "yes"} for name in ("av_1", "robot_9")]
    predictions.write_text("\n".join(map(json.dumps, lines)))
    score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    rejected = RunResults.read(tmp_path / "run").manifest["rejected"]
    assert ("replies.jsonl:2", "unknown_sample") in {(one["where"], str(one["reason"])) for one in rejected}


def test_a_reply_that_is_not_there_is_wrong_and_stays_in_the_denominator(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0"), question("q1")]})
    predictions = tmp_path / "replies.jsonl"
    predictions.write_text(json.dumps({"id": "av_1__0", "uid": "q0", "reply": "yes"}))
    score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    assert rows_of(tmp_path / "run")["av_1", "0"].value == 0.5
    results = RunResults.read(tmp_path / "run")
    assert results.to_json()["domain"]["protocols"]["corrected"]["coverage"]["missing"] == 1
    assert results.exit_code == 1


def test_a_sample_without_a_line_is_wrong_with_and_without_a_folder_of_videos(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0")], "av_2": [question("q0")]})
    predictions, videos = tmp_path / "replies.jsonl", tmp_path / "videos"
    predictions.write_text(json.dumps({"id": "av_1__0", "uid": "q0", "reply": "yes"}))
    videos.mkdir()
    for name in ("av_1__0.mp4", "av_2__0.mp4"):
        (videos / name).write_bytes(b"not looked into")
    for place, folder in enumerate((None, videos)):
        score_replies(DomainRequest(folder, data, predictions=predictions), tmp_path / f"run{place}")
        main = RunResults.read(tmp_path / f"run{place}").aggregate["domain_score"]["corrected"].main
        assert (main.value, main.n, main.N) == (0.5, 2, 2)


def test_several_systems_in_one_file_are_scored_apart(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0")]})
    predictions = tmp_path / "replies.jsonl"
    lines = [{"id": "av_1__0", "uid": "q0", "reply": said, "model": name} for name, said in (("a", "yes"), ("b", "no"))]
    predictions.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"several systems \(a, b\)"):
        score_replies(DomainRequest(None, data, predictions=predictions), tmp_path / "run")
    for name, value in (("a", 1.0), ("b", 0.0)):
        score_replies(DomainRequest(None, data, predictions=predictions, model=name), tmp_path / name)
        results = RunResults.read(tmp_path / name)
        assert (results.model, results.aggregate["domain_score"]["corrected"].main.value) == (name, value)
        assert not results.manifest["rejected"]


def test_an_own_protocol_is_used_for_every_aggregation(tmp_path):
    data = lay_out(tmp_path, {"av_1": [question("q0"), question("q0")]})
    predictions, own = tmp_path / "replies.jsonl", tmp_path / "mine.yaml"
    lines = [{"id": "av_1__0", "uid": uid, "reply": said} for uid, said in (("q0", "yes"), ("q0#2", "no"))]
    predictions.write_text("\n".join(map(json.dumps, lines)))
    own.write_text("domain_score: {base: corrected, decide: {repeated_uid: merged}}")
    score_replies(DomainRequest(None, data, predictions=predictions, protocol=str(own)), tmp_path / "run")
    own.unlink()  # the rules stand in the run
    found = RunResults.read(tmp_path / "run").to_json()["domain"]["protocols"]["mine"]
    assert (found["question_pooled"]["value"], found["question_pooled"]["members"]["n"]) == (0.5, 1)


def test_what_stops_the_public_code_stops_its_row_only(benchmark, scripted, make_clip, tmp_path):
    request, _ = benchmark(seeds=(0,)), scripted(lambda video, asked: "Yes")
    write_clip(request.videos / "av_1__0.mp4", make_clip(1, frames=1, height=32), 8.0)
    broken = [question("q0"), question("q1", "Z")]
    (request.data / "vqa" / "av_2.json").write_text(json.dumps(broken))
    score_domain(request, tmp_path / "run", FAST)
    rows, reference = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", "reference")
    assert (rows["av_1", "0"].value, list(map(str, rows["av_1", "0"].flags))) == (0.5, ["few_frames", "enlarged"])
    assert rows["av_2", "0"].value == 1.0
    for sample, exception in (("av_1", "ValueError"), ("av_2", "KeyError")):
        assert reference[sample, "0"].reason is Reason.REFERENCE_STOPS
        assert reference[sample, "0"].detail["reference_exception"] == exception
    assert reference["robot_1", "0"].value == 0.5


def test_one_clip_with_many_questions_that_fails_ends_no_run(tmp_path, make_clip, scripted):
    many = [question(f"q{number}") for number in range(30)]
    data = lay_out(tmp_path, {"av_1": many, "av_2": [question("q0")]})
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in ("av_1", "av_2"):
        write_clip(videos / f"{name}__0.mp4", make_clip(1, frames=3, height=32), 8.0)
    trouble = ChatError(Reason.ENDPOINT_ERROR, "HTTP 500", retry=True)
    scripted(lambda video, asked: trouble if video == "av_1__0" else "Yes")
    score_domain(DomainRequest(videos, data, judge="simulated"), tmp_path / "run", FAST)
    assert rows_of(tmp_path / "run")["av_2", "0"].value == 1.0


# --- asking ---------------------------------------------------------------------------------------------------------


def test_every_question_about_every_video_is_asked_once(benchmark, scripted, tmp_path):
    request, made = benchmark(), scripted(lambda video, asked: "Yes" if asked.endswith("q0") else "no")
    worked = score_domain(request, tmp_path / "run", FAST)
    assert len(made[0].asked) == len(set(made[0].asked)) == 12
    assert (worked.asked, worked.kept) == (3, 0)
    results = RunResults.read(tmp_path / "run")
    main = results.aggregate["domain_score"]["corrected"].main
    assert (main.value, main.n, main.N, main.members.n) == (1.0, 3, 3, 6)
    assert results.aggregate["domain_score"]["corrected"].values["always_yes"].value == 0.5
    again = score_domain(request, tmp_path / "run", FAST)
    assert (again.asked, again.kept, made[1].asked) == (0, 3, [])


def test_what_was_answered_before_a_stop_is_not_asked_again(benchmark, scripted, tmp_path):
    request, whole = benchmark(), scripted(lambda video, asked: "Yes")
    score_domain(request, tmp_path / "whole", FAST)
    count = [0]

    def stop_in_the_middle(video, asked):
        count[0] += 1
        return KeyboardInterrupt() if count[0] == 6 else "Yes"

    stopped = scripted(stop_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        score_domain(request, tmp_path / "run", FAST)
    with RunFolder(tmp_path / "run") as run:
        kept = {(f"{one.sample}__{one.member}", f"{one.sample}/{one.question}") for one in run.answers()}
    assert 0 < len(kept) < 12
    rest = scripted(lambda video, asked: "Yes")
    score_domain(request, tmp_path / "run", FAST)
    assert set(rest[0].asked).isdisjoint(kept)
    assert set(rest[0].asked) | kept == set(whole[0].asked)
    assert stopped[0].asked
    first, second = (RunResults.read(tmp_path / name).to_json() for name in ("whole", "run"))
    assert first == second


def test_one_poisoned_question_fails_its_video_alone_and_is_tried_again(benchmark, scripted, tmp_path):
    request = benchmark()
    trouble = ChatError(Reason.ENDPOINT_ERROR, "HTTP 500", retry=True)
    made = scripted(lambda video, asked: trouble if (video, asked) == ("av_2__1", "av_2/q1") else "Yes")
    score_domain(request, tmp_path / "run", FAST)
    assert made[0].asked.count(("av_2__1", "av_2/q1")) == 2  # attempts are bounded
    rows = rows_of(tmp_path / "run")
    assert rows["av_2", "1"].reason is Reason.ENDPOINT_ERROR
    assert "1 of 2 questions have no answer" in rows["av_2", "1"].detail["message"]
    assert [row.value for key, row in rows.items() if key != ("av_2", "1")] == [0.5] * 5
    main = RunResults.read(tmp_path / "run").aggregate["domain_score"]["corrected"].main
    assert (main.n, main.N, main.members.n, main.members.N) == (3, 3, 5, 6)
    healed = scripted(lambda video, asked: "No")
    score_domain(request, tmp_path / "run", FAST)
    assert healed[0].asked == [("av_2__1", "av_2/q1")]
    assert rows_of(tmp_path / "run")["av_2", "1"].value == 1.0


def test_declined_answers_are_wrong_and_the_run_says_so(benchmark, scripted, tmp_path):
    declined = ChatError(Reason.CONTENT_FILTER, "declined")
    scripted(lambda video, asked: declined if asked == "av_1/q0" else "No")
    score_domain(benchmark(), tmp_path / "run", FAST)
    results = RunResults.read(tmp_path / "run")
    assert rows_of(tmp_path / "run")["av_1", "0"].value == 0.5
    assert results.exit_code == 1
    assert results.to_json()["domain"]["protocols"]["corrected"]["coverage"]["refused"] == 2


def test_videos_that_cannot_be_shown_have_reasons_and_the_others_scores(benchmark, scripted, tmp_path):
    request, _ = benchmark(), scripted(lambda video, asked: "Yes")
    (request.videos / "av_1__0.mp4").write_bytes(b"no video")
    (request.videos / "robot_1__0.mp4").unlink()
    (request.videos / "robot_1__1.mp4").unlink()
    (request.videos / "zebra__0.mp4").write_bytes(b"")
    (request.videos / "av_2__7.mp4").write_bytes((request.videos / "av_2__0.mp4").read_bytes())
    score_domain(request, tmp_path / "run", FAST)
    rows = rows_of(tmp_path / "run")
    assert rows["av_1", "0"].reason is Reason.UNDECODABLE
    assert rows_of(tmp_path / "run", "reference")["av_1", "0"].reason is Reason.REFERENCE_STOPS
    assert rows["robot_1", "0"].reason is Reason.MISSING_VIDEO
    assert rows["av_1", "1"].value == 0.5
    manifest = RunResults.read(tmp_path / "run").manifest
    assert (manifest["unknown_videos"], manifest["not_asked_videos"]) == (["zebra__0.mp4"], ["av_2__7.mp4"])


def test_an_endpoint_that_is_gone_ends_the_run_and_keeps_what_was_answered(benchmark, scripted, tmp_path):
    names = tuple(f"av_{number}" for number in range(20))
    request = benchmark(names, seeds=(0,))
    down = ChatError(Reason.ENDPOINT_ERROR, "connection refused", retry=True)
    made = scripted(lambda video, asked: "Yes" if video == "av_0__0" else down)
    with pytest.raises(MissingPart, match="in a row got no answer"):
        score_domain(request, tmp_path / "run", FAST)
    assert len(set(made[0].asked)) < 40
    with RunFolder(tmp_path / "run") as run:
        assert sum(one.reply == "Yes" for one in run.answers()) == 2


def test_reference_points_tell_a_judge_that_does_not_look(benchmark, tmp_path):
    from dataclasses import replace

    request = benchmark(tuple(f"av_{number:02d}" for number in range(20)), seeds=(0,))
    for judge, verdict in (("simulated", "looks"), ("simulated-blind", "does_not_look")):
        asked = replace(request, judge=judge, conditions=("without_video", "shuffled"))
        score_domain(asked, tmp_path / judge)
        document = RunResults.read(tmp_path / judge).to_json()["domain"]
        assert "simulated" in document["judge"]["title"]
        found = document["protocols"]["corrected"]["looks"]
        assert found["verdict"] == verdict, found
        assert set(found) == {"without_video", "shuffled", "verdict"}
        assert (found["shuffled"]["samples"], found["shuffled"]["answers"]) == (20, 40)
        pairs = [
            (one["right"], one["right_under"]["shuffled"])
            for row in rows_of(tmp_path / judge).values()
            for one in row.detail["questions"]
        ]
        assert found["shuffled"]["difference"] == pytest.approx(sum(own - other for own, other in pairs) / 40)
    few = replace(request, judge="simulated-blind", conditions=("without_video",), limit=3)
    score_domain(few, tmp_path / "few")
    looks = RunResults.read(tmp_path / "few").to_json()["domain"]["protocols"]["corrected"]["looks"]
    assert looks["verdict"] == "not_clear"


def test_soft_scores_stand_beside_and_can_be_computed_again_from_the_rows(benchmark, tmp_path):
    from api.services.answer_tables import answer_tables

    request = benchmark()
    replies = [
        {"id": f"{name}__{seed}", "uid": uid, "reply": "Yes", "logprobs": {"Yes": math.log(0.8), "No": math.log(0.2)}}
        for name in ("av_1", "av_2", "robot_1")
        for seed in (0, 1)
        for uid in ("q0", "q1")
    ]
    del replies[-1]["logprobs"]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    asked = replace(request, judge=None, predictions=tmp_path / "replies.jsonl")
    score_replies(asked, tmp_path / "run")
    results = RunResults.read(tmp_path / "run")
    soft = results.to_json()["domain"]["protocols"]["corrected"]["soft"]
    # q0 has the key yes: 0.8; q1 has no: 0.2, which robot_1 has of seed 0 alone
    assert (soft["video_mean"]["value"], soft["video_mean"]["n"]) == (pytest.approx(0.5), 3)
    assert soft["video_mean"]["lower"] <= 0.5 <= soft["video_mean"]["upper"]
    assert {name: one["value"] for name, one in soft["by_domain"].items()} == {
        "av": pytest.approx(0.5),
        "robot": pytest.approx(0.5),
    }
    believed = soft["confidence"]
    assert (believed["n"], believed["absent"]) == (11, 1)
    assert believed["brier"] == pytest.approx((6 * 0.04 + 5 * 0.64) / 11)
    assert believed["expected_calibration_error"] == pytest.approx(0.8 - 6 / 11)
    entries = [one for row in rows_of(tmp_path / "run").values() for one in row.detail["questions"]]
    assert sorted(one["chance"] for one in entries if one["chance"] is not None) == pytest.approx([0.2] * 5 + [0.8] * 6)
    (table, _) = answer_tables(results)
    assert any("Brier score 0.313, expected calibration error 0.255" in note for note in table.notes)
    assert any("0.80 → 0.55 (n = 11)" in note for note in table.notes)
    assert "soft score, domain av" in [line.name for line in table.lines]


def test_without_log_probabilities_there_is_no_soft_score(benchmark, scripted, tmp_path):
    scripted(lambda video, asked: "Yes")
    score_domain(benchmark(seeds=(0,)), tmp_path / "run", FAST)
    assert RunResults.read(tmp_path / "run").to_json()["domain"]["protocols"]["corrected"]["soft"] is None


def test_judges_agree_over_questions_of_yes_and_no_alone(tmp_path):
    from api.services.judging import agree

    sides = {"A": "no, left", "B": "Yes"}
    data = lay_out(tmp_path, {"av_1": [question("q0"), question("q1", "B"), question("q2", "A", sides)]})
    for judge, said in {"one": ["Yes", "No", "Yes"], "two": ["Yes", "Yes", "No"]}.items():
        path = tmp_path / f"{judge}.jsonl"
        lines = [{"id": "av_1__0", "uid": f"q{place}", "reply": one} for place, one in enumerate(said)]
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        score_replies(DomainRequest(None, data, predictions=path, model="m"), tmp_path / judge)
    found = agree([tmp_path / "one", tmp_path / "two"], resamples=0)
    assert set(found["left_out"].values()) == {1}
    (pair,) = found["pairs"]
    assert (pair["overall"]["n"], pair["overall"]["raw"]) == (2, 0.5)


def test_the_page_shows_the_judge_every_mean_and_the_replies(benchmark, scripted, tmp_path):
    from api.services.reporting import render

    scripted(lambda video, asked: "Yes, <b>nothing</b> unusual")
    score_domain(benchmark(), tmp_path / "run", FAST)
    page = render([RunResults.read(tmp_path / "run")], ".html").decode()
    assert "yes_no" in page
    assert "&lt;b&gt;nothing" in page
    for text in ("videos (headline)", "a judge that always says yes", "The judge is simulated", "judging model"):
        assert text in page


def test_a_domain_run_joins_a_quality_run_in_the_overall_score(benchmark, scripted, tmp_path):
    from api.services.request import ScoreRequest
    from api.services.scoring import Execution, score
    from api.services.systems import systems_of

    request, _ = benchmark(), scripted(lambda video, asked: "Yes")
    score_domain(request, tmp_path / "domain", FAST)
    quality = ScoreRequest("quality", request.videos, data=request.data, metrics=("temporal_flickering",))
    score(quality, tmp_path / "quality", Execution(workers=1))
    (system,) = systems_of([RunResults.read(tmp_path / name) for name in ("domain", "quality")])
    assert system.metrics == {"domain_score", "temporal_flickering"}
    from api.services.published import tables_of

    (table,) = tables_of([RunResults.read(tmp_path / "domain")], ["corrected"])
    assert "simulated" in table.judges
    from api.services.reporting import render

    for form in (".tex", ".json", ".html"):
        assert b"simulated judge" in render([RunResults.read(tmp_path / "domain")], form)
    assert [head.name for head in table.heads] == ["domain_score"]


@pytest.mark.xdist_group("vlm")
@pytest.mark.parametrize("engine", ["transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def test_a_real_server_is_killed_and_started_again_and_nothing_is_asked_twice(
    engine, benchmark, tiny_vlm, tmp_path, request
):
    from dataclasses import replace

    serve = request.getfixturevalue({"transformers": "vlm_server", "vllm": "vllm_server"}[engine])
    server = serve(tiny_vlm("qwen3_vl", **({"head": 64} if engine == "vllm" else {})))
    entry = tmp_path / "tiny.yaml"
    entry.write_text(
        f"id: tiny\nbackend: http\nfamily: qwen3_vl\nsees: {{form: images, patch_factor: 32}}\n"
        f"endpoint: {{base_url: '{server.url}', engine: {engine}}}\n"
    )
    wanted = replace(benchmark(seeds=(0,)), judge=str(entry), preset="2fps-qwen-0.0.14")
    score_domain(wanted, tmp_path / "whole", FAST)

    def kill_after(_label, done, _total, label="asking"):
        if _label == label and done == 2:
            server.kill()

    one_at_a_time = Judging(limits=replace(FAST.limits, concurrency=1))  # so that some are left when it is killed
    score_domain(wanted, tmp_path / "run", one_at_a_time, progress=kill_after)
    with RunFolder(tmp_path / "run") as run:
        before = {one.key: one.reply for one in run.answers() if one.reply is not None}
    assert 0 < len(before) < 6
    server.start()
    worked = score_domain(wanted, tmp_path / "run", FAST)
    assert worked.tally.requests == 6 - len(before)
    first, second = (RunResults.read(tmp_path / name).to_json() for name in ("whole", "run"))
    assert first == second
    assert {row["value"] for row in first["rows"]} <= {0.0, 0.5, 1.0}
