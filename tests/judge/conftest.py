import asyncio
from dataclasses import replace

import pytest

from gen_eval.mllm import Frames, Image
from gen_eval.mllm.entry import entry_of
from judge.calibration import OTHER_ORDER, REPEAT, SHUFFLED, WITHOUT_VIDEO, Trial
from judge.entry import JudgeEntry
from judge.prompting import OTHER_ORDER as OTHER_PROMPT
from judge.prompting import load_prompt
from judge.questions import JudgeQuestion
from judge.simulated import Client, truth_of
from judge.soft import yes_probability

YES_NO = {"A": "Yes", "B": "No"}


@pytest.fixture(scope="session")
def part():
    """Two frames of one pixel: the simulated judge does not look at them."""
    picture = Image(b"\xff\xd8", "image/jpeg", 1, 1)
    return Frames((picture, picture), (0.0, 0.5), (0, 12), 24.0, 24)


@pytest.fixture
def ask_questions():
    """`count` questions about `sample`, half of them with the key yes."""

    def make(sample, count):
        return tuple(
            JudgeQuestion(sample, f"q{place}", f"Is {sample} of kind {place}?", YES_NO, "AB"[place % 2], "Space: x")
            for place in range(count)
        )

    return make


@pytest.fixture
def simulated_judge():
    def make(**parameters):
        model = entry_of("sim", {"id": "sim", "backend": "simulated", "parameters": parameters})
        judge = JudgeEntry("sim", "simulated judge", model, load_prompt("yes-no"), "2fps-qwen-0.0.8")
        return judge, Client(model)

    return make


@pytest.fixture
def trials_of(simulated_judge, ask_questions, part):
    """What a simulated judge says about `scenes` scenes with `questions` questions each, in every condition."""

    def make(scenes=20, questions=8, repeats=1, logprobs=None, conditions=None, **parameters):
        judge, client = simulated_judge(**parameters)
        asked = {f"s{scene:03d}": ask_questions(f"s{scene:03d}", questions) for scene in range(scenes)}
        client.learn(truth_of(asked))
        other = load_prompt(OTHER_PROMPT[judge.prompt.name])
        asking = replace(judge, options=replace(judge.options, logprobs=logprobs))
        changes = [
            ("", {}, part),
            (OTHER_ORDER, {"prompt": other}, part),
            (WITHOUT_VIDEO, {}, None),
            (SHUFFLED, {"video": "elsewhere"}, part),
            *((f"{REPEAT}{attempt}", {"attempt": attempt}, part) for attempt in range(1, repeats + 1)),
        ]

        async def say():
            found = []
            for scene, own in asked.items():
                for question in own:
                    for condition, how, shown in changes:
                        if conditions is not None and condition not in conditions:
                            continue
                        reply = await client.reply(asking.request(question, shown, **how))
                        said = {"Yes": "yes", "No": "no"}.get(reply.text)
                        chances = None if reply.logprobs is None else reply.logprobs[0].top
                        chance = yes_probability(chances)
                        found.append(Trial(scene, scene, question.uid, question.binary, condition, said, chance=chance))
            return found

        return asyncio.run(say())

    return make
