"""The judge that is no model."""

import asyncio
import json

import pytest

from gen_eval.mllm.entry import entry_of
from gen_eval.records import InputError
from judge.prompting import load_prompt
from judge.simulated import Client, truth_of
from judge.soft import yes_probability


def replies(client, requests):
    async def ask():
        return [await client.reply(one) for one in requests]

    return asyncio.run(ask())


@pytest.fixture
def asked(simulated_judge, ask_questions, part):
    """Replies of a judge about one sample: `asked(video=..., part=..., **parameters)`."""

    def make(count=400, shown=part, video=None, prompt=None, attempt=0, **parameters):
        judge, client = simulated_judge(**parameters)
        questions = ask_questions("s", count)
        client.learn(truth_of({"s": questions}))
        how = {"video": video, "prompt": prompt and load_prompt(prompt), "attempt": attempt}
        found = replies(client, [judge.request(one, shown, **how) for one in questions])
        return [(question.binary, reply) for question, reply in zip(questions, found, strict=True)]

    return make


def yes_share(found, key=None):
    said = [reply.text == "Yes" for truth, reply in found if key in (None, truth)]
    return sum(said) / len(said)


def test_it_says_what_is_true_with_the_stated_chances(asked):
    found = asked(sensitivity=0.9, specificity=0.7)
    assert yes_share(found, "yes") == pytest.approx(0.9, abs=0.06)
    assert yes_share(found, "no") == pytest.approx(0.3, abs=0.08)


@pytest.mark.parametrize("how", [{"shown": None}, {"video": "t"}, {"video": "s2__0"}, {"looks": False}])
def test_about_what_it_has_not_seen_it_says_yes_with_its_bias(asked, how):
    found = asked(yes_bias=0.7, sensitivity=1.0, specificity=1.0, **how)
    assert yes_share(found, "yes") == pytest.approx(0.7, abs=0.07)
    assert yes_share(found, "no") == pytest.approx(0.7, abs=0.07)


@pytest.mark.parametrize("video", ["s", "s__0", "s__default"])
def test_a_truth_of_a_sample_holds_for_its_videos(asked, video):
    found = asked(sensitivity=1.0, specificity=1.0, count=20, video=video)
    assert [reply.text.lower() for _, reply in found] == [truth for truth, _ in found]


def test_a_truth_of_one_clip_holds_for_that_clip(simulated_judge, ask_questions, part):
    judge, client = simulated_judge(sensitivity=1.0, specificity=1.0, yes_bias=0.0)
    (question,) = ask_questions("s", 1)
    client.learn({("s", "s/q0"): "no", ("s@broken", "s/q0"): "yes"})
    found = replies(client, [judge.request(question, part, video=video) for video in ("s", "s@broken")])
    assert [one.text for one in found] == ["No", "Yes"]
    with pytest.raises(ValueError, match="maybe"):
        client.learn({"s/q0": "maybe"})


def test_equal_requests_have_equal_replies_and_seeds_differ(asked):
    first, again, other = asked(seed=1), asked(seed=1), asked(seed=2)
    assert first == again
    assert 0.05 < sum(a != b for a, b in zip(first, other, strict=True)) / len(first) < 0.4


def test_repeats_differ_as_far_as_the_noise_says(asked):
    first = asked(sensitivity=0.5, specificity=0.5)
    assert asked(sensitivity=0.5, specificity=0.5, attempt=1, noise=0.0) != []
    quiet = [reply.text for _, reply in asked(sensitivity=0.5, specificity=0.5, attempt=1)]
    assert quiet == [reply.text for _, reply in first]
    loud = [reply.text for _, reply in asked(sensitivity=0.5, specificity=0.5, attempt=1, noise=1.0)]
    changed = sum(a != b.text for a, (_, b) in zip(loud, first, strict=True)) / len(loud)
    assert changed == pytest.approx(0.5, abs=0.09)


def test_order_effect_and_unreadable_replies(asked):
    usual, turned = asked(order_effect=0.2), asked(order_effect=0.2, prompt="no-yes")
    assert yes_share(usual) - yes_share(turned) == pytest.approx(0.15, abs=0.06)  # 0.2, but no chance is below 0
    unread = [reply.text for _, reply in asked(unreadable=0.25) if reply.text not in ("Yes", "No")]
    assert len(unread) / 400 == pytest.approx(0.25, abs=0.07)


def test_log_probabilities_follow_from_the_parameters(simulated_judge, ask_questions, part):
    judge, client = simulated_judge(sensitivity=0.9, specificity=0.7)
    (question, *_) = ask_questions("s", 2)
    client.learn(truth_of({"s": (question,)}))
    from dataclasses import replace

    asking = replace(judge, options=replace(judge.options, logprobs=5))
    (reply,) = replies(client, [asking.request(question, part)])
    chance = yes_probability(reply.logprobs[0].top)
    assert chance == pytest.approx(0.9 / 1.2 if reply.text == "Yes" else 1 - 0.7 / 0.8)
    (plain,) = replies(client, [judge.request(question, part)])
    assert plain.logprobs is None
    assert "temperature" in plain.ignored


def test_a_reasoning_prompt_gets_json(simulated_judge, ask_questions, part):
    judge, client = simulated_judge()
    (reply,) = replies(client, [judge.with_prompt("reasoning").request(ask_questions("s", 1)[0], part)])
    assert json.loads(reply.text)["answer"] in ("YES", "NO")


def test_its_identity_names_it_and_all_parameters(simulated_judge):
    _, client = simulated_judge(sensitivity=0.8, looks=False)
    identity = asyncio.run(client.identity()).to_json()
    assert identity["engine"] == "simulated"
    assert "simulated" in identity["model"]
    assert identity["extra"] == {
        "sensitivity": 0.8,
        "specificity": 0.9,
        "yes_bias": 0.5,
        "unreadable": 0.0,
        "order_effect": 0.0,
        "noise": 0.0,
        "looks": False,
        "seed": 0,
    }


@pytest.mark.parametrize("parameters", [{"sensitivity": 1.5}, {"warmth": 1}, {"seed": -1}, {"looks": "sideways"}])
def test_parameters_that_make_no_sense(parameters):
    entry = entry_of("sim", {"id": "sim", "backend": "simulated", "parameters": parameters})
    with pytest.raises(InputError, match=next(iter(parameters))):
        Client(entry)
