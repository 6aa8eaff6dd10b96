"""What is taken for granted of vLLM, asked of a real one; skipped where there is none (`GEN_EVAL_VLLM_PYTHON`)."""

import asyncio
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image as Pillow

from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.mllm.cache import ReplyCache
from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Options
from gen_eval.mllm.client import ChatError
from gen_eval.mllm.entry import entry_of
from gen_eval.records import Reason

pytestmark = [pytest.mark.vllm, pytest.mark.xdist_group("vllm")]
FAMILY = "qwen3_vl"


@pytest.fixture
def server(tiny_vlm, vllm_server):
    return vllm_server(tiny_vlm(FAMILY, head=64))


@pytest.fixture
def asker(server):
    sees = {"form": "video", "patch_factor": 32, "frames_per_token": 2}
    content = {"id": "tiny", "sees": sees, "endpoint": {"base_url": server.url}}

    def make(**more):
        limits = Limits(attempts=2, first_wait=0.1)
        return Asker(open_client(entry_of("tiny", content)), limits=limits, **more)

    return make


def picture(colour, media_type="jpeg"):
    buffer = io.BytesIO()
    Pillow.new("RGB", (96, 64), colour).save(buffer, media_type)
    return Image(buffer.getvalue(), f"image/{media_type}", 64, 96)


def clip(number, form, frames=8):
    pictures = tuple(picture((number * 37 % 256, number * 91 % 256, 20 * step % 256)) for step in range(frames))
    indices = tuple(range(0, 5 * frames, 5))
    return Frames(pictures, tuple(index / 10 for index in indices), indices, 10.0, 5 * frames, form=form)


def question(part, text="Is it so?", **options):
    return ChatRequest((Message.of("system", "Answer."), Message.of("user", part, text)), Options(**options))


def ask(asker, *requests):
    async def run():
        async with asker:
            return await asyncio.gather(*map(asker.ask, requests), return_exceptions=True)

    return asyncio.run(run())


def test_it_is_recognised_and_says_its_version(asker):
    one = asker()
    identity = asyncio.run(one.identity())
    assert (identity.model, identity.engine) == ("tiny", "vllm")
    assert identity.version


@pytest.mark.parametrize("form", ["video", "images"])
def test_choices_and_chances_in_both_forms(asker, form):
    options = {"choices": ("Yes", "No"), "logprobs": 5, "max_tokens": 4}
    replies = ask(asker(), *(question(clip(number, form), **options) for number in range(6)))
    assert {one.text for one in replies} <= {"Yes", "No"}
    assert {(one.form, one.ignored) for one in replies} == {(form, ())}
    assert len({one.logprobs[0].logprob for one in replies}) > 1


def test_a_video_costs_half_the_tokens_of_its_frames_and_is_not_sampled_again(asker):
    """40 frames are 20 pairs of 6 squares; a server shows 32 frames at most unless it is told their number."""
    video, images = ask(
        asker(), question(clip(1, "video", 40), max_tokens=4), question(clip(1, "images", 20), max_tokens=4)
    )
    assert 20 * 6 < video.usage.prompt_tokens < 20 * (6 + 16) + 60
    assert 20 * 6 < images.usage.prompt_tokens < 20 * (6 + 3) + 60


def test_schema_stop_and_length(asker):
    schema = {"enum": ["Yes", "No", "It cannot be seen"]}  # a text leaves no room for blanks, which never need to end
    shaped = ask(asker(), *(question(clip(number, "video"), schema=schema, max_tokens=60) for number in range(3)))
    assert all(json.loads(one.text) in schema["enum"] for one in shaped)
    assert {(one.finish_reason, one.ignored) for one in shaped} == {("stop", ())}
    (long,) = ask(asker(), question(clip(1, "video"), max_tokens=12))
    assert (long.finish_reason, long.usage.completion_tokens) == ("length", 12)
    words = [letter for letter in long.text[len(long.text) // 2 :] if letter.isascii() and letter.isprintable()]
    stop = words[0] if words else long.text[-1]
    (stopped,) = ask(asker(), question(clip(1, "video"), stop=(stop,), max_tokens=12))
    assert (stopped.finish_reason, stopped.text) == ("stop", long.text[: long.text.index(stop)])
    assert stopped.ignored == ()


def test_a_question_that_does_not_fit(asker):
    (failed,) = ask(asker(), question(picture((9, 9, 9)), "x" * 9000, max_tokens=4))
    assert isinstance(failed, ChatError)
    assert failed.reason is Reason.CONTEXT_OVERFLOW


def test_killed_and_started_again_nothing_is_asked_twice(asker, server, tmp_path):
    requests = [question(clip(number, "video"), choices=("Yes", "No"), max_tokens=4) for number in range(6)]
    with ReplyCache(tmp_path / "replies.db") as cache:
        first = ask(asker(cache=cache), *requests[:3])
        server.kill()
        server.start()
        again = asker(cache=cache)
        second = ask(again, *requests)
    assert [one.text for one in second[:3]] == [one.text for one in first]
    assert (again.tally.cached, again.tally.requests) == (3, 3)


IN_PROCESS = """
import asyncio, io, sys
from PIL import Image as Pillow
from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Options
from gen_eval.mllm.entry import entry_of
from gen_eval.mllm.vllm import Client

def clip(number, form):
    pictures = []
    for step in range(8):
        buffer = io.BytesIO()
        Pillow.new("RGB", (96, 64), (number * 37, number * 91 % 256, 20 * step)).save(buffer, "jpeg")
        pictures.append(Image(buffer.getvalue(), "image/jpeg", 64, 96))
    indices = tuple(range(0, 40, 5))
    return Frames(tuple(pictures), tuple(index / 10 for index in indices), indices, 10.0, 40, form=form)

def question(part, text="Is it so?", **options):
    return ChatRequest((Message.of("system", "Answer."), Message.of("user", part, text)), Options(**options))

async def run():
    sees = {"form": "video", "patch_factor": 32, "frames_per_token": 2}
    content = {"id": sys.argv[1], "sees": sees, "context": 4096, "parameters": {"eager": True, "memory": 0.3}}
    async with Client(entry_of("tiny", content), dtype="float32") as client:
        identity = await client.identity()
        options = {"choices": ("Yes", "No"), "logprobs": 5, "max_tokens": 4}
        requests = [question(clip(number, form), **options) for form in ("video", "images") for number in range(4)]
        replies = await asyncio.gather(*map(client.reply, requests))
        again = await client.reply(requests[0])
        failed = await asyncio.gather(client.reply(question(clip(1, "video"), "x" * 9000)), return_exceptions=True)
        print("OUTCOME", identity.engine, *[one.text for one in replies], again.text == replies[0].text,
              len({one.logprobs[0].logprob for one in replies}) > 1, replies[0].form, replies[4].form,
              *{one.ignored for one in replies}, failed[0].reason)

if __name__ == "__main__":
    asyncio.run(run())
"""


def test_in_process(vllm_server, tiny_vlm, tmp_path):
    """The backend without a server, in the interpreter that has vLLM; this project's own needs must be there, too."""
    (tmp_path / "program.py").write_text(IN_PROCESS)
    root = Path(__file__).parents[2]
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    done = subprocess.run(
        [os.environ["GEN_EVAL_VLLM_PYTHON"], tmp_path / "program.py", tiny_vlm(FAMILY, head=64)],
        env={**os.environ, **cpu, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=600, cwd=tmp_path,
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("OUTCOME")] or [done.stderr[-3000:]]
    words = line.split()
    assert words[1] == "vllm", line
    assert set(words[2:10]) <= {"Yes", "No"}
    assert words[10:] == ["True", "True", "video", "images", "()", "context_overflow"]
