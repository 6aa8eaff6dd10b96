"""vLLM in this process: what it is given and what is made of its outputs.

The engine here is a stand-in that answers by a fixed rule; the real one is asked in the contract test of the server.
"""

import asyncio
import io
from types import SimpleNamespace

import pytest
from PIL import Image as Pillow

from gen_eval.mllm.asking import open_client
from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Options
from gen_eval.mllm.client import ChatError
from gen_eval.mllm.conversation import conversation_of
from gen_eval.mllm.entry import entry_of
from gen_eval.mllm.vllm import Client, prompt_of, settings_of
from gen_eval.records import InputError, MissingPart, Reason

ENTRY = {"id": "tester", "backend": "vllm", "thinking": {"mode": "switch", "template_key": "enable_thinking"}}


def picture(value):
    buffer = io.BytesIO()
    Pillow.new("RGB", (8, 6), (value, value, value)).save(buffer, "PNG")
    return Image(buffer.getvalue(), "image/png", 6, 8)


def clip(form):
    return Frames(tuple(map(picture, (10, 20, 30))), (0.0, 0.5, 1.0), (0, 5, 10), 10.0, 11, form=form, stamps=True)


def question(*parts, options=None):
    return ChatRequest((Message.of("system", "Answer."), Message.of("user", *parts)), options or Options(max_tokens=4))


class StandIn:
    """Answers with the number of the prompt's letters; one prompt is too long for it."""

    def __init__(self):
        self.calls, self.switches = [], []

    def render(self, turns, switches):
        self.switches.append(dict(switches))
        texts = []
        for turn in turns:
            parts = [{"type": "text", "text": turn["content"]}] if isinstance(turn["content"], str) else turn["content"]
            texts += [part["text"] if part["type"] == "text" else f"<{part['type']}>" for part in parts]
            assert all(set(part) <= {"type", "text"} for part in parts)
        return "|".join(texts)

    def generate(self, prompts, settings):
        self.calls.append((list(prompts), list(settings)))
        if any(len(prompt["prompt"]) > 200 for prompt in prompts):
            raise ValueError("The decoder prompt (length 901) is longer than the maximum model length of 200.")
        return [self.output(prompt["prompt"], one) for prompt, one in zip(prompts, settings, strict=True)]

    def output(self, prompt, settings):
        text = str(len(prompt))
        table = {
            7: SimpleNamespace(logprob=-0.1, decoded_token=text),
            8: SimpleNamespace(logprob=-2.5, decoded_token="no"),
            9: SimpleNamespace(logprob=-9999.0, decoded_token="never"),
        }
        done = SimpleNamespace(
            text=text, token_ids=[7], finish_reason="stop", logprobs=[table] if "logprobs" in settings else None
        )
        return SimpleNamespace(outputs=[done], prompt_token_ids=[1] * 5, num_cached_tokens=3)

    def facts(self):
        return {"version": "0.0", "dtype": "float32"}


def ask(engine, *requests, **entry):
    async def run():
        async with Client(entry_of("m", {**ENTRY, **entry}), engine=lambda: engine) as client:
            return await asyncio.gather(*map(client.reply, requests), return_exceptions=True)

    return asyncio.run(run())


def test_frames_as_one_video_carry_their_times():
    talk = conversation_of(question(clip("video"), picture(9), "Is it?"), video_form=True)
    prompt = prompt_of(talk, "text")
    ((frames, facts),) = prompt["multi_modal_data"]["video"]
    assert frames.shape == (3, 6, 8, 3)
    assert frames[:, 0, 0, 0].tolist() == [10, 20, 30]
    assert facts == {
        "total_num_frames": 11, "fps": 10.0, "duration": 1.1, "frames_indices": [0, 5, 10], "height": 6, "width": 8,
        "video_backend": "frames", "do_sample_frames": False,
    }  # fmt: skip
    assert [one.size for one in prompt["multi_modal_data"]["image"]] == [(8, 6)]
    assert prompt["mm_processor_kwargs"] == {"do_sample_frames": False}
    assert prompt_of(conversation_of(question("Is it?"), video_form=True), "text") == {"prompt": "text"}


def test_settings_are_in_its_words():
    options = Options(
        temperature=0.6, top_p=0.9, top_k=4, repetition_penalty=1.1, max_tokens=7, seed=3, stop=("x",), logprobs=5,
        schema={"type": "object"},
    )  # fmt: skip
    assert settings_of(options) == {
        "temperature": 0.6, "top_p": 0.9, "top_k": 4, "repetition_penalty": 1.1, "max_tokens": 7, "seed": 3,
        "stop": ["x"], "logprobs": 5, "structured_outputs": {"json": {"type": "object"}},
    }  # fmt: skip
    assert settings_of(Options(max_tokens=2)) == {"temperature": 0.0, "top_p": 1.0, "max_tokens": 2}


def test_what_waits_goes_in_together_and_the_prefix_is_shared():
    engine = StandIn()
    replies = ask(engine, *(question(clip("video"), text) for text in ("Is it?", "Was it so?", "x")))
    ((prompts, _),) = engine.calls
    assert [one["prompt"] for one in prompts] == [f"Answer.|<video>|{text}" for text in ("Is it?", "Was it so?", "x")]
    assert [(one.text, one.form, one.model) for one in replies] == [
        ("22", "video", "tester"), ("26", "video", "tester"), ("17", "video", "tester"),
    ]  # fmt: skip
    assert replies[0].usage.prompt_tokens == 5
    assert replies[0].usage.cached_tokens == 3


def test_loose_pictures_with_times_and_the_switch_of_reasoning():
    engine = StandIn()
    (reply,) = ask(engine, question(clip("images"), "Is it?", options=Options(max_tokens=4, thinking=False)))
    (((prompt,), _),) = engine.calls
    stamped = "|".join(f"<{time} seconds>|<image>" for time in (0.0, 0.5, 1.0))
    assert prompt["prompt"] == f"Answer.|{stamped}|Is it?"
    assert len(prompt["multi_modal_data"]["image"]) == 3
    assert reply.form == "images"
    assert engine.switches == [{"enable_thinking": False}]


def test_chances_leave_out_what_was_forbidden():
    (reply,) = ask(StandIn(), question("Is it?", options=Options(max_tokens=4, logprobs=3, choices=("14", "no"))))
    (token,) = reply.logprobs
    assert (token.token, token.logprob, dict(token.top)) == ("14", -0.1, {"14": -0.1, "no": -2.5})
    assert reply.ignored == ()
    assert reply.raw["settings"]["structured_outputs"] == {"choice": ["14", "no"]}


def test_a_question_that_is_too_long_costs_itself_only():
    good, bad, also = ask(StandIn(), question("Is it?"), question("x" * 900), question("Was it?"))
    assert (good.text, also.text) == ("14", "15")
    assert isinstance(bad, ChatError)
    assert bad.reason is Reason.CONTEXT_OVERFLOW


def test_more_pictures_than_the_engine_was_told_of():
    (failed,) = ask(StandIn(), question(*map(picture, range(3)), "Is it?"), parameters={"pictures": 2})
    assert failed.reason is Reason.CONTEXT_OVERFLOW


def test_parameters_and_the_package():
    with pytest.raises(InputError, match=r"parameters.*tensor: Extra inputs.*known: batch, tensor_parallel"):
        Client(entry_of("m", {**ENTRY, "parameters": {"tensor": 2}}), engine=StandIn)
    with pytest.raises(MissingPart, match=r"pip install 'gen-eval\[vllm\]'"):
        open_client(entry_of("m", ENTRY))
