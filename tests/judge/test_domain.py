"""The domain score: every aggregation, against the reference's own output and by hand."""

import json
from dataclasses import replace
from pathlib import PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.data import split_name
from gen_eval.protocols import load_protocol
from gen_eval.records import Answer, Flag, ItemError, Reason
from judge.domain import USUAL_SEEDS, Rules, domain_scores, rules_of, sample_value
from judge.public_records import summary, video_records
from judge.questions import JudgeQuestion, load_questions
from judge.verdict import Verdict, failed, verdict_of

YES_NO = {"A": "Yes", "B": "No"}
PROTOCOLS = ("reference", "corrected")


def questions_of(case, folder):
    """The questions of a case, read from the public layout like anyone's."""
    (folder / "vqa").mkdir()
    for sample, own in case["questions"].items():
        (folder / "vqa" / f"{sample}.json").write_text(json.dumps(own))
    return load_questions(folder, known=case["prompt_video_ids"])


def verdicts_of(case, questions, reading):
    """Verdicts on the given answers; they are in the order of the questions."""
    found = []
    for name, replies in case["answers"].items():
        place = split_name(PurePath(name).stem, questions, bare_member="default")
        if place is None:
            continue
        for question, reply in zip(questions[place[0]], replies, strict=True):
            found.append(verdict_of(question, Answer("m", *place, question.uid, reply=reply), reading))
    return found


@pytest.fixture
def scored(goldens, tmp_path):
    """The scores of a golden case under a protocol, with its verdicts and questions."""

    def make(name, protocol):
        cases = json.loads((goldens / "judge" / "aggregate.json").read_text())["cases"]
        case = next(one for one in cases if one["name"] == name)
        loaded, rules = questions_of(case, tmp_path), load_protocol("domain_score", protocol)
        verdicts = verdicts_of(case, loaded.by_sample, rules.decide["reading"])
        return case, loaded, verdicts, domain_scores(verdicts, loaded.by_sample, rules=rules_of(rules))

    return make


CASES = [
    "one_seed_unequal_questions",
    "five_seeds",
    "gaps",
    "repeated_uid",
    "misc_and_wordy",
    "unequal_seeds",
]


@pytest.mark.parametrize("name", CASES)
def test_reference_goldens(scored, name):
    case, loaded, verdicts, scores = scored(name, "reference")
    expected = case["reference"]
    found = summary(scores)
    assert found["overall_accuracy"] == pytest.approx(expected["overall_accuracy"], rel=1e-12)
    assert found["category_scores"] == pytest.approx(expected["category_scores"], rel=1e-12)
    assert found["total_videos"] == len(expected["videos"])
    records = video_records(verdicts, loaded.by_sample, rules=scores.rules)
    for record in expected["videos"]:
        del record["video_files"]
    assert records == expected["videos"]


@pytest.mark.parametrize("name", CASES)
def test_corrected_goldens(scored, name):
    case, _, _, scores = scored(name, "corrected")
    expected = case["corrected"]
    assert scores.video_mean.value == pytest.approx(expected["video_mean_over_answered"], rel=1e-12)
    assert scores.video_mean.mean_missing_as_zero == pytest.approx(expected["video_mean_missing_as_zero"], rel=1e-12)
    assert scores.question_pooled.value == pytest.approx(expected["question_pooled"], rel=1e-12)
    by_domain = {name: one.value for name, one in scores.by_domain.items() if one.n}
    assert by_domain == pytest.approx(expected["by_domain"], rel=1e-12)
    assert scores.domain_macro.value == pytest.approx(expected["domain_macro"], rel=1e-12)
    seeds = {seed: {"video_mean": one.value, "videos": one.n} for seed, one in scores.per_seed.items()}
    assert seeds.keys() == expected["per_seed"].keys()
    for seed, own in expected["per_seed"].items():
        assert seeds[seed] == pytest.approx(own, rel=1e-12)
    spread = expected.get("std_over_seeds")
    assert scores.std_over_seeds == (None if spread is None else pytest.approx(spread, rel=1e-12))
    coverage = scores.coverage.to_json()
    assert {name: coverage[name] for name in expected["coverage"]} == expected["coverage"]
    assert scores.domain_zeros == ()


def test_golden_of_an_unknown_domain(scored, tmp_path_factory):
    case, _, _, scores = scored("unknown_domain", "reference")
    assert case["reference"] == {"raises": "AssertionError"}
    assert scores.coverage.stopped == ("zoo_1",)
    assert (scores.video_mean.value, scores.video_mean.N) == (None, 0)
    protocol = load_protocol("domain_score", "corrected")
    folder = tmp_path_factory.mktemp("again")
    loaded = questions_of(case, folder)
    verdicts = verdicts_of(case, loaded.by_sample, protocol.decide["reading"])
    corrected = domain_scores(verdicts, loaded.by_sample, rules=rules_of(protocol))
    assert case["corrected"]["failure"] == str(Flag.UNKNOWN_DOMAIN)
    assert corrected.coverage.unknown_domain == ("zoo_1",)
    assert (corrected.video_mean.value, corrected.by_domain) == (1.0, {})


def test_golden_replies_to_yes_no_questions(goldens):
    cases = json.loads((goldens / "judge" / "parse_binary.json").read_text())["cases"]
    keys = {word: JudgeQuestion("s", "q", "?", YES_NO, letter) for word, letter in (("yes", "A"), ("no", "B"))}
    for case in cases:
        answer = Answer("m", "s", "0", "q", reply=case["raw"])
        for word, question in keys.items():
            assert verdict_of(question, answer, "substring").right is (case["reference"] == word), case
            verdict = verdict_of(question, answer, "replies")
            assert (verdict.right, verdict.said) == (case["corrected"] == word, case["corrected"]), case
            assert (verdict.unparsed is None) == (case["corrected"] is not None), case
    assert sum(case["reference"] != case["corrected"] for case in cases) == 29


def test_golden_replies_to_other_questions(goldens):
    for case in json.loads((goldens / "judge" / "parse_other_answers.json").read_text())["cases"]:
        question = JudgeQuestion("s", "q", "?", {"A": case["correct_text"], "B": "else"}, "A")
        answer = Answer("m", "s", "0", "q", reply=case["raw"])
        assert verdict_of(question, answer, "substring").right is case["reference_is_correct"], case
        assert verdict_of(question, answer, "replies").right is case["corrected_is_correct"], case


# --- verdicts --------------------------------------------------------------------------------------------------------

YES = JudgeQuestion("av_1", "q0", "?", YES_NO, "A", "Space: Geometry")
NO = JudgeQuestion("av_1", "q1", "?", YES_NO, "B", "Time: Order")


def answer(reply=None, **more):
    return Answer("m", "av_1", "0", "q0", reply=reply, **more)


@pytest.mark.parametrize("reading", ["replies", "substring"])
def test_refusals_and_missing_replies_are_wrong_and_failures_have_no_verdict(reading):
    for reason in (Reason.CONTENT_FILTER, Reason.MISSING_REPLY):
        found = verdict_of(YES, answer(reason=reason), reading)
        assert (found.right, found.reason, found.flags) == (False, reason, ())
    for reason in (Reason.ENDPOINT_ERROR, Reason.CONTEXT_OVERFLOW, Reason.UNDECODABLE):
        assert verdict_of(YES, answer(reason=reason), reading).right is None
        assert failed(YES, "0", ItemError(reason, "why")).message == "why"


def test_a_verdict_names_its_rule_and_its_failure():
    found = verdict_of(YES, answer("Yes, the cup is now empty."), "replies")
    assert (found.right, found.said, found.unparsed) == (True, "yes", None)
    assert found.rule
    unread = verdict_of(YES, answer("I cannot tell."), "replies")
    assert (unread.right, unread.said, unread.unparsed) == (False, None, Flag.NO_ANSWER)
    cut = verdict_of(YES, answer("<think>It seems", finish_reason="length"), "replies")
    assert cut.flags == (Flag.UNPARSED, Flag.UNCLOSED_REASONING, Flag.CUT_OFF)
    assert verdict_of(YES, answer(None), "replies").unparsed is Flag.EMPTY
    assert verdict_of(NO, answer("I cannot determine this"), "substring").right  # right by accident, as there
    with pytest.raises(ValueError, match="tea leaves"):
        verdict_of(YES, answer("yes"), "tea leaves")


# --- aggregation by hand ---------------------------------------------------------------------------------------------


def question(sample, uid, key="A", task=""):
    return JudgeQuestion(sample, uid, "?", YES_NO, key, task)


def verdict(sample, uid, right, seed="0", **more):
    return Verdict(sample, seed, uid, right, **more)


QUESTIONS = {
    "av_1": (question("av_1", "q0", "A", "Space: Geometry"), question("av_1", "q1", "B", "Time: Order")),
    "misc_1": (question("misc_1", "q0", "A", "Space: Interaction"),),
    "robot_1": (question("robot_1", "q0", "A", "Space: Geometry"), question("robot_1", "q1", "A")),
}


def test_aggregations_by_hand():
    verdicts = [
        verdict("av_1", "q0", True),
        verdict("av_1", "q0", False, "1"),
        verdict("av_1", "q1", True),
        verdict("misc_1", "q0", False, flags=(Flag.UNPARSED, Flag.EMPTY)),
        verdict("misc_1", "q0", False, "2", reason=Reason.CONTENT_FILTER),
        verdict("av_1", "q1", None, "1", reason=Reason.ENDPOINT_ERROR),
        verdict("av_1", "q0", True, "7"),
        verdict("zoo_1", "q0", True),
    ]
    scores = domain_scores(verdicts, QUESTIONS)
    assert scores.values == {"av_1": 0.75, "misc_1": 0.0}
    assert (scores.video_mean.value, scores.video_mean.n, scores.video_mean.N) == (0.375, 2, 3)
    assert scores.video_mean.mean_missing_as_zero == 0.25
    assert scores.question_pooled.value == 0.5  # 0.5, 1 and 0
    assert (scores.domain_macro.value, scores.domain_macro.n, scores.domain_macro.N) == (0.375, 2, 3)
    assert (scores.by_domain["robot"].value, scores.by_domain["robot"].n) == (None, 0)
    assert (scores.without_misc.value, scores.without_misc.N) == (0.75, 2)
    assert {name: one.value for name, one in scores.by_topic.items()} == {
        "Space: Geometry": 0.5,
        "Space: Interaction": 0.0,
        "Time: Order": 1.0,
    }
    assert {name: one.value for name, one in scores.by_topic_group.items()} == {"Space": 0.25, "Time": 1.0}
    assert {seed: one.value for seed, one in scores.per_seed.items()} == {"0": 0.5, "1": 0.0, "2": 0.0}
    assert scores.std_over_seeds == pytest.approx(0.5 / 3**0.5)
    assert (scores.always_yes.video_mean, scores.always_no.video_mean) == (0.75, 0.25)
    assert scores.always_yes.question_pooled == pytest.approx(2 / 3)
    assert scores.always_yes.by_domain == {"av": 0.5, "misc": 1.0}
    coverage = scores.coverage
    assert (coverage.answers, coverage.unparsed, coverage.refused) == (5, 1, 1)
    assert coverage.unparsed_by == {"empty": 1}
    assert coverage.failed_by == {"endpoint_error": 1}
    assert coverage.seed_counts == {2: 2}
    assert coverage.seeds_left_out == {"7": 1}
    assert coverage.without_answers == ("robot_1",)
    assert coverage.unknown_samples == {"zoo_1": 1}
    json.dumps(scores.to_json(), allow_nan=False)


def test_more_seeds_count_when_they_are_asked_for():
    verdicts = [verdict("av_1", "q0", True, "7"), verdict("av_1", "q0", False, "default")]
    assert domain_scores(verdicts, QUESTIONS).values == {"av_1": 0.0}
    found = domain_scores(verdicts, QUESTIONS, seeds=(*USUAL_SEEDS, "7"))
    assert found.values == {"av_1": 0.5}
    assert found.coverage.bare_beside_numbered == ("av_1",)


def test_intervals_keep_samples_together():
    questions = {f"av_{n}": tuple(question(f"av_{n}", f"q{k}") for k in range(5)) for n in range(8)}
    verdicts = [verdict(s, one.uid, int(s[3:]) % 2 == 0) for s, own in questions.items() for one in own]
    scores = domain_scores(verdicts, questions)
    pooled = scores.question_pooled
    # all answers about a sample are equal: 40 answers tell no more than 8
    assert (pooled.lower, pooled.upper) == (scores.video_mean.lower, scores.video_mean.upper)
    assert pooled.upper - pooled.lower > 0.5
    assert scores.domain_macro.lower == pytest.approx(scores.video_mean.lower)
    assert domain_scores(verdicts, questions, intervals=False).video_mean.interval is None


def test_two_verdicts_for_one_question_are_refused():
    with pytest.raises(ValueError, match="two verdicts"):
        domain_scores([verdict("av_1", "q0", True)] * 2, QUESTIONS)


def test_nothing_answered_is_no_zero():
    scores = domain_scores([], QUESTIONS)
    assert (scores.video_mean.value, scores.domain_macro.value, scores.always_yes.video_mean) == (None, None, None)
    assert scores.std_over_seeds is None
    zero = domain_scores([], QUESTIONS, rules=Rules(empty_domain="zero"))
    assert set(summary(zero)["category_scores"].values()) == {0.0}
    assert summary(scores)["category_scores"] == {"av_score": None, "misc_score": None, "robot_score": None}


def test_soft_values_take_the_same_way():
    verdicts = [verdict("av_1", "q0", True), verdict("av_1", "q1", True)]
    soft = {("av_1", "0", "q0"): 0.6}
    scores = domain_scores(verdicts, QUESTIONS, value=lambda one: soft.get(one.key))
    assert scores.values == {"av_1": 0.6}


answers = st.lists(
    st.tuples(st.sampled_from(["av_1", "misc_1", "robot_1"]), st.sampled_from(["q0", "q1"]), st.sampled_from("0123")),
    unique=True,
    max_size=12,
)


@settings(max_examples=40)
@given(answers, st.randoms(use_true_random=False))
def test_properties(keys, random):
    verdicts = [verdict(sample, uid, random.random() < 0.5, seed) for sample, uid, seed in keys]
    scores = domain_scores(verdicts, QUESTIONS, intervals=False)
    mixed = random.sample(verdicts, len(verdicts))
    assert domain_scores(mixed, QUESTIONS, intervals=False).to_json() == scores.to_json()
    wrong = [replace(one, right=not one.right) for one in verdicts]
    turned = domain_scores(wrong, QUESTIONS, intervals=False)
    for name in ("video_mean", "question_pooled", "domain_macro", "without_misc"):
        value, other = getattr(scores, name).value, getattr(turned, name).value
        assert (value is None) == (other is None)
        if value is not None:
            assert 0 <= value <= 1
            assert value + other == pytest.approx(1)
    if scores.always_yes.video_mean is not None:
        assert scores.always_yes.video_mean + scores.always_no.video_mean == pytest.approx(1)
    assert sample_value({}) is None
