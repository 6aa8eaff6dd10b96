"""What servers of the chat completions interface are sent, by engine, and whether what was asked for came back."""

import asyncio
import base64
from dataclasses import replace

import pytest

from gen_eval.mllm import ChatRequest, Image, Message, Options, Reply, TokenChance, Usage, VideoFile
from gen_eval.mllm.asking import Limits
from gen_eval.mllm.engines import engine_names, load_engine
from gen_eval.mllm.http import Client
from gen_eval.mllm.obeying import disobeyed, fits, fits_text
from gen_eval.mllm.wire import checked_address
from gen_eval.records import InputError, Reason

VIDEO = {"sees": {"form": "video"}}
SCHEMA = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]}
EVERYTHING = {
    "temperature": 0.0,
    "top_p": 0.9,
    "top_k": 5,
    "repetition_penalty": 1.1,
    "max_tokens": 64,
    "seed": 3,
    "thinking": True,
    "effort": "low",
    "choices": ("yes", "no"),
    "logprobs": 2,
    "stop": ("###",),
}
REASONS = {"thinking": {"mode": "effort", "template_key": "enable_thinking", "efforts": ["low", "high"]}}


def data_of(picture):
    return base64.b64encode(picture.data).decode()


def asked_of(server):
    (one,) = server.questions
    return one.body


# --- the request, by engine ----------------------------------------------------------------------------------------


def test_vllm_is_sent_everything_by_its_names(talk, served, say, good, ask_for):
    server = served(say(good()))
    reply, _ = talk(server, ask_for(**EVERYTHING), entry=REASONS)
    assert asked_of(server) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Is it red?"}],
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 5,
        "repetition_penalty": 1.1,
        "max_tokens": 64,
        "seed": 3,
        "stop": ["###"],
        "structured_outputs": {"choice": ["yes", "no"]},
        "logprobs": True,
        "top_logprobs": 2,
        "chat_template_kwargs": {"enable_thinking": True},
        "reasoning_effort": "low",
    }
    assert reply.ignored == ("logprobs",)  # sent, and did not come back


def test_transformers_serve_is_sent_what_it_takes(talk, served, say, good, ask_for):
    pages = {
        "/v1/models": say({"data": [{"id": "tiny", "owned_by": "local"}]}),
        "/openapi.json": say({"paths": {"/v1/chat/completions": {}, "/load_model": {}}}),
    }
    server = served(say(good()), pages=pages)
    reply, asker = talk(server, ask_for(**EVERYTHING), entry=REASONS)
    assert set(asked_of(server)) == {
        *("model", "messages", "temperature", "top_p", "max_tokens", "seed", "chat_template_kwargs"),
    }
    assert reply.ignored == ("choices", "effort", "logprobs", "repetition_penalty", "stop", "top_k")
    assert asyncio.run(asker.identity()).engine == "transformers"


def test_openai_is_sent_its_own_names(talk, served, say, good, ask_for, picture):
    server = served(say(good()))
    entry = {"endpoint": {"engine": "openai"}, "parameters": {"without": ["temperature", "top_p"], "detail": "low"}}
    shown = picture(kind="png")
    reply, _ = talk(server, ask_for(shown, **EVERYTHING | {"choices": None, "schema": SCHEMA}), entry=REASONS | entry)
    assert asked_of(server) == {
        "model": "tiny",
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{data_of(shown)}", "detail": "low"},
                    },
                    {"type": "text", "text": "Is it red?"},
                ],
            }
        ],
        "max_completion_tokens": 64,
        "seed": 3,
        "stop": ["###"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
        },
        "logprobs": True,
        "top_logprobs": 2,
        "reasoning_effort": "low",
    }
    assert reply.ignored == (
        *("logprobs", "repetition_penalty", "schema", "temperature", "thinking", "top_k", "top_p"),
    )


def test_an_unknown_server_is_sent_the_least(talk, served, say, good, ask_for):
    server = served(say(good()), pages={"/v1/models": say({"data": [{"id": "tiny", "owned_by": "me"}]})})
    talk(server, ask_for(**EVERYTHING), entry=REASONS)
    assert set(asked_of(server)) == {
        *("model", "messages", "temperature", "top_p", "max_tokens", "seed", "stop", "logprobs", "top_logprobs"),
    }


def test_fields_of_the_entry_are_added_and_may_not_repeat(talk, served, say, good, ask_for):
    server = served(say(good()))
    talk(server, ask_for(), entry={"parameters": {"body": {"mm_processor_kwargs": {"max_pixels": 100}}}})
    assert asked_of(server)["mm_processor_kwargs"] == {"max_pixels": 100}
    failed, _ = talk(served(say(good())), ask_for(), entry={"parameters": {"body": {"temperature": 1}}})
    assert isinstance(failed, InputError)
    assert "repeats temperature" in str(failed)


@pytest.mark.parametrize("parameters", [{"whithout": []}, {"without": ["heat"]}, {"detail": "huge"}])
def test_parameters_that_are_none_are_refused(model, parameters):
    with pytest.raises(InputError, match="parameters"):
        Client(model("http://127.0.0.1:1/v1", parameters=parameters))


def test_an_effort_that_the_model_does_not_have_is_refused(talk, served, say, good, ask_for):
    failed, _ = talk(served(say(good())), ask_for(effort="enormous"), entry=REASONS)
    assert isinstance(failed, InputError)
    assert "low, high, not 'enormous'" in str(failed)


def test_turns_keep_their_order(talk, served, say, good, picture):
    server = served(say(good()))
    one, two = picture(1), picture(2)
    request = ChatRequest(
        (
            Message.of("system", "Be brief."),
            Message.of("user", one, "First?"),
            Message.of("assistant", "Yes."),
            Message.of("user", "Second?", two),
        )
    )
    talk(server, request)
    first, second = (
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data_of(p)}"}} for p in (one, two)
    )
    assert asked_of(server)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [first, {"type": "text", "text": "First?"}]},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": [{"type": "text", "text": "Second?"}, second]},
    ]


# --- frames --------------------------------------------------------------------------------------------------------


def test_frames_go_as_one_video_where_the_engine_has_a_form_for_it(talk, served, say, good, ask_for, frames):
    server, clip = served(say(good())), frames()
    reply, _ = talk(server, ask_for(clip), entry=VIDEO)
    body = asked_of(server)
    joined = ",".join(map(data_of, clip.pictures))
    assert body["messages"][0]["content"] == [
        {"type": "video_url", "video_url": {"url": f"data:video/jpeg;base64,{joined}"}},
        {"type": "text", "text": "Is it red?"},
    ]
    assert body["media_io_kwargs"] == {
        "video": {
            "num_frames": 4,
            "fps": 8.0,
            "frames_indices": [0, 4, 8, 12],
            "total_num_frames": 16,
            "duration": 2.0,
            "do_sample_frames": False,
        }
    }
    assert body["mm_processor_kwargs"] == {"do_sample_frames": False, "fps": 2.0}
    assert reply.form == "video"


def test_times_of_a_clip_without_a_steady_rate_are_told_as_they_are(talk, served, say, good, ask_for, frames):
    server, clip = served(say(good())), replace(frames(), times=(0.0, 0.1, 0.2, 1.9))
    talk(server, ask_for(clip), entry=VIDEO)
    told = asked_of(server)["media_io_kwargs"]["video"]
    assert [index / told["fps"] for index in told["frames_indices"]] == list(clip.times)


@pytest.mark.parametrize(
    ("form", "entry"),
    [("images", VIDEO), ("video", {}), ("video", VIDEO | {"endpoint": {"engine": "generic"}})],
    ids=["asked for pictures", "a model for pictures", "an engine without video"],
)
def test_else_frames_go_as_pictures(talk, served, say, good, ask_for, frames, form, entry):
    server, clip = served(say(good())), frames(form, stamps=True)
    reply, _ = talk(server, ask_for(clip), entry=entry)
    body = asked_of(server)
    content = body["messages"][0]["content"]
    assert [one["text"] for one in content if one["type"] == "text"] == [
        *("<0.0 seconds>", "<0.5 seconds>", "<1.0 seconds>", "<1.5 seconds>", "Is it red?"),
    ]
    assert [one["image_url"]["url"].split(",")[1] for one in content if one["type"] == "image_url"] == [
        data_of(picture) for picture in clip.pictures
    ]
    assert not {"media_io_kwargs", "mm_processor_kwargs"} & set(body)
    assert reply.form == "images"


def test_two_clips_go_as_pictures_because_their_times_are_said_once(talk, served, say, good, ask_for, frames):
    server = served(say(good()))
    reply, _ = talk(server, ask_for(frames(), frames()), entry=VIDEO)
    assert len(asked_of(server)["messages"][0]["content"]) == 9
    assert reply.form == "images"


def test_a_file_goes_whole_and_its_rate_is_said_to_be_lost(talk, served, say, good, ask_for, tmp_path):
    (tmp_path / "clip.mp4").write_bytes(b"video")
    clip = VideoFile(tmp_path / "clip.mp4", "0" * 64, fps=2.0)
    server = served(say(good()))
    reply, _ = talk(server, ask_for(clip))
    assert asked_of(server)["messages"][0]["content"][0] == {
        "type": "video_url",
        "video_url": {"url": f"data:video/mp4;base64,{base64.b64encode(b'video').decode()}"},
    }
    assert (reply.form, reply.ignored) == ("file", ("fps",))
    failed, _ = talk(served(say(good())), ask_for(clip), entry={"endpoint": {"engine": "generic"}})
    assert isinstance(failed, InputError)
    assert "takes no video files" in str(failed)


def test_more_pictures_than_a_server_takes_are_not_sent(talk, served, say, good, ask_for, frames, tmp_path):
    (tmp_path / "few.yaml").write_text(
        "title: few\nlists_models: false\nmost_pictures: 3\noptions: {temperature: temperature}\n"
    )
    server = served(say(good()))
    failed, _ = talk(server, ask_for(frames()), entry={"endpoint": {"engine": str(tmp_path / "few.yaml")}})
    assert (failed.reason, failed.detail) == (Reason.CONTEXT_OVERFLOW, {"pictures": 4, "most": 3})
    assert server.questions == []


# --- the server ----------------------------------------------------------------------------------------------------


def identity_of(talk_entry, server, model):
    async def main():
        async with server, Client(model(server.address, **talk_entry)) as client:
            return await client.identity(), client

    return asyncio.run(main())


def test_the_server_says_what_it_is(served, model):
    identity, client = identity_of({"revision": "abc"}, served(), model)
    assert (identity.model, identity.revision, identity.engine, identity.version) == ("tiny", "abc", "vllm", "0.32.0")
    assert client.context == 4096
    assert client.capabilities.video_form
    assert client.capabilities.video_file


def test_a_name_that_was_made_up_does_not_hide_the_model(served, say, model):
    pages = {"/v1/models": say({"data": [{"id": "tiny", "owned_by": "vllm", "root": "org/Tiny-7B"}]})}
    assert identity_of({}, served(pages=pages), model)[0].extra == {"root": "org/Tiny-7B"}


def test_a_gateway_that_lists_nothing_is_asked_for_the_entry_by_its_id(served, say, model):
    pages = {"/v1/models": say({"error": "no"}, status=404), "/version": say({}, status=500)}
    identity, _ = identity_of({}, served(pages=pages), model)
    assert (identity.model, identity.engine, identity.version) == ("tiny", "generic", None)


def test_the_only_model_is_taken_whatever_it_is_called(served, say, model):
    pages = {"/v1/models": say({"data": [{"id": "/models/a", "owned_by": "vllm"}]})}
    assert identity_of({}, served(pages=pages), model)[0].model == "/models/a"


def test_several_models_need_a_name(served, say, model):
    pages = {"/v1/models": say({"data": [{"id": name, "owned_by": "vllm"} for name in ("a", "b")]})}
    with pytest.raises(InputError, match=r"'tiny': a, b; say which"):
        identity_of({}, served(pages=pages), model)
    assert identity_of({"endpoint": {"served_as": "b"}}, served(pages=pages), model)[0].model == "b"
    with pytest.raises(InputError, match=r"no model 'c'; it has a, b"):
        identity_of({"endpoint": {"served_as": "c"}}, served(pages=pages), model)


@pytest.mark.parametrize("body", [[], {"data": 3}, {"data": [3, {"id": 4}]}, {"data": [{"owned_by": ["vllm"]}]}])
def test_a_strange_list_of_models_is_no_list(served, say, model, body):
    pages = {"/v1/models": say(body), "/openapi.json": say([1]), "/version": say({"version": 3})}
    assert identity_of({}, served(pages=pages), model)[0].model == "tiny"


def test_engines_are_complete():
    assert set(engine_names()) >= {"vllm", "transformers", "openai", "generic"}
    for name in engine_names():
        engine = load_engine(name)
        assert {"temperature", "max_tokens"} <= set(engine.options)


def test_an_engine_with_an_unknown_field_is_refused(tmp_path):
    (tmp_path / "own.yaml").write_text("title: own\nlists_models: true\noptions: {heat: temperature}\n")
    with pytest.raises(InputError, match="heat"):
        load_engine(str(tmp_path / "own.yaml"))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (None, "names no address"),
        ("", "names no address"),
        ("localhost:8000", "http"),
        ("ftp://host/v1", "http"),
        ("file:///etc/passwd", "http"),
        ("http:///v1", "http"),
        ("http://host:99999/v1", "http"),
        ("http://user:secret@host/v1", "name or password"),
        ("http://host/v1?key=secret", "without"),
    ],
)
def test_addresses_that_are_none(address, words):
    with pytest.raises(InputError, match=words) as failed:
        checked_address(address, "tiny")
    assert address != "http://user:secret@host/v1" or "secret" not in str(failed.value)


def test_a_slash_at_the_end_is_the_same_address():
    assert checked_address("https://host/v1/", "tiny") == "https://host/v1"


# --- the reply -----------------------------------------------------------------------------------------------------


def test_everything_of_a_reply_is_kept(talk, served, say, good, ask_for):
    body = good(" Yes", reasoning_content="It is red.")
    body["choices"][0]["logprobs"] = {
        "content": [
            {
                "token": " Yes",
                "logprob": -0.25,
                "top_logprobs": [
                    {"token": " Yes", "logprob": -0.25},
                    {"token": " No", "logprob": -1.5},
                    {"token": " No", "logprob": -3.0},
                    {"token": "x", "logprob": None},
                ],
            },
            {"token": "bad"},
        ]
    }
    body["usage"] |= {
        "completion_tokens_details": {"reasoning_tokens": 2},
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    reply, _ = talk(served(say(body)), ask_for(logprobs=2, seed=1))
    assert reply.text == " Yes"
    assert reply.reasoning == "It is red."
    assert reply.usage == Usage(10, 3, 2, 8)
    assert reply.logprobs == (TokenChance(" Yes", -0.25, {" Yes": -0.25, " No": -1.5}),)
    assert (reply.model, reply.finish_reason, reply.ignored, reply.form) == ("tiny", "stop", (), None)
    assert reply.raw == body
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("options", "reply", "names"),
    [
        ({"choices": ("yes", "no")}, Reply(" yes\n"), ()),
        ({"choices": ("yes", "no")}, Reply("Yes, it is"), ("choices",)),
        ({"schema": SCHEMA}, Reply('{"answer": "yes"}'), ()),
        ({"schema": SCHEMA}, Reply('{"answer": "ye', finish_reason="length"), ("schema",)),
        ({"schema": SCHEMA}, Reply("[" * 100_000), ("schema",)),
        ({"logprobs": 1}, Reply("yes", logprobs=(TokenChance("yes", -0.1),)), ()),
        ({"stop": ("###",)}, Reply("a ### b"), ("stop",)),
        ({"max_tokens": 5}, Reply("a b", usage=Usage(1, 6)), ("max_tokens",)),
        ({"thinking": False}, Reply("yes", reasoning="Hm."), ("thinking",)),
        ({"thinking": True}, Reply("yes", reasoning="Hm."), ()),
    ],
)
def test_what_did_not_come_back_is_named(options, reply, names):
    assert disobeyed(Options(**options), reply) == names


@pytest.mark.parametrize(
    ("value", "schema", "good"),
    [
        (3, {"type": "integer"}, True),
        (3.0, {"type": "integer"}, True),
        (True, {"type": "integer"}, False),
        (True, {"type": ["boolean", "null"]}, True),
        (None, {"type": ["boolean", "null"]}, True),
        (3, {"minimum": 4}, False),
        (3, {"maximum": 2}, False),
        ("x", {"minimum": 4}, True),
        ([1], {"minItems": 2}, False),
        ([1, "a"], {"items": {"type": "number"}}, False),
        ({"a": 1}, {"additionalProperties": False}, False),
        ({"a": 1}, {"additionalProperties": False, "properties": {"a": {"type": "number"}}}, True),
        ({"a": 1}, {"properties": {"a": {"const": 2}}}, False),
        ({"a": {"b": []}}, {"properties": {"a": {"properties": {"b": {"type": "array"}}}}}, True),
        (1, {"type": "of another world"}, True),
    ],
)
def test_a_value_fits_a_schema_or_not(value, schema, good):
    assert fits(value, schema) is good


def test_text_that_is_no_json_fits_nothing():
    assert not fits_text("yes", {})


def test_a_request_of_some_megabytes_reaches_the_server_whole(talk, served, say, good, ask_for):
    large = Image(bytes(range(256)) * 8000, "image/jpeg", 1, 1)
    server = served(say(good()))
    talk(server, ask_for(*[large] * 4), limits=Limits(attempts=1))
    sent = [one["image_url"]["url"] for one in asked_of(server)["messages"][0]["content"][:-1]]
    assert sent == [f"data:image/jpeg;base64,{data_of(large)}"] * 4
